// The client: rounds, and families of operations.
import { Answer } from "./answer.js";
import { bodyOf, Caller, newKey, type Call, type JuratOptions } from "./calls.js";
import { roundEvents, type RoundEvent } from "./events.js";
import { Executors, Rounds, Sessions, Tasks, Verifiers } from "./families.js";
import type {
  Claim,
  DelegateReply,
  DelegateRequest,
  FactcheckRequest,
  FactClaim,
  Kind,
  Me,
  Replicas,
  Round,
  ValidateRequest,
  VerdictReply,
} from "./schemas.js";

const ROUND_MS = 60_000;
const SLACK_MS = 15_000;

/** Short forms of what a request for a round has in its blocks, and its key. */
export interface AskOptions {
  /** `consensus.replicas`: 1, 3 or 5. */
  replicas?: Replicas;
  /** `execution.timeout_ms`: the deadline of the whole round. */
  timeoutMs?: number;
  idempotencyKey?: string;
}

export type DelegateOptions = Omit<DelegateRequest, "objective"> & AskOptions;
export type ValidateOptions = Omit<ValidateRequest, "claim"> & AskOptions;
export type FactcheckOptions = Omit<FactcheckRequest, "claim"> & AskOptions;
/** The request of each kind of round. */
export interface RoundRequest {
  delegate: DelegateRequest;
  validate: ValidateRequest;
  factcheck: FactcheckRequest;
}

/** A client of a Jurat server. */
export class Jurat {
  /** Rounds that were opened before. */
  readonly rounds: Rounds;
  /** Versioned checks in the registry. */
  readonly verifiers: Verifiers;
  /** Jobs under a contract: proposed, verified and voted on. */
  readonly tasks: Tasks;
  /** The services that do the work. Needs a key of the operator. */
  readonly executors: Executors;
  /** Named routes to executors. */
  readonly sessions: Sessions;
  readonly #caller: Caller;

  constructor(options: JuratOptions = {}) {
    this.#caller = new Caller(options);
    this.rounds = new Rounds(this.#caller);
    this.verifiers = new Verifiers(this.#caller);
    this.tasks = new Tasks(this.#caller);
    this.executors = new Executors(this.#caller);
    this.sessions = new Sessions(this.#caller);
  }

  /** Has a job done by several executors, and compares their outputs. */
  async delegate(objective: string, options: DelegateOptions = {}): Promise<Answer> {
    return this.#ask("delegate", { objective }, options);
  }

  /** Has a claim, or an output, judged under a policy: `VALID` or `INVALID`. */
  async validate(claim: Claim, options: ValidateOptions = {}): Promise<Answer> {
    return this.#ask("validate", { claim }, options);
  }

  /** Has a fact checked: `TRUE`, `FALSE` or `UNSURE`. */
  async factcheck(claim: FactClaim, options: FactcheckOptions = {}): Promise<Answer> {
    return this.#ask("factcheck", { claim }, options);
  }

  /** Opens a round and does not wait for it; `rounds.wait` does. */
  async start<K extends Kind & keyof RoundRequest>(
    kind: K,
    request: RoundRequest[K],
    idempotencyKey?: string,
  ): Promise<Round> {
    const call = roundCall(kind, request, idempotencyKey);
    return this.#caller.json({ ...call, headers: { Prefer: "respond-async" } });
  }

  /**
   * The events of a round while it runs; the last one is `final`, with the answer. If the
   * connection breaks, the stream goes on with the event `final` of the same round.
   */
  async *stream<K extends Kind & keyof RoundRequest>(
    kind: K,
    request: RoundRequest[K],
    idempotencyKey?: string,
  ): AsyncGenerator<RoundEvent> {
    const call = roundCall(kind, request, idempotencyKey);
    call.headers = { Accept: "text/event-stream" };
    const body = bodyOf(call);
    for (let attempt = 0; ; attempt += 1) {
      let failure: unknown = new TypeError("the stream ended early");
      let hasStarted = false;
      try {
        const reply = await this.#caller.send(call, body);
        hasStarted = true;
        if (reply.body) {
          for await (const event of roundEvents(reply.body)) {
            yield event;
            if (event.name === "final") return;
          }
        }
      } catch (error) {
        failure = error;
      }
      // After the start, a problem is the end of the round, whatever its status.
      if (hasStarted && !(failure instanceof TypeError)) throw failure;
      await this.#caller.pause(attempt, call, failure);
    }
  }

  /** The account and the key of this client. */
  async me(): Promise<Me> {
    return this.#caller.json({ method: "GET", path: "/v1/me" });
  }

  /**
   * Sends any other request of the API, with the same retries and errors. After a broken
   * connection, a request that changes something is sent again only if it has an idempotency key.
   */
  async request<Reply = unknown>(
    method: string,
    path: string,
    options: Pick<Call, "body" | "query" | "idempotencyKey" | "timeoutMs"> = {},
  ): Promise<Reply> {
    const isRepeatable = method === "GET" || options.idempotencyKey !== undefined;
    return this.#caller.json({ method, path, ...options, isRepeatable });
  }

  async #ask(kind: Kind, first: object, options: object & AskOptions): Promise<Answer> {
    const { replicas, timeoutMs, idempotencyKey, ...fields } = options;
    const request: RequestFields = { ...first, ...fields };
    if (replicas !== undefined) request.consensus = { ...request.consensus, replicas };
    if (timeoutMs !== undefined) request.execution = { ...request.execution, timeout_ms: timeoutMs };
    const call = roundCall(kind, request, idempotencyKey);
    return new Answer(await this.#caller.json<DelegateReply | VerdictReply>(call));
  }
}

type RequestFields = Partial<Pick<DelegateRequest, "consensus" | "execution">>;

function roundCall(kind: Kind, request: RequestFields, idempotencyKey = newKey()): Call {
  const { timeout, timeout_ms } = request.execution ?? {};
  const roundMs = timeout_ms ?? (timeout ? timeout * 1000 : ROUND_MS);
  return {
    method: "POST",
    path: `/api/v3/${kind}`,
    body: request,
    idempotencyKey,
    timeoutMs: roundMs + SLACK_MS,
  };
}
