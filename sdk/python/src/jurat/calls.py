"""What both clients share: one logical call, when it is repeated, and how its reply is read."""

from __future__ import annotations

import email.utils
import json
import os
import random
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx

from .answer import Answer
from .errors import ApiError, problem_of
from .schemas import VERSION

DEFAULT_URL = "http://127.0.0.1:5872"
ROUND_S = 60.0
"""Deadline of a round that names none."""
SLACK_S = 15.0
"""How much longer than the work a reply may take."""
MOST_WAIT_S = 60
"""The longest wait that the server takes in one request."""
FIRST_BACKOFF_S = 0.25


@dataclass
class Call:
    """One logical call. Its key stays the same however often it is sent."""

    method: str
    path: str
    json: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    idempotency_key: str | None = None
    is_repeatable: bool = True
    """Whether it may be sent again after a connection broke, so that nothing is done twice."""
    timeout_s: float = 30.0

    def request_headers(self) -> dict[str, str]:
        key = {"Idempotency-Key": self.idempotency_key} if self.idempotency_key else {}
        return {**self.headers, **key}

    def query(self) -> dict[str, Any]:
        return {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in self.params.items() if value is not None
        }


class Event(NamedTuple):
    """One event of a round's stream."""

    name: str
    """`replica_started`, `replica_done`, `decided` or `final`."""
    data: dict[str, Any]

    @property
    def answer(self) -> Answer | None:
        """The answer, in the event `final`."""
        return Answer(self.data) if self.name == "final" else None  # type: ignore[arg-type]


def new_key() -> str:
    return str(uuid.uuid4())


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def client_options(url: str | None, api_key: str | None) -> dict[str, Any]:
    """Where to send requests, and as whom; the environment decides what is left out."""
    url = url or os.environ.get("JURAT_URL") or os.environ.get("JURAT_SERVER") or DEFAULT_URL
    key = api_key or os.environ.get("JURAT_API_KEY") or os.environ.get("JURAT_KEY")
    headers = {"User-Agent": f"jurat-python/{VERSION}"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return {"base_url": url, "headers": headers, "follow_redirects": False}


def ask(kind: str, request: Mapping[str, Any], idempotency_key: str | None) -> Call:
    """A call of delegate, validate or factcheck."""
    execution = request.get("execution") or {}
    seconds = execution.get("timeout") or ROUND_S
    if execution.get("timeout_ms"):
        seconds = execution["timeout_ms"] / 1000
    return Call("POST", f"/api/v3/{kind}", json=request, timeout_s=seconds + SLACK_S,
                idempotency_key=idempotency_key or new_key())


def round_request(
    fields: Mapping[str, Any], replicas: int | None, timeout_s: float | None
) -> dict[str, Any]:
    """A request with the short forms in their places: `replicas` and `timeout_s`."""
    request = without_none(fields)
    if replicas is not None:
        request["consensus"] = {**request.get("consensus", {}), "replicas": replicas}
    if timeout_s is not None:
        milliseconds = {"timeout_ms": max(1, round(timeout_s * 1000))}
        request["execution"] = {**request.get("execution", {}), **milliseconds}
    return request


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """How long a reply asks to wait: seconds, or a date."""
    value = headers.get("retry-after", "").strip()
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def backoff_s(attempt: int) -> float:
    """Twice as long for each try, with a random part, so that callers spread."""
    return FIRST_BACKOFF_S * 2.0**attempt * random.uniform(1.0, 1.5)


def may_repeat(call: Call, error: httpx.TransportError) -> bool:
    """A request that never left may always be sent again. A late reply is the caller's decision."""
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return True
    return call.is_repeatable and not isinstance(error, httpx.TimeoutException)


def api_error(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    try:
        value = json.loads(body)
    except ValueError:
        value = body.decode(errors="replace")
    return ApiError(problem_of(status, value), retry_after_s=retry_after_s(headers))


class EventReader:
    """Reads server-sent events line by line."""

    def __init__(self) -> None:
        self._name = "message"
        self._data: list[str] = []

    def read(self, line: str) -> Iterator[Event]:
        """The event that ends with this line, if one does."""
        if line == "":
            if self._data:
                event = Event(self._name, json.loads("\n".join(self._data)))
                if event.name == "error":
                    raise ApiError(problem_of(event.data.get("status", 500), event.data))
                yield event
            self._name, self._data = "message", []
        elif line.startswith("event:"):
            self._name = line[6:].strip()
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
