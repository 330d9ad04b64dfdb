"""Attacks on other tenants: into their names, their events, their addresses and their keys."""

import json
import re
import time
import uuid

from money import PRICE, ended, submit, until, verifier
from world import Caller

# More than what a visitor may send in ten minutes.
MOST_VISITS = 7_000


def person(world, name):
    """Somebody who registered by mail, with a handle."""
    visitor, email = Caller(world.node), f"{name}@example.com"
    visitor.make("/v1/register", {"email": email})

    def code():
        for file in sorted((world.node.state / "mail").glob("*")):
            text = file.read_text()
            if email in text and (found := re.search(r"Your code is (\S+)", text)):
                return found[1]
        return None

    reply = visitor.make("/v1/register/verify", {"email": email, "code": until(code)})
    caller = Caller(world.node, reply["api_key"])
    caller.email = email
    caller.account = caller.get("/v1/me")["id"]
    caller.send("PATCH", "/v1/me", {"handle": name})
    world.node.jurat("admin", "grant", caller.account, "5.00", "--quiet")
    return caller


def workflow(caller, name, verifier_id, slot="cites"):
    return caller.make("/v1/workflows", {
        "name": name, "description": "d", "outcome": "o", "body": "b",
        "expected_version_token": None,
        "verifiers": [{"name": slot, "verifier_id": verifier_id}],
    })["workflow_id"]


def grant(caller, identifier, whom, role="view"):
    return caller.send("POST", f"/v1/workflows/{identifier}/grants",
                       {"grantee_email_or_at_team_handle": whom, "role": role})


def a_grant_takes_no_name(world):
    """A stranger shares a verifier and a workflow under names that the victim uses."""
    victim, stranger = person(world, f"v{uuid.uuid4().hex[:8]}"), person(world, f"s{uuid.uuid4().hex[:8]}")
    theirs = verifier(stranger, "pays-out")
    shared = workflow(stranger, "pays-out", theirs)
    status, reply = grant(stranger, shared, victim.email)
    if status >= 300:
        return False, f"the attack itself failed: granting is {status} {reply}"
    before = len(world.judge.asked)
    policy = {"policy_id": "vp.semantic.v1", "policy_params": {
        "verifier": "pays-out", "inputs": {"response": "/answer"}}}
    validated, _ = victim.send("POST", "/api/v3/validate",
                               {"claim": {"output": {"answer": "x"}}, "policy": policy})
    found, _ = victim.send("GET", "/v1/workflows/pays-out")
    ran, _ = victim.send("POST", "/v1/verifiers/pays-out/runs", {"inputs": {"response": "x"}})
    judged = len(world.judge.asked) - before
    held = judged == 0 and found == 404 and ran == 404
    return held, f"validate {validated}, workflow {found}, run {ran}, {judged} judged"


def a_handle_hides_its_address(world):
    """Granting to a handle, and to addresses that may or may not be there."""
    victim, stranger = person(world, f"v{uuid.uuid4().hex[:8]}"), person(world, f"s{uuid.uuid4().hex[:8]}")
    shared = workflow(stranger, "bait", verifier(stranger))
    handle = "@" + victim.email.split("@")[0]
    answers = [grant(stranger, shared, handle), ]
    listed = stranger.get(f"/v1/workflows/{shared}/grants")
    leaks = victim.email in json.dumps([answers, listed])
    shape = lambda answer: (answer[0], sorted(answer[1]) if isinstance(answer[1], dict) else None)
    known = grant(stranger, shared, victim.email)
    unknown = grant(stranger, shared, f"nobody{uuid.uuid4().hex[:8]}@example.com")
    alike = shape(known) == shape(unknown)
    return not leaks and alike, f"address shown: {leaks}; known {known[0]}, unknown {unknown[0]}"


def an_event_is_not_planted(world):
    """Two tenants send an executor events under one key; one speaks as the node."""
    fake = world.executor()
    world.node.jurat("executors", "remove", fake.name)
    world.node.jurat("executors", "add", fake.name, fake.url, "--agent-events-url", fake.url)
    node = world.node.jurat("node", "--json")
    node_id = json.loads(node).get("public_key", "")
    body = {"target_executor": fake.name, "event_type": "dm_received", "payload": {},
            "dedupe_key": "t-1:2:task_claimed"}
    for tenant in (world.tenant(), world.tenant()):
        tenant.send("POST", "/v1/agent-events", body | {"source_node_id": node_id})
        tenant.send("POST", "/v1/agent-events", body)
    heard = lambda: [asked["event"] for path, asked in fake.asked if path == "/agent-events"]
    until(lambda: 2 <= len(heard()), 20)
    events = heard()
    keys = [event.get("dedupe_key") for event in events]
    as_node = sum(event.get("source_node_id") == node_id for event in events)
    held = len(set(keys)) == len(keys) == 2 and "t-1:2:task_claimed" not in keys and as_node == 0
    return held, f"{len(keys)} heard, {len(set(keys))} keys, {as_node} as the node"


def a_task_ends_with_its_key(world):
    """A key is revoked while its task has steps to do."""
    fake, other = world.executor(PRICE), world.executor(PRICE)
    tenant = world.tenant("1.00")
    second = world.key_of(tenant.account)
    fake.open.clear()
    _, _, task = submit(tenant, fake, verifiers=[other.name])
    fake.next()
    world.node.jurat("keys", "revoke", tenant.name, "--account", tenant.account)
    fake.open.set()
    state = ended(second, task)
    asked = sum(path == "/verify" for path, _ in other.asked)
    return asked == 0, f"{asked} steps after the key was revoked; the task is {state['state']}"


def visitors_are_counted(world):
    """Somebody without a key polls and searches as fast as he can, from this machine, which may send
    ten times as much as others."""
    visitor = Caller(world.node)

    def poll():
        form = ("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code"
                f"&client_id=x&device_code={uuid.uuid4().hex}")
        headers = {"content-type": "application/x-www-form-urlencoded"}
        status, reply = visitor.raw("POST", "/auth/device/token", form, headers)
        return 429 if "slow_down" in str(reply) else status

    def search():
        return visitor.send("POST", "/v1/templates/search", {"query": "a"})[0]

    # Whoever polls is told to slow down in the words of that protocol.
    sent = {}
    for name, ask in (("polls", poll), ("searches", search)):
        sent[name] = next((number for number in range(1, MOST_VISITS) if ask() == 429), None)
    return all(sent.values()), ", ".join(f"{name} until {count}" for name, count in sent.items())


ATTACKS = [
    ("share under a name of the victim", a_grant_takes_no_name),
    ("turn a handle into its address", a_handle_hides_its_address),
    ("plant an event, speak as the node", an_event_is_not_planted),
    ("go on with a revoked key", a_task_ends_with_its_key),
    ("poll and search without a key", visitors_are_counted),
]
