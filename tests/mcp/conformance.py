"""Runs the official suite of the Model Context Protocol against a server, at both revisions.

The suite has no keys, and asks for tools, prompts and resources by names that only a server made for
it has. So its requests go through a door that adds a key and, for a name that Jurat can stand for,
asks for what Jurat has instead; the program has no mode for the suite. Scenarios of what Jurat has
not are listed with their reason, and so are single checks. Anything else that does not pass, and
anything listed that passes, ends the run with an error.
"""

import argparse
import contextlib
import http.client
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from program import PATIENCE, post, serving

REVISIONS = ["2025-11-25", "2026-07-28"]
WELL_FORMED = "wire-schema-valid"

# What Jurat has not, by the capability that would announce it; None if there is none to announce.
CONTENT = (None, "no tool or prompt of Jurat returns images, audio or embedded resources")
BINARY = (None, "Jurat has no binary resources")
COMPLETION = ("completions", "Jurat does not complete arguments")
LOGGING = ("logging", "Jurat does not log to clients")
SUBSCRIPTION = ("resources.subscribe", "Jurat has no subscriptions to resources")
SESSION = (None, "it needs a session, and Jurat opens none")
STATE = (None, "the questions of Jurat keep no state, and a call asks one question")
MODEL = (None, "Jurat asks for a confirmation, and never for a model or for folders")
PROMPT = (None, "no prompt of Jurat asks a question")
TASKS = ("extensions", "Jurat does not have the extension for tasks")
HEADERS = (None, "no tool of Jurat takes arguments from headers")
SCHEMA = (None, "it looks for a tool with a schema of its own")
LACKING = {
    "completion-complete": COMPLETION,
    "logging-set-level": LOGGING,
    "tools-call-with-logging": LOGGING,
    "tools-call-image": CONTENT,
    "tools-call-audio": CONTENT,
    "tools-call-embedded-resource": CONTENT,
    "tools-call-mixed-content": CONTENT,
    "prompts-get-embedded-resource": CONTENT,
    "prompts-get-with-image": CONTENT,
    "resources-read-binary": BINARY,
    "resources-subscribe": SUBSCRIPTION,
    "resources-unsubscribe": SUBSCRIPTION,
    "tools-call-sampling": SESSION,
    "tools-call-elicitation": SESSION,
    "elicitation-sep1034-defaults": SESSION,
    "elicitation-sep1330-enums": SESSION,
    "server-session-lifecycle": SESSION,
    "server-sse-polling": SESSION,
    "input-required-result-request-state": STATE,
    "input-required-result-tampered-state": STATE,
    "input-required-result-multi-round": STATE,
    "input-required-result-multiple-input-requests": STATE,
    "input-required-result-basic-sampling": MODEL,
    "input-required-result-basic-list-roots": MODEL,
    "input-required-result-capability-check": MODEL,
    "input-required-result-non-tool-request": PROMPT,
    "json-schema-2020-12": SCHEMA,
    "http-custom-header-server-validation": HEADERS,
}


def lacking(revision, scenario):
    """Why a scenario does not apply; nothing if it does."""
    if scenario.startswith("tasks-"):
        return TASKS
    # At 2026-07-28 these streams need no session.
    if scenario == "server-sse-multiple-streams" and revision == "2025-11-25":
        return SESSION
    return LACKING.get(scenario)


FIXTURE = "it needs a tool that only a server made for the suite has"
# Single checks of scenarios that pass otherwise.
EXPECTED = {
    "sep-2575-server-rejects-undeclared-capability": FIXTURE,
    "sep-2575-missing-capability-http-400": FIXTURE,
    "sep-2575-http-server-no-independent-requests-on-stream": FIXTURE,
    "sep-2575-server-no-log-without-loglevel": FIXTURE,
}

