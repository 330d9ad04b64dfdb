// The errors of the client.
import type { Answer } from "./answer.js";
import type { Problem } from "./schemas.js";

/** Every error of this package is one of these. */
export class JuratError extends Error {
  override name = "JuratError";
}

/** The server refused a request, or failed: a problem with a stable `code`. */
export class ApiError extends JuratError {
  override name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** Path of the faulty field, such as `consensus.replicas`. */
  readonly field: string | undefined;
  /** What to try next. */
  readonly hint: string | undefined;
  readonly roundId: string | undefined;
  /** The whole body of the error. */
  readonly problem: Problem;
  /** How long the server asks to wait before another try. */
  readonly retryAfterMs: number | undefined;

  constructor(problem: Problem, retryAfterMs?: number) {
    const at = problem.field ? ` at \`${problem.field}\`` : "";
    const hint = problem.hint ? ` (${problem.hint})` : "";
    super(`${problem.code}${at}: ${problem.detail}${hint}`);
    this.status = problem.status;
    this.code = problem.code;
    this.detail = problem.detail;
    this.field = problem.field;
    this.hint = problem.hint;
    this.roundId = problem.round_id;
    this.problem = problem;
    this.retryAfterMs = retryAfterMs;
  }
}

/** `Answer.require` found no agreement, too little confidence, or another verdict. */
export class NotAgreed extends JuratError {
  override name = "NotAgreed";
  readonly answer: Answer;

  constructor(message: string, answer: Answer) {
    super(message);
    this.answer = answer;
  }
}

/** No try reached the server, or the connection broke on each. */
export class ConnectionFailed extends JuratError {
  override name = "ConnectionFailed";
}

/** The server did not answer in time. Its work goes on: the same key gets its reply. */
export class RequestTimeout extends JuratError {
  override name = "RequestTimeout";
  readonly idempotencyKey: string | undefined;

  constructor(message: string, idempotencyKey: string | undefined) {
    super(message);
    this.idempotencyKey = idempotencyKey;
  }
}

/** A round or a task did not end while it was waited for. */
export class WaitTimeout extends JuratError {
  override name = "WaitTimeout";
}

/** The problem in a reply; a proxy in between may have answered with anything. */
export function problemOf(status: number, text: string): Problem {
  let body: unknown = null;
  try {
    body = JSON.parse(text);
  } catch {
    // It is described below.
  }
  if (body !== null && typeof body === "object" && "code" in body) {
    return { status, detail: "", ...body } as Problem;
  }
  const detail = `HTTP ${status} without a problem: ${text.slice(0, 200)}`;
  const hint = "check that the URL is that of a Jurat server";
  return { type: "about:blank", status, code: "unknown", detail, hint } as unknown as Problem;
}
