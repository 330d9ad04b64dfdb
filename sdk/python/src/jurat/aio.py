"""The asynchronous client. `just generate` writes client.py, the synchronous one, from this file."""

from __future__ import annotations

import asyncio
import time as clock
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote

import httpx

from . import calls, schemas
from .answer import Answer
from .calls import Call, Event
from .errors import ApiError, ConnectionFailed, RequestTimeout, WaitTimeout

Kind = Literal["delegate", "validate", "factcheck"]
Request = schemas.DelegateRequest | schemas.ValidateRequest | schemas.FactcheckRequest
ReplicaCount = Literal[1, 3, 5]
TASK_ENDS = ("finalized", "failed", "expired", "cancelled")
Reply = TypeVar("Reply")


class AsyncJurat:
    """A client of a Jurat server.

    Without `url` and `api_key`, it takes JURAT_URL and JURAT_API_KEY from the environment. A call
    that is refused with 429 or 503, or whose connection breaks, is sent again with the same
    idempotency key, up to `max_retries` times and after at most `max_wait_s` each time.
    `timeout_s` replaces the time that a reply may take, which follows from the work by default.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        max_retries: int = 3,
        max_wait_s: float = 30.0,
        timeout_s: float | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        options = calls.client_options(url, api_key)
        self._http = httpx.AsyncClient(**options, transport=transport)
        self._max_retries = max_retries
        self._max_wait_s = max_wait_s
        self._timeout_s = timeout_s
        self.rounds = AsyncRounds(self)
        self.verifiers = AsyncVerifiers(self)
        self.tasks = AsyncTasks(self)
        self.executors = AsyncExecutors(self)
        self.sessions = AsyncSessions(self)

    async def __aenter__(self) -> AsyncJurat:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def delegate(
        self,
        objective: str,
        *,
        input: Any = None,
        replicas: ReplicaCount | None = None,
        policy: schemas.PolicyChoice | None = None,
        output_schema: schemas.JsonSchema | None = None,
        timeout_s: float | None = None,
        consensus: schemas.ConsensusTerms | None = None,
        execution: schemas.Execution | None = None,
        context: Any = None,
        session_id: schemas.SessionRef | None = None,
        tools: Any = None,
        workflow: Any = None,
        actor: Any = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Has a job done by several executors, and compares their outputs."""
        if output_schema is not None:
            execution = {**(execution or {}), "output_schema": output_schema}
        fields = {
            "objective": objective, "input": input, "policy": policy, "consensus": consensus,
            "execution": execution, "context": context, "session_id": session_id, "tools": tools,
            "workflow": workflow, "actor": actor,
        }
        request = calls.round_request(fields, replicas, timeout_s)
        return Answer(await self._json(calls.ask("delegate", request, idempotency_key)))

    async def validate(
        self,
        claim: schemas.Claim,
        *,
        replicas: ReplicaCount | None = None,
        policy: schemas.PolicyChoice | None = None,
        output_schema: schemas.JsonSchema | None = None,
        evidence_inline: list[schemas.EvidenceText] | None = None,
        evidence_refs: list[schemas.EvidenceRef] | None = None,
        timeout_s: float | None = None,
        consensus: schemas.ConsensusTerms | None = None,
        execution: schemas.Execution | None = None,
        context: Any = None,
        session_id: schemas.SessionRef | None = None,
        tools: Any = None,
        workflow: Any = None,
        actor: Any = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Has a claim, or an output, judged under a policy: `VALID` or `INVALID`."""
        fields = {
            "claim": claim, "policy": policy, "output_schema": output_schema,
            "evidence_inline": evidence_inline, "evidence_refs": evidence_refs,
            "consensus": consensus, "execution": execution, "context": context,
            "session_id": session_id, "tools": tools, "workflow": workflow, "actor": actor,
        }
        request = calls.round_request(fields, replicas, timeout_s)
        return Answer(await self._json(calls.ask("validate", request, idempotency_key)))

    async def factcheck(
        self,
        claim: schemas.FactClaim,
        *,
        replicas: ReplicaCount | None = None,
        policy: schemas.FactcheckPolicyChoice | None = None,
        mode: schemas.FactcheckMode | None = None,
        timeout_s: float | None = None,
        consensus: schemas.ConsensusTerms | None = None,
        execution: schemas.Execution | None = None,
        context: Any = None,
        session_id: schemas.SessionRef | None = None,
        tools: Any = None,
        workflow: Any = None,
        actor: Any = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Has a fact checked: `TRUE`, `FALSE` or `UNSURE`."""
        fields = {
            "claim": claim, "policy": policy, "mode": mode, "consensus": consensus,
            "execution": execution, "context": context, "session_id": session_id, "tools": tools,
            "workflow": workflow, "actor": actor,
        }
        request = calls.round_request(fields, replicas, timeout_s)
        return Answer(await self._json(calls.ask("factcheck", request, idempotency_key)))

    async def start(
        self, kind: Kind, request: Request, *, idempotency_key: str | None = None
    ) -> schemas.Round:
        """Opens a round and does not wait for it; `rounds.wait` does."""
        call = calls.ask(kind, cast(Any, request), idempotency_key)
        call.headers["Prefer"] = "respond-async"
        return cast(schemas.Round, await self._json(call))

    async def stream(
        self, kind: Kind, request: Request, *, idempotency_key: str | None = None
    ) -> AsyncIterator[Event]:
        """The events of a round while it runs; the last one is `final`, with the answer.

        If the connection breaks, the stream goes on with the event `final` of the same round.
        """
        call = calls.ask(kind, cast(Any, request), idempotency_key)
        call.headers["Accept"] = "text/event-stream"
        for attempt in range(self._max_retries + 1):
            try:
                async with self._http.stream(**self._arguments(call)) as reply:
                    if reply.is_error:
                        error = calls.api_error(
                            reply.status_code, reply.headers, await reply.aread())
                        await self._pause(attempt, call, error)
                        continue
                    reader = calls.EventReader()
                    async for line in reply.aiter_lines():
                        for event in reader.read(line):
                            yield event
                            if event.name == "final":
                                return
                failure: httpx.TransportError = httpx.RemoteProtocolError("the stream ended early")
            except httpx.TransportError as broken:
                failure = broken
            await self._pause(attempt, call, failure)

    async def me(self) -> schemas.Me:
        """The account and the key of this client."""
        return cast(schemas.Me, await self._json(Call("GET", "/v1/me")))

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        timeout_s: float = 30.0,
    ) -> Any:
        """Sends any other request of the API, with the same retries and errors.

        After a broken connection, a request that changes something is sent again only if it has an
        idempotency key.
        """
        is_repeatable = method.upper() in ("GET", "HEAD") or idempotency_key is not None
        return await self._json(Call(
            method.upper(), path, json=json, params=params or {}, timeout_s=timeout_s,
            idempotency_key=idempotency_key, is_repeatable=is_repeatable))

    async def _json(self, call: Call) -> Any:
        for attempt in range(self._max_retries + 1):
            try:
                reply = await self._http.request(**self._arguments(call))
            except httpx.TransportError as broken:
                await self._pause(attempt, call, broken)
                continue
            if not reply.is_error:
                return reply.json() if reply.content else None
            error = calls.api_error(reply.status_code, reply.headers, reply.content)
            await self._pause(attempt, call, error)
        raise AssertionError("the last try returns or raises")

    def _arguments(self, call: Call) -> dict[str, Any]:
        return {
            "method": call.method, "url": call.path, "json": call.json, "params": call.query(),
            "headers": call.request_headers(),
            "timeout": httpx.Timeout(self._timeout_s or call.timeout_s, connect=10.0),
        }

    async def _pause(self, attempt: int, call: Call, error: Exception) -> None:
        """Waits before the next try, or raises the error if there is none."""
        wait_s = calls.backoff_s(attempt)
        if isinstance(error, httpx.TransportError):
            if attempt == self._max_retries or not calls.may_repeat(call, error):
                raise self._broken(call, error) from error
        elif isinstance(error, ApiError):
            wait_s = max(wait_s, error.retry_after_s or 0.0)
            is_temporary = error.status in (429, 503) and wait_s <= self._max_wait_s
            if attempt == self._max_retries or not is_temporary:
                raise error
        await asyncio.sleep(wait_s)

    def _broken(self, call: Call, error: httpx.TransportError) -> Exception:
        target = f"{call.method} {self._http.base_url}{call.path.removeprefix('/')}"
        if isinstance(error, httpx.ReadTimeout):
            waited_s = self._timeout_s or call.timeout_s
            key = f"; idempotency_key={call.idempotency_key!r} gets the reply of the same work"
            message = f"{target} did not answer within {waited_s:g} s"
            return RequestTimeout(message + (key if call.idempotency_key else ""),
                                  call.idempotency_key)
        return ConnectionFailed(f"{target} failed: {error or type(error).__name__}")

    async def _items(self, path: str, params: dict[str, Any]) -> AsyncIterator[Any]:
        """The items of a list, page by page."""
        while True:
            page = await self._json(Call("GET", path, params=params))
            for item in page["items"]:
                yield item
            if page["next_cursor"] is None:
                return
            params = {**params, "cursor": page["next_cursor"]}

    async def _write(
        self, method: str, path: str, body: Any = None, key: str | None = None,
        params: dict[str, Any] | None = None, timeout_s: float = 30.0,
    ) -> Any:
        return await self._json(Call(
            method, path, json=body, params=params or {}, timeout_s=timeout_s,
            idempotency_key=key or calls.new_key()))

    async def _wait(
        self, path: str, ends: tuple[str, ...], timeout_s: float | None
    ) -> Any:
        """Asks until the state is one of `ends`; each request waits at the server."""
        deadline = None if timeout_s is None else clock.monotonic() + timeout_s
        while True:
            left = float(calls.MOST_WAIT_S) if deadline is None else deadline - clock.monotonic()
            wait = max(0, min(calls.MOST_WAIT_S, int(left + 0.999)))
            call = Call("GET", path, params={"wait": wait}, timeout_s=wait + calls.SLACK_S)
            found = await self._json(call)
            if found["state"] in ends:
                return found
            if deadline is not None and deadline <= clock.monotonic():
                raise WaitTimeout(f"{path} is `{found['state']}` after {timeout_s:g} s")


