"""The program as a server of the Agent2Agent protocol, with executors of its own.

Three executors answer at once, one never does, and one takes its time. The last two take only requests
of a task type of their own.
"""

import contextlib
import json
import pathlib
import sys
import tempfile

from program import Process, post

# How long the slow executor takes.
SLOW_S = 3
SLOW = f"""import json, time
time.sleep({SLOW_S})
print(json.dumps({{"candidate_output": {{"answer": "at last", "confidence": 0.9}}}}))"""
EXECUTORS = {
    name: ["--engine", "echo", "--mode", "honest", "--task-types", "*"]
    for name in ["alpha", "beta", "gamma"]
} | {
    "hanging": ["--engine", "echo", "--mode", "hang", "--task-types", "hang"],
    "slow": ["--engine", "command", "--task-types", "slow", "--", sys.executable, "-c", SLOW],
}
VERIFIER = {
    "name": "sourced", "description": "The answer names its source.",
    "criterion": json.dumps({"contains": {"field": "answer", "text": "Source:"}}),
    "input_contract": "text", "input_fields": ["answer"],
    "model_settings": {"model": "builtin/rules"},
}


@contextlib.contextmanager
def world(program):
    """The URL of the server, and the key of its operator. Receivers of news may be on this machine."""
    with tempfile.TemporaryDirectory(prefix="jurat-a2a-") as name:
        folder = pathlib.Path(name)
        jurat = [str(pathlib.Path(program).resolve()), "--state-dir", str(folder / "state")]
        near = ["env", "JURAT_WEBHOOKS_ALLOW=127.0.0.0/8"]
        server = Process([*near, *jurat, "serve", "--listen", "127.0.0.1:0"], folder)
        executors = {
            executor: Process(
                [*jurat, "runtime", "--listen", "127.0.0.1:0", "--provider-family", executor,
                 "--model-id", "small", *options], folder)
            for executor, options in EXECUTORS.items()
        }
        try:
            server.listening()
            key = (folder / "state" / "admin.key").read_text().strip()
            for executor, process in executors.items():
                body = {"name": executor, "url": process.listening().url}
                post(f"{server.url}/v1/executors", key, body)
            post(f"{server.url}/v1/verifiers", key, VERIFIER)
            yield server.url, key
        except BaseException:
            sys.stderr.write(server.log())
            raise
        finally:
            for process in [server, *executors.values()]:
                process.stop()
