"""A server, its database, fake executors and a fake provider of judges, and callers who mean harm."""

import http.client
import http.server
import json
import os
import pathlib
import queue
import subprocess
import threading
import uuid

PATIENCE = 90
SETTINGS = """
[providers.paid]
kind = "openai"
base_url = "{judge}"
models = ["judge"]

[providers.paid.prices.judge]
input_usd_per_million = "3.00"
output_usd_per_million = "15.00"

[judges]
default_model = "paid/judge"

[anonymous]
grant_usd = 0.10
daily_cap_usd = 1.00

[accounts]
registration = "open"
"""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def read(self):
        length = int(self.headers.get("content-length") or 0)
        return json.loads(self.rfile.read(length) or b"{}")

    def reply(self, body, status=200):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Fake:
    """An HTTP server that counts what it is asked, and waits where it is told to."""

    def __init__(self, answer):
        self.asked, self.seen = [], queue.Queue()
        self.open = threading.Event()
        self.open.set()
        fake = self

        class Own(Handler):
            def do_GET(self):
                answer(fake, self, None)

            def do_POST(self):
                body = self.read()
                fake.asked.append((self.path, body))
                fake.headers = dict(self.headers)
                fake.seen.put((self.path, body))
                fake.open.wait(PATIENCE)
                try:
                    answer(fake, self, body)
                except OSError:
                    pass  # The caller did not wait.

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Own)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def next(self):
        return self.seen.get(timeout=PATIENCE)


def executor():
    """Repeats the prompt, and finds everything valid."""

    def answer(fake, self, body):
        if self.path == "/health":
            return self.reply({"status": "ok"})
        if self.path == "/capabilities":
            return self.reply({
                "task_types": ["*"], "profiles": ["*"], "provider_family": "fake",
                "model_id": f"fake-{fake.server.server_port}", "policies": ["vp.claim.v1"],
            })
        if self.path == "/execute":
            said = {"answer": str(body["inputs"].get("prompt", "")), "confidence": 0.9}
            return self.reply({"candidate_output": said, "evidence_inline": [], "evidence_refs": []})
        if self.path == "/verify":
            candidate = body["candidate"]
            return self.reply({
                "candidate_id": candidate["candidate_id"], "execution_id": candidate["execution_id"],
                "passed": True, "score": 0.9, "reason_codes": [], "provider_family": "fake",
                "model_id": f"fake-{fake.server.server_port}",
                "policy_hash": body["policy"]["policy_hash"], "verification_status": "passed",
            })
        if self.path == "/agent-events":
            return self.reply({"ok": True})
        return self.reply({}, 404)

    return Fake(answer)


def judge():
    """Finds every criterion met, for 100 tokens in and 100 out."""

    def answer(_, self, body):
        said = {"findings": [], "reasoning": "Read it.", "verdict": "met"}
        message = {"role": "assistant", "content": json.dumps(said)}
        self.reply({
            "id": "1", "object": "chat.completion", "model": "judge",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 100, "total_tokens": 200},
        })

    return Fake(answer)