class AsyncFamily:
    """Operations on one kind of thing."""

    def __init__(self, client: AsyncJurat) -> None:
        self._client = client


class AsyncRounds(AsyncFamily):
    """Rounds that were opened before."""

    async def get(self, round_id: str) -> schemas.Round:
        """A round: its request, state and outcome."""
        path = f"/v1/rounds/{quote(round_id, safe='')}"
        return cast(schemas.Round, await self._client._json(Call("GET", path)))

    async def list(
        self, *, kind: Kind | None = None, outcome: schemas.Outcome | None = None,
        state: schemas.RoundState | None = None, since: str | None = None,
        until: str | None = None,
    ) -> AsyncIterator[schemas.Round]:
        """The rounds of the account, the newest first."""
        params = {"kind": kind, "outcome": outcome, "state": state, "since": since, "until": until}
        async for item in self._client._items("/v1/rounds", params):
            yield item

    async def wait(self, round_id: str, *, timeout_s: float | None = None) -> schemas.Round:
        """Waits until a round has ended."""
        path = f"/v1/rounds/{quote(round_id, safe='')}"
        ends = ("closed", "expired", "cancelled")
        return cast(schemas.Round, await self._client._wait(path, ends, timeout_s))

    async def cancel(self, round_id: str) -> schemas.Round:
        """Cancels an open round."""
        path = f"/v1/rounds/{quote(round_id, safe='')}/cancel"
        return cast(schemas.Round, await self._client._json(Call("POST", path)))

    async def erase(self, round_id: str) -> schemas.RoundErased:
        """Erases what was asked and answered in a round."""
        path = f"/v1/rounds/{quote(round_id, safe='')}/payload"
        return cast(schemas.RoundErased, await self._client._write("DELETE", path))


