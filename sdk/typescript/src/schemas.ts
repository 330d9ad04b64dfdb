// The requests and replies of the API. Written by `just generate`; do not change it by hand.

export const VERSION = "0.1.0";

/** A request to register an executor. */
export interface AddExecutorRequest {
  /**
   * Base URL under which `/agent-events` receives events; if left out, no events are sent.
   * `agent_event_callback_base_url` is an alias.
   */
  agent_events_url?: string | null;
  /**
   * Registers the executor only if it is healthy and reports its capabilities now; if left out,
   * it is registered anyway and `probe` shows its health.
   */
  must_answer?: boolean | null;
  /** The name of the executor. */
  name: string;
  /**
   * Whether the executor belongs to another node, which calls it for this one; defaults to
   * `false`. It needs `target_node`.
   */
  remote?: boolean | null;
  /**
   * The part of the network in which a remote executor is: `global`, `region:<name>`,
   * `group:<name>` or `node:<public key>`. It is shown, and does not choose the node.
   */
  scope?: string | null;
  /** The session to add with it; `false` for none; defaults to a session with the executor's name. */
  session?: SessionChoice | null;
  /** The node of a remote executor: the public key of a peer, in 64 hexadecimal digits. */
  target_node?: string | null;
  /** Name of the environment variable with the bearer token, set where the server runs. */
  token_env?: string | null;
  /**
   * Base URL, `http` or `https`, without credentials, query or fragment. With `remote`, the
   * address of the executor as its own node knows it; this server never calls it.
   */
  url: string;
}

/** A request to add a session. `session_id` is an alias of `id`. */
export interface AddSessionRequest {
  /** The name of its executor. */
  executor: string;
  id: NewSessionId;
  /** Words that requests can route by; none by default. */
  labels?: Array<string> | null;
  /** Price per call in millionths of a credit; 0 by default. */
  price_micros?: number | null;
  /** One of the profiles that the executor declares; defaults to `default`. */
  profile?: string | null;
  /** Expected share of correct answers; defaults to the value of the tier. Stored in thousandths. */
  reliability?: number | null;
  /** Maps task types to the executor's names for them; the key `*` matches any. */
  task_types?: Record<string, string> | null;
  tier?: Tier | null;
}

/** How the scores of the winners are combined. */
export type Aggregation = "majority" | "mean" | "median";

/** Must be true. */
export type Always = true;

/** Executors claim the work; both values mean the same. */
export type AssignmentMode = "CLAIM" | "open";

/** Basis of a decision. */
export type Basis = "form" | "judges" | "executors";

/** Outputs are equal if their numbers are between the same two of these ascending bounds. */
export interface BucketsEquivalence {
  buckets: Array<number>;
}

/** Whether the budget covers the whole task or each epoch. */
export type BudgetMode = "LIFETIME" | "EPOCH_RENEW";

/** Why a task is cancelled. */
export interface CancelTaskRequest {
  /** Stored with the task. */
  reason?: string | null;
}

/** Why votes decided nothing. */
export type CandidateGap = "too_few_votes" | "tie" | "dependent" | "evidence_missing" | "reuse_time";

/** State of a candidate. */
export type CandidateStanding = "waiting" | "verifying" | "revealing" | "approved" | "rejected" | "undecided";

/** Result of `/capabilities` of an executor, or why it cannot be used. */
export interface Capabilities {
  /** Only if it failed. */
  error?: string;
  model_id?: string;
  ok: boolean;
  /** Policies beyond the built-in ones. */
  policies?: Array<string>;
  profiles?: Array<string>;
  provider_family?: string;
  task_types?: Array<string>;
}

/** Circuit breaker, which stops calls to a failing executor. */
export interface Circuit {
  /**
   * Unless `closed`: `all`, or `some` if it failed for single accounts and is blocked only for
   * them.
   */
  rests_for?: CircuitScope;
  state: CircuitState;
  /** With `open`: when calls resume. */
  until?: Time;
}

/** Which accounts a resting executor is blocked for. */
export type CircuitScope = "all" | "some";

/** State of the circuit breaker: calls are made while it is `closed`. */
export type CircuitState = "closed" | "open" | "half_open";

/**
 * The candidate's output. An object with `output` is a full candidate: its `output` is judged,
 * and its `output_schema`, `evidence_inline` and `evidence_refs` are used.
 */
export type Claim = string | Record<string, unknown> | Array<unknown> | number | boolean;

/** Work that a lease is for. */
export type ClaimRole = "propose" | "verify" | "finalize";

/** The `consensus` block: the five fields that every client may rely on, then Jurat's own. */
export interface Consensus {
  /** Size of the largest group divided by the number of replicas asked. */
  agreement: number;
  /** Size of the largest group divided by the number of replicas that answered. */
  agreement_answered: number;
  /** Number of replicas that gave an answer of any kind. */
  answered: number;
  /** Same value as `replicas`. */
  asked: number;
  /**
   * Basis of the winning answer: `executors`, `judges`, or `form` if the server decided alone
   * under a policy that needs no judgment. Null if there is no winner.
   */
  basis: Basis | null;
  /** Number of replicas that were cancelled before they answered. */
  cancelled: number;
  /** Probability that the winning answer is right; 0 if there is no winner, never 1. */
  confidence: number;
  /** Whether the requested agreement was not reached. */
  disagreement: boolean;
  /** Number of independent votes that the votes are equivalent to. */
  effective_votes: number;
  /** The relation by which answers were compared; `label` for validate and factcheck. */
  equivalence: string;
  /** The group of each seat; null for a seat without a vote. */
  groups: Array<number | null>;
  /**
   * True if the winning answer has a confidence of one half or less, and therefore is no more
   * likely right than wrong; otherwise left out.
   */
  low_confidence?: boolean;
  outcome: Outcome;
  /** `replica` if one replica gave the output, `merge` if it was built from several. */
  output_by: string | null;
  /** Number of seats: the requested number of replicas. */
  replicas: number;
  score: Score | null;
  /** Spread of the numbers in the winning outputs, by JSON Pointer. */
  spread: Record<string, Spread>;
  /** Number of seats for which a session was called; the others failed before a call. */
  started: number;
  /** The aggregation; `none` for a round that expired or was cancelled. */
  strategy: string;
  /** Whether `best_effort` chose between equal groups. */
  tie_broken: boolean;
  /** The label of each seat, in selection order: that of the last session called for the seat. */
  verdicts: Array<Label>;
  /** The winning group. */
  winner: number | null;
}

