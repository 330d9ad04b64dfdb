// The client against a real server.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ApiError, ConnectionFailed, Jurat, NotAgreed, RequestTimeout, WaitTimeout } from "jurat";
import type { RunningExecutor } from "jurat/executor";

import { all, executors, front, HANGING, HONEST, ONE_LIES, TestServer } from "./world.ts";

let server: TestServer;
let running: RunningExecutor[];
let jurat: Jurat;

before(async () => {
  server = await TestServer.start();
  jurat = server.client();
  running = await executors(jurat);
});

after(async () => {
  await server.stop();
  await Promise.all(running.map((it) => it.close()));
});

async function refusal<E extends Error>(kind: new (...args: never[]) => E, work: Promise<unknown>): Promise<E> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof kind, String(error));
  return error;
}

test("a liar is outvoted", async () => {
  const answer = await jurat.validate("2 + 2 = 4", { consensus: ONE_LIES });
  assert.deepEqual([answer.verdict, answer.outcome], ["VALID", "agreed"]);
  assert.deepEqual(answer.replicas.map((it) => it.verdict), ["VALID", "INVALID", "VALID"]);
  assert.equal(answer.require({ verdict: "VALID" }), answer);
  assert.throws(() => answer.require({ minConfidence: 0.99 }), /below 0.99[^]*liar says INVALID/);
  assert.throws(() => answer.require({ verdict: "INVALID" }), /the verdict is VALID, not INVALID/);
});

test("a job and a fact", async () => {
  const done = await jurat.delegate("say it again", { input: { n: 7 }, consensus: HONEST });
  assert.equal(done.require().verdict, "OK");
  assert.match((done.output as { answer: string }).answer, /say it again/);
  assert.equal((await jurat.factcheck("2 + 2 = 5", { consensus: HONEST })).verdict, "FALSE");
});

test("an error names its field", async () => {
  const error = await refusal(ApiError, jurat.validate("2 + 2 = 4", { replicas: 4 as 3 }));
  assert.deepEqual([error.status, error.code, error.field], [422, "request_invalid", "consensus.replicas"]);
  assert.ok(error.hint && error.message.includes("consensus.replicas"));
});

test("silence is no agreement", async () => {
  const answer = await jurat.validate("2 + 2 = 4", { consensus: HANGING, timeoutMs: 200 });
  assert.deepEqual([answer.verdict, answer.outcome, answer.confidence], [null, "failed", 0]);
  assert.throws(() => answer.require(), (error) => error instanceof NotAgreed && /hanging-1 says TIMEOUT/.test(error.message));
});

test("a late reply is fetched with the same key", async () => {
  const options = { consensus: HANGING, execution: { timeout_ms: 1500 } };
  const hasty = server.client({ timeoutMs: 100 });
  const error = await refusal(RequestTimeout, hasty.validate("2 + 2 = 4", options));
  const idempotencyKey = error.idempotencyKey!;
  const answer = await jurat.validate("2 + 2 = 4", { ...options, idempotencyKey });
  const opened = (await all(jurat.rounds.list())).filter((it) => it.sessions[0] === "hanging-1");
  assert.equal(opened[0]!.round_id, answer.roundId);
  const mismatch = await refusal(ApiError, jurat.validate("another", { idempotencyKey }));
  assert.equal(mismatch.code, "idempotency_mismatch");
});

test("a call is repeated and done once", async () => {
  const count = (await all(jurat.rounds.list())).length;
  const shaky = await front(server.url, ["busy", "break", "pass"]);
  const answer = await server.client({ url: shaky.url }).validate("3 + 3 = 6", { consensus: HONEST });
  shaky.close();
  assert.equal(answer.verdict, "VALID");
  assert.equal(shaky.keys.length, 3);
  assert.ok(shaky.keys[0] && new Set(shaky.keys).size === 1);
  assert.equal((await all(jurat.rounds.list())).length, count + 1);
});

test("tries come to an end", async () => {
  const busy = await front(server.url, ["busy", "busy", "busy"]);
  const error = await refusal(ApiError, server.client({ url: busy.url, maxRetries: 2 }).me());
  busy.close();
  assert.deepEqual([error.code, busy.keys.length], ["overloaded", 3]);
  const later = await front(server.url, ["busy tomorrow"]);
  const tomorrow = await refusal(ApiError, server.client({ url: later.url }).me());
  later.close();
  assert.deepEqual([tomorrow.retryAfterMs, later.keys.length], [86_400_000, 1]);
  const broken = await front(server.url, ["break"]);
  const client = server.client({ url: broken.url });
  await refusal(ConnectionFailed, client.request("POST", "/v1/tasks", { body: {} }));
  broken.close();
  assert.equal(broken.keys.length, 1);
});

