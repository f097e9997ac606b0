// The list of conversations: found again by their texts, opened, renamed, exported and deleted.
import { element } from "./markdown.js";

const find = (id) => document.getElementById(id);
const isNarrow = () => matchMedia("(max-width: 56rem)").matches; // then the list covers the chat
const button = (text, action) => element("button", { type: "button", onclick: action }, text);

/** Hands a text out as a file. */
function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  const link = element("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** What may be a file's name on any system. */
const fileName = (title) => `${title.replace(/[^\p{L}\p{N} _-]+/gu, " ").replace(/ +/g, " ").trim().slice(0, 60) || "chat"}.md`;

export class Chats {
  #panel = find("chats");
  #opener = find("open-chats");
  #store;
  #actions;
  #shown = null; // { key, conversation } of the open one

  /** `actions`: open(chat), changed(). */
  constructor(store, actions) {
    this.#store = store;
    this.#actions = actions;
    this.#opener.addEventListener("click", () => this.show(this.#panel.hidden));
    find("close-chats").addEventListener("click", () => this.show(false));
    find("search").addEventListener("input", () => this.#list());
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.show(false);
    });
    addEventListener("storage", () => this.#list()); // of another tab
  }

  show(isShown) {
    this.#panel.hidden = !isShown;
    this.#opener.setAttribute("aria-expanded", isShown);
    document.querySelector("main").inert = isShown && isNarrow();
    if (!isShown) return this.#opener.focus();
    this.#list();
    find("search").focus();
  }

  /** As they are now kept; `shown` is the open one, which need not be. */
  update(shown) {
    this.#shown = shown;
    this.#list();
  }

  #list() {
    if (this.#panel.hidden) return;
    const wanted = find("search").value.trim();
    // The open one is as it is seen, not as it was kept.
    const kept = this.#store.list().map((chat) => (chat.key === this.#shown?.key ? this.#shown : chat));
    const found = kept.filter(({ conversation }) => wanted === "" || conversation.includes(wanted));
    find("chat-list").replaceChildren(...found.map((chat) => this.#item(chat)));
    find("chat-count").textContent = wanted ? `${found.length} of ${kept.length}` : kept.length ? "" : "None is kept yet.";
  }

  #item(chat) {
    const isShown = chat.key === this.#shown?.key;
    const title = button(chat.conversation.title, () => this.#open(chat));
    title.className = "title";
    title.dir = "auto";
    if (!isShown) return element("li", {}, title);
    title.ariaCurrent = "true";
    return element("li", {}, title, element("div", { className: "bar" },
      button("Rename", () => this.#rename(chat)),
      button("Export", () => download(fileName(chat.conversation.title), chat.conversation.markdown)),
      button("Delete", () => this.#delete(chat))));
  }

  #open(chat) {
    if (isNarrow()) this.show(false);
    this.#actions.open(chat);
  }

  #rename(chat) {
    const title = prompt("Title of the conversation", chat.conversation.title);
    if (title === null) return;
    chat.conversation.title = title;
    this.#actions.changed();
    this.#panel.querySelector("[aria-current]")?.focus();
  }

  #delete(chat) {
    if (!confirm(`Delete "${chat.conversation.title}"? It is kept nowhere else.`)) return;
    this.#store.remove(chat);
    this.#actions.open(this.#store.begin());
    find("search").focus();
  }
}
