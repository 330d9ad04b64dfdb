//! The contract of a task: its fields, their rules, and its conversion for executors.

use jurat_core::policy::{self, policy_hash};
use serde_json::{Value, json};
use utoipa::openapi::{
    RefOr,
    schema::{ArrayBuilder, ObjectBuilder, Type, empty},
};

use crate::{
    api::kit::{
        json::kind,
        request::{
            self, FieldFault, object, one_of, request, text, values,
            values::{Count, PlainText, Whole, anything, filled_text, number, text_of, texts_of},
        },
        words::TaskAggregation,
    },
    executor::{
        Acceptance, Assignment, BadPenalty, ContractBudget, ContractClaim, ContractExplore,
        ContractFeedback, ContractFinalize, ContractSettlement, ContractVerify, ContractVote,
        DiminishingReturns, EvidencePolicy, ExploreStop, MaxConcurrency, TaskContract,
        WirePolicyBinding,
    },
    problem::Problem,
};

/// A number of executors, votes or attempts.
type Few = Count<1, 64>;
type CostUnits = Whole<1, 1_000_000_000>;
/// Duration of a lease or a reveal: from a tenth of a second to a day.
type SpanMs = Whole<100, 86_400_000>;
const YEAR_MS: u64 = 31_536_000_000;
/// The end of the year 9999.
const LAST_MS: u64 = 253_402_300_799_999;
const MIMES: [&str; 4] = ["application/json", "text/plain", "text/markdown", "text/csv"];
const MOST_MIMES: usize = 32;
const LONGEST_ID: usize = 128;

