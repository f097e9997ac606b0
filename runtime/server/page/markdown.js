// Markdown to a document. What a model writes only ever becomes text nodes: elements and attributes are made from the
// names that stand here, and an address is kept only if its protocol is one of those below. No image is loaded.

const PROTOCOLS = new Set(["http:", "https:", "mailto:"]);
const MAX_DEPTH = 12; // of what stands within another, so that no text exhausts the stack
const MAX_LABEL = 1000; // characters of a link's label

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*))?$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?/;
const MARKER = /^( *)([-*+]|\d{1,9}[.)])(?:( +)|$)/;
const DELIMITER_ROW = /^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/;

/** An element with properties and children; strings among these become text. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/**
 * Shows the text in `target`. Blocks that were there before, while an answer grows, stay the same elements, and so do the rows
 * of a table that grows. Whatever the text, it takes time as it is long.
 */
export function renderMarkdown(target, text) {
  const blocks = splitBlocks(text.split("\n"), 0);
  const sources = blocks.map((block) => JSON.stringify(block));
  const shown = target.sources ?? [];
  let same = 0;
  while (same < shown.length && shown[same] === sources[same]) ++same;
  const isLast = same < blocks.length && same === shown.length - 1;
  if (isLast && growTable(target.lastChild, target.lastBlock, blocks[same])) ++same;
  while (target.childNodes.length > same) target.lastChild.remove();
  for (const block of blocks.slice(same)) target.append(renderBlock(block, 0));
  target.sources = sources;
  target.lastBlock = blocks.at(-1);
}

// ---- Blocks

/** Whether a line ends a paragraph. Of numbers only 1 does, as text breaks at others by chance. */
function startsBlock(line) {
  const marker = MARKER.exec(line);
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
    (marker !== null && marker[3] !== undefined && !/^(?!1[.)])\d/.test(marker[2]));
}

const isTable = (line, next) =>
  line.includes("|") && next !== undefined && DELIMITER_ROW.test(next.trim()) &&
  splitRow(line).length === splitRow(next).length;

