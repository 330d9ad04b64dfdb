// A program with the Vercel AI SDK and the community's provider, which reads the URL and the key from
// the environment. Prints what its user sees as one line of JSON.

import { generateText } from "ai";
import { cortensorModel } from "cortensor-openai-provider";

const seen = [];
for (const sessionId of process.argv.slice(2).map(Number)) {
  const model = cortensorModel({ sessionId });
  try {
    const { text, finishReason, response } = await generateText({
      model, system: "Be brief.", prompt: "What is 12 * 12?", maxRetries: 0,
    });
    seen.push({ text, finishReason, id: response.id, model: response.modelId });
  } catch (error) {
    seen.push({ error: error.message });
  }
}
console.log(JSON.stringify(seen));
