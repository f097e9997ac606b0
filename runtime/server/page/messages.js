// Messages as they are seen: each node of the conversation has one view, which is made once and updated as it grows.
import { element, renderMarkdown } from "./markdown.js";
import { tokenView } from "./tokens.js";

const button = (text, action, properties = {}) =>
  element("button", { type: "button", onclick: action, ...properties }, text);

/** Copies, also where the page has come over plain HTTP and browsers offer no clipboard. */
export async function copy(text, pressed) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = element("textarea", { value: text, className: "unseen", readOnly: true });
    pressed.after(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    pressed.focus();
  }
  const label = pressed.textContent;
  if (label === "Copied") return;
  pressed.textContent = "Copied";
  setTimeout(() => { pressed.textContent = label; }, 1500);
}

/** Enter sends: not one that ends a composed character, and not on a phone, which has no other for a new line. */
export function isForSending(event) {
  const isEnter = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  return isEnter && !matchMedia("(pointer: coarse)").matches;
}

/** What a model thought before it answered, and the answer: as the server tells them apart, or by their tags. */
function splitThought({ text, thought }) {
  if (thought) return [thought.trim(), text];
  const end = text.indexOf("</think>");
  if (end >= 0) return [text.slice(0, end).replace(/^\s*<think>/, "").trim(), text.slice(end + "</think>".length)];
  return /^\s*<think>/.test(text) ? [text.replace(/^\s*<think>/, "").trim(), ""] : ["", text];
}

/** `actions`: edit(node, text), answerAgain(node), step(node, change), choose(node). */
export class MessageView {
  #node;
  #conversation;
  #actions;
  #text = element("div", { className: "text", dir: "auto" });
  #thought = element("div", { className: "text", dir: "auto" });
  #thoughts = element("details", { className: "thoughts", hidden: true },
    element("summary", {}, "Thoughts"), this.#thought);
  #note = element("p", { className: "note", hidden: true });
  #stats = element("span", { className: "stats" });
  #place = element("span");
  #switcher;
  #again;
  #choose;
  #buttons;
  #tokens = null;
  #isTokens = true;

  constructor(node, conversation, actions) {
    this.#node = node;
    this.#conversation = conversation;
    this.#actions = actions;
    this.#switcher = element("span", { className: "switcher" },
      button("\u2039", () => actions.step(node, -1), { className: "previous", ariaLabel: "Previous version" }),
      this.#place,
      button("\u203a", () => actions.step(node, 1), { className: "next", ariaLabel: "Next version" }));
    this.#choose = button("Go on with this", () => actions.choose(node), { className: "choose" });
    this.#again = button("Regenerate", () => actions.answerAgain(node));
    const form = button("Plain text", () => this.#changeForm(), { className: "form", hidden: true });
    this.#buttons = element("footer", {}, this.#choose, this.#switcher,
      button("Copy", ({ target }) => copy(splitThought(node)[1].trim(), target), { className: "copy" }),
      button("Edit", () => this.#edit(), { className: "start-edit" }),
      ...(this.isAnswer ? [this.#again, form] : []), this.#stats);
    const ariaLabel = this.isAnswer ? "Answer" : "You";
    this.element = element("article", { className: `message ${node.role}`, ariaLabel },
      ...(this.isAnswer ? [this.#thoughts] : []), this.#text, this.#note, this.#buttons);
    this.update();
  }

  get isAnswer() { return this.#node.role === "assistant"; }

  /** As the node now is. */
  update() {
    const { text, isOpen, tokens, error, ending, stats } = this.#node;
    if (!this.isAnswer) this.#text.textContent = text;
    else this.#updateAnswer(tokens);
    const isNoted = error ?? { length: "Cut off: it has as many tokens as it may.", stopped: "Stopped." }[ending];
    this.#note.textContent = isNoted ?? "";
    this.#note.hidden = !isNoted;
    this.#note.classList.toggle("error", Boolean(error));
    this.#again.textContent = error ? "Try again" : "Regenerate";
    this.#stats.textContent = stats ?? "";
    this.element.ariaBusy = Boolean(isOpen);
    this.element.classList.toggle("open", Boolean(isOpen));
    this.place();
  }

  #updateAnswer(tokens) {
    if (tokens?.length && !this.#tokens) {
      this.#tokens = tokenView(this.#node);
      this.#text.after(this.#tokens.element);
      this.#buttons.querySelector(".form").hidden = false;
    }
    const isTokens = Boolean(this.#tokens) && this.#isTokens;
    const [thought, answer] = splitThought(this.#node);
    this.#text.hidden = isTokens;
    this.#thoughts.hidden = isTokens || thought === "";
    if (this.#tokens) {
      this.#tokens.element.hidden = !isTokens;
      if (isTokens) return this.#tokens.update();
    }
    renderMarkdown(this.#text, answer);
    renderMarkdown(this.#thought, thought);
  }

  /** Where it stands among its siblings. */
  place() {
    const siblings = this.#conversation.siblings(this.#node);
    const isSample = this.#conversation.shownWith(this.#node).length > 1;
    const index = siblings.indexOf(this.#node);
    this.#place.textContent = `${index + 1}/${siblings.length}`;
    this.#place.ariaLabel = `Version ${index + 1} of ${siblings.length}`;
    this.#switcher.hidden = siblings.length < 2 || isSample;
    this.#switcher.firstChild.disabled = index === 0;
    this.#switcher.lastChild.disabled = index === siblings.length - 1;
    this.#choose.hidden = !isSample || Boolean(this.#node.isOpen);
    this.#again.hidden = isSample || Boolean(this.#node.isOpen);
  }

  focus(name) {
    const buttons = [...this.#buttons.querySelectorAll("button:enabled")].filter((one) => one.checkVisibility());
    (buttons.find((one) => one.classList.contains(name)) ?? buttons[0])?.focus();
  }

  #changeForm() {
    this.#isTokens = !this.#isTokens;
    this.#buttons.querySelector(".form").textContent = this.#isTokens ? "Plain text" : "Tokens";
    this.update();
  }

  /** A field in the place of the text, until what it holds is sent or not. */
  #edit() {
    if (this.element.querySelector("form")) return;
    const field = element("textarea", { value: this.#node.text, dir: "auto", ariaLabel: "Message, edited" });
    const end = () => {
      form.remove();
      this.element.classList.remove("edited");
      this.focus("start-edit");
    };
    const send = () => {
      if (field.value.trim() === "") return;
      end();
      this.#actions.edit(this.#node, field.value);
    };
    const form = element("form", { className: "edit" }, field,
      element("div", { className: "bar" },
        element("button", { type: "submit", className: "strong" }, this.isAnswer ? "Keep" : "Send"),
        button("Cancel", end)));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key === "Escape") end();
      else if (event.target === field && !this.isAnswer && isForSending(event)) send();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.element.classList.add("edited");
    this.element.append(form);
    field.focus();
  }
}
