//! Knowledge: final decisions, for tasks with the same or similar inputs.

use const_format::concatcp;
use jurat_core::{
    id::AccountId,
    task::{
        TaskKey,
        knowledge::{
            Knowledge, KnowledgeDigests, KnowledgeFilter, KnowledgeKey, KnowledgeRecord,
            KnowledgeScope,
        },
    },
    time::Timestamp,
};

use super::tasks::read::LAST;
use crate::{
    Result,
    db::{
        row::{DbRow, RowReader, json},
        tx::{Tx, args, operations},
    },
};

operations! {
    /// Final decisions that may be used again.
    pub struct KnowledgeOps = store.knowledge();
    reads {
        /// Decisions on the same inputs, newest first, and the newest other decisions of the same
        /// type, without their outputs. Deprecated decisions are left out.
        fn hits(asked: &KnowledgeLookup) -> KnowledgeHits = hits;
        /// The named decisions with their outputs, in the given order. Deprecated decisions and
        /// outputs above the size limit are left out.
        fn read(wanted: &KnowledgeFetch) -> Vec<KnowledgeRecord> = read_some;
        /// The knowledge of a task type, newest first, or of one task.
        fn export(account: &AccountId, filter: &KnowledgeFilter) -> Vec<KnowledgeRecord>
            = export;
    }
    changes {
        /// Deprecates a decision, and every other of the account with the same inputs and the same
        /// output; `false` if no usable decision was there.
        fn deprecate(which: &KnowledgeDeprecation) -> bool
            = deprecate;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeLookup {
    pub account: AccountId,
    pub task_type: String,
    pub digests: KnowledgeDigests,
    /// Maximum number of decisions on the same inputs.
    pub exact: u32,
    /// The number of the newest other decisions to search for similar ones.
    pub others: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnowledgeHits {
    pub exact: Vec<KnowledgeSummary>,
    /// Decisions of the same type, with other inputs or under other terms.
    pub others: Vec<SimilarKnowledge>,
}

/// The part of a decision on other inputs that the comparison needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimilarKnowledge {
    pub key: KnowledgeKey,
    pub words: String,
    /// The size of the output.
    pub output_bytes: u64,
}

/// A decision without its output, which may be large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeSummary {
    pub key: KnowledgeKey,
    pub candidate: String,
    /// The size of the output.
    pub output_bytes: u64,
    pub profile: String,
    pub proposers: Vec<String>,
    pub source: Option<KnowledgeKey>,
    pub final_hash: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeFetch {
    pub account: AccountId,
    pub keys: Vec<KnowledgeKey>,
    /// The largest output to read, in bytes.
    pub largest: u64,
}

/// A decision to deprecate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeDeprecation {
    pub task: TaskKey,
    pub epoch: u64,
    pub at: Timestamp,
}

// A decision derived from one that was disputed in the meantime is deprecated, too.
const ADD: &str = "\
    insert into knowledge (\
        account_id, task_id, epoch, task_type, policy_id, input_digest, schema_digest, \
        params_digest, words, candidate_id, output_digest, profile, proposers, source_task, \
        source_epoch, reason_codes, confidence, quorum, final_hash, created_at, deprecated_at, \
        output) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, \
        $20, coalesce($21, (\
            select source.deprecated_at from knowledge source \
            where source.account_id = $1 and source.task_id = $14 and source.epoch = $15\
        )), $22)";

const SELECT: &str = "\
    select task_id, epoch, task_type, policy_id, input_digest, schema_digest, \
    params_digest, words, candidate_id, output_digest, profile, proposers, source_task, \
    source_epoch, reason_codes, confidence, quorum, final_hash, created_at, \
    deprecated_at, output from knowledge ";

// Without outputs: their size is known without reading them.
const EXACT: &str = "\
    select task_id, epoch, candidate_id, profile, proposers, source_task, source_epoch, \
        final_hash, cast(octet_length(output) as bigint) as output_bytes \
    from knowledge where account_id = $1 and task_type = $2 and input_digest = $3 and schema_digest = $4 \
    and policy_id = $5 and params_digest = $6 and deprecated_at is null \
    order by created_at desc limit $7";
// Searches this many decisions, however few of them are on other inputs.
const RECENT: &str = "\
    select task_id, epoch, words, cast(octet_length(output) as bigint) as output_bytes \
    from (select * from knowledge \
        where account_id = $1 and task_type = $2 and deprecated_at is null \
        order by created_at desc limit $3) as recent \
    where not (input_digest = $4 and schema_digest = $5 and policy_id = $6 \
        and params_digest = $7) \
    order by created_at desc";
// One index lookup for each decision, however many the account has.
const SOME: (&str, &str) = (
    concatcp!(
        SELECT,
        "where account_id = $1 and (task_id, epoch) in (\
             select value ->> 0, value ->> 1 from json_each($2)) \
         and deprecated_at is null and octet_length(output) <= $3"
    ),
    concatcp!(
        "select found.* from json_array_elements($2::json) as wanted, lateral (",
        concatcp!(
            SELECT,
            "where account_id = $1 and task_id = wanted.value ->> 0 \
             and epoch = cast(wanted.value ->> 1 as bigint) and deprecated_at is null \
             and octet_length(output) <= $3 limit 1"
        ),
        ") as found"
    ),
);
const OF_TYPE: &str = concatcp!(
    SELECT,
    "where account_id = $1 and task_type = $2 and (created_at, task_id, epoch) < ($3, $4, $5) \
     order by created_at desc, task_id desc, epoch desc limit $6"
);
const OF_TASK: &str = concatcp!(
    SELECT,
    "where account_id = $1 and task_id = $2 and epoch < $3 order by epoch desc limit $4"
);
const WHAT: &str = "\
    select task_type, policy_id, input_digest, schema_digest, params_digest, output_digest \
    from knowledge where account_id = $1 and task_id = $2 and epoch = $3";
const IS_DEPRECATED: &str = "\
    select task_id from knowledge \
    where account_id = $1 and task_id = $2 and epoch = $3 and deprecated_at is not null";
const DEPRECATE: &str = "\
    update knowledge set deprecated_at = $1 \
    where account_id = $2 and task_type = $3 and input_digest = $4 and schema_digest = $5 \
    and policy_id = $6 and params_digest = $7 and output_digest = $8 and deprecated_at is null";

/// Every statement, to check the query plans.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (ADD, ADD),
    (EXACT, EXACT),
    (RECENT, RECENT),
    SOME,
    (OF_TYPE, OF_TYPE),
    (OF_TASK, OF_TASK),
    (WHAT, WHAT),
    (IS_DEPRECATED, IS_DEPRECATED),
    (DEPRECATE, DEPRECATE),
];

