// A conversation is a tree: an edited message, an answer that was asked for again and samples side by side are
// siblings, and the picked ones from the root on are what the model reads. store.js keeps it.

const TITLE_LENGTH = 80; // characters at most of one that nobody has chosen
const newNode = (members) => ({ text: "", ...members, children: [], picked: 0 });

export class Conversation {
  #root = newNode({ role: "root" });
  #parents = new WeakMap();

  /** A new one, or what store.js has kept. Throws TypeError of what is no conversation. */
  constructor(stored) {
    if (stored === undefined) return;
    if (stored.role !== "root") throw new TypeError("no conversation");
    this.#adopt(stored);
    this.#root = stored;
  }

  /** From the first message to the last. */
  get path() {
    const nodes = [];
    for (let node = this.#root; (node = node.children[node.picked]);) nodes.push(node);
    return nodes;
  }
  get last() { return this.path.at(-1) ?? this.#root; }
  get isEmpty() { return this.#root.children.length === 0; }

  parent(node) { return this.#parents.get(node); }
  siblings(node) { return this.parent(node).children; }

  /** Samples of one request that stand side by side until one is chosen; else the node alone. */
  shownWith(node) {
    const { open } = this.parent(node);
    return open && node.batch === open ? this.siblings(node).filter(({ batch }) => batch === open) : [node];
  }

  /** Adds siblings below a node, and picks the first of them. What failed without a word goes. */
  add(parent, added) {
    const nodes = added.map(newNode);
    parent.children = parent.children.filter(({ error, text, children }) => !error || text || children.length);
    parent.picked = parent.children.length;
    parent.open = nodes.length > 1 ? nodes[0].batch : null;
    parent.children.push(...nodes);
    for (const node of nodes) this.#parents.set(node, parent);
    return nodes;
  }

  pick(node) {
    const parent = this.parent(node);
    parent.picked = parent.children.indexOf(node);
    parent.open = null;
  }

  /** What the model reads before it answers below a node. */
  messages(node, system) {
    const messages = system ? [{ role: "system", content: system }] : [];
    const above = [];
    for (; node !== this.#root; node = this.parent(node)) {
      const thought = node.thought ? { reasoning_content: node.thought } : {};
      above.unshift({ role: node.role, content: node.text, ...thought });
    }
    return messages.concat(above);
  }

  /** The chosen one, or else the beginning of what was said first. */
  get title() {
    const said = this.#root.children.find(({ text }) => text.trim())?.text ?? "";
    return this.#root.title || [...said.trim().replace(/\s+/g, " ")].slice(0, TITLE_LENGTH).join("") || "New chat";
  }
  set title(text) { this.#root.title = text.trim().slice(0, 2 * TITLE_LENGTH); }

  /** Whether the title or any message has the text, whatever its case. */
  includes(text) {
    const wanted = text.toLowerCase();
    if (this.title.toLowerCase().includes(wanted)) return true;
    for (const open = [...this.#root.children]; open.length;) {
      const node = open.pop();
      if (node.text.toLowerCase().includes(wanted)) return true;
      open.push(...node.children);
    }
    return false;
  }

  /** What is picked, as Markdown. */
  get markdown() {
    const parts = this.path.map(({ role, text }) => `## ${role === "user" ? "You" : "Answer"}\n\n${text.trim()}\n`);
    return [`# ${this.title}\n`, ...parts].join("\n");
  }

  /** For store.js, without members of nodes that are named. */
  toText(skipped = []) {
    return JSON.stringify(this.#root, (key, value) => (skipped.includes(key) ? undefined : value));
  }

  #adopt(root) {
    for (const open = [root]; open.length;) {
      const parent = open.pop();
      for (const node of parent.children) {
        if (typeof node.text !== "string") throw new TypeError("no message");
        if (node.isOpen) Object.assign(node, { isOpen: false, ending: "stopped" }); // the page was closed meanwhile
        this.#parents.set(node, parent);
        open.push(node);
      }
    }
  }
}
