// The conversations that the browser keeps, each under a key of its own, so that two tabs do not write over one another's.
import { Conversation } from "./conversation.js";

const PREFIX = "soliton.conversation."; // and a number: when it was begun
const isKey = (key) => /^soliton\.conversation\.\d+$/.test(key);
const FORMER = "soliton.conversation"; // of the only one that there was once
const OPEN = "soliton.open"; // which one this tab shows

/** What `use` returns; `other` in a browser that keeps nothing. */
function attempt(use, other) {
  try {
    return use();
  } catch {
    return other;
  }
}

function read(key) {
  return attempt(() => new Conversation(JSON.parse(localStorage.getItem(key))), null);
}

export class Store {
  #removed = new WeakSet(); // conversations, of which one may still wait for an answer

  /** { key, conversation } of all that is kept, the last begun first. What is not readable is as if it were not there. */
  list() {
    const keys = attempt(() => Object.keys(localStorage), []).filter(isKey);
    keys.sort((one, other) => other.slice(PREFIX.length) - one.slice(PREFIX.length));
    return keys.map((key) => ({ key, conversation: read(key) })).filter(({ conversation }) => conversation);
  }

  /** The one that this tab showed before it was loaded anew, or the last begun, or a new one. */
  open() {
    this.#adoptFormer();
    const key = attempt(() => sessionStorage.getItem(OPEN), null);
    const kept = this.list();
    const found = kept.find((one) => one.key === key) ?? (key === null ? kept[0] : null) ?? this.begin();
    this.show(found.key);
    return found;
  }

  /** A new one, which is kept once something is said. */
  begin() {
    let time = Date.now();
    while (attempt(() => localStorage.getItem(PREFIX + time), null) !== null) ++time;
    return { key: PREFIX + time, conversation: new Conversation() };
  }

  /** From now on this tab shows that one. */
  show(key) {
    attempt(() => sessionStorage.setItem(OPEN, key));
  }

  /** Returns false if the browser has no room for it. Probabilities of tokens are the first to go. */
  save({ key, conversation }) {
    if (conversation.isEmpty || this.#removed.has(conversation)) return true;
    const write = (skipped) => {
      localStorage.setItem(key, conversation.toText(skipped));
      return true;
    };
    return attempt(() => write([]), false) || attempt(() => write(["tokens"]), false);
  }

  remove({ key, conversation }) {
    this.#removed.add(conversation);
    attempt(() => localStorage.removeItem(key));
  }

  #adoptFormer() {
    attempt(() => {
      const text = localStorage.getItem(FORMER);
      if (text === null) return;
      const conversation = read(FORMER);
      if (conversation && !conversation.isEmpty) localStorage.setItem(this.begin().key, text);
      localStorage.removeItem(FORMER);
    });
  }
}
