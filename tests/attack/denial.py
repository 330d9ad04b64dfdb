"""Attacks on the share of others: memory, checks, places, executors and storage."""

import http.client
import json
import threading
import time

from world import Caller, PATIENCE


def at_once(count, work):
    """Runs the same work on many threads and returns what came of each."""
    found = [None] * count

    def one(place):
        try:
            found[place] = work(place)
        except (OSError, http.client.HTTPException) as error:
            found[place] = (type(error).__name__, None)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def statuses(found):
    counts = {}
    for status, _ in found:
        counts[status] = counts.get(status, 0) + 1
    return ", ".join(f"{status} x{count}" for status, count in sorted(counts.items(), key=str))


def json_stays_small(world):
    """A megabyte of the smallest values, twenty times, in rounds that wait."""
    fake, tenant = world.executor(), world.tenant()
    claim = "[" + ",".join(['{"":0}'] * 140_000) + "]"
    body = '{"claim":%s,"execution":{"timeout_ms":20000}}' % claim
    before = world.node.resident_mib()[0]
    fake.open.clear()
    done = threading.Timer(8, fake.open.set)
    done.start()
    found = at_once(20, lambda _: tenant.raw("POST", "/api/v3/validate", body))
    fake.open.set()
    grown = world.node.resident_mib()[1] - before
    return grown < 400, f"grew by {grown} MiB; {statuses(found)}"


def checks_of_others_go_on(world):
    """Items whose hashes collide, twenty-four times at once, while another tenant has a check made."""
    fake, tenant, victim = world.executor(), world.tenant(), world.tenant()
    # Empty lists add nothing to a hash that does not say where lists begin: all of these collide.
    tree = lambda number: "[" + ",".join("[[]]" if number >> bit & 1 else "[]" for bit in range(14)) + "]"
    items = "[" + ",".join(map(tree, range(16_000))) + "]"
    body = ('{"claim":{"output":%s,"output_schema":{"type":"array","uniqueItems":true}},'
            '"policy":{"policy_id":"vp.schema_only.v1"},"execution":{"timeout_ms":60000}}' % items)
    attack = threading.Thread(
        target=lambda: at_once(24, lambda _: tenant.raw("POST", "/api/v3/validate", body)))
    attack.start()
    time.sleep(0.5)
    begun = time.monotonic()
    status, reply = victim.send("POST", "/api/v3/validate", {
        "claim": {"output": 1, "output_schema": {"type": "integer"}},
        "policy": {"policy_id": "vp.schema_only.v1"}, "execution": {"timeout_ms": 60000}})
    took = time.monotonic() - begun
    attack.join()
    return status == 200 and took < 10, f"the victim waited {took:.1f} s for {status}"


def places_are_shared(world):
    """One account with many keys takes every place for rounds."""
    slow, fast = world.executor(label="slow"), world.executor(label="fast")
    first = world.tenant()
    keys = [first] + [world.key_of(first.account) for _ in range(5)]
    victim = world.tenant()
    slow.open.clear()
    body = {"claim": "x", "consensus": {"replicas": 1, "session_pool": [slow.name]},
            "execution": {"timeout_ms": 30000}}
    headers = {"Prefer": "respond-async"}

    def take(place):
        caller, last = keys[place % len(keys)], (0, None)
        for _ in range(100):
            last = caller.send("POST", "/api/v3/validate", body, headers)
        return last

    found = at_once(12, take)
    status, reply = victim.send("POST", "/api/v3/validate", {
        "claim": "x", "consensus": {"replicas": 1, "session_pool": [fast.name]}})
    slow.open.set()
    return status == 200, f"the victim got {status}; the attacker at last {statuses(found)}"


def an_executor_is_not_shut(world):
    """One tenant asks a shared executor with deadlines that it cannot keep."""
    fake, tenant, victim = world.executor(), world.tenant(), world.tenant()
    body = {"claim": "x", "consensus": {"replicas": 1, "session_pool": [fake.name]}}
    victim.make("/api/v3/validate", body)
    fake.open.clear()
    for timeout_ms in (120, 120, 5_000, 5_000):
        at_once(8, lambda _: tenant.send(
            "POST", "/api/v3/validate", body | {"execution": {"timeout_ms": timeout_ms}}))
    fake.open.set()
    found = [victim.send("POST", "/api/v3/validate", body) for _ in range(5)]
    good = sum(status == 200 and reply.get("verdict") == "VALID" for status, reply in found)
    return good == 5, f"the victim got {good} of 5 answers; {statuses(found)}"


def storage_is_bounded(world):
    """A tenant without credit stores as much as he can."""
    world.executor()
    tenant = world.tenant()
    text, stored, last = "x" * 900_000, 0, None
    for number in range(1_200):
        last, reply = tenant.send("POST", "/v1/workflows", {
            "name": f"fill-{number}", "description": "d", "outcome": "o", "body": "b",
            "expected_version_token": None,
            "files": [{"path": "a.txt", "content": f"{number}{text}"}]})
        if last >= 300:
            break
        stored += len(text)
    return last >= 300 and last != 429, f"stored {stored >> 20} MiB, then {last}"


ATTACKS = [
    ("send a megabyte of small values", json_stays_small),
    ("let unique items collide", checks_of_others_go_on),
    ("take every place for rounds", places_are_shared),
    ("shut an executor by short deadlines", an_executor_is_not_shut),
    ("store without end", storage_is_bounded),
]
