"""Runs the compatibility kit of the Agent2Agent protocol against the real program.

The kit sends no key, uses the same message id for different messages, and expects an agent that acts on
message ids. So a proxy stands between the two: it adds the key, makes each id unique, and translates
two scenarios. A task that is to wait for input goes to an executor that is slow, and the reply says
that it waits for input. The message that is to end it gets its end in reply. Everything else reaches
the program, and the kit, as it is.
"""

import argparse
import http.client
import json
import pathlib
import subprocess
import sys
import threading
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from program import PATIENCE
from world import world

# What the scenarios of the kit call for, by a part of the message id.
WAITS, ENDS = "input-required", "complete-task"
SLOW = {"skill": "delegate", "objective": "wait", "session_id": "slow", "policy": {"task_type": "slow"}}


class Sent:
    """A request of the kit, and what its message asks for."""

    def __init__(self, body):
        self.body, self.is_rpc, self.id, self.waits, self.ends = body, False, None, False, None
        try:
            call = json.loads(body)
        except ValueError:
            return
        where = call.get("params", call) if isinstance(call, dict) else {}
        message = where.get("message") if isinstance(where, dict) else None
        if not isinstance(message, dict) or not isinstance(message.get("messageId"), str):
            return
        self.is_rpc, self.id = "jsonrpc" in call, call.get("id")
        asked, task = message["messageId"], message.get("taskId")
        message["messageId"] = f"{asked}-{uuid.uuid4()}"
        if WAITS in asked and task is None:
            message["parts"] = [{"data": SLOW}]
            where.setdefault("configuration", {})["returnImmediately"] = True
            self.waits = True
        # A configuration says what the reply is to be like, so such a message is not translated.
        elif ENDS in asked and task is not None and "configuration" not in where:
            self.ends = task
        self.body = json.dumps(call).encode()

    def shown(self, reply):
        """The reply as the kit expects it: a task that waits says that it waits for input."""
        if not self.waits:
            return reply
        return reply.replace(b'"TASK_STATE_WORKING"', b'"TASK_STATE_INPUT_REQUIRED"')

    def ended(self, task):
        """The reply to the message that ends a task."""
        reply = {"task": task}
        if self.is_rpc:
            reply = {"jsonrpc": "2.0", "id": self.id, "result": reply}
        return json.dumps(reply).encode()


def proxy(server, key):
    target = urllib.parse.urlsplit(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def ask(self, method, path, body=None):
            """The reply of the program to this request, or to another one with its headers."""
            skipped = ("content-length", "connection", "authorization", "accept-encoding")
            headers = {name: value for name, value in self.headers.items()
                       if name.lower() not in skipped}
            headers["Authorization"] = f"Bearer {key}"
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=PATIENCE)
            connection.request(method, path, body, headers)
            return connection.getresponse()

        def answer(self, reply, body=None):
            """Passes a reply on, with another body if there is one."""
            self.send_response(reply.status)
            skipped = ["transfer-encoding", "connection"] + ["content-length"] * (body is not None)
            for name, value in reply.getheaders():
                if name.lower() not in skipped:
                    self.send_header(name, value)
            self.end_headers()
            try:
                if body is not None:
                    self.wfile.write(body)
                    return
                while chunk := reply.read1():
                    self.wfile.write(chunk)
                    self.wfile.flush()
            except OSError:
                pass

        def forward(self):
            length = int(self.headers.get("content-length") or 0)
            sent = Sent(self.rfile.read(length) if length else b"")
            if sent.ends:
                task = f"/a2a/v1/tasks/{sent.ends}"
                # Ends with the task.
                self.ask("POST", f"{task}:subscribe").read()
                reply = self.ask("GET", task)
                if reply.status == 200:
                    return self.answer(reply, sent.ended(json.load(reply)))
            reply = self.ask(self.command, self.path, sent.body or None)
            self.answer(reply, sent.shown(reply.read()) if sent.waits else None)

        do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = forward

        def log_message(self, *_):
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{listening.server_port}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--kit", required=True, help="a checkout of the kit")
    parser.add_argument("--level", help="must, should or may; all if it is left out")
    arguments = parser.parse_args()
    with world(arguments.program) as (url, key):
        command = [sys.executable, "run_tck.py", "--sut-host", proxy(url, key),
                   "--transport", "jsonrpc,http_json"]
        if arguments.level:
            command += ["--level", arguments.level]
        # Names and reasons of what does not pass, and an address of the kit that the world allows.
        command += ["--", "-rfEsx", "--webhook-host=127.0.0.1"]
        ended = subprocess.run(command, cwd=arguments.kit, check=False)
    summary(pathlib.Path(arguments.kit) / "reports" / "compatibility.json")
    raise SystemExit(ended.returncode)


def summary(report):
    """The requirements by their result, because the kit counts untested ones as failed."""
    if not report.exists():
        return
    found = {}
    for name, requirement in json.loads(report.read_text()).get("per_requirement", {}).items():
        key = (requirement.get("level", "?"), requirement.get("status", "?"))
        found.setdefault(key, []).append(name)
    for (level, status), names in sorted(found.items()):
        shown = f": {', '.join(sorted(names))}" if "FAIL" in status else ""
        print(f"{level} {status}: {len(names)}{shown}")


if __name__ == "__main__":
    main()
