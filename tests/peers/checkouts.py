"""Finds the community's programs in checkouts, and runs each in a process of its own."""

import json
import os
import subprocess

from program import PATIENCE, environment
from world import AGREEING, ANSWER, DISAGREEING, HERE, LIE, MINERS, QUESTION

# The file of each program that talks to the router.
IN_PYTHON = {
    "mcp-gateway": "cortensor-mcp-gateway/src/cortensor_client/client.py",
    "governance-agent": "apps/cortensor-governance-agent/src/cortensor_agent/client.py",
    "recaptgbot": "apps/cortensor-recaptgbot/src/cortensor_client.py",
    "eurekabuddybot": "apps/Cortensor-EurekaBuddyBot/src/cortensor_api.py",
    "xgenbot": "apps/Cortensor-XGenBot/src/cortensor_api.py",
    "agentauditor": "apps/AgentAuditor/backend/cortensor_client.py",
    "xea": "apps/xea/backend/app/cortensor_client.py",
}
# With the folder that `@/` means there.
IN_TYPESCRIPT = {
    "claim-check": ("apps/cortensor-claim-check/lib/claimCheck.ts", "apps/cortensor-claim-check"),
    "aioracle": ("apps/Cortensor-AIOracle/src/lib/cortensor.ts", "apps/Cortensor-AIOracle/src"),
    "insightai": ("apps/insightai/src/app/api/research/route.ts", "apps/insightai/src"),
    "agentic-ops-hub": ("apps/cortensor-agentic-ops-hub/lib/cortensor.ts", "apps"),
    "sentinel": ("apps/backend/src/cortensor/client.ts", "apps"),
}


def run(world, checkouts, python, modules):
    """Runs what the checkouts have, and returns the programs that were run, and the steps that fail."""
    tried, failed = [], []
    files = IN_PYTHON | {name: file for name, (file, _) in IN_TYPESCRIPT.items()}
    for name, file in files.items():
        found = [checkout for checkout in checkouts if (checkout / file).exists()]
        if not found:
            print(f"skipped: {name}, because no checkout has {file}")
        elif name in IN_TYPESCRIPT and modules is None:
            print(f"skipped: {name} needs npm, and there is none")
        else:
            command = [str(python), str(HERE / "community.py")]
            if name in IN_TYPESCRIPT:
                command = in_typescript(world, name, found[0], modules)
            tried.append(name)
            failed += steps(world, name, [*command, name, str(found[0])])
    assert tried, "no checkout has a program that can be run"
    return tried, failed


def in_typescript(world, name, checkout, modules):
    """The command that runs TypeScript as the program's own configuration would."""
    standins = [str(HERE / "standins.mjs")]
    paths = {"@/*": [f"{checkout / IN_TYPESCRIPT[name][1]}/*"], "axios": [str(modules / "axios")],
             "next/server": standins, "ethers": standins}
    config = world.folder / f"{name}.json"
    config.write_text(json.dumps({"compilerOptions": {"paths": paths}}))
    return [str(modules / ".bin" / "tsx"), "--tsconfig", str(config), str(HERE / "community.mjs")]


def settings(world):
    """What the programs read, each its own part."""
    keys = ["CORTENSOR_API_KEY", "API_KEY", "CORTENSOR_AUTH_TOKEN", "CORTENSOR_API_TOKEN"]
    urls = ["CORTENSOR_ROUTER_URL", "CORTENSOR_API_URL"]
    sessions = ["CORTENSOR_SESSION_ID", "NEXT_PUBLIC_SESSION_ID", "NEXT_PUBLIC_DEEPSEEK_SESSION_ID"]
    return {
        **dict.fromkeys(keys, world.key), **dict.fromkeys(urls, world.url),
        **dict.fromkeys(sessions, str(AGREEING)),
        "CORTENSOR_MOCK_MODE": "false",
    }


def steps(world, name, command):
    folder = world.folder / f"community-{name}"
    folder.mkdir()
    about = {
        "url": world.url, "key": world.key, "question": QUESTION, "answer": ANSWER, "lie": LIE,
        "agreeing": AGREEING, "disagreeing": DISAGREEING,
        "agreed": MINERS[AGREEING], "miners": MINERS[DISAGREEING],
    }
    env = environment(folder) | settings(world) | {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(HERE.parent / "mcp"),
        "PYTHONDONTWRITEBYTECODE": "1", "CHECK_WORLD": json.dumps(about),
    }
    done = subprocess.run(command, cwd=folder, env=env, timeout=4 * PATIENCE,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"step"')]
    assert done.returncode == 0 and told, (name, done.stdout, done.stderr)
    broken = [step for step in told if step["error"] is not None]
    print(f"{name}: {len(told) - len(broken)} of {len(told)} steps work", flush=True)
    for step in broken:
        print(f"  breaks: {step['step']}: {' '.join(step['error'].split())}")
    return [f"{name}: {step['step']}" for step in broken]