function splitBlocks(lines, depth) {
  const blocks = [];
  let at = 0;
  const takeWhile = (isPart) => {
    const first = at++;
    while (at < lines.length && isPart(lines[at])) ++at;
    return lines.slice(first, at);
  };
  while (at < lines.length) {
    const line = lines[at];
    let match;
    if (line.trim() === "") {
      ++at;
    } else if (depth >= MAX_DEPTH) {
      blocks.push({ kind: "paragraph", text: takeWhile(() => true).join("\n") });
    } else if ((match = FENCE.exec(line))) {
      const [, fence, info] = match;
      const language = info.trim().split(/\s/, 1)[0];
      const ends = (other) => other.trim().startsWith(fence) && other.trim() === fence[0].repeat(other.trim().length);
      const code = takeWhile((other) => !ends(other)).slice(1);
      ++at; // the closing fence, if it has come
      blocks.push({ kind: "code", language, text: code.join("\n") });
    } else if ((match = HEADING.exec(line))) {
      ++at;
      blocks.push({ kind: "heading", level: match[1].length, text: (match[2] ?? "").trim().replace(/\s#+$/, "") });
    } else if (RULE.test(line)) {
      ++at;
      blocks.push({ kind: "rule" });
    } else if (QUOTE.test(line)) {
      const inner = takeWhile((other) => QUOTE.test(other)).map((other) => other.replace(QUOTE, ""));
      blocks.push({ kind: "quote", blocks: splitBlocks(inner, depth + 1) });
    } else if (MARKER.test(line)) {
      const list = takeList(lines, at, depth);
      at = list.end;
      blocks.push(list.block);
    } else if (isTable(line, lines[at + 1])) {
      const delimiter = lines[at + 1];
      const rows = takeWhile((other) => other.includes("|") || other === delimiter).map(splitRow);
      blocks.push({ kind: "table", head: rows[0], aligns: rows[1].map(alignOf), rows: rows.slice(2) });
    } else {
      const text = takeWhile((other) => other.trim() !== "" && !startsBlock(other));
      blocks.push({ kind: "paragraph", text: text.join("\n") });
    }
  }
  return blocks;
}

/** A list that begins at a line: items of one kind, what is indented below them, and lines that go on a paragraph. */
function takeList(lines, first, depth) {
  const [, indent, mark] = MARKER.exec(lines[first]);
  const isOrdered = /\d/.test(mark);
  const items = [];
  let isLoose = false;
  let margin = 0; // of the item's own text
  let at = first;
  for (; at < lines.length; ++at) {
    const line = lines[at];
    const marker = RULE.test(line) ? null : MARKER.exec(line);
    const own = line.length - line.trimStart().length;
    const isAfterBlank = at > first && lines[at - 1].trim() === "";
    if (line.trim() === "") {
      items.at(-1).push("");
    } else if (marker && own <= indent.length + 1) {
      if (/\d/.test(marker[2]) !== isOrdered || (!isOrdered && marker[2] !== mark)) break;
      isLoose ||= isAfterBlank;
      const space = marker[3]?.length ?? 1;
      margin = own + marker[2].length + (space > 4 ? 1 : space);
      items.push([line.slice(margin)]);
    } else if (own >= margin || (marker && own > indent.length + 1)) {
      isLoose ||= isAfterBlank && !marker && own < margin + 4 && !FENCE.test(line);
      items.at(-1).push(line.slice(Math.min(own, margin)));
    } else if (!isAfterBlank && !startsBlock(line)) {
      items.at(-1).push(line.trimStart());
    } else {
      break;
    }
  }
  const read = items.map((item) => {
    const task = /^\[([ xX])\] /.exec(item[0]);
    if (task) item[0] = item[0].slice(4);
    return { isDone: task ? task[1] !== " " : null, blocks: splitBlocks(item, depth + 1) };
  });
  const start = isOrdered ? parseInt(mark, 10) : null;
  return { end: at, block: { kind: "list", start, isLoose, items: read } };
}

function splitRow(line) {
  const cells = line.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
  if (cells.length > 1 && cells.at(-1).trim() === "") cells.pop();
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

const alignOf = (cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "middle" : "right") : "left");

function renderBlock(block, depth) {
  const rendered = (name, blocks) => element(name, {}, ...blocks.map((inner) => renderBlock(inner, depth + 1)));
  switch (block.kind) {
    case "code": return renderCode(block);
    case "heading": return withInline(element(`h${Math.min(6, block.level + 2)}`), block.text); // below the page's own
    case "rule": return element("hr");
    case "quote": return rendered("blockquote", block.blocks);
    case "list": return renderList(block, depth);
    case "table": return renderTable(block);
    default: return withInline(element("p"), block.text);
  }
}

function renderCode({ language, text }) {
  const label = language ? `Code, ${language}` : "Code";
  return element("figure", { className: "code" },
    element("figcaption", {}, element("span", {}, language || "text"),
      element("button", { type: "button", className: "copy-code" }, "Copy")),
    element("pre", { tabIndex: 0, role: "group", ariaLabel: label, dir: "ltr" }, element("code", {}, text)));
}

function renderList({ start, isLoose, items }, depth) {
  const list = start === null ? element("ul") : element("ol", { start });
  for (const { isDone, blocks } of items) {
    const item = element("li");
    if (isDone !== null) {
      const ariaLabel = isDone ? "done" : "to do";
      item.append(element("input", { type: "checkbox", disabled: true, checked: isDone, ariaLabel }), " ");
    }
    for (const block of blocks) {
      if (block.kind === "paragraph" && !isLoose) withInline(item, block.text);
      else item.append(renderBlock(block, depth + 1));
    }
    list.append(item);
  }
  return list;
}

/** A row. Cells that it lacks are one, or short rows below a wide head would make a page of a few lines. */
function renderRow(name, cells, aligns) {
  const row = element("tr");
  const count = Math.min(cells.length, aligns.length);
  for (let i = 0; i < count; ++i) row.append(withInline(element(name, { className: aligns[i] }), cells[i]));
  const lacks = aligns.length - count;
  if (lacks > 0) row.append(element(name, { className: aligns[count], ...(lacks > 1 && { colSpan: lacks }) }));
  return row;
}

function renderTable({ head, aligns, rows }) {
  const body = element("tbody");
  for (const cells of rows) body.append(renderRow("td", cells, aligns));
  return element("div", { className: "table", tabIndex: 0, role: "group", ariaLabel: "Table" },
    element("table", {}, element("thead", {}, renderRow("th", head, aligns)), body));
}

/** Makes the element of a table that of another one with the same head; false if it is none. */
function growTable(shown, before, block) {
  const headOf = ({ kind, head, aligns }) => kind === "table" && JSON.stringify([head, aligns]);
  if (!headOf(block) || headOf(block) !== headOf(before)) return false;
  const body = shown.firstChild.lastChild;
  const sourceOf = ({ rows }, index) => JSON.stringify(rows[index]);
  let same = 0; // mostly all but the last one
  while (same < before.rows.length && sourceOf(before, same) === sourceOf(block, same)) ++same;
  while (body.childNodes.length > same) body.lastChild.remove();
  for (const cells of block.rows.slice(same)) body.append(renderRow("td", cells, block.aligns));
  return true;
}

// ---- Within a line

const PLAIN = /(?:[^\\`*_~[!<\nh]|h(?!ttps?:\/\/))+/y;
const ADDRESS = /https?:\/\/[^\s<>"`]+/y;
const ANGLED_ADDRESS = /<((?:https?:\/\/|mailto:)[^\s<>]+)>/y;
// Blanks are few, as each of three places for them would be tried with each number.
const TARGET = /\(\s{0,9}(?:<([^<>\n]*)>|([^\s()<]*(?:\([^\s()]*\)[^\s()]*)*))(?:\s{1,9}"[^"\n]*")?\s{0,9}\)/y;
const ENDS_OF_SENTENCES = ".,;:!?'*_~]";
const isWord = (character) => character !== undefined && /[\p{L}\p{N}_]/u.test(character);
const isSpace = (character) => character === undefined || /\s/.test(character);

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function withInline(parent, text, depth = 0, isLink = false) {
  let plain = "";
  const unclosed = new Set(); // marks that do not come again, so that each is looked for once
  for (let at = 0; at < text.length;) {
    const run = matchAt(PLAIN, text, at);
    if (run) {
      plain += run[0];
      at = PLAIN.lastIndex;
      continue;
    }
    const found = depth < MAX_DEPTH ? matchInline(text, at, unclosed, depth, isLink) : null;
    if (!found) {
      plain += text[at++];
    } else {
      if (found.text !== undefined) plain += found.text;
      else {
        parent.append(plain, found.node);
        plain = "";
      }
      at = found.end;
    }
  }
  parent.append(plain);
  return parent;
}

function matchInline(text, at, unclosed, depth, isLink) {
  switch (text[at]) {
    case "\\":
      if (/[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return { text: text[at + 1], end: at + 2 };
      return text[at + 1] === "\n" ? { text: "", end: at + 1 } : null;
    case "\n": return { node: element("br"), end: at + 1 }; // as chats mean it
    case "`": return matchCode(text, at, unclosed);
    case "*": case "_": case "~": return matchEmphasis(text, at, unclosed, depth, isLink);
    case "[": return isLink ? null : matchLink(text, at, depth);
    case "!": return text[at + 1] === "[" && !isLink ? matchLink(text, at + 1, depth, "image") : null;
    case "<": {
      const line = matchAt(/<br\s*\/?>/iy, text, at);
      if (line) return { node: element("br"), end: at + line[0].length };
      const angled = isLink ? null : matchAt(ANGLED_ADDRESS, text, at);
      return angled && makeLink(angled[1], [angled[1]], at + angled[0].length);
    }
    default: { // an address as it stands, without what ends the sentence around it
      if (isLink || isWord(text[at - 1])) return null;
      let [address] = matchAt(ADDRESS, text, at) ?? [""];
      let length = address.length; // not by a pattern, which would begin at each of them
      while (length > 0 && ENDS_OF_SENTENCES.includes(address[length - 1])) --length;
      address = address.slice(0, length);
      if (address.endsWith(")") && !address.includes("(")) address = address.slice(0, -1);
      return address && makeLink(address, [address], at + address.length);
    }
  }
}

function matchCode(text, at, unclosed) {
  const [ticks] = matchAt(/`+/y, text, at);
  const start = at + ticks.length;
  if (!unclosed.has(ticks)) {
    for (const close of text.slice(start).matchAll(/`+/g)) {
      if (close[0] !== ticks) continue;
      const code = text.slice(start, start + close.index).replaceAll("\n", " ");
      const isPadded = code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "";
      const node = element("code", {}, isPadded ? code.slice(1, -1) : code);
      return { node, end: start + close.index + ticks.length };
    }
    unclosed.add(ticks);
  }
  return { text: ticks, end: start };
}

function matchEmphasis(text, at, unclosed, depth, isLink) {
  const mark = text[at];
  const [run] = matchAt(mark === "*" ? /\*+/y : mark === "_" ? /_+/y : /~+/y, text, at);
  const literal = { text: run, end: at + run.length };
  if (isSpace(text[literal.end]) || (mark === "_" && isWord(text[at - 1])) || run.length > 3) return literal;
  if (mark === "~" && run.length !== 2) return literal;
  const key = mark + run.length;
  const end = unclosed.has(key) ? -1 : findClose(text, literal.end, mark, run.length);
  if (end < 0) {
    unclosed.add(key);
    return literal;
  }
  const inner = text.slice(literal.end, end);
  const wrap = (name) => withInline(element(name), inner, depth + 1, isLink);
  const node = mark === "~" ? wrap("s") : run.length === 1 ? wrap("em") : run.length === 2 ? wrap("strong")
    : element("strong", {}, wrap("em"));
  return { node, end: end + run.length };
}

/** Where `count` marks close what began before `start`: behind a character, and not within code. */
function findClose(text, start, mark, count) {
  const marks = mark === "*" ? /\\.|`[^`]*`|\*+/gs : mark === "_" ? /\\.|`[^`]*`|_+/gs : /\\.|`[^`]*`|~+/gs;
  marks.lastIndex = start;
  for (let match; (match = marks.exec(text));) {
    const length = match[0].length;
    if (match[0][0] !== mark || isSpace(text[match.index - 1])) continue;
    if (mark === "_" && isWord(text[match.index + length])) continue;
    if (length === count || length === 3) return match.index + length - count;
  }
  return -1;
}

function matchLink(text, at, depth, fallback = "") {
  if (!text.slice(at, at + MAX_LABEL + 1).includes("](")) return null;
  let open = 0;
  let close = at;
  for (const limit = Math.min(text.length, at + MAX_LABEL); close < limit; ++close) {
    if (text[close] === "\\") ++close;
    else if (text[close] === "[") ++open;
    else if (text[close] === "]" && --open === 0) break;
  }
  const target = open === 0 && text[close] === "]" ? matchAt(TARGET, text, close + 1) : null;
  if (!target) return null;
  const label = withInline(element("span"), text.slice(at + 1, close) || fallback, depth + 1, true);
  return makeLink(target[1] ?? target[2], label.childNodes, close + 1 + target[0].length);
}

/** Null where the address may not be followed; then what was written stays to be seen. */
function makeLink(address, children, end) {
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  if (!PROTOCOLS.has(url.protocol)) return null;
  const link = element("a", { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer nofollow" });
  link.append(...children);
  return { node: link, end };
}