CLAIM = "the round of resource 123"
VERIFIER = {
    "name": "conformance", "description": "The answer names its source.",
    "criterion": json.dumps({"contains": {"field": "answer", "text": "Source:"}}),
    "input_contract": "text", "input_fields": ["answer"],
    "model_settings": {"model": "builtin/rules"},
}
ASKED = json.dumps({"claim": CLAIM, "consensus": {"replicas": 3}})


def stand_ins(url, key):
    """What Jurat has in place of the names of the suite, by method and name."""
    post(f"{url}/v1/verifiers", key, VERIFIER)
    made = post(f"{url}/api/v3/validate", key, json.loads(ASKED))

    def call(tool, **arguments):
        return lambda params: params | {"name": tool, "arguments": arguments}

    def read(uri):
        return lambda params: params | {"uri": uri}

    def two(params):
        given = params["arguments"]
        filled = {"output": given["arg1"], "requirement": given["arg2"]}
        return params | {"name": "review_output", "arguments": filled}

    return {
        ("tools/call", "test_simple_text"): call("get_usage"),
        ("tools/call", "test_error_handling"): call("get_round", round_id="rnd_nobody"),
        ("tools/call", "test_tool_with_progress"): call("validate", **json.loads(ASKED)),
        ("tools/call", "test_input_required_result_elicitation"): confirmed,
        ("prompts/get", "test_simple_prompt"): call("check_claim", claim=CLAIM),
        ("prompts/get", "test_prompt_with_arguments"): two,
        ("resources/read", "test://static-text"): read("jurat://docs/consensus"),
        # Its text must have 123, which the claim has.
        ("resources/read", "test://template/123/data"): read(f"jurat://rounds/{made['round_id']}"),
    }


# The suite asks for a name, and Jurat for a yes.
THEIRS, OURS = "user_name", "confirm"


def confirmed(params):
    """A call of a tool that asks first. Only what the suite answers well becomes a yes."""
    params = params | {"name": "revoke_verifier", "arguments": {"verifier_id": VERIFIER["name"]}}
    given = params.get("inputResponses")
    if isinstance(given, dict) and THEIRS in given:
        answer = given[THEIRS]
        if isinstance(answer, dict) and "name" in answer.get("content", {}):
            answer = answer | {"content": {OURS: True}}
        rest = {name: value for name, value in given.items() if name != THEIRS}
        params["inputResponses"] = rest | {OURS: answer}
    return params


def as_asked(content):
    """A reply whose question has the name that the suite expects."""
    reply = json.loads(content)
    questions = reply.get("result", {}).get("inputRequests", {})
    if OURS in questions:
        questions[THEIRS] = questions.pop(OURS)
    return json.dumps(reply).encode()


def door(url, key, stand_ins):
    """A server that hands requests on with the key, and with what stands for names of the suite."""
    target = urllib.parse.urlsplit(url)

    def translated(body, headers):
        try:
            request = json.loads(body)
            params = request["params"]
            name = params.get("name", params.get("uri"))
            stand_in = stand_ins[request["method"], name]
        except (ValueError, KeyError, TypeError, AttributeError):
            return body, headers, False
        request["params"] = stand_in(params)
        name = request["params"].get("name", request["params"].get("uri"))
        headers = [(it, name if it.lower() == "mcp-name" else value) for it, value in headers]
        return json.dumps(request).encode(), headers, stand_in is confirmed

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self):
            # The suite drops connections that it does not need any more.
            with contextlib.suppress(ConnectionError):
                super().handle()

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body, headers, is_asking = translated(body, self.headers.items())
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=PATIENCE)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                if name.lower() != "content-length":
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Authorization", f"Bearer {key}")
            connection.endheaders(body)
            reply = connection.getresponse()
            content = reply.read()
            connection.close()
            if is_asking:
                content = as_asked(content)
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = pass_on

        def log_message(self, *_):
            pass

    opened = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=opened.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{opened.server_address[1]}"


def scored(suite, revision):
    """The scenarios for servers that the revision requires."""
    text = (pathlib.Path(suite).parent.parent / "requirements" / f"{revision}.yaml").read_text()
    listed = re.search(r"^server:\n((?:  - \S+\n|\s*#.*\n)+)", text, re.M)
    return re.findall(r"^  - (\S+)", listed[1], re.M)


