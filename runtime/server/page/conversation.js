// A conversation is a tree: an edited message, an answer that was asked for again and samples side by side are
// siblings, and the picked ones from the root on are what the model reads. It is kept in the browser.

const STORE = "soliton.conversation";
const newNode = (members) => ({ text: "", ...members, children: [], picked: 0 });

export class Conversation {
  #root = newNode({ role: "root" });
  #parents = new WeakMap();

  constructor() {
    try {
      const stored = JSON.parse(localStorage.getItem(STORE));
      if (stored?.role !== "root") return;
      this.#adopt(stored);
      this.#root = stored;
    } catch { /* what is not readable is as if it were not there */ }
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

  clear() {
    this.#root = newNode({ role: "root" });
    this.save();
  }

  /** Returns false if the browser has no room for it. Probabilities of tokens are the first to go. */
  save() {
    for (const skipped of [[], ["tokens"]]) {
      try {
        const kept = (key, value) => (skipped.includes(key) ? undefined : value);
        localStorage.setItem(STORE, JSON.stringify(this.#root, kept));
        return true;
      } catch { /* the next one is shorter */ }
    }
    return false;
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
