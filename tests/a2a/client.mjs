// Calls every method of the Agent2Agent protocol with the client of its JavaScript SDK, over JSON-RPC and
// over HTTP with JSON. `clients.py` starts the server, and passes its URL, the key of its operator and
// the version of the SDK.

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { parseArgs } from "node:util";

import {
  SendMessageRequest, StreamResponse, TaskState, verifyAgentCardSignature,
} from "@a2a-js/sdk";
import {
  ClientFactory, createAuthenticatingFetchWithRetry, DefaultAgentCardResolver, JsonRpcTransportFactory,
  RestTransportFactory, TenantTransportDecorator,
} from "@a2a-js/sdk/client";
import {
  A2AError, ContentTypeNotSupportedError, RequestMalformedError, TaskNotCancelableError,
  TaskNotFoundError, UnsupportedOperationError,
} from "@a2a-js/sdk/errors";

const BINDINGS = { "JSONRPC": JsonRpcTransportFactory, "HTTP+JSON": RestTransportFactory };
const UNKNOWN = "rnd_01ARZ3NDEKTSV4RRFFQ69G5FAV";
const PATIENCE_MS = 30_000;

const { url, key, version } = parseArgs({
  options: { url: { type: "string" }, key: { type: "string" }, version: { type: "string" } },
}).values;

/** The methods of every transport of the SDK, as one of them has them. */
const methods = Object.entries(Object.getOwnPropertyDescriptors(TenantTransportDecorator.prototype))
  .filter(([name, it]) => typeof it.value === "function" && !/^(_|constructor$)/.test(name))
  .map(([name]) => name)
  .sort();
/** The calls of each binding, by the name of the method. */
const called = Object.fromEntries(Object.keys(BINDINGS).map((binding) => [binding, []]));

/** Fails if what is waited for does not happen. */
async function within(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing came in ${PATIENCE_MS} ms`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Sends a key with every request. */
function keyed(key) {
  return createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ Authorization: `Bearer ${key}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
}

/** A factory of transports that notes what is called. */
function counting(binding, fetchImpl) {
  const inner = new BINDINGS[binding]({ fetchImpl });
  const noted = (target, name) => {
    const found = Reflect.get(target, name, target);
    if (typeof found !== "function") return found;
    return (...given) => {
      called[binding].push(name);
      return found.apply(target, given);
    };
  };
  return {
    protocolName: binding,
    create: async (at, card) => new Proxy(await inner.create(at, card), { get: noted }),
  };
}

async function client(binding, fetchImpl = keyed(key)) {
  const made = await new ClientFactory({ transports: [counting(binding, fetchImpl)] }).createFromUrl(url);
  assert.equal(made.transport.protocolName, binding);
  return made;
}

/** A request to send a message with one part. */
function message(part, more = {}, configuration = undefined) {
  const body = { messageId: randomUUID(), role: "ROLE_USER", parts: [part], ...more };
  return SendMessageRequest.fromJSON({ message: body, configuration });
}

function hanging(configuration = undefined) {
  const data = { skill: "delegate", objective: "x", session_id: "hanging", policy: { task_type: "hang" } };
  return message({ data }, {}, configuration);
}

/** The value of the part of an artifact that has this kind of content. */
function part(task, artifactId, kind) {
  const artifact = task.artifacts.find((it) => it.artifactId === artifactId);
  return artifact.parts.find((it) => it.content.$case === kind).content.value;
}

/** The error of a call, which is one of these errors of the SDK. */
async function refused(kind, call) {
  const error = await call.then(() => assert.fail(`${kind.name} was expected`), (error) => error);
  assert.ok(error instanceof kind, `${kind.name} was expected: ${error.stack}`);
  return error;
}

/** What the server says about an error for programs. Either binding has its own place for it. */
const told = (error) => error.metadata ?? error.data.find((it) => it.reason).metadata;

/** All events of a stream, each as the name of its kind with its value. */
async function events(stream) {
  const found = [];
  for await (const { payload } of stream) found.push([payload.$case, payload.value]);
  return found;
}

