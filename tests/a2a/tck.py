"""Runs the compatibility kit of the Agent2Agent protocol against the real program.

The kit sends no key and uses the same message id for different messages, so a proxy adds the key and
makes each id unique. A message whose id asks for a task that waits goes to an executor that never
answers. Everything else reaches the program as it is.
"""

import argparse
import http.client
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from program import Process, post

# What the scenarios of the kit call for, by a part of the message id.
WAITS = ["input-required", "resubscribe"]


def changed(body):
    """The body with an id of its own for its message."""
    try:
        call = json.loads(body)
    except ValueError:
        return body
    where = call.get("params", call) if isinstance(call, dict) else {}
    message = where.get("message") if isinstance(where, dict) else None
    if isinstance(message, dict) and isinstance(message.get("messageId"), str):
        asked = message["messageId"]
        message["messageId"] = f"{asked}-{uuid.uuid4()}"
        parts = message.get("parts")
        if any(word in asked for word in WAITS) and isinstance(parts, list) and "taskId" not in message:
            wait = {"skill": "delegate", "objective": "wait", "session_id": "hanging",
                    "policy": {"task_type": "hang"}, "execution": {"timeout_ms": 8000}}
            message["parts"] = [{"data": wait}]
            if "input-required" in asked:
                where.setdefault("configuration", {})["returnImmediately"] = True
        return json.dumps(call).encode()
    return body


def proxy(server, key):
    target = urllib.parse.urlsplit(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def forward(self):
            length = int(self.headers.get("content-length") or 0)
            body = changed(self.rfile.read(length)) if length else None
            skipped = ("content-length", "connection", "authorization", "accept-encoding")
            headers = {name: value for name, value in self.headers.items()
                       if name.lower() not in skipped}
            headers["Authorization"] = f"Bearer {key}"
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
            connection.request(self.command, self.path, body, headers)
            reply = connection.getresponse()
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                if name.lower() not in ("transfer-encoding", "connection"):
                    self.send_header(name, value)
            self.end_headers()
            try:
                while chunk := reply.read1():
                    self.wfile.write(chunk)
                    self.wfile.flush()
            except OSError:
                pass

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
    program = pathlib.Path(arguments.program).resolve()
    with tempfile.TemporaryDirectory(prefix="jurat-tck-") as name:
        folder = pathlib.Path(name)
        jurat = [str(program), "--state-dir", str(folder / "state")]
        server = Process([*jurat, "serve", "--listen", "127.0.0.1:0"], folder)
        modes = {"alpha": "honest", "hanging": "hang"}
        executors = {
            executor: Process(
                [*jurat, "runtime", "--listen", "127.0.0.1:0", "--engine", "echo", "--mode", mode,
                 "--provider-family", executor, "--task-types", "hang" if mode == "hang" else "*"],
                folder)
            for executor, mode in modes.items()
        }
        try:
            server.listening()
            key = (folder / "state" / "admin.key").read_text().strip()
            for executor, process in executors.items():
                body = {"name": executor, "url": process.listening().url}
                post(f"{server.url}/v1/executors", key, body)
            command = [sys.executable, "run_tck.py", "--sut-host", proxy(server.url, key),
                       "--transport", "jsonrpc,http_json"]
            if arguments.level:
                command += ["--level", arguments.level]
            ended = subprocess.run(command, cwd=arguments.kit, check=False)
        finally:
            for process in [server, *executors.values()]:
                process.stop()
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