/** The terms of consensus. `weight_by` and `target_confidence` are refused with `not_supported`. */
export interface ConsensusTerms {
  /** How the scores of the winners are combined; defaults to `majority`. */
  aggregation?: Aggregation | null;
  /** What to return when the replicas do not agree; defaults to `return_all`. */
  disagreement_policy?: DisagreementPolicy | null;
  /** Stop as soon as no outstanding replica can change the winner. */
  early_stop?: boolean | null;
  /** When two delegate outputs count as equal; depends on the outputs if left out. */
  equivalence?: EquivalenceChoice | null;
  /** `traces` adds inline evidence to the replicas. */
  include?: Array<Include> | null;
  /** How the output is built from the winners' outputs; defaults to `medoid`. */
  merge?: Merge | null;
  /** Minimum share that must agree, in addition to a majority. */
  min_agreement?: number | null;
  /** Number of sessions to call; defaults to that of the tier, or 1. */
  replicas?: Replicas | null;
  /** Sessions that may be called; defaults to all. */
  session_pool?: Array<SessionRef> | null;
  /**
   * How many spare sessions of the pool may replace failed ones; defaults to the number of
   * replicas, 0 for none.
   */
  spares?: number | null;
  /** Alias of `aggregation`. */
  strategy?: Aggregation | null;
  /** How a replica without an answer counts; defaults to `count`. */
  timeout_policy?: TimeoutPolicy | null;
}

/** The event `decided`: the round is recorded. */
export interface Decided {
  consensus: Consensus;
  round_id: string;
  /** The winning verdict; null if none won. */
  verdict: Label | null;
}

/** The reply to a delegate request. */
export interface DelegateReply {
  /** Probability that the output is right; 0 if there is none, never 1. */
  confidence: number;
  consensus: Consensus;
  /** The winning output; null if there is none. */
  output: unknown;
  /** Digest of the recorded decision. */
  receipt_id: string;
  /**
   * One for each seat, in the order of `verdicts`, followed by the replicas that a spare
   * replaced.
   */
  replicas: Array<Replica>;
  round_id: string;
  /** `OK`, or `NO_CONSENSUS` when no output won. */
  status: string;
}

/**
 * A request to delegate a job. Unknown fields are refused, except names that begin with `x_`,
 * which are reserved for the caller.
 */
export interface DelegateRequest {
  /** The person or system the job is done for; passed on to the executors. */
  actor?: unknown;
  consensus?: ConsensusTerms | null;
  /** Additional context for the executors. */
  context?: unknown;
  execution?: Execution | null;
  /** The input of the job; defaults to `{}`. */
  input?: unknown;
  /** The caller's notes; ignored. */
  metadata?: unknown;
  /** The job to do. */
  objective: string;
  policy?: PolicyChoice | null;
  /** Used as a pool of one session if there is no `session_pool`. */
  session_id?: SessionRef | null;
  /** Tools that the executors may use; passed on to them. */
  tools?: unknown;
  /** The workflow that the job belongs to; passed on to the executors. */
  workflow?: unknown;
}

/**
 * A version to deploy: the first version of a new verifier, or the next version of the verifier
 * with this name. Unknown fields are ignored.
 */
export interface DeployVerifierRequest {
  /**
   * Instructions for the judge: when the inputs pass and when they fail. For the judge
   * `builtin/rules` it is a document of rules.
   */
  criterion: string;
  /** What it checks, for people. */
  description: string;
  /** The current `version_token`; leave it out for a new verifier, required afterwards. */
  expected_version_token?: string | null;
  /** Labelled examples, shown to the judge as demonstrations. Each must match the contract. */
  few_shot_examples?: Array<FewShotExampleRequest> | null;
  input_contract: InputContract;
  /**
   * The text fields of the contract, in the order in which the judge reads them; none for
   * `image`.
   */
  input_fields?: Array<InputFieldName> | null;
  model_settings?: ModelSettings | null;
  /** Name of the verifier in its account. */
  name: string;
}

/** The added version. */
export interface DeployedVerifier {
  /** SHA-256 of the canonical JSON of the configuration, in hex. */
  config_hash: string;
  /** The added version, which is now the current one. */
  current_version: number;
  input_contract: InputContract;
  name: string;
  status: VerifierStatus;
  verifier_id: string;
  /** Alias of `current_version`. */
  version: number;
  /** Send it as `expected_version_token` to deploy the next version. */
  version_token: string;
  /**
   * Why the version cannot run yet, such as an unconfigured provider; left out if there is no
   * problem.
   */
  warnings?: Array<string>;
}

/** What to return when the replicas do not agree. */
export type DisagreementPolicy = "return_all" | "fail_hard" | "best_effort";

/** When two outputs count as equal. */
export type EquivalenceChoice = "canonical" | "text" | "unordered" | FieldsEquivalence | NumericEquivalence | BucketsEquivalence;

/** Stable error code. */
export type ErrorCode = "auth_required" | "forbidden" | "host_refused" | "invalid_json" | "validation_error" | "request_invalid" | "not_supported" | "schema_refused" | "policy_invalid" | "not_found" | "user_not_found" | "method_not_allowed" | "conflict" | "workflow_ownership_must_transfer" | "idempotency_mismatch" | "budget_exhausted" | "account_suspended" | "anonymous_daily_cap" | "payment_required" | "payment_unavailable" | "safety_verification_failed" | "safety_verification_unavailable" | "invalid_credentials" | "handle_invalid" | "handle_taken" | "handle_reserved" | "handle_already_claimed" | "handle_not_claimed" | "handle_rename_too_soon" | "handle_rename_limit_exceeded" | "invitation_expired" | "invitation_already_resolved" | "invitation_already_pending" | "quota_exceeded" | "session_unknown" | "session_pool_too_small" | "sessions_unavailable" | "executor_unavailable" | "peer_unavailable" | "consensus_disagreement" | "request_timeout" | "payload_too_large" | "unsupported_media_type" | "rate_limited" | "overloaded" | "shutting_down" | "store_unavailable" | "internal_error";

/** Evidence from a replica; empty if it gave no answer. */
export interface Evidence {
  /** Only if `consensus.include` asks for traces. */
  inline?: Array<EvidenceInline>;
  refs?: Array<EvidenceRef>;
}

/** Inline evidence. */
export interface EvidenceInline {
  content: string;
  mime: string;
}

/** Evidence stored elsewhere. */
export interface EvidenceRef {
  /** Milliseconds since 1970. */
  created_at: number;
  digest: string;
  mime: string;
  producer: string;
  size_bytes: number;
  uri: string;
}

/** Evidence as text. */
export interface EvidenceText {
  content: string;
  mime: string;
}

/** How to do the job. */
export interface Execution {
  /** Passed on in the task contract; defaults to 10. */
  max_steps?: number | null;
  /** Schema that the output must match; not used by factcheck. */
  output_schema?: JsonSchema | null;
  /** The deadline in seconds, if there is no `timeout_ms`. */
  timeout?: number | null;
  /** Deadline of the whole round; defaults to 60000. */
  timeout_ms?: number | null;
}

