"""Runs one of the community's programs in Python from a checkout, and prints a line for each step.

Its classes are used as they are: settings come from the environment or from arguments. Each step is
something that a user of the program does, and asserts what that user sees.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from program import get

WORLD = json.loads(os.environ["CHECK_WORLD"])
URL, KEY, MINERS = WORLD["url"], WORLD["key"], WORLD["miners"]
QUESTION, ANSWER, LIE = WORLD["question"], WORLD["answer"], WORLD["lie"]
AGREEING, DISAGREEING = WORLD["agreeing"], WORLD["disagreeing"]


@contextlib.contextmanager
def step(name):
    """A step of a program, which may fail without the end of the program."""
    error = None
    try:
        yield
    except Exception as found:  # whatever a foreign program raises
        error = f"{type(found).__name__}: {found}"[:400]
    print(json.dumps({"step": name, "error": error}), flush=True)


def stored(task_id, kind="delegate"):
    """Asserts that a task is a closed round of the store."""
    task = get(f"{URL}/api/v1/tasks/0/{task_id}", KEY)
    found = get(f"{URL}/v1/rounds/{task['round_id']}", KEY)
    assert (found["kind"], found["state"]) == (kind, "closed"), found
    return found


def same(seen, expected):
    assert seen == expected, f"{seen!r} instead of {expected!r}"


def mcp_gateway(checkout):
    folder = checkout / "cortensor-mcp-gateway"
    sys.path.insert(0, str(folder))
    os.environ["CORTENSOR_SESSION_ID"] = str(DISAGREEING)
    asyncio.run(gateway_client())
    os.environ["CORTENSOR_SESSION_ID"] = str(AGREEING)
    asyncio.run(gateway_agents())
    asyncio.run(gateway_server(folder))


async def gateway_client():
    from src.cortensor_client import CortensorClient, CortensorConfig

    async with CortensorClient(CortensorConfig.from_env()) as client:
        with step("health"):
            same(await client.health_check(), True)
        with step("miners"):
            shown = json.dumps(await client.get_miners())
            assert all(f'"{miner}"' in shown for miner in MINERS), shown
        with step("delegate"):
            reply = await client.delegate(QUESTION)
            same(reply.content, ANSWER)
            same(sorted(it.miner_id for it in reply.miner_responses), MINERS)
            same(reply.consensus.divergent_miners, ["liar"])
            same(reply.is_verified, True)
            same(len(stored(reply.task_id)["replicas"]), 3)
        with step("validate what was delegated"):
            for miner in reply.miner_responses:
                judged = await client.validate(reply.task_id, miner.miner_id, miner.content)
                same(judged.is_valid, miner.content == ANSWER)
                same(judged.k_miners_validated, 3)
                assert 0.5 < judged.confidence < 1 and judged.attestation, judged
        with step("task"):
            shown = await client.get_task_status(reply.task_id)
            assert ANSWER in json.dumps(shown), shown
        with step("session log"):
            summary = json.loads(client.export_session_log())["summary"]
            same((summary["total_delegates"], summary["total_validates"]), (1, 3))


async def gateway_agents():
    from src.agent_swarm import AgentCoordinator
    from src.cortensor_client import CortensorClient, CortensorConfig

    async with CortensorClient(CortensorConfig.from_env()) as client:
        with step("inference"):
            reply = await client.inference(QUESTION)
            same(reply.content, ANSWER)
            assert 0 < reply.consensus.total_miners, reply
            stored(reply.task_id)
        with step("swarm of agents"):
            result = await AgentCoordinator(client).execute_workflow(QUESTION, skip_planning=True)
            same((result.final_output, result.is_verified), (ANSWER, True))


async def gateway_server(folder):
    """Its own server of tools, which a host starts."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "src.mcp_server.server"], cwd=folder, env=dict(os.environ))
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()

        async def call(tool, **arguments):
            result = await session.call_tool(tool, arguments)
            return result.content[0].text

        with step("tool cortensor_health"):
            assert "Healthy" in await call("cortensor_health")
        with step("tool cortensor_miners"):
            assert '"alpha-35"' in await call("cortensor_miners")
        with step("tool cortensor_inference"):
            text = await call("cortensor_inference", prompt=QUESTION)
            assert text.startswith(f"{ANSWER}\n") and "Warning" not in text, text
        task_id = re.search(r"Task ID: (\w+)", text)[1]
        for tool in ["cortensor_verify", "cortensor_audit"]:
            with step(f"tool {tool}"):
                text = await call(tool, task_id=task_id)
                assert ANSWER in text, text


