"""Processes of the program, each in a folder of its own."""

import contextlib
import json
import pathlib
import subprocess
import sys
import threading
import urllib.request

PATIENCE = 60
ERRORS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "errors"
# What a tool may answer with; a defect is none of it.
CODES = {page.stem for page in ERRORS.glob("*.md")} - {"internal_error"}


class Process:
    """A process of the program that says where it listens."""

    def __init__(self, command, folder):
        self.child = subprocess.Popen(
            command, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.lines = []
        self.url = None
        self.is_listening = threading.Event()
        # Reads to the end, so that the process never waits for somebody to read.
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stderr:
            self.lines.append(line)
            if self.url is None and "listening on " in line:
                self.url = line.split("listening on ")[1].split()[0]
                self.is_listening.set()

    def listening(self):
        if not self.is_listening.wait(PATIENCE):
            raise SystemExit(f"the program did not say where it listens:\n{self.log()}")
        return self

    def log(self):
        return "".join(self.lines[-40:])

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()


EXECUTORS = ["alpha", "beta", "gamma"]


@contextlib.contextmanager
def serving(program, folder):
    """A server with three executors; gives its process and the key of its admin."""
    jurat = [str(program), "--state-dir", str(folder / "state")]
    server = Process([*jurat, "serve", "--listen", "127.0.0.1:0"], folder)
    executors = {
        executor: Process(
            [*jurat, "runtime", "--listen", "127.0.0.1:0", "--engine", "echo",
             "--provider-family", executor, "--model-id", "small"], folder)
        for executor in EXECUTORS
    }
    try:
        server.listening()
        key = (folder / "state" / "admin.key").read_text().strip()
        for executor, process in executors.items():
            body = {"name": executor, "url": process.listening().url}
            post(f"{server.url}/v1/executors", key, body)
        yield server, key
    except BaseException:
        sys.stderr.write(server.log())
        raise
    finally:
        for process in [server, *executors.values()]:
            process.stop()


def environment(folder):
    """Nothing of the caller's settings; a build for tests is late on any machine."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TMPDIR": str(folder),
            "JURAT_LIMITS_LAG_MS": "0"}


def post(url, key, body):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.load(reply)


def get(url, key):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.load(reply)