class AsyncVerifiers(AsyncFamily):
    """Versioned checks in the registry."""

    async def run(
        self,
        ref: str,
        inputs: dict[str, str],
        *,
        version: int | None = None,
        replicas: ReplicaCount | None = None,
        judges: Sequence[schemas.JudgeModel] | None = None,
        media_url: str | None = None,
        fresh: bool | None = None,
        timeout_s: float = 120.0,
        idempotency_key: str | None = None,
    ) -> schemas.VerifierRun:
        """Has judges decide whether the inputs pass a verifier."""
        fields = {
            "inputs": inputs, "version": version, "replicas": replicas, "judges": judges,
            "media_url": media_url, "fresh": fresh, "timeout_ms": round(timeout_s * 1000),
        }
        return cast(schemas.VerifierRun, await self._client._write(
            "POST", f"/v1/verifiers/{quote(ref, safe='')}/runs", calls.without_none(fields),
            idempotency_key, timeout_s=timeout_s + calls.SLACK_S))

    async def deploy(
        self, verifier: schemas.DeployVerifierRequest, *, idempotency_key: str | None = None
    ) -> schemas.DeployedVerifier:
        """Adds a verifier, or a version of one."""
        return cast(schemas.DeployedVerifier, await self._client._write(
            "POST", "/v1/verifiers", verifier, idempotency_key))

    async def get(self, ref: str, *, version: int | None = None) -> schemas.Verifier:
        """A verifier with its configuration."""
        call = Call("GET", f"/v1/verifiers/{quote(ref, safe='')}", params={"version": version})
        return cast(schemas.Verifier, await self._client._json(call))

    async def list(self) -> AsyncIterator[schemas.VerifierSummary]:
        """The verifiers that the account can run."""
        async for item in self._client._items("/v1/verifiers", {}):
            yield item

    async def revoke(self, ref: str) -> schemas.RevokedVerifier:
        """Ends a verifier; its runs stay."""
        path = f"/v1/verifiers/{quote(ref, safe='')}"
        return cast(schemas.RevokedVerifier, await self._client._write("DELETE", path))


