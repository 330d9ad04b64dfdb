"""Runs scenarios of the official suite of the Model Context Protocol against a server.

The suite has no keys, so its requests go through a door that adds one and passes on all else as it
is. What is expected to fail is listed with its reason; anything else that fails, and anything listed
that does not fail any more, ends the run with an error.
"""

import argparse
import http.client
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import urllib.parse

from program import PATIENCE, Process

SCENARIOS = {
    "2025-11-25": ["server-initialize", "ping", "tools-list", "server-sse-multiple-streams",
                   "dns-rebinding-protection", "server-session-lifecycle", "resources-list",
                   "prompts-list"],
    "2026-07-28": ["server-stateless", "tools-list", "server-sse-multiple-streams", "caching",
                   "http-header-validation", "dns-rebinding-protection", "resources-list",
                   "prompts-list", "sep-2164-resource-not-found"],
}
FIXTURE = "it calls a tool by a name that only a server made for the suite has"
EXPECTED = {
    "sep-2575-server-rejects-undeclared-capability": FIXTURE,
    "sep-2575-missing-capability-http-400": FIXTURE,
    "sep-2575-http-server-no-independent-requests-on-stream": FIXTURE,
    "sep-2575-server-no-log-without-loglevel": FIXTURE,
}


def door(url, key):
    """A server that hands requests on with the key."""
    target = urllib.parse.urlsplit(url)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(target.hostname, target.port, timeout=PATIENCE)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.putheader("Authorization", f"Bearer {key}")
            connection.endheaders(body)
            reply = connection.getresponse()
            content = reply.read()
            connection.close()
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


def failures(suite, url, revision, scenario, folder):
    """What failed in a scenario, and how many checks passed."""
    out = folder / revision / scenario
    command = ["node", suite, "server", "--url", f"{url}/mcp", "--scenario", scenario,
               "--spec-version", revision, "-o", str(out)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    files = list(out.rglob("checks.json"))
    if not files:
        raise SystemExit(f"{scenario} left no result:\n{ran.stdout}{ran.stderr}")
    checks = [check for file in files for check in json.loads(file.read_text())]
    failed = {check["id"]: check.get("errorMessage", "") for check in checks
              if check["status"] == "FAILURE"}
    return failed, sum(check["status"] == "SUCCESS" for check in checks)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--suite", required=True, help="the script of the suite")
    options = parser.parse_args()
    program = pathlib.Path(options.program).resolve()
    failed, passed = {}, 0
    with tempfile.TemporaryDirectory(prefix="jurat-mcp-") as name:
        folder = pathlib.Path(name)
        jurat = [str(program), "--state-dir", str(folder / "state")]
        server = Process([*jurat, "serve", "--listen", "127.0.0.1:0"], folder).listening()
        try:
            key = (folder / "state" / "admin.key").read_text().strip()
            url = door(server.url, key)
            for revision, scenarios in SCENARIOS.items():
                for scenario in scenarios:
                    found, count = failures(options.suite, url, revision, scenario, folder)
                    failed |= found
                    passed += count
                    print(f"{revision} {scenario}: {count} passed, {len(found)} failed", flush=True)
        finally:
            server.stop()
    for check in sorted(failed.keys() - EXPECTED.keys()):
        print(f"failed: {check}: {failed[check]}", file=sys.stderr)
    for check in sorted(EXPECTED.keys() - failed.keys()):
        print(f"passes, and is listed as failing: {check}", file=sys.stderr)
    if failed.keys() != EXPECTED.keys():
        raise SystemExit(1)
    print(f"the protocol holds: {passed} checks passed, {len(EXPECTED)} do not apply")


if __name__ == "__main__":
    main()