request! {
    /// The terms of a task. All times are in milliseconds.
    pub strict struct TaskContractBody as "TaskContract" {
        /// Version of the contract format, such as `v0.1`.
        protocol_version: PlainText<64>,
        /// The id of the task, unique within the account.
        task_id: TaskName,
        /// Task type that executors must declare to work on it.
        task_type: PlainText<128>,
        inputs: TaskInputs,
        /// The JSON Schema of every candidate.
        output_schema: OutputSchema,
        budget: TaskBudget,
        assignment: TaskAssignment,
        acceptance: TaskAcceptance,
        /// Defaults to `ONE_SHOT`.
        task_mode: Option<TaskMode>,
        /// When the contract expires, in milliseconds since 1970.
        expiry_ms: Whole<1, LAST_MS>,
        evidence_policy: TaskEvidencePolicy,
    }

    /// The budget of a task. Each call to an executor is one step and costs one unit of its stage.
    pub strict struct TaskBudget {
        /// Time from the first lease to the end.
        time_ms: Whole<1, YEAR_MS>,
        max_steps: Count<1, 100_000>,
        /// At least the sum of the three stages.
        cost_units: CostUnits,
        /// Defaults to `LIFETIME`.
        mode: Option<BudgetMode>,
        explore_cost_units: CostUnits,
        verify_cost_units: CostUnits,
        finalize_cost_units: CostUnits,
        /// Time for first trying to reuse an earlier decision; at most `time_ms`.
        reuse_verify_time_ms: Whole<0, YEAR_MS>,
        /// At most `cost_units`.
        reuse_verify_cost_units: Whole<0, 1_000_000_000>,
        reuse_max_attempts: Few,
    }

    /// How many executors may work on a task, concurrently and in total.
    pub strict struct TaskAssignment {
        mode: AssignmentMode,
        claim: TaskClaim,
        explore: Option<TaskExplore>,
        verify: Option<TaskVerify>,
        finalize: Option<TaskFinalize>,
    }

    /// How executors claim work.
    pub strict struct TaskClaim {
        /// Duration of a lease unless it is renewed.
        lease_ms: SpanMs,
        max_concurrency: TaskConcurrency,
    }

    /// Maximum number of concurrent leases.
    pub strict struct TaskConcurrency {
        propose: Few,
        verify: Few,
    }

    /// How candidates are found.
    pub strict struct TaskExplore {
        /// Total number of executors that propose; defaults to 1.
        max_proposers: Option<Few>,
        /// Maximum number of candidates that are voted on; defaults to 3.
        topk: Option<Few>,
        stop: Option<TaskExploreStop>,
        /// How often proposing restarts after all proposers failed; defaults to 3.
        max_retries: Option<Count<0, 64>>,
        /// Delay before the first restart, doubled each time; defaults to 1000.
        backoff_ms: Option<Whole<1, 86_400_000>>,
    }

    /// When to stop looking for candidates.
    pub strict struct TaskExploreStop {
        /// Defaults to 3.
        no_new_evidence_rounds: Option<Few>,
    }

    /// How candidates are voted on.
    pub strict struct TaskVerify {
        /// Maximum number of verdicts per candidate; defaults to 1.
        max_verifiers: Option<Few>,
        /// How often an undecided vote is repeated; defaults to 2.
        max_repeats: Option<Count<0, 64>>,
    }

    /// How a decision is made final.
    pub strict struct TaskFinalize {
        /// Defaults to 1.
        max_finalizers: Option<Few>,
    }

    /// Requirements for a decision.
    pub strict struct TaskAcceptance {
        /// Number of approvals by different voters.
        quorum_threshold: Few,
        /// Defaults to `vp.schema_only.v1`: a candidate must match `output_schema`.
        verifier_policy: Option<TaskPolicy>,
        vote: TaskVote,
        settlement: TaskSettlement,
        /// Number of voters that must be able to fetch each piece of evidence; if left out, evidence is
        /// not fetched.
        da_quorum_threshold: Option<Few>,
        aggregation: Option<TaskAggregation>,
    }

    /// The policy that candidates are voted on under.
    pub strict struct TaskPolicy {
        /// Such as `vp.schema_only.v1`.
        policy_id: PlainText<128>,
        /// Defaults to `1`.
        policy_version: Option<PlainText<64>>,
        /// Computed if left out; otherwise it must be correct.
        policy_hash: Option<PolicyHash>,
        /// Defaults to empty.
        policy_params: Option<TaskPolicyParams>,
    }

    /// How votes are taken.
    pub strict struct TaskVote {
        commit_reveal: Always,
        /// How long votes may be revealed after the last commit.
        reveal_deadline_ms: SpanMs,
    }

    /// Settlement of a decision. Stored with the contract and shown to executors.
    pub strict struct TaskSettlement {
        window_ms: Whole<0, YEAR_MS>,
        implicit_weight: ImplicitWeight,
        implicit_diminishing_returns: TaskDiminishingReturns,
        bad_penalty: TaskBadPenalty,
        feedback: TaskFeedback,
    }

    /// How much less each further success counts.
    pub strict struct TaskDiminishingReturns {
        w as "W": Count<0, { u32::MAX }>,
        k as "K": Count<1, { u32::MAX }>,
    }

    /// Penalty for a bad decision.
    pub strict struct TaskBadPenalty {
        p as "P": Whole<0, 1_000_000>,
    }

    /// Who may dispute a decision.
    pub strict struct TaskFeedback {
        mode: FeedbackMode,
        /// `ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key.
        authority_pubkey: AuthorityKey,
    }

    /// Evidence allowed with a candidate.
    pub strict struct TaskEvidencePolicy {
        /// Must be 65536.
        max_inline_evidence_bytes: Whole<65_536, 65_536>,
        /// Must be 0.
        max_inline_media_bytes: Whole<0, 0>,
        /// Must contain `application/json`, `text/plain`, `text/markdown` and `text/csv`.
        inline_mime_allowlist: MimeList,
        /// Maximum bytes of one piece of inline evidence; defaults to 8192.
        max_snippet_bytes: Option<CostUnits>,
        /// Maximum tokens of one piece of inline evidence, at four bytes each; defaults to 2048.
        max_snippet_tokens: Option<CostUnits>,
    }
}