/** The open card and the extended one are signed with the key that their signatures name. */
async function cards(client) {
  const bare = new DefaultAgentCardResolver();
  const open = await bare.resolve(url);
  assert.deepEqual(await bare.resolve(url, ".well-known/agent.json"), open);
  const extended = await client.getAgentCard();
  const skills = ["delegate", "validate", "factcheck", "run-verifier"];
  assert.deepEqual(open.skills.map((skill) => skill.id), skills);
  assert.deepEqual(extended.skills.map((skill) => skill.id), [...skills, "run-verifier:sourced"]);

  const verify = verifyAgentCardSignature(async (kid) => {
    return { kty: "OKP", crv: "Ed25519", x: Buffer.from(kid, "hex").toString("base64url") };
  });
  // The SDK says on the console which signature does not hold.
  const { debug } = console;
  console.debug = () => {};
  for (const path of ["/.well-known/agent-card.json", "/a2a/v1/extendedAgentCard"]) {
    // The SDK forgets the security schemes of a card that it has read, so it gets the card as JSON.
    const json = await (await keyed(key)(url + path, { headers: { "A2A-Version": "1.0" } })).json();
    await verify(json);
    await assert.rejects(verify({ ...json, name: "Somebody else" }), /No valid signatures/);
  }
  console.debug = debug;
}

/** Each skill, and the task that it leaves. */
async function skills(client) {
  const three = { consensus: { replicas: 3, session_pool: ["alpha", "beta", "gamma"] } };
  for (const [asked, answer] of [
    [{ skill: "delegate", objective: "say it again", input: { n: 7 }, ...three }, /say it again/],
    [{ skill: "validate", claim: "12 * 12 = 144", ...three }, /^VALID$/],
    [{ skill: "factcheck", claim: "12 * 12 = 144", ...three }, /^TRUE$/],
    [{ skill: "run-verifier", verifier: "sourced", inputs: { answer: "Source: x" } }, /^VALID$/],
  ]) {
    const sent = message({ data: asked });
    const task = await client.sendMessage(sent);
    assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
    const reply = part(task, "answer", "data");
    assert.equal(reply.consensus.outcome, "agreed");
    assert.equal(reply.passed, asked.verifier && true);
    assert.match(part(task, "answer", "text"), answer);
    const entry = part(task, "decision", "raw");
    assert.equal(JSON.parse(entry).round_id, task.id);
    assert.equal(`sha256:${createHash("sha256").update(entry).digest("hex")}`, reply.receipt_id);
    const { id: taskId, contextId } = task;
    assert.deepEqual(task.history, [{ ...sent.message, taskId, contextId }]);
    assert.deepEqual(await client.getTask({ id: task.id, tenant: "" }), task);
  }
  const body = message({ text: "2 + 2" }, { metadata: { skill: "delegate" } });
  const task = await client.sendMessage(body);
  const { id: taskId, contextId } = task;
  assert.deepEqual(task.history, [{ ...body.message, taskId, contextId }]);
  const again = await client.sendMessage(body);
  assert.equal(again.id, task.id, "the same message is the same task");
  assert.deepEqual(await client.getTask({ id: task.id, tenant: "" }), task);
  const bare = { ...task, history: [] };
  assert.deepEqual(await client.getTask({ id: task.id, tenant: "", historyLength: 0 }), bare);
  assert.deepEqual(await client.sendMessage({ ...body, configuration: { historyLength: 0 } }), bare);
  return task;
}

/** Two tasks in a context that the first began, or that the client made up, and the pages of both. */
async function lists(client, first) {
  const { contextId } = first;
  const second = await client.sendMessage(message({ text: "3 + 3" }, { contextId }));
  assert.equal(second.contextId, contextId);
  const list = (asked) => client.listTasks({ tenant: "", contextId: "", pageToken: "", status: 0, ...asked });
  const ids = (page) => page.tasks.map((task) => task.id);
  const inContext = { contextId };
  const both = await list(inContext);
  assert.deepEqual(ids(both), [second.id, first.id]);
  assert.deepEqual([both.totalSize, both.nextPageToken, both.tasks[0].artifacts], [2, "", []]);
  const newest = await list({ ...inContext, pageSize: 1, includeArtifacts: true, historyLength: 0 });
  assert.deepEqual(newest.tasks, [{ ...second, history: [] }]);
  const rest = await list({ ...inContext, pageSize: 1, pageToken: newest.nextPageToken });
  assert.deepEqual([ids(rest), rest.nextPageToken], [[first.id], ""]);
  const later = new Date(Date.parse(second.status.timestamp) + 1).toISOString();
  const none = [
    await list({ ...inContext, status: TaskState.TASK_STATE_CANCELED }),
    await list({ ...inContext, statusTimestampAfter: later }),
  ];
  assert.deepEqual(none.map(ids), [[], []]);
}

