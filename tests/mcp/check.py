"""Calls every tool of a server with the client of the Python SDK of the Model Context Protocol.

Over HTTP and over standard input and output, and over each of these in both eras: with `initialize`
and with `server/discover`. The server has three executors. At the end, without a server, the tools
work over standard input and output all the same.
"""

import argparse
import asyncio
import json
import pathlib
import tempfile

import httpx2 as httpx
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from program import PATIENCE, environment, serving


def over_http(url, key, tools=""):
    headers = {"Authorization": f"Bearer {key}"}
    client = httpx.AsyncClient(headers=headers, timeout=PATIENCE, trust_env=False)
    return streamable_http_client(f"{url}/mcp{tools}", http_client=client)


def over_stdio(program, folder):
    arguments = ["--state-dir", str(folder / "state"), "mcp"]
    env = environment(folder) | {"JURAT_MCP_TOOLS": "aliases"}
    return StdioServerParameters(command=str(program), args=arguments, cwd=str(folder), env=env)


ROUNDS = [
    ("delegate", {"objective": "say it again", "input": {"n": 7}}, "status", "OK"),
    ("validate", {"claim": "12 * 12 = 144"}, "verdict", "VALID"),
    ("factcheck", {"claim": "12 * 12 = 144"}, "verdict", "TRUE"),
]


