"""The requests and replies of the API. Written by `just generate`; do not change it by hand."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict

VERSION = "0.1.0"


class _AddExecutorRequest(TypedDict):
    name: str
    """The name of the executor."""
    url: str
    """Base URL, `http` or `https`, without credentials, query or fragment. With `remote`, the
    address of the executor as its own node knows it; this server never calls it.
    """


class AddExecutorRequest(_AddExecutorRequest, total=False):
    """A request to register an executor."""

    agent_events_url: str | None
    """Base URL under which `/agent-events` receives events; if left out, no events are sent.
    `agent_event_callback_base_url` is an alias.
    """
    must_answer: bool | None
    """Registers the executor only if it is healthy and reports its capabilities now; if left
    out, it is registered anyway and `probe` shows its health.
    """
    remote: bool | None
    """Whether the executor belongs to another node, which calls it for this one; defaults to
    `false`. It needs `target_node`.
    """
    scope: str | None
    """The part of the network in which a remote executor is: `global`, `region:<name>`,
    `group:<name>` or `node:<public key>`. It is shown, and does not choose the node.
    """
    session: SessionChoice | None
    """The session to add with it; `false` for none; defaults to a session with the executor's
    name.
    """
    target_node: str | None
    """The node of a remote executor: the public key of a peer, in 64 hexadecimal digits."""
    token_env: str | None
    """Name of the environment variable with the bearer token, set where the server runs."""


class _AddSessionRequest(TypedDict):
    executor: str
    """The name of its executor."""
    id: NewSessionId


class AddSessionRequest(_AddSessionRequest, total=False):
    """A request to add a session. `session_id` is an alias of `id`."""

    labels: list[str] | None
    """Words that requests can route by; none by default."""
    price_micros: int | None
    """Price per call in millionths of a credit; 0 by default."""
    profile: str | None
    """One of the profiles that the executor declares; defaults to `default`."""
    reliability: float | None
    """Expected share of correct answers; defaults to the value of the tier. Stored in
    thousandths.
    """
    task_types: dict[str, str] | None
    """Maps task types to the executor's names for them; the key `*` matches any."""
    tier: Tier | None


Aggregation: TypeAlias = "Literal[\"majority\", \"mean\", \"median\"]"
"""How the scores of the winners are combined."""

Always: TypeAlias = "Literal[True]"
"""Must be true."""

AssignmentMode: TypeAlias = "Literal[\"CLAIM\", \"open\"]"
"""Executors claim the work; both values mean the same."""

Basis: TypeAlias = "Literal[\"form\", \"judges\", \"executors\"]"
"""Basis of a decision."""

class BucketsEquivalence(TypedDict):
    """Outputs are equal if their numbers are between the same two of these ascending bounds."""

    buckets: list[float]


BudgetMode: TypeAlias = "Literal[\"LIFETIME\", \"EPOCH_RENEW\"]"
"""Whether the budget covers the whole task or each epoch."""

class CancelTaskRequest(TypedDict, total=False):
    """Why a task is cancelled."""

    reason: str | None
    """Stored with the task."""


CandidateGap: TypeAlias = "Literal[\"too_few_votes\", \"tie\", \"dependent\", \"evidence_missing\", \"reuse_time\"]"
"""Why votes decided nothing."""

CandidateStanding: TypeAlias = "Literal[\"waiting\", \"verifying\", \"revealing\", \"approved\", \"rejected\", \"undecided\"]"
"""State of a candidate."""

class _Capabilities(TypedDict):
    ok: bool


class Capabilities(_Capabilities, total=False):
    """Result of `/capabilities` of an executor, or why it cannot be used."""

    error: str
    """Only if it failed."""
    model_id: str
    policies: list[str]
    """Policies beyond the built-in ones."""
    profiles: list[str]
    provider_family: str
    task_types: list[str]


class _Circuit(TypedDict):
    state: CircuitState


class Circuit(_Circuit, total=False):
    """Circuit breaker, which stops calls to a failing executor."""

    rests_for: CircuitScope
    """Unless `closed`: `all`, or `some` if it failed for single accounts and is blocked only
    for them.
    """
    until: Time
    """With `open`: when calls resume."""


CircuitScope: TypeAlias = "Literal[\"all\", \"some\"]"
"""Which accounts a resting executor is blocked for."""

CircuitState: TypeAlias = "Literal[\"closed\", \"open\", \"half_open\"]"
"""State of the circuit breaker: calls are made while it is `closed`."""

Claim: TypeAlias = "str | dict[str, Any] | list[Any] | float | bool"
"""The candidate's output. An object with `output` is a full candidate: its `output` is judged,
and its `output_schema`, `evidence_inline` and `evidence_refs` are used.
"""

ClaimRole: TypeAlias = "Literal[\"propose\", \"verify\", \"finalize\"]"
"""Work that a lease is for."""

class _Consensus(TypedDict):
    agreement: float
    """Size of the largest group divided by the number of replicas asked."""
    agreement_answered: float
    """Size of the largest group divided by the number of replicas that answered."""
    answered: int
    """Number of replicas that gave an answer of any kind."""
    asked: int
    """Same value as `replicas`."""
    basis: Basis | None
    """Basis of the winning answer: `executors`, `judges`, or `form` if the server decided alone
    under a policy that needs no judgment. Null if there is no winner.
    """
    cancelled: int
    """Number of replicas that were cancelled before they answered."""
    confidence: float
    """Probability that the winning answer is right; 0 if there is no winner, never 1."""
    disagreement: bool
    """Whether the requested agreement was not reached."""
    effective_votes: float
    """Number of independent votes that the votes are equivalent to."""
    equivalence: str
    """The relation by which answers were compared; `label` for validate and factcheck."""
    groups: list[int | None]
    """The group of each seat; null for a seat without a vote."""
    outcome: Outcome
    output_by: str | None
    """`replica` if one replica gave the output, `merge` if it was built from several."""
    replicas: int
    """Number of seats: the requested number of replicas."""
    score: Score | None
    spread: dict[str, Spread]
    """Spread of the numbers in the winning outputs, by JSON Pointer."""
    started: int
    """Number of seats for which a session was called; the others failed before a call."""
    strategy: str
    """The aggregation; `none` for a round that expired or was cancelled."""
    tie_broken: bool
    """Whether `best_effort` chose between equal groups."""
    verdicts: list[Label]
    """The label of each seat, in selection order: that of the last session called for the seat."""
    winner: int | None
    """The winning group."""


class Consensus(_Consensus, total=False):
    """The `consensus` block: the five fields that every client may rely on, then Jurat's own."""

    low_confidence: bool
    """True if the winning answer has a confidence of one half or less, and therefore is no more
    likely right than wrong; otherwise left out.
    """


