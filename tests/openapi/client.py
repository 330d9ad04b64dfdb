"""Runs rounds with the client that openapi-python-client has made of the document.

Usage: client.py URL KEY
"""

import sys

from jurat_client import AuthenticatedClient
from jurat_client.api.consensus import delegate, validate
from jurat_client.api.rounds import round_list, round_show
from jurat_client.models import (
    ConsensusTerms,
    DelegateReply,
    DelegateRequest,
    ErrorCode,
    Kind,
    Label,
    Outcome,
    Problem,
    Replicas,
    Round,
    RoundListKind,
    RoundPage,
    ValidateRequest,
    VerdictReply,
)


def of_type(value, kind):
    """The value, which must be of the type that the client promises."""
    assert isinstance(value, kind), f"expected {kind.__name__}, got {value!r}"
    return value


def main(url, key):
    with AuthenticatedClient(base_url=url, token=key) as client:
        three = ConsensusTerms(replicas=Replicas.VALUE_3)

        job = DelegateRequest(objective="Repeat the prompt.", consensus=three)
        done = of_type(delegate.sync(client=client, body=job), DelegateReply)
        assert done.status == "OK", done
        assert len(done.replicas) == 3 and done.consensus.outcome == Outcome.AGREED, done

        claim = ValidateRequest(claim="12 * 12 = 144", consensus=three)
        judged = of_type(validate.sync(client=client, body=claim), VerdictReply)
        assert judged.verdict == Label.VALID, judged
        assert 0 < judged.confidence < 1, judged

        page = round_list.sync(client=client, kind=RoundListKind.DELEGATE, limit=1)
        [last] = of_type(page, RoundPage).items
        assert last.round_id == done.round_id and last.kind == Kind.DELEGATE, last
        shown = of_type(round_show.sync(judged.round_id, client=client), Round)
        assert shown.verdict == Label.VALID and shown.receipt_id == judged.receipt_id, shown

        nobody = ConsensusTerms(session_pool=["nobody"])
        refused = delegate.sync(client=client, body=DelegateRequest(objective="x", consensus=nobody))
        problem = of_type(refused, Problem)
        assert problem.code == ErrorCode.SESSION_UNKNOWN and problem.status == 422, problem
        assert problem.field == "consensus.session_pool", problem
    with AuthenticatedClient(base_url=url, token="jrt_live_wrong") as stranger:
        problem = of_type(round_list.sync(client=stranger), Problem)
        assert problem.code == ErrorCode.AUTH_REQUIRED, problem
    print("the generated client ran two rounds")


main(*sys.argv[1:])