pub(crate) async fn add(tx: &mut Tx<'_>, task: &TaskKey, knowledge: &Knowledge) -> Result<()> {
    let digests = &knowledge.digests;
    let source = knowledge.source.as_ref();
    if source.is_some() {
        lock(tx, &task.account, &digests.inputs).await?;
    }
    let args = args![
        &task.account,
        &task.id,
        knowledge.epoch,
        &knowledge.task_type,
        &digests.policy_id,
        &digests.inputs,
        &digests.schema,
        &digests.params,
        &knowledge.words,
        &knowledge.candidate,
        &knowledge.output_digest,
        &knowledge.profile,
        json(&knowledge.proposers)?,
        source.map(|it| it.task_id.as_str()),
        source.map(|it| it.epoch),
        json(&knowledge.reason_codes)?,
        json(&knowledge.confidence)?,
        json(&knowledge.quorum)?,
        &knowledge.final_hash,
        knowledge.created_at,
        knowledge.deprecated_at,
        json(&knowledge.output)?
    ];
    tx.run(ADD, args).await.map(drop)
}

/// Whether a decision to reuse is deprecated.
pub(crate) async fn is_deprecated(
    tx: &mut Tx<'_>,
    account: &AccountId,
    key: &KnowledgeKey,
) -> Result<bool> {
    let args = || args![account, &key.task_id, key.epoch];
    let Some((_, digests, _)) = tx.first(WHAT, args(), what).await? else { return Ok(false) };
    lock(tx, account, &digests.inputs).await?;
    let read = |cells: &dyn DbRow| RowReader::new(cells, "knowledge", "task_id")?.text("task_id");
    Ok(tx.first(IS_DEPRECATED, args(), read).await?.is_some())
}

/// A complaint and a decision derived from the disputed one wait for each other, so that one of
/// them sees the other.
async fn lock(tx: &mut Tx<'_>, account: &AccountId, inputs: &str) -> Result<()> {
    tx.lock(&format!("knowledge {account} {inputs}")).await
}

async fn hits(tx: &mut Tx<'_>, asked: &KnowledgeLookup) -> Result<KnowledgeHits> {
    let digests = &asked.digests;
    let args = args![
        &asked.account,
        &asked.task_type,
        &digests.inputs,
        &digests.schema,
        &digests.policy_id,
        &digests.params,
        asked.exact
    ];
    let exact = if asked.exact == 0 { Vec::new() } else { tx.all(EXACT, args, known).await? };
    if asked.others == 0 {
        return Ok(KnowledgeHits { exact, others: Vec::new() });
    }
    let args = args![
        &asked.account,
        &asked.task_type,
        asked.others,
        &digests.inputs,
        &digests.schema,
        &digests.policy_id,
        &digests.params
    ];
    let others = tx.all(RECENT, args, alike).await?;
    Ok(KnowledgeHits { exact, others })
}

async fn read_some(tx: &mut Tx<'_>, wanted: &KnowledgeFetch) -> Result<Vec<KnowledgeRecord>> {
    if wanted.keys.is_empty() {
        return Ok(Vec::new());
    }
    let keys: Vec<_> = wanted.keys.iter().map(|it| (it.task_id.as_str(), it.epoch)).collect();
    let args = args![&wanted.account, json(&keys)?, wanted.largest];
    let mut found = tx.all(tx.own(SOME), args, read).await?;
    found.sort_by_cached_key(|it| wanted.keys.iter().position(|key| *key == it.key()));
    Ok(found)
}