class ConsensusTerms(TypedDict, total=False):
    """The terms of consensus. `weight_by` and `target_confidence` are refused with
    `not_supported`.
    """

    aggregation: Aggregation | None
    """How the scores of the winners are combined; defaults to `majority`."""
    disagreement_policy: DisagreementPolicy | None
    """What to return when the replicas do not agree; defaults to `return_all`."""
    early_stop: bool | None
    """Stop as soon as no outstanding replica can change the winner."""
    equivalence: EquivalenceChoice | None
    """When two delegate outputs count as equal; depends on the outputs if left out."""
    include: list[Include] | None
    """`traces` adds inline evidence to the replicas."""
    merge: Merge | None
    """How the output is built from the winners' outputs; defaults to `medoid`."""
    min_agreement: float | None
    """Minimum share that must agree, in addition to a majority."""
    replicas: Replicas | None
    """Number of sessions to call; defaults to that of the tier, or 1."""
    session_pool: list[SessionRef] | None
    """Sessions that may be called; defaults to all."""
    spares: int | None
    """How many spare sessions of the pool may replace failed ones; defaults to the number of
    replicas, 0 for none.
    """
    strategy: Aggregation | None
    """Alias of `aggregation`."""
    timeout_policy: TimeoutPolicy | None
    """How a replica without an answer counts; defaults to `count`."""


class Decided(TypedDict):
    """The event `decided`: the round is recorded."""

    consensus: Consensus
    round_id: str
    verdict: Label | None
    """The winning verdict; null if none won."""


class DelegateReply(TypedDict):
    """The reply to a delegate request."""

    confidence: float
    """Probability that the output is right; 0 if there is none, never 1."""
    consensus: Consensus
    output: Any
    """The winning output; null if there is none."""
    receipt_id: str
    """Digest of the recorded decision."""
    replicas: list[Replica]
    """One for each seat, in the order of `verdicts`, followed by the replicas that a spare
    replaced.
    """
    round_id: str
    status: str
    """`OK`, or `NO_CONSENSUS` when no output won."""


class _DelegateRequest(TypedDict):
    objective: str
    """The job to do."""


class DelegateRequest(_DelegateRequest, total=False):
    """A request to delegate a job. Unknown fields are refused, except names that begin with
    `x_`, which are reserved for the caller.
    """

    actor: Any
    """The person or system the job is done for; passed on to the executors."""
    consensus: ConsensusTerms | None
    context: Any
    """Additional context for the executors."""
    execution: Execution | None
    input: Any
    """The input of the job; defaults to `{}`."""
    metadata: Any
    """The caller's notes; ignored."""
    policy: PolicyChoice | None
    session_id: SessionRef | None
    """Used as a pool of one session if there is no `session_pool`."""
    tools: Any
    """Tools that the executors may use; passed on to them."""
    workflow: Any
    """The workflow that the job belongs to; passed on to the executors."""


class _DeployVerifierRequest(TypedDict):
    criterion: str
    """Instructions for the judge: when the inputs pass and when they fail. For the judge
    `builtin/rules` it is a document of rules.
    """
    description: str
    """What it checks, for people."""
    input_contract: InputContract
    name: str
    """Name of the verifier in its account."""


class DeployVerifierRequest(_DeployVerifierRequest, total=False):
    """A version to deploy: the first version of a new verifier, or the next version of the
    verifier with this name. Unknown fields are ignored.
    """

    expected_version_token: str | None
    """The current `version_token`; leave it out for a new verifier, required afterwards."""
    few_shot_examples: list[FewShotExampleRequest] | None
    """Labelled examples, shown to the judge as demonstrations. Each must match the contract."""
    input_fields: list[InputFieldName] | None
    """The text fields of the contract, in the order in which the judge reads them; none for
    `image`.
    """
    model_settings: ModelSettings | None


class _DeployedVerifier(TypedDict):
    config_hash: str
    """SHA-256 of the canonical JSON of the configuration, in hex."""
    current_version: int
    """The added version, which is now the current one."""
    input_contract: InputContract
    name: str
    status: VerifierStatus
    verifier_id: str
    version: int
    """Alias of `current_version`."""
    version_token: str
    """Send it as `expected_version_token` to deploy the next version."""


class DeployedVerifier(_DeployedVerifier, total=False):
    """The added version."""

    warnings: list[str]
    """Why the version cannot run yet, such as an unconfigured provider; left out if there is no
    problem.
    """


DisagreementPolicy: TypeAlias = "Literal[\"return_all\", \"fail_hard\", \"best_effort\"]"
"""What to return when the replicas do not agree."""

EquivalenceChoice: TypeAlias = "Literal[\"canonical\", \"text\", \"unordered\"] | FieldsEquivalence | NumericEquivalence | BucketsEquivalence"
"""When two outputs count as equal."""

ErrorCode: TypeAlias = "Literal[\"auth_required\", \"forbidden\", \"host_refused\", \"invalid_json\", \"validation_error\", \"request_invalid\", \"not_supported\", \"schema_refused\", \"policy_invalid\", \"not_found\", \"user_not_found\", \"method_not_allowed\", \"conflict\", \"workflow_ownership_must_transfer\", \"idempotency_mismatch\", \"budget_exhausted\", \"account_suspended\", \"anonymous_daily_cap\", \"payment_required\", \"payment_unavailable\", \"safety_verification_failed\", \"safety_verification_unavailable\", \"invalid_credentials\", \"handle_invalid\", \"handle_taken\", \"handle_reserved\", \"handle_already_claimed\", \"handle_not_claimed\", \"handle_rename_too_soon\", \"handle_rename_limit_exceeded\", \"invitation_expired\", \"invitation_already_resolved\", \"invitation_already_pending\", \"quota_exceeded\", \"session_unknown\", \"session_pool_too_small\", \"sessions_unavailable\", \"executor_unavailable\", \"peer_unavailable\", \"consensus_disagreement\", \"request_timeout\", \"payload_too_large\", \"unsupported_media_type\", \"rate_limited\", \"overloaded\", \"shutting_down\", \"store_unavailable\", \"internal_error\"]"
"""Stable error code."""

class Evidence(TypedDict, total=False):
    """Evidence from a replica; empty if it gave no answer."""

    inline: list[EvidenceInline]
    """Only if `consensus.include` asks for traces."""
    refs: list[EvidenceRef]


class EvidenceInline(TypedDict):
    """Inline evidence."""

    content: str
    mime: str


class EvidenceRef(TypedDict):
    """Evidence stored elsewhere."""

    created_at: int
    """Milliseconds since 1970."""
    digest: str
    mime: str
    producer: str
    size_bytes: int
    uri: str


class EvidenceText(TypedDict):
    """Evidence as text."""

    content: str
    mime: str


class Execution(TypedDict, total=False):
    """How to do the job."""

    max_steps: int | None
    """Passed on in the task contract; defaults to 10."""
    output_schema: JsonSchema | None
    """Schema that the output must match; not used by factcheck."""
    timeout: float | None
    """The deadline in seconds, if there is no `timeout_ms`."""
    timeout_ms: int | None
    """Deadline of the whole round; defaults to 60000."""


