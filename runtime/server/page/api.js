// What the page says to the server: OpenAI's API, answered as server-sent events.

/** What the server refuses, in its own words. */
export class Refusal extends Error {
  constructor(status, { message, param, code } = {}, retryAfter = null) {
    super(message ?? `The server answers with status ${status}.`);
    Object.assign(this, { status, param, code, retryAfter });
  }
}

async function ask(path, key, init = {}) {
  const headers = { "Content-Type": "application/json" };
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  throw new Refusal(response.status, body.error, response.headers.get("Retry-After"));
}

/** The model that is served: { id, max_model_len }. */
export async function servedModel(key) {
  const { data } = await (await ask("v1/models", key)).json();
  return data[0];
}

/**
 * Answers as they come: { index, text, thought, tokens, isEnd, reason } for each piece of a choice, of which `tokens`
 * are there if logprobs are asked for, and { usage } at the end. A model without a chat template completes the
 * text of all messages but the instructions, which it would only go on with, instead. Throws Refusal, what fetch() throws, and AbortError.
 */
export async function* complete({ messages, ...body }, { key, signal, completes }) {
  const options = { ...body, stream: true, stream_options: { include_usage: true } };
  let path = "v1/chat/completions";
  if (completes) {
    path = "v1/completions";
    options.prompt = messages.filter(({ role }) => role !== "system").map(({ content }) => content).join("");
    options.max_tokens ??= 256; // else it would be 16
    if (options.logprobs) options.logprobs = options.top_logprobs ?? 0;
    delete options.top_logprobs;
  } else {
    options.messages = messages;
  }
  const decoders = []; // of each choice, as a character may take several tokens
  const response = await ask(path, key, { method: "POST", body: JSON.stringify(options), signal });
  for await (const event of events(response.body)) {
    if (event.error) throw new Refusal(response.status, event.error);
    for (const { index, delta, text, logprobs, finish_reason: reason } of event.choices ?? []) {
      decoders[index] ??= new TextDecoder();
      const tokens = readTokens(logprobs, decoders[index]);
      const thought = delta?.reasoning_content ?? delta?.reasoning ?? "";
      yield { index, text: delta?.content ?? text ?? "", thought, tokens, isEnd: reason != null, reason };
    }
    if (event.usage) yield { usage: event.usage };
  }
}

/** The objects of a stream of events, to its end or "[DONE]". */
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Error("The connection ended before the answer did.");
      const lines = (rest + value).split(/\r?\n/);
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice(5).trim();
        if (data === "[DONE]") return;
        yield JSON.parse(data);
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // tells the server that nobody reads any more
  }
}

/** The probabilities of a chat's piece or a completion's, in one form: { text, logprob, best: [[text, logprob]] }. */
function readTokens(logprobs, decoder) {
  if (logprobs?.content) {
    return logprobs.content.map(({ token, bytes, logprob, top_logprobs: best }) => ({
      text: bytes ? decoder.decode(Uint8Array.from(bytes), { stream: true }) : token,
      logprob,
      best: (best ?? []).map((other) => [other.token, other.logprob]),
    }));
  }
  return (logprobs?.tokens ?? []).map((text, i) => ({
    text,
    logprob: logprobs.token_logprobs[i],
    best: Object.entries(logprobs.top_logprobs?.[i] ?? {}),
  }));
}