/** A streamed message, and a task that two callers follow until a third cancels it. */
async function streams(client) {
  const whole = await events(client.sendMessageStream(message({ text: "4 + 4" })));
  assert.deepEqual(whole.map(([kind]) => kind), ["task", "artifactUpdate", "artifactUpdate", "statusUpdate"]);
  const [[, task], ...updates] = whole;
  assert.ok(updates.every(([, it]) => it.taskId === task.id && it.contextId === task.contextId));
  assert.equal(updates.at(-1)[1].status.state, TaskState.TASK_STATE_COMPLETED);
  const shown = await client.getTask({ id: task.id, tenant: "" });
  assert.deepEqual(updates.slice(0, -1).map(([, it]) => it.artifact), shown.artifacts);
  assert.deepEqual(updates.at(-1)[1].status, shown.status);

  // Who stops reading leaves the task alone.
  let waiting;
  for await (const { payload } of client.sendMessageStream(hanging())) {
    waiting = payload.value;
    break;
  }
  assert.equal(waiting.status.state, TaskState.TASK_STATE_WORKING);
  const followed = [1, 2].map(() => client.resubscribeTask({ id: waiting.id, tenant: "" }));
  for (const stream of followed) {
    const { value } = await within("the first event", stream.next());
    assert.deepEqual([value.payload.$case, value.payload.value], ["task", waiting]);
  }
  const cancelled = await client.cancelTask({ id: waiting.id, tenant: "", metadata: undefined });
  assert.equal(cancelled.status.state, TaskState.TASK_STATE_CANCELED);
  const [one, other] = await within("the end of the task", Promise.all(followed.map(events)));
  assert.deepEqual(one, other);
  assert.deepEqual(one.at(-1)[1].status, cancelled.status);

  const begun = await client.sendMessage(hanging({ returnImmediately: true }));
  assert.equal(begun.status.state, TaskState.TASK_STATE_WORKING);
  await client.cancelTask({ id: begun.id, tenant: "", metadata: undefined });
}

/** Receives push notifications. */
class Receiver {
  #came = [];
  #wanted = [];

  async begin() {
    this.server = createServer(async (request, response) => {
      let text = "";
      for await (const piece of request) text += piece;
      response.writeHead(204).end();
      const news = { headers: request.headers, body: JSON.parse(text) };
      const wanted = this.#wanted.shift();
      if (wanted) wanted(news);
      else this.#came.push(news);
    });
    await once(this.server.listen(0, "127.0.0.1"), "listening");
    this.url = `http://127.0.0.1:${this.server.address().port}/news`;
    return this;
  }