class _Executor(TypedDict):
    agent_events_url: str | None
    """Base URL under which it receives events; null if it receives none."""
    circuit: Circuit
    created_at: Time
    name: str
    probe: Probe | None
    """The last probe; null before the first."""
    remote: bool
    """Whether it belongs to another node, which calls it for this one."""
    scope: str | None
    """The part of the network in which a remote executor is, if one was named."""
    status: ExecutorStatus
    target_node: str | None
    """The node of a remote executor; null if it is called directly."""
    token_env: str | None
    """Name of the environment variable with the bearer token."""
    url: str


class Executor(_Executor, total=False):
    """An executor and its current state."""

    same_url: list[str]
    """Only in the reply to `POST`, if there are any: the names of other executors at the same
    URL.
    """
    session: Session | None
    """Only in the reply to `POST`: the added session, or null."""


class ExecutorEventsProbe(TypedDict):
    """Whether the executor's event URL responds."""

    error: str | None
    ok: bool
    url: str


class ExecutorHealth(TypedDict):
    """Result of `/health` of an executor."""

    error: str | None
    ok: bool


ExecutorName: TypeAlias = "str"
"""The name of an executor."""

class ExecutorPage(TypedDict):
    """A page of a list."""

    items: list[Executor]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


ExecutorStatus: TypeAlias = "Literal[\"unchecked\", \"up\", \"down\", \"resting\"]"
"""Status of an executor; `resting` while its circuit breaker is open."""

FactClaim: TypeAlias = "str | dict[str, Any]"
"""The claim as text, or an object with the text in `text` or `claim`."""

FactcheckMode: TypeAlias = "Literal[\"standard\", \"realtime\"]"
"""How to do a fact check; passed on to the executors."""

class FactcheckPolicy(TypedDict, total=False):
    """The sessions required for a fact check."""

    labels: list[str] | None
    """Labels that every session routed to must have."""
    tier: Tier | None
    """Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5."""
    timeout: float | None
    """As in `execution`, which takes precedence."""
    timeout_ms: int | None
    """As in `execution`, which takes precedence."""


FactcheckPolicyChoice: TypeAlias = "Tier | FactcheckPolicy"
"""A tier, alone or in an object."""

class _FactcheckRequest(TypedDict):
    claim: FactClaim


class FactcheckRequest(_FactcheckRequest, total=False):
    """A request to fact-check a claim. Unknown fields are refused, except names that begin with
    `x_`, which are reserved for the caller.
    """

    actor: Any
    """The person or system the job is done for; passed on to the executors."""
    consensus: ConsensusTerms | None
    context: Any
    """Additional context for the executors."""
    execution: Execution | None
    metadata: Any
    """The caller's notes; ignored."""
    mode: FactcheckMode | None
    """Defaults to `standard`. In the mode `realtime`, a session whose executor does not list
    `factcheck:realtime` in its task types abstains with `NEEDS_SPEC`.
    """
    policy: FactcheckPolicyChoice | None
    session_id: SessionRef | None
    """Used as a pool of one session if there is no `session_pool`."""
    tools: Any
    """Tools that the executors may use; passed on to them."""
    workflow: Any
    """The workflow that the job belongs to; passed on to the executors."""


FailureCode: TypeAlias = "Literal[\"timeout\", \"busy\", \"unavailable\", \"unreachable\", \"disconnected\", \"http_status\", \"redirect\", \"not_json\", \"bad_shape\", \"too_large\", \"encoded_reply\", \"hash_mismatch\", \"status_contradicts\", \"peer_refused\", \"forged_answer\", \"foreign_answer\", \"replayed_answer\", \"overpriced\", \"policy_contradicted\", \"invalid_output\", \"output_unchecked\", \"judge_unavailable\", \"judge_unreadable\", \"media_unavailable\", \"cancelled\", \"node_stopped\", \"internal\"]"
"""Why a replica has no verdict."""

FeedbackMode: TypeAlias = "Literal[\"CAPABILITY\"]"
"""Feedback by the holder of the key."""

class FewShotExample(TypedDict):
    """A labelled example."""

    inputs: dict[str, str]
    media_url: str | None
    passed: bool
    reasoning: str | None


class _FewShotExampleRequest(TypedDict):
    passed: bool
    """Whether these inputs pass."""


class FewShotExampleRequest(_FewShotExampleRequest, total=False):
    """A labelled example."""

    inputs: dict[str, str] | None
    """Every field of the contract with its text."""
    media_url: str | None
    """An image, if the contract has one."""
    reasoning: str | None
    """Reason."""


class FieldError(TypedDict):
    """What is wrong with a field."""

    field: str
    reason: str


class FieldsEquivalence(TypedDict):
    """Outputs are equal if they are equal at these JSON Pointers."""

    fields: list[Pointer]


Include: TypeAlias = "Literal[\"traces\"]"
"""`traces` adds inline evidence to the replicas."""

InputContract: TypeAlias = "Literal[\"text\", \"text_image\", \"image\"]"
"""Input of a judge: named text fields, one image, or both."""

InputFieldName: TypeAlias = "str"
"""The name of a text field that a judge reads."""

JsonSchema: TypeAlias = "dict[str, Any] | bool"
"""A JSON Schema; draft 2020-12 unless `$schema` names another."""

JudgeModel: TypeAlias = "str"
"""`provider/model`."""

class _JudgeModelConfig(TypedDict):
    commit_first: bool
    """Whether the judge writes its own answer before it sees the candidate."""
    model: str
    """`provider/model`."""


class JudgeModelConfig(_JudgeModelConfig, total=False):
    """The judge and its settings."""

    reasoning_effort: ReasoningEffort


class JudgeUsage(TypedDict):
    """Total usage of the judges, as counted by their providers."""

    cached: bool
    """Whether every verdict was cached, so that no model was called."""
    input_tokens: int
    output_tokens: int


class KeyOfMe(TypedDict):
    """The key of the request."""

    id: str
    name: str


Kind: TypeAlias = "Literal[\"delegate\", \"validate\", \"factcheck\"]"
"""Kind of a round."""

Label: TypeAlias = "Literal[\"VALID\", \"INVALID\", \"RETRY\", \"NEEDS_SPEC\", \"TRUE\", \"FALSE\", \"UNSURE\", \"OK\", \"INVALID_OUTPUT\", \"TIMEOUT\", \"ERROR\", \"CANCELLED\"]"
"""Verdict or status of a replica or a round."""

class Me(TypedDict):
    """The caller."""

    email: str
    """E-mail address of the account. An account created by an operator shows an address that
    receives no mail but can be used to share with the account.
    """
    handle: str | None
    """Public name of the account; null if it has not claimed one."""
    handle_claimed_at: Time | None
    """When the account got the handle."""
    id: str
    """The account."""
    key: KeyOfMe
    scopes: list[Scope]
    suspended: bool
    """Whether the account is suspended: paid work is refused."""


class Measured(TypedDict):
    """The newest measurements of a version."""

    attack: Measurement | None
    """Attack with known injections; null if there was none."""
    test: Measurement | None
    """Test against labelled examples; null if there was none."""


