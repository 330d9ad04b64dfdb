// Reads the server-sent events of a round.
import { Answer } from "./answer.js";
import { ApiError, problemOf } from "./errors.js";
import type { Decided, DelegateReply, Replica, ReplicaStarted, VerdictReply } from "./schemas.js";

/** One event of a round while it runs; the last one is `final`. */
export type RoundEvent =
  | { name: "replica_started"; data: ReplicaStarted }
  | { name: "replica_done"; data: Replica }
  | { name: "decided"; data: Decided }
  | { name: "final"; data: DelegateReply | VerdictReply; answer: Answer };

/** The events in a body. The event `error` is thrown. */
export async function* roundEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<RoundEvent> {
  let name = "message";
  let data: string[] = [];
  for await (const line of lines(body)) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
    else if (line === "") {
      if (data.length > 0) yield read(name, data.join("\n"));
      name = "message";
      data = [];
    }
  }
}

function read(name: string, text: string): RoundEvent {
  const data = JSON.parse(text);
  if (name === "error") throw new ApiError(problemOf(data.status ?? 500, text));
  if (name === "final") return { name, data, answer: new Answer(data) };
  return { name, data } as RoundEvent;
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) yield part.replace(/\r$/, "");
    }
  } finally {
    // A caller that stops early lets go of the connection; the round runs on.
    await reader.cancel().catch(() => undefined);
  }
}