test("a round is streamed", async () => {
  const request = { claim: "2 + 2 = 4", consensus: HONEST };
  const events = await all(jurat.stream("validate", request));
  const replicas = [...Array(3).fill("replica_started"), ...Array(3).fill("replica_done")];
  assert.deepEqual(events.map((it) => it.name), [...replicas, "decided", "final"]);
  const last = events.at(-1)!;
  assert.ok(last.name === "final" && last.answer.require().verdict === "VALID");
  // A stream that breaks goes on with the end of the same round.
  const cut = await front(server.url, ["cut", "pass"]);
  const resumed = await all(server.client({ url: cut.url }).stream("validate", request));
  cut.close();
  assert.equal(new Set(cut.keys).size, 1);
  assert.equal(cut.keys.length, 2);
  const [first, end] = [resumed[0]!, resumed.at(-1)!];
  assert.ok(first.name === "replica_started" && end.name === "final");
  assert.equal(first.data.round_id, end.answer.roundId);
  const unknown = all(jurat.stream("validate", { claim: "x", session_id: "nobody" }));
  assert.equal((await refusal(ApiError, unknown)).code, "session_unknown");
});

test("rounds are started, waited for and cancelled", async () => {
  const quick = await jurat.start("validate", { claim: "2 + 2 = 4", consensus: HONEST });
  assert.equal((await jurat.rounds.wait(quick.round_id)).verdict, "VALID");
  const slow = await jurat.start("validate", { claim: "2 + 2 = 4", consensus: HANGING });
  await refusal(WaitTimeout, jurat.rounds.wait(slow.round_id, 0));
  await jurat.rounds.cancel(slow.round_id);
  assert.equal((await jurat.rounds.wait(slow.round_id, 30_000)).state, "cancelled");
  await jurat.rounds.erase(slow.round_id);
  assert.equal((await jurat.rounds.get(slow.round_id)).asked, null);
});

test("a verifier runs", async () => {
  await jurat.verifiers.deploy({
    name: "names-its-source",
    description: "The answer names its source.",
    criterion: JSON.stringify({ contains: { field: "answer", text: "Source:" } }),
    input_contract: "text",
    input_fields: ["answer"],
    model_settings: { model: "builtin/rules" },
  });
  const run = (answer: string) => jurat.verifiers.run("names-its-source", { answer });
  assert.equal((await run("Source: here.")).passed, true);
  assert.equal((await run("It rains.")).passed, false);
  assert.ok((await all(jurat.verifiers.list())).some((it) => it.name === "names-its-source"));
  assert.equal((await jurat.verifiers.get("names-its-source")).name, "names-its-source");
  assert.equal((await jurat.verifiers.revoke("names-its-source")).revoked, true);
});

test("a task is decided", async () => {
  const sample = await jurat.tasks.sample("task-of-typescript");
  const contract = { ...sample, task_type: "echo", inputs: { prompt: "again" }, output_schema: { type: "object" } };
  const made = await jurat.tasks.submit({ contract, executors: ["one", "two"] });
  assert.equal((await jurat.tasks.wait(made.task_id, 60_000)).state, "finalized");
  assert.equal((await jurat.tasks.decision(made.task_id)).approvals, 1);
  assert.equal((await all(jurat.tasks.events(made.task_id)))[0]!.seq, 1);
  assert.ok((await all(jurat.tasks.list({ state: "finalized" }))).some((it) => it.task_id === made.task_id));
});

test("executors and sessions are administered", async () => {
  assert.equal((await jurat.executors.get("one")).name, "one");
  assert.equal((await jurat.executors.check("one")).capabilities?.provider_family, "one");
  await jurat.sessions.add({ id: "again", executor: "one", labels: ["spare"] });
  assert.equal((await jurat.sessions.get("again")).executor, "one");
  assert.ok((await all(jurat.sessions.list())).some((it) => it.session_id === "again"));
  await jurat.sessions.remove("again");
  // More than a page of the list.
  for (let number = 0; number < 60; number += 1) {
    await jurat.sessions.add({ id: `more-${number}`, executor: "one" });
  }
  const ids = (await all(jurat.sessions.list())).map((it) => it.session_id);
  assert.ok(ids.includes("more-0") && ids.includes("more-59"));
  await jurat.executors.add({ name: "gone", url: "http://127.0.0.1:9", session: false });
  await jurat.executors.remove("gone");
  assert.ok((await all(jurat.executors.list())).every((it) => it.name !== "gone"));
  assert.equal((await jurat.me()).key?.name, "admin");
  assert.equal((await jurat.request<{ status: string }>("GET", "/health")).status, "ok");
});