class Measurement(TypedDict):
    """One measurement."""

    data_digest: str
    """Two measurements with the same digest used the same examples."""
    families: list[str]
    """The attack families tried; empty for a test."""
    figures: Any
    """The judge's scores."""
    judges: list[str]
    """The judge: always the version's own."""
    measured_at: Time
    measurement_id: str
    replicas: int
    """Number of judges per case."""


Merge: TypeAlias = "Literal[\"medoid\", \"fields\"]"
"""How the output is built from the winners' outputs."""

class ModelSettings(TypedDict, total=False):
    """The judge and its settings. Unknown keys are ignored."""

    commit_first: bool | None
    """Whether the judge writes its own answer before it sees the candidate."""
    model: JudgeModel | None
    """Defaults to the installation's default judge, or `builtin/rules` if there is none."""
    reasoning_effort: ReasoningEffort | None


NewSessionId: TypeAlias = "str | int"
"""The id of a session."""

class NumericEquivalence(TypedDict):
    """Outputs are equal if their numbers differ by at most the tolerance."""

    numeric: Tolerance


Outcome: TypeAlias = "Literal[\"agreed\", \"split\", \"abstained\", \"failed\"]"
"""Outcome of a round."""

class PaymentRequirementsV1(TypedDict):
    """A payment that the server accepts, in version 1 of the protocol."""

    asset: str
    """Contract of the token."""
    description: str
    """The operation, in words."""
    extra: TokenDomain
    """Name and version of the token, which are part of the signed data."""
    maxAmountRequired: str
    """Amount in base units of the token."""
    maxTimeoutSeconds: int
    """How long the authorization must be valid, in seconds."""
    mimeType: str
    """Media type of the reply."""
    network: str
    """Name of the network, such as `base`."""
    payTo: str
    """Address that is paid."""
    resource: str
    """URL of the paid request."""
    scheme: str
    """`exact`: a transfer of exactly the amount."""


Pointer: TypeAlias = "str"
"""A JSON Pointer."""

PolicyChoice: TypeAlias = "Tier | str | PolicyObject"
"""A tier, the id of a policy (a string with a dot), or both in an object."""

class PolicyObject(TypedDict, total=False):
    """The policy of a request: the deciding rules and the required sessions."""

    labels: list[str] | None
    """Labels that every session routed to must have."""
    policy_hash: str | None
    """Must be the correct hash; computed if left out. Needs `policy_id`."""
    policy_id: str | None
    """The deciding policy, such as `vp.schema_only.v1`; the kind of job has a default."""
    policy_params: dict[str, Any] | None
    """The parameters of the policy; defaults to `{}`. Needs `policy_id`."""
    policy_version: str | None
    """Defaults to `1`. Needs `policy_id`."""
    task_type: str | None
    """Delegate only: the task type that the executors are asked for; defaults to `delegate`."""
    tier: Tier | None
    """Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5."""
    timeout: float | None
    """As in `execution`, which takes precedence."""
    timeout_ms: int | None
    """As in `execution`, which takes precedence."""


class _Probe(TypedDict):
    at: Time
    capabilities: Capabilities
    health: ExecutorHealth
    ok: bool
    """Whether both health and capabilities are ok."""


class Probe(_Probe, total=False):
    """Result of a probe: health and capabilities."""

    agent_events: ExecutorEventsProbe
    """Only in the reply to a check of an executor that is registered with `agent_events_url`."""
    name: str
    """Only in the reply to a check: the name of the executor."""


class _Problem(TypedDict):
    code: ErrorCode
    detail: str
    """The error in words."""
    error: ErrorCode
    """The code."""
    hint: str
    """What to try next."""
    message: str
    """Alias of `detail`."""
    status: int
    """The HTTP status."""
    title: ErrorCode
    """The code."""
    type: str
    """`urn:jurat:error:` and the code."""


class Problem(_Problem, total=False):
    """An error, as `application/problem+json`."""

    accepts: list[PaymentRequirementsV1]
    """With `payment_required`: the payments that are accepted. The header `PAYMENT-REQUIRED`
    has the same in version 2 of the protocol.
    """
    consensus: Consensus
    """With `consensus_disagreement`, as in a reply."""
    current_version_token: str
    """With `conflict` on a deploy or save: the current token, required for the next version."""
    errors: list[FieldError]
    """With `field`: the same error as a list."""
    field: str
    """Path of the faulty field, such as `consensus.replicas`, if there is one."""
    reason: str
    """With `schema_refused`: the exceeded limit."""
    reasoning: str
    """With `safety_verification_failed`: the judge's reasoning."""
    receipt_id: str
    """With `consensus_disagreement`: the digest of the recorded decision."""
    replicas: list[Replica]
    """With `consensus_disagreement`, as in a reply."""
    resets_at: Time
    """With `anonymous_daily_cap`: when the next day starts."""
    round_id: str
    """Id of the round, if one was opened."""
    sessions: list[SessionProblem]
    """With `sessions_unavailable`: the problem of each session."""
    verifier_run_id: str
    """With `safety_verification_failed`: the judge's verifier run."""
    x402Version: int
    """With `payment_required`: the version of the payment protocol that `accepts` is written
    in.
    """


ReasoningEffort: TypeAlias = "Literal[\"low\", \"medium\", \"high\", \"xhigh\"]"
"""Reasoning effort of a judge, for models that support it."""

class Removed(TypedDict):
    """A removed resource."""

    removed: str
    """The name or id of the removed resource."""


class RemovedExecutor(TypedDict):
    """A removed executor and its sessions."""

    removed: str
    """The name of the removed executor."""
    sessions: list[str]
    """The ids of its sessions, which were removed too."""


class _Replica(TypedDict):
    cost: int
    """The price of the session plus the judge's usage, in millionths of a credit."""
    error: ReplicaError | None
    evidence: Evidence
    executor: str
    group: int | None
    """Its group, as in `consensus.groups`."""
    independence: str
    """`provider/model@host`."""
    latency_ms: int
    """Time until its answer arrived."""
    notes: list[str]
    """Notes, such as a missing hash."""
    output: Any
    """The output it returned; null in validate."""
    reason_codes: list[int]
    """Reason codes for its answer."""
    reliability: float
    """Assumed share of correct answers of the session."""
    replica_id: int
    """Position in selection order, from 0. Spares follow the seats."""
    score: float | None
    """Its own confidence in its answer: `score` of `/verify`, or the member `confidence` of the
    output.
    """
    session_id: str
    verifier_result_hash: str | None
    """The hash that the server computed; validate only."""


class Replica(_Replica, total=False):
    """A replica: one session's attempt within a round."""

    replaced_by: int
    """Only if it failed and was replaced by a spare: the `replica_id` of the spare. Such a
    replica is neither in `verdicts` nor in any count.
    """
    round_id: str
    """Only in events: the round that it belongs to."""
    status: Label
    """Delegate: the replica's status."""
    verdict: Label
    """Validate and factcheck: the replica's verdict."""


