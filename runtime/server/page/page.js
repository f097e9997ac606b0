// The page of soliton-server: sends what is written, and shows what comes back.
import { complete, Refusal, servedModel } from "./api.js";
import { Chats } from "./chats.js";
import { element } from "./markdown.js";
import { copy, isForSending, MessageView } from "./messages.js";
import { Settings } from "./settings.js";
import { Store } from "./store.js";
import { hideTip } from "./tokens.js";

const find = (id) => document.getElementById(id);
const chat = find("chat");
const question = find("question");
const store = new Store();
let { key, conversation } = store.open(); // the conversation that is seen
const settings = new Settings();
const views = new WeakMap(); // of nodes
let model = { id: "" };
let completes = false; // texts are completed, as the model has no chat template
let answering = null; // what stops the answer under way

// ---- The conversation as it is seen

const actions = {
  edit(node, text) {
    answering?.abort();
    const [edited] = conversation.add(conversation.parent(node), [{ role: node.role, text }]);
    show();
    viewOf(edited).focus("start-edit");
    if (edited.role === "user") answer(edited);
    keep();
  },
  answerAgain(node) {
    if (!answering) answer(conversation.parent(node));
  },
  step(node, change) {
    if (answering) return;
    const siblings = conversation.siblings(node);
    const other = siblings[siblings.indexOf(node) + change];
    conversation.pick(other);
    show();
    viewOf(other).focus(change < 0 ? "previous" : "next");
    keep();
  },
  choose(node) {
    if (answering) return;
    conversation.pick(node);
    show();
    question.focus();
    keep();
  },
};

/** Shows another conversation, or a new one. */
function open(chat) {
  if (chat.key === key) return question.focus();
  answering?.abort();
  store.save({ key, conversation });
  ({ key, conversation } = chat);
  store.show(key);
  find("context").textContent = "";
  show();
  chats.update(chat);
  question.focus();
}

/** Has the browser keep what has changed. */
function keep(chat = { key, conversation }) {
  if (!store.save(chat)) {
    find("context").textContent = "This browser has no room for the conversation: delete others, or it is lost with the page.";
  }
  chats.update({ key, conversation });
}

const chats = new Chats(store, { open, changed: () => keep() });

function viewOf(node) {
  if (!views.has(node)) views.set(node, new MessageView(node, conversation, actions));
  return views.get(node);
}

function show() {
  hideTip();
  const parts = conversation.path.map((node) => {
    const shown = conversation.shownWith(node);
    for (const one of shown) viewOf(one).place();
    if (shown.length === 1) return viewOf(node).element;
    return element("section", { className: "samples", role: "group", ariaLabel: `${shown.length} samples` },
      element("p", { className: "hint" }, node.stats ?? ""),
      element("div", {}, ...shown.map((one) => viewOf(one).element)));
  });
  if (conversation.isEmpty) {
    const hint = completes ? "Write the beginning of a text, and it goes on."
      : "What is written stays between this page and its server.";
    parts.push(element("div", { className: "welcome" },
      element("h2", {}, model.id || "Soliton"), element("p", {}, hint)));
  }
  chat.replaceChildren(...parts);
  chat.scrollTop = chat.scrollHeight;
}

const redrawn = new Set(); // nodes that have changed since the last frame

function redraw(node) {
  if (redrawn.size === 0) requestAnimationFrame(drawNow);
  redrawn.add(node);
}

/** Keeps the end in sight if it is. */
function drawNow() {
  const isAtEnd = chat.scrollHeight - chat.scrollTop - chat.clientHeight < 40;
  for (const node of redrawn) viewOf(node).update();
  redrawn.clear();
  const samples = chat.querySelector(".samples > .hint");
  if (samples) samples.textContent = conversation.last.stats ?? "";
  if (isAtEnd) chat.scrollTop = chat.scrollHeight;
}