class AsyncTasks(AsyncFamily):
    """Jobs under a contract: proposed, verified and voted on."""

    async def sample(self, task_id: str | None = None) -> schemas.TaskContract:
        """A contract to start from."""
        call = Call("GET", "/v1/tasks/sample", params={"task_id": task_id})
        return cast(schemas.TaskContract, await self._client._json(call))

    async def submit(
        self, task: schemas.SubmitTask, *, idempotency_key: str | None = None
    ) -> schemas.Task:
        """Submits a contract, alone or with the executors for it."""
        return cast(schemas.Task, await self._client._write(
            "POST", "/v1/tasks", task, idempotency_key))

    async def get(self, task_id: str) -> schemas.Task:
        """A task and its state."""
        call = Call("GET", f"/v1/tasks/{quote(task_id, safe='')}")
        return cast(schemas.Task, await self._client._json(call))

    async def wait(self, task_id: str, *, timeout_s: float | None = None) -> schemas.Task:
        """Waits until a task has ended."""
        path = f"/v1/tasks/{quote(task_id, safe='')}"
        return cast(schemas.Task, await self._client._wait(path, TASK_ENDS, timeout_s))

    async def decision(self, task_id: str) -> schemas.TaskDecision:
        """The decision of a task that is final."""
        call = Call("GET", f"/v1/tasks/{quote(task_id, safe='')}/decision")
        return cast(schemas.TaskDecision, await self._client._json(call))

    async def cancel(self, task_id: str, *, reason: str | None = None) -> schemas.Task:
        """Cancels a task."""
        path = f"/v1/tasks/{quote(task_id, safe='')}/cancel"
        body = calls.without_none({"reason": reason})
        return cast(schemas.Task, await self._client._write("POST", path, body))

    async def list(
        self, *, state: schemas.TaskState | None = None, task_type: str | None = None
    ) -> AsyncIterator[schemas.TaskSummary]:
        """The tasks of the account."""
        params = {"state": state, "task_type": task_type}
        async for item in self._client._items("/v1/tasks", params):
            yield item

    async def events(self, task_id: str) -> AsyncIterator[schemas.TaskEvent]:
        """The events of a task until now."""
        path = f"/v1/tasks/{quote(task_id, safe='')}/events"
        async for item in self._client._items(path, {}):
            yield item


class AsyncExecutors(AsyncFamily):
    """The services that do the work. Needs a key of the operator."""

    async def add(
        self,
        name: str,
        url: str,
        *,
        must_answer: bool | None = None,
        session: schemas.SessionChoice | None = None,
        token_env: str | None = None,
        agent_events_url: str | None = None,
    ) -> schemas.Executor:
        """Registers an executor, with a session of the same name unless `session` differs."""
        body = calls.without_none({
            "name": name, "url": url, "must_answer": must_answer, "session": session,
            "token_env": token_env, "agent_events_url": agent_events_url,
        })
        return cast(schemas.Executor, await self._client._write("POST", "/v1/executors", body))

    async def get(self, name: str) -> schemas.Executor:
        """An executor and its health."""
        call = Call("GET", f"/v1/executors/{quote(name, safe='')}")
        return cast(schemas.Executor, await self._client._json(call))

    async def list(self) -> AsyncIterator[schemas.Executor]:
        """Every executor."""
        async for item in self._client._items("/v1/executors", {}):
            yield item

    async def check(self, name: str) -> schemas.Probe:
        """Probes an executor now."""
        call = Call("POST", f"/v1/executors/{quote(name, safe='')}/check")
        return cast(schemas.Probe, await self._client._json(call))

    async def remove(self, name: str) -> schemas.RemovedExecutor:
        """Removes an executor and its sessions."""
        path = f"/v1/executors/{quote(name, safe='')}"
        return cast(schemas.RemovedExecutor, await self._client._write("DELETE", path))


class AsyncSessions(AsyncFamily):
    """Named routes to executors. Adding and removing needs a key of the operator."""

    async def add(self, session: schemas.AddSessionRequest) -> schemas.Session:
        """Adds a session to an executor."""
        return cast(schemas.Session, await self._client._write("POST", "/v1/sessions", session))

    async def get(self, session_id: str) -> schemas.Session:
        """A session."""
        call = Call("GET", f"/v1/sessions/{quote(session_id, safe='')}")
        return cast(schemas.Session, await self._client._json(call))

    async def list(self) -> AsyncIterator[schemas.Session]:
        """Every session that the account may use."""
        async for item in self._client._items("/v1/sessions", {}):
            yield item

    async def remove(self, session_id: str) -> schemas.Removed:
        """Removes a session."""
        path = f"/v1/sessions/{quote(session_id, safe='')}"
        return cast(schemas.Removed, await self._client._write("DELETE", path))
