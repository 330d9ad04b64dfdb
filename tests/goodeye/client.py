"""A server of ours, the real Goodeye client, and what the steps of its users have in common."""

import http.server
import json
import os
import re
import subprocess
import threading

PATIENCE = 60

# A port of this machine where nobody listens: the provider of judges that fail.
SETTINGS = """
[providers.dead]
base_url = "http://127.0.0.1:1/v1"

[providers.plain]
kind = "openai"
base_url = "{plain}"

[judges]
default_model = "plain/judge"

[accounts]
registration = "open"
"""

RULE = {"contains": {"field": "response", "text": "source", "ignore_case": True}}
STRICTER = {"all": [RULE, {"length": {"field": "response", "max": 40}}]}


class PlainJudge(http.server.BaseHTTPRequestHandler):
    """A provider whose judge finds every criterion met, but for texts that say FORBIDDEN."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        verdict = "not_met" if "FORBIDDEN" in asked else "met"
        said = {"findings": [], "reasoning": "Read it whole.", "verdict": verdict}
        message = {"role": "assistant", "content": json.dumps(said)}
        body = json.dumps({
            "id": "1", "object": "chat.completion", "model": "judge",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
        }).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def plain_judge():
    """Starts the provider and returns its address."""
    provider = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PlainJudge)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{provider.server_port}/v1"


class Server:
    """A server that says where it listens, with the key that it wrote."""

    def __init__(self, program, folder):
        self.program, self.state = program, folder / "state"
        self.state.mkdir()
        (self.state / "jurat.toml").write_text(SETTINGS.format(plain=plain_judge()))
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "TMPDIR": str(folder),
            "JURAT_STATE_DIR": str(self.state),
        }
        self.child = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0"], env=self.env, cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        self.lines, self.url = [], None
        self.is_listening = threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        if not self.is_listening.wait(PATIENCE):
            raise SystemExit("the server did not say where it listens:\n" + "".join(self.lines))

    def read(self):
        for line in self.child.stderr:
            self.lines.append(line)
            if self.url is None and "listening on " in line:
                self.url = line.split("listening on ")[1].split()[0]
                self.is_listening.set()

    def jurat(self, *args, key=None, given=None):
        """What our own command line does, which starts in no time."""
        env = self.env | ({"JURAT_KEY": key} if key else {})
        done = subprocess.run(
            [self.program, *args], env=env, input=given or "", capture_output=True, text=True,
            timeout=PATIENCE,
        )
        if done.returncode != 0:
            raise SystemExit(f"jurat {' '.join(args)}: {done.stderr}")
        return done.stdout.strip()

    def stop(self):
        self.child.terminate()
        try:
            self.child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.child.kill()


class Client:
    """One version of the real client, as one user with a key runs it."""

    def __init__(self, program, server, key, folder):
        self.program, self.key = program, key
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(folder), "XDG_CONFIG_HOME": str(folder),
            "GOODEYE_SERVER": server, "GOODEYE_API_KEY": key, "CI": "1", "NO_PROXY": "*",
            "COLUMNS": "1000", "NO_COLOR": "1",
        }

    def run(self, *args, code=0, given=None, key=None):
        env = self.env | ({"GOODEYE_API_KEY": key} if key else {})
        done = subprocess.run(
            [self.program, *args], env=env, input=given or "", capture_output=True, text=True,
            timeout=PATIENCE,
        )
        if done.returncode != code:
            raise Failed(f"exit code {done.returncode} instead of {code}", args, done)
        done.args = args
        return done

    def json(self, *args, code=0):
        done = self.run(*args, code=code)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Failed("no JSON", args, done) from None


class Failed(Exception):
    def __init__(self, what, args, done):
        command = " ".join(args)
        super().__init__(f"goodeye {command}: {what}\nout: {done.stdout}\nerr: {done.stderr}")


def expect(is_so, what, done):
    if not is_so:
        raise Failed(what, done.args, done)


def verifier(name, rule=RULE, **more):
    example = {"inputs": {"response": "The source says so."}, "passed": True, "reasoning": "Cited."}
    return {
        "name": name,
        "description": "The response names its source.",
        "criterion": json.dumps(rule),
        "input_contract": "text",
        "input_fields": ["response"],
        "few_shot_examples": [example],
        "model_settings": {"model": "builtin/rules", "reasoning_effort": "medium"},
        **more,
    }


DEPLOYED = re.compile(
    r"^Deployed (\S+) v(\d+) \(verifier_id=([0-9a-f-]{36}), version_token=(\S{1,64})\)$"
)


def deployed(done):
    """The version, the id and the token in the line of a deploy, which stands alone."""
    found = DEPLOYED.match(done.stdout.strip())
    expect(found, "not the line of a deploy", done)
    return int(found[2]), found[3], found[4]


def user(server, name):
    """A key of an account of its own, with some credit."""
    key = server.jurat("keys", "create", name, "--account", f"acct_{name}", "--quiet")
    server.jurat("admin", "grant", f"acct_{name}", "5", "--note", "to try it")
    return key
