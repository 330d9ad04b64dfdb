"""The endpoints of an executor, asked directly and by a node."""

import json
import subprocess
import sys
import threading

import httpx
import pytest

from conftest import PATIENCE_S, Server, honest
from jurat import ExecutorError, Judgement, Jurat, executor
from jurat.canonical import canonical, digest


def execution(**changes):
    return {
        "task_id": "t", "execution_id": "e-1", "task_type": "delegate", "profile": "default",
        "inputs": {"prompt": "hello"}, "task_contract": {"output_schema": {}}, "stage": "explore",
        "attempt_id": "1",
    } | changes


def verification(policy_id="vp.claim.v1", **changes):
    return {
        "candidate": {"candidate_id": "c", "execution_id": "e", "output": "2 + 2 = 4"},
        "output_schema": {},
        "policy": {"policy_id": policy_id, "policy_params": {},
                   "policy_hash": digest(policy_id + "{}")},
    } | changes


def test_the_same_execution_is_done_once():
    calls = []
    is_started, may_end = threading.Event(), threading.Event()

    @executor(task_types=["delegate"])
    def counts(job):
        calls.append(job)
        is_started.set()
        assert may_end.wait(PATIENCE_S)
        return {"n": len(calls)}

    with counts.running() as url, httpx.Client(base_url=url) as http:
        replies = []
        ask = lambda: replies.append(http.post("/execute", json=execution()).json())
        threads = [threading.Thread(target=ask) for _ in range(2)]
        threads[0].start()
        assert is_started.wait(PATIENCE_S)
        threads[1].start()
        may_end.set()
        for thread in threads:
            thread.join()
        assert replies[0] == replies[1] and replies[0]["candidate_output"] == {"n": 1}
        # A repeat may have another number, and nothing else.
        assert http.post("/execute", json=execution(attempt_id="2")).json() == replies[0]
        other = http.post("/execute", json=execution(inputs={"prompt": "bye"}))
        assert (other.status_code, other.json()["error"]) == (409, "execution_id_reused")
        assert len(calls) == 1


def test_a_failure_is_forgotten_and_is_no_verdict():
    failures = [ValueError("secret"), ExecutorError(502, "upstream_failed", "no model")]

    @executor()
    def fails(job):
        if failures:
            raise failures.pop(0)
        return "done"

    with fails.running() as url, httpx.Client(base_url=url) as http:
        first = http.post("/execute", json=execution())
        assert (first.status_code, first.json()["error"]) == (500, "executor_failed")
        assert "secret" not in first.text
        second = http.post("/execute", json=execution())
        assert (second.status_code, second.json()["error"]) == (502, "upstream_failed")
        assert http.post("/execute", json=execution()).json()["candidate_output"] == "done"


def test_bad_requests_are_refused_by_name():
    made = honest("strict")
    with made.running() as url, httpx.Client(base_url=url) as http:
        assert http.get("/health").json() == {"status": "ok"}
        assert http.get("/capabilities").json()["policies"] == ["vp.claim.v1"]
        cases = [
            ("/execute", b'{"a": 1, "a": 2}', 400, "invalid_json"),
            ("/execute", b'{"a": 9007199254740993}', 400, "invalid_json"),
            ("/execute", b"[]", 422, "request_invalid"),
            ("/execute", json.dumps(execution(inputs=1)).encode(), 422, "request_invalid"),
            ("/execute", json.dumps(execution(task_type="x")).encode(), 422, "task_type_unsupported"),
            ("/verify", json.dumps(verification("vp.other.v1")).encode(), 422, "policy_unsupported"),
            ("/nothing", b"{}", 404, "not_found"),
            ("/execute", b" " * (2 * 1024 * 1024 + 1), 413, "payload_too_large"),
        ]
        for path, body, status, error in cases:
            reply = http.post(path, content=body, headers={"Content-Type": "application/json"})
            assert (reply.status_code, reply.json()["error"]) == (status, error), (path, body[:50])
        wrong = verification()
        wrong["policy"]["policy_hash"] = "sha256:00"
        assert http.post("/verify", json=wrong).json()["error"] == "policy_invalid"
        assert http.post("/execute", json=execution(inputs=1)).json()["field"] == "inputs"


def test_a_judge_says_what_it_knows():
    said = [True, False, None, Judgement(False, 0.7, [1020, 7]), "yes"]

    @executor()
    async def answers(job):
        return {"answer": job.inputs["prompt"]}

    @answers.judge
    async def judge(candidate):
        return said.pop(0)

    with answers.running() as url, httpx.Client(base_url=url) as http:
        assert http.post("/execute", json=execution()).json()["candidate_output"]["answer"] == "hello"
        replies = [http.post("/verify", json=verification()) for _ in range(5)]
    bodies = [reply.json() for reply in replies]
    assert [body["verification_status"] for body in bodies[:4]] == [
        "passed", "failed", "inconclusive", "failed"]
    assert [body["reason_codes"] for body in bodies[:4]] == [[], [1020], [1021], [1020, 7]]
    assert bodies[3]["score"] == 0.7 and replies[4].status_code == 500


def test_a_token_and_a_signature_are_asked_for(tmp_path):
    server = Server(tmp_path)
    try:
        known = honest("known", node_keys=[server.node_key()])
        strange = honest("strange", node_keys=["00" * 32])
        secret = honest("secret", token="s3cret")
        with known.running() as one, strange.running() as two, secret.running() as three, \
                Jurat(server.url, server.key) as client:
            client.executors.add("known", one)
            client.executors.add("strange", two)
            asked = {"replicas": 1, "spares": 0}
            answer = client.validate("2 + 2 = 4", consensus=asked | {"session_pool": ["known"]})
            assert answer.verdict == "VALID"
            answer = client.validate("2 + 2 = 4", consensus=asked | {"session_pool": ["strange"]})
            assert answer.replicas[0]["error"]["code"] == "http_status"
            assert httpx.post(f"{one}/verify", json=verification()).status_code == 401
            assert httpx.post(f"{three}/verify", json=verification()).status_code == 401
            headers = {"Authorization": "Bearer s3cret"}
            assert httpx.post(f"{three}/verify", json=verification(), headers=headers).is_success
    finally:
        server.stop()


def test_an_executor_needs_only_the_standard_library():
    code = "import sys; sys.modules['httpx'] = None\nfrom jurat import executor; print(executor)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("value", "text"), [
    (333333333.33333329, "333333333.3333333"), (1e30, "1e+30"), (4.50, "4.5"), (2e-3, "0.002"),
    (1e-27, "1e-27"), (1e21, "1e+21"), (1e20, "100000000000000000000"), (1.5e-7, "1.5e-7"),
    (0.000001, "0.000001"), (-0.0, "0"), (-12.0, "-12"), (5e-324, "5e-324"),
    ({"\u20ac": 1, "\U0001f600": 2, "\ufb33": 3}, '{"\u20ac":1,"\U0001f600":2,"\ufb33":3}'),
    ([None, True, "\u000f\n\"\\"], '[null,true,"\\u000f\\n\\"\\\\"]'),
])
def test_canonical_json(value, text):
    assert canonical(value) == text
