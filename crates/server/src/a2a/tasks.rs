//! Lists and cancels tasks.

use std::cmp::Reverse;

use jurat_core::{
    code::ProblemCode,
    id::RoundId,
    round::{CancelledRound, Round, RoundFilter},
    time::Timestamp,
};
use jurat_wire::{
    api::a2a::{
        error::{A2aError, A2aErrorKind},
        requests::TaskListRequest,
        task::{A2aTask, A2aTaskPage, TaskParts, TaskState},
    },
    problem::Problem,
};
use serde_json::{
    json,
    value::{RawValue, to_raw_value},
};

use super::{AgentCaller, context, of_task, task};
use crate::request::{cursor, encode};

/// How many of the newest rounds of an account a total counts.
const MOST_COUNTED: u32 = 10_000;
/// The largest page with artifacts or messages, which may be large.
const LARGEST_WITH_CONTENT: u32 = 20;
/// The bytes of tasks that end a page; the next task is on the next one.
const MOST_BYTES: usize = 4 * 1024 * 1024;
const BRIEF: TaskParts = TaskParts { history_length: Some(0), artifacts: false };
/// How long after its beginning a task may change: the longest deadline, and time for another node
/// to take over what a stopped one left.
const LONGEST_MS: i64 = 24 * 60 * 60 * 1_000;

/// Cancels a task.
pub(super) async fn cancel(call: &AgentCaller, id: &str) -> Result<A2aTask, A2aError> {
    let round_id = RoundId::parse(id).map_err(|_| A2aError::task_not_found(id))?;
    match call.engine.round_cancel(&call.caller, &round_id).await {
        Ok(CancelledRound::Whole(round)) => {
            Ok(task(&round, TaskParts { history_length: None, artifacts: true }))
        }
        Ok(CancelledRound::State(state)) => Ok(A2aTask::without_content(&state)),
        Err(error) if error.code() == ProblemCode::Conflict => {
            let detail = error.to_string();
            Err(A2aError::new(A2aErrorKind::TaskNotCancelable, ProblemCode::Conflict, detail))
        }
        Err(error) => Err(of_task(id, &error)),
    }
}

/// A page of the account's tasks.
pub(super) async fn list(
    call: &AgentCaller,
    asked: &TaskListRequest,
) -> Result<A2aTaskPage, A2aError> {
    let has_content = asked.include_artifacts || parts(asked).history_length != Some(0);
    let most = if has_content { LARGEST_WITH_CONTENT } else { asked.page_size };
    let page_size = asked.page_size.min(most);
    let found = match (asked.status, &asked.context_id) {
        (Some(state), _) if state.round_status().is_none() => FoundTasks::default(),
        (_, Some(context_id)) => of_context(call, asked, context_id, page_size).await?,
        (_, None) => of_account(call, asked, page_size).await?,
    };
    let FoundTasks { tasks, next_page_token, total_size } = found;
    Ok(A2aTaskPage { tasks, next_page_token, page_size, total_size })
}

#[derive(Default)]
struct FoundTasks {
    tasks: Vec<Box<RawValue>>,
    /// Empty if there are no more.
    next_page_token: String,
    total_size: u32,
}

/// The tasks of a page as they are sent, counted in the memory of the request.
#[derive(Default)]
struct PageTasks {
    /// With the times of their last changes.
    tasks: Vec<(Timestamp, Box<RawValue>)>,
    bytes: usize,
}

impl PageTasks {
    const fn is_full(&self) -> bool {
        MOST_BYTES <= self.bytes
    }

    fn add(&mut self, call: &AgentCaller, task: &A2aTask) -> Result<(), A2aError> {
        let unencoded = |_| Problem::new(ProblemCode::Internal, "could not encode a task");
        // As values the members have the order of their names, as in all replies.
        let encoded = to_raw_value(&json!(task)).map_err(unencoded)?;
        let bytes = encoded.get().len();
        if let Some(memory) = &call.memory {
            // Once here, and once in the reply, which copies the text as it is.
            memory.hold_more(2 * bytes).map_err(|error| encode::engine_problem(&error))?;
        }
        self.bytes += bytes;
        self.tasks.push((task.status.timestamp.0, encoded));
        Ok(())
    }

    /// The tasks, the one that changed last first.
    fn sorted(mut self) -> Vec<Box<RawValue>> {
        self.tasks.sort_by_key(|(changed, _)| Reverse(*changed));
        self.tasks.into_iter().map(|(_, task)| task).collect()
    }
}

/// The position of a page token that this list returned.
fn position<const N: usize>(asked: &TaskListRequest) -> Result<Option<[String; N]>, A2aError> {
    let token = asked.page_token.as_deref();
    token.map(cursor::read).transpose().map_err(|_| unknown_token())
}