/** An executor and its current state. */
export interface Executor {
  /** Base URL under which it receives events; null if it receives none. */
  agent_events_url: string | null;
  circuit: Circuit;
  created_at: Time;
  name: string;
  /** The last probe; null before the first. */
  probe: Probe | null;
  /** Whether it belongs to another node, which calls it for this one. */
  remote: boolean;
  /** Only in the reply to `POST`, if there are any: the names of other executors at the same URL. */
  same_url?: Array<string>;
  /** The part of the network in which a remote executor is, if one was named. */
  scope: string | null;
  /** Only in the reply to `POST`: the added session, or null. */
  session?: Session | null;
  status: ExecutorStatus;
  /** The node of a remote executor; null if it is called directly. */
  target_node: string | null;
  /** Name of the environment variable with the bearer token. */
  token_env: string | null;
  url: string;
}

/** Whether the executor's event URL responds. */
export interface ExecutorEventsProbe {
  error: string | null;
  ok: boolean;
  url: string;
}

/** Result of `/health` of an executor. */
export interface ExecutorHealth {
  error: string | null;
  ok: boolean;
}

/** The name of an executor. */
export type ExecutorName = string;

/** A page of a list. */
export interface ExecutorPage {
  items: Array<Executor>;
  /** Send it as `cursor` to get the next page; null on the last page. */
  next_cursor: string | null;
}

/** Status of an executor; `resting` while its circuit breaker is open. */
export type ExecutorStatus = "unchecked" | "up" | "down" | "resting";

/** The claim as text, or an object with the text in `text` or `claim`. */
export type FactClaim = string | Record<string, unknown>;

/** How to do a fact check; passed on to the executors. */
export type FactcheckMode = "standard" | "realtime";

/** The sessions required for a fact check. */
export interface FactcheckPolicy {
  /** Labels that every session routed to must have. */
  labels?: Array<string> | null;
  /** Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5. */
  tier?: Tier | null;
  /** As in `execution`, which takes precedence. */
  timeout?: number | null;
  /** As in `execution`, which takes precedence. */
  timeout_ms?: number | null;
}

/** A tier, alone or in an object. */
export type FactcheckPolicyChoice = Tier | FactcheckPolicy;

/**
 * A request to fact-check a claim. Unknown fields are refused, except names that begin with `x_`,
 * which are reserved for the caller.
 */
export interface FactcheckRequest {
  /** The person or system the job is done for; passed on to the executors. */
  actor?: unknown;
  claim: FactClaim;
  consensus?: ConsensusTerms | null;
  /** Additional context for the executors. */
  context?: unknown;
  execution?: Execution | null;
  /** The caller's notes; ignored. */
  metadata?: unknown;
  /**
   * Defaults to `standard`. In the mode `realtime`, a session whose executor does not list
   * `factcheck:realtime` in its task types abstains with `NEEDS_SPEC`.
   */
  mode?: FactcheckMode | null;
  policy?: FactcheckPolicyChoice | null;
  /** Used as a pool of one session if there is no `session_pool`. */
  session_id?: SessionRef | null;
  /** Tools that the executors may use; passed on to them. */
  tools?: unknown;
  /** The workflow that the job belongs to; passed on to the executors. */
  workflow?: unknown;
}

/** Why a replica has no verdict. */
export type FailureCode = "timeout" | "busy" | "unavailable" | "unreachable" | "disconnected" | "http_status" | "redirect" | "not_json" | "bad_shape" | "too_large" | "encoded_reply" | "hash_mismatch" | "status_contradicts" | "peer_refused" | "forged_answer" | "foreign_answer" | "replayed_answer" | "overpriced" | "policy_contradicted" | "invalid_output" | "output_unchecked" | "judge_unavailable" | "judge_unreadable" | "media_unavailable" | "cancelled" | "node_stopped" | "internal";

/** Feedback by the holder of the key. */
export type FeedbackMode = "CAPABILITY";

/** A labelled example. */
export interface FewShotExample {
  inputs: Record<string, string>;
  media_url: string | null;
  passed: boolean;
  reasoning: string | null;
}

/** A labelled example. */
export interface FewShotExampleRequest {
  /** Every field of the contract with its text. */
  inputs?: Record<string, string> | null;
  /** An image, if the contract has one. */
  media_url?: string | null;
  /** Whether these inputs pass. */
  passed: boolean;
  /** Reason. */
  reasoning?: string | null;
}

/** What is wrong with a field. */
export interface FieldError {
  field: string;
  reason: string;
}

/** Outputs are equal if they are equal at these JSON Pointers. */
export interface FieldsEquivalence {
  fields: Array<Pointer>;
}

/** `traces` adds inline evidence to the replicas. */
export type Include = "traces";

/** Input of a judge: named text fields, one image, or both. */
export type InputContract = "text" | "text_image" | "image";

/** The name of a text field that a judge reads. */
export type InputFieldName = string;

/** A JSON Schema; draft 2020-12 unless `$schema` names another. */
export type JsonSchema = Record<string, unknown> | boolean;

/** `provider/model`. */
export type JudgeModel = string;

/** The judge and its settings. */
export interface JudgeModelConfig {
  /** Whether the judge writes its own answer before it sees the candidate. */
  commit_first: boolean;
  /** `provider/model`. */
  model: string;
  reasoning_effort?: ReasoningEffort;
}

/** Total usage of the judges, as counted by their providers. */
export interface JudgeUsage {
  /** Whether every verdict was cached, so that no model was called. */
  cached: boolean;
  input_tokens: number;
  output_tokens: number;
}

/** The key of the request. */
export interface KeyOfMe {
  id: string;
  name: string;
}

/** Kind of a round. */
export type Kind = "delegate" | "validate" | "factcheck";

/** Verdict or status of a replica or a round. */
export type Label = "VALID" | "INVALID" | "RETRY" | "NEEDS_SPEC" | "TRUE" | "FALSE" | "UNSURE" | "OK" | "INVALID_OUTPUT" | "TIMEOUT" | "ERROR" | "CANCELLED";

/** The caller. */
export interface Me {
  /**
   * E-mail address of the account. An account created by an operator shows an address that
   * receives no mail but can be used to share with the account.
   */
  email: string;
  /** Public name of the account; null if it has not claimed one. */
  handle: string | null;
  /** When the account got the handle. */
  handle_claimed_at: Time | null;
  /** The account. */
  id: string;
  key: KeyOfMe;
  scopes: Array<Scope>;
  /** Whether the account is suspended: paid work is refused. */
  suspended: boolean;
}

/** The newest measurements of a version. */
export interface Measured {
  /** Attack with known injections; null if there was none. */
  attack: Measurement | null;
  /** Test against labelled examples; null if there was none. */
  test: Measurement | null;
}

/** One measurement. */
export interface Measurement {
  /** Two measurements with the same digest used the same examples. */
  data_digest: string;
  /** The attack families tried; empty for a test. */
  families: Array<string>;
  /** The judge's scores. */
  figures: unknown;
  /** The judge: always the version's own. */
  judges: Array<string>;
  measured_at: Time;
  measurement_id: string;
  /** Number of judges per case. */
  replicas: number;
}

/** How the output is built from the winners' outputs. */
export type Merge = "medoid" | "fields";

