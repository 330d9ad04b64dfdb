"""The snippets of the README and of the guide, and the plugin as pytest itself runs it."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import PATIENCE_S, Server
from jurat import Jurat

README = (pathlib.Path(__file__).parent.parent / "README.md").read_text()
ADDER, CLIENT, TEST = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
GUIDE = pathlib.Path(os.environ["JURAT_GUIDE"]).read_text()
GUIDE_CLIENT, GUIDE_TEST = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
FAILING = '''
def test_wrong(assert_verified):
    assert_verified("2 + 2 = 5")


def test_unsure(assert_verified):
    assert_verified("2 + 2 = 4", min_confidence=0.999)


def test_refused(assert_verified):
    assert_verified("2 + 2 = 4", replicas=4)


def test_client(jurat):
    assert jurat.delegate("hello", replicas=3).output == {"answer": "hello"}
'''


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Three copies of the executor of the README, registered at a server."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "adder.py").write_text(ADDER)
    server = Server(folder)
    copies = [
        subprocess.Popen([sys.executable, "adder.py", "0", name], cwd=folder, text=True,
                         stdout=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    try:
        with Jurat(server.url, server.key) as client:
            for name, copy in zip(("one", "two", "three"), copies):
                url = copy.stdout.readline().split("listening on ")[1].strip()
                client.executors.add(name, url, must_answer=True)
        yield os.environ | {"JURAT_URL": server.url, "JURAT_API_KEY": server.key}
    finally:
        for copy in copies:
            copy.terminate()
            copy.communicate()
        server.stop()


def run(folder, environment, name, text, *command):
    (folder / name).write_text(text)
    return subprocess.run(
        [sys.executable, *command, name], cwd=folder, env=environment, capture_output=True,
        text=True, timeout=PATIENCE_S)


def test_the_client_of_the_readme(tmp_path, environment):
    done = run(tmp_path, environment, "client.py", CLIENT)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("VALID 1.0 0."), lines
    assert "the verdict is INVALID, not VALID" in lines
    assert any(line.startswith("422 ") and " consensus.replicas " in line for line in lines)
    assert lines[-1] == "final"


def test_the_snippets_of_the_guide(tmp_path, server, environment):
    # The executors know nothing of water.
    text = GUIDE_CLIENT.replace("http://127.0.0.1:5872", server.url).replace("jrt_live_…", server.key)
    text = text.replace("Water boils at 90 °C at sea level.", "2 + 2 = 4")
    done = run(tmp_path, environment, "guide.py", text)
    assert (done.returncode, done.stdout) == (0, "TRUE\n"), done.stderr
    invoice = "def invoice():\n    return 2, 3, 5\n\n\n"
    done = run(tmp_path, environment, "test_guide.py", invoice + GUIDE_TEST,
               "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_the_plugin_passes_and_fails_readably(tmp_path, environment):
    pytest_quietly = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    done = run(tmp_path, environment, "test_sum.py", TEST, *pytest_quietly)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout
    done = run(tmp_path, environment, "test_wrong.py", FAILING, *pytest_quietly)
    assert done.returncode == 1 and "3 failed, 1 passed" in done.stdout, done.stdout
    assert "not verified: '2 + 2 = 5'" in done.stdout
    assert "the verdict is INVALID, not VALID" in done.stdout
    assert "  two says INVALID" in done.stdout
    assert ", below 0.999" in done.stdout
    assert "could not be verified: '2 + 2 = 4'" in done.stdout
    assert "consensus.replicas" in done.stdout
    assert "Traceback" not in done.stdout
