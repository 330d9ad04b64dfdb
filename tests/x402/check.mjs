// Real payments: the official clients pay a server of ours through the official facilitator on a chain of
// its own, and balances move by exactly the price. Run by scripts/x402-check.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { createWalletClient, http, publicActions } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";
import { wrapFetchWithPayment as wrapFetchV1 } from "x402-fetch";
import { ASSET, freePort, startChain, startFacilitator, until } from "./chain.mjs";

const PRICE = 1000n;
const PAY_TO = privateKeyToAccount(generatePrivateKey()).address;
const FUNDS = 100_000n;
const program = process.argv[2];
const python = process.argv[3];
const children = [];
const folder = mkdtempSync(join(tmpdir(), "x402-"));
const here = new URL(".", import.meta.url).pathname;

let held = 0;

function check(is, what) {
  if (!is) throw new Error(`failed: ${what}`);
  held += 1;
  console.log(`ok: ${what}`);
}

const same = (found, expected, what) =>
  check(found === expected, found === expected ? what : `${what}: ${found} instead of ${expected}`);

// An executor that finds everything valid.
async function startExecutor() {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const replies = {
        "/health": { status: "ok" },
        "/capabilities": { task_types: ["*"], profiles: ["*"], provider_family: "check", model_id: "check", policies: ["vp.claim.v1"] },
        "/verify": { passed: true, score: 1.0, reason_codes: [] },
      };
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(replies[request.url] ?? {}));
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${server.address().port}` };
}

async function startServer(chain, facilitator, executors) {
  const listen = `127.0.0.1:${await freePort()}`;
  const env = {
    ...process.env,
    JURAT_STATE_DIR: folder,
    JURAT_LISTEN: listen,
    JURAT_LIMITS_LAG_MS: "0",
    JURAT_X402_PAY_TO: PAY_TO,
    JURAT_X402_NETWORK: "base-sepolia",
    JURAT_X402_FACILITATOR_URL: facilitator.url,
    JURAT_X402_RPC_URL: chain.url,
    JURAT_X402_PRICE_PER_REPLICA: String(PRICE),
  };
  children.push(spawn(program, ["serve"], { env, cwd: folder, stdio: "ignore" }));
  const url = `http://${listen}`;
  await until("the start of the server", () => fetch(`${url}/health`).then((it) => it.ok));
  const key = readFileSync(join(folder, "admin.key"), "utf8").trim();
  for (const [index, executor] of executors.entries()) {
    const reply = await fetch(`${url}/v1/executors`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ name: `e${index}`, url: executor.url }),
    });
    check(reply.status === 201, `executor ${index} is registered`);
  }
  return `${url}/api/v3/x402/validate`;
}

const body = (replicas = 3) => JSON.stringify({ claim: "12 * 12 = 144", consensus: { replicas } });
const asked = (more = {}, replicas = 3) => ({
  method: "POST", body: body(replicas), headers: { "content-type": "application/json", ...more },
});
const decoded = (reply, name) => JSON.parse(Buffer.from(reply.headers.get(name), "base64").toString());

async function payer(chain, funds = FUNDS) {
  const key = generatePrivateKey();
  const account = privateKeyToAccount(key);
  if (funds) await chain.mint(account.address, funds);
  return { key, account, address: account.address };
}

// Sees that exactly the price moved, in a transaction that is on the chain.
async function moved(chain, who, receipt, amount, what) {
  same(await chain.balance(who.address), FUNDS - amount, `${what}: the payer paid ${amount}`);
  const found = await chain.client.getTransactionReceipt({ hash: receipt.transaction });
  same(found.status, "success", `${what}: the transaction of the receipt is on the chain`);
}

function clientV2(who) {
  const client = new x402Client();
  client.register("eip155:*", new ExactEvmScheme(who.account));
  return client;
}

// A payment of our own making, for what no client would send.
async function signed(who, change = {}, domain = {}) {
  const now = Math.floor(Date.now() / 1000);
  const authorization = {
    from: who.address, to: PAY_TO, value: "3000", validAfter: "0", validBefore: String(now + 300),
    nonce: `0x${randomBytes(32).toString("hex")}`, ...change,
  };
  const signature = await who.account.signTypedData({
    domain: { name: "USDC", version: "2", chainId: 84532, verifyingContract: ASSET, ...domain },
    types: { TransferWithAuthorization: [
      { name: "from", type: "address" }, { name: "to", type: "address" }, { name: "value", type: "uint256" },
      { name: "validAfter", type: "uint256" }, { name: "validBefore", type: "uint256" }, { name: "nonce", type: "bytes32" },
    ] },
    primaryType: "TransferWithAuthorization",
    message: authorization,
  });
  const accepted = {
    scheme: "exact", network: "eip155:84532", asset: ASSET, payTo: PAY_TO, amount: "3000",
    maxTimeoutSeconds: 300, extra: { name: "USDC", version: "2" },
  };
  const payment = { x402Version: 2, accepted, payload: { signature, authorization } };
  return Buffer.from(JSON.stringify(payment)).toString("base64");
}

