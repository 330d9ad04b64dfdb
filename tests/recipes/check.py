"""Runs the recipes of the guide as they are written, with a scripted model in place of a real one.

Every recipe gets a true claim and a false one. Afterwards the server must have a round with three
replicas for each, and the agent must have named the verdict of that round and acted on it. One of the
three executors lies, so that the verdict is that of the majority and of no single replica.
"""

import argparse
import importlib.metadata
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import xml.etree.ElementTree

import yaml

import model
from program import PATIENCE, Process, environment, get

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "recipes.md"
URL = "http://127.0.0.1:5872"
TRUE, FALSE = "12 * 12 = 144", "12 * 12 = 154"
VERDICTS = {TRUE: "VALID", FALSE: "INVALID"}


def read_guide():
    """The blocks of each section, as pairs of language and text."""
    sections = re.split(r"^## (.*)\n", GUIDE.read_text(), flags=re.M)[1:]
    block = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
    return {name: block.findall(text) for name, text in zip(sections[::2], sections[1::2])}


class World:
    """A server with its executors and a model, all of them started as the guide says."""

    def __init__(self, program, folder, scripted):
        self.sections = read_guide()
        self.folder = folder
        self.model = scripted
        self.seen = set()
        (folder / "bin").mkdir()
        (folder / "bin" / "jurat").symlink_to(program)
        self.addresses = {}
        self.processes = []
        self.key = None

    def start(self):
        for line in self.blocks("Before you start", "sh")[0].splitlines():
            name, *arguments = shlex.split(line.removesuffix("&"))
            assert name == "jurat", line
            address = URL
            if "--listen" in arguments:
                at = arguments.index("--listen")
                address = f"http://{arguments[at + 1]}"
                del arguments[at:at + 2]
            command = [str(self.folder / "bin" / name), *arguments, "--listen", "127.0.0.1:0"]
            process = Process(command, self.folder)
            self.processes.append(process)
            self.addresses[address] = process.listening().url
        # The addresses are known now.
        commands = self.blocks("Before you start", "sh")[1:]
        done = self.shell("\n".join([*commands, 'printf "\\n%s" "$JURAT_KEY"']), self.folder)
        assert done.returncode == 0, (done.stdout, done.stderr)
        self.key = done.stdout.splitlines()[-1]

    def blocks(self, section, *languages):
        """What a section has in these languages, with the addresses of this world."""
        found = [text for language, text in self.sections[section] if language in languages]
        assert found, f"{section} has nothing in {languages}"
        for written, real in self.addresses.items():
            found = [text.replace(written, real) for text in found]
        return found

    def shell(self, text, folder, claim=TRUE):
        """Runs commands of the guide, for another claim than the one that they have."""
        env = environment(folder) | {
            "PATH": f"{self.folder}/bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}",
            "OPENAI_BASE_URL": f"{self.model.url}/v1", "OPENAI_API_KEY": "unused",
            "OPENAI_MODEL": "scripted",
            "ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": "unused",
            # Talks to the model and to nobody else.
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "LANGSMITH_TRACING": "false",
        }
        if self.key is not None:
            env["JURAT_KEY"] = self.key
        # Steps of a workflow run like this, too.
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c",
                   text.replace(TRUE, claim)]
        return subprocess.run(command, cwd=folder, env=env, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def subfolder(self, name):
        folder = self.folder / re.sub(r"\W+", "-", name)
        folder.mkdir()
        return folder

    def used(self, claim, text, is_published):
        """Asserts that the agent named a new round of the store, with its verdict, and obeyed it."""
        found = re.search(r"\b([A-Z]+)(?: in |, from round )(rnd_\w+)", text)
        assert found, f"no verdict in {text!r}; the model says {self.model.errors}"
        verdict, round_id = found.groups()
        self.is_in_store(round_id, claim, verdict)
        assert verdict == VERDICTS[claim], (verdict, claim)
        assert is_published == (verdict == "VALID"), (verdict, is_published)
        assert not self.model.errors, self.model.errors

    def is_in_store(self, round_id, claim, verdict):
        assert round_id not in self.seen, f"{round_id} was there before"
        self.seen.add(round_id)
        stored = get(f"{self.addresses[URL]}/v1/rounds/{round_id}", self.key)
        assert stored["kind"] == "validate" and stored["asked"] == claim, stored
        assert stored["verdict"] == verdict, stored
        executors = sorted(replica["executor"] for replica in stored["replicas"])
        assert executors == ["elm", "oak", "yew"] and stored["consensus"]["asked"] == 3, stored
        assert sorted(set(stored["consensus"]["verdicts"])) == ["INVALID", "VALID"], stored

    def stop(self):
        for process in self.processes:
            process.stop()


def as_printed(world, section, claim, text):
    """Asserts that the true claim has the output that the guide shows, but for the id of the round and the
    confidence, which grows with what the server knows of its executors."""
    if claim == TRUE:
        (shown,) = world.blocks(section, "text")
        varying = re.compile(r"rnd_\w+|0\.\d+")
        assert varying.sub("…", text) == varying.sub("…", shown), (text, shown)


def installed(world, section):
    """Asserts that the packages that a recipe names are those that are tried here."""
    for line in world.blocks(section, "sh"):
        if line.startswith("pip install "):
            for package in shlex.split(line)[2:]:
                importlib.metadata.version(package.split("[")[0])


def with_framework(world, name):
    installed(world, name)
    folder = world.subfolder(name)
    (program,) = world.blocks(name, "python")
    (folder / "agent.py").write_text(program)
    # The recipes after the first one say "as above".
    command = world.blocks("LangGraph", "sh")[-1]
    for claim in VERDICTS:
        done = world.shell(command, folder, claim)
        assert done.returncode == 0, (done.stdout, done.stderr, world.model.errors)
        world.used(claim, done.stdout, f"published: {claim}\n" in done.stdout)
        # Nor do they repeat the output.
        as_printed(world, "LangGraph", claim, done.stdout)


def with_claude_code(world):
    add, command = world.blocks("Claude Code", "sh")
    folder = world.subfolder("claude-code-added")
    done = world.shell(add, folder)
    assert re.search(r"^jurat: .*Connected$", done.stdout, re.M), (done.stdout, done.stderr)
    # It tells a server that accepts the key from one that does not.
    done = world.shell("JURAT_KEY=wrong claude mcp list", folder)
    assert "jurat: " in done.stdout and "Connected" not in done.stdout, (done.stdout, done.stderr)
    for form, config in enumerate(world.blocks("Claude Code", "json")):
        folder = world.subfolder(f"claude-code-{form}")
        (folder / ".mcp.json").write_text(config)
        (folder / "CLAUDE.md").write_text(*world.blocks("Claude Code", "markdown"))
        for claim in VERDICTS:
            done = world.shell(command, folder, claim)
            assert done.returncode == 0, (done.stdout, done.stderr, world.model.errors)
            published = folder / "published.txt"
            is_published = published.exists() and published.read_text() == f"{claim}\n"
            world.used(claim, done.stdout, is_published)
            as_printed(world, "Claude Code", claim, done.stdout)
            published.unlink(missing_ok=True)


def as_json(world):
    """The file in TOML, in the form of the others."""
    (text,) = world.blocks("Other MCP hosts", "toml")
    server = tomllib.loads(text)["mcp_servers"]["jurat"]
    variable = server.pop("bearer_token_env_var")
    headers = {"Authorization": f"Bearer ${{{variable}}}"}
    return json.dumps({"mcpServers": {"jurat": {"type": "http", "headers": headers, **server}}})


def with_other_hosts(world):
    installed(world, "Other MCP hosts")
    (program,) = world.blocks("Other MCP hosts", "python")
    for form, config in enumerate([*world.blocks("Claude Code", "json"), as_json(world)]):
        folder = world.subfolder(f"host-{form}")
        (folder / ".mcp.json").write_text(config)
        (folder / "host.py").write_text(program)
        for claim in VERDICTS:
            done = world.shell(f"python3 host.py '{TRUE}'", folder, claim)
            assert done.returncode == 0, (done.stdout, done.stderr)
            world.used(claim, done.stdout, f"published: {claim}\n" in done.stdout)


def with_curl(world):
    folder = world.subfolder("curl")
    (program,) = world.blocks("curl", "bash")
    (folder / "publish.sh").write_text(program)
    (command,) = world.blocks("curl", "sh")
    for claim in VERDICTS:
        done = world.shell(command, folder, claim)
        assert done.returncode == 0, (done.stdout, done.stderr)
        world.used(claim, done.stdout, f"published: {claim}\n" in done.stdout)
        as_printed(world, "curl", claim, done.stdout)
    # Without a valid key the script must end before it acts.
    done = world.shell(f"JURAT_KEY=wrong\n{command}", folder)
    assert done.returncode != 0 and "published" not in done.stdout, (done.stdout, done.stderr)


def in_a_pipeline(world):
    (workflow,) = world.blocks("A CI gate", "yaml")
    job = yaml.safe_load(workflow)["jobs"]["claims"]
    (step,) = [step for step in job["steps"] if "run" in step]
    settings = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in job["env"].items()
                       if "secrets." not in value)
    for name, claims, expected in [("good", [TRUE], 0), ("bad", [TRUE, FALSE, TRUE], 11)]:
        folder = world.subfolder(f"pipeline-{name}")
        (folder / "claims.txt").write_text("\n".join(claims))
        done = world.shell(settings + step["run"], folder)
        assert done.returncode == expected, (done.returncode, done.stdout, done.stderr)
        for number, claim in enumerate(claims, 1):
            report = xml.etree.ElementTree.parse(folder / "reports" / f"claim-{number}.xml")
            properties = {it.get("name"): it.get("value") for it in report.iter("property")}
            failures = [it.get("type") for it in report.iter("failure")]
            assert failures == ([] if claim == TRUE else ["INVALID"]), failures
            world.is_in_store(properties["jurat.round_id"], claim, VERDICTS[claim])


