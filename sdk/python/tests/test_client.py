"""The client against a real server."""

import asyncio
import json

import pytest

from conftest import HANGING, HONEST, ONE_LIES
from front import Front
from jurat import (
    ApiError, AsyncJurat, ConnectionFailed, Jurat, NotAgreed, RequestTimeout, WaitTimeout)


def test_a_liar_is_outvoted(client):
    answer = client.validate("2 + 2 = 4", consensus=ONE_LIES)
    assert (answer.verdict, answer.outcome) == ("VALID", "agreed")
    assert [replica["verdict"] for replica in answer.replicas] == ["VALID", "INVALID", "VALID"]
    assert answer.require(verdict="VALID") is answer
    with pytest.raises(NotAgreed, match="below 0.99") as raised:
        answer.require(min_confidence=0.99)
    assert "liar says INVALID" in str(raised.value) and raised.value.answer is answer
    with pytest.raises(NotAgreed, match="the verdict is VALID, not INVALID"):
        answer.require(verdict="INVALID")


def test_a_job_and_a_fact(client):
    done = client.delegate("say it again", input={"n": 7}, consensus=HONEST).require()
    assert done.verdict == "OK" and "say it again" in done.output["answer"]
    assert client.factcheck("2 + 2 = 5", consensus=HONEST).verdict == "FALSE"


def test_an_error_names_its_field(client):
    with pytest.raises(ApiError) as raised:
        client.validate("2 + 2 = 4", replicas=4)
    error = raised.value
    assert (error.status, error.code, error.field) == (
        422, "request_invalid", "consensus.replicas"), error.problem
    assert error.hint and "consensus.replicas" in str(error)
    with pytest.raises(ApiError) as raised:
        client.rounds.get("rnd_00000000000000000000000000")
    assert raised.value.status == 404


def test_silence_is_no_agreement(client):
    answer = client.validate("2 + 2 = 4", consensus=HANGING, timeout_s=0.2)
    assert (answer.verdict, answer.outcome, answer.confidence) == (None, "failed", 0)
    with pytest.raises(NotAgreed, match="hanging-1 says TIMEOUT"):
        answer.require()


def test_a_late_reply_is_fetched_with_the_same_key(server, client):
    with Jurat(server.url, server.key, timeout_s=0.1) as hasty:
        with pytest.raises(RequestTimeout) as raised:
            hasty.validate("2 + 2 = 4", consensus=HANGING, timeout_s=1.5)
    key = raised.value.idempotency_key
    answer = client.validate(
        "2 + 2 = 4", consensus=HANGING, timeout_s=1.5, idempotency_key=key)
    opened = [it["round_id"] for it in client.rounds.list() if it["sessions"][0] == "hanging-1"]
    assert opened[0] == answer.round_id and answer.outcome == "failed"
    with pytest.raises(ApiError) as raised:
        client.validate("another", idempotency_key=key)
    assert raised.value.code == "idempotency_mismatch"


def test_a_call_is_repeated_and_done_once(server, client):
    before = len(list(client.rounds.list()))
    with Front(server.url, ["busy", "break", "pass"]) as front:
        with Jurat(front.url, server.key) as shaken:
            answer = shaken.validate("3 + 3 = 6", consensus=HONEST)
    assert answer.verdict == "VALID" and len(front.keys) == 3
    assert len(set(front.keys)) == 1 and front.keys[0]
    assert len(list(client.rounds.list())) == before + 1


def test_tries_come_to_an_end(server):
    with Front(server.url, ["busy"] * 3) as front:
        with Jurat(front.url, server.key, max_retries=2) as client, pytest.raises(ApiError) as raised:
            client.me()
    assert raised.value.code == "overloaded" and len(front.keys) == 3
    with Front(server.url, ["busy tomorrow"]) as front:
        with Jurat(front.url, server.key) as client, pytest.raises(ApiError) as raised:
            client.me()
    assert raised.value.retry_after_s == 86400 and len(front.keys) == 1
    with Front(server.url, ["break"]) as front:
        with Jurat(front.url, server.key) as client, pytest.raises(ConnectionFailed):
            client.request("POST", "/v1/tasks", json={})
    assert len(front.keys) == 1


NAMES = ["replica_started"] * 3 + ["replica_done"] * 3 + ["decided", "final"]


def test_a_round_is_streamed(server, client):
    request = {"claim": "2 + 2 = 4", "consensus": HONEST}
    events = list(client.stream("validate", request))
    assert [event.name for event in events] == NAMES
    assert events[-1].answer.require().verdict == "VALID"
    # A stream that breaks goes on with the end of the same round.
    with Front(server.url, ["cut", "pass"]) as front:
        with Jurat(front.url, server.key) as shaken:
            events = list(shaken.stream("validate", request))
    assert len(set(front.keys)) == 1 and len(front.keys) == 2
    assert events[0].name == "replica_started" and events[-1].name == "final"
    assert events[0].data["round_id"] == events[-1].answer.round_id
    with pytest.raises(ApiError) as raised:
        list(client.stream("validate", {"claim": "x", "session_id": "nobody"}))
    assert raised.value.code == "session_unknown"


