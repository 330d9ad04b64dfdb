// Lists the tools with both TypeScript SDKs, has a claim judged and reads its round. Run by clients.py.

import assert from "node:assert/strict";
import * as client from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const reach = JSON.parse(process.argv[2]);
const info = { name: "check", version: "1" };
const negotiate = (mode) => ({ versionNegotiation: { mode } });
const OLD = "2025-11-25";
const NEW = "2026-07-28";
const clients = [
  { make: () => new Client(info), http: OldHttp, stdio: OldStdio, era: OLD },
  ...[["legacy", OLD], ["auto", NEW]].map(([mode, era]) => ({
    make: () => new client.Client(info, negotiate(mode)),
    http: client.StreamableHTTPClientTransport,
    stdio: StdioClientTransport,
    era,
  })),
];

async function talk(to, { make, http, stdio, era }) {
  const transport =
    to.type === "http"
      ? new http(new URL(to.url), { requestInit: { headers: to.headers } })
      : new stdio({ ...to, stderr: "ignore" });
  // Every client tells its transport which revision was negotiated.
  let spoken;
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    spoken = version;
    tell?.(version);
  };
  const connected = make();
  await connected.connect(transport);
  spoken = connected.getNegotiatedProtocolVersion?.() ?? spoken;
  assert.equal(spoken, era);
  const { tools } = await connected.listTools();
  const names = new Set(tools.map((tool) => tool.name));
  for (const name of ["delegate", "validate", "factcheck", "get_round"]) assert(names.has(name), name);
  const claim = "12 * 12 = 144";
  const arguments_ = { claim, consensus: { replicas: 3 } };
  // The client checks the structured content against the schema that was listed.
  const judged = await connected.callTool({ name: "validate", arguments: arguments_ });
  const body = judged.structuredContent;
  assert.equal(body.verdict, "VALID");
  assert.equal(body.consensus.answered, 3);
  const read = await connected.callTool({ name: "get_round", arguments: { round_id: body.round_id } });
  assert.equal(read.structuredContent.request.claim, claim);
  const refused = await connected.callTool({ name: "get_round", arguments: { round_id: "rnd_nobody" } });
  assert(refused.isError);
  assert.equal(refused.structuredContent.code, "not_found");
  await connected.close();
}

let count = 0;
for (const to of Object.values(reach)) {
  for (const which of clients) {
    await talk(to, which);
    count += 1;
  }
}
console.log(`${count} conversations`);