async def rounds(client):
    """The tools that ask executors: the reply of the API, progress, and problems."""
    made = {}
    for tool, arguments, member, expected in ROUNDS:
        steps = []

        async def heard(progress, total, message):
            steps.append((progress, total, message))

        arguments = arguments | {"consensus": {"replicas": 3}}
        result = await client.call_tool(tool, arguments, progress_callback=heard)
        assert not result.is_error, result
        body = result.structured_content
        assert body[member] == expected and body["consensus"]["replicas"] == 3, body
        assert [step[0] for step in steps] == [1, 2, 3, 4, 5, 6, 7], steps
        assert "untrusted" in result.content[0].text
        assert json.loads(result.content[1].text) == body
        made[tool] = body["round_id"]
    result = await client.call_tool("validate", {"claim": "x", "session_id": "nobody"})
    assert result.is_error and result.structured_content["code"] == "session_unknown", result
    assert result.content[0].text.startswith("session_unknown: "), result

    async def done(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result.structured_content

    # Others of this check talk at the same time, so the round is known by its id.
    which = {"round_id": made["factcheck"]}
    listed = await done("list_rounds", kind="factcheck", limit=50)
    asked = {item["round_id"]: item["asked"] for item in listed["items"]}
    assert asked[which["round_id"]] == "12 * 12 = 144", listed
    shown = await done("get_round", **which)
    assert shown["request"]["claim"] == "12 * 12 = 144", shown
    waited = await done("wait_round", **which, wait=5)
    assert waited == shown, waited
    result = await client.call_tool("cancel_round", which)
    assert result.is_error and result.structured_content["code"] == "conflict", result
    await done("erase_round", **which)
    shown = await done("get_round", **which)
    assert shown["asked"] is None and "request" not in shown, shown


PAST_ROUNDS = ["list_rounds", "get_round", "wait_round", "cancel_round", "erase_round"]
VERIFIER = {
    "description": "The answer names its source.",
    "criterion": json.dumps({"contains": {"field": "answer", "text": "Source:"}}),
    "input_contract": "text",
    "input_fields": ["answer"],
    "model_settings": {"model": "builtin/rules"},
}
VERIFIERS = ["deploy_verifier", "list_verifiers", "get_verifier", "run_verifier",
             "get_verifier_run", "revoke_verifier", "delete_verifier"]


async def verifiers(client, name):
    """The life of a verifier, from its first version to its end."""

    async def done(tool, **arguments):
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        return result.structured_content

    payload = VERIFIER | {"name": name}
    made = await done("deploy_verifier", payload=payload)
    assert made["version"] == 1, made
    result = await client.call_tool("deploy_verifier", {"payload": payload})
    assert result.is_error and result.structured_content["code"] == "conflict", result
    payload["expected_version_token"] = made["version_token"]
    assert (await done("deploy_verifier", payload=payload))["version"] == 2
    listed = await done("list_verifiers", limit=200)
    assert name in [item["name"] for item in listed["items"]], listed
    shown = await done("get_verifier", verifier_id=name, version=1)
    assert shown["criterion"] == VERIFIER["criterion"], shown
    for answer, passed in [("Source: the window.", True), ("It rains.", False)]:
        run = await done("run_verifier", verifier_id=name, inputs={"answer": answer}, version=2)
        assert run["passed"] is passed and run["status"] == "success", run
        assert "anonymous_verifier_run_id" not in run, run
        again = await done("get_verifier_run", verifier_run_id=run["verifier_run_id"])
        assert again["passed"] is passed, again
    gone = await done("revoke_verifier", verifier_id=name)
    assert gone["revoked"] is True, gone
    gone = await done("delete_verifier", verifier_id=made["verifier_id"])
    assert gone["deleted"] is True, gone


async def ended(done, tool, **which):
    """Waits until a task or a run is over: each call waits for a while."""
    for _ in range(PATIENCE):
        body = await done(tool, **which, wait=5)
        if body.get("state", body.get("status")).lower() in ("finalized", "failed", "expired"):
            return body
    raise AssertionError(f"{which} does not end")


async def tasks(client, name):
    """The life of a task and of a run; returns the tools that were called."""
    called = set()

    async def done(tool, code=None, **arguments):
        called.add(tool)
        result = await client.call_tool(tool, arguments)
        said = (result.structured_content or {}).get("code") if result.is_error else None
        assert said == code, (tool, result)
        return result.structured_content

    task = f"task-{name}"
    contract = await done("get_task_sample", task_id=task)
    contract |= {"task_type": "echo", "inputs": {"prompt": name}, "task_mode": "CONTINUOUS",
                 "output_schema": {"type": "object"}}
    contract["budget"]["mode"] = "EPOCH_RENEW"
    made = await done("submit_task", contract=contract, executors=["alpha", "beta"])
    assert made["task_id"] == task, made
    body = await ended(done, "get_task", task_id=task)
    assert body["state"] == "finalized", body
    decision = await done("get_task_decision", task_id=task)
    assert decision["approvals"] == 1, decision
    listed = await done("list_tasks", state="finalized", limit=200)
    assert task in [item["task_id"] for item in listed["items"]], listed
    events = await done("list_task_events", task_id=task, after=1, limit=2)
    assert [item["seq"] for item in events["items"]] == [2, 3], events
    more = await done("list_task_events", task_id=task, limit=1, cursor=events["next_cursor"])
    assert more["items"][0]["seq"] == 4, more
    told = await done("complain_of_task", task_id=task, reason="not that")
    assert told["settling"][0]["complaint"] == "not that", told
    await done("complain_of_task", "conflict", task_id=task, reason="not that")
    begun = await done("begin_task_epoch", task_id=task)
    assert begun["epoch"] == 2, begun
    await ended(done, "get_task", task_id=task)
    known = await done("export_knowledge", task_id=task)
    assert [item["epoch"] for item in known["items"]] == [2, 1], known
    assert known["items"][1]["deprecated_at"] is not None, known
    assert (await done("cancel_task", task_id=task, reason="enough"))["state"] == "cancelled"

    run = f"run-{name}"
    agents = [{"agent_id": it, "executor": it, "prompt": name} for it in ("alpha", "beta")]
    spec = {"run_id": run, "task_type": "echo", "agents": agents,
            "contract": {"output_schema": {"type": "object"}}}
    assert (await done("submit_run", spec=spec))["status"] == "CREATED"
    assert (await done("kickoff_run", run_id=run))["run_id"] == run
    body = await ended(done, "get_run", run_id=run)
    assert body["status"] == "FINALIZED", body
    assert (await done("get_run_result", run_id=run))["result"] is not None
    listed = await done("list_runs", status="FINALIZED", limit=200)
    assert run in [item["run_id"] for item in listed["items"]], listed
    events = await done("list_run_events", run_id=run, limit=1)
    assert events["items"][0]["event_type"] == "RUN_FINALIZED", events
    await done("retry_run", "conflict", run_id=run)
    await done("cancel_run", "conflict", run_id=run)
    return called


ABSENT = "0198c1f0-0000-7000-8000-000000000001"
# Without a judge nothing is published, so that most of these say what is not there.
TEMPLATES = [
    ("design_skill", {}, None),
    ("teach_skill", {"skill_id": ABSENT}, "not_found"),
    ("optimize_skill", {"skill_id": ABSENT, "max_iterations": 3}, "not_found"),
    ("optimize_description", {"skill_id": ABSENT}, "not_found"),
    ("audit_skill", {"skill_id": ABSENT}, "not_found"),
    ("check_skill_safety", {"skill_id": ABSENT}, "not_found"),
    ("design_workflow", {}, None),
    ("teach_workflow", {"workflow_id": ABSENT}, "not_found"),
    ("optimize_workflow", {"workflow_id": ABSENT, "max_iterations": 3}, "not_found"),
    ("audit_workflow", {"workflow_id": ABSENT}, "not_found"),
    ("check_workflow_safety", {"workflow_id": ABSENT}, "not_found"),
    ("check_template_safety", {"identifier": "@nobody/report"}, "not_found"),
    ("publish_template_version", {"skill_id": ABSENT}, "handle_not_claimed"),
    ("unpublish_template_version", {"template_id": ABSENT, "version": 1}, "not_found"),
    ("deprecate_template_version", {"template_id": ABSENT, "version": 1}, "not_found"),
    ("delete_template_version", {"template_id": ABSENT, "version": 1}, "not_found"),
    ("delete_template", {"template_id": ABSENT}, "not_found"),
    ("archive_template", {"template_id": ABSENT}, "not_found"),
    ("unarchive_template", {"template_id": ABSENT}, "not_found"),
    ("list_templates", {"limit": 5}, None),
    ("search_templates", {"query": "report"}, None),
    ("get_template", {"identifier": "@nobody/report"}, "not_found"),
    ("get_template_file", {"identifier": ABSENT, "path": "a.md"}, "not_found"),
    ("fork_template", {"identifier": "@nobody/report"}, "not_found"),
    ("transfer_template_ownership",
     {"template_id": ABSENT, "new_owner_user_id_or_email": "bob@example.com"}, "not_found"),
]


async def templates(client):
    """Tools for templates and instructions."""
    for tool, arguments, code in TEMPLATES:
        result = await client.call_tool(tool, arguments)
        assert result.is_error == (code is not None), result
        if code is not None:
            assert result.structured_content["code"] == code, result


NOBODY = "nobody@example.com"
# The admin of an installation has no handle and no team; most of these say what is not there.
PEOPLE = [
    ("claim_handle", {"handle": "No Handle"}, "handle_invalid"),
    ("rename_handle", {"handle": "No Handle"}, "handle_invalid"),
    ("create_team", {"handle": "No Handle"}, "handle_invalid"),
    ("list_teams", {}, None),
    ("delete_team", {"team_id": "@no-such-team"}, "not_found"),
    ("list_team_members", {"team_id": "@no-such-team"}, "not_found"),
    ("add_team_member", {"team_id": "@no-such-team", "user_identifier": NOBODY}, "not_found"),
    ("remove_team_member", {"team_id": "@no-such-team", "user_identifier": NOBODY}, "not_found"),
    ("transfer_team_ownership",
     {"team_id": "@no-such-team", "new_owner_user_identifier": NOBODY}, "not_found"),
    ("list_shares", {}, None),
    ("accept_share", {"share_id": ABSENT}, "not_found"),
    ("decline_share", {"share_id": ABSENT}, "not_found"),
    ("block_share", {"share_id": ABSENT}, "not_found"),
    ("list_invitations", {}, None),
    ("accept_invitation", {"invitation_id": ABSENT}, "not_found"),
    ("decline_invitation", {"invitation_id": ABSENT}, "not_found"),
    ("cancel_invitation", {"invitation_id": ABSENT}, "not_found"),
    ("mint_api_key", {"name": "tools {name}"}, None),
    ("list_api_keys", {"limit": 5}, None),
    ("revoke_api_key", {"key_id": "tools {name}"}, None),
    ("get_usage", {}, None),
    ("list_webhooks", {"limit": 5}, None),
    ("list_webhook_deliveries", {"webhook_id": ABSENT}, "not_found"),
    ("replay_webhook_delivery", {"delivery_id": ABSENT}, "not_found"),
]


def workflows(word, name):
    """The life of a workflow, in the words of one era."""
    which = {f"{word}_id": f"{word}-{name}"}
    file = {"path": "notes.txt", "content": "Slowly."}
    new = {
        "name": f"{word}-{name}", "description": "Answers.", "outcome": "Answered.",
        "body": "Answer.", "files": [file],
    }
    grantee = which | {"grantee_email_or_at_team_handle": NOBODY}
    return [
        (f"save_{word}", new, None),
        (f"list_{word}s", {"limit": 5}, None),
        (f"search_{word}s", {"query": "answers"}, None),
        (f"get_{word}", which, None),
        (f"get_{word}_file", which | {"path": "notes.txt"}, None),
        (f"get_{word}_files", which | {"paths": ["notes.txt"]}, None),
        (f"list_{word}_grants", which, None),
        # An address is granted to whether or not it is known.
        (f"grant_{word}", grantee | {"role": "view"}, None),
        (f"revoke_{word}_grant", grantee, None),
        (f"leave_shared_{word}", which, "workflow_ownership_must_transfer"),
        # An address is invited whether or not it is known.
        (f"transfer_{word}_ownership", which | {"new_owner_user_id_or_email": NOBODY}, None),
        ("lookup_fork_lineage", which, None),
        (f"delete_{word}_version", which | {"version": 1}, "conflict"),
        (f"archive_{word}", which, None),
        (f"unarchive_{word}", which, None),
        (f"delete_{word}", which, None),
    ]


async def sharing(client, name):
    """Tools for workflows and people; returns those that were called."""
    called = set()
    for tool, arguments, code in workflows("skill", name) + workflows("workflow", name) + PEOPLE:
        given = {key: it.replace("{name}", name) if isinstance(it, str) else it
                 for key, it in arguments.items()}
        result = await client.call_tool(tool, given)
        said = (result.structured_content or {}).get("code") if result.is_error else None
        assert said == code, (tool, result)
        called.add(tool)
    return called


async def read(client, name):
    """Resources and prompts."""
    listed = (await client.list_resources()).resources
    uris = [str(resource.uri) for resource in listed]
    assert "jurat://docs/consensus" in uris, uris
    rounds = [uri for uri in uris if uri.startswith("jurat://rounds/")]
    page = (await client.read_resource("jurat://docs/consensus")).contents[0]
    assert page.text.startswith("# Ask several"), page
    shown = json.loads((await client.read_resource(rounds[0])).contents[0].text)
    assert rounds[0].endswith(shown["round_id"]), shown
    templates = (await client.list_resource_templates()).resource_templates
    assert "jurat://rounds/{round_id}" in [it.uri_template for it in templates], templates
    prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
    assert "check_claim" in prompts, prompts
    filled = await client.get_prompt("check_claim", {"claim": name})
    assert json.dumps(name) in filled.messages[0].content.text, filled


async def talk(to, mode, era, name):
    """A whole conversation, in which every tool that is there is called; returns their names."""
    asked = []

    async def agree(_context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"confirm": True})

    async with Client(to, mode=mode, elicitation_callback=agree) as client:
        names = await conversation(client, era, name)
    # Older revisions have no stateless way to ask.
    assert bool(asked) == (era != "2025-11-25"), (era, asked)
    return names


