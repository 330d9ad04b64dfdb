"""Verifies real deliveries of a server with the reference libraries of Standard Webhooks.

The server sends to a receiver in this process: a test, a decided round, and a test after the secret
was rotated. The Python library verifies every delivery, with each secret that signs it, and refuses a
changed body and another secret. With --node, the JavaScript library does the same.
"""

import argparse
import http.server
import json
import pathlib
import queue
import subprocess
import sys
import tempfile
import threading

from standardwebhooks import Webhook, WebhookVerificationError

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mcp"))
from program import PATIENCE, Process, environment, post  # noqa: E402

JS = """
const { Webhook } = require("standardwebhooks");
const [secret, body, headers] = JSON.parse(process.argv[1]);
new Webhook(secret).verify(body, headers);
"""
OTHER = "whsec_b3RoZXIgc2VjcmV0IHRoYXQgc2lnbmVkIG5vdGhpbmc="


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what arrives, and answers 204."""

    arrived = queue.Queue()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.arrived.put((body.decode(), {key.lower(): it for key, it in self.headers.items()}))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def verify(node, secret, body, headers):
    """Whether the libraries take the delivery; they must agree."""
    try:
        Webhook(secret).verify(body, headers)
        is_valid = True
    except WebhookVerificationError:
        is_valid = False
    if node is not None:
        wanted = {key: it for key, it in headers.items() if key.startswith("webhook-")}
        done = subprocess.run(
            ["node", "-e", JS, json.dumps([secret, body, wanted])],
            env=environment(node) | {"NODE_PATH": str(pathlib.Path(node) / "node_modules")},
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )
        assert (done.returncode == 0) == is_valid, done.stderr
    return is_valid


def arrived(node, secrets, event_type):
    body, headers = Receiver.arrived.get(timeout=PATIENCE)
    assert json.loads(body)["type"] == event_type, body
    for secret in secrets:
        assert verify(node, secret, body, headers), (event_type, headers)
    assert not verify(node, secrets[0], body + " ", headers), "a changed body is taken"
    assert not verify(node, OTHER, body, headers), "another secret is taken"
    return json.loads(body)


def check(program, folder, node):
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    jurat = [program, "--state-dir", str(folder / "state")]
    near = ["env", "JURAT_WEBHOOKS_ALLOW=127.0.0.0/8"]
    server = Process([*near, *jurat, "serve", "--listen", "127.0.0.1:0"], folder)
    runtime = Process([*jurat, "runtime", "--listen", "127.0.0.1:0", "--engine", "echo"], folder)
    try:
        server.listening()
        runtime.listening()
        key = (folder / "state" / "admin.key").read_text().strip()
        call = lambda path, body: post(f"{server.url}{path}", key, body)  # noqa: E731
        url = f"http://127.0.0.1:{receiver.server_port}/hook"
        webhook = call("/v1/webhooks", {"url": url})
        path, secret = f"/v1/webhooks/{webhook['id']}", webhook["secret"]
        call(f"{path}/test", {})
        arrived(node, [secret], "webhook.test")
        call("/v1/executors", {"name": "echo", "url": runtime.url})
        reply = call("/api/v3/delegate", {"objective": "say it"})
        event = arrived(node, [secret], "round.decided")
        assert event["data"]["round_id"] == reply["round_id"], event
        newer = call(f"{path}/rotate", {})["secret"]
        call(f"{path}/test", {})
        arrived(node, [newer, secret], "webhook.test")
        print("webhooks: three deliveries verified" + (" in two languages" if node else ""))
    except BaseException:
        print(server.log(), file=sys.stderr)
        raise
    finally:
        for process in (server, runtime):
            process.stop()
        receiver.shutdown()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--node", help="a folder whose node_modules has the JavaScript library")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check(str(pathlib.Path(args.program).resolve()), pathlib.Path(folder), args.node)


if __name__ == "__main__":
    main()