class ReplicaError(TypedDict):
    """Why a replica has no verdict."""

    code: FailureCode
    detail: str


class ReplicaStarted(TypedDict):
    """The event `replica_started`: a replica is called."""

    executor: str
    replica_id: int
    """Position in selection order, from 0."""
    round_id: str
    session_id: str


Replicas: TypeAlias = "Literal[1, 3, 5]"
"""Number of sessions to call."""

class RevokedVerifier(TypedDict):
    """A revoked verifier."""

    name: str
    revoked: bool
    verifier_id: str


class _Round(TypedDict):
    agreement: float | None
    asked: str | None
    """The request in one line; null if it is not stored or was erased or pruned."""
    closed_at: Time | None
    """Null while the round is open, like all fields below."""
    confidence: float | None
    deadline_at: Time
    kind: Kind
    opened_at: Time
    outcome: Outcome | None
    policy_hash: str
    policy_id: str
    receipt_id: str | None
    request_digest: str
    """Digest of the request's canonical JSON."""
    round_id: str
    sessions: list[str]
    """The sessions called, in selection order."""
    state: RoundState
    verdict: Label | None
    """The winning verdict, `OK` for delegate; null if none won."""


class Round(_Round, total=False):
    """A round: its request, state and outcome."""

    consensus: Consensus
    erased_at: Time
    """When the round's content was erased or pruned; left out before that."""
    output: Any
    reasons: list[str]
    """As in the reply; left out in lists and while the round is open, like all fields below."""
    replicas: list[Replica]
    request: Any
    """The request as canonical JSON, whose digest is `request_digest`; for a verifier run, the
    input of its judges. Left out in lists and if it is not stored.
    """
    status: str
    task_id: str
    """The task that the round belongs to, if any."""
    verifier_run_id: str
    """The verifier run that the round carries out, if any."""
    warnings: list[str]
    """Ignored fields of a version 2 request, in the reply to a request that does not wait."""


class RoundErased(TypedDict):
    """A round whose content is erased."""

    erased_at: Time
    """When it was erased, possibly by an earlier request."""
    round_id: str


class RoundPage(TypedDict):
    """A page of a list."""

    items: list[Round]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


RoundState: TypeAlias = "Literal[\"open\", \"closed\", \"expired\", \"cancelled\"]"
"""State of a round: open, or how it ended."""

RunErrorCode: TypeAlias = "Literal[\"runtime_error\", \"verifier_unavailable\", \"timeout\"]"
"""Why a run has no verdict."""

class RunJudge(TypedDict):
    """One judge of a run."""

    cached: bool
    """Whether its verdict was cached."""
    cost_usd: str
    """Cost in credits, as decimal text."""
    error: ReplicaError | None
    """Why it gave no verdict."""
    findings: list[Any]
    """The passages that it cites."""
    label: Label
    """How the verdict counts."""
    latency_ms: int
    model: str
    """`provider/model`."""
    reasoning: str | None
    verdict: str | None
    """Its verdict: `met`, `not_met`, `cannot_confirm` or `conflicting`; null if it gave none."""


RunPurpose: TypeAlias = "Literal[\"run\", \"test\", \"attack\"]"
"""Purpose of a run."""

RunStatus: TypeAlias = "Literal[\"success\", \"error\", \"running\"]"
"""`success` with either verdict, `error` without one."""

class RunVerifierRequest(TypedDict, total=False):
    """What to judge, and how. Unknown fields are ignored."""

    commit_first: bool | None
    """Whether the judges write their own answer before they see the candidate; defaults to the
    version's setting.
    """
    fresh: bool | None
    """Call the judges even if a verdict on the same inputs is cached."""
    inputs: dict[str, str] | None
    """Exactly the fields of the version's contract, each with non-blank text."""
    judges: list[JudgeModel] | None
    """Judges to use instead of the version's own judge, each once. A metered account cannot
    name a model without a price if other models of its provider have one.
    """
    media_url: str | None
    """The URL of a public image, if the contract has one."""
    replicas: Replicas | None
    """Number of judges; defaults to the number in `judges`, or one."""
    run_id: str | None
    """The caller's own id for the context of the run."""
    skill_id: str | None
    """Alias of `workflow_id`."""
    skill_ref: str | None
    """Alias of `workflow_ref`."""
    skill_version: int | None
    """Alias of `workflow_version`."""
    timeout_ms: int | None
    """Deadline of the whole run; defaults to two minutes. Without a key at least 10,000."""
    version: int | None
    """The version to run; defaults to the current one."""
    workflow_id: str | None
    """The workflow that the run belongs to, according to the caller; `skill_id` is an alias."""
    workflow_ref: str | None
    """Another name of the workflow; `skill_ref` is an alias."""
    workflow_version: int | None
    """The version of the workflow; `skill_version` is an alias."""


Scope: TypeAlias = "Literal[\"admin\", \"rounds:create\", \"rounds:read\", \"metrics:read\", \"verifiers:read\", \"verifiers:write\", \"verifiers:run\", \"usage:read\", \"keys:write\", \"workflows:read\", \"workflows:write\", \"account:write\", \"tasks:read\", \"tasks:write\"]"
"""Scope of a key."""

class Score(TypedDict):
    """The winners' own scores."""

    deviation: float
    max: float
    method: str
    """`mean` or `median`."""
    min: float
    value: float


class Session(TypedDict):
    """A session: a named route to one executor."""

    created_at: Time
    executor: str
    """The name of its executor."""
    id: str
    labels: list[str]
    price_micros: int
    """Price per call in millionths of a credit."""
    profile: str
    reliability: float
    """Assumed share of correct answers."""
    session_id: str
    """Same value as `id`."""
    task_types: dict[str, str]
    """Maps task types to the executor's names for them; the key `*` matches any."""
    tier: Tier | None


SessionChoice: TypeAlias = "bool | SessionOfExecutor"
"""The session to add with the executor, or a boolean for whether to add one."""

class SessionOfExecutor(TypedDict, total=False):
    """A session that is added with an executor; named like it by default."""

    id: NewSessionId | None
    labels: list[str] | None
    """Words that requests can route by; none by default."""
    price_micros: int | None
    """Price per call in millionths of a credit; 0 by default."""
    profile: str | None
    """One of the profiles that the executor declares; defaults to `default`."""
    reliability: float | None
    """Expected share of correct answers; defaults to the value of the tier. Stored in
    thousandths.
    """
    task_types: dict[str, str] | None
    """Maps task types to the executor's names for them; the key `*` matches any."""
    tier: Tier | None


class SessionPage(TypedDict):
    """A page of a list."""

    items: list[Session]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


class SessionProblem(TypedDict):
    """Why a session cannot answer now."""

    problem: str
    session_id: str


SessionRef: TypeAlias = "str | int"
"""A session id, `label:…` or `profile:…`."""

class Spread(TypedDict):
    """Spread of numbers."""

    deviation: float
    max: float
    min: float


SubmitTask: TypeAlias = "TaskContract | TaskOrder"
"""A contract, alone or with the executors for it."""