/** The judge and its settings. Unknown keys are ignored. */
export interface ModelSettings {
  /** Whether the judge writes its own answer before it sees the candidate. */
  commit_first?: boolean | null;
  /** Defaults to the installation's default judge, or `builtin/rules` if there is none. */
  model?: JudgeModel | null;
  reasoning_effort?: ReasoningEffort | null;
}

/** The id of a session. */
export type NewSessionId = string | number;

/** Outputs are equal if their numbers differ by at most the tolerance. */
export interface NumericEquivalence {
  numeric: Tolerance;
}

/** Outcome of a round. */
export type Outcome = "agreed" | "split" | "abstained" | "failed";

/** A payment that the server accepts, in version 1 of the protocol. */
export interface PaymentRequirementsV1 {
  /** Contract of the token. */
  asset: string;
  /** The operation, in words. */
  description: string;
  /** Name and version of the token, which are part of the signed data. */
  extra: TokenDomain;
  /** Amount in base units of the token. */
  maxAmountRequired: string;
  /** How long the authorization must be valid, in seconds. */
  maxTimeoutSeconds: number;
  /** Media type of the reply. */
  mimeType: string;
  /** Name of the network, such as `base`. */
  network: string;
  /** Address that is paid. */
  payTo: string;
  /** URL of the paid request. */
  resource: string;
  /** `exact`: a transfer of exactly the amount. */
  scheme: string;
}

/** A JSON Pointer. */
export type Pointer = string;

/** A tier, the id of a policy (a string with a dot), or both in an object. */
export type PolicyChoice = Tier | string | PolicyObject;

/** The policy of a request: the deciding rules and the required sessions. */
export interface PolicyObject {
  /** Labels that every session routed to must have. */
  labels?: Array<string> | null;
  /** Must be the correct hash; computed if left out. Needs `policy_id`. */
  policy_hash?: string | null;
  /** The deciding policy, such as `vp.schema_only.v1`; the kind of job has a default. */
  policy_id?: string | null;
  /** The parameters of the policy; defaults to `{}`. Needs `policy_id`. */
  policy_params?: Record<string, unknown> | null;
  /** Defaults to `1`. Needs `policy_id`. */
  policy_version?: string | null;
  /** Delegate only: the task type that the executors are asked for; defaults to `delegate`. */
  task_type?: string | null;
  /** Lowest tier of sessions to route to; also sets the number of replicas: 1, 3 or 5. */
  tier?: Tier | null;
  /** As in `execution`, which takes precedence. */
  timeout?: number | null;
  /** As in `execution`, which takes precedence. */
  timeout_ms?: number | null;
}

/** Result of a probe: health and capabilities. */
export interface Probe {
  /** Only in the reply to a check of an executor that is registered with `agent_events_url`. */
  agent_events?: ExecutorEventsProbe;
  at: Time;
  capabilities: Capabilities;
  health: ExecutorHealth;
  /** Only in the reply to a check: the name of the executor. */
  name?: string;
  /** Whether both health and capabilities are ok. */
  ok: boolean;
}

/** An error, as `application/problem+json`. */
export interface Problem {
  /**
   * With `payment_required`: the payments that are accepted. The header `PAYMENT-REQUIRED` has
   * the same in version 2 of the protocol.
   */
  accepts?: Array<PaymentRequirementsV1>;
  code: ErrorCode;
  /** With `consensus_disagreement`, as in a reply. */
  consensus?: Consensus;
  /** With `conflict` on a deploy or save: the current token, required for the next version. */
  current_version_token?: string;
  /** The error in words. */
  detail: string;
  /** The code. */
  error: ErrorCode;
  /** With `field`: the same error as a list. */
  errors?: Array<FieldError>;
  /** Path of the faulty field, such as `consensus.replicas`, if there is one. */
  field?: string;
  /** What to try next. */
  hint: string;
  /** Alias of `detail`. */
  message: string;
  /** With `schema_refused`: the exceeded limit. */
  reason?: string;
  /** With `safety_verification_failed`: the judge's reasoning. */
  reasoning?: string;
  /** With `consensus_disagreement`: the digest of the recorded decision. */
  receipt_id?: string;
  /** With `consensus_disagreement`, as in a reply. */
  replicas?: Array<Replica>;
  /** With `anonymous_daily_cap`: when the next day starts. */
  resets_at?: Time;
  /** Id of the round, if one was opened. */
  round_id?: string;
  /** With `sessions_unavailable`: the problem of each session. */
  sessions?: Array<SessionProblem>;
  /** The HTTP status. */
  status: number;
  /** The code. */
  title: ErrorCode;
  /** `urn:jurat:error:` and the code. */
  type: string;
  /** With `safety_verification_failed`: the judge's verifier run. */
  verifier_run_id?: string;
  /** With `payment_required`: the version of the payment protocol that `accepts` is written in. */
  x402Version?: number;
}

/** Reasoning effort of a judge, for models that support it. */
export type ReasoningEffort = "low" | "medium" | "high" | "xhigh";

/** A removed resource. */
export interface Removed {
  /** The name or id of the removed resource. */
  removed: string;
}

/** A removed executor and its sessions. */
export interface RemovedExecutor {
  /** The name of the removed executor. */
  removed: string;
  /** The ids of its sessions, which were removed too. */
  sessions: Array<string>;
}

/** A replica: one session's attempt within a round. */
export interface Replica {
  /** The price of the session plus the judge's usage, in millionths of a credit. */
  cost: number;
  error: ReplicaError | null;
  evidence: Evidence;
  executor: string;
  /** Its group, as in `consensus.groups`. */
  group: number | null;
  /** `provider/model@host`. */
  independence: string;
  /** Time until its answer arrived. */
  latency_ms: number;
  /** Notes, such as a missing hash. */
  notes: Array<string>;
  /** The output it returned; null in validate. */
  output: unknown;
  /** Reason codes for its answer. */
  reason_codes: Array<number>;
  /** Assumed share of correct answers of the session. */
  reliability: number;
  /**
   * Only if it failed and was replaced by a spare: the `replica_id` of the spare. Such a replica
   * is neither in `verdicts` nor in any count.
   */
  replaced_by?: number;
  /** Position in selection order, from 0. Spares follow the seats. */
  replica_id: number;
  /** Only in events: the round that it belongs to. */
  round_id?: string;
  /**
   * Its own confidence in its answer: `score` of `/verify`, or the member `confidence` of the
   * output.
   */
  score: number | null;
  session_id: string;
  /** Delegate: the replica's status. */
  status?: Label;
  /** Validate and factcheck: the replica's verdict. */
  verdict?: Label;
  /** The hash that the server computed; validate only. */
  verifier_result_hash: string | null;
}

/** Why a replica has no verdict. */
export interface ReplicaError {
  code: FailureCode;
  detail: string;
}

/** The event `replica_started`: a replica is called. */
export interface ReplicaStarted {
  executor: string;
  /** Position in selection order, from 0. */
  replica_id: number;
  round_id: string;
  session_id: string;
}

/** Number of sessions to call. */
export type Replicas = 1 | 3 | 5;

