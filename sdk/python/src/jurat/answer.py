"""The answer of a round, with its agreement."""

from __future__ import annotations

from typing import Any, cast

from .errors import NotAgreed
from .schemas import Consensus, DelegateReply, Replica, VerdictReply


class Answer:
    """What the replicas of a round agreed on, if they did."""

    def __init__(self, reply: DelegateReply | VerdictReply) -> None:
        self.reply = reply
        """The whole reply."""
        self.confidence: float = reply["confidence"]
        """Estimated probability that the answer is right; 0 without an answer."""
        self.consensus: Consensus = reply["consensus"]
        self.replicas: list[Replica] = reply["replicas"]
        self.round_id: str = reply["round_id"]
        self.receipt_id: str = reply["receipt_id"]

    @property
    def verdict(self) -> str | None:
        """The label that won, such as `VALID` or `TRUE`; `OK` for a delegated job; or None."""
        if "status" in self.reply:
            return "OK" if self.reply.get("status") == "OK" else None
        return cast("str | None", self.reply.get("verdict"))

    @property
    def output(self) -> Any:
        """The output of a delegated job; None without agreement, and for other jobs."""
        return self.reply.get("output")

    @property
    def outcome(self) -> str:
        """`agreed`, `split`, `abstained` or `failed`."""
        return self.consensus["outcome"]

    @property
    def agreement(self) -> float:
        """The share of the replicas asked that support the answer."""
        return self.consensus["agreement"]

    @property
    def is_agreed(self) -> bool:
        return self.outcome == "agreed"

    def require(self, *, min_confidence: float = 0.0, verdict: str | None = None) -> Answer:
        """Returns this answer if it is agreed, confident enough, and the given verdict."""
        problem = None
        if not self.is_agreed:
            problem = f"the replicas do not agree (outcome {self.outcome})"
        elif verdict is not None and self.verdict != verdict:
            problem = f"the verdict is {self.verdict}, not {verdict}"
        elif self.confidence < min_confidence:
            problem = f"the confidence is {self.confidence:.4f}, below {min_confidence}"
        if problem is not None:
            raise NotAgreed(f"{problem}\n{self.describe()}", self)
        return self

    def describe(self) -> str:
        """The round in a few lines: what was decided, and what each replica said."""
        lines = [
            f"verdict {self.verdict}, outcome {self.outcome}, "
            f"agreement {self.agreement:.4f}, confidence {self.confidence:.4f}",
            *(_describe(replica) for replica in self.replicas),
            f"round {self.round_id}",
        ]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (f"<Answer {self.verdict} outcome={self.outcome} "
                f"confidence={self.confidence:.4f} round={self.round_id}>")


def _describe(replica: Replica) -> str:
    label = replica.get("verdict") or replica.get("status")
    error = replica.get("error")
    why = f" ({error['code']}: {error['detail']})" if error else ""
    return f"  {replica['session_id']} says {label}{why}"
