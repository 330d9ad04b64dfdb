"""Answers by execution id, so that a call that is repeated does not do its work twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MOST_ANSWERS = 10_000
KEPT_S = 3600


class RememberedAnswer:
    """The answer to one execution, or the place for it."""

    def __init__(self, request_digest: str) -> None:
        self.lock = threading.Lock()
        self.request_digest = request_digest
        self.made_at = time.monotonic()
        self.has_answer = False
        self.answer: Any = None
        self.is_same = True

    def remember(self, answer: Any) -> None:
        self.answer, self.has_answer = answer, True


class RememberedAnswers:
    """The answers of the last hour. A repeat waits for the first call; a failure is forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[str, RememberedAnswer] = {}

    @contextmanager
    def entry(self, execution_id: str, request_digest: str) -> Iterator[RememberedAnswer]:
        """The entry of an execution, for this caller alone."""
        with self._lock:
            self._forget_old()
            entry = self._answers.setdefault(execution_id, RememberedAnswer(request_digest))
        if entry.request_digest != request_digest:
            other = RememberedAnswer(request_digest)
            other.is_same = False
            yield other
            return
        with entry.lock:
            yield entry

    def _forget_old(self) -> None:
        oldest = time.monotonic() - KEPT_S
        while self._answers:
            execution_id, entry = next(iter(self._answers.items()))
            if len(self._answers) < MOST_ANSWERS and oldest <= entry.made_at:
                return
            del self._answers[execution_id]
