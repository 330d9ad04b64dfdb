"""A pytest plugin: the fixtures `jurat` and `assert_verified`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .answer import Answer
    from .client import Jurat


@pytest.fixture(scope="session")
def jurat() -> Iterator[Jurat]:
    """A client of the server at JURAT_URL, with the key JURAT_API_KEY."""
    from .client import Jurat

    with Jurat() as client:
        yield client


@pytest.fixture
def assert_verified(jurat: Jurat) -> Callable[..., Answer]:
    """Asserts that several executors agree that a claim, or an output, is valid."""
    from .errors import JuratError, NotAgreed

    def check(
        claim: Any,
        *,
        policy: Any = None,
        replicas: Any = 3,
        min_confidence: float = 0.0,
        **options: Any,
    ) -> Answer:
        __tracebackhide__ = True
        problem = ""
        try:
            answer = jurat.validate(claim, policy=policy, replicas=replicas, **options)
            return answer.require(min_confidence=min_confidence, verdict="VALID")
        except NotAgreed as error:
            problem = f"not verified: {claim!r}\n{error}"
        except JuratError as error:
            problem = f"could not be verified: {claim!r}\n{error}"
        pytest.fail(problem, pytrace=False)

    return check