async fn export(
    tx: &mut Tx<'_>,
    account: &AccountId,
    filter: &KnowledgeFilter,
) -> Result<Vec<KnowledgeRecord>> {
    let before = filter.before.as_ref();
    let epoch = before.map_or(u64::MAX, |it| it.epoch);
    match &filter.of {
        KnowledgeScope::TaskType(task_type) => {
            let at = before.map_or(LAST, |it| it.created_at);
            let id = before.map_or("", |it| it.task_id.as_str());
            let args = args![account, task_type, at, id, epoch, filter.limit];
            tx.all(OF_TYPE, args, read).await
        }
        KnowledgeScope::Task(task) => {
            tx.all(OF_TASK, args![account, task, epoch, filter.limit], read).await
        }
    }
}

async fn deprecate(tx: &mut Tx<'_>, which: &KnowledgeDeprecation) -> Result<bool> {
    deprecate_same(tx, &which.task, which.epoch, which.at).await
}

/// Deprecates a decision, and also decisions derived from it or made again with the same output.
/// `false` if there is no such usable decision.
pub(crate) async fn deprecate_same(
    tx: &mut Tx<'_>,
    task: &TaskKey,
    epoch: u64,
    at: Timestamp,
) -> Result<bool> {
    let what = tx.first(WHAT, args![&task.account, &task.id, epoch], what).await?;
    let Some((task_type, digests, output)) = what else { return Ok(false) };
    lock(tx, &task.account, &digests.inputs).await?;
    let args = args![
        at,
        &task.account,
        task_type,
        &digests.inputs,
        &digests.schema,
        &digests.policy_id,
        &digests.params,
        output
    ];
    Ok(0 < tx.run(DEPRECATE, args).await?)
}

/// The type, the digests that identify equal tasks, and the digest of the output.
fn what(cells: &dyn DbRow) -> Result<(String, KnowledgeDigests, String)> {
    let columns = RowReader::new(cells, "knowledge", "task_type")?;
    Ok((columns.text("task_type")?, digests(&columns)?, columns.text("output_digest")?))
}

fn digests(columns: &RowReader<'_>) -> Result<KnowledgeDigests> {
    Ok(KnowledgeDigests {
        policy_id: columns.text("policy_id")?,
        inputs: columns.text("input_digest")?,
        schema: columns.text("schema_digest")?,
        params: columns.text("params_digest")?,
    })
}

fn source(columns: &RowReader<'_>) -> Result<Option<KnowledgeKey>> {
    let task = columns.maybe_text("source_task")?;
    let epoch = columns.maybe_count("source_epoch")?;
    Ok(task.zip(epoch).map(|(task_id, epoch)| KnowledgeKey { task_id, epoch }))
}

fn key(columns: &RowReader<'_>) -> Result<KnowledgeKey> {
    Ok(KnowledgeKey { task_id: columns.text("task_id")?, epoch: columns.count("epoch")? })
}

fn alike(cells: &dyn DbRow) -> Result<SimilarKnowledge> {
    let columns = RowReader::new(cells, "knowledge", "task_id")?;
    Ok(SimilarKnowledge {
        key: key(&columns)?,
        words: columns.text("words")?,
        output_bytes: columns.count("output_bytes")?,
    })
}

fn known(cells: &dyn DbRow) -> Result<KnowledgeSummary> {
    let columns = RowReader::new(cells, "knowledge", "task_id")?;
    Ok(KnowledgeSummary {
        key: key(&columns)?,
        candidate: columns.text("candidate_id")?,
        output_bytes: columns.count("output_bytes")?,
        profile: columns.text("profile")?,
        proposers: columns.document("proposers")?,
        source: source(&columns)?,
        final_hash: columns.text("final_hash")?,
    })
}

fn read(cells: &dyn DbRow) -> Result<KnowledgeRecord> {
    let columns = RowReader::new(cells, "knowledge", "task_id")?;
    let knowledge = Knowledge {
        epoch: columns.count("epoch")?,
        task_type: columns.text("task_type")?,
        digests: digests(&columns)?,
        words: columns.text("words")?,
        candidate: columns.text("candidate_id")?,
        output: columns.document("output")?,
        output_digest: columns.text("output_digest")?,
        profile: columns.text("profile")?,
        proposers: columns.document("proposers")?,
        source: source(&columns)?,
        reason_codes: columns.document("reason_codes")?,
        confidence: columns.document("confidence")?,
        quorum: columns.document("quorum")?,
        final_hash: columns.text("final_hash")?,
        created_at: columns.time("created_at")?,
        deprecated_at: columns.maybe_time("deprecated_at")?,
    };
    Ok(KnowledgeRecord { task_id: columns.text("task_id")?, knowledge })
}
