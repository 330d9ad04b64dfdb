// Families of operations: rounds, verifiers, tasks, executors and sessions.
import { newKey, type Call, type Caller } from "./calls.js";
import { WaitTimeout } from "./errors.js";
import type * as schemas from "./schemas.js";

const MOST_WAIT_S = 60;
const SLACK_MS = 15_000;
const ROUND_ENDS = ["closed", "expired", "cancelled"];
const TASK_ENDS = ["finalized", "failed", "expired", "cancelled"];

interface Page<Item> {
  items: Item[];
  next_cursor?: string | null;
}

class Family {
  protected readonly caller: Caller;

  constructor(caller: Caller) {
    this.caller = caller;
  }

  protected fetch<Reply>(path: string, query: Call["query"] = {}): Promise<Reply> {
    return this.caller.json({ method: "GET", path, query });
  }

  protected write<Reply>(method: string, path: string, body?: unknown, key = newKey()): Promise<Reply> {
    return this.caller.json({ method, path, body, idempotencyKey: key });
  }

  /** The items of a list, page by page. */
  protected async *items<Item>(path: string, query: Call["query"] = {}): AsyncGenerator<Item> {
    let cursor: string | null | undefined;
    do {
      const page: Page<Item> = await this.fetch(path, { ...query, cursor });
      yield* page.items;
      cursor = page.next_cursor;
    } while (cursor != null);
  }

  /** Asks until the state is one of `ends`; each request waits at the server. */
  protected async waitFor<Found extends { state: string }>(
    path: string,
    ends: string[],
    timeoutMs = Infinity,
  ): Promise<Found> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const leftS = Math.ceil((deadline - Date.now()) / 1000);
      const wait = Math.max(0, Math.min(MOST_WAIT_S, leftS));
      const call = { method: "GET", path, query: { wait }, timeoutMs: wait * 1000 + SLACK_MS };
      const found = await this.caller.json<Found>(call);
      if (ends.includes(found.state)) return found;
      if (deadline <= Date.now()) {
        throw new WaitTimeout(`${path} is \`${found.state}\` after ${timeoutMs} ms`);
      }
    }
  }
}

export class Rounds extends Family {
  /** A round: its request, state and outcome. */
  get(roundId: string): Promise<schemas.Round> {
    return this.fetch(`/v1/rounds/${encodeURIComponent(roundId)}`);
  }

  /** The rounds of the account, the newest first. */
  list(filter: RoundFilter = {}): AsyncGenerator<schemas.Round> {
    return this.items("/v1/rounds", { ...filter });
  }

  /** Waits until a round has ended. */
  wait(roundId: string, timeoutMs?: number): Promise<schemas.Round> {
    return this.waitFor(`/v1/rounds/${encodeURIComponent(roundId)}`, ROUND_ENDS, timeoutMs);
  }

  /** Cancels an open round. */
  cancel(roundId: string): Promise<schemas.Round> {
    return this.caller.json({ method: "POST", path: `/v1/rounds/${encodeURIComponent(roundId)}/cancel` });
  }

  /** Erases what was asked and answered in a round. */
  erase(roundId: string): Promise<schemas.RoundErased> {
    return this.write("DELETE", `/v1/rounds/${encodeURIComponent(roundId)}/payload`);
  }
}

export interface RoundFilter {
  kind?: schemas.Kind;
  outcome?: schemas.Outcome;
  state?: schemas.RoundState;
  since?: string;
  until?: string;
}

export class Verifiers extends Family {
  /** Has judges decide whether the inputs pass a verifier. */
  run(
    ref: string,
    inputs: Record<string, string>,
    options: Omit<schemas.RunVerifierRequest, "inputs"> & { idempotencyKey?: string } = {},
  ): Promise<schemas.VerifierRun> {
    const { idempotencyKey = newKey(), ...fields } = options;
    return this.caller.json({
      method: "POST",
      path: `/v1/verifiers/${encodeURIComponent(ref)}/runs`,
      body: { inputs, ...fields },
      idempotencyKey,
      timeoutMs: (fields.timeout_ms ?? 120_000) + SLACK_MS,
    });
  }