def results(suite, url, revision, folder):
    """The checks of each scenario of a revision: those that it requires, and those that it does not."""
    command = ["node", suite, "server", "--url", f"{url}/mcp", "--requirements", revision,
               "-o", str(folder / revision)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
    found = {}
    for file in (folder / revision).rglob("checks.json"):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.*", file.parent.name)[1]
        found[scenario] = json.loads(file.read_text())
    missing = set(scored(suite, revision)) - found.keys()
    if missing:
        raise SystemExit(f"no result of {', '.join(sorted(missing))}:\n{ran.stdout}{ran.stderr}")
    return found


def capabilities(url, key):
    """What the server announces, under names as in `resources.subscribe`."""
    client = {"protocolVersion": "2025-11-25", "capabilities": {},
              "clientInfo": {"name": "check", "version": "1"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    announced = post(f"{url}/mcp", key, call)["result"]["capabilities"]
    inner = {f"{name}.{part}" for name, parts in announced.items() for part in parts if parts[part]}
    return inner | announced.keys()


class Tally:
    """What the checks of a revision came to."""

    def __init__(self, revision, announced):
        self.revision = revision
        self.announced = announced
        self.passed = 0
        self.holding = set()
        self.faults = []
        self.expected = set()

    def take(self, scenario, checks):
        reason = lacking(self.revision, scenario)
        wrong = {check["id"]: check.get("errorMessage", "") for check in checks
                 if check["status"] in ("FAILURE", "WARNING")}
        # Messages must be well-formed in every scenario, and that alone says nothing about it.
        right = [check["id"] for check in checks
                 if check["status"] == "SUCCESS" and check["id"] != WELL_FORMED]
        if reason:
            capability, _ = reason
            if WELL_FORMED in wrong:
                self.faults.append(f"{scenario}: {WELL_FORMED}: {wrong[WELL_FORMED]}")
            if right and not wrong:
                self.faults.append(f"{scenario} passes, and is listed as lacking")
            if capability in self.announced:
                self.faults.append(f"{scenario} is listed as lacking, and {capability} is announced")
            return
        self.expected |= wrong.keys() & EXPECTED.keys()
        unexpected = {check: text for check, text in wrong.items() if check not in EXPECTED}
        self.faults += [f"{scenario}: {check}: {text}" for check, text in unexpected.items()]
        if not right:
            self.faults.append(f"{scenario} checked nothing")
        if right and not unexpected:
            self.holding.add(scenario)
        self.passed += len(right)
        print(f"{self.revision} {scenario}: {len(right)} passed, {len(wrong)} did not", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--suite", required=True, help="the script of the suite")
    options = parser.parse_args()
    program = pathlib.Path(options.program).resolve()
    faults, expected, passed, summary = [], set(), 0, []
    with tempfile.TemporaryDirectory(prefix="jurat-mcp-") as name:
        folder = pathlib.Path(name)
        with serving(program, folder) as (server, key):
            announced = capabilities(server.url, key)
            url = door(server.url, key, stand_ins(server.url, key))
            for revision in REVISIONS:
                tally = Tally(revision, announced)
                for scenario, checks in sorted(results(options.suite, url, revision, folder).items()):
                    tally.take(scenario, checks)
                faults += [f"{revision} {fault}" for fault in tally.faults]
                expected |= tally.expected
                passed += tally.passed
                required = scored(options.suite, revision)
                holding = tally.holding & set(required)
                summary.append(f"{len(holding)} of {len(required)} scored scenarios at {revision}")
    faults += [f"{check} passes, and is listed as failing" for check in EXPECTED.keys() - expected]
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{'failed' if faults else 'the protocol holds'}: {' and '.join(summary)} apply and pass, "
          f"{passed} checks passed, {len(faults)} failed, and {len(expected)} do not apply")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
