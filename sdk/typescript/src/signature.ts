// Checks that a request comes from a known node: HTTP message signatures (RFC 9421).
import { createHash, createPublicKey, verify } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** A signature has the time at which its round was opened, and a round is much shorter. */
const OLDEST_S = 3600;
const COVERED = ["@method", "@authority", "@path", "content-digest"];
const INPUT = /^sig1=(\(("[^"]+"(?: "[^"]+")*)\);created=(\d+);keyid="([0-9a-f]{64})";alg="ed25519")$/;

/** Whether one of the nodes, each known by its public key in hex, signed this request. */
export function isSigned(
  nodeKeys: string[],
  path: string,
  headers: IncomingHttpHeaders,
  body: Buffer,
): boolean {
  const input = INPUT.exec(String(headers["signature-input"]));
  const signature = /^sig1=:([A-Za-z0-9+/=]+):$/.exec(String(headers["signature"]));
  const sum = createHash("sha256").update(body).digest("base64");
  if (!input || !signature || headers["content-digest"] !== `sha-256=:${sum}:`) return false;
  const [, params = "", quoted = "", created, keyId = ""] = input;
  const names = quoted.split(" ").map((name) => name.slice(1, -1));
  const isRecent = Math.abs(Date.now() / 1000 - Number(created)) <= OLDEST_S;
  if (!nodeKeys.includes(keyId) || !isRecent || !COVERED.every((it) => names.includes(it))) return false;
  const known: Record<string, string> = {
    "@method": "POST",
    "@authority": (headers.host ?? "").toLowerCase(),
    "@path": path,
  };
  const lines = names.map((name) => `"${name}": ${known[name] ?? headers[name] ?? ""}`);
  const base = [...lines, `"@signature-params": ${params}`].join("\n");
  const x = Buffer.from(keyId, "hex").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, Buffer.from(base), key, Buffer.from(signature[1] ?? "", "base64"));
}