values! {
    /// The id of a task.
    pub struct TaskName(String):
        text().pattern(Some(r"^(?!(\.|\.\.|sample)$)[A-Za-z0-9_.:-]{1,128}$")) => task_name;

    /// The input of a task.
    pub named struct TaskInputs(Value):
        one_of("The input of the task; executors receive it as `inputs`.")
            .item(object())
            .item(text())
            .item(ArrayBuilder::new().items(RefOr::T(empty())))
            .item(ObjectBuilder::new().schema_type(Type::Number))
            .item(ObjectBuilder::new().schema_type(Type::Boolean))
        => anything,
        absent "is required; use {} for none";

    /// The schema of every candidate.
    pub struct OutputSchema(Value): object() => document, absent "is required; use {} for none";

    /// The parameters of a policy.
    pub struct TaskPolicyParams(Value): object() => document;

    /// How executors get work on a task.
    pub named struct AssignmentMode(()):
        text()
            .enum_values(Some(["CLAIM", "open"]))
            .description(Some("Executors claim the work; both values mean the same."))
        => assignment_mode;

    /// Whether a task continues after its decision.
    pub named struct TaskMode(String):
        text().enum_values(Some(TASK_MODES)).description(Some("Whether the task ends with its decision or continues with the next epoch. `CONTINUOUS` needs the budget mode `EPOCH_RENEW`."))
        => task_mode;

    /// How long a budget lasts.
    pub named struct BudgetMode(String):
        text()
            .enum_values(Some(BUDGET_MODES))
            .description(Some("Whether the budget covers the whole task or each epoch."))
        => budget_mode;

    /// How feedback is allowed.
    pub named struct FeedbackMode(String):
        text()
            .enum_values(Some(["CAPABILITY"]))
            .description(Some("Feedback by the holder of the key."))
        => feedback_mode;

    /// A flag that must be set.
    pub named struct Always(()):
        ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .enum_values(Some([true]))
            .description(Some("Must be true."))
        => always,
        absent "is required, and must be true";

    /// The hash of a policy.
    pub struct PolicyHash(String):
        text().pattern(Some("^([Ss][Hh][Aa]256:)?[0-9A-Fa-f]{64}$")) => hash;

    /// The weight of an unconfirmed success.
    pub struct ImplicitWeight(f64): number().minimum(Some(0)).maximum(Some(1)) => weight;

    /// The public key of the authority that may dispute a decision.
    pub struct AuthorityKey(String):
        text().pattern(Some("^ed25519:([0-9A-Fa-f]{64}|placeholder)$")) => authority_key;

    /// MIME types of inline evidence.
    pub struct MimeList(Vec<String>):
        ArrayBuilder::new().items(text()).min_items(Some(MIMES.len())).max_items(Some(MOST_MIMES))
        => mimes,
        absent "must have application/json, text/plain, text/markdown, text/csv, and at most 32 in total";
}

const TASK_MODES: [&str; 2] = ["ONE_SHOT", "CONTINUOUS"];
const BUDGET_MODES: [&str; 2] = ["LIFETIME", "EPOCH_RENEW"];
const ID_RULE: &str = "must have 1 to 128 letters, digits, `-`, `_`, `.` and `:`, and must not be `.`, `..` or `sample`";
/// Names that cannot be ids, because URLs with them mean something else.
const RESERVED: [&str; 3] = [".", "..", "sample"];

/// Whether the name is reserved, so that no task or run can have it.
pub(in crate::api) fn is_reserved(id: &str) -> bool {
    RESERVED.contains(&id)
}

/// Checks the id of a task in a query.
pub fn checked_id(id: &str) -> Result<&str, Problem> {
    if is_id(id) { Ok(id) } else { Err(request::wrong("task_id", ID_RULE)) }
}

fn is_id(id: &str) -> bool {
    let is_name = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.:".contains(symbol);
    (1..=LONGEST_ID).contains(&id.len()) && id.chars().all(is_name) && !is_reserved(id)
}

fn task_name(value: &Value) -> Result<String, FieldFault> {
    let id = filled_text(value)?;
    if is_id(id) { Ok(id.to_owned()) } else { Err(ID_RULE.into()) }
}

fn document(value: &Value) -> Result<Value, FieldFault> {
    if value.is_object() { Ok(value.clone()) } else { Err("must be an object".into()) }
}

fn assignment_mode(value: &Value) -> Result<(), FieldFault> {
    match filled_text(value)? {
        "CLAIM" | "open" => Ok(()),
        _ => Err("must be CLAIM; `open` means the same".into()),
    }
}

fn task_mode(value: &Value) -> Result<String, FieldFault> {
    one_word(text_of(value)?, &TASK_MODES)
}

fn budget_mode(value: &Value) -> Result<String, FieldFault> {
    one_word(text_of(value)?, &BUDGET_MODES)
}

