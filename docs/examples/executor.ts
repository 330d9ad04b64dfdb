// An executor in TypeScript without dependencies. Run `node executor.ts 8787` with Node 24 or newer,
// which runs TypeScript as it is, then change `answer` and `judge`.
//
// A second argument is the name of the model, so that copies can be told apart. Port 0 takes a free one.
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo } from "node:net";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Fields = { [name: string]: Json };
type Verdict = true | false | null;

const [port = "8787", model = "my-model-v1"] = process.argv.slice(2);
const CAPABILITIES = {
  task_types: ["*"], // "*" takes any
  profiles: ["default"],
  provider_family: "my-typescript",
  model_id: model,
  policies: ["vp.claim.v1"],
};
const MOST_BYTES = 2 * 1024 * 1024;
const MOST_ANSWERS = 10_000;
const answers = new Map<string, { request: string; answer: Promise<Json> }>();

/** Does the work. What it returns must match `outputSchema`. */
async function answer(taskType: string, inputs: Fields, outputSchema: Json): Promise<Json> {
  if (taskType === "factcheck") {
    const verdict = judge(inputs.claim ?? null);
    return { verdict: verdict === null ? "UNSURE" : verdict ? "TRUE" : "FALSE", confidence: 0.9 };
  }
  return { answer: inputs.prompt ?? "", confidence: 0.9 };
}

/** True, false, or null when it cannot tell. This one knows additions. */
function judge(claim: Json): Verdict {
  const match = /^\s*(\d{1,9})\s*\+\s*(\d{1,9})\s*=\s*(\d{1,10})\s*\.?\s*$/.exec(String(claim));
  return match ? Number(match[1]) + Number(match[2]) === Number(match[3]) : null;
}

class Refused extends Error {
  status: number;
  error: string;

  constructor(status: number, error: string, message: string) {
    super(message);
    this.status = status;
    this.error = error;
  }
}

function sha256(text: string): string {
  return "sha256:" + createHash("sha256").update(text, "utf8").digest("hex");
}

/** RFC 8785: sorted names, no spaces; JavaScript writes numbers as it wants them. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort();
  return `{${members.map((name) => `${JSON.stringify(name)}:${canonical(value[name]!)}`).join(",")}}`;
}

function fields(value: Json | undefined, name: string): Fields {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Refused(422, "request_invalid", `${name} is not an object`);
  }
  return value;
}

function text(value: Json | undefined, name: string): string {
  if (typeof value !== "string") throw new Refused(422, "request_invalid", `${name} is not a text`);
  return value;
}

async function execute(request: Fields): Promise<Json> {
  const id = text(request.execution_id, "execution_id");
  const schema = fields(request.task_contract, "task_contract").output_schema ?? {};
  const said = canonical(request);
  let known = answers.get(id);
  if (!known) {
    // The same execution_id gets the same answer; whoever asks again meanwhile waits for it.
    const work = answer(text(request.task_type, "task_type"), fields(request.inputs, "inputs"), schema);
    known = { request: said, answer: work };
    answers.set(id, known);
    // A failure is not remembered, so that it can be tried again.
    work.catch(() => answers.delete(id));
  }
  if (known.request !== said) {
    throw new Refused(409, "execution_id_reused", "execution_id was used with another request");
  }
  for (const oldest of answers.keys()) {
    if (answers.size <= MOST_ANSWERS) break;
    answers.delete(oldest);
  }
  return { candidate_output: await known.answer, evidence_inline: [], evidence_refs: [] };
}

async function verify(request: Fields): Promise<Json> {
  const candidate = fields(request.candidate, "candidate");
  const policy = fields(request.policy, "policy");
  const policyId = text(policy.policy_id, "policy_id");
  if (policy.policy_hash !== sha256(policyId + canonical(policy.policy_params ?? {}))) {
    throw new Refused(400, "policy_invalid", "policy binding invalid: policy_hash does not match");
  }
  let verdict: Verdict;
  if (policyId === "vp.claim.v1") {
    verdict = judge(candidate.output ?? null);
  } else if (policyId === "vp.schema_only.v1" && canonical(request.output_schema ?? null) === "{}") {
    verdict = true; // an empty schema matches everything
  } else {
    // The kernel then says NEEDS_SPEC: better than a verdict that nobody computed.
    throw new Refused(422, "policy_unsupported", `${policyId} is not evaluated here with this schema`);
  }
  const result: Fields = {
    candidate_id: text(candidate.candidate_id, "candidate_id"),
    execution_id: text(candidate.execution_id, "execution_id"),
    passed: verdict === true,
    score: verdict === null ? 0.5 : 0.9, // confidence in the verdict
    reason_codes: verdict === null ? [1021] : verdict ? [] : [1020],
    provider_family: CAPABILITIES.provider_family,
    model_id: CAPABILITIES.model_id,
    policy_hash: policy.policy_hash, // as received
  };
  const status = verdict === null ? "inconclusive" : verdict ? "passed" : "failed";
  return { ...result, verification_status: status, verifier_result_hash: sha256(canonical(result)) };
}

async function body(request: IncomingMessage): Promise<Fields> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MOST_BYTES) throw new Refused(413, "payload_too_large", "at most 2 MiB");
    parts.push(part);
  }
  try {
    return fields(JSON.parse(Buffer.concat(parts).toString("utf8")), "the request");
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused(400, "invalid_json", String(error));
  }
}

async function handle(request: IncomingMessage): Promise<Json> {
  switch (`${request.method} ${request.url}`) {
    case "GET /health":
      return { status: "ok" };
    case "GET /capabilities":
      return CAPABILITIES;
    case "POST /execute":
      return execute(await body(request));
    case "POST /verify":
      return verify(await body(request));
    default:
      throw new Refused(404, "not_found", "GET /health or /capabilities, POST /execute or /verify");
  }
}

const server = createServer(async (request, response) => {
  let status = 200;
  let reply: Json;
  try {
    reply = await handle(request);
  } catch (error) {
    const refused = error instanceof Refused ? error : new Refused(500, "internal_error", String(error));
    status = refused.status;
    reply = { error: refused.error, message: refused.message };
  }
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(reply));
});
server.listen(Number(port), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
