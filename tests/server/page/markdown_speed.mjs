// Markdown that would be slow if a reader went back over it, or large if it made more of it than there is: markdown_speed.mjs
// MARKDOWN_JS. Run by Node, with as much of a document as markdown.js asks for.
import assert from "node:assert";

let numElements = 0;

class StubNode {
  constructor(name) {
    this.name = name;
    this.childNodes = [];
    ++numElements;
  }
  append(...children) {
    for (const child of children) {
      if (child instanceof StubNode) {
        child.remove();
        child.parent = this;
      }
      if (child !== "") this.childNodes.push(child);
    }
  }
  remove() {
    const siblings = this.parent?.childNodes;
    siblings?.splice(siblings.lastIndexOf(this), 1);
  }
  setAttribute(name, value) { this[name] = value; }
  get firstChild() { return this.childNodes[0]; }
  get lastChild() { return this.childNodes.at(-1); }
  get outline() {
    return this.childNodes.map((node) => node.outline === undefined
      ? node : `<${node.name} ${node.className ?? ""} ${node.colSpan ?? ""}>${node.outline}</${node.name}>`).join("");
  }
}

globalThis.document = { createElement: (name) => new StubNode(name) };
const { renderMarkdown } = await import(process.argv[2]);

const LENGTH = 1 << 16;
const MOST_MS = 5000; // ten times what the slowest takes; in squares of their length several took minutes
const repeat = (text, length = LENGTH) => text.repeat(Math.ceil(length / text.length)).slice(0, length);
const stairs = (step) => Array.from({ length: Math.sqrt(2 * LENGTH) }, (_, i) => step(i)).join("\n");

const HOSTILE = [
  // A wide head over many rows without cells.
  `|${"a|".repeat(LENGTH / 8)}\n|${"-|".repeat(LENGTH / 8)}\n${"|\n".repeat(LENGTH / 4)}`,
  // What opens and does not close, alone, nested, and behind what it is within.
  ..."*a |**a *b |*a _b ~~c |_a_a|_a *b_ c* |***a|~~a |~~a~~ |`a``b```c| `|[|[a](|![|[a](x|[a](b \"|[a](<b|<|<br|<http://a|\\|!"
    .split("|").map((text) => repeat(text)),
  ...["*a |**a *b "].map((text) => repeat(text, LENGTH / 2) + repeat([...text].reverse().join(""), LENGTH / 2)),
  stairs((i) => "`".repeat(i)), `\`${repeat("*a ")}`, repeat("[[[[a]]](javascript:x)"),
  // Long runs of what may be left out.
  `[a](${repeat(" ")}`, `[a](b${repeat(" ")}"`, `[a](${repeat("\n x")}`, repeat("[a](  "), `[a](${repeat("(a)")}`,
  `http://${repeat(".")}x`, repeat("http://a."), `http://${repeat("(_*")}`, `http://${repeat("a%")}`, `<br${repeat(" ")}`,
  `# ${repeat(" #")}x`, `#${repeat(" ")}#x`, `# a${repeat(" ")}x`, `${repeat("- ")}x`, `${repeat("-")}x`, `- -${repeat(" ")}x`,
  `a|b\n${repeat("-")}x`, `a|b\n${repeat("-|")}x`, `a|b\n-${repeat(" ")}x`, `a|b\n${repeat("- ")}`, repeat(" "), repeat("\n"),
  // Blocks, and blocks within blocks.
  ..."> |> a\n|- a\n|- |  - a\n    - b\n|1. a\n- b\n|- a\n\n\n|* * a\n|```\n|```a`\n|~~~\na\n|a|a\n|a|b\n\n|# a\n|- - x\n|*[`_~<h!\\\n"
    .split("|").map((text) => repeat(text)),
  stairs((i) => `${" ".repeat(i)}- a`), stairs((i) => `${">".repeat(i)} a`), `${repeat("`")}a\``,
];

for (const text of HOSTILE) {
  const target = new StubNode("div");
  numElements = 0;
  const begin = performance.now();
  renderMarkdown(target, text);
  const took = performance.now() - begin;
  const shown = JSON.stringify(text.slice(0, 30));
  assert(took < MOST_MS, `${shown}: expected at most ${MOST_MS} ms, got ${took}`);
  assert(numElements <= text.length + 10, `${shown}: expected fewer elements than characters, got ${numElements}`);
}

// A text that grows becomes the same document as if it had come at once, and rows that stay are the same elements.
const table = "before\n\n| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |\n| 4 |\n| *5* | 6 | 7 | 8 |\n\nafter\n";
const growing = new StubNode("div");
let firstRow = null;
for (let length = 1; length <= table.length; ++length) {
  renderMarkdown(growing, table.slice(0, length));
  const atOnce = new StubNode("div");
  renderMarkdown(atOnce, table.slice(0, length));
  assert.equal(growing.outline, atOnce.outline, JSON.stringify(table.slice(0, length)));
  if (length < table.indexOf("| 4")) continue;
  const row = growing.childNodes[1].firstChild.lastChild.firstChild;
  assert.equal(row, firstRow ??= row);
}
assert(growing.outline.includes('<td middle 2></td>'), growing.outline);

// Another table in its place is another one.
for (const other of [table.replace("| 1", "| 9"), table.replace("| a", "| x"), table.replace("| 4 |\n", ""), "text", ""]) {
  renderMarkdown(growing, other);
  const atOnce = new StubNode("div");
  renderMarkdown(atOnce, other);
  assert.equal(growing.outline, atOnce.outline);
  renderMarkdown(growing, table);
}
console.log(`${HOSTILE.length} texts`);
