/** An executor: a function that answers, served over HTTP by Node alone. */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";

import { canonical, digest } from "./canonical.js";
import { RememberedAnswers } from "./remembered.js";
import { isSigned } from "./signature.js";

const CLAIM_POLICY = "vp.claim.v1";
const SCHEMA_POLICY = "vp.schema_only.v1";
const MOST_BYTES = 2 * 1024 * 1024;
const IDLE_MS = 35_000;
const CLAIM_FALSE = 1020;
const CLAIM_UNDECIDED = 1021;

type Fields = Record<string, unknown>;

/** One request to `/execute`. */
export interface Job {
  taskType: string;
  /** For `delegate` the input with `objective` and `prompt`; for `factcheck` the `claim`. */
  inputs: Fields;
  /** What the output must match. */
  outputSchema: unknown;
  profile: string;
  /** How long the caller waits. */
  timeMs: number | undefined;
  /** The whole request, with its contract. */
  request: Fields;
}

/** One request to `/verify`. */
export interface Candidate {
  /** The claim, or the output to judge. */
  output: unknown;
  outputSchema: unknown;
  policyId: string;
  policyParams: Fields;
  /** The whole request, with the evidence. */
  request: Fields;
}

/** A verdict with its confidence. `passed` is null if the executor cannot tell. */
export interface Judgement {
  passed: boolean | null;
  score?: number;
  reasonCodes?: number[];
}

export type Judge = (candidate: Candidate) => Said | Promise<Said>;
type Said = boolean | null | Judgement;

/** What an executor does, and for whom. */
export interface ExecutorOptions {
  /** Does the work of `/execute`; the output must match the schema of the job. */
  execute(job: Job): unknown;
  /** Decides `vp.claim.v1`: true, false, or null for cannot tell. */
  judge?: Judge;
  /** Decide policies of your own, by their ids. */
  judges?: Record<string, Judge>;
  taskTypes?: string[];
  profiles?: string[];
  /** Executors that do not share a model should differ in this and in `modelId`. */
  providerFamily?: string;
  modelId?: string;
  /** A bearer token that requests need. */
  token?: string;
  /** Public keys of nodes in hex; requests need the signature of one of them. */
  nodeKeys?: string[];
  /** The most requests at a time. */
  maxRunning?: number;
}

