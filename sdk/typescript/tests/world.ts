// A real server, executors that are made with the package itself, and a front that disturbs.
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { Jurat } from "jurat";
import { executor, type ExecutorOptions, type RunningExecutor } from "jurat/executor";

const PROGRAM = process.env["JURAT_PROGRAM"]!;

/** The snippets of the README, in order. */
export function snippets(): string[] {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  return [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]!);
}

/** The snippet of the guide. */
export function guide(): string {
  const text = readFileSync(process.env["JURAT_GUIDE"]!, "utf8");
  return /```ts\n([\s\S]*?)```/.exec(text)![1]!;
}

/** The URL that a process says it listens on. */
export async function listening(child: ChildProcess, stream: "stdout" | "stderr"): Promise<string> {
  const lines: string[] = [];
  const reader = createInterface({ input: child[stream]! });
  return new Promise((resolve, reject) => {
    reader.on("line", (line) => {
      lines.push(line);
      const match = /listening on (\S+)/.exec(line);
      if (match) resolve(match[1]!);
    });
    child.once("exit", () => reject(new Error(lines.join("\n"))));
  });
}

export async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const exit = new Promise((resolve) => child.once("exit", resolve));
  child.kill();
  await exit;
}

/** A process of `jurat serve` with a state folder of its own. */
export class TestServer {
  folder = "";
  url = "";
  key = "";
  #child!: ChildProcess;

  static async start(): Promise<TestServer> {
    const server = new TestServer();
    server.folder = await mkdtemp(join(tmpdir(), "jurat-sdk-"));
    const args = ["--state-dir", join(server.folder, "state"), "serve", "--listen", "127.0.0.1:0"];
    const env = { PATH: "/usr/bin:/bin", HOME: server.folder, JURAT_LIMITS_LAG_MS: "0" };
    const stdio: ["ignore", "ignore", "pipe"] = ["ignore", "ignore", "pipe"];
    server.#child = spawn(PROGRAM, args, { cwd: server.folder, env, stdio });
    server.url = await listening(server.#child, "stderr");
    server.key = (await readFile(join(server.folder, "state", "admin.key"), "utf8")).trim();
    return server;
  }

  client(options: object = {}): Jurat {
    return new Jurat({ url: this.url, apiKey: this.key, ...options });
  }

  async stop(): Promise<void> {
    await ended(this.#child);
    await rm(this.folder, { recursive: true });
  }
}

export function additions(claim: unknown): boolean | null {
  const match = /^(\d+) \+ (\d+) = (\d+)$/.exec(String(claim));
  return match ? Number(match[1]) + Number(match[2]) === Number(match[3]) : null;
}

export function honest(name: string, more: Partial<ExecutorOptions> = {}): ExecutorOptions {
  return {
    taskTypes: ["delegate", "factcheck", "echo"],
    providerFamily: name,
    execute: ({ taskType, inputs }) => {
      if (taskType !== "factcheck") return { answer: inputs["prompt"] };
      const right = additions(inputs["claim"]);
      return { verdict: right === null ? "UNSURE" : right ? "TRUE" : "FALSE", confidence: 0.9 };
    },
    judge: ({ output }) => additions(output),
    ...more,
  };
}

/** Three honest executors, a liar and three that never answer. */
export async function executors(jurat: Jurat): Promise<RunningExecutor[]> {
  const never = new Promise<never>(() => undefined);
  const made: [string, ExecutorOptions][] = ["one", "two", "three"].map((name) => [name, honest(name)]);
  made.push(["liar", honest("liar", { judge: ({ output }) => !additions(output) })]);
  for (const number of [1, 2, 3]) {
    made.push([`hanging-${number}`, honest("hanging", { execute: () => never, judge: () => never })]);
  }
  const running = [];
  for (const [name, options] of made) {
    const started = await executor(options).listen(0);
    running.push(started);
    await jurat.executors.add({ name, url: started.url, must_answer: true });
  }
  return running;
}

/** Does one of `actions` for each request: `pass`, `busy`, `break` after the work, or `cut`. */
export async function front(url: string, actions: string[]) {
  const keys: (string | undefined)[] = [];
  const left = [...actions];
  const server = createServer(async (request, response) => {
    keys.push(request.headers["idempotency-key"] as string | undefined);
    const action = left.shift()!;
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    if (action.startsWith("busy")) {
      const wait = action.endsWith("tomorrow") ? "86400" : "0";
      const body = { code: "overloaded", status: 503, detail: "busy", hint: "try again" };
      response.writeHead(503, { "Retry-After": wait }).end(JSON.stringify(body));
      return;
    }
    const headers: Record<string, string> = {};
    for (const name of ["authorization", "content-type", "idempotency-key", "accept", "prefer"]) {
      const value = request.headers[name];
      if (typeof value === "string") headers[name] = value;
    }
    const body = parts.length > 0 ? Buffer.concat(parts) : null;
    const reply = await fetch(url + request.url, { method: request.method!, headers, body });
    const text = await reply.text();
    const kind = reply.headers.get("content-type")!;
    if (action === "break") {
      response.destroy();
    } else if (action === "cut") {
      // The first event, and less than what was promised.
      response.writeHead(reply.status, { "Content-Type": kind, "Content-Length": text.length });
      response.write(text.slice(0, text.indexOf("\n\n") + 2), () => response.destroy());
    } else {
      response.writeHead(reply.status, { "Content-Type": kind }).end(text);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${port}`, keys, close };
}

export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

function pool(...sessions: string[]) {
  return { replicas: 3 as const, session_pool: sessions, spares: 0 };
}

export const HONEST = pool("one", "two", "three");
export const ONE_LIES = pool("one", "liar", "two");
export const HANGING = pool("hanging-1", "hanging-2", "hanging-3");
