// Canonical JSON (RFC 8785) and its digests.
import { createHash } from "node:crypto";

export function digest(text: string): string {
  return "sha256:" + createHash("sha256").update(text, "utf8").digest("hex");
}

/** Sorted names, no spaces; JavaScript writes numbers as the RFC wants them. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${members.map(([name, it]) => `${JSON.stringify(name)}:${canonical(it)}`).join(",")}}`;
}