def test_rounds_are_started_waited_for_and_cancelled(client):
    opened = client.start("validate", {"claim": "2 + 2 = 4", "consensus": HONEST})
    assert client.rounds.wait(opened["round_id"])["verdict"] == "VALID"
    opened = client.start("validate", {"claim": "2 + 2 = 4", "consensus": HANGING})
    with pytest.raises(WaitTimeout, match="is `open`"):
        client.rounds.wait(opened["round_id"], timeout_s=0)
    client.rounds.cancel(opened["round_id"])
    assert client.rounds.wait(opened["round_id"], timeout_s=30)["state"] == "cancelled"
    assert client.rounds.erase(opened["round_id"])["round_id"] == opened["round_id"]
    assert client.rounds.get(opened["round_id"])["asked"] is None


VERIFIER = {
    "name": "names-its-source",
    "description": "The answer names its source.",
    "criterion": json.dumps({"contains": {"field": "answer", "text": "Source:"}}),
    "input_contract": "text",
    "input_fields": ["answer"],
    "model_settings": {"model": "builtin/rules"},
}


def test_a_verifier_runs(client):
    assert client.verifiers.deploy(VERIFIER)["version"] == 1
    assert client.verifiers.run("names-its-source", {"answer": "Source: here."})["passed"] is True
    assert client.verifiers.run("names-its-source", {"answer": "It rains."})["passed"] is False
    assert client.verifiers.get("names-its-source")["criterion"] == VERIFIER["criterion"]
    assert "names-its-source" in [item["name"] for item in client.verifiers.list()]
    assert client.verifiers.revoke("names-its-source")["revoked"] is True


def test_a_task_is_decided(client):
    contract = client.tasks.sample("task-of-python")
    contract |= {"task_type": "echo", "inputs": {"prompt": "again"},
                 "output_schema": {"type": "object"}}
    made = client.tasks.submit({"contract": contract, "executors": ["one", "two"]})
    assert made["task_id"] == "task-of-python"
    assert client.tasks.wait("task-of-python", timeout_s=60)["state"] == "finalized"
    assert client.tasks.decision("task-of-python")["approvals"] == 1
    assert "task-of-python" in [item["task_id"] for item in client.tasks.list()]
    assert [event["seq"] for event in client.tasks.events("task-of-python")][:2] == [1, 2]
    with pytest.raises(ApiError):
        client.tasks.submit({"contract": {}})


def test_executors_and_sessions_are_administered(client):
    assert client.executors.get("one")["name"] == "one"
    assert {"one", "liar"} <= {item["name"] for item in client.executors.list()}
    assert client.executors.check("one")["capabilities"]["provider_family"] == "one"
    client.sessions.add({"id": "again", "executor": "one", "labels": ["spare"]})
    assert client.sessions.get("again")["executor"] == "one"
    assert "again" in [item["session_id"] for item in client.sessions.list()]
    client.sessions.remove("again")
    # More than a page of the list.
    for number in range(60):
        client.sessions.add({"id": f"more-{number}", "executor": "one"})
    assert {"more-0", "more-59"} <= {item["session_id"] for item in client.sessions.list()}
    client.executors.add("gone", "http://127.0.0.1:9", session=False)
    client.executors.remove("gone")
    assert "gone" not in [item["name"] for item in client.executors.list()]
    assert client.me()["key"]["name"] == "admin"
    assert client.request("GET", "/health")["status"] == "ok"


def test_the_asynchronous_client_does_the_same(server):
    async def work():
        async with AsyncJurat(server.url, server.key) as client:
            claims = [f"{n} + 1 = {n + 1}" for n in range(3)]
            asked = (client.validate(claim, consensus=HONEST) for claim in claims)
            verdicts = [answer.verdict for answer in await asyncio.gather(*asked)]
            request = {"claim": "2 + 2 = 4", "consensus": HONEST}
            names = [event.name async for event in client.stream("validate", request)]
            executors = [item["name"] async for item in client.executors.list()]
        with Front(server.url, ["busy", "break", "pass"]) as front:
            async with AsyncJurat(front.url, server.key) as client:
                answer = await client.validate("3 + 4 = 7", consensus=HONEST)
        return verdicts, names, executors, answer.verdict, len(set(front.keys))

    verdicts, names, executors, verdict, keys = asyncio.run(work())
    assert verdicts == ["VALID"] * 3 and names == NAMES and "one" in executors
    assert (verdict, keys) == ("VALID", 1)
