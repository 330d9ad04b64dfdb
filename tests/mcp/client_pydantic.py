"""Has PydanticAI's TestModel call every tool, with arguments made of the schemas. Run by clients.py."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from fastmcp.exceptions import ToolError
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel

from program import CODES

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


async def talk(to, mode, era):
    """Calls every tool once; returns how many there are, and how many calls were refused."""
    called, refused = [], {}

    async def call(_context, call_tool, name, arguments):
        called.append(name)
        try:
            return await call_tool(name, arguments)
        except ToolError as error:
            # The first text of an error begins with its code. An error of the protocol goes on.
            refused[name] = str(error).split(":")[0]
            return str(error)

    client = Client(StreamableHttpTransport(to["url"], headers=to["headers"]), mode=mode)
    toolset = MCPToolset(client, process_tool_call=call, tool_error_behavior="error")
    agent = Agent(TestModel(), toolsets=[toolset])
    async with client:
        assert client.protocol_version == era, client.protocol_version
        names = [tool.name for tool in await client.list_tools()]
        # One after the other, because some remove what others use.
        with Agent.parallel_tool_call_execution_mode("sequential"):
            await agent.run("call every tool")
    assert sorted(called) == sorted(names), set(called) ^ set(names)
    unstable = {name: code for name, code in refused.items() if code not in CODES}
    assert not unstable, unstable
    return len(called), len(refused)


async def main(to):
    told = [await talk(to, mode, era) for mode, era in ERAS.items()]
    calls, refused = (sum(counts) for counts in zip(*told))
    print(f"{calls} calls, {calls - refused} done and {refused} refused with a stable code")


asyncio.run(main(json.loads(sys.argv[1])["http"]))