class Node:
    """A server of ours with a state folder of its own."""

    def __init__(self, program, folder, store, judge_url, more=None):
        self.program, self.state = program, folder / f"state-{uuid.uuid4().hex[:8]}"
        self.state.mkdir()
        (self.state / "jurat.toml").write_text(SETTINGS.format(judge=judge_url))
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder),
            "JURAT_STATE_DIR": str(self.state), "JURAT_LIMITS_LAG_MS": "0",
        } | (more or {})
        # A node that joins a database writes no key unless it is told to.
        words = [program, "serve", "--listen", "127.0.0.1:0", "--store", store, "--new-admin-key"]
        self.child = subprocess.Popen(
            words, env=self.env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True,
        )
        self.lines, self.url, self.listens = [], None, threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.listens.wait(PATIENCE):
            raise SystemExit("the server did not say where it listens:\n" + "".join(self.lines))

    def read(self):
        for line in self.child.stderr:
            self.lines.append(line)
            if self.url is None and "listening on " in line:
                self.url = line.split("listening on http://")[1].split()[0]
                self.listens.set()

    def jurat(self, *args, fails=False):
        done = subprocess.run(
            [self.program, *args], env=self.env, capture_output=True, text=True, timeout=PATIENCE,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0 and not fails:
            raise SystemExit(f"jurat {' '.join(args)}: {done.stderr}{done.stdout}")
        return done.stdout.strip()

    def resident_mib(self):
        """What the process has in memory now, and what it had at the most."""
        text = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        sizes = dict(line.split(":", 1) for line in text.splitlines() if line.startswith("Vm"))
        return tuple(int(sizes[name].split()[0]) // 1024 for name in ("VmRSS", "VmHWM"))

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()


class Caller:
    """Somebody with a key, or with none."""

    def __init__(self, node, key=None):
        self.url, self.key = node.url, key

    def raw(self, method, path, text=None, headers=None, timeout=PATIENCE):
        sent = {"content-type": "application/json"} | (headers or {})
        if self.key:
            sent["authorization"] = f"Bearer {self.key}"
        connection = http.client.HTTPConnection(self.url, timeout=timeout)
        try:
            connection.request(method, path, text, sent)
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        try:
            return reply.status, json.loads(body)
        except ValueError:
            return reply.status, body

    def send(self, method, path, body=None, headers=None, timeout=PATIENCE):
        text = None if body is None else json.dumps(body)
        return self.raw(method, path, text, headers, timeout)

    def get(self, path):
        return self.send("GET", path)[1]

    def make(self, path, body, method="POST", headers=None):
        status, reply = self.send(method, path, body, headers)
        if not 200 <= status < 300:
            raise SystemExit(f"{method} {path}: {status} {reply}")
        return reply


class World:
    """One server over one database, with an operator."""

    def __init__(self, program, folder, database):
        self.program, self.folder, self.database = program, pathlib.Path(folder), database
        self.judge = judge()
        self.store = database.fresh(self.folder)
        self.nodes = [Node(program, self.folder, self.store, self.judge.url)]
        self.node = self.nodes[0]

    def tenant(self, credit=None, **limits):
        """A caller of a new account, with its credit in credits."""
        account = f"acct_{uuid.uuid4().hex[:12]}"
        return self.key_of(account, credit, **limits)

    def join(self, store):
        """Another node on the same database."""
        node = Node(self.program, self.folder, store, self.judge.url)
        self.nodes.append(node)
        return node

    def key_of(self, account, credit=None, **limits):
        flags = [word for name, value in limits.items()
                 for word in (f"--{name.replace('_', '-')}", str(value))]
        name = f"k{uuid.uuid4().hex[:8]}"
        key = self.node.jurat("keys", "create", name, "--account", account, "--quiet", *flags)
        if credit is not None:
            self.node.jurat("admin", "grant", account, credit, "--quiet")
        caller = Caller(self.node, key)
        caller.account, caller.name = account, name
        return caller

    def executor(self, price_micros=None, **flags):
        fake = executor()
        fake.name = f"e{uuid.uuid4().hex[:8]}"
        words = ["executors", "add", fake.name, fake.url, "--quiet"]
        if price_micros is not None:
            words += ["--price-micros", str(price_micros)]
        for name, value in flags.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        self.node.jurat(*words)
        return fake

    def spent_micros(self, caller):
        """What the account has paid, from its own books."""
        usage = caller.get("/v1/me/usage")
        return round(float(usage["spent_usd"]) * 1_000_000)

    def captures(self, caller):
        lines = caller.get("/v1/me/transfers?limit=200")["items"]
        return [line for line in lines if line["movement"] == "capture"]

    def end(self):
        for node in self.nodes:
            node.stop()
        self.database.drop(self.store)