class _Task(TypedDict):
    candidates: list[TaskCandidate]
    claims: list[TaskClaimUnderWay]
    """A lease: work in progress."""
    committed_candidate_id: str | None
    """The candidate that the votes approved."""
    contract_digest: str
    """Digest of the contract's canonical JSON."""
    created_at: Time
    deadline_at: Time
    """Latest time at which the task ends, as currently known."""
    ended_at: Time | None
    epoch: int
    """Current epoch of a continuous task, from 1."""
    events: int
    """Number of events."""
    finalized_candidate_id: str | None
    """The candidate whose decision is final."""
    panel: TaskPanel
    reason: str | None
    """Why it ended without a decision."""
    retries: int
    """How often proposing failed for all proposers."""
    retry_at: Time | None
    """No executor is asked to propose again before this time."""
    settling: list[TaskSettling]
    """Decisions that can still be disputed."""
    spent: TaskSpent
    started_at: Time | None
    """When the first work of this epoch started."""
    state: TaskState
    task_id: str
    task_type: str
    updated_at: Time


class Task(_Task, total=False):
    """A task with its state and history."""

    contract: TaskContract | None
    """The contract with all defaults filled in; null once the task was pruned, and not in the
    reply to a submission.
    """


class _TaskAcceptance(TypedDict):
    quorum_threshold: int
    """Number of approvals by different voters."""
    settlement: TaskSettlement
    vote: TaskVote


class TaskAcceptance(_TaskAcceptance, total=False):
    """Requirements for a decision."""

    aggregation: TaskAggregation | None
    da_quorum_threshold: int | None
    """Number of voters that must be able to fetch each piece of evidence; if left out, evidence
    is not fetched.
    """
    verifier_policy: TaskPolicy | None
    """Defaults to `vp.schema_only.v1`: a candidate must match `output_schema`."""


class TaskAccount(TypedDict):
    """One part of a budget."""

    left: int
    limit: int
    spent: int


TaskAggregation: TypeAlias = "Literal[\"QUORUM\", \"CONFIDENCE_WEIGHTED\", \"REPUTATION_WEIGHTED\"]"
"""How votes on a candidate become a decision; `QUORUM` by default."""

class _TaskAssignment(TypedDict):
    claim: TaskClaim
    mode: AssignmentMode


class TaskAssignment(_TaskAssignment, total=False):
    """How many executors may work on a task, concurrently and in total."""

    explore: TaskExplore | None
    finalize: TaskFinalize | None
    verify: TaskVerify | None


class TaskBadPenalty(TypedDict):
    """Penalty for a bad decision."""

    P: int


class _TaskBudget(TypedDict):
    cost_units: int
    """At least the sum of the three stages."""
    explore_cost_units: int
    finalize_cost_units: int
    max_steps: int
    reuse_max_attempts: int
    reuse_verify_cost_units: int
    """At most `cost_units`."""
    reuse_verify_time_ms: int
    """Time for first trying to reuse an earlier decision; at most `time_ms`."""
    time_ms: int
    """Time from the first lease to the end."""
    verify_cost_units: int


class TaskBudget(_TaskBudget, total=False):
    """The budget of a task. Each call to an executor is one step and costs one unit of its
    stage.
    """

    mode: BudgetMode | None
    """Defaults to `LIFETIME`."""


class TaskCandidate(TypedDict):
    """A proposed output."""

    candidate_id: str
    evidence: dict[str, list[str]]
    """For each referenced digest: the voters that could fetch it."""
    gap: CandidateGap | None
    """Why the votes so far decided nothing."""
    output_digest: str
    """Digest of the output's canonical JSON."""
    proposers: list[str]
    """Executors that proposed this output; they cannot vote on it."""
    source: str | None
    """The earlier decision that it was reused from."""
    standing: CandidateStanding
    turn: int
    """Number of the current voting attempt on it, from 1."""
    votes: list[TaskVoteCast]


class TaskClaim(TypedDict):
    """How executors claim work."""

    lease_ms: int
    """Duration of a lease unless it is renewed."""
    max_concurrency: TaskConcurrency


class TaskClaimUnderWay(TypedDict):
    """A lease: work in progress."""

    candidate_id: str | None
    execution_id: str
    holder: str
    """The executor, or the node."""
    role: ClaimRole
    token: int
    """The fencing token: later leases have higher ones."""
    until: Time
    """When the lease expires unless it is renewed."""


class TaskConcurrency(TypedDict):
    """Maximum number of concurrent leases."""

    propose: int
    verify: int


class _TaskContract(TypedDict):
    acceptance: TaskAcceptance
    assignment: TaskAssignment
    budget: TaskBudget
    evidence_policy: TaskEvidencePolicy
    expiry_ms: int
    """When the contract expires, in milliseconds since 1970."""
    inputs: TaskInputs
    output_schema: dict[str, Any]
    """The JSON Schema of every candidate."""
    protocol_version: str
    """Version of the contract format, such as `v0.1`."""
    task_id: str
    """The id of the task, unique within the account."""
    task_type: str
    """Task type that executors must declare to work on it."""


class TaskContract(_TaskContract, total=False):
    """The terms of a task. All times are in milliseconds."""

    task_mode: TaskMode | None
    """Defaults to `ONE_SHOT`."""


class TaskDecision(TypedDict):
    """The decision of a task; fields are null if there is none yet."""

    aggregation: TaskAggregation
    agreement: float | None
    """Share of valid votes that are for the candidate."""
    approvals: int
    """Valid votes for the candidate."""
    basis: Basis | None
    """Basis of the decision: `executors`, `judges`, or `form` if only the node voted for it,
    under a policy that needs no judgment.
    """
    candidate_id: str | None
    candidate_output: Any
    """Same value as `output`."""
    committed_candidate_id: str | None
    """The candidate that the votes approved."""
    confidence: float | None
    """Probability that the decision is right."""
    epoch: int
    evidence_digests: list[str]
    """Digests of the evidence that the candidate refers to."""
    executor: str | None
    """The proposers of the decided output."""
    final_answer: str | None
    """The member `answer` of the output, if it is a string."""
    final_decision: str | None
    """The member `decision` of the output, if it is a string."""
    final_hash: str | None
    """Digest of the decision, used by later tasks to refer to it."""
    finalized_candidate_id: str | None
    """The candidate whose decision is final."""
    model_id: str | None
    output: Any
    """The decided output."""
    profile: str
    provider_family: str | None
    quorum_threshold: int
    reason: str | None
    """Why there is no decision, if the task ended without one."""
    rejections: int
    """Valid votes against the candidate."""
    rounds: TaskRounds
    """The rounds of the task's calls; `GET /v1/rounds/{id}` shows them."""
    source: str | None
    """The earlier decision that the candidate was reused from."""
    state: TaskState
    task_id: str
    task_type: str
    terminal_state: TaskState
    """Same value as `state`."""
    votes: list[TaskVoteCast]


