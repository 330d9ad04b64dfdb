// Runs a round with the types that openapi-typescript has made of the document.
//
// Usage: node client.ts URL KEY

import createClient from "openapi-fetch";

import type { components, paths } from "./schema.ts";

function check(isRight: boolean, value: unknown): asserts isRight {
  if (!isRight) throw new Error(`unexpected: ${JSON.stringify(value)}`);
}

const [url, key] = process.argv.slice(2);
check(url !== undefined && key !== undefined, process.argv);

const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${key}` } });

const claim: components["schemas"]["ValidateRequest"] = {
  claim: "12 * 12 = 144",
  consensus: { replicas: 3 },
};
const judged = await client.POST("/api/v3/validate", { body: claim });
const verdict = judged.data;
// The same status may be an event stream, which is a text, or an open round.
check(typeof verdict === "object" && "replicas" in verdict, judged.error ?? verdict);
check(verdict.verdict === "VALID" && verdict.replicas?.length === 3, verdict);

const params = { path: { id: verdict.round_id } };
const { data: round } = await client.GET("/v1/rounds/{id}", { params });
check(round?.state === "closed" && round.receipt_id === verdict.receipt_id, round);

const { error, response } = await client.GET("/v1/rounds/{id}", {
  params: { path: { id: "rnd_00000000000000000000000000" } },
});
check(response.status === 404 && error?.code === "not_found", error);

console.log("the TypeScript client ran a round");