/** A revoked verifier. */
export interface RevokedVerifier {
  name: string;
  revoked: boolean;
  verifier_id: string;
}

/** A round: its request, state and outcome. */
export interface Round {
  agreement: number | null;
  /** The request in one line; null if it is not stored or was erased or pruned. */
  asked: string | null;
  /** Null while the round is open, like all fields below. */
  closed_at: Time | null;
  confidence: number | null;
  consensus?: Consensus;
  deadline_at: Time;
  /** When the round's content was erased or pruned; left out before that. */
  erased_at?: Time;
  kind: Kind;
  opened_at: Time;
  outcome: Outcome | null;
  output?: unknown;
  policy_hash: string;
  policy_id: string;
  /** As in the reply; left out in lists and while the round is open, like all fields below. */
  reasons?: Array<string>;
  receipt_id: string | null;
  replicas?: Array<Replica>;
  /**
   * The request as canonical JSON, whose digest is `request_digest`; for a verifier run, the
   * input of its judges. Left out in lists and if it is not stored.
   */
  request?: unknown;
  /** Digest of the request's canonical JSON. */
  request_digest: string;
  round_id: string;
  /** The sessions called, in selection order. */
  sessions: Array<string>;
  state: RoundState;
  status?: string;
  /** The task that the round belongs to, if any. */
  task_id?: string;
  /** The winning verdict, `OK` for delegate; null if none won. */
  verdict: Label | null;
  /** The verifier run that the round carries out, if any. */
  verifier_run_id?: string;
  /** Ignored fields of a version 2 request, in the reply to a request that does not wait. */
  warnings?: Array<string>;
}

/** A round whose content is erased. */
export interface RoundErased {
  /** When it was erased, possibly by an earlier request. */
  erased_at: Time;
  round_id: string;
}

/** A page of a list. */
export interface RoundPage {
  items: Array<Round>;
  /** Send it as `cursor` to get the next page; null on the last page. */
  next_cursor: string | null;
}

/** State of a round: open, or how it ended. */
export type RoundState = "open" | "closed" | "expired" | "cancelled";

/** Why a run has no verdict. */
export type RunErrorCode = "runtime_error" | "verifier_unavailable" | "timeout";

/** One judge of a run. */
export interface RunJudge {
  /** Whether its verdict was cached. */
  cached: boolean;
  /** Cost in credits, as decimal text. */
  cost_usd: string;
  /** Why it gave no verdict. */
  error: ReplicaError | null;
  /** The passages that it cites. */
  findings: Array<unknown>;
  /** How the verdict counts. */
  label: Label;
  latency_ms: number;
  /** `provider/model`. */
  model: string;
  reasoning: string | null;
  /** Its verdict: `met`, `not_met`, `cannot_confirm` or `conflicting`; null if it gave none. */
  verdict: string | null;
}

/** Purpose of a run. */
export type RunPurpose = "run" | "test" | "attack";

/** `success` with either verdict, `error` without one. */
export type RunStatus = "success" | "error" | "running";

/** What to judge, and how. Unknown fields are ignored. */
export interface RunVerifierRequest {
  /**
   * Whether the judges write their own answer before they see the candidate; defaults to the
   * version's setting.
   */
  commit_first?: boolean | null;
  /** Call the judges even if a verdict on the same inputs is cached. */
  fresh?: boolean | null;
  /** Exactly the fields of the version's contract, each with non-blank text. */
  inputs?: Record<string, string> | null;
  /**
   * Judges to use instead of the version's own judge, each once. A metered account cannot name a
   * model without a price if other models of its provider have one.
   */
  judges?: Array<JudgeModel> | null;
  /** The URL of a public image, if the contract has one. */
  media_url?: string | null;
  /** Number of judges; defaults to the number in `judges`, or one. */
  replicas?: Replicas | null;
  /** The caller's own id for the context of the run. */
  run_id?: string | null;
  /** Alias of `workflow_id`. */
  skill_id?: string | null;
  /** Alias of `workflow_ref`. */
  skill_ref?: string | null;
  /** Alias of `workflow_version`. */
  skill_version?: number | null;
  /** Deadline of the whole run; defaults to two minutes. Without a key at least 10,000. */
  timeout_ms?: number | null;
  /** The version to run; defaults to the current one. */
  version?: number | null;
  /** The workflow that the run belongs to, according to the caller; `skill_id` is an alias. */
  workflow_id?: string | null;
  /** Another name of the workflow; `skill_ref` is an alias. */
  workflow_ref?: string | null;
  /** The version of the workflow; `skill_version` is an alias. */
  workflow_version?: number | null;
}

/** Scope of a key. */
export type Scope = "admin" | "rounds:create" | "rounds:read" | "metrics:read" | "verifiers:read" | "verifiers:write" | "verifiers:run" | "usage:read" | "keys:write" | "workflows:read" | "workflows:write" | "account:write" | "tasks:read" | "tasks:write";

/** The winners' own scores. */
export interface Score {
  deviation: number;
  max: number;
  /** `mean` or `median`. */
  method: string;
  min: number;
  value: number;
}

/** A session: a named route to one executor. */
export interface Session {
  created_at: Time;
  /** The name of its executor. */
  executor: string;
  id: string;
  labels: Array<string>;
  /** Price per call in millionths of a credit. */
  price_micros: number;
  profile: string;
  /** Assumed share of correct answers. */
  reliability: number;
  /** Same value as `id`. */
  session_id: string;
  /** Maps task types to the executor's names for them; the key `*` matches any. */
  task_types: Record<string, string>;
  tier: Tier | null;
}

/** The session to add with the executor, or a boolean for whether to add one. */
export type SessionChoice = boolean | SessionOfExecutor;

/** A session that is added with an executor; named like it by default. */
export interface SessionOfExecutor {
  id?: NewSessionId | null;
  /** Words that requests can route by; none by default. */
  labels?: Array<string> | null;
  /** Price per call in millionths of a credit; 0 by default. */
  price_micros?: number | null;
  /** One of the profiles that the executor declares; defaults to `default`. */
  profile?: string | null;
  /** Expected share of correct answers; defaults to the value of the tier. Stored in thousandths. */
  reliability?: number | null;
  /** Maps task types to the executor's names for them; the key `*` matches any. */
  task_types?: Record<string, string> | null;
  tier?: Tier | null;
}

/** A page of a list. */
export interface SessionPage {
  items: Array<Session>;
  /** Send it as `cursor` to get the next page; null on the last page. */
  next_cursor: string | null;
}

/** Why a session cannot answer now. */
export interface SessionProblem {
  problem: string;
  session_id: string;
}

/** A session id, `label:…` or `profile:…`. */
export type SessionRef = string | number;

/** Spread of numbers. */
export interface Spread {
  deviation: number;
  max: number;
  min: number;
}

/** A contract, alone or with the executors for it. */
export type SubmitTask = TaskContract | TaskOrder;