class TaskDiminishingReturns(TypedDict):
    """How much less each further success counts."""

    K: int
    W: int


class TaskEvent(TypedDict):
    """An event of a task."""

    at: Time
    data: dict[str, Any]
    """Data of an event of this type."""
    seq: int
    """From 1, without gaps."""
    task_id: str
    type: TaskEventType


class TaskEventPage(TypedDict):
    """A page of a list."""

    items: list[TaskEvent]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


TaskEventType: TypeAlias = "Literal[\"TASK_CREATED\", \"TASK_CLAIMED\", \"TASK_CLAIM_RENEWED\", \"TASK_CLAIM_RELEASED\", \"BUDGET_CHARGED\", \"BUDGET_REFUNDED\", \"CANDIDATE_PROPOSED\", \"CANDIDATE_REUSED\", \"EXPLORE_CLOSED\", \"EVIDENCE_AVAILABLE\", \"VOTE_COMMIT\", \"REVEAL_OPENED\", \"VOTE_REVEAL\", \"VOTE_FORFEITED\", \"EQUIVOCATION_PROVEN\", \"VOTING_EXTENDED\", \"DECISION_COMMITTED\", \"CANDIDATE_REJECTED\", \"VERIFICATION_REPEATED\", \"CANDIDATE_UNDECIDED\", \"TASK_RETRY_SCHEDULED\", \"DECISION_FINALIZED\", \"TASK_FEEDBACK_REPORTED\", \"TASK_SETTLED\", \"EPOCH_ENDED\", \"TASK_FAILED\", \"TASK_EXPIRED\", \"TASK_CANCELLED\"]"
"""What happened."""

class _TaskEvidencePolicy(TypedDict):
    inline_mime_allowlist: list[str]
    """Must contain `application/json`, `text/plain`, `text/markdown` and `text/csv`."""
    max_inline_evidence_bytes: int
    """Must be 65536."""
    max_inline_media_bytes: int
    """Must be 0."""


class TaskEvidencePolicy(_TaskEvidencePolicy, total=False):
    """Evidence allowed with a candidate."""

    max_snippet_bytes: int | None
    """Maximum bytes of one piece of inline evidence; defaults to 8192."""
    max_snippet_tokens: int | None
    """Maximum tokens of one piece of inline evidence, at four bytes each; defaults to 2048."""


class TaskExplore(TypedDict, total=False):
    """How candidates are found."""

    backoff_ms: int | None
    """Delay before the first restart, doubled each time; defaults to 1000."""
    max_proposers: int | None
    """Total number of executors that propose; defaults to 1."""
    max_retries: int | None
    """How often proposing restarts after all proposers failed; defaults to 3."""
    stop: TaskExploreStop | None
    topk: int | None
    """Maximum number of candidates that are voted on; defaults to 3."""


class TaskExploreStop(TypedDict, total=False):
    """When to stop looking for candidates."""

    no_new_evidence_rounds: int | None
    """Defaults to 3."""


class TaskFeedback(TypedDict):
    """Who may dispute a decision."""

    authority_pubkey: str
    """`ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key."""
    mode: FeedbackMode


class TaskFinalize(TypedDict, total=False):
    """How a decision is made final."""

    max_finalizers: int | None
    """Defaults to 1."""


TaskInputs: TypeAlias = "dict[str, Any] | str | list[Any] | float | bool"
"""The input of the task; executors receive it as `inputs`."""

TaskMode: TypeAlias = "Literal[\"ONE_SHOT\", \"CONTINUOUS\"]"
"""Whether the task ends with its decision or continues with the next epoch. `CONTINUOUS` needs
the budget mode `EPOCH_RENEW`.
"""

class _TaskOrder(TypedDict):
    contract: TaskContract


class TaskOrder(_TaskOrder, total=False):
    """A contract with the executors for it."""

    executors: list[ExecutorName] | None
    """Executors that may propose and vote; defaults to all that declare the task type."""
    profile: str | None
    """Profile that the executors use; defaults to `default`."""
    verifiers: list[VerifierName] | None
    """Executors that vote; defaults to those of `executors`."""


class TaskPanel(TypedDict):
    """The executors that may work on a task."""

    executors: list[str]
    node_votes: bool
    """Whether this node votes too, because the other voters are too few for the quorum."""
    profile: str
    verifiers: list[str]


class _TaskPolicy(TypedDict):
    policy_id: str
    """Such as `vp.schema_only.v1`."""


class TaskPolicy(_TaskPolicy, total=False):
    """The policy that candidates are voted on under."""

    policy_hash: str | None
    """Computed if left out; otherwise it must be correct."""
    policy_params: dict[str, Any] | None
    """Defaults to empty."""
    policy_version: str | None
    """Defaults to `1`."""


class TaskRounds(TypedDict):
    """The rounds of the task's calls."""

    propose: str | None
    """The round that proposed the candidate; null if it comes from an earlier decision."""
    verify: dict[str, str]
    """The round of each voter's verdict."""


class TaskSettlement(TypedDict):
    """Settlement of a decision. Stored with the contract and shown to executors."""

    bad_penalty: TaskBadPenalty
    feedback: TaskFeedback
    implicit_diminishing_returns: TaskDiminishingReturns
    implicit_weight: float
    window_ms: int


class TaskSettling(TypedDict):
    """A decision that can be disputed for a limited time."""

    candidate_id: str
    complaint: str | None
    """The dispute; only one is accepted."""
    epoch: int
    settles_at: Time
    """End of the dispute window."""


class TaskSpent(TypedDict):
    """Spent and remaining budget of this epoch."""

    cost_units: TaskAccount
    """Units of all stages."""
    explore_cost_units: TaskAccount
    finalize_cost_units: TaskAccount
    steps: TaskAccount
    """Calls to executors."""
    verify_cost_units: TaskAccount


TaskState: TypeAlias = "Literal[\"created\", \"claimed\", \"proposed\", \"verifying\", \"committed\", \"finalized\", \"failed\", \"expired\", \"cancelled\"]"
"""State of a task."""

class TaskSummary(TypedDict):
    """A task in a list."""

    created_at: Time
    ended_at: Time | None
    events: int
    """Number of events."""
    reason: str | None
    """Why it ended without a decision."""
    state: TaskState
    task_id: str
    task_type: str
    updated_at: Time


class TaskSummaryPage(TypedDict):
    """A page of a list."""

    items: list[TaskSummary]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


class TaskVerify(TypedDict, total=False):
    """How candidates are voted on."""

    max_repeats: int | None
    """How often an undecided vote is repeated; defaults to 2."""
    max_verifiers: int | None
    """Maximum number of verdicts per candidate; defaults to 1."""


class TaskVote(TypedDict):
    """How votes are taken."""

    commit_reveal: Always
    reveal_deadline_ms: int
    """How long votes may be revealed after the last commit."""


