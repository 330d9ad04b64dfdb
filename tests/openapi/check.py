"""Starts a server with three executors and tries its OpenAPI document from outside.

1. openapi-spec-validator reads the document, and Redocly lints it; with --spectral Spectral does too.
2. openapi-python-client makes a client of it, and client.py runs rounds with that client.
3. openapi-typescript makes types of it, and client.ts runs a round with them.
4. Schemathesis sends requests made from it, good and bad ones, and checks the replies.

Everything happens in a folder of its own, so that requests that remove things harm nobody.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TOOLS = pathlib.Path(sys.executable).parent
PATIENCE = 60


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
        if not self.is_listening.wait(PATIENCE):
            raise SystemExit(f"{command} did not say where it listens:\n{self.log()}")

    def read(self):
        for line in self.child.stderr:
            self.lines.append(line)
            if self.url is None and "listening on " in line:
                self.url = line.split("listening on ")[1].split()[0]
                self.is_listening.set()

    def log(self):
        return "".join(self.lines[-40:])

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()


def environment(folder):
    """Nothing of the caller's settings, and a place for files that go away."""
    path = f"{TOOLS}:{os.environ['PATH']}"
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    return {"PATH": path, "HOME": str(folder), "TMPDIR": str(folder), **quiet}


def run(command, folder):
    """Runs a tool, shows and returns what it prints, and ends the check when it fails."""
    command = [str(part) for part in command]
    tool = subprocess.Popen(command, cwd=folder, env=environment(folder), text=True,
                            stdout=subprocess.PIPE)
    printed = []
    for line in tool.stdout:
        print(line, end="", flush=True)
        printed.append(line)
    if tool.wait() != 0:
        # The rest of the command has the key.
        raise SystemExit(f"failed: {command[0]}")
    return "".join(printed)


def post(url, key, body):
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
        return json.load(reply)


def generated_client(url, key, folder):
    """A client in Python that is made of the document, and rounds that are run with it."""
    document = folder / "openapi.json"
    client = folder / "client"
    run([TOOLS / "openapi-python-client", "generate", "--path", document, "--output-path", client,
         "--config", HERE / "client.yml", "--fail-on-warning"], folder)
    command = [sys.executable, str(HERE / "client.py"), url, key]
    settings = environment(folder) | {"PYTHONPATH": str(client)}
    if subprocess.run(command, cwd=folder, env=settings).returncode != 0:
        raise SystemExit("the generated client failed")


def lint(folder, options):
    """What linters have to say; redocly.yaml and spectral.yaml give the rules."""
    document = folder / "openapi.json"
    package = options.npm / "node_modules"
    run([options.node, package / "@redocly/cli/bin/cli.js", "lint", document,
         "--config", HERE / "redocly.yaml", "--format", "stylish"], folder)
    if options.spectral:
        run([options.node, package / "@stoplight/spectral-cli/dist/index.js", "lint", document,
             "--ruleset", HERE / "spectral.yaml", "--fail-severity", "hint"], folder)


def typescript_client(url, key, folder, options):
    """Types in TypeScript that are made of the document, and a round that is run with them."""
    # Node and the compiler look for packages beside the program.
    client = folder / "typescript"
    client.mkdir()
    (client / "node_modules").symlink_to(options.npm / "node_modules")
    (client / "package.json").write_text('{"type": "module"}')
    for name in ["client.ts", "tsconfig.json"]:
        shutil.copy(HERE / name, client)
    package = client / "node_modules"
    run([options.node, package / "openapi-typescript/bin/cli.js", folder / "openapi.json",
         "--output", client / "schema.ts"], client)
    run([options.node, package / "typescript/bin/tsc", "--project", client], client)
    run([options.node, client / "client.ts", url, key], client)


def fuzz(url, key, folder, options):
    """Requests that Schemathesis makes of the document; schemathesis.toml says what is checked.

    Returns how many there were, and of how many operations.
    """
    # It looks for the hooks where it runs, and leaves files of its own there.
    shutil.copy(HERE / "hooks.py", folder)
    command = [
        TOOLS / "st", "--config-file", HERE / "schemathesis.toml", "run", f"{url}/openapi.json",
        "--header", f"Authorization: Bearer {key}", "--seed", str(options.seed),
        "--max-examples", str(options.examples), "--workers", "1", "--request-timeout", "30",
    ]
    if options.seconds:
        command += ["--max-time", str(options.seconds)]
    told = run(command, folder)
    return [int(re.search(said, told)[1]) for said in (r"(\d+) generated", r"Tested: +(\d+)")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--examples", type=int, default=10, help="requests per operation and phase")
    parser.add_argument("--seconds", type=int, help="how long Schemathesis may take")
    parser.add_argument("--seed", type=int, default=1, help="of Schemathesis")
    parser.add_argument("--npm", type=pathlib.Path, required=True, help="where the npm packages are")
    parser.add_argument("--node", default="node", help="Node 24 or newer")
    parser.add_argument("--spectral", action="store_true", help="also lint with Spectral, which is slow")
    options = parser.parse_args()
    program = pathlib.Path(options.program).resolve()

    with tempfile.TemporaryDirectory(prefix="jurat-api-") as name:
        folder = pathlib.Path(name)
        processes = []
        try:
            jurat = [str(program), "--state-dir", str(folder / "state")]
            server = Process([*jurat, "serve", "--listen", "127.0.0.1:0"], folder)
            processes.append(server)
            key = (folder / "state" / "admin.key").read_text().strip()
            for executor in ["alpha", "beta", "gamma"]:
                model = ["--provider-family", executor, "--model-id", "small"]
                listen = ["runtime", "--listen", "127.0.0.1:0", "--engine", "echo"]
                process = Process([*jurat, *listen, *model], folder)
                processes.append(process)
                post(f"{server.url}/v1/executors", key, {"name": executor, "url": process.url})
            with urllib.request.urlopen(f"{server.url}/openapi.json", timeout=PATIENCE) as reply:
                (folder / "openapi.json").write_bytes(reply.read())
            run([sys.executable, "-m", "openapi_spec_validator", folder / "openapi.json"], folder)
            lint(folder, options)
            generated_client(server.url, key, folder)
            typescript_client(server.url, key, folder, options)
            requests, operations = fuzz(server.url, key, folder, options)
            if server.child.poll() is not None:
                raise SystemExit(f"the server ended:\n{server.log()}")
        except SystemExit:
            sys.stderr.write("".join(processes[0].log()) if processes else "")
            raise
        finally:
            for process in reversed(processes):
                process.stop()
    print(f"the document holds: {requests} generated requests to {operations} operations")


if __name__ == "__main__":
    main()
