//! What is remembered of decisions, for those who ask for the same or the like.

use jurat_core::{id::AccountId, time::Timestamp};
use serde_json::Value;

use crate::{
    Result,
    both::{Tx, args, operations},
    rows::{Cells, Columns, json},
    tasks::{TaskKey, read::LAST},
};

operations! {
    /// Decisions that are final, as they are remembered.
    pub trait Remembered;
    reads {
        /// Decisions on the same, newest first, and the newest on others of the same type. Nothing
        /// that is deprecated is among them.
        fn knowledge_hits(asked: &KnowledgeAsked) -> KnowledgeHits = hits;
        /// All that is remembered of a type of tasks, newest first, or of one task.
        fn knowledge_export(page: &KnowledgePage) -> Vec<Learned> = export;
    }
    writes {
        /// Lets a decision not be used any more; `false` when there is none that was.
        fn knowledge_deprecate(which: &Deprecation) -> bool, or std::convert::Infallible
            = deprecate;
    }
}

/// A decision that is final, as it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Knowledge {
    pub epoch: u64,
    pub task_type: String,
    pub digests: KnowledgeDigests,
    /// What similar inputs are known by.
    pub words: String,
    pub candidate: String,
    pub output: Value,
    pub reason_codes: Vec<u16>,
    pub confidence: f64,
    /// How the votes stood.
    pub quorum: Value,
    pub final_hash: String,
    pub created_at: Timestamp,
    /// Since when it is not to be used any more.
    pub deprecated_at: Option<Timestamp>,
}

/// What makes two tasks of a type the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeDigests {
    pub policy_id: String,
    pub inputs: String,
    pub schema: String,
    pub params: String,
}