/** A task with its state and history. */
export interface Task {
  candidates: Array<TaskCandidate>;
  /** A lease: work in progress. */
  claims: Array<TaskClaimUnderWay>;
  /** The candidate that the votes approved. */
  committed_candidate_id: string | null;
  /**
   * The contract with all defaults filled in; null once the task was pruned, and not in the reply
   * to a submission.
   */
  contract?: TaskContract | null;
  /** Digest of the contract's canonical JSON. */
  contract_digest: string;
  created_at: Time;
  /** Latest time at which the task ends, as currently known. */
  deadline_at: Time;
  ended_at: Time | null;
  /** Current epoch of a continuous task, from 1. */
  epoch: number;
  /** Number of events. */
  events: number;
  /** The candidate whose decision is final. */
  finalized_candidate_id: string | null;
  panel: TaskPanel;
  /** Why it ended without a decision. */
  reason: string | null;
  /** How often proposing failed for all proposers. */
  retries: number;
  /** No executor is asked to propose again before this time. */
  retry_at: Time | null;
  /** Decisions that can still be disputed. */
  settling: Array<TaskSettling>;
  spent: TaskSpent;
  /** When the first work of this epoch started. */
  started_at: Time | null;
  state: TaskState;
  task_id: string;
  task_type: string;
  updated_at: Time;
}

/** Requirements for a decision. */
export interface TaskAcceptance {
  aggregation?: TaskAggregation | null;
  /**
   * Number of voters that must be able to fetch each piece of evidence; if left out, evidence is
   * not fetched.
   */
  da_quorum_threshold?: number | null;
  /** Number of approvals by different voters. */
  quorum_threshold: number;
  settlement: TaskSettlement;
  /** Defaults to `vp.schema_only.v1`: a candidate must match `output_schema`. */
  verifier_policy?: TaskPolicy | null;
  vote: TaskVote;
}

/** One part of a budget. */
export interface TaskAccount {
  left: number;
  limit: number;
  spent: number;
}

/** How votes on a candidate become a decision; `QUORUM` by default. */
export type TaskAggregation = "QUORUM" | "CONFIDENCE_WEIGHTED" | "REPUTATION_WEIGHTED";

/** How many executors may work on a task, concurrently and in total. */
export interface TaskAssignment {
  claim: TaskClaim;
  explore?: TaskExplore | null;
  finalize?: TaskFinalize | null;
  mode: AssignmentMode;
  verify?: TaskVerify | null;
}

/** Penalty for a bad decision. */
export interface TaskBadPenalty {
  P: number;
}

/** The budget of a task. Each call to an executor is one step and costs one unit of its stage. */
export interface TaskBudget {
  /** At least the sum of the three stages. */
  cost_units: number;
  explore_cost_units: number;
  finalize_cost_units: number;
  max_steps: number;
  /** Defaults to `LIFETIME`. */
  mode?: BudgetMode | null;
  reuse_max_attempts: number;
  /** At most `cost_units`. */
  reuse_verify_cost_units: number;
  /** Time for first trying to reuse an earlier decision; at most `time_ms`. */
  reuse_verify_time_ms: number;
  /** Time from the first lease to the end. */
  time_ms: number;
  verify_cost_units: number;
}

/** A proposed output. */
export interface TaskCandidate {
  candidate_id: string;
  /** For each referenced digest: the voters that could fetch it. */
  evidence: Record<string, Array<string>>;
  /** Why the votes so far decided nothing. */
  gap: CandidateGap | null;
  /** Digest of the output's canonical JSON. */
  output_digest: string;
  /** Executors that proposed this output; they cannot vote on it. */
  proposers: Array<string>;
  /** The earlier decision that it was reused from. */
  source: string | null;
  standing: CandidateStanding;
  /** Number of the current voting attempt on it, from 1. */
  turn: number;
  votes: Array<TaskVoteCast>;
}

/** How executors claim work. */
export interface TaskClaim {
  /** Duration of a lease unless it is renewed. */
  lease_ms: number;
  max_concurrency: TaskConcurrency;
}

/** A lease: work in progress. */
export interface TaskClaimUnderWay {
  candidate_id: string | null;
  execution_id: string;
  /** The executor, or the node. */
  holder: string;
  role: ClaimRole;
  /** The fencing token: later leases have higher ones. */
  token: number;
  /** When the lease expires unless it is renewed. */
  until: Time;
}

/** Maximum number of concurrent leases. */
export interface TaskConcurrency {
  propose: number;
  verify: number;
}

/** The terms of a task. All times are in milliseconds. */
export interface TaskContract {
  acceptance: TaskAcceptance;
  assignment: TaskAssignment;
  budget: TaskBudget;
  evidence_policy: TaskEvidencePolicy;
  /** When the contract expires, in milliseconds since 1970. */
  expiry_ms: number;
  inputs: TaskInputs;
  /** The JSON Schema of every candidate. */
  output_schema: Record<string, unknown>;
  /** Version of the contract format, such as `v0.1`. */
  protocol_version: string;
  /** The id of the task, unique within the account. */
  task_id: string;
  /** Defaults to `ONE_SHOT`. */
  task_mode?: TaskMode | null;
  /** Task type that executors must declare to work on it. */
  task_type: string;
}

/** The decision of a task; fields are null if there is none yet. */
export interface TaskDecision {
  aggregation: TaskAggregation;
  /** Share of valid votes that are for the candidate. */
  agreement: number | null;
  /** Valid votes for the candidate. */
  approvals: number;
  /**
   * Basis of the decision: `executors`, `judges`, or `form` if only the node voted for it, under
   * a policy that needs no judgment.
   */
  basis: Basis | null;
  candidate_id: string | null;
  /** Same value as `output`. */
  candidate_output: unknown;
  /** The candidate that the votes approved. */
  committed_candidate_id: string | null;
  /** Probability that the decision is right. */
  confidence: number | null;
  epoch: number;
  /** Digests of the evidence that the candidate refers to. */
  evidence_digests: Array<string>;
  /** The proposers of the decided output. */
  executor: string | null;
  /** The member `answer` of the output, if it is a string. */
  final_answer: string | null;
  /** The member `decision` of the output, if it is a string. */
  final_decision: string | null;
  /** Digest of the decision, used by later tasks to refer to it. */
  final_hash: string | null;
  /** The candidate whose decision is final. */
  finalized_candidate_id: string | null;
  model_id: string | null;
  /** The decided output. */
  output: unknown;
  profile: string;
  provider_family: string | null;
  quorum_threshold: number;
  /** Why there is no decision, if the task ended without one. */
  reason: string | null;
  /** Valid votes against the candidate. */
  rejections: number;
  /** The rounds of the task's calls; `GET /v1/rounds/{id}` shows them. */
  rounds: TaskRounds;
  /** The earlier decision that the candidate was reused from. */
  source: string | null;
  state: TaskState;
  task_id: string;
  task_type: string;
  /** Same value as `state`. */
  terminal_state: TaskState;
  votes: Array<TaskVoteCast>;
}

/** How much less each further success counts. */
export interface TaskDiminishingReturns {
  K: number;
  W: number;
}