class TaskVoteCast(TypedDict):
    """A vote. Its verdict is visible only after the reveal."""

    commitment: str
    """The digest that commits the voter to its verdict."""
    forfeited: VoteForfeit | None
    """Why it does not count."""
    independence: str
    """What the voter has in common with other voters, such as a model."""
    reason_codes: list[int] | None
    score: float | None
    turn: int
    verdict: VerificationStatus | None
    """Null until the vote is revealed, like the next three fields."""
    verdict_digest: str | None
    """Digest of the voter's full answer."""
    voter: str


Tier: TypeAlias = "Literal[\"fast\", \"safe\", \"oracle\"]"
"""Quality tier of a session, or the tier that a job requires."""

Time: TypeAlias = "str"
"""A time in UTC, as RFC 3339 text."""

TimeoutPolicy: TypeAlias = "Literal[\"count\", \"ignore\", \"negative\"]"
"""How a replica without an answer counts."""

class TokenDomain(TypedDict):
    """The name and the version of a token, as payers sign them."""

    name: str
    version: str


class Tolerance(TypedDict):
    """Maximum difference between numbers."""

    tolerance: float


class _ValidateRequest(TypedDict):
    claim: Claim


class ValidateRequest(_ValidateRequest, total=False):
    """A request to validate a candidate. Unknown fields are refused, except names that begin
    with `x_`, which are reserved for the caller.
    """

    actor: Any
    """The person or system the job is done for; passed on to the executors."""
    consensus: ConsensusTerms | None
    context: Any
    """Additional context for the executors."""
    evidence_inline: list[EvidenceText] | None
    """Evidence for the candidate, as text."""
    evidence_refs: list[EvidenceRef] | None
    """Evidence for the candidate, stored elsewhere."""
    execution: Execution | None
    metadata: Any
    """The caller's notes; ignored."""
    output_schema: JsonSchema | None
    """Schema that the output must match; takes precedence over `execution.output_schema`."""
    policy: PolicyChoice | None
    session_id: SessionRef | None
    """Used as a pool of one session if there is no `session_pool`."""
    tools: Any
    """Tools that the executors may use; passed on to them."""
    workflow: Any
    """The workflow that the job belongs to; passed on to the executors."""


class VerdictReply(TypedDict):
    """The reply to a validate or factcheck request."""

    confidence: float
    """Probability that the verdict is right; 0 if there is none, never 1."""
    consensus: Consensus
    reasons: list[str]
    """The winning side's reasons, in words."""
    receipt_id: str
    """Digest of the recorded decision."""
    replicas: list[Replica]
    """One for each seat, in the order of `verdicts`, followed by the replicas that a spare
    replaced.
    """
    round_id: str
    verdict: Label | None
    """The winning verdict, such as `VALID` or `TRUE`; null if none won."""


VerificationStatus: TypeAlias = "Literal[\"passed\", \"failed\", \"inconclusive\"]"
"""Verdict on a candidate."""

class Verifier(TypedDict):
    """One version of a verifier in full."""

    config_hash: str
    """SHA-256 of the canonical JSON of the configuration, in hex: equal for equal
    configurations.
    """
    created_at: Time
    """When the verifier was first deployed."""
    criterion: str
    current_version: int
    """The version that runs when none is pinned."""
    deployed_at: Time
    """When this version was deployed."""
    description: str
    few_shot_examples: list[FewShotExample]
    input_contract: InputContract
    input_fields: list[str]
    """Empty for the contract `image`."""
    judge_model_config: JudgeModelConfig
    measured: Measured | None
    """Measurements of this version; null if it was never measured."""
    name: str
    reasoning_field_description: str
    """What the judge is asked to write in addition to its verdict."""
    status: VerifierStatus
    updated_at: Time
    """When its current version was deployed."""
    verifier_id: str
    """Followed by `@` and the version if it was requested that way."""
    version: int
    """The version shown."""
    version_token: str
    """Send it as `expected_version_token` to deploy the next version."""


VerifierName: TypeAlias = "str"
"""The name of an executor, or `judge:provider/model` for a judge of this node."""

VerifierRole: TypeAlias = "Literal[\"exec\", \"tune\", \"owner\"]"
"""Role on a verifier: run it, also tune it, or full access."""

class _VerifierRun(TypedDict):
    anonymous_verifier_run_id: str | None
    """The id of a run without a key; null for all others."""
    cost_usd: str
    """Cost in credits, as decimal text."""
    created_at: Time
    duration_ms: int
    """Zero while the run is in progress."""
    error_code: RunErrorCode | None
    """With the status `error`: why there is no verdict."""
    error_message: str | None
    inputs_digest: str
    """SHA-256 of the canonical inputs, in hex."""
    passed: bool | None
    """Whether the inputs pass; null if there is no verdict."""
    purpose: RunPurpose
    reasoning: str | None
    """The judge's reasoning; null if there is none."""
    round_id: str
    """The round of the run."""
    status: RunStatus
    verifier_id: str
    verifier_run_id: str | None
    """Null for a run without a key."""
    version: int


class VerifierRun(_VerifierRun, total=False):
    """A verifier run; outside of lists, with the answer of each judge."""

    agreement: float | None
    """Share of the called judges that agree; null while the run is in progress."""
    confidence: float | None
    """Probability that the verdict is right; null while the run is in progress."""
    judges: list[RunJudge]
    """The judges called, in selection order; empty while the run is in progress."""
    low_confidence: bool
    """True if the verdict has a confidence of one half or less; otherwise left out."""
    measured: Measured | None
    """Measurements of this version; null if it was never measured."""
    receipt_id: str | None
    """Digest of the recorded decision; null while the run is in progress."""
    run_id: str
    """The caller's own id for the context of the run."""
    skill_id: str
    skill_ref: str
    skill_version: int
    usage: JudgeUsage
    """Left out in lists, like all fields up to `measured`."""
    workflow_id: str
    """The workflow that the run belongs to, if the caller named one; `skill_id` is an alias."""
    workflow_ref: str
    workflow_version: int


VerifierStatus: TypeAlias = "Literal[\"active\", \"revoked\"]"
"""Whether a verifier can be used."""

class VerifierSummary(TypedDict):
    """A verifier in a list."""

    created_at: Time
    current_version: int
    description: str
    name: str
    owner: str | None
    """The owner if it is not the caller: `@` and a handle, or the account id if there is no
    handle. Refer to the verifier by its id or as `@owner/name`.
    """
    role: VerifierRole
    """The caller's role: `exec` to run it; `tune` to also see it fully, measure it and deploy
    its next version; `owner` for everything.
    """
    source_workflow_id: str | None
    """The workflow that gives the caller access; null for the owner."""
    status: VerifierStatus
    updated_at: Time
    verifier_id: str
    version_token: str
    """Send it as `expected_version_token` to deploy the next version."""


class VerifierSummaryPage(TypedDict):
    """A page of a list."""

    items: list[VerifierSummary]
    next_cursor: str | None
    """Send it as `cursor` to get the next page; null on the last page."""


VoteForfeit: TypeAlias = "Literal[\"late\", \"mismatch\", \"equivocation\"]"
"""Why a vote does not count."""