def enforced(world):
    """The function of the guide lets only a round of its own claim, with three replicas, pass."""
    (text,) = world.blocks("Enforce the verdict", "python")
    own = {}
    exec(text, own)
    os.environ["JURAT_KEY"] = world.key

    def made(claim, replicas, terms=""):
        command = (f"jurat --json --server {world.addresses[URL]} "
                   f"validate --claim '{claim}' --replicas {replicas} {terms}")
        return json.loads(world.shell(command, world.folder).stdout)["round_id"]

    approval = made(TRUE, 3)
    own["require_valid"](TRUE, approval)
    for claim, round_id in [
        (FALSE, made(FALSE, 3)), (FALSE, approval), (TRUE, made(TRUE, 1, "--session oak")),
        (TRUE, made(TRUE, 3, "--min-agreement 0.5")), (TRUE, "rnd_none"), (TRUE, f"../rounds/{approval}"),
    ]:
        try:
            own["require_valid"](claim, round_id)
        except (PermissionError, urllib.error.HTTPError):
            continue
        raise AssertionError(f"{round_id} was taken for an approval of {claim}")


def clean_up(world):
    key, world.key = world.key, None
    done = world.shell(world.blocks("Clean up", "sh")[0], world.folder)
    assert done.returncode == 0, (done.stdout, done.stderr)
    try:
        get(f"{world.addresses[URL]}/v1/rounds", key)
    except urllib.error.HTTPError as error:
        assert error.code == 401, error
    else:
        raise AssertionError("the key of the agent is still valid")