/** An event of a task. */
export interface TaskEvent {
  at: Time;
  /** Data of an event of this type. */
  data: Record<string, unknown>;
  /** From 1, without gaps. */
  seq: number;
  task_id: string;
  type: TaskEventType;
}

/** A page of a list. */
export interface TaskEventPage {
  items: Array<TaskEvent>;
  /** Send it as `cursor` to get the next page; null on the last page. */
  next_cursor: string | null;
}

/** What happened. */
export type TaskEventType = "TASK_CREATED" | "TASK_CLAIMED" | "TASK_CLAIM_RENEWED" | "TASK_CLAIM_RELEASED" | "BUDGET_CHARGED" | "BUDGET_REFUNDED" | "CANDIDATE_PROPOSED" | "CANDIDATE_REUSED" | "EXPLORE_CLOSED" | "EVIDENCE_AVAILABLE" | "VOTE_COMMIT" | "REVEAL_OPENED" | "VOTE_REVEAL" | "VOTE_FORFEITED" | "EQUIVOCATION_PROVEN" | "VOTING_EXTENDED" | "DECISION_COMMITTED" | "CANDIDATE_REJECTED" | "VERIFICATION_REPEATED" | "CANDIDATE_UNDECIDED" | "TASK_RETRY_SCHEDULED" | "DECISION_FINALIZED" | "TASK_FEEDBACK_REPORTED" | "TASK_SETTLED" | "EPOCH_ENDED" | "TASK_FAILED" | "TASK_EXPIRED" | "TASK_CANCELLED";

/** Evidence allowed with a candidate. */
export interface TaskEvidencePolicy {
  /** Must contain `application/json`, `text/plain`, `text/markdown` and `text/csv`. */
  inline_mime_allowlist: Array<string>;
  /** Must be 65536. */
  max_inline_evidence_bytes: number;
  /** Must be 0. */
  max_inline_media_bytes: number;
  /** Maximum bytes of one piece of inline evidence; defaults to 8192. */
  max_snippet_bytes?: number | null;
  /** Maximum tokens of one piece of inline evidence, at four bytes each; defaults to 2048. */
  max_snippet_tokens?: number | null;
}

/** How candidates are found. */
export interface TaskExplore {
  /** Delay before the first restart, doubled each time; defaults to 1000. */
  backoff_ms?: number | null;
  /** Total number of executors that propose; defaults to 1. */
  max_proposers?: number | null;
  /** How often proposing restarts after all proposers failed; defaults to 3. */
  max_retries?: number | null;
  stop?: TaskExploreStop | null;
  /** Maximum number of candidates that are voted on; defaults to 3. */
  topk?: number | null;
}

/** When to stop looking for candidates. */
export interface TaskExploreStop {
  /** Defaults to 3. */
  no_new_evidence_rounds?: number | null;
}

/** Who may dispute a decision. */
export interface TaskFeedback {
  /** `ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key. */
  authority_pubkey: string;
  mode: FeedbackMode;
}

/** How a decision is made final. */
export interface TaskFinalize {
  /** Defaults to 1. */
  max_finalizers?: number | null;
}

/** The input of the task; executors receive it as `inputs`. */
export type TaskInputs = Record<string, unknown> | string | Array<unknown> | number | boolean;

/**
 * Whether the task ends with its decision or continues with the next epoch. `CONTINUOUS` needs
 * the budget mode `EPOCH_RENEW`.
 */
export type TaskMode = "ONE_SHOT" | "CONTINUOUS";

/** A contract with the executors for it. */
export interface TaskOrder {
  contract: TaskContract;
  /** Executors that may propose and vote; defaults to all that declare the task type. */
  executors?: Array<ExecutorName> | null;
  /** Profile that the executors use; defaults to `default`. */
  profile?: string | null;
  /** Executors that vote; defaults to those of `executors`. */
  verifiers?: Array<VerifierName> | null;
}

/** The executors that may work on a task. */
export interface TaskPanel {
  executors: Array<string>;
  /** Whether this node votes too, because the other voters are too few for the quorum. */
  node_votes: boolean;
  profile: string;
  verifiers: Array<string>;
}

/** The policy that candidates are voted on under. */
export interface TaskPolicy {
  /** Computed if left out; otherwise it must be correct. */
  policy_hash?: string | null;
  /** Such as `vp.schema_only.v1`. */
  policy_id: string;
  /** Defaults to empty. */
  policy_params?: Record<string, unknown> | null;
  /** Defaults to `1`. */
  policy_version?: string | null;
}

/** The rounds of the task's calls. */
export interface TaskRounds {
  /** The round that proposed the candidate; null if it comes from an earlier decision. */
  propose: string | null;
  /** The round of each voter's verdict. */
  verify: Record<string, string>;
}

/** Settlement of a decision. Stored with the contract and shown to executors. */
export interface TaskSettlement {
  bad_penalty: TaskBadPenalty;
  feedback: TaskFeedback;
  implicit_diminishing_returns: TaskDiminishingReturns;
  implicit_weight: number;
  window_ms: number;
}

/** A decision that can be disputed for a limited time. */
export interface TaskSettling {
  candidate_id: string;
  /** The dispute; only one is accepted. */
  complaint: string | null;
  epoch: number;
  /** End of the dispute window. */
  settles_at: Time;
}

/** Spent and remaining budget of this epoch. */
export interface TaskSpent {
  /** Units of all stages. */
  cost_units: TaskAccount;
  explore_cost_units: TaskAccount;
  finalize_cost_units: TaskAccount;
  /** Calls to executors. */
  steps: TaskAccount;
  verify_cost_units: TaskAccount;
}

/** State of a task. */
export type TaskState = "created" | "claimed" | "proposed" | "verifying" | "committed" | "finalized" | "failed" | "expired" | "cancelled";

/** A task in a list. */
export interface TaskSummary {
  created_at: Time;
  ended_at: Time | null;
  /** Number of events. */
  events: number;
  /** Why it ended without a decision. */
  reason: string | null;
  state: TaskState;
  task_id: string;
  task_type: string;
  updated_at: Time;
}

/** A page of a list. */
export interface TaskSummaryPage {
  items: Array<TaskSummary>;
  /** Send it as `cursor` to get the next page; null on the last page. */
  next_cursor: string | null;
}

/** How candidates are voted on. */
export interface TaskVerify {
  /** How often an undecided vote is repeated; defaults to 2. */
  max_repeats?: number | null;
  /** Maximum number of verdicts per candidate; defaults to 1. */
  max_verifiers?: number | null;
}

/** How votes are taken. */
export interface TaskVote {
  commit_reveal: Always;
  /** How long votes may be revealed after the last commit. */
  reveal_deadline_ms: number;
}

