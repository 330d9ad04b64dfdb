"""A real server, and executors that are made with the package itself."""

import os
import pathlib
import re
import subprocess
import threading
from contextlib import ExitStack

import pytest

from jurat import AsyncJurat, Jurat, executor

PATIENCE_S = 60
PROGRAM = os.environ["JURAT_PROGRAM"]


class Server:
    """A process of `jurat serve` with a state folder of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.state = folder / "state"
        command = [PROGRAM, "--state-dir", str(self.state), "serve", "--listen", "127.0.0.1:0"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "JURAT_LIMITS_LAG_MS": "0"}
        self.child = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.url = ""
        self.is_listening = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        assert self.is_listening.wait(PATIENCE_S), "".join(self.lines[-40:])
        self.key = (self.state / "admin.key").read_text().strip()

    def read(self) -> None:
        assert self.child.stderr is not None
        for line in self.child.stderr:
            self.lines.append(line)
            if not self.url and "listening on " in line:
                self.url = line.split("listening on ")[1].split()[0]
                self.is_listening.set()

    def stop(self) -> None:
        self.child.terminate()
        self.child.wait(PATIENCE_S)

    def node_key(self) -> str:
        command = [PROGRAM, "--state-dir", str(self.state), "node", "--json"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        match = re.search(r'"public_key":\s*"([0-9a-f]{64})"', printed)
        assert match is not None, printed
        return match[1]


def additions(claim: object) -> bool | None:
    match = re.fullmatch(r"(\d+) \+ (\d+) = (\d+)", str(claim))
    return int(match[1]) + int(match[2]) == int(match[3]) if match else None


def honest(name: str, **options):
    @executor(task_types=["delegate", "factcheck", "echo"], provider_family=name, **options)
    def answer(job):
        if job.task_type == "factcheck":
            verdict = {True: "TRUE", False: "FALSE", None: "UNSURE"}
            return {"verdict": verdict[additions(job.inputs["claim"])], "confidence": 0.9}
        return {"answer": job.inputs["prompt"]}

    answer.judge(lambda candidate: additions(candidate.output))
    return answer


def liar():
    made = honest("liar")
    made.judge(lambda candidate: not additions(candidate.output))
    return made


def hanging(until: threading.Event):
    @executor(task_types=["delegate"], provider_family="hanging")
    def answer(job):
        until.wait(PATIENCE_S)
        return {"answer": "late"}

    @answer.judge
    def judge(candidate):
        until.wait(PATIENCE_S)
        return True

    return answer


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("server"))
    is_over = threading.Event()
    with ExitStack() as stack, Jurat(started.url, started.key) as client:
        stack.callback(started.stop)
        stack.callback(is_over.set)
        executors = {name: honest(name) for name in ("one", "two", "three")}
        executors["liar"] = liar()
        for number in (1, 2, 3):
            executors[f"hanging-{number}"] = hanging(is_over)
        for name, made in executors.items():
            client.executors.add(name, stack.enter_context(made.running()), must_answer=True)
        yield started


@pytest.fixture
def client(server):
    with Jurat(server.url, server.key) as made:
        yield made


@pytest.fixture
def async_client(server):
    return AsyncJurat(server.url, server.key)


def pool(*sessions: str):
    return {"replicas": len(sessions), "session_pool": list(sessions), "spares": 0}


HONEST = pool("one", "two", "three")
ONE_LIES = pool("one", "liar", "two")
HANGING = pool("hanging-1", "hanging-2", "hanging-3")
