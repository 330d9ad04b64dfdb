"""A front of a server that is busy, breaks connections, or passes requests on, as it is told."""

import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEPT = ("authorization", "content-type", "idempotency-key", "accept", "prefer")
BUSY = b'{"code": "overloaded", "status": 503, "detail": "busy", "hint": "try again"}'


class Front:
    """Does one of `actions` for each request: `pass`, `busy`, `break` after the work, or `cut`."""

    def __init__(self, url, actions):
        self.keys = []
        front, left = self, list(actions)

        class Handler(BaseHTTPRequestHandler):
            def handle_any(self):
                front.keys.append(self.headers.get("Idempotency-Key"))
                action = left.pop(0)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if action.startswith("busy"):
                    wait = "86400" if action.endswith("tomorrow") else "0"
                    self.reply(503, {"Retry-After": wait}, BUSY)
                    return
                headers = {name: it for name, it in self.headers.items() if name.lower() in KEPT}
                request = urllib.request.Request(
                    url + self.path, body or None, headers, method=self.command)
                try:
                    with urllib.request.urlopen(request, timeout=60) as reply:
                        status, kind, data = reply.status, reply.headers["Content-Type"], reply.read()
                except urllib.error.HTTPError as error:
                    status, kind, data = error.code, error.headers["Content-Type"], error.read()
                if action == "break":
                    self.connection.close()
                elif action == "cut":
                    # The first event, and less than what was promised.
                    head = data[: data.index(b"\n\n") + 2]
                    self.reply(status, {"Content-Type": kind}, head, len(data))
                else:
                    self.reply(status, {"Content-Type": kind}, data)

            do_GET = do_POST = handle_any

            def reply(self, status, headers, data, length=None):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(length or len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
