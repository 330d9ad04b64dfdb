"""A server with executors that multiply, and what the check asks them."""

import pathlib
import sys

from program import Process, get, post

HERE = pathlib.Path(__file__).resolve().parent
QUESTION, ANSWER, LIE = "What is 12 * 12?", "12 * 12 = 144", "12 * 12 = 154"
HONEST = ["alpha", "beta", "gamma"]
# The labels of sessions: clients take only numbers.
AGREEING, DISAGREEING, UNKNOWN = 35, 92, 36
MINERS = {AGREEING: ["alpha-35", "beta-35", "gamma-35"], DISAGREEING: ["alpha-92", "beta-92", "liar"]}
HONEST_MINERS = [*HONEST, *MINERS[AGREEING], "alpha-92", "beta-92"]
# Programs on the same machine that send no key may use this account.
CONFIG = """
[auth]
loopback_account = "acct_admin"
"""


class World:
    """A server with four executors, one of which lies."""

    def __init__(self, program, folder):
        self.folder = folder
        (folder / "state").mkdir(mode=0o700)
        (folder / "state" / "jurat.toml").write_text(CONFIG)
        command = [str(program), "--state-dir", str(folder / "state"), "serve"]
        self.server = Process([*command, "--listen", "127.0.0.1:0"], folder)
        answer = [sys.executable, str(HERE / "answer.py")]
        arguments = dict.fromkeys(HONEST, []) | {"liar": ["lie"]}
        self.executors = {
            name: Process(
                [str(program), "--state-dir", str(folder / name), "runtime", "--engine", "command",
                 "--listen", "127.0.0.1:0", "--provider-family", name, "--model-id", f"{name}-1",
                 "--", *answer, *more], folder)
            for name, more in arguments.items()
        }

    def start(self):
        self.url = self.server.listening().url
        self.key = (self.folder / "state" / "admin.key").read_text().strip()
        for name, process in self.executors.items():
            body = {"name": name, "url": process.listening().url}
            if name == "liar":
                # Only a request that names the label asks it, because the others are more reliable.
                body["session"] = {"id": name, "labels": [str(DISAGREEING)], "reliability": 0.5}
            post(f"{self.url}/v1/executors", self.key, body)
        for label, sessions in MINERS.items():
            for session in sessions:
                executor = session.split("-")[0]
                if session != executor:
                    body = {"id": session, "executor": executor, "labels": [str(label)]}
                    post(f"{self.url}/v1/sessions", self.key, body)

    def round(self, round_id):
        return get(f"{self.url}/v1/rounds/{round_id}", self.key)

    def rounds(self):
        listed = get(f"{self.url}/v1/rounds?limit=100", self.key)["items"]
        return {item["round_id"] for item in listed}

    def stop(self):
        for process in [self.server, *self.executors.values()]:
            process.stop()


def was_asked(found, sessions, text=ANSWER):
    """Asserts that a round of the store is the one that a user has seen."""
    assert found["kind"] == "delegate" and found["state"] == "closed", found
    assert QUESTION in found["request"]["objective"], found
    assert set(found["sessions"]) <= set(sessions), found
    assert found["output"] == {"answer": text}, found
