"""Attacks on money: work that nobody pays for, and work that is paid twice."""

import json
import threading
import time
import urllib.parse
import uuid

from database import StallingProxy
from world import PATIENCE, Caller

PRICE = 1_000
STALL = 6
TERMINAL = ("finalized", "failed", "expired", "cancelled")


def contract(caller, **terms):
    """A contract that one executor fulfils and the node verifies."""
    sample = caller.get("/v1/tasks/sample")
    sample["task_id"] = f"t-{uuid.uuid4().hex[:10]}"
    sample["inputs"] = {"prompt": sample["task_id"]}
    sample["expiry_ms"] = int(time.time() * 1000) + 600_000
    sample["assignment"]["claim"]["lease_ms"] = terms.get("lease_ms", 30_000)
    return sample


def submit(caller, fake, profile=None, **terms):
    body = {"contract": contract(caller, **terms), "executors": [fake.name]}
    if profile:
        body["profile"] = profile
    if "verifiers" in terms:
        body["verifiers"] = terms["verifiers"]
    status, reply = caller.send("POST", "/v1/tasks", body)
    return status, reply, body["contract"]["task_id"]


def until(look, seconds=PATIENCE):
    """Polls, as a client would, until the answer is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    return None


def ended(caller, task):
    def look():
        state = caller.get(f"/v1/tasks/{task}")
        return state if state["state"] in TERMINAL else None
    return until(look)


def a_step_stays_paid(world):
    """A caller writes under the keys that a step's own notes might use."""
    fake, tenant = world.executor(PRICE), world.tenant("1.00")
    fake.open.clear()
    _, reply, task = submit(tenant, fake)
    _, asked = fake.next()
    execution = asked["execution_id"]
    for turn in range(1, 9):
        for operation in ("task_step", "round", "key_create"):
            key = f"step:{execution}:{turn}"
            tenant.send("POST", "/v1/api-keys", {"name": f"n-{turn}-{operation}"},
                        {"Idempotency-Key": key})
    fake.open.set()
    ended(tenant, task)
    spent = world.spent_micros(tenant)
    return PRICE <= spent, f"spent {spent} of {PRICE} micro-credits"


def a_profile_is_not_free(world):
    """A priced executor is named with a profile for which it has no session."""
    fake, tenant = world.executor(PRICE), world.tenant("1.00")
    for profile in ("careful", "*", "default2"):
        status, reply, task = submit(tenant, fake, profile)
        if status < 300:
            ended(tenant, task)
    worked = sum(path == "/execute" for path, _ in fake.asked)
    spent = world.spent_micros(tenant)
    return PRICE * worked <= spent, f"{worked} executions for {spent} micro-credits"


def a_stalled_node_is_paid_once(world):
    """Two nodes; the link of one to the database stalls past the lease while its executor works."""
    if world.database.name != "postgres":
        return None, "needs two nodes"
    fake, tenant = world.executor(PRICE), world.tenant("1.00")
    where = urllib.parse.urlsplit(world.store)
    proxies = {}
    for _ in range(2):
        proxy = StallingProxy(where.hostname, where.port or 5432)
        address = where._replace(netloc=f"{where.username}@127.0.0.1:{proxy.port}").geturl()
        node = world.join(address)
        proxies[json.loads(node.jurat("node", "--json"))["public_key"]] = proxy
    # From here on only the two behind the proxies work.
    world.nodes.pop(0).stop()
    counts = []
    for place in range(3):
        callers = [Caller(node, tenant.key) for node in world.nodes]
        before = len(captures(callers))
        fake.open.clear()
        status, reply, task = submit(callers[place % 2], fake, lease_ms=1_500)
        if status >= 300:
            raise SystemExit(f"the task was refused: {status} {reply}")
        while fake.next()[0] != "/execute":
            pass
        signed = json.dumps(fake.headers)
        slow = next((proxy for key, proxy in proxies.items() if key in signed), None)
        if slow is None:
            raise SystemExit(f"nobody known signed the request: {signed}")
        slow.stall()
        # The other node takes the work over; then both get their answers at once.
        until(lambda: 2 <= sum(path == "/execute" for path, _ in fake.asked), 20)
        fake.open.set()
        time.sleep(STALL)
        slow.resume()
        until(lambda: any(state_of(it, task) in TERMINAL for it in callers))
        time.sleep(3)
        asked = [body["execution_id"] for path, body in fake.asked if path == "/execute"]
        fake.asked.clear()
        counts.append((len(captures(callers)) - before, len(set(asked)), len(asked)))
    for proxy in proxies.values():
        proxy.close()
    good = all(captured == executions for captured, executions, _ in counts)
    told = ", ".join(f"{c} for {e} asked {times} times" for c, e, times in counts)
    return good, f"captures for executions: {told}"