  /** Adds a verifier, or a version of one. */
  deploy(verifier: schemas.DeployVerifierRequest): Promise<schemas.DeployedVerifier> {
    return this.write("POST", "/v1/verifiers", verifier);
  }

  /** A verifier with its configuration. */
  get(ref: string, version?: number): Promise<schemas.Verifier> {
    return this.fetch(`/v1/verifiers/${encodeURIComponent(ref)}`, { version });
  }

  /** The verifiers that the account can run. */
  list(): AsyncGenerator<schemas.VerifierSummary> {
    return this.items("/v1/verifiers");
  }

  /** Ends a verifier; its runs stay. */
  revoke(ref: string): Promise<schemas.RevokedVerifier> {
    return this.write("DELETE", `/v1/verifiers/${encodeURIComponent(ref)}`);
  }
}

export class Tasks extends Family {
  /** A contract to start from. */
  sample(taskId?: string): Promise<schemas.TaskContract> {
    return this.fetch("/v1/tasks/sample", { task_id: taskId });
  }

  /** Submits a contract, alone or with the executors for it. */
  submit(task: schemas.SubmitTask, idempotencyKey?: string): Promise<schemas.Task> {
    return this.write("POST", "/v1/tasks", task, idempotencyKey);
  }

  /** A task and its state. */
  get(taskId: string): Promise<schemas.Task> {
    return this.fetch(`/v1/tasks/${encodeURIComponent(taskId)}`);
  }

  /** Waits until a task has ended. */
  wait(taskId: string, timeoutMs?: number): Promise<schemas.Task> {
    return this.waitFor(`/v1/tasks/${encodeURIComponent(taskId)}`, TASK_ENDS, timeoutMs);
  }

  /** The decision of a task that is final. */
  decision(taskId: string): Promise<schemas.TaskDecision> {
    return this.fetch(`/v1/tasks/${encodeURIComponent(taskId)}/decision`);
  }

  /** Cancels a task. */
  cancel(taskId: string, reason?: string): Promise<schemas.Task> {
    return this.write("POST", `/v1/tasks/${encodeURIComponent(taskId)}/cancel`, { reason });
  }

  /** The tasks of the account. */
  list(filter: { state?: schemas.TaskState; task_type?: string } = {}): AsyncGenerator<schemas.TaskSummary> {
    return this.items("/v1/tasks", { ...filter });
  }

  /** The events of a task until now. */
  events(taskId: string): AsyncGenerator<schemas.TaskEvent> {
    return this.items(`/v1/tasks/${encodeURIComponent(taskId)}/events`);
  }
}

export class Executors extends Family {
  /** Registers an executor, with a session of the same name unless `session` differs. */
  add(executor: schemas.AddExecutorRequest): Promise<schemas.Executor> {
    return this.write("POST", "/v1/executors", executor);
  }

  /** An executor and its health. */
  get(name: string): Promise<schemas.Executor> {
    return this.fetch(`/v1/executors/${encodeURIComponent(name)}`);
  }

  /** Every executor. */
  list(): AsyncGenerator<schemas.Executor> {
    return this.items("/v1/executors");
  }

  /** Probes an executor now. */
  check(name: string): Promise<schemas.Probe> {
    return this.caller.json({ method: "POST", path: `/v1/executors/${encodeURIComponent(name)}/check` });
  }

  /** Removes an executor and its sessions. */
  remove(name: string): Promise<schemas.RemovedExecutor> {
    return this.write("DELETE", `/v1/executors/${encodeURIComponent(name)}`);
  }
}

export class Sessions extends Family {
  /** Adds a session to an executor. */
  add(session: schemas.AddSessionRequest): Promise<schemas.Session> {
    return this.write("POST", "/v1/sessions", session);
  }

  /** A session. */
  get(sessionId: string): Promise<schemas.Session> {
    return this.fetch(`/v1/sessions/${encodeURIComponent(sessionId)}`);
  }

  /** Every session that the account may use. */
  list(): AsyncGenerator<schemas.Session> {
    return this.items("/v1/sessions");
  }

  /** Removes a session. */
  remove(sessionId: string): Promise<schemas.Removed> {
    return this.write("DELETE", `/v1/sessions/${encodeURIComponent(sessionId)}`);
  }
}
