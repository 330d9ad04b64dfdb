"""An executor: a function that answers, served over HTTP with the standard library alone."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .canonical import canonical, digest, parse
from .remembered import RememberedAnswers

log = logging.getLogger("jurat.executor")

CLAIM_POLICY = "vp.claim.v1"
SCHEMA_POLICY = "vp.schema_only.v1"
MOST_BYTES = 2 * 1024 * 1024
IDLE_S = 35
CLAIM_FALSE, CLAIM_UNDECIDED = 1020, 1021


@dataclass(frozen=True)
class Job:
    """One request to `/execute`."""

    task_type: str
    inputs: dict[str, Any]
    """For `delegate` the input with `objective` and `prompt`; for `factcheck` the `claim`."""
    output_schema: Any
    """What the output must match."""
    profile: str
    time_ms: int | None
    """How long the caller waits."""
    request: dict[str, Any]
    """The whole request, with its contract."""


@dataclass(frozen=True)
class Candidate:
    """One request to `/verify`."""

    output: Any
    """The claim, or the output to judge."""
    output_schema: Any
    policy_id: str
    policy_params: dict[str, Any]
    request: dict[str, Any]
    """The whole request, with the evidence."""


@dataclass(frozen=True)
class Judgement:
    """A verdict with its confidence. `passed` is None if the executor cannot tell."""

    passed: bool | None
    score: float = 0.9
    reason_codes: Sequence[int] | None = None


class ExecutorError(Exception):
    """Answers with this status and code. A failure is never a verdict."""

    def __init__(self, status: int, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": code, "message": message} | ({"field": field} if field else {})


Answering = Callable[[Job], Any]
Judging = Callable[[Candidate], "Judgement | bool | None"]


def executor(
    *,
    task_types: Sequence[str] = ("*",),
    profiles: Sequence[str] = ("default",),
    provider_family: str = "python",
    model_id: str | None = None,
    token: str | None = None,
    node_keys: Sequence[str] | None = None,
    max_running: int = 64,
) -> Callable[[Answering], Executor]:
    """Turns a function from a job to an output into an executor.

    Executors that do not share a model should differ in `provider_family` and `model_id`. With a
    `token`, requests need it as a bearer token. With `node_keys`, the public keys of nodes in hex,
    requests need the signature of one of them (install `jurat[signed]`).
    """

    def wrap(function: Answering) -> Executor:
        capabilities: dict[str, Any] = {
            "task_types": list(task_types), "profiles": list(profiles),
            "provider_family": provider_family, "model_id": model_id or function.__name__,
            "policies": [],
        }
        return Executor(function, capabilities, token, node_keys, max_running)

    return wrap


class Executor:
    """A function with its four endpoints. Calling it calls the function."""

    def __init__(
        self, function: Answering, capabilities: dict[str, Any], token: str | None,
        node_keys: Sequence[str] | None, max_running: int,
    ) -> None:
        self._function = function
        self._judges: dict[str, Judging] = {}
        self._answers = RememberedAnswers()
        self._token = token
        self._node_keys = node_keys
        self._permits = threading.BoundedSemaphore(max_running)
        self.capabilities = capabilities

    def __call__(self, job: Job) -> Any:
        return self._function(job)

    def judge(self, function: Judging | None = None, *, policy: str = CLAIM_POLICY) -> Any:
        """Decorates the function that decides a candidate: True, False, or None for cannot tell.

        `policy` may also be one of your own, which `/capabilities` then names.
        """
        def wrap(function: Judging) -> Judging:
            self._judges[policy] = function
            self.capabilities["policies"] = sorted(self._judges)
            return function

        return wrap if function is None else wrap(function)

    def serve(self, port: int = 8787, host: str = "127.0.0.1") -> None:
        """Serves until the program is interrupted. Port 0 takes a free one."""
        server = self._server(host, port)
        print(f"listening on http://{host}:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            server.server_close()

    @contextmanager
    def running(self, port: int = 0, host: str = "127.0.0.1") -> Iterator[str]:
        """Serves beside the program, and gives the URL."""
        server = self._server(host, port)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def _server(self, host: str, port: int) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer((host, port), type("Handler", (_Handler,), {"service": self}))
        # Calls that hang must not keep the program from ending.
        server.daemon_threads, server.block_on_close = True, False
        return server

    def _execute(self, request: dict[str, Any]) -> dict[str, Any]:
        execution_id, task_type = _text(request, "execution_id"), _text(request, "task_type")
        profile = request.get("profile", "default")
        _declared(task_type, self.capabilities["task_types"], "task_type")
        _declared(profile, self.capabilities["profiles"], "profile")
        contract = _object(request, "task_contract")
        job = Job(
            task_type=task_type, inputs=_object(request, "inputs"), profile=profile,
            output_schema=contract.get("output_schema", {}), request=request,
            time_ms=(contract.get("budget") or {}).get("time_ms"),
        )
        told = {name: it for name, it in request.items() if name not in ("attempt_id", "seed_bundle")}
        with self._answers.entry(execution_id, digest(canonical(told))) as entry:
            if not entry.is_same:
                raise ExecutorError(
                    409, "execution_id_reused", "execution_id was used with another request",
                    "execution_id")
            if not entry.has_answer:
                entry.remember(_finish(self._function(job)))
            output = entry.answer
        return {"candidate_output": output, "evidence_inline": [], "evidence_refs": []}

    def _verify(self, request: dict[str, Any]) -> dict[str, Any]:
        given, policy = _object(request, "candidate"), _object(request, "policy")
        policy_id, params = _text(policy, "policy_id"), policy.get("policy_params") or {}
        if policy.get("policy_hash") != digest(policy_id + canonical(params)):
            raise ExecutorError(
                400, "policy_invalid", "policy binding invalid: policy_hash does not match",
                "policy.policy_hash")
        schema = request.get("output_schema", {})
        candidate = Candidate(given.get("output"), schema, policy_id, params, request)
        judgement = self._judgement(candidate)
        result = {
            "candidate_id": _text(given, "candidate_id"),
            "execution_id": _text(given, "execution_id"),
            "passed": judgement.passed is True,
            "score": judgement.score,
            "reason_codes": _codes(judgement),
            "provider_family": self.capabilities["provider_family"],
            "model_id": self.capabilities["model_id"],
            "policy_hash": policy["policy_hash"],
        }
        status = {True: "passed", False: "failed", None: "inconclusive"}[judgement.passed]
        return result | {
            "verification_status": status, "verifier_result_hash": digest(canonical(result))}

    def _judgement(self, candidate: Candidate) -> Judgement:
        judge = self._judges.get(candidate.policy_id)
        if judge is not None:
            said = _finish(judge(candidate))
            if isinstance(said, Judgement):
                return said
            if said is None or isinstance(said, bool):
                return Judgement(said, 0.5 if said is None else 0.9)
            raise TypeError(f"a judge returns True, False, None or a Judgement, not {said!r}")
        if candidate.policy_id == SCHEMA_POLICY and candidate.output_schema == {}:
            return Judgement(True)  # An empty schema matches everything.
        # The node then says NEEDS_SPEC: better than a verdict that nobody computed.
        raise ExecutorError(
            422, "policy_unsupported", f"`{candidate.policy_id}` is not decided here", "policy")

    def _handle(self, method: str, path: str, headers: Any, body: bytes) -> dict[str, Any]:
        """The reply to one request, or an ExecutorError."""
        if (method, path) == ("GET", "/health"):
            return {"status": "ok"}
        self._admit(method, path, headers, body)
        if (method, path) == ("GET", "/capabilities"):
            return self.capabilities
        action = {"/execute": self._execute, "/verify": self._verify}.get(path)
        if action is None:
            raise ExecutorError(404, "not_found", f"`{path}` is not an endpoint of an executor")
        if method != "POST":
            raise ExecutorError(405, "method_not_allowed", f"`{path}` takes POST")
        try:
            request = parse(body)
        except (ValueError, RecursionError) as error:
            raise ExecutorError(400, "invalid_json", str(error)) from error
        if not isinstance(request, dict):
            raise ExecutorError(422, "request_invalid", "the request is not an object")
        if not self._permits.acquire(blocking=False):
            raise ExecutorError(503, "overloaded", "too many requests at once")
        try:
            return action(request)
        finally:
            self._permits.release()

    def _admit(self, method: str, path: str, headers: Any, body: bytes) -> None:
        if self._token is not None:
            given = headers.get("Authorization", "").encode()
            if not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
                raise ExecutorError(401, "auth_required", "send the token of this executor")
        if self._node_keys is not None and method == "POST":
            from .signature import is_signed
            if not is_signed(self._node_keys, path, headers, body):
                raise ExecutorError(401, "auth_required", "no known node signed this request")


def _finish(result: Any) -> Any:
    """The result of a function, which may be asynchronous."""
    if not inspect.iscoroutine(result):
        return result

    async def awaited() -> Any:
        return await result

    return asyncio.run(awaited())


def _codes(judgement: Judgement) -> list[int]:
    if judgement.reason_codes is not None:
        return list(judgement.reason_codes)
    return {True: [], False: [CLAIM_FALSE], None: [CLAIM_UNDECIDED]}[judgement.passed]


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise ExecutorError(422, "request_invalid", f"`{name}` must be a string", name)
    return value


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    value = fields.get(name)
    if not isinstance(value, dict):
        raise ExecutorError(422, "request_invalid", f"`{name}` must be an object", name)
    return value


def _declared(value: str, known: list[str], field: str) -> None:
    if value not in known and "*" not in known:
        raise ExecutorError(422, f"{field}_unsupported", f"`{value}` is not declared", field)


class _Handler(BaseHTTPRequestHandler):
    service: Executor
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    # Head and body leave in one packet.
    wbufsize = -1

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        try:
            status, body = 200, self.service._handle(method, self.path, self.headers, self._body())
        except ExecutorError as error:
            status, body = error.status, error.body
        except Exception as error:
            log.exception("the executor failed")
            status = 500
            body = {"error": "executor_failed", "message": type(error).__name__}
        self._send(status, body)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "Transfer-Encoding" in self.headers or not length.isdigit():
            self.close_connection = True
            raise ExecutorError(411, "length_required", "send Content-Length")
        if MOST_BYTES < int(length):
            self.close_connection = True
            raise ExecutorError(413, "payload_too_large", f"a body has at most {MOST_BYTES} bytes")
        return self.rfile.read(int(length))

    def _send(self, status: int, body: dict[str, Any]) -> None:
        try:
            data = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            log.error("the answer is not JSON: %s", error)
            status, data = 500, b'{"error":"executor_failed","message":"the answer is not JSON"}'
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            self.wfile.flush()
        except OSError:
            # The caller hung up; the answer is remembered for its next try.
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