/** Answers with this status and code. A failure is never a verdict. */
export class ExecutorError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;

  constructor(status: number, code: string, message: string, field?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/** An executor that serves its endpoints. */
export interface RunningExecutor {
  url: string;
  close(): Promise<void>;
}

/** Makes an executor of functions. */
export function executor(options: ExecutorOptions): Executor {
  return new Executor(options);
}

/** Functions with their four endpoints. */
export class Executor {
  readonly capabilities: {
    task_types: string[];
    profiles: string[];
    provider_family: string;
    model_id: string;
    policies: string[];
  };
  readonly #options: ExecutorOptions;
  readonly #judges: Map<string, Judge>;
  readonly #answers = new RememberedAnswers();
  #running = 0;

  constructor(options: ExecutorOptions) {
    this.#options = options;
    this.#judges = new Map(Object.entries(options.judges ?? {}));
    if (options.judge) this.#judges.set(CLAIM_POLICY, options.judge);
    this.capabilities = {
      task_types: options.taskTypes ?? ["*"],
      profiles: options.profiles ?? ["default"],
      provider_family: options.providerFamily ?? "typescript",
      model_id: options.modelId ?? "default",
      policies: [...this.#judges.keys()].sort(),
    };
  }

  /** Serves until it is closed. Port 0 takes a free one. */
  async listen(port = 8787, host = "127.0.0.1"): Promise<RunningExecutor> {
    const server = createServer({ keepAliveTimeout: IDLE_MS }, async (request, response) => {
      const [status, body] = await this.#reply(request);
      const text = JSON.stringify(body);
      response.writeHead(status, {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(text),
        ...(status === 413 ? { Connection: "close" } : {}),
      });
      response.end(text);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(port, host, resolve);
    });
    const { port: taken } = server.address() as AddressInfo;
    return { url: `http://${host}:${taken}`, close: () => close(server) };
  }

  async #reply(request: IncomingMessage): Promise<[number, unknown]> {
    try {
      const body = await read(request);
      const output = await this.#handle(request.method ?? "", request.url ?? "", request.headers, body);
      // What is not JSON, such as a function or a number of the kind BigInt, fails here.
      return [200, JSON.parse(JSON.stringify(output))];
    } catch (error) {
      if (error instanceof ExecutorError) {
        const field = error.field === undefined ? {} : { field: error.field };
        return [error.status, { error: error.code, message: error.message, ...field }];
      }
      console.error("the executor failed:", error);
      const message = error instanceof Error ? error.name : "Error";
      return [500, { error: "executor_failed", message }];
    }
  }

  async #handle(method: string, path: string, headers: IncomingHttpHeaders, body: Buffer): Promise<unknown> {
    if (method === "GET" && path === "/health") return { status: "ok" };
    this.#admit(method, path, headers, body);
    if (method === "GET" && path === "/capabilities") return this.capabilities;
    if (path !== "/execute" && path !== "/verify") {
      throw new ExecutorError(404, "not_found", `\`${path}\` is not an endpoint of an executor`);
    }
    if (method !== "POST") throw new ExecutorError(405, "method_not_allowed", `\`${path}\` takes POST`);
    const request = parse(body);
    if ((this.#options.maxRunning ?? 64) <= this.#running) {
      throw new ExecutorError(503, "overloaded", "too many requests at once");
    }
    this.#running += 1;
    try {
      return await (path === "/execute" ? this.#execute(request) : this.#verify(request));
    } finally {
      this.#running -= 1;
    }
  }

  #admit(method: string, path: string, headers: IncomingHttpHeaders, body: Buffer): void {
    const { token, nodeKeys } = this.#options;
    if (token !== undefined && !isEqual(headers.authorization ?? "", `Bearer ${token}`)) {
      throw new ExecutorError(401, "auth_required", "send the token of this executor");
    }
    if (nodeKeys !== undefined && method === "POST" && !isSigned(nodeKeys, path, headers, body)) {
      throw new ExecutorError(401, "auth_required", "no known node signed this request");
    }
  }

  async #execute(request: Fields): Promise<unknown> {
    const id = text(request, "execution_id");
    const contract = object(request, "task_contract");
    const job: Job = {
      taskType: declared(text(request, "task_type"), this.capabilities.task_types, "task_type"),
      profile: declared(String(request["profile"] ?? "default"), this.capabilities.profiles, "profile"),
      inputs: object(request, "inputs"),
      outputSchema: contract["output_schema"] ?? {},
      timeMs: (contract["budget"] as { time_ms?: number } | undefined)?.time_ms,
      request,
    };
    const { attempt_id: _attempt, seed_bundle: _seed, ...told } = request;
    const work = async () => this.#options.execute(job);
    const answer = this.#answers.get(id, digest(canonical(told)), work);
    if (answer === undefined) {
      const message = "execution_id was used with another request";
      throw new ExecutorError(409, "execution_id_reused", message, "execution_id");
    }
    const output = await answer;
    if (output === undefined) throw new TypeError("the function returned nothing");
    return { candidate_output: output, evidence_inline: [], evidence_refs: [] };
  }

  async #verify(request: Fields): Promise<unknown> {
    const given = object(request, "candidate");
    const policy = object(request, "policy");
    const policyId = text(policy, "policy_id");
    const policyParams = (policy["policy_params"] ?? {}) as Fields;
    if (policy["policy_hash"] !== digest(policyId + canonical(policyParams))) {
      const message = "policy binding invalid: policy_hash does not match";
      throw new ExecutorError(400, "policy_invalid", message, "policy.policy_hash");
    }
    const outputSchema = request["output_schema"] ?? {};
    const candidate = { output: given["output"], outputSchema, policyId, policyParams, request };
    const { passed, score, reasonCodes } = await this.#judgement(candidate);
    const result = {
      candidate_id: text(given, "candidate_id"),
      execution_id: text(given, "execution_id"),
      passed: passed === true,
      score,
      reason_codes: reasonCodes,
      provider_family: this.capabilities.provider_family,
      model_id: this.capabilities.model_id,
      policy_hash: policy["policy_hash"],
    };
    const status = passed === null ? "inconclusive" : passed ? "passed" : "failed";
    return { ...result, verification_status: status, verifier_result_hash: digest(canonical(result)) };
  }

  async #judgement(candidate: Candidate): Promise<Required<Judgement>> {
    const judge = this.#judges.get(candidate.policyId);
    let said: Said;
    if (judge) {
      said = await judge(candidate);
    } else if (candidate.policyId === SCHEMA_POLICY && canonical(candidate.outputSchema) === "{}") {
      said = true; // An empty schema matches everything.
    } else {
      // The node then says NEEDS_SPEC: better than a verdict that nobody computed.
      throw new ExecutorError(422, "policy_unsupported", `\`${candidate.policyId}\` is not decided here`, "policy");
    }
    const { passed, score, reasonCodes } = isJudgement(said) ? said : { passed: said };
    if (passed !== null && typeof passed !== "boolean") {
      throw new TypeError("a judge returns true, false, null or a judgement");
    }
    const codes = passed === null ? [CLAIM_UNDECIDED] : passed ? [] : [CLAIM_FALSE];
    return { passed, score: score ?? (passed === null ? 0.5 : 0.9), reasonCodes: reasonCodes ?? codes };
  }
}

function isJudgement(said: Said): said is Judgement {
  return said !== null && typeof said === "object";
}

function isEqual(given: string, expected: string): boolean {
  const [left, right] = [Buffer.from(given), Buffer.from(expected)];
  return left.length === right.length && timingSafeEqual(left, right);
}

async function read(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request.iterator({ destroyOnReturn: false })) {
    size += part.length;
    if (MOST_BYTES < size) {
      throw new ExecutorError(413, "payload_too_large", `a body has at most ${MOST_BYTES} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function parse(body: Buffer): Fields {
  let request: unknown;
  try {
    request = JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new ExecutorError(400, "invalid_json", String(error));
  }
  return object({ request }, "request");
}

function object(fields: Fields, name: string): Fields {
  const value = fields[name];
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new ExecutorError(422, "request_invalid", `\`${name}\` must be an object`, name);
  }
  return value as Fields;
}

function text(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value === "string") return value;
  throw new ExecutorError(422, "request_invalid", `\`${name}\` must be a string`, name);
}

function declared(value: string, known: string[], field: string): string {
  if (known.includes(value) || known.includes("*")) return value;
  throw new ExecutorError(422, `${field}_unsupported`, `\`${value}\` is not declared`, field);
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}
