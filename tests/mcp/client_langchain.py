"""Calls every tool with the adapter of LangChain, with arguments that make sense. Run by clients.py."""

import asyncio
import json
import sys
import uuid

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from program import CODES, EXECUTORS

CRITERION = json.dumps({"contains": {"field": "answer", "text": "Source:"}})
NOBODY = "nobody@example.com"


def sensible(name):
    """Values for arguments by their name, and by tool and name if a name means several things."""
    agents = [{"agent_id": it, "executor": it, "prompt": "say it"} for it in EXECUTORS[:2]]
    return {
        "claim": "12 * 12 = 144", "objective": "say it again", "consensus": {"replicas": 3},
        "inputs": {"answer": "Source: the window."}, "body": "Answer.", "description": "Answers.",
        "files": [{"path": "notes.txt", "content": "Slowly."}], "path": "notes.txt",
        "paths": ["notes.txt"], "query": "answers", "reason": "not that", "role": "view",
        "version": 1, "name": f"name-{name}", "executors": EXECUTORS[:2], "max_iterations": 2,
        "limit": 5, "wait": 45, "grantee_email_or_at_team_handle": NOBODY,
        "new_owner_user_id_or_email": NOBODY, "new_owner_user_identifier": NOBODY,
        "user_identifier": NOBODY, "save_skill.outcome": "Answered.", "kickoff": False,
        "claim_handle.handle": f"user-{name}", "rename_handle.handle": f"agent-{name}",
        "create_team.handle": f"team-{name}", "revoke_api_key.key_id": f"name-{name}",
        "spec": {"run_id": f"run-{name}", "task_type": "echo", "agents": agents,
                 "contract": {"output_schema": {"type": "object"}}},
        "payload": {"name": f"verifier-{name}", "description": "The answer names its source.",
                    "criterion": CRITERION, "input_contract": "text", "input_fields": ["answer"],
                    "model_settings": {"model": "builtin/rules"}},
    }


def contract(sample):
    """A task that can begin another epoch, made of the sample of the server."""
    sample["budget"]["mode"] = "EPOCH_RENEW"
    return sample | {"task_mode": "CONTINUOUS", "task_type": "echo",
                     "output_schema": {"type": "object"}}


class Caller:
    """Calls tools, and keeps the ids that they return for the calls that follow."""

    def __init__(self, name):
        self.values = sensible(name)
        self.results = []
        self.ids = {}
        self.refused = 0

    async def watch(self, request, handler):
        result = await handler(request)
        self.results.append(result)
        return result

    def arguments(self, tool):
        """What the tool requires, and those of the others that there is a value for."""
        schema = tool.args_schema
        known = self.values | self.ids
        given = {}
        for name in schema.get("properties", {}):
            special = f"{tool.name}.{name}"
            if special in known or name in known:
                given[name] = known.get(special, known.get(name))
            elif name in schema.get("required", []):
                given[name] = str(uuid.UUID(int=1))
        return given

    async def call(self, tool):
        await tool.ainvoke({"type": "tool_call", "id": "1", "name": tool.name,
                            "args": self.arguments(tool)})
        result = self.results.pop()
        body = result.structuredContent
        assert body is not None, (tool.name, result)
        if result.isError:
            assert body["code"] in CODES, (tool.name, body)
            # The arguments make sense, so that only what is there can be the reason.
            assert body["code"] != "validation_error", (tool.name, body)
            self.refused += 1
            return
        if tool.name == "get_task_sample":
            self.values["contract"] = contract(body)
        self.ids = {name: value for name, value in body.items()
                    if name.endswith("_id") and isinstance(value, str)} | self.ids


# A task that has ended is complained of before it begins again.
LATE = ["complain_of_task", "begin_task_epoch"]


def order(tool):
    """A sample first, then what makes things, then what reads them, and last what destroys them."""
    if tool.name in LATE:
        return 3, LATE.index(tool.name)
    if tool.name == "get_task_sample":
        return 0, 0
    hints = tool.metadata
    return (4 if hints["destructiveHint"] else 2 if hints["readOnlyHint"] else 1), 0


async def talk(tools, caller):
    for tool in sorted(tools, key=order):
        await caller.call(tool)
    return len(tools), caller.refused


def to(connection, transport):
    return {"transport": transport} | {key: it for key, it in connection.items() if key != "type"}


async def main(reach):
    http, stdio = Caller("http"), Caller("stdio")
    reach = {"http": to(reach["http"], "streamable_http"), "stdio": to(reach["stdio"], "stdio")}
    client = MultiServerMCPClient(reach, tool_interceptors=[http.watch])
    told = [await talk(await client.get_tools(server_name="http"), http)]
    # One process for all calls.
    async with client.session("stdio") as session:
        tools = await load_mcp_tools(session, tool_interceptors=[stdio.watch])
        told.append(await talk(tools, stdio))
    calls, refused = (sum(counts) for counts in zip(*told))
    print(f"{calls} calls, {calls - refused} done and {refused} refused with a stable code")


asyncio.run(main(json.loads(sys.argv[1])))