def check(world, has_claude_code):
    """Returns how many recipes were run."""
    recipes = {
        "LangGraph": lambda: with_framework(world, "LangGraph"),
        "OpenAI Agents SDK": lambda: with_framework(world, "OpenAI Agents SDK"),
        "PydanticAI": lambda: with_framework(world, "PydanticAI"),
        "Claude Code": lambda: with_claude_code(world),
        "Other MCP hosts": lambda: with_other_hosts(world),
        "curl": lambda: with_curl(world),
        "A CI gate": lambda: in_a_pipeline(world),
        "Enforce the verdict": lambda: enforced(world),
    }
    missing = set(world.sections) - {"Before you start", "Clean up"} ^ set(recipes)
    assert not missing, f"a recipe without a check, or a check without a recipe: {missing}"
    if not has_claude_code:
        print("skipped: Claude Code needs npm, and there is none")
        del recipes["Claude Code"]
    for name, run in recipes.items():
        started = time.monotonic()
        try:
            run()
        except Exception as error:
            raise AssertionError(f"the recipe {name} does not hold") from error
        print(f"{name}: {time.monotonic() - started:.1f} s", flush=True)
    clean_up(world)
    return len(recipes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    parser.add_argument("--claude", type=pathlib.Path, help="the program of Claude Code")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jurat-recipes-") as name:
        world = World(pathlib.Path(given.program).resolve(), pathlib.Path(name), model.start())
        if given.claude is not None:
            (world.folder / "bin" / "claude").symlink_to(given.claude.resolve())
        try:
            world.start()
            count = check(world, given.claude is not None)
        except BaseException:
            sys.stderr.write("".join(process.log() for process in world.processes[:1]))
            raise
        finally:
            world.stop()
    print(f"the recipes hold: {count} of them")


if __name__ == "__main__":
    main()
