"""The exceptions of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from .answer import Answer
    from .schemas import Problem


class JuratError(Exception):
    """Every error of this package is one of these."""


class ApiError(JuratError):
    """The server refused a request, or failed: a problem with a stable `code`."""

    def __init__(self, problem: Problem, *, retry_after_s: float | None = None) -> None:
        self.problem = problem
        """The whole body of the error."""
        self.status: int = problem["status"]
        self.code: str = problem["code"]
        self.detail: str = problem["detail"]
        self.field: str | None = problem.get("field")
        """Path of the faulty field, such as `consensus.replicas`."""
        self.hint: str | None = problem.get("hint")
        """What to try next."""
        self.round_id: str | None = problem.get("round_id")
        self.retry_after_s = retry_after_s
        """How long the server asks to wait before another try."""
        at = f" at `{self.field}`" if self.field else ""
        hint = f" ({self.hint})" if self.hint else ""
        super().__init__(f"{self.code}{at}: {self.detail}{hint}")


class NotAgreed(JuratError):
    """`Answer.require` found no agreement, too little confidence, or another verdict."""

    def __init__(self, message: str, answer: Answer) -> None:
        super().__init__(message)
        self.answer = answer


class ConnectionFailed(JuratError, ConnectionError):
    """No try reached the server, or the connection broke on each."""


class RequestTimeout(JuratError, TimeoutError):
    """The server did not answer in time. Its work goes on: the same key gets its reply."""

    def __init__(self, message: str, idempotency_key: str | None) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key


class WaitTimeout(JuratError, TimeoutError):
    """A round or a task did not end while it was waited for."""


def problem_of(status: int, body: Any) -> Problem:
    """The problem in a reply; a proxy in between may have answered with anything."""
    if isinstance(body, dict) and isinstance(body.get("code"), str):
        return cast("Problem", {"status": status, "detail": "", **body})
    text = body if isinstance(body, str) else ""
    return cast("Problem", {
        "type": "about:blank", "title": "unknown", "status": status, "code": "unknown",
        "error": "unknown", "hint": "check that the URL is that of a Jurat server",
        "detail": f"HTTP {status} without a problem: {text[:200]}", "message": "",
    })