fn feedback_mode(value: &Value) -> Result<String, FieldFault> {
    one_word(filled_text(value)?, &["CAPABILITY"])
}

fn one_word(text: &str, known: &[&str]) -> Result<String, FieldFault> {
    if known.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("must be {}", known.join(" or ")).into())
}

fn always(value: &Value) -> Result<(), FieldFault> {
    match value {
        Value::Bool(true) => Ok(()),
        Value::Bool(false) => {
            Err("must be true: votes are always committed before they are revealed".into())
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("must be true or false, not {}", kind(value)).into())
        }
    }
}

fn hash(value: &Value) -> Result<String, FieldFault> {
    let text = text_of(value)?;
    let digits = match text.get(..7) {
        Some(prefix) if prefix.eq_ignore_ascii_case("sha256:") => text.get(7..).unwrap_or_default(),
        _ => text,
    };
    if is_hex(digits) {
        return Ok(text.to_owned());
    }
    Err("must be `sha256:` and 64 hex digits, or the digits alone; leave it out to have it computed".into())
}

fn is_hex(digits: &str) -> bool {
    digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn weight(value: &Value) -> Result<f64, FieldFault> {
    let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| "must be a number from 0 to 1".into())
}

fn authority_key(value: &Value) -> Result<String, FieldFault> {
    let key = filled_text(value)?;
    let digits = key.strip_prefix("ed25519:").unwrap_or_default();
    if digits == "placeholder" || is_hex(digits) {
        return Ok(key.to_owned());
    }
    Err("must be `ed25519:` and 64 hex digits, or `ed25519:placeholder` for no key".into())
}

fn mimes(value: &Value) -> Result<Vec<String>, FieldFault> {
    let mimes = texts_of(value)?;
    if mimes.iter().any(|mime| mime.contains('\0')) {
        return Err("must not contain a NUL character".into());
    }
    if MOST_MIMES < mimes.len() || !MIMES.iter().all(|mime| mimes.contains(mime)) {
        let reason = format!("must have {}, and at most {MOST_MIMES} in total", MIMES.join(", "));
        return Err(reason.into());
    }
    Ok(mimes.into_iter().map(str::to_owned).collect())
}

impl From<TaskContractBody> for TaskContract {
    fn from(body: TaskContractBody) -> Self {
        Self {
            protocol_version: body.protocol_version.0,
            task_id: body.task_id.0,
            task_type: body.task_type.0,
            inputs: body.inputs.0,
            output_schema: body.output_schema.0,
            budget: body.budget.into(),
            assignment: body.assignment.into(),
            acceptance: body.acceptance.into(),
            task_mode: first_or(body.task_mode.map(|mode| mode.0), TASK_MODES),
            expiry_ms: body.expiry_ms.0,
            evidence_policy: body.evidence_policy.into(),
        }
    }
}

/// The word, or the first known word as the default.
fn first_or(word: Option<String>, known: [&str; 2]) -> String {
    word.unwrap_or_else(|| known[0].to_owned())
}

impl From<TaskBudget> for ContractBudget {
    fn from(budget: TaskBudget) -> Self {
        Self {
            time_ms: budget.time_ms.0,
            max_steps: budget.max_steps.0,
            cost_units: budget.cost_units.0,
            mode: first_or(budget.mode.map(|mode| mode.0), BUDGET_MODES),
            explore_cost_units: budget.explore_cost_units.0,
            verify_cost_units: budget.verify_cost_units.0,
            finalize_cost_units: budget.finalize_cost_units.0,
            reuse_verify_time_ms: budget.reuse_verify_time_ms.0,
            reuse_verify_cost_units: budget.reuse_verify_cost_units.0,
            reuse_max_attempts: budget.reuse_max_attempts.0,
        }
    }
}

impl From<TaskAssignment> for Assignment {
    fn from(assignment: TaskAssignment) -> Self {
        let TaskClaim { lease_ms, max_concurrency } = assignment.claim;
        let TaskConcurrency { propose, verify } = max_concurrency;
        let max_concurrency = MaxConcurrency { propose: propose.0, verify: verify.0 };
        Self {
            mode: "CLAIM".to_owned(),
            claim: ContractClaim { lease_ms: lease_ms.0, max_concurrency },
            explore: assignment.explore.map(Into::into).unwrap_or_default(),
            verify: assignment.verify.map(Into::into).unwrap_or_default(),
            finalize: assignment.finalize.map(Into::into).unwrap_or_default(),
        }
    }
}