async function official(chain, url) {
  const second = await payer(chain);
  const paid = await wrapFetchWithPayment(fetch, clientV2(second))(url, asked());
  const reply = await paid.json();
  same(paid.status, 200, `TypeScript, version 2: the client pays and gets the reply ${reply.detail ?? ""}`);
  same(reply.verdict, "VALID", "TypeScript, version 2: the reply has a verdict");
  await moved(chain, second, decoded(paid, "payment-response"), 3n * PRICE, "TypeScript, version 2");

  const first = await payer(chain);
  const wallet = createWalletClient({ account: first.account, chain: baseSepolia, transport: http(chain.url) }).extend(publicActions);
  const old = await wrapFetchV1(fetch, wallet)(url, asked({}, 1));
  same(old.status, 200, "TypeScript, version 1: the client pays and gets the reply");
  await moved(chain, first, decoded(old, "x-payment-response"), PRICE, "TypeScript, version 1");

  const third = await payer(chain);
  const { stdout } = await promisify(execFile)(python, [join(here, "pay.py"), url, third.key, body()]);
  const told = JSON.parse(stdout);
  same(told.status, 200, "Python: the client pays and gets the reply");
  await moved(chain, third, told.receipt, 3n * PRICE, "Python");
}

async function hostile(chain, facilitator, url) {
  const who = await payer(chain);
  const pay = (header) => fetch(url, asked({ "PAYMENT-SIGNATURE": header }));
  const header = await signed(who);
  const replies = await Promise.all(Array.from({ length: 10 }, () => pay(header)));
  check(replies.every((it) => it.status === 200), "ten concurrent uses of one payment get the reply");
  const texts = new Set(await Promise.all(replies.map((it) => it.text())));
  same(texts.size, 1, "it is the same reply");
  same(await chain.balance(who.address), FUNDS - 3000n, "it was paid once");
  const now = Math.floor(Date.now() / 1000);
  const cases = [
    ["a payment with one unit too little", await signed(who, { value: "2999" })],
    ["a payment with one unit too much", await signed(who, { value: "3001" })],
    ["a payment to another address", await signed(who, { to: who.address })],
    ["an expired payment", await signed(who, { validBefore: String(now - 1) })],
    ["a payment that is not yet valid", await signed(who, { validAfter: String(now + 100) })],
    ["a payment signed for another chain", await signed(who, {}, { chainId: 1 })],
    ["a payment from an empty wallet", await signed(await payer(chain, 0n))],
  ];
  for (const [what, payment] of cases) same((await pay(payment)).status, 402, `${what} is refused`);
  same(await chain.balance(who.address), FUNDS - 3000n, "none of them moved anything");

  facilitator.state.afterSettling = 500;
  const lost = await signed(who);
  same((await pay(lost)).status, 200, "a settlement that the facilitator forgets is found on the chain");
  same(await chain.balance(who.address), FUNDS - 6000n, "it was paid once");
  facilitator.state.afterSettling = undefined;
  same((await pay(lost)).status, 200, "its reply can be fetched again");
  same(await chain.balance(who.address), FUNDS - 6000n, "and is not paid again");
  facilitator.server.close();
  facilitator.server.closeAllConnections();
  same((await pay(await signed(who))).status, 503, "without a facilitator nothing is sold");
}

try {
  const chain = await startChain(children);
  const facilitator = await startFacilitator(chain);
  const executors = await Promise.all([startExecutor(), startExecutor(), startExecutor()]);
  const url = await startServer(chain, facilitator, executors);
  const demand = await fetch(url, asked());
  same(demand.status, 402, "a request without a payment is refused");
  await official(chain, url);
  await hostile(chain, facilitator, url);
  const sold = await chain.balance(PAY_TO);
  same(sold, 3n * PRICE + PRICE + 3n * PRICE + 6000n, "the seller has exactly the sum of the prices");
  console.log(`all payments are as they should be: ${held} checks`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  children.forEach((child) => child.kill("SIGKILL"));
  rmSync(folder, { recursive: true, force: true });
}
process.exit();
