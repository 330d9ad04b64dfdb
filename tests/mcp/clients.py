"""Tries the tools of a server with the clients and agent frameworks that people use.

- The Inspector lints the schemas of all tools and of a set, and has a claim judged.
- FastMCP and both TypeScript SDKs list the tools, have a claim judged, and read the round.
- PydanticAI's TestModel calls every tool with arguments that it makes of the schemas.
- The adapter of LangChain calls every tool with arguments that make sense.

Each of them does so over HTTP and over standard input and output where it can, and in both eras of
the protocol where it knows both. The server has three executors. A client that fails does not keep
the others from being tried.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from program import environment, serving

HERE = pathlib.Path(__file__).resolve().parent
ERAS = {"legacy": "2025-11-25", "modern": "2026-07-28"}
CLAIM = {"claim": "12 * 12 = 144", "consensus": {"replicas": 3}}
# A build for tests takes its time for a hundred tools.
SECONDS = 600


def connections(program, folder, server, key):
    """How to reach the server, as a file that lists servers has it."""
    http = {"type": "http", "url": f"{server.url}/mcp", "headers": {"Authorization": f"Bearer {key}"}}
    stdio = {"type": "stdio", "command": str(program), "cwd": str(folder),
             "args": ["--state-dir", str(folder / "state"), "mcp"], "env": environment(folder)}
    return {"http": http, "stdio": stdio}


def run(command, folder, **extra):
    """Runs a client and returns what it prints; its log is part of what fails."""
    ran = subprocess.run([str(part) for part in command], cwd=folder, stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=SECONDS, **extra)
    if ran.returncode != 0:
        raise AssertionError(f"exit status {ran.returncode}:\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}")
    return ran.stdout


def narrowed(reach):
    """The same two ways to the set of consensus alone."""
    http, stdio = reach["http"], reach["stdio"]
    return {
        "http-consensus": http | {"url": f"{http['url']}?tools=consensus"},
        "stdio-consensus": stdio | {"env": stdio["env"] | {"JURAT_MCP_TOOLS": "consensus"}},
    }


def inspector(reach, folder, options):
    config = folder / "inspector.json"
    config.write_text(json.dumps({"mcpServers": reach | narrowed(reach)}))
    # It keeps files of its own at home, and would keep secrets with the system.
    env = environment(folder) | {"MCP_INSPECTOR_SECRET_STORE": "memory"}

    def ask(server, era, method, *arguments):
        script = options.modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        command = [options.node, script, "--cli", "--config", config, "--server", server,
                   "--protocol-era", era, "--method", method, "--format", "json", *arguments]
        return json.loads(run(command, folder, env=env))

    sizes, warnings = {}, {}
    for server in reach | narrowed(reach):
        for era, revision in ERAS.items():
            spoken = ask(server, era, "initialize")["result"]["protocolVersion"]
            assert spoken == revision, (server, era, spoken)
            listed = ask(server, era, "tools/list", "--strict")
            names = {tool["name"] for tool in listed["result"]["tools"]}
            is_set = server.endswith("-consensus")
            assert "validate" in names and is_set != ("save_skill" in names), names
            assert sizes.setdefault(is_set, names) == names, (server, era, sizes[is_set] ^ names)
            warnings[is_set] = sum(len(it["findings"]) for it in listed["schemaFindings"])
            called = ask(server, era, "tools/call", "--tool-name", "validate",
                         "--tool-args-json", json.dumps(CLAIM))["result"]
            body = called["structuredContent"]
            assert body["verdict"] == "VALID" and body["consensus"]["answered"] == 3, body
    return (f"{len(sizes[False])} tools and a set of {len(sizes[True])} without a schema error, "
            f"{warnings[False]} warnings")


def in_python(script, python):
    def client(reach, folder, options):
        command = [getattr(options, python), HERE / script, json.dumps(reach)]
        return run(command, folder, env=environment(folder)).splitlines()[-1]
    return client


def typescript(reach, folder, options):
    # Node looks for packages beside the script.
    beside = folder / "typescript"
    beside.mkdir()
    (beside / "node_modules").symlink_to(options.modules)
    script = shutil.copy(HERE / "client_typescript.mjs", beside)
    command = [options.node, script, json.dumps(reach)]
    return run(command, folder, env=environment(folder)).splitlines()[-1]


CLIENTS = {
    "Inspector": inspector,
    "FastMCP": in_python("client_fastmcp.py", "python"),
    "TypeScript SDKs": typescript,
    "PydanticAI": in_python("client_pydantic.py", "python"),
    "LangChain": in_python("client_langchain.py", "adapter"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--only", choices=CLIENTS, action="append", help="one client, or several")
    parser.add_argument("--python", required=True, help="Python with FastMCP and PydanticAI")
    parser.add_argument("--adapter", required=True, help="Python with the adapter of LangChain")
    parser.add_argument("--modules", type=pathlib.Path, required=True, help="where the npm packages are")
    parser.add_argument("--node", default=shutil.which("node"), help="Node 22.19 or newer")
    options = parser.parse_args()
    program = pathlib.Path(options.program).resolve()
    told, failed = [], []
    with tempfile.TemporaryDirectory(prefix="jurat-mcp-") as name:
        folder = pathlib.Path(name)
        with serving(program, folder) as (server, key):
            reach = connections(program, folder, server, key)
            for client in options.only or CLIENTS:
                try:
                    told.append(f"{client}: {CLIENTS[client](reach, folder, options)}")
                    print(told[-1], flush=True)
                except Exception as error:  # One client says nothing about the next.
                    failed.append(client)
                    print(f"{client}: {error}", file=sys.stderr, flush=True)
            if server.child.poll() is not None:
                failed.append("the server ended")
    if failed:
        print(f"failed: {', '.join(failed)}; " + "; ".join(told))
        sys.exit(1)
    print("the clients hold: " + "; ".join(told))


if __name__ == "__main__":
    main()