def state_of(caller, task):
    try:
        return caller.get(f"/v1/tasks/{task}").get("state")
    except OSError:
        return None


def captures(callers):
    """The account's captures, from whichever node answers."""
    for caller in callers:
        status, reply = caller.send("GET", "/v1/me/transfers?limit=200")
        if status == 200:
            return [line for line in reply["items"] if line["movement"] == "capture"]
    raise SystemExit("no node answers")


def verifier(caller, name=None):
    return caller.make("/v1/verifiers", {
        "name": name or f"v-{uuid.uuid4().hex[:8]}", "description": "Is it kind?",
        "criterion": "The response is kind.", "input_contract": "text",
        "input_fields": ["response"], "model_settings": {"model": "paid/judge"},
    })["verifier_id"]


def a_judge_that_times_out_is_paid(world):
    """Runs of a verifier whose deadline ends before its judge answers."""
    tenant = world.tenant("5.00")
    name = verifier(tenant)
    world.judge.open.clear()
    before = len(world.judge.asked)
    try:
        for number in range(5):
            tenant.send("POST", f"/v1/verifiers/{name}/runs",
                        {"inputs": {"response": f"a{number}"}, "timeout_ms": 300})
    finally:
        world.judge.open.set()
    asked = len(world.judge.asked) - before
    spent = until(lambda: world.spent_micros(tenant), 10) or 0
    return asked == 0 or 0 < spent, f"{asked} requests to the provider for {spent} micro-credits"


def a_cached_verdict_needs_no_credit(world):
    """The same run again, when the credit is gone."""
    tenant = world.tenant("1.00")
    name = verifier(tenant)
    body = {"inputs": {"response": "same"}}
    tenant.make(f"/v1/verifiers/{name}/runs", body)
    left = tenant.get("/v1/me/usage")["available_usd"]
    world.node.jurat("admin", "grant", tenant.account, f"-{left}", "--quiet")
    status, reply = tenant.send("POST", f"/v1/verifiers/{name}/runs", body)
    return status < 300, f"status {status}"


def equal_runs_are_one_call(world):
    """Ten equal runs at once."""
    tenant = world.tenant("5.00")
    name = verifier(tenant)
    before = len(world.judge.asked)
    world.judge.open.clear()
    statuses = []
    body = {"inputs": {"response": "together"}}
    run = lambda: statuses.append(tenant.send("POST", f"/v1/verifiers/{name}/runs", body)[0])
    threads = [threading.Thread(target=run) for _ in range(10)]
    for thread in threads:
        thread.start()
    time.sleep(1)
    world.judge.open.set()
    for thread in threads:
        thread.join()
    asked, paid = len(world.judge.asked) - before, len(world.captures(tenant))
    good = asked == 1 and paid <= 1 and set(statuses) <= {200, 201}
    return good, f"{asked} requests, {paid} captures, statuses {sorted(set(statuses))}"


def small_credit_is_spent_to_the_end(world):
    """An account with credit for a few runs gets them, and no more than one on top."""
    tenant = world.tenant("0.01")
    name = verifier(tenant)
    statuses = []
    for number in range(40):
        status, _ = tenant.send("POST", f"/v1/verifiers/{name}/runs",
                                {"inputs": {"response": f"few {number}"}})
        statuses.append(status)
        if status >= 300:
            break
    usage = tenant.get("/v1/me/usage")
    spent = world.spent_micros(tenant)
    good = 9_000 <= spent <= 10_000 + 200_000 and statuses[-1] in (402, 403)
    return good, f"{sum(it < 300 for it in statuses)} runs, spent {spent} of 10000 micro-credits, left {usage['available_usd']}"


ATTACKS = [
    ("write under the keys of a step", a_step_stays_paid),
    ("name a profile without a session", a_profile_is_not_free),
    ("stall the database of one node", a_stalled_node_is_paid_once),
    ("let the judge time out", a_judge_that_times_out_is_paid),
    ("ask again without credit", a_cached_verdict_needs_no_credit),
    ("ask ten times at once", equal_runs_are_one_call),
    ("spend little credit to the end", small_credit_is_spent_to_the_end),
]
