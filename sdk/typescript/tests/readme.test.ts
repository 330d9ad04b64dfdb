// The snippets of the README and of the guide, run as they are.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { ended, executors, guide, listening, snippets, TestServer } from "./world.ts";

test("the snippets of the README", async () => {
  const [adder, client] = snippets();
  // Beside the tests, where the package finds itself by its name.
  const place = (name: string) => fileURLToPath(new URL(`./${name}`, import.meta.url));
  await writeFile(place("readme-adder.mjs"), adder!);
  await writeFile(place("readme-client.mjs"), client!);
  const server = await TestServer.start();
  const copies = ["one", "two", "three"].map((name) =>
    spawn(process.execPath, [place("readme-adder.mjs"), "0", name], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  try {
    for (const [index, copy] of copies.entries()) {
      const url = await listening(copy, "stdout");
      await server.client().executors.add({ name: ["one", "two", "three"][index]!, url, must_answer: true });
    }
    const env = { ...process.env, JURAT_URL: server.url, JURAT_API_KEY: server.key };
    const { stdout } = await promisify(execFile)(process.execPath, [place("readme-client.mjs")], { env });
    const lines = stdout.trim().split("\n");
    assert.match(lines[0]!, /^VALID 1 0\./);
    assert.ok(lines.includes("the verdict is INVALID, not VALID"), stdout);
    assert.ok(lines.some((line) => /^422 \S+ consensus\.replicas /.test(line)), stdout);
    assert.equal(lines.at(-1), "final");
  } finally {
    await Promise.all(copies.map(ended));
    await server.stop();
  }
});

test("the snippet of the guide", async () => {
  const server = await TestServer.start();
  const running = await executors(server.client());
  try {
    // The executors know nothing of water.
    const text = guide()
      .replace("http://127.0.0.1:5872", server.url)
      .replace("jrt_live_…", server.key)
      .replace("Water boils at 90 °C at sea level.", "2 + 2 = 4")
      .replace("replicas: 3", 'consensus: { session_pool: ["one", "two", "three"] }, replicas: 3');
    const place = fileURLToPath(new URL("./guide.ts", import.meta.url));
    await writeFile(place, text);
    const { stdout } = await promisify(execFile)(process.execPath, [place]);
    assert.equal(stdout, "TRUE\n");
  } finally {
    await Promise.all(running.map((executor) => executor.close()));
    await server.stop();
  }
});