def governance_agent(checkout):
    sys.path.insert(0, str(checkout / "apps" / "cortensor-governance-agent" / "src"))
    from cortensor_agent.agent import GovernanceAgent
    from cortensor_agent.client import CortensorClient

    def connected(mode):
        # In the mode `mcp` it sends no key.
        return CortensorClient(mode=mode, rest_endpoint=URL, api_key=KEY,
                               mcp_endpoint=f"{URL}/mcp?tools=cortensor")

    for mode in ["rest", "mcp"]:
        client = connected(mode)

        def done(result):
            assert result.success and "error" not in result.data, result
            return result.data

        with step(f"{mode}: connect"):
            client.connect()
        if mode == "mcp":
            with step("mcp: tools"):
                names = {tool["name"] for tool in client.list_tools()}
                wanted = {"cortensor_completions", "cortensor_validate", "cortensor_create_session"}
                assert wanted <= names, names
        with step(f"{mode}: status, about, ping, miners"):
            for shown in [client.get_status(), client.get_about(), client.ping()]:
                same(done(shown)["status"], "ok")
            assert '"liar"' in json.dumps(done(client.get_miners()))
        with step(f"{mode}: create session"):
            assert done(client.create_session("check"))["session_id"]
        with step(f"{mode}: delegate"):
            body = done(client.delegate(QUESTION, session_id=DISAGREEING))
            assert body["output"] in (ANSWER, {"answer": ANSWER}), body
        with step(f"{mode}: completions"):
            body = done(client.completions(QUESTION, session_id=AGREEING))
            same(body["choices"][0]["text"], ANSWER)
            assert set(stored(body["task_id"])["sessions"]) <= set(WORLD["agreed"]), body
        with step(f"{mode}: validate"):
            for text, is_valid in [(ANSWER, True), (LIE, False)]:
                judged = done(client.validate(body["task_id"], "liar", text, AGREEING))
                same(judged["is_valid"], is_valid)
                assert 0.5 < judged["score"] < 1, judged
        # Its mode `rest` has no tasks.
        if mode == "mcp":
            with step("mcp: tasks"):
                assert str(body["task_id"]) in json.dumps(done(client.get_tasks(AGREEING)))
        with step(f"{mode}: analyze a proposal"):
            agent = GovernanceAgent(connected(mode))
            same(agent.connect(), True)
            agent.client._session.cortensor_session_id = AGREEING
            result = agent.analyze_proposal(f"We decide that {ANSWER}")
            same(result.analysis, ANSWER)
            assert result.validated and 0.5 < result.validation_score < 1, result
            same(agent.generate_evidence_bundle(result).to_dict()["analysis"]["validated"], True)


def recaptgbot(checkout):
    sys.path.insert(0, str(checkout / "apps" / "cortensor-recaptgbot"))
    from src.cortensor_client import CortensorClient

    async def run():
        for session in [AGREEING, None]:
            async with CortensorClient(URL, KEY, session_id=session) as client:
                with step(f"summarize in session {session}"):
                    same(await client.summarize(QUESTION), ANSWER)
        async with CortensorClient(URL, KEY) as client:
            with step("health"):
                same((await client.healthcheck())["status"], "ok")

    asyncio.run(run())


def eurekabuddybot(checkout):
    sys.path.insert(0, str(checkout / "apps" / "Cortensor-EurekaBuddyBot"))
    from src import cortensor_api

    with step("completion"):
        body = cortensor_api.request_completion(QUESTION, "deepseek", "deepseek-r1")
        same(body["choices"][0]["text"], ANSWER)
        stored(body["task_id"])


def xgenbot(checkout):
    sys.path.insert(0, str(checkout / "apps" / "Cortensor-XGenBot"))
    from src import cortensor_api

    with step("completion"):
        body = cortensor_api.request_completion(QUESTION)
        same(body["choices"][0]["text"], ANSWER)
        stored(body["task_id"])
    with step("info and status"):
        same(cortensor_api.router_info()["status"], "ok")
        same(cortensor_api.router_status()["status"], "ok")


def agentauditor(checkout):
    sys.path.insert(0, str(checkout / "apps" / "AgentAuditor"))
    from backend.cortensor_client import cortensor_client

    with step("health"):
        same(cortensor_client.health_check(), True)
    with step("completion"):
        body = cortensor_client.submit_completion(QUESTION)
        same((body["text"], body["session_id"]), (ANSWER, AGREEING))
        stored(body["task_id"])
    with step("redundant completion"):
        bodies = cortensor_client.submit_completion_redundant(QUESTION, num_nodes=2)
        same([body["text"] for body in bodies], [ANSWER, ANSWER])


def xea(checkout):
    sys.path.insert(0, str(checkout / "apps" / "xea" / "backend"))
    from app.cortensor_client import validate_with_cortensor

    with step("validate a claim"):
        body = asyncio.run(validate_with_cortensor("Judge it.", QUESTION, {"clarity": 1}))
        same(body["choices"][0]["text"], ANSWER)
        stored(body["task_id"])


def main():
    name, checkout = sys.argv[1], pathlib.Path(sys.argv[2])
    globals()[name.replace("-", "_")](checkout)


main()
