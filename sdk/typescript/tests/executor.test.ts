// The endpoints of an executor, asked directly and by a node.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

import { executor, ExecutorError } from "jurat/executor";

import { honest, TestServer } from "./world.ts";

function execution(changes: object = {}): string {
  return JSON.stringify({
    task_id: "t", execution_id: "e-1", task_type: "delegate", profile: "default", attempt_id: "1",
    inputs: { prompt: "hello" }, task_contract: { output_schema: {} }, stage: "explore", ...changes,
  });
}

function verification(policyId = "vp.claim.v1"): string {
  const hash = createHash("sha256").update(`${policyId}{}`).digest("hex");
  return JSON.stringify({
    candidate: { candidate_id: "c", execution_id: "e", output: "2 + 2 = 4" },
    output_schema: {},
    policy: { policy_id: policyId, policy_params: {}, policy_hash: `sha256:${hash}` },
  });
}

async function post(url: string, body: string, headers: Record<string, string> = {}) {
  const reply = await fetch(url, { method: "POST", body, headers });
  return { status: reply.status, body: (await reply.json()) as any };
}

test("the same execution is done once", async () => {
  let calls = 0;
  let started = () => {};
  let end = () => {};
  const isStarted = new Promise<void>((resolve) => (started = resolve));
  const mayEnd = new Promise<void>((resolve) => (end = resolve));
  const running = await executor({
    execute: async () => {
      calls += 1;
      started();
      await mayEnd;
      return { n: calls };
    },
  }).listen(0);
  const first = post(`${running.url}/execute`, execution());
  await isStarted;
  // A repeat may have another number, and nothing else.
  const second = post(`${running.url}/execute`, execution({ attempt_id: "2" }));
  end();
  assert.deepEqual((await first).body.candidate_output, { n: 1 });
  assert.deepEqual(await second, await first);
  const other = await post(`${running.url}/execute`, execution({ inputs: { prompt: "bye" } }));
  assert.deepEqual([other.status, other.body.error, calls], [409, "execution_id_reused", 1]);
  await running.close();
});

test("a failure is forgotten and is no verdict", async (context) => {
  context.mock.method(console, "error", () => undefined);
  const failures = [new Error("secret"), new ExecutorError(502, "upstream_failed", "no model")];
  const running = await executor({
    execute: () => {
      const failure = failures.shift();
      if (failure) throw failure;
      return "done";
    },
  }).listen(0);
  const first = await post(`${running.url}/execute`, execution());
  assert.deepEqual([first.status, first.body], [500, { error: "executor_failed", message: "Error" }]);
  assert.equal((await post(`${running.url}/execute`, execution())).body.error, "upstream_failed");
  assert.equal((await post(`${running.url}/execute`, execution())).body.candidate_output, "done");
  await running.close();
});

test("bad requests are refused by name", async () => {
  const running = await executor(honest("strict")).listen(0);
  assert.deepEqual(await (await fetch(`${running.url}/health`)).json(), { status: "ok" });
  const cases: [string, string, number, string][] = [
    ["/execute", "{", 400, "invalid_json"],
    ["/execute", "[]", 422, "request_invalid"],
    ["/execute", execution({ inputs: 1 }), 422, "request_invalid"],
    ["/execute", execution({ task_type: "x" }), 422, "task_type_unsupported"],
    ["/verify", verification("vp.other.v1"), 422, "policy_unsupported"],
    ["/verify", verification().replace("sha256:", "sha256:00"), 400, "policy_invalid"],
    ["/nothing", "{}", 404, "not_found"],
    ["/execute", " ".repeat(2 * 1024 * 1024 + 1), 413, "payload_too_large"],
  ];
  for (const [path, body, status, error] of cases) {
    const reply = await post(running.url + path, body);
    assert.deepEqual([reply.status, reply.body.error], [status, error], path);
  }
  await running.close();
});

test("a judge says what it knows", async (context) => {
  context.mock.method(console, "error", () => undefined);
  const said = [true, false, null, { passed: false, score: 0.7, reasonCodes: [1020, 7] }, "yes"];
  const judge = async () => said.shift() as boolean;
  const running = await executor({ execute: () => null, judge }).listen(0);
  const replies = [];
  for (let n = 0; n < 5; n += 1) replies.push(await post(`${running.url}/verify`, verification()));
  const bodies = replies.map((it) => it.body);
  assert.deepEqual(
    bodies.map((it) => it.verification_status),
    ["passed", "failed", "inconclusive", "failed", undefined],
  );
  assert.deepEqual(bodies[3].reason_codes, [1020, 7]);
  assert.equal(replies[4]!.status, 500);
  await running.close();
});

test("a token and a signature are asked for", async () => {
  const server = await TestServer.start();
  const args = ["--state-dir", join(server.folder, "state"), "node", "--json"];
  const node = JSON.parse(execFileSync(process.env["JURAT_PROGRAM"]!, args, { encoding: "utf8" }));
  const known = await executor(honest("known", { nodeKeys: [node.public_key] })).listen(0);
  const strange = await executor(honest("strange", { nodeKeys: ["00".repeat(32)] })).listen(0);
  const secret = await executor(honest("secret", { token: "s3cret" })).listen(0);
  try {
    const jurat = server.client();
    await jurat.executors.add({ name: "known", url: known.url });
    await jurat.executors.add({ name: "strange", url: strange.url });
    const ask = (session: string) => jurat.validate("2 + 2 = 4", { consensus: { session_pool: [session], spares: 0 } });
    assert.equal((await ask("known")).verdict, "VALID");
    assert.equal((await ask("strange")).replicas[0]!.error?.code, "http_status");
    assert.equal((await post(`${known.url}/verify`, verification())).status, 401);
    assert.equal((await post(`${secret.url}/verify`, verification())).status, 401);
    const headers = { Authorization: "Bearer s3cret" };
    assert.equal((await post(`${secret.url}/verify`, verification(), headers)).status, 200);
  } finally {
    await Promise.all([known, strange, secret].map((it) => it.close()));
    await server.stop();
  }
});
