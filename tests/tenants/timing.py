"""Measures whether what belongs to another tenant takes as long to refuse as what nobody has.

Starts a server with a store of its own, lets one tenant make something of every kind, and lets
another ask every route for it, in turns with names that nobody has. Prints the ratio of the medians
of each route, and fails when one is further from 1 than the given share. All requests of one route
go over one connection, theirs and nobody's by turns, so that both meet the same moments. A route that
is too far off is measured again, because a busy machine makes some so; it is told apart by time when
it always is.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "goodeye"))

from client import plain_judge

PATIENCE = 60
TIMES = 3
SETTINGS = """
[providers.plain]
kind = "openai"
base_url = "{plain}"

[judges]
default_model = "plain/judge"
"""
UUID = "01900000-0000-7000-8000-0000000000ff"


class Server:
    def __init__(self, program, folder, store):
        state = folder / "state"
        state.mkdir()
        (state / "jurat.toml").write_text(SETTINGS.format(plain=plain_judge()))
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "JURAT_STATE_DIR": str(state)}
        self.program, self.env, self.lines, self.url = program, env, [], None
        words = [program, "serve", "--listen", "127.0.0.1:0"] + (["--store", store] if store else [])
        self.child = subprocess.Popen(
            words, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )
        self.is_listening = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.is_listening.wait(PATIENCE):
            raise SystemExit("the server did not say where it listens:\n" + "".join(self.lines))

    def read(self):
        for line in self.child.stderr:
            self.lines.append(line)
            if self.url is None and "listening on " in line:
                self.url = line.split("listening on http://")[1].split()[0]
                self.is_listening.set()

    def key(self, name):
        words = [self.program, "keys", "create", name, "--account", f"acct_{name}", "--quiet"]
        done = subprocess.run(
            words, env=self.env, capture_output=True, text=True, timeout=PATIENCE, check=True
        )
        return done.stdout.strip()


class Caller:
    def __init__(self, server, key):
        self.key = key
        self.connection = http.client.HTTPConnection(server.url, timeout=PATIENCE)

    def send(self, method, path, body=None):
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, headers)
        reply = self.connection.getresponse()
        return reply.status, reply.read()

    def make(self, path, body, method="POST"):
        status, text = self.send(method, path, body)
        if not 200 <= status < 300:
            raise SystemExit(f"{method} {path}: {status} {text.decode()}")
        return json.loads(text)


def names(tenant):
    """What the tenant has, by name, with a name like it that nobody has."""
    rule = {"contains": {"field": "response", "text": "x"}}
    verifier = tenant.make("/v1/verifiers", {
        "name": "theirs", "description": "d", "criterion": json.dumps(rule),
        "input_contract": "text", "input_fields": ["response"],
        "model_settings": {"model": "builtin/rules"},
    })
    identifier = verifier["verifier_id"]
    run = tenant.make(f"/v1/verifiers/{identifier}/runs", {"inputs": {"response": "x"}})
    workflow = tenant.make("/v1/workflows", {
        "name": "theirs", "description": "d", "outcome": "o", "body": "b",
        "expected_version_token": None, "verifiers": [{"name": "v", "verifier_id": identifier}],
        "files": [{"path": "a.txt", "content": "a"}],
    })
    tenant.make("/v1/me", {"handle": "theirs"}, "PATCH")
    team = tenant.make("/v1/teams", {"handle": "their-team"})
    offer = tenant.make("/v1/teams/their-team/members", {"user_identifier": "ann@example.com"})
    template = tenant.make("/v1/templates", {"workflow_id": workflow["workflow_id"]})["template_id"]
    tenant.make(f"/v1/templates/{template}/archive", {})
    key = tenant.make("/v1/api-keys", {"name": "theirs"})
    return {
        "verifiers": [(identifier, UUID)],
        "verifier-runs": [(run["verifier_run_id"], UUID)],
        "rounds": [(run["round_id"], "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV")],
        "workflows": [(workflow["workflow_id"], UUID)],
        "skills": [(workflow["workflow_id"], UUID)],
        "teams": [
            (team["team_id"], "acct_01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ("their-team", "other-team"),
        ],
        "invitations": [(offer["invitation_id"], UUID)],
        "templates": [(template, UUID), ("@theirs%2Ftheirs", "@theirs%2Fothers")],
        "api-keys": [(key["id"], "6vDuzADvOCQAxeMhwGVoC0")],
    }


def routes(document, pairs):
    """Every route that takes a name, with a body that it takes and both names in its path."""
    for path, item in sorted(document["paths"].items()):
        found = re.match(r"/v1/([a-z-]+)/\{(\w+)\}", path)
        if not found or found[1] not in pairs:
            continue
        for method, operation in item.items():
            content = operation.get("requestBody", {}).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            body = next((it["value"] for it in examples.values()), None)
            query = "?path=a.txt" if method == "get" and path.endswith("/files") else ""
            fill = lambda name: (
                re.sub(r"\{\w+\}", "1", path.replace(found[0], f"/v1/{found[1]}/{name}")) + query
            )
            for pair in pairs[found[1]]:
                yield method.upper(), path, [fill(name) for name in pair], body


def measure(stranger, method, paths, body, count):
    """The medians of both in microseconds, and the status of all. The first ones only warm up."""
    times, statuses = ([], []), (set(), set())
    for number in range(count + count // 10):
        # Which comes first changes, so that neither always follows the other.
        for which in (0, 1) if number % 2 else (1, 0):
            begun = time.perf_counter_ns()
            status, _ = stranger.send(method, paths[which], body)
            taken = time.perf_counter_ns() - begun
            statuses[which].add(status)
            if count // 10 <= number:
                times[which].append(taken)
    if statuses[0] != statuses[1]:
        raise SystemExit(f"{method} {paths[0]}: {statuses[0]} and {statuses[1]}")
    return [statistics.median(it) / 1000 for it in times], statuses[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", required=True, help="our program, built for release")
    parser.add_argument("--requests", type=int, default=2000, help="of each kind to each route")
    parser.add_argument("--share", type=float, default=0.05, help="how far from 1 a ratio may be")
    parser.add_argument("--only", default="", help="only routes with this in their method and path")
    parser.add_argument("--store", help="another store than a file of SQLite")
    args = parser.parse_args()
    far = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        server = Server(str(pathlib.Path(args.program).resolve()), folder, args.store)
        try:
            pairs = names(Caller(server, server.key("tenant")))
            stranger = Caller(server, server.key("stranger"))
            document = json.loads(stranger.send("GET", "/openapi.json")[1])
            for method, path, paths, body in routes(document, pairs):
                if args.only not in f"{method} {path}":
                    continue
                ratios = []
                while not ratios or (len(ratios) < TIMES and args.share < abs(ratios[-1] - 1)):
                    medians, statuses = measure(stranger, method, paths, body, args.requests)
                    ratios.append(medians[0] / medians[1])
                told = "  ".join(f"{ratio:.3f}" for ratio in ratios)
                status = "/".join(map(str, sorted(statuses)))
                print(f"{medians[0]:6.0f} us  {medians[1]:6.0f} us  {told}  {status}  {method} {paths[0]}", flush=True)
                if args.share < abs(ratios[-1] - 1):
                    far.append(f"{method} {paths[0]}: {told}")
        finally:
            server.child.terminate()
            server.child.wait(PATIENCE)
    if far:
        raise SystemExit("told apart by time:\n" + "\n".join(far))


if __name__ == "__main__":
    main()