/** A vote. Its verdict is visible only after the reveal. */
export interface TaskVoteCast {
  /** The digest that commits the voter to its verdict. */
  commitment: string;
  /** Why it does not count. */
  forfeited: VoteForfeit | null;
  /** What the voter has in common with other voters, such as a model. */
  independence: string;
  reason_codes: Array<number> | null;
  score: number | null;
  turn: number;
  /** Null until the vote is revealed, like the next three fields. */
  verdict: VerificationStatus | null;
  /** Digest of the voter's full answer. */
  verdict_digest: string | null;
  voter: string;
}

/** Quality tier of a session, or the tier that a job requires. */
export type Tier = "fast" | "safe" | "oracle";

/** A time in UTC, as RFC 3339 text. */
export type Time = string;

/** How a replica without an answer counts. */
export type TimeoutPolicy = "count" | "ignore" | "negative";

/** The name and the version of a token, as payers sign them. */
export interface TokenDomain {
  name: string;
  version: string;
}

/** Maximum difference between numbers. */
export interface Tolerance {
  tolerance: number;
}

/**
 * A request to validate a candidate. Unknown fields are refused, except names that begin with
 * `x_`, which are reserved for the caller.
 */
export interface ValidateRequest {
  /** The person or system the job is done for; passed on to the executors. */
  actor?: unknown;
  claim: Claim;
  consensus?: ConsensusTerms | null;
  /** Additional context for the executors. */
  context?: unknown;
  /** Evidence for the candidate, as text. */
  evidence_inline?: Array<EvidenceText> | null;
  /** Evidence for the candidate, stored elsewhere. */
  evidence_refs?: Array<EvidenceRef> | null;
  execution?: Execution | null;
  /** The caller's notes; ignored. */
  metadata?: unknown;
  /** Schema that the output must match; takes precedence over `execution.output_schema`. */
  output_schema?: JsonSchema | null;
  policy?: PolicyChoice | null;
  /** Used as a pool of one session if there is no `session_pool`. */
  session_id?: SessionRef | null;
  /** Tools that the executors may use; passed on to them. */
  tools?: unknown;
  /** The workflow that the job belongs to; passed on to the executors. */
  workflow?: unknown;
}

/** The reply to a validate or factcheck request. */
export interface VerdictReply {
  /** Probability that the verdict is right; 0 if there is none, never 1. */
  confidence: number;
  consensus: Consensus;
  /** The winning side's reasons, in words. */
  reasons: Array<string>;
  /** Digest of the recorded decision. */
  receipt_id: string;
  /**
   * One for each seat, in the order of `verdicts`, followed by the replicas that a spare
   * replaced.
   */
  replicas: Array<Replica>;
  round_id: string;
  /** The winning verdict, such as `VALID` or `TRUE`; null if none won. */
  verdict: Label | null;
}

/** Verdict on a candidate. */
export type VerificationStatus = "passed" | "failed" | "inconclusive";

/** One version of a verifier in full. */
export interface Verifier {
  /** SHA-256 of the canonical JSON of the configuration, in hex: equal for equal configurations. */
  config_hash: string;
  /** When the verifier was first deployed. */
  created_at: Time;
  criterion: string;
  /** The version that runs when none is pinned. */
  current_version: number;
  /** When this version was deployed. */
  deployed_at: Time;
  description: string;
  few_shot_examples: Array<FewShotExample>;
  input_contract: InputContract;
  /** Empty for the contract `image`. */
  input_fields: Array<string>;
  judge_model_config: JudgeModelConfig;
  /** Measurements of this version; null if it was never measured. */
  measured: Measured | null;
  name: string;
  /** What the judge is asked to write in addition to its verdict. */
  reasoning_field_description: string;
  status: VerifierStatus;
  /** When its current version was deployed. */
  updated_at: Time;
  /** Followed by `@` and the version if it was requested that way. */
  verifier_id: string;
  /** The version shown. */
  version: number;
  /** Send it as `expected_version_token` to deploy the next version. */
  version_token: string;
}

/** The name of an executor, or `judge:provider/model` for a judge of this node. */
export type VerifierName = string;

/** Role on a verifier: run it, also tune it, or full access. */
export type VerifierRole = "exec" | "tune" | "owner";

/** A verifier run; outside of lists, with the answer of each judge. */
export interface VerifierRun {
  /** Share of the called judges that agree; null while the run is in progress. */
  agreement?: number | null;
  /** The id of a run without a key; null for all others. */
  anonymous_verifier_run_id: string | null;
  /** Probability that the verdict is right; null while the run is in progress. */
  confidence?: number | null;
  /** Cost in credits, as decimal text. */
  cost_usd: string;
  created_at: Time;
  /** Zero while the run is in progress. */
  duration_ms: number;
  /** With the status `error`: why there is no verdict. */
  error_code: RunErrorCode | null;
  error_message: string | null;
  /** SHA-256 of the canonical inputs, in hex. */
  inputs_digest: string;
  /** The judges called, in selection order; empty while the run is in progress. */
  judges?: Array<RunJudge>;
  /** True if the verdict has a confidence of one half or less; otherwise left out. */
  low_confidence?: boolean;
  /** Measurements of this version; null if it was never measured. */
  measured?: Measured | null;
  /** Whether the inputs pass; null if there is no verdict. */
  passed: boolean | null;
  purpose: RunPurpose;
  /** The judge's reasoning; null if there is none. */
  reasoning: string | null;
  /** Digest of the recorded decision; null while the run is in progress. */
  receipt_id?: string | null;
  /** The round of the run. */
  round_id: string;
  /** The caller's own id for the context of the run. */
  run_id?: string;
  skill_id?: string;
  skill_ref?: string;
  skill_version?: number;
  status: RunStatus;
  /** Left out in lists, like all fields up to `measured`. */
  usage?: JudgeUsage;
  verifier_id: string;
  /** Null for a run without a key. */
  verifier_run_id: string | null;
  version: number;
  /** The workflow that the run belongs to, if the caller named one; `skill_id` is an alias. */
  workflow_id?: string;
  workflow_ref?: string;
  workflow_version?: number;
}

/** Whether a verifier can be used. */
export type VerifierStatus = "active" | "revoked";

/** A verifier in a list. */
export interface VerifierSummary {
  created_at: Time;
  current_version: number;
  description: string;
  name: string;
  /**
   * The owner if it is not the caller: `@` and a handle, or the account id if there is no handle.
   * Refer to the verifier by its id or as `@owner/name`.
   */
  owner: string | null;
  /**
   * The caller's role: `exec` to run it; `tune` to also see it fully, measure it and deploy its
   * next version; `owner` for everything.
   */
  role: VerifierRole;
  /** The workflow that gives the caller access; null for the owner. */
  source_workflow_id: string | null;
  status: VerifierStatus;
  updated_at: Time;
  verifier_id: string;
  /** Send it as `expected_version_token` to deploy the next version. */
  version_token: string;
}

/** A page of a list. */
export interface VerifierSummaryPage {
  items: Array<VerifierSummary>;
  /** Send it as `cursor` to get the next page; null on the last page. */
  next_cursor: string | null;
}

/** Why a vote does not count. */
export type VoteForfeit = "late" | "mismatch" | "equivocation";