/// A decision with the task that it is of.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    pub task_id: String,
    pub knowledge: Knowledge,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgeAsked {
    pub account: AccountId,
    pub task_type: String,
    pub digests: KnowledgeDigests,
    /// How many decisions on the same.
    pub exact: u32,
    /// How many of the newest others are looked through for similar ones.
    pub others: u32,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnowledgeHits {
    pub exact: Vec<Learned>,
    /// Of the same type, with other inputs or under other terms.
    pub others: Vec<Learned>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgePage {
    pub account: AccountId,
    pub of: KnowledgeOf,
    /// Starts behind this decision, towards older ones.
    pub before: Option<KnowledgePosition>,
    pub limit: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnowledgeOf {
    TaskType(String),
    Task(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnowledgePosition {
    pub created_at: Timestamp,
    pub task_id: String,
    pub epoch: u64,
}

/// A decision that is not to be used any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deprecation {
    pub task: TaskKey,
    pub epoch: u64,
    pub at: Timestamp,
}

const ADD: &str = "\
    insert into knowledge (\
        account_id, task_id, epoch, task_type, policy_id, input_digest, schema_digest, \
        params_digest, words, candidate_id, output, reason_codes, confidence, quorum, final_hash, \
        created_at, deprecated_at) \
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";

macro_rules! knowledge {
    ($rest:literal) => {
        concat!(
            "select task_id, epoch, task_type, policy_id, input_digest, schema_digest, \
             params_digest, words, candidate_id, output, reason_codes, confidence, quorum, \
             final_hash, created_at, deprecated_at from knowledge ",
            $rest
        )
    };
}

const EXACT: &str = knowledge!(
    "where account_id = $1 and task_type = $2 and input_digest = $3 and schema_digest = $4 \
     and policy_id = $5 and params_digest = $6 and deprecated_at is null \
     order by created_at desc limit $7"
);
const RECENT: &str = knowledge!(
    "where account_id = $1 and task_type = $2 and deprecated_at is null \
     order by created_at desc limit $3"
);
const OF_TYPE: &str = knowledge!(
    "where account_id = $1 and task_type = $2 and (created_at, task_id, epoch) < ($3, $4, $5) \
     order by created_at desc, task_id desc, epoch desc limit $6"
);
const OF_TASK: &str = knowledge!(
    "where account_id = $1 and task_id = $2 and epoch < $3 order by epoch desc limit $4"
);
const DEPRECATE: &str = "\
    update knowledge set deprecated_at = $1 \
    where account_id = $2 and task_id = $3 and epoch = $4 and deprecated_at is null";

/// Every text, for a look at how the databases read.
#[cfg(test)]
pub(crate) const TEXTS: &[(&str, &str)] = &[
    (ADD, ADD),
    (EXACT, EXACT),
    (RECENT, RECENT),
    (OF_TYPE, OF_TYPE),
    (OF_TASK, OF_TASK),
    (DEPRECATE, DEPRECATE),
];

pub(crate) async fn add(tx: &mut impl Tx, task: &TaskKey, knowledge: &Knowledge) -> Result<()> {
    let digests = &knowledge.digests;
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
        json(&knowledge.output)?,
        json(&knowledge.reason_codes)?,
        json(&knowledge.confidence)?,
        json(&knowledge.quorum)?,
        &knowledge.final_hash,
        knowledge.created_at,
        knowledge.deprecated_at
    ];
    tx.run(ADD, args).await.map(drop)
}

async fn hits(tx: &mut impl Tx, asked: &KnowledgeAsked) -> Result<KnowledgeHits> {
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
    let exact = tx.all(EXACT, args, read).await?;
    let args = args![&asked.account, &asked.task_type, asked.others];
    let mut others = tx.all(RECENT, args, read).await?;
    others.retain(|other| other.knowledge.digests != asked.digests);
    Ok(KnowledgeHits { exact, others })
}

async fn export(tx: &mut impl Tx, page: &KnowledgePage) -> Result<Vec<Learned>> {
    let before = page.before.as_ref();
    let epoch = before.map_or(u64::MAX, |it| it.epoch);
    match &page.of {
        KnowledgeOf::TaskType(task_type) => {
            let at = before.map_or(LAST, |it| it.created_at);
            let id = before.map_or("", |it| it.task_id.as_str());
            let args = args![&page.account, task_type, at, id, epoch, page.limit];
            tx.all(OF_TYPE, args, read).await
        }
        KnowledgeOf::Task(task) => {
            tx.all(OF_TASK, args![&page.account, task, epoch, page.limit], read).await
        }
    }
}

async fn deprecate(
    tx: &mut impl Tx,
    which: &Deprecation,
) -> Result<Result<bool, std::convert::Infallible>> {
    deprecate_one(tx, &which.task, which.epoch, which.at).await.map(Ok)
}

/// `false` when there is no such decision that was used.
pub(crate) async fn deprecate_one(
    tx: &mut impl Tx,
    task: &TaskKey,
    epoch: u64,
    at: Timestamp,
) -> Result<bool> {
    let args = args![at, &task.account, &task.id, epoch];
    Ok(tx.run(DEPRECATE, args).await? == 1)
}

fn read(cells: &dyn Cells) -> Result<Learned> {
    let columns = Columns::new(&cells, "knowledge", "task_id")?;
    let digests = KnowledgeDigests {
        policy_id: columns.text("policy_id")?,
        inputs: columns.text("input_digest")?,
        schema: columns.text("schema_digest")?,
        params: columns.text("params_digest")?,
    };
    let knowledge = Knowledge {
        epoch: columns.count("epoch")?,
        task_type: columns.text("task_type")?,
        digests,
        words: columns.text("words")?,
        candidate: columns.text("candidate_id")?,
        output: columns.document("output")?,
        reason_codes: columns.document("reason_codes")?,
        confidence: columns.document("confidence")?,
        quorum: columns.document("quorum")?,
        final_hash: columns.text("final_hash")?,
        created_at: columns.time("created_at")?,
        deprecated_at: columns.maybe_time("deprecated_at")?,
    };
    Ok(Learned { task_id: columns.text("task_id")?, knowledge })
}
