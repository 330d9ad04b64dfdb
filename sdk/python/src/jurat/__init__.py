"""Client and executor for Jurat.

Names are loaded when they are used, so that an executor needs nothing but the standard library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .schemas import VERSION as __version__

if TYPE_CHECKING:
    from .aio import AsyncJurat
    from .answer import Answer
    from .calls import Event
    from .client import Jurat
    from .errors import (
        ApiError, ConnectionFailed, JuratError, NotAgreed, RequestTimeout, WaitTimeout)
    from .serving import Candidate, Executor, ExecutorError, Job, Judgement, executor

_MODULES = {
    "AsyncJurat": "aio", "Jurat": "client", "Answer": "answer", "Event": "calls",
    "ApiError": "errors", "ConnectionFailed": "errors", "JuratError": "errors",
    "NotAgreed": "errors", "RequestTimeout": "errors", "WaitTimeout": "errors",
    "Candidate": "serving", "Executor": "serving", "ExecutorError": "serving",
    "Job": "serving", "Judgement": "serving", "executor": "serving",
}

__all__ = [
    "Answer", "ApiError", "AsyncJurat", "Candidate", "ConnectionFailed", "Event", "Executor",
    "ExecutorError", "Job", "Judgement", "Jurat", "JuratError", "NotAgreed", "RequestTimeout",
    "WaitTimeout", "__version__", "executor",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
