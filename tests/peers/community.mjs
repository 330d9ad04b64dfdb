// Runs one of the community's programs in TypeScript from a checkout, and prints a line for each step,
// as community.py does for those in Python.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import path from "node:path";

const world = JSON.parse(process.env.CHECK_WORLD);
const [name, checkout] = process.argv.slice(2);
// Lines of the programs would be taken for steps.
console.info = console.log = console.warn = console.error;

async function step(title, work) {
  let error = null;
  try {
    await work();
  } catch (found) {
    error = `${found.name}: ${found.message}`.slice(0, 400);
  }
  process.stdout.write(`${JSON.stringify({ step: title, error })}\n`);
}

function load(file) {
  return import(pathToFileURL(path.join(checkout, file)).href);
}

async function stored(taskId) {
  const headers = { authorization: `Bearer ${world.key}` };
  const reply = await fetch(`${world.url}/api/v1/tasks/0/${taskId}`, { headers });
  const task = await reply.json();
  assert.equal(task.status, 4, JSON.stringify(task));
  return task;
}

const programs = {
  async "claim-check"() {
    const { runClaimCheck } = await load("apps/cortensor-claim-check/lib/claimCheck.ts");
    for (const [claim, verdict] of [[world.answer, "true"], [world.lie, "false"]]) {
      await step(`check a claim that is ${verdict}`, async () => {
        const seen = await runClaimCheck({ claim });
        assert.equal(seen.verdict, verdict);
        assert.equal(seen.reasoning, world.answer);
        assert.equal(seen.validation.verdict, "normal");
        const task = await stored(seen.task_id);
        assert.deepEqual(seen.miner_votes.map((vote) => vote.miner_id), task.assigned_miners);
        assert.deepEqual(task.assigned_miners.toSorted(), world.agreed);
      });
    }
  },

  async aioracle() {
    const { cortensorService } = await load("apps/Cortensor-AIOracle/src/lib/cortensor.ts");
    const done = async (call) => {
      const reply = await call;
      assert(reply.success, JSON.stringify(reply));
      return reply.data;
    };
    await step("query", async () => {
      const body = await done(cortensorService.submitQuery(world.question));
      assert.equal(body.choices[0].text, world.answer);
      const task = await done(cortensorService.getTaskById(body.task_id));
      assert.deepEqual(task.results.data, Array(3).fill(world.answer));
      assert.deepEqual(task.results.miners, task.assigned_miners);
      const latest = await done(cortensorService.getLatestTask());
      assert.equal(String(latest.task_id), String(body.task_id));
    });
    await step("session and miners", async () => {
      const session = await done(cortensorService.getSessionInfo());
      assert.deepEqual(session.miners, world.agreed);
      assert(JSON.stringify(await done(cortensorService.getMiners())).includes('"liar"'));
    });
  },

  async insightai() {
    const { POST } = await load("apps/insightai/src/app/api/research/route.ts");
    await step("research", async () => {
      const body = JSON.stringify({ query: world.question, mode: "router" });
      const seen = await (await POST(new Request("http://check/", { method: "POST", body }))).json();
      assert.deepEqual([seen.method, seen.isDemo], ["router", false]);
      await stored(seen.taskId);
      // It makes a sentence of it.
      assert.equal(seen.summary, `${world.answer}.`);
    });
  },

  async "agentic-ops-hub"() {
    const { callCortensor } = await load("apps/cortensor-agentic-ops-hub/lib/cortensor.ts");
    await step("call", async () => {
      const { content, evidence } = await callCortensor(world.question, world.agreeing);
      assert.equal(content, world.answer);
      await stored(evidence.rawResponse.task_id);
      assert(0.5 < evidence.confidence && evidence.confidence < 1);
    });
  },

  async sentinel() {
    const { runInference } = await load("apps/backend/src/cortensor/client.ts");
    await step("inference", async () => {
      const body = await runInference(world.question);
      await stored(body.task_id);
      assert.equal(body.text, world.answer);
    });
  },
};

await programs[name]();
