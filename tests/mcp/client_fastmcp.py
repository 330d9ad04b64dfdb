"""Lists the tools with FastMCP, has a claim judged and reads its round. Run by clients.py."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def transport(to):
    if to["type"] == "http":
        return StreamableHttpTransport(to["url"], headers=to["headers"])
    return StdioTransport(to["command"], to["args"], env=to["env"], cwd=to["cwd"], keep_alive=False)


async def talk(to, mode, era):
    steps = []

    async def heard(progress, total, message):
        steps.append(progress)

    async with Client(transport(to), mode=mode, progress_handler=heard) as client:
        assert client.protocol_version == era, client.protocol_version
        names = {tool.name for tool in await client.list_tools()}
        assert {"delegate", "validate", "factcheck", "get_round"} <= names, names
        arguments = {"claim": "12 * 12 = 144", "consensus": {"replicas": 3}}
        result = await client.call_tool("validate", arguments)
        body = result.structured_content
        assert body["verdict"] == "VALID" and body["consensus"]["answered"] == 3, body
        assert steps == sorted(set(steps)) and len(steps) == 7, steps
        shown = (await client.call_tool("get_round", {"round_id": body["round_id"]})).structured_content
        assert shown["request"]["claim"] == arguments["claim"], shown
        page = await client.read_resource(f"jurat://rounds/{body['round_id']}")
        assert json.loads(page[0].text)["round_id"] == body["round_id"], page


async def main(reach):
    for to in reach.values():
        for mode, era in ERAS.items():
            await talk(to, mode, era)
    print(f"{len(reach) * len(ERAS)} conversations")


asyncio.run(main(json.loads(sys.argv[1])))
