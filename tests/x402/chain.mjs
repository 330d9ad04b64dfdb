// A chain with the token at its usual address, and the official facilitator on it.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { createRequire } from "node:module";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorEvmSigner } from "@x402/evm";
import { ExactEvmScheme } from "@x402/evm/exact/facilitator";
import { ExactEvmSchemeV1 } from "@x402/evm/exact/v1/facilitator";
import { createTestClient, createWalletClient, http, parseAbi, publicActions, walletActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { baseSepolia } from "viem/chains";

export const ASSET = "0x036CbD53842c5426634e7929541eC2318f3dCF7e";
// The first accounts of anvil, whose keys everybody knows.
const GAS_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const ABI = parseAbi([
  "function mint(address to, uint256 value)",
  "function balanceOf(address whose) view returns (uint256)",
]);

const require = createRequire(process.env.X402_PACKAGES + "/package.json");

export function freePort() {
  return new Promise((resolve) => {
    const socket = createSocket().listen(0, "127.0.0.1", () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });
}

export async function until(what, check) {
  for (let look = 0; look < 300; look += 1) {
    const found = await check().catch(() => undefined);
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${what} did not happen within 30 seconds`);
}

function compiled() {
  const solc = require("solc");
  const source = readFileSync(new URL("Token.sol", import.meta.url), "utf8");
  const output = JSON.parse(solc.compile(JSON.stringify({
    language: "Solidity",
    sources: { "Token.sol": { content: source } },
    settings: {
      optimizer: { enabled: true, runs: 200 },
      viaIR: true,
      evmVersion: "paris",
      outputSelection: { "*": { "*": ["evm.deployedBytecode.object"] } },
    },
  })));
  const errors = (output.errors ?? []).filter((it) => it.severity === "error");
  if (errors.length) throw new Error(errors.map((it) => it.formattedMessage).join("\n"));
  return `0x${output.contracts["Token.sol"].Token.evm.deployedBytecode.object}`;
}

// The clock of a block must move by itself: an authorization that is valid from now on would not be
// valid yet in a block of an earlier second.
export async function startChain(children) {
  const port = await freePort();
  const anvil = process.env.X402_PACKAGES + "/node_modules/.bin/anvil";
  const options = ["--host", "127.0.0.1", "--port", String(port), "--chain-id", "84532", "--block-time", "1", "--silent"];
  children.push(spawn(anvil, options, { stdio: "ignore" }));
  const url = `http://127.0.0.1:${port}`;
  const client = createTestClient({
    account: privateKeyToAccount(GAS_KEY), chain: baseSepolia, mode: "anvil", transport: http(url),
  }).extend(publicActions).extend(walletActions);
  await until("the start of the chain", () => client.getBlockNumber().then(() => true));
  await client.setCode({ address: ASSET, bytecode: compiled() });
  return {
    url,
    client,
    balance: (address) => client.readContract({ address: ASSET, abi: ABI, functionName: "balanceOf", args: [address] }),
    async mint(address, value) {
      const hash = await client.writeContract({ address: ASSET, abi: ABI, functionName: "mint", args: [address, value] });
      await client.waitForTransactionReceipt({ hash });
    },
  };
}

// The official facilitator for both versions of the protocol, behind a small server.
export async function startFacilitator(chain) {
  const account = privateKeyToAccount(GAS_KEY);
  const wallet = createWalletClient({ account, chain: baseSepolia, transport: http(chain.url) }).extend(publicActions);
  const signer = toFacilitatorEvmSigner({
    address: account.address,
    getCode: (args) => wallet.getCode(args),
    readContract: (args) => wallet.readContract({ ...args, args: args.args ?? [] }),
    verifyTypedData: (args) => wallet.verifyTypedData(args),
    writeContract: (args) => wallet.writeContract({ ...args, args: args.args ?? [] }),
    sendTransaction: (args) => wallet.sendTransaction(args),
    waitForTransactionReceipt: (args) => wallet.waitForTransactionReceipt(args),
  });
  const facilitator = new x402Facilitator()
    .register("eip155:84532", new ExactEvmScheme(signer))
    .registerV1("base-sepolia", new ExactEvmSchemeV1(signer));
  const state = { afterSettling: undefined, settled: 0 };
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { paymentPayload, paymentRequirements } = JSON.parse(Buffer.concat(chunks).toString());
    const send = (status, body) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    try {
      if (request.url === "/verify") {
        send(200, await facilitator.verify(paymentPayload, paymentRequirements));
      } else if (request.url === "/settle") {
        const settled = await facilitator.settle(paymentPayload, paymentRequirements);
        state.settled += settled.success ? 1 : 0;
        if (state.afterSettling) send(state.afterSettling, {});
        else send(200, settled);
      } else {
        send(404, {});
      }
    } catch (error) {
      send(500, { error: String(error) });
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, state, server };
}