async def conversation(client, era, name):
    assert client.protocol_version == era, client.protocol_version
    listed = (await client.list_tools()).tools
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed)
    await rounds(client)
    await read(client, name)
    await verifiers(client, name)
    await templates(client)
    shared = await sharing(client, name) | await tasks(client, name)
    try:
        await client.call_tool("no_such_tool", {})
        raise AssertionError("a tool that is not there was called")
    except MCPError as error:
        assert error.error.code == -32602, error
    called = {tool for tool, *_ in ROUNDS + TEMPLATES} | set(VERIFIERS + PAST_ROUNDS) | shared
    names = {tool.name for tool in listed}
    assert called == names, f"call every tool: {called ^ names}"
    return names


async def narrowed(url, key):
    """A client that selects a set has its tools, those that take its open rounds, and no others."""
    for mode, _ in ERAS:
        async with Client(over_http(url, key, "?tools=verifiers"), mode=mode) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {*VERIFIERS, "get_round", "wait_round", "cancel_round"}, names


async def refused(url):
    """Without a valid key nobody gets in."""
    for mode, _ in ERAS:
        is_in = False
        try:
            async with Client(over_http(url, "jrt_live_wrong"), mode=mode):
                is_in = True
        except Exception:
            pass
        assert not is_in, "a wrong key was let in"


ERAS = [("legacy", "2025-11-25"), ("auto", "2026-07-28")]


async def check(program, folder, server, key):
    """Returns how many conversations there were, and how many tools each of them called."""
    told = await asyncio.gather(
        *(talk(over_http(server.url, key, "?tools=aliases"), mode, era, f"http-{era}")
          for mode, era in ERAS),
        *(talk(over_stdio(program, folder), mode, era, f"stdio-{era}") for mode, era in ERAS),
    )
    await refused(server.url)
    await narrowed(server.url, key)
    server.stop()
    # The same folder without a server: the command does the work itself.
    for mode, era in ERAS:
        told.append(await talk(over_stdio(program, folder), mode, era, f"alone-{era}"))
    return len(told), len(told[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--program", default="target/debug/jurat", help="the program to try")
    program = pathlib.Path(parser.parse_args().program).resolve()
    with tempfile.TemporaryDirectory(prefix="jurat-mcp-") as name:
        folder = pathlib.Path(name)
        with serving(program, folder) as (server, key):
            conversations, tools = asyncio.run(check(program, folder, server, key))
    print(f"the tools hold: {conversations} conversations, each with {tools} tools")


if __name__ == "__main__":
    main()
