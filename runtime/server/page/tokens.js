// An answer as its tokens, coloured by how likely each was. The arrow keys walk from one to the next, which shows the
// number that pointing at it shows.
import { element } from "./markdown.js";

const SHADES = [[0.9, "likely"], [0.5, "fair"], [0.2, "unsure"], [0.05, "rare"], [0, "odd"]];
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
const tip = document.getElementById("tip");
const shown = new WeakMap(); // tokens of elements

const percent = (logprob) => {
  const value = 100 * Math.exp(logprob);
  return value >= 10 || value === 0 ? `${value.toFixed(1)} %` : `${value.toPrecision(2)} %`;
};

/** An element that shows `node.tokens` as far as they have come, whenever its update() is called. */
export function tokenView(node) {
  const ariaLabel = "Tokens by probability; the arrow keys walk through them";
  const list = element("div", { className: "tokens", role: "group", ariaLabel });
  list.addEventListener("keydown", (event) => {
    if (!(event.key in STEPS) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const all = [...list.children];
    const to = all.indexOf(event.target) + STEPS[event.key];
    all[Math.max(0, Math.min(all.length - 1, to))]?.focus();
  });
  list.addEventListener("focusin", ({ target }) => {
    list.querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
    target.tabIndex = 0;
    showTip(target);
  });
  list.addEventListener("pointerover", ({ target }) => showTip(target));
  list.addEventListener("focusout", hideTip);
  list.addEventListener("pointerleave", hideTip);
  const update = () => {
    const added = node.tokens.slice(list.childElementCount).map((token, i) => {
      const isFirst = list.childElementCount + i === 0;
      const [, shade] = SHADES.find(([least]) => Math.exp(token.logprob) >= least) ?? SHADES.at(-1);
      const made = element("span", { className: shade, tabIndex: isFirst ? 0 : -1 }, token.text);
      made.setAttribute("aria-describedby", "tip");
      shown.set(made, token);
      return made;
    });
    list.append(...added);
  };
  return { element: element("div", {}, list, legend()), update };
}

function legend() {
  const label = { likely: "90 % and more", fair: "50 %", unsure: "20 %", rare: "5 %", odd: "less" };
  const shades = SHADES.map(([, shade]) => element("span", { className: shade }, label[shade]));
  return element("p", { className: "legend" }, ...shades);
}

function showTip(target) {
  const token = shown.get(target);
  if (!token) return;
  const rows = token.best.map(([text, logprob]) =>
    element("tr", {}, element("td", {}, visible(text)), element("td", {}, percent(logprob))));
  tip.replaceChildren(element("strong", {}, percent(token.logprob)));
  if (rows.length) tip.append(element("table", {}, ...rows));
  tip.hidden = false;
  const at = target.getClientRects()[0] ?? target.getBoundingClientRect();
  const below = at.bottom + 6 + tip.offsetHeight <= innerHeight;
  tip.style.left = `${Math.max(8, Math.min(at.left, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${below ? at.bottom + 6 : at.top - 6 - tip.offsetHeight}px`;
}

export function hideTip() {
  tip.hidden = true;
}

/** Spaces and line ends as they can be seen. */
const visible = (text) => text.replaceAll(" ", "\u00b7").replaceAll("\n", "\u21b5") || "\u2205";