impl From<TaskExplore> for ContractExplore {
    fn from(explore: TaskExplore) -> Self {
        let usual = Self::default();
        let rounds = explore.stop.and_then(|stop| stop.no_new_evidence_rounds);
        Self {
            max_proposers: explore.max_proposers.map_or(usual.max_proposers, |it| it.0),
            topk: explore.topk.map_or(usual.topk, |it| it.0),
            stop: rounds.map_or(usual.stop, |it| ExploreStop { no_new_evidence_rounds: it.0 }),
            max_retries: explore.max_retries.map(|it| it.0),
            backoff_ms: explore.backoff_ms.map(|it| it.0),
        }
    }
}

impl From<TaskVerify> for ContractVerify {
    fn from(verify: TaskVerify) -> Self {
        Self {
            max_verifiers: verify.max_verifiers.map_or(Self::default().max_verifiers, |it| it.0),
            max_repeats: verify.max_repeats.map(|it| it.0),
        }
    }
}

impl From<TaskFinalize> for ContractFinalize {
    fn from(finalize: TaskFinalize) -> Self {
        finalize.max_finalizers.map_or_else(Self::default, |it| Self { max_finalizers: it.0 })
    }
}

impl From<TaskAcceptance> for Acceptance {
    fn from(acceptance: TaskAcceptance) -> Self {
        let usual = || policy::PolicyBinding::new(policy::SCHEMA_ONLY, json!({})).into();
        Self {
            quorum_threshold: acceptance.quorum_threshold.0,
            verifier_policy: acceptance.verifier_policy.map_or_else(usual, Into::into),
            vote: ContractVote {
                commit_reveal: true,
                reveal_deadline_ms: acceptance.vote.reveal_deadline_ms.0,
            },
            settlement: acceptance.settlement.into(),
            da_quorum_threshold: acceptance.da_quorum_threshold.map(|it| it.0),
            aggregation: acceptance.aggregation.map(|it| it.0),
        }
    }
}

impl From<TaskPolicy> for WirePolicyBinding {
    fn from(policy: TaskPolicy) -> Self {
        let policy_id = policy.policy_id.0;
        let policy_params = policy.policy_params.map_or_else(|| json!({}), |params| params.0);
        let hash = policy.policy_hash.map(|hash| hash.0);
        Self {
            policy_version: policy.policy_version.map_or_else(|| "1".to_owned(), |it| it.0),
            policy_hash: hash.unwrap_or_else(|| policy_hash(&policy_id, &policy_params)),
            policy_id,
            policy_params,
        }
    }
}

impl From<TaskSettlement> for ContractSettlement {
    fn from(settlement: TaskSettlement) -> Self {
        let TaskDiminishingReturns { w, k } = settlement.implicit_diminishing_returns;
        let TaskFeedback { mode, authority_pubkey } = settlement.feedback;
        Self {
            window_ms: settlement.window_ms.0,
            implicit_weight: settlement.implicit_weight.0,
            implicit_diminishing_returns: DiminishingReturns { w: w.0, k: k.0 },
            bad_penalty: BadPenalty {
                p: i64::try_from(settlement.bad_penalty.p.0).unwrap_or(i64::MAX),
            },
            feedback: ContractFeedback { mode: mode.0, authority_pubkey: authority_pubkey.0 },
        }
    }
}

impl From<TaskEvidencePolicy> for EvidencePolicy {
    fn from(policy: TaskEvidencePolicy) -> Self {
        Self {
            max_inline_evidence_bytes: policy.max_inline_evidence_bytes.0,
            max_inline_media_bytes: policy.max_inline_media_bytes.0,
            inline_mime_allowlist: policy.inline_mime_allowlist.0,
            max_snippet_bytes: policy.max_snippet_bytes.map_or(8_192, |it| it.0),
            max_snippet_tokens: policy.max_snippet_tokens.map_or(2_048, |it| it.0),
        }
    }
}
