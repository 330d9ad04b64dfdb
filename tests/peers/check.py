"""Runs programs that were written for the Cortensor router, unchanged but for URL, key and session.

From the registries: OpenMinion, the community's provider for the Vercel AI SDK, and the clients of
OpenAI's API and of MCP, which speak the router's API as well. The community's own programs are in no
registry, and are run from checkouts. What the user of each program sees must be in the store.
"""

import argparse
import asyncio
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import httpx2 as httpx
import openai
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import checkouts
from program import PATIENCE, environment
from world import (AGREEING, ANSWER, DISAGREEING, HERE, HONEST, HONEST_MINERS, LIE, MINERS, QUESTION,
                   UNKNOWN, World, was_asked)


class OpenMinion:
    """Its command line, in a home of its own, as its setup leaves it."""

    def __init__(self, world):
        self.world = world
        self.home = world.folder / "openminion"
        self.home.mkdir()
        self.program = pathlib.Path(sys.executable).parent / "openminion"
        done = self.run(["setup", "--provider", "cortensor-router", "--no-chat"])
        assert done.returncode == 0, done.stderr

    def run(self, arguments, **settings):
        env = environment(self.home) | {
            "CORTENSOR_API_KEY": self.world.key,
            "CORTENSOR_API_URL": f"{self.world.url}/api/v1/completions",
            "CORTENSOR_SESSION_ID": str(AGREEING),
        } | settings
        command = [str(self.program), "--no-interactive", "--no-update-check", *arguments]
        return subprocess.run(command, cwd=self.home, env=env, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def ask(self, name, **settings):
        """Asks in a conversation of its own; a failed turn would show the answer before it."""
        arguments = ["run", "--runtime-source", "inproc", "--session", name, QUESTION]
        return self.run(arguments, **settings)


def with_openminion(world):
    minion = OpenMinion(world)
    chat = {"CORTENSOR_API_URL": f"{world.url}/api/v2", "CORTENSOR_API_MODE": "openai_chat"}
    failover = {"CORTENSOR_SESSION_ID": str(UNKNOWN), "CORTENSOR_SESSION_IDS": str(AGREEING)}
    for name, settings in [("completion", {}), ("failover", failover), ("chat", chat)]:
        before = world.rounds()
        done = minion.ask(name, **settings)
        said = done.stdout.strip().removeprefix("openminion: ")
        assert done.returncode == 0, (name, done.stdout, done.stderr)
        rounds = [world.round(found) for found in world.rounds() - before]
        # Besides its turn it classifies the question and remembers facts, with a round for each.
        turn = [it for it in rounds if "purpose: decide" in it["request"]["objective"]]
        assert len(turn) == 1 and said == ANSWER, (name, said, turn)
        # A chat names no session.
        was_asked(turn[0], HONEST_MINERS if name == "chat" else MINERS[AGREEING])
        assert turn[0]["request"]["input"]["max_tokens"] == 4096, turn[0]
    # Its user sees the texts of errors.
    for name, settings, text in [
        ("session", {"CORTENSOR_SESSION_ID": str(UNKNOWN)}, f"there is no session `{UNKNOWN}`"),
        ("key", {"CORTENSOR_API_KEY": "wrong"}, "the key is not valid"),
    ]:
        before = world.rounds()
        done = minion.ask(name, **settings)
        assert done.returncode != 0 and text in done.stderr, (name, done.stdout, done.stderr)
        assert world.rounds() == before, name


def with_ai_sdk(world, modules):
    folder = world.folder / "ai"
    folder.mkdir()
    (folder / "node_modules").symlink_to(modules)
    (folder / "ai.mjs").write_text((HERE / "ai.mjs").read_text())
    env = {"PATH": os.environ["PATH"], "HOME": str(folder),
           "CORTENSOR_API_KEY": world.key, "CORTENSOR_BASE_URL": world.url}
    command = ["node", "ai.mjs", str(AGREEING), str(UNKNOWN)]
    done = subprocess.run(command, cwd=folder, env=env, timeout=PATIENCE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    answered, refused = json.loads(done.stdout)
    assert (answered["text"], answered["finishReason"]) == (ANSWER, "stop"), answered
    found = world.round(answered["id"].removeprefix("cmpl-"))
    was_asked(found, MINERS[AGREEING])
    assert answered["model"] == f"{found['replicas'][0]['executor']}-1", (answered, found)
    assert "422" in refused["error"], refused


def with_openai(world):
    def client(version, key=world.key):
        return openai.OpenAI(base_url=f"{world.url}/api/{version}", api_key=key, max_retries=0,
                             timeout=PATIENCE)

    prompt = {"model": "any", "prompt": QUESTION, "extra_body": {"session_id": AGREEING}}
    for version in ["v1", "v2", "v3"]:
        completions = client(version).completions
        reply = completions.create(**prompt)
        assert (reply.choices[0].text, reply.k_miners) == (ANSWER, 3), reply
        was_asked(world.round(reply.round_id), MINERS[AGREEING])
        chunks = list(completions.create(**prompt, stream=True))
        assert "".join(chunk.choices[0].text for chunk in chunks) == ANSWER, chunks
    one = prompt | {"extra_body": {"session_id": AGREEING, "max_miners": 1}}
    assert client("v1").completions.create(**one).k_miners == 1
    # One of the three miners lies.
    several = prompt | {"extra_body": {"session_id": DISAGREEING}}
    reply = client("v1").completions.create(**several)
    assert (reply.text, reply.miner_id != "liar", reply.k_miners) == (ANSWER, True, 3), reply
    found = world.round(reply.round_id)
    was_asked(found, MINERS[DISAGREEING])
    texts = sorted(replica["output"]["answer"] for replica in found["replicas"])
    assert texts == [ANSWER, ANSWER, LIE], found
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": QUESTION}]
    chat = {"model": "any", "messages": messages, "extra_body": {"session_id": AGREEING}}
    for version in ["v1", "v2"]:
        chats = client(version).chat.completions
        reply = chats.create(**chat)
        assert reply.choices[0].message.content == ANSWER, reply
        found = world.round(reply.round_id)
        was_asked(found, MINERS[AGREEING])
        assert found["request"]["input"]["messages"] == messages, found
        chunks = list(chats.create(**chat, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == ANSWER, chunks
    # What the router's programs send if they are given no key is none.
    reply = client("v1", "default-dev-token").completions.create(**prompt)
    assert reply.choices[0].text == ANSWER, reply
    try:
        client("v1", "wrong").completions.create(**prompt)
    except openai.AuthenticationError:
        pass
    else:
        raise AssertionError("a wrong key was let in")


async def with_mcp(world):
    """Every tool under the router's names."""
    headers = {"Authorization": f"Bearer {world.key}"}
    http = httpx.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False)
    address = f"{world.url}/mcp?tools=cortensor"
    async with Client(streamable_http_client(address, http_client=http)) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        called = set()

        async def done(tool, **arguments):
            called.add(tool)
            result = await client.call_tool(tool, arguments)
            assert not result.is_error and len(result.content) == 1, result
            body = json.loads(result.content[0].text)
            assert body == result.structured_content, result
            if "round_id" in body:
                assert world.round(body["round_id"])["state"] == "closed", body
            return body

        for tool in ["cortensor_status", "cortensor_about", "cortensor_info", "cortensor_ping"]:
            assert (await done(tool))["name"] == "Jurat"
        miners = await done("cortensor_miners")
        assert {*HONEST, "liar"} <= {it["miner_id"] for it in miners["miners"]}, miners
        made = await done("cortensor_create_session", session_id=AGREEING)
        assert made["session_id"] == AGREEING, made
        completed = await done("cortensor_completions", prompt=QUESTION, session_id=AGREEING)
        assert completed["choices"][0]["text"] == ANSWER, completed
        task = await done("cortensor_tasks", session_id=AGREEING, task_id=completed["task_id"])
        assert task["results"]["data"] == [ANSWER] * 3, task
        listed = await done("cortensor_tasks", session_id=AGREEING)
        assert completed["task_id"] in [task["task_id"] for task in listed["tasks"]], listed
        for tool, arguments in [
            ("cortensor_delegate_v1", {"prompt": QUESTION, "session_id": DISAGREEING}),
            ("cortensor_delegate", {"objective": QUESTION, "session_id": "alpha"}),
            ("cortensor_delegate", {"prompt": QUESTION, "session_id": DISAGREEING}),
            ("cortensor_delegate_v3", {
                "objective": QUESTION,
                "consensus": {"replicas": 3, "session_pool": MINERS[DISAGREEING]}}),
        ]:
            body = await done(tool, **arguments)
            assert body["output"] in (ANSWER, {"answer": ANSWER}), (tool, body)
        for text, verdict in [(ANSWER, "VALID"), (LIE, "INVALID")]:
            for tool, arguments in [
                ("cortensor_validate_v1", {"result_data": text, "session_id": DISAGREEING}),
                ("cortensor_validate", {"claim": text, "session_id": "alpha"}),
                ("cortensor_validate", {"result_data": text, "session_id": DISAGREEING}),
                ("cortensor_validate_v3", {
                    "claim": text,
                    "consensus": {"replicas": 3, "session_pool": MINERS[DISAGREEING]}}),
            ]:
                body = await done(tool, **arguments)
                assert body["verdict"] == verdict, (tool, body)
        for tool in ["cortensor_factcheck", "cortensor_factcheck_v3"]:
            body = await done(tool, claim=LIE)
            assert body["verdict"] == "FALSE", (tool, body)
        assert called == tools, called ^ tools


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path, default="target/debug/jurat",
                        help="the program to try")
    parser.add_argument("--modules", type=pathlib.Path, help="the folder with the packages of npm")
    parser.add_argument("--community", type=pathlib.Path, action="append", default=[],
                        help="a checkout with programs of the community; may be repeated")
    parser.add_argument("--community-python", type=pathlib.Path,
                        help="the Python that has the packages of these programs")
    given = parser.parse_args()
    tried = [f"{name} {importlib.metadata.version(name)}" for name in ["openminion", "openai", "mcp"]]
    with tempfile.TemporaryDirectory(prefix="jurat-peers-") as name:
        world = World(given.program.resolve(), pathlib.Path(name))
        try:
            world.start()
            with_openminion(world)
            if given.modules is None:
                print("skipped: the provider of the Vercel AI SDK needs npm, and there is none")
            else:
                with_ai_sdk(world, given.modules)
                for name in ["cortensor-openai-provider", "ai"]:
                    package = json.loads((given.modules / name / "package.json").read_text())
                    tried.append(f"{name} {package['version']}")
            with_openai(world)
            asyncio.run(with_mcp(world))
            failed = []
            if given.community:
                folders = [folder.resolve() for folder in given.community]
                found, failed = checkouts.run(world, folders, given.community_python, given.modules)
                tried += found
            else:
                print("skipped: the programs of the community, because --community names no checkout")
        except BaseException:
            sys.stderr.write(world.server.log())
            raise
        finally:
            world.stop()
    if failed:
        raise SystemExit(f"{len(failed)} steps of the community's programs fail: {'; '.join(failed)}")
    print(f"the clients of the Cortensor router hold: {', '.join(tried)}")


if __name__ == "__main__":
    main()