  next() {
    const came = this.#came.shift();
    const news = came ?? new Promise((resolve) => this.#wanted.push(resolve));
    return within("a push notification", Promise.resolve(news));
  }
}

/** A task that begins with a push notification, and the methods for others. */
async function pushes(client, receiver) {
  const mine = {
    id: "mine", url: receiver.url, token: "sesame",
    authentication: { scheme: "Bearer", credentials: "xyzzy" },
  };
  const sent = message({ text: "Say hello." }, {}, { taskPushNotificationConfig: mine });
  const task = await client.sendMessage(sent);
  const { headers, body } = await receiver.next();
  assert.equal(headers["x-a2a-notification-token"], "sesame");
  assert.equal(headers.authorization, "Bearer xyzzy");
  assert.match(headers["content-type"], /^application\/a2a\+json/);
  const { payload } = StreamResponse.fromJSON(body);
  assert.equal(payload.$case, "statusUpdate");
  assert.deepEqual([payload.value.taskId, payload.value.contextId], [task.id, task.contextId]);
  assert.equal(payload.value.status.state, TaskState.TASK_STATE_COMPLETED);
  assert.equal(payload.value.metadata.receipt_id, part(task, "answer", "data").receipt_id);

  const of = { tenant: "", taskId: task.id };
  const asked = { ...of, pageSize: 0, pageToken: "" };
  const shown = await client.getTaskPushNotificationConfig({ ...of, id: "mine" });
  const authentication = { scheme: "Bearer", credentials: "" };
  assert.deepEqual([shown.url, shown.token, shown.authentication], [receiver.url, "", authentication]);
  const other = { ...of, id: "other", url: receiver.url, token: "", authentication: undefined };
  const made = await client.createTaskPushNotificationConfig(other);
  assert.deepEqual([made.id, made.taskId, made.url], ["other", task.id, receiver.url]);
  assert.equal((await receiver.next()).body.statusUpdate.taskId, task.id);
  const list = async () => (await client.listTaskPushNotificationConfig(asked)).configs.map((it) => it.id);
  assert.deepEqual(await list(), ["mine", "other"]);
  for (const id of ["mine", "other", "other"]) {
    await client.deleteTaskPushNotificationConfig({ ...of, id });
  }
  assert.deepEqual(await list(), []);
}

/** Errors arrive as the errors of the SDK, and say the code and the field. */
async function refusals(client, done) {
  const unknown = { id: UNKNOWN, tenant: "" };
  const ended = { id: done.id, tenant: "" };
  const push = {
    tenant: "", taskId: done.id, id: "", url: "https://10.0.0.1/news", token: "", authentication: undefined,
  };
  const ask = (part, more) => client.sendMessage(message(part, more));
  for (const [kind, code, field, call] of [
    [TaskNotFoundError, "not_found", undefined, () => client.getTask(unknown)],
    [TaskNotFoundError, "not_found", undefined, () => client.cancelTask(unknown)],
    [TaskNotFoundError, "not_found", undefined, () => ask({ text: "x" }, { taskId: UNKNOWN })],
    // The protocol has no other error for an unknown configuration.
    [TaskNotFoundError, "not_found", undefined,
      () => client.getTaskPushNotificationConfig({ ...ended, taskId: done.id, id: "unknown" })],
    [TaskNotCancelableError, "conflict", undefined, () => client.cancelTask(ended)],
    [UnsupportedOperationError, "not_supported", "id", () => events(client.resubscribeTask(ended))],
    [UnsupportedOperationError, "not_supported", "message.taskId",
      () => ask({ text: "x" }, { taskId: done.id })],
    [ContentTypeNotSupportedError, "unsupported_media_type", "message.parts.0.mediaType",
      () => ask({ url: "https://example.com/x" })],
    [RequestMalformedError, "request_invalid", "replicas",
      () => ask({ data: { skill: "validate", claim: "x", replicas: 3 } })],
    [RequestMalformedError, "validation_error", "message.contextId",
      () => ask({ text: "x" }, { contextId: "x".repeat(201) })],
    [RequestMalformedError, "validation_error", "url", () => client.createTaskPushNotificationConfig(push)],
  ]) {
    const found = told(await refused(kind, call()));
    assert.deepEqual([found.code, found.field], [code, field]);
  }
}

/** A wrong key is refused, also for a stream; the open card needs none. */
async function strangers(binding) {
  const stranger = await client(binding, keyed("jk_wrong"));
  for (const call of [
    () => stranger.getAgentCard(),
    () => stranger.sendMessage(message({ text: "x" })),
    () => events(stranger.sendMessageStream(message({ text: "x" }))),
  ]) {
    const error = await refused(A2AError, call());
    assert.equal(error.message, "the key is not valid");
    assert.ok(error.statusCode === 401 || told(error).code === "auth_required", error.stack);
  }
  // The SDK sends a request again with another key if the first is refused.
  const retrying = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ Authorization: "Bearer jk_wrong" }),
    shouldRetryWithHeaders: async (_, { status, headers }) => {
      if (status !== 401) return undefined;
      assert.match(headers.get("WWW-Authenticate") ?? "", /^Bearer/);
      return { Authorization: `Bearer ${key}` };
    },
  });
  await (await client(binding, retrying)).getAgentCard();
}

const receiver = await new Receiver().begin();
for (const binding of Object.keys(BINDINGS)) {
  const caller = await client(binding);
  await cards(caller);
  const done = await skills(caller);
  await lists(caller, done);
  const own = { contextId: `client: ${randomUUID()}` };
  await lists(caller, await caller.sendMessage(message({ text: "2 + 2" }, own)));
  await streams(caller);
  await pushes(caller, receiver);
  await refusals(caller, done);
  await strangers(binding);
  assert.deepEqual([...new Set(called[binding])].sort(), methods);
}
receiver.server.close();
const [calls, bindings] = [Object.values(called).flat().length, Object.keys(BINDINGS).length];
console.log(`a2a-js ${version}: ${calls} calls of ${methods.length} methods over ${bindings} bindings hold`);
