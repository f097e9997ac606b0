// The settings, which are kept in the browser; and what the next request is to say of them.

const STORE = "soliton.settings";
const KEY_STORE = "soliton.key"; // of this tab alone
const THEMES = ["auto", "light", "dark"];
const isNarrow = () => matchMedia("(max-width: 56rem)").matches;
const find = (id) => document.getElementById(id);

export class Settings {
  #panel = find("settings");
  #form = find("settings-form");
  #opener = find("open-settings");
  #theme = "auto";

  constructor() {
    this.#read();
    this.#form.addEventListener("input", () => this.#keep());
    this.#form.addEventListener("submit", (event) => event.preventDefault());
    this.#opener.addEventListener("click", () => this.show(this.#panel.hidden));
    find("close-settings").addEventListener("click", () => this.show(false));
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.show(false);
    });
    matchMedia("(max-width: 56rem)").addEventListener("change", () => this.#coverChat());
    find("reset-settings").addEventListener("click", () => {
      this.#form.reset();
      this.#keep();
    });
    find("theme").addEventListener("click", () => {
      this.#theme = THEMES[(THEMES.indexOf(this.#theme) + 1) % THEMES.length];
      this.#showTheme();
      this.#keep();
    });
    this.#showTheme();
  }

  get key() { return this.#form.elements.key.value; }
  get system() { return this.#form.elements.system.value; }

  show(isShown, field = null) {
    this.#panel.hidden = !isShown;
    this.#opener.setAttribute("aria-expanded", isShown);
    this.#coverChat();
    if (!isShown) return this.#opener.focus();
    (field ?? this.#panel.querySelector("fieldset:not([hidden]) :is(input, textarea)")).focus();
  }

  askForKey() {
    find("key-fields").hidden = false;
    this.show(true, this.#form.elements.key);
  }

  /** Says so of a model without a chat template. */
  takeNoInstructions() { find("system-hint").hidden = false; }

  /** What a request says beside its messages; null, and the field is shown, if one is not as it should be. */
  request() {
    const wrong = [...this.#form.elements].find((field) => field.willValidate && !field.checkValidity());
    if (wrong) {
      this.show(true, wrong);
      wrong.reportValidity();
      return null;
    }
    const body = {};
    for (const { name, type, value } of this.#form.elements) {
      if (type === "number" && value !== "") body[name] = Number(value);
    }
    body.logprobs = this.#form.elements.logprobs.checked;
    if (!body.logprobs) delete body.logprobs;
    if (!body.logprobs || !body.top_logprobs) delete body.top_logprobs;
    const stops = this.#form.elements.stop.value.split("\n").filter((line) => line !== "");
    if (stops.length) body.stop = stops.map((line) => line.replaceAll("\\n", "\n"));
    return body;
  }

  #coverChat() {
    document.querySelector("main").inert = !this.#panel.hidden && isNarrow();
  }

  #showTheme() {
    const button = find("theme");
    document.documentElement.dataset.theme = this.#theme;
    button.textContent = this.#theme[0].toUpperCase() + this.#theme.slice(1);
    button.ariaLabel = button.title = `Theme: ${this.#theme}`;
  }

  #read() {
    try {
      const { theme, ...values } = JSON.parse(localStorage.getItem(STORE)) ?? {};
      if (THEMES.includes(theme)) this.#theme = theme;
      for (const field of this.#form.elements) {
        if (!(field.name in values) || field.name === "") continue;
        if (field.type === "checkbox") field.checked = values[field.name] === true;
        else field.value = values[field.name];
      }
      this.#form.elements.key.value = sessionStorage.getItem(KEY_STORE) ?? "";
      find("key-fields").hidden = this.key === "";
    } catch { /* what is not readable is as if it were not there */ }
  }

  #keep() {
    const values = { theme: this.#theme };
    for (const { name, type, checked, value } of this.#form.elements) {
      if (name && name !== "key") values[name] = type === "checkbox" ? checked : value;
    }
    try {
      localStorage.setItem(STORE, JSON.stringify(values));
      sessionStorage.setItem(KEY_STORE, this.key);
    } catch { /* a browser that keeps nothing */ }
  }
}