/// A position among tasks in the order of their last changes.
fn place(position: [String; 2]) -> Result<(Timestamp, RoundId), A2aError> {
    let position = cursor::time_position(position).map_err(|_| unknown_token())?;
    let id = RoundId::parse(&position.id).map_err(|_| unknown_token())?;
    Ok((position.created_at, id))
}

fn unknown_token() -> A2aError {
    let reason = "was not returned by ListTasks; leave it out to start at the first page";
    A2aError::wrong("pageToken", reason)
}

/// Pages go by the time when tasks began, newest first; a page is sorted by the time of the last
/// change.
async fn of_account(
    call: &AgentCaller,
    asked: &TaskListRequest,
    page_size: u32,
) -> Result<FoundTasks, A2aError> {
    let problem = |error| A2aError::from(encode::engine_problem(&error));
    let before = position(asked)?.map(|[id]| RoundId::parse(&id).map_err(|_| unknown_token()));
    let before = before.transpose()?;
    let state = asked.status.and_then(TaskState::round_status);
    let query = RoundFilter {
        state,
        since: asked.updated_since.map(|at| Timestamp::from_millis(at.millis() - LONGEST_MS)),
        before,
        limit: page_size + 1,
        ..RoundFilter::default()
    };
    let found = call.engine.round_list(&call.caller, query).await.map_err(problem)?;
    let most = usize::try_from(page_size).unwrap_or(usize::MAX);
    let (mut tasks, mut covered) = (PageTasks::default(), 0);
    for line in found.iter().take(most) {
        if tasks.is_full() {
            break;
        }
        covered += 1;
        // The rounds of Jurat's own tasks are not tasks of the protocol.
        let updated = line.closing.as_ref().map_or(line.open.opened_at, |end| end.closed_at);
        if line.open.step.is_none() && is_since(asked.updated_since, updated) {
            let task = task(&shown(call, &line.open.id).await?, parts(asked));
            tasks.add(call, &task)?;
        }
    }
    let last = found[..covered].last().filter(|_| covered < found.len());
    let next = last.map(|it| cursor::write(&[it.open.id.to_string()]));
    let counting = call.engine.round_count(&call.caller, state, asked.updated_since, MOST_COUNTED);
    let total_size = counting.await.map_err(problem)?;
    let tasks = tasks.sorted();
    Ok(FoundTasks { tasks, next_page_token: next.unwrap_or_default(), total_size })
}

/// The tasks of a context, which are few enough to be read: the one that changed last comes first.
async fn of_context(
    call: &AgentCaller,
    asked: &TaskListRequest,
    context_id: &str,
    page_size: u32,
) -> Result<FoundTasks, A2aError> {
    let before = position(asked)?.map(place).transpose()?;
    let mut ids = context::joined(call, context_id).await?;
    ids.extend(context::begun_by(call, context_id).await?);
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        let shown = task(&shown(call, &id).await?, BRIEF);
        // A task whose content was erased is alone again.
        if shown.context_id == context_id && is_wanted(asked, &shown) {
            found.push((shown.status.timestamp.0, id));
        }
    }
    let total_size = u32::try_from(found.len()).unwrap_or(u32::MAX);
    found.sort_unstable_by(|one, other| other.cmp(one));
    found.retain(|place| before.as_ref().is_none_or(|before| place < before));
    let most = usize::try_from(page_size).unwrap_or(usize::MAX);
    let (mut tasks, mut covered) = (PageTasks::default(), 0);
    for (_, id) in found.iter().take(most) {
        if tasks.is_full() {
            break;
        }
        covered += 1;
        tasks.add(call, &task(&shown(call, id).await?, parts(asked)))?;
    }
    let last = found[..covered].last().filter(|_| covered < found.len());
    let next = last.map(|(at, id)| cursor::write(&cursor::by_time(*at, id.as_str())));
    let tasks = tasks.sorted();
    Ok(FoundTasks { tasks, next_page_token: next.unwrap_or_default(), total_size })
}

async fn shown(call: &AgentCaller, id: &RoundId) -> Result<Round, A2aError> {
    let round = call.engine.round_show(&call.caller, id).await;
    round.map_err(|error| encode::engine_problem(&error).into())
}

fn is_wanted(asked: &TaskListRequest, shown: &A2aTask) -> bool {
    asked.status.is_none_or(|state| state == shown.status.state)
        && is_since(asked.updated_since, shown.status.timestamp.0)
}

fn is_since(since: Option<Timestamp>, updated: Timestamp) -> bool {
    since.is_none_or(|since| since <= updated)
}

/// The messages of tasks are listed only if the caller asks for them.
fn parts(asked: &TaskListRequest) -> TaskParts {
    let history_length = Some(asked.history_length.unwrap_or(0));
    TaskParts { history_length, artifacts: asked.include_artifacts }
}
