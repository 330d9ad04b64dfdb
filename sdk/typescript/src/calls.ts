// One logical call: its tries, and what it throws in the end.
import { ApiError, ConnectionFailed, problemOf, RequestTimeout } from "./errors.js";

const DEFAULT_URL = "http://127.0.0.1:5872";
const FIRST_BACKOFF_MS = 250;

/** Where to send requests, as whom, and how often. */
export interface JuratOptions {
  /** Defaults to JURAT_URL, JURAT_SERVER, or the server on this machine. */
  url?: string;
  /** Defaults to JURAT_API_KEY or JURAT_KEY. */
  apiKey?: string;
  /** How often a call that was refused with 429 or 503, or whose connection broke, is sent again. */
  maxRetries?: number;
  /** The longest wait before another try; if the server asks for more, the error is thrown. */
  maxWaitMs?: number;
  /** The time that a reply may take; follows from the work by default. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

/** One logical call. Its key stays the same however often it is sent. */
export interface Call {
  method: string;
  path: string;
  body?: unknown;
  query?: Record<string, string | number | boolean | null | undefined>;
  headers?: Record<string, string>;
  idempotencyKey?: string;
  /** Whether it may be sent again after a connection broke, so that nothing is done twice. */
  isRepeatable?: boolean;
  timeoutMs?: number;
}

/** Sends calls, and repeats them. */
export class Caller {
  readonly maxRetries: number;
  readonly #options: JuratOptions;
  readonly #url: string;
  readonly #key: string | undefined;

  constructor(options: JuratOptions) {
    this.#options = options;
    this.maxRetries = options.maxRetries ?? 3;
    const url = options.url ?? env("JURAT_URL") ?? env("JURAT_SERVER") ?? DEFAULT_URL;
    this.#url = url.replace(/\/+$/, "");
    this.#key = options.apiKey ?? env("JURAT_API_KEY") ?? env("JURAT_KEY");
  }

  /** The JSON of the reply. */
  async json<Reply>(call: Call): Promise<Reply> {
    const body = bodyOf(call);
    for (let attempt = 0; ; attempt += 1) {
      try {
        const reply = await this.send(call, body);
        const text = await reply.text();
        return (text === "" ? undefined : JSON.parse(text)) as Reply;
      } catch (error) {
        await this.pause(attempt, call, error);
      }
    }
  }

  /** One try. Throws the problem of a refusal. */
  async send(call: Call, body: string | null): Promise<Response> {
    const headers: Record<string, string> = { ...call.headers };
    if (this.#key !== undefined) headers["Authorization"] = `Bearer ${this.#key}`;
    if (call.idempotencyKey !== undefined) headers["Idempotency-Key"] = call.idempotencyKey;
    if (body !== null) headers["Content-Type"] = "application/json";
    const signal = AbortSignal.timeout(this.timeoutMs(call));
    const url = this.#url + call.path + query(call);
    const fetch = this.#options.fetch ?? globalThis.fetch;
    const reply = await fetch(url, { method: call.method, headers, body, signal, redirect: "error" });
    if (reply.ok) return reply;
    throw new ApiError(problemOf(reply.status, await reply.text()), retryAfterMs(reply.headers));
  }

  /** Waits before the next try, or throws the error if there is none. */
  async pause(attempt: number, call: Call, error: unknown): Promise<void> {
    let waitMs = FIRST_BACKOFF_MS * 2 ** attempt * (1 + Math.random() / 2);
    if (error instanceof ApiError) {
      waitMs = Math.max(waitMs, error.retryAfterMs ?? 0);
      const isTemporary = error.status === 429 || error.status === 503;
      const isSoon = waitMs <= (this.#options.maxWaitMs ?? 30_000);
      if (attempt >= this.maxRetries || !isTemporary || !isSoon) throw error;
    } else if (isTimeout(error)) {
      const message = `${call.method} ${call.path} did not answer within ${this.timeoutMs(call)} ms`;
      throw new RequestTimeout(message, call.idempotencyKey);
    } else if (!(error instanceof TypeError)) {
      throw error;
    } else if (attempt >= this.maxRetries || call.isRepeatable === false) {
      const message = `${call.method} ${this.#url}${call.path} failed: ${reason(error)}`;
      throw new ConnectionFailed(message, { cause: error });
    }
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }

  private timeoutMs(call: Call): number {
    return this.#options.timeoutMs ?? call.timeoutMs ?? 30_000;
  }
}

/** The body as it is sent with each try. */
export function bodyOf(call: Call): string | null {
  return call.body === undefined ? null : JSON.stringify(call.body);
}

/** A key that no other call has. */
export function newKey(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A variable of the environment; a browser has none. */
function env(name: string): string | undefined {
  return globalThis.process?.env?.[name] || undefined;
}

function query(call: Call): string {
  const given = Object.entries(call.query ?? {}).filter(([, value]) => value != null);
  if (given.length === 0) return "";
  return `?${new URLSearchParams(given.map(([name, value]): [string, string] => [name, String(value)]))}`;
}

/** How long a reply asks to wait: seconds, or a date. */
function retryAfterMs(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

function reason(error: TypeError): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
