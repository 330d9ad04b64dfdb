//! What those who hold steps write. Nothing changes for a token that does not hold any more.

use jurat_core::task_run::{RunStatus, StepStatus};

use super::{
    HeldStep, RunKey, StepFinish, StepFinished, StepOutcome, StepRenewal,
    write::{add_events, is_done, number_of},
};
use crate::{
    Result, StoreError,
    agent_events::NotHeld,
    both::{Tx, args},
    rows::{Cells, Columns, json},
};

const RENEW: &str = "\
    update task_run_steps set lease_until = $1 \
    where account_id = $2 and run_id = $3 and id = $4 and lease_token = $5 and status = 'LEASED'";
const STATUS: &str = "select id, status from task_runs where account_id = $1 and id = $2";

/// The parameters are the status, by how much the attempt is raised, when it is tried again, the
/// output, the error, the time, and who holds which step.
const FINISH: &str = "\
    update task_run_steps set status = $1, attempt = attempt + $2, \
    run_at = coalesce($3, run_at), output = $4, error = $5, updated_at = $6, \
    lease_token = null, lease_until = null, worker = null \
    where account_id = $7 and run_id = $8 and id = $9 and lease_token = $10 \
    and status = 'LEASED'";
/// What would be tried again in a run that is to end.
const NOT_AGAIN: &str = "\
    update task_run_steps set status = 'CANCELLED' \
    where account_id = $1 and run_id = $2 and id = $3 and status in ('QUEUED', 'RETRY_WAIT')";
const NOTED: &str = "\
    update task_runs set seq = seq + $1, updated_at = $2 where account_id = $3 and id = $4 \
    returning id, status, seq";
const DUE: &str = "update task_runs set due_at = $1 where account_id = $2 and id = $3";

pub(super) async fn renew(
    tx: &mut impl Tx,
    renewal: &StepRenewal,
) -> Result<Result<RunStatus, NotHeld>> {
    let HeldStep { run, id, token } = &renewal.held;
    let args = args![renewal.until, &run.account, &run.id, id, token];
    if tx.run(RENEW, args).await? == 0 {
        return Ok(Err(NotHeld));
    }
    status(tx, run).await?.map(Ok).ok_or_else(gone)
}

pub(super) async fn status(tx: &mut impl Tx, run: &RunKey) -> Result<Option<RunStatus>> {
    let read = |cells: &dyn Cells| Columns::new(&cells, "task_runs", "id")?.word("status");
    tx.first(STATUS, args![&run.account, &run.id], read).await
}

fn gone() -> StoreError {
    StoreError::conflict("the run of the step is not there")
}

pub(super) async fn finish(
    tx: &mut impl Tx,
    finish: &StepFinish,
) -> Result<Result<StepFinished, NotHeld>> {
    let HeldStep { run, id, .. } = &finish.held;
    if !end(tx, finish).await? {
        return Ok(Err(NotHeld));
    }
    let read = |cells: &dyn Cells| {
        let columns = Columns::new(&cells, "task_runs", "id")?;
        Ok((columns.word("status")?, columns.count("seq")?))
    };
    let added = number_of(&finish.events);
    // From here on nobody else changes how the run stands.
    let noted = tx.first(NOTED, args![added, finish.at, &run.account, &run.id], read).await?;
    let (run_status, seq): (RunStatus, u64) = noted.ok_or_else(gone)?;
    add_events(tx, run, seq.saturating_sub(added), (&finish.events, finish.at)).await?;
    if run_status == RunStatus::Cancelling {
        tx.run(NOT_AGAIN, args![&run.account, &run.id, id]).await?;
    }
    let was_last = is_done(tx, run).await?;
    if was_last {
        tx.run(DUE, args![finish.at, &run.account, &run.id]).await?;
    }
    Ok(Ok(StepFinished { run_status, seq, was_last }))
}

/// Ends the step itself; `false` when it is not held any more.
async fn end(tx: &mut impl Tx, finish: &StepFinish) -> Result<bool> {
    let HeldStep { run, id, token } = &finish.held;
    let (mut output, mut error, mut again_at) = (None, None, None);
    let (status, raised) = match &finish.outcome {
        StepOutcome::Succeeded { output: said } => {
            output = Some(json(said)?);
            (StepStatus::Succeeded, 0)
        }
        StepOutcome::Failed { error: why } => {
            error = Some(why.as_str());
            (StepStatus::Failed, 0)
        }
        StepOutcome::Retry { error: why, at } => {
            (error, again_at) = (Some(why.as_str()), Some(*at));
            (StepStatus::RetryWait, 1)
        }
        StepOutcome::GivenBack => (StepStatus::Queued, 0),
        StepOutcome::Cancelled => (StepStatus::Cancelled, 0),
    };
    let args = args![
        status.as_str(),
        i64::from(raised),
        again_at,
        output.as_deref(),
        error,
        finish.at,
        &run.account,
        &run.id,
        id,
        token
    ];
    Ok(tx.run(FINISH, args).await? == 1)
}
