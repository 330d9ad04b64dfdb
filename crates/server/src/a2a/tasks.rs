//! Lists and cancels tasks.

use jurat_core::{
    code::ProblemCode,
    id::RoundId,
    round::{CancelledRound, Round, RoundFilter},
    time::Timestamp,
};
use jurat_wire::api::a2a::{
    error::{A2aError, A2aErrorKind},
    requests::TaskListRequest,
    task::{A2aTask, A2aTaskPage, TaskParts, TaskState},
};

use super::{AgentCaller, context, of_task, task};
use crate::request::{cursor, encode};

/// How many of the newest rounds of an account a total counts.
const MOST_COUNTED: u32 = 10_000;
/// The largest page with artifacts, which may be large.
const LARGEST_WITH_ARTIFACTS: u32 = 20;
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

/// A page of the account's tasks. Pages go by the time when tasks began, newest first; a page is
/// sorted by the time of the last change.
pub(super) async fn list(
    call: &AgentCaller,
    asked: &TaskListRequest,
) -> Result<A2aTaskPage, A2aError> {
    let most = if asked.include_artifacts { LARGEST_WITH_ARTIFACTS } else { asked.page_size };
    let page_size = asked.page_size.min(most);
    let before = asked.page_token.as_deref().map(position).transpose()?;
    let found = match (asked.status, &asked.context_id) {
        (Some(state), _) if state.round_status().is_none() => FoundTasks::default(),
        (_, Some(context_id)) => of_context(call, asked, context_id, (before, page_size)).await?,
        (_, None) => of_account(call, asked, (before, page_size)).await?,
    };
    let FoundTasks { mut tasks, next, total } = found;
    tasks.sort_by_key(|task| std::cmp::Reverse(task.status.timestamp.0));
    let next_page_token = next.map(|id| cursor::write(&[id.to_string()])).unwrap_or_default();
    Ok(A2aTaskPage { tasks, next_page_token, page_size, total_size: total })
}

#[derive(Default)]
struct FoundTasks {
    tasks: Vec<A2aTask>,
    /// The last task of the page, if there are more.
    next: Option<RoundId>,
    total: u32,
}

fn position(token: &str) -> Result<RoundId, A2aError> {
    let refused = || {
        let reason = "was not returned by ListTasks; leave it out to start at the first page";
        A2aError::wrong("pageToken", reason)
    };
    let [id] = cursor::read(token).map_err(|_| refused())?;
    RoundId::parse(&id).map_err(|_| refused())
}

async fn of_account(
    call: &AgentCaller,
    asked: &TaskListRequest,
    (before, page_size): (Option<RoundId>, u32),
) -> Result<FoundTasks, A2aError> {
    let problem = |error| A2aError::from(encode::engine_problem(&error));
    let state = asked.status.and_then(TaskState::round_status);
    let query = RoundFilter {
        state,
        since: asked.updated_since.map(|at| Timestamp::from_millis(at.millis() - LONGEST_MS)),
        before,
        limit: page_size + 1,
        ..RoundFilter::default()
    };
    let mut found = call.engine.round_list(&call.caller, query).await.map_err(problem)?;
    let is_more = usize::try_from(page_size).is_ok_and(|most| most < found.len());
    if is_more {
        found.pop();
    }
    let next = found.last().filter(|_| is_more).map(|round| round.open.id.clone());
    let mut tasks = Vec::with_capacity(found.len());
    // The rounds of Jurat's own tasks are not tasks of the protocol.
    for line in found.iter().filter(|line| line.open.step.is_none()) {
        let updated = line.closing.as_ref().map_or(line.open.opened_at, |end| end.closed_at);
        if is_since(asked.updated_since, updated) {
            let round = call.engine.round_show(&call.caller, &line.open.id).await;
            tasks.push(task(&round.map_err(problem)?, parts(asked)));
        }
    }
    let counting = call.engine.round_count(&call.caller, state, asked.updated_since, MOST_COUNTED);
    Ok(FoundTasks { tasks, next, total: counting.await.map_err(problem)? })
}

/// The tasks of a context, which are few enough to be read.
async fn of_context(
    call: &AgentCaller,
    asked: &TaskListRequest,
    context_id: &str,
    (before, page_size): (Option<RoundId>, u32),
) -> Result<FoundTasks, A2aError> {
    let Some(first) = context::begun_by(call, context_id).await? else {
        return Ok(FoundTasks::default());
    };
    let mut matching = Vec::new();
    for id in context::joined(call, context_id).await? {
        let round = call.engine.round_show(&call.caller, &id).await;
        let round = round.map_err(|error| A2aError::from(encode::engine_problem(&error)))?;
        if is_wanted(asked, &round) {
            let task = task(&round, parts(asked));
            // A task whose content was erased is alone again.
            if task.context_id == context_id {
                matching.push((id, task));
            }
        }
    }
    if is_wanted(asked, &first) {
        matching.push((first.open.id.clone(), task(&first, parts(asked))));
    }
    let total = u32::try_from(matching.len()).unwrap_or(u32::MAX);
    matching.retain(|(id, _)| before.as_ref().is_none_or(|before| id < before));
    let most = usize::try_from(page_size).unwrap_or(usize::MAX);
    let is_more = most < matching.len();
    matching.truncate(most);
    let next = matching.last().filter(|_| is_more).map(|(id, _)| id.clone());
    Ok(FoundTasks { tasks: matching.into_iter().map(|(_, task)| task).collect(), next, total })
}

fn is_wanted(asked: &TaskListRequest, round: &Round) -> bool {
    let shown = task(round, TaskParts { history_length: Some(0), artifacts: false });
    asked.status.is_none_or(|state| state == shown.status.state)
        && is_since(asked.updated_since, shown.status.timestamp.0)
}

fn is_since(since: Option<Timestamp>, updated: Timestamp) -> bool {
    since.is_none_or(|since| since <= updated)
}

const fn parts(asked: &TaskListRequest) -> TaskParts {
    TaskParts { history_length: asked.history_length, artifacts: asked.include_artifacts }
}