/** Says sentences to whoever listens instead of looking, as they become whole. */
const speaker = {
  rest: "",
  say(text) {
    find("spoken").append(element("p", {}, text.replace(/[*_`#|]+/g, "")));
    while (find("spoken").childElementCount > 20) find("spoken").firstChild.remove();
  },
  push(text) {
    this.rest += text;
    const end = /^[\s\S]*[.!?:\n](?=\s)/.exec(this.rest)?.[0].length ?? 0;
    if (end === 0) return;
    this.say(this.rest.slice(0, end));
    this.rest = this.rest.slice(end);
  },
  finish() {
    if (this.rest.trim()) this.say(this.rest);
    this.rest = "";
  },
};

// ---- Answers

/** How fast tokens come: { first: s, count, perSecond }. */
class Pace {
  #start = performance.now();
  #first = null;
  #last = null;
  count = 0;

  note(number) {
    this.#last = performance.now();
    this.#first ??= this.#last;
    this.count += number;
  }

  text(samples) {
    if (this.#first === null) return "";
    const seconds = (this.#last - this.#first) / 1000;
    const rate = (this.count - samples) / seconds;
    return [`${this.count} tokens${samples > 1 ? ` in ${samples} samples, decoded together` : ""}`,
      ...(seconds > 0.005 && rate > 0 ? [`${rate.toFixed(rate < 100 ? 1 : 0)} tokens/s`] : []),
      `first after ${((this.#first - this.#start) / 1000).toFixed(2)} s`].join(" \u00b7 ");
  }
}

async function answer(parent) {
  const options = settings.request();
  if (!options) return;
  const own = { key, conversation }; // another may be open when the answer ends
  const batch = crypto.getRandomValues(new Uint32Array(2)).join("");
  const nodes = conversation.add(parent, Array.from({ length: options.n }, () =>
    ({ role: "assistant", batch, isOpen: true, ...(options.logprobs ? { tokens: [] } : {}) })));
  show();
  const controller = new AbortController();
  setAnswering(controller);
  const end = (members) => {
    for (const node of nodes.filter(({ isOpen }) => isOpen)) Object.assign(node, { isOpen: false, ...members });
  };
  try {
    await receive(nodes, parent, options, controller.signal);
    end({ ending: "stop" });
  } catch (error) {
    if (error.name === "AbortError") end({ ending: "stopped" });
    else end({ error: complaint(error) });
  }
  speaker.finish();
  if (nodes.length > 1) speaker.say(`${nodes.length} samples are there to choose from.`);
  if (nodes[0].error) speaker.say(nodes[0].error);
  nodes.forEach((node) => redrawn.add(node));
  drawNow();
  if (answering === controller) setAnswering(null);
  keep(own);
}

async function receive(nodes, parent, options, signal) {
  const pace = new Pace();
  const request = { model: model.id, messages: conversation.messages(parent, settings.system), ...options };
  const pieces = () => complete(request, { key: settings.key, signal, completes });
  const take = async (stream) => {
    for await (const piece of stream) {
      if (piece.usage) {
        pace.count = piece.usage.completion_tokens;
        showContext(piece.usage);
        for (const node of nodes) node.stats = pace.text(nodes.length);
        continue;
      }
      const node = nodes[piece.index];
      node.text += piece.text;
      if (piece.thought) node.thought = (node.thought ?? "") + piece.thought;
      node.tokens?.push(...piece.tokens);
      if (piece.text || piece.thought || piece.tokens.length) pace.note(Math.max(1, piece.tokens.length));
      if (piece.isEnd) Object.assign(node, { isOpen: false, ending: piece.reason });
      if (piece.index === 0) node.stats = pace.text(nodes.length);
      if (nodes.length === 1) speaker.push(piece.text);
      redraw(node);
    }
  };
  try {
    await take(pieces());
  } catch (error) {
    const isTemplate = error instanceof Refusal && error.param === "messages" && /chat template/.test(error.message);
    if (completes || !isTemplate) throw error;
    completes = true;
    settings.takeNoInstructions();
    await take(pieces());
  }
}

function complaint(error) {
  if (!(error instanceof Refusal)) return error instanceof TypeError ? "The server cannot be reached." : error.message;
  if (error.status === 401) {
    settings.askForKey();
    return "The server asks for an API key: see the settings.";
  }
  return error.retryAfter ? `The server is busy. It may have time in ${error.retryAfter} s.` : error.message;
}

function showContext({ prompt_tokens: prompt, prompt_tokens_details: details }) {
  const cached = details?.cached_tokens ? `, ${details.cached_tokens} of them cached` : "";
  const most = model.max_model_len ? ` of ${model.max_model_len}` : "";
  find("context").textContent = `Prompt: ${prompt} tokens${most}${cached}`;
}

function setAnswering(controller) {
  answering = controller;
  const wasFocused = [find("send"), find("stop")].includes(document.activeElement);
  find("send").hidden = controller !== null;
  find("stop").hidden = controller === null;
  document.body.classList.toggle("answering", controller !== null);
  if (wasFocused) (controller ? find("stop") : question).focus();
}

// ---- What is written and pressed

function send() {
  const text = question.value;
  if (answering || text.trim() === "") return;
  const { last } = conversation;
  if (!conversation.isEmpty && conversation.shownWith(last).length > 1) {
    find("context").textContent = "Choose the sample to go on with.";
    viewOf(last).focus("choose");
    return;
  }
  if (!settings.request()) return;
  const [asked] = conversation.add(last, [{ role: "user", text }]);
  question.value = "";
  fitQuestion();
  answer(asked);
}

function fitQuestion() {
  question.style.height = "auto";
  question.style.height = `${question.scrollHeight + 2}px`;
}

find("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
question.addEventListener("input", fitQuestion);
question.addEventListener("keydown", (event) => {
  if (!isForSending(event)) return;
  event.preventDefault();
  send();
});
find("stop").addEventListener("click", () => answering?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  answering?.abort();
  hideTip();
});
find("new-chat").addEventListener("click", () => open(store.begin()));
chat.addEventListener("click", ({ target }) => {
  if (target.matches("button.copy-code")) copy(target.closest("figure").querySelector("code").textContent, target);
});
chat.addEventListener("scroll", hideTip);
// Browsers end connections between these two: the answer would be kept as one that failed.
addEventListener("beforeunload", () => answering?.abort());
addEventListener("pagehide", () => store.save({ key, conversation }));

async function greet() {
  try {
    model = await servedModel(settings.key);
    find("model").textContent = model.id;
    document.title = `${model.id} \u00b7 Soliton`;
    if (conversation.isEmpty) show();
  } catch (error) {
    find("context").textContent = complaint(error);
  }
}

show();
chats.update({ key, conversation });
fitQuestion();
question.focus();
greet();
find("settings-form").elements.key.addEventListener("change", greet);
