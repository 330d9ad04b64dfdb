"""Holds conversations with the official clients of OpenAI's API, unchanged but for URL and key.

The examples of the guide are run as they stand, in Python and in TypeScript. Three executors echo
the question; a fourth lies and a fifth fails, so that a profile of all kinds finds no agreement.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import openai
from pydantic import BaseModel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "mcp"))

from program import PATIENCE, Process, post  # noqa: E402

GUIDE = ROOT / "docs" / "guide" / "openai.md"
URL = "http://127.0.0.1:5872"
QUESTION = "What is 12 * 12?"
HONEST = ["alpha", "beta", "gamma"]
PROFILE = """
[profiles.quarrel]
about = "Nobody agrees"
replicas = 3
spares = 0
session_pool = ["alpha", "liar", "broken"]
"""


def example(language, url):
    """The example of the guide in this language, for this server."""
    found = re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.S)
    assert len(found) == 1, f"the guide has {len(found)} examples in {language}"
    assert URL in found[0], found[0]
    return found[0].replace(URL, url)


def output(command, folder, key):
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "JURAT_KEY": key}
    done = subprocess.run(command, cwd=folder, env=environment, timeout=PATIENCE,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def in_python(url, key, folder):
    file = folder / "example.py"
    file.write_text(example("python", url))
    plain, consensus, streamed, parsed = output([sys.executable, str(file)], folder, key)
    confidence, round_id = consensus.split()
    assert 0.5 < float(confidence) < 1 and round_id.startswith("rnd_"), consensus
    assert (plain, streamed) == (QUESTION, QUESTION), (plain, streamed)
    assert parsed == f"answer='{QUESTION}'", parsed


def in_typescript(url, key, folder, modules):
    # Without its one annotation the example is JavaScript, which every Node runs.
    text = example("ts", url).replace(" as const", "")
    (folder / "example.mjs").write_text(text)
    (folder / "node_modules").symlink_to(modules)
    lines = output(["node", "example.mjs"], folder, key)
    assert lines == [QUESTION, QUESTION, f"{{ answer: '{QUESTION}' }}"], lines


def with_curl(url, key, folder):
    found = re.search(r"```sh\n(curl .*?)```", GUIDE.read_text(), re.S)
    text = "\n".join(output(["sh", "-c", found[1].replace(URL, url)], folder, key))
    assert f'"content":"{QUESTION}"' in text, text


class Product(BaseModel):
    answer: str


def conversations(url, key):
    """What the examples do not show: models, refusals, usage and errors."""
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=PATIENCE)
    models = [model.id for model in client.models.list()]
    assert models == ["jurat/fast", "jurat/oracle", "jurat/quarrel", "jurat/safe"], models
    assert client.models.retrieve("jurat/quarrel").jurat["about"] == "Nobody agrees"
    question = [{"role": "system", "content": "Repeat it."},
                {"role": "user", "content": [{"type": "text", "text": QUESTION}]}]
    refused = client.chat.completions.create(model="jurat/quarrel", messages=question)
    message = refused.choices[0].message
    assert message.content is None and "do not agree" in message.refusal, message
    assert refused.choices[0].finish_reason == "stop", refused
    parsed = client.chat.completions.parse(
        model="jurat/quarrel", messages=question, response_format=Product)
    assert parsed.choices[0].message.parsed is None, parsed
    assert parsed.choices[0].message.refusal, parsed
    best = client.chat.completions.create(
        model="jurat/quarrel", messages=question,
        extra_body={"jurat": {"disagreement_policy": "best_effort"}})
    assert best.choices[0].message.content and best.jurat["confidence"] <= 0.5, best
    stream = client.chat.completions.create(
        model="jurat/safe", messages=question, stream=True,
        stream_options={"include_usage": True})
    chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant", chunks
    assert chunks[-1].usage.total_tokens == 0 and not chunks[-1].choices, chunks
    assert chunks[-2].jurat["status"] == "OK", chunks
    with client.chat.completions.stream(
            model="jurat/safe", messages=question, response_format=Product) as events:
        final = events.get_final_completion()
    assert final.choices[0].message.parsed.answer.endswith(QUESTION), final
    raw = client.chat.completions.with_raw_response.create(model="jurat/safe", messages=question)
    assert raw.headers["x-jurat-round"] == raw.parse().jurat["round_id"]
    errors(client, url, question)


def errors(client, url, question):
    def refused(error, code, **request):
        try:
            client.chat.completions.create(**({"model": "jurat/safe", "messages": question} | request))
        except error as found:
            assert found.code == code, found
        else:
            raise AssertionError(f"{request} was not refused")

    refused(openai.NotFoundError, "not_found", model="gpt-4o")
    refused(openai.UnprocessableEntityError, "not_supported", n=2)
    refused(openai.BadRequestError, "validation_error", messages=[])
    refused(openai.ConflictError, "consensus_disagreement", model="jurat/quarrel",
            extra_body={"jurat": {"disagreement_policy": "fail_hard"}})
    refused(openai.APIError, "consensus_disagreement", model="jurat/quarrel",
            extra_body={"jurat": {"disagreement_policy": "fail_hard"}})
    try:
        openai.OpenAI(base_url=f"{url}/v1", api_key="jrt_live_wrong", max_retries=0).models.list()
    except openai.AuthenticationError as found:
        assert found.code == "auth_required", found
    else:
        raise AssertionError("a wrong key was let in")


def check(url, key, folder, modules):
    """Returns which clients were tried."""
    for name, run in [("curl", with_curl), ("python", in_python)]:
        (folder / name).mkdir()
        run(url, key, folder / name)
    conversations(url, key)
    if modules is None:
        print("skipped: the client in TypeScript needs npm, and there is none")
        return ["curl", "Python"]
    (folder / "node").mkdir()
    in_typescript(url, key, folder / "node", modules)
    return ["curl", "Python", "TypeScript"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--modules", type=pathlib.Path, help="the folder with the packages of npm")
    given = parser.parse_args()
    program = pathlib.Path(given.program).resolve()
    with tempfile.TemporaryDirectory(prefix="jurat-openai-") as name:
        folder = pathlib.Path(name)
        (folder / "state").mkdir(mode=0o700)
        (folder / "state" / "jurat.toml").write_text(PROFILE)
        jurat = [str(program), "--state-dir", str(folder / "state")]
        server = Process([*jurat, "serve", "--listen", "127.0.0.1:0"], folder)
        modes = dict.fromkeys(HONEST, "honest") | {"liar": "lie", "broken": "fail"}
        executors = {
            executor: Process(
                [str(program), "--state-dir", str(folder / executor), "runtime",
                 "--listen", "127.0.0.1:0", "--engine", "echo", "--mode", mode,
                 "--provider-family", executor, "--model-id", "small"], folder)
            for executor, mode in modes.items()
        }
        try:
            server.listening()
            key = (folder / "state" / "admin.key").read_text().strip()
            for executor, process in executors.items():
                body = {"name": executor, "url": process.listening().url}
                if executor not in HONEST:
                    # Only the profile that names them asks these.
                    body["session"] = {"id": executor, "tier": "fast"}
                post(f"{server.url}/v1/executors", key, body)
            tried = check(server.url, key, folder, given.modules)
        except BaseException:
            sys.stderr.write(server.log())
            raise
        finally:
            for process in [server, *executors.values()]:
                process.stop()
    print(f"the clients hold: {', '.join(tried)}")


if __name__ == "__main__":
    main()
