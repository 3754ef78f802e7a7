// The page of the token strip: a listbox of chips, a choice of what shades them, and
// one line about the current token. All text is set as text, never as markup.

const LOG_LIMIT = 3; // powers of ten that ranks and counts are shaded over

// What can shade a chip: `share` is the depth of the shade (0 to 1), `low` and `high`
// are what its ends mean. Orange is "uncertain", blue is "likely".
const MEASURES = {
  surprisal: {
    name: "surprisal in bits (raw)",
    colour: "230 126 34",
    share: (bits) => (bits === null ? 1 : bits / 10),
    low: "0 bits",
    high: "10 bits or more",
  },
  raw: {
    name: "raw probability",
    colour: "0 114 178",
    share: (p) => p,
    low: "0",
    high: "1",
  },
  final: {
    name: "final probability",
    colour: "0 114 178",
    share: (p) => p,
    low: "0",
    high: "1",
  },
  rank: {
    name: "rank by raw logit",
    colour: "230 126 34",
    share: (rank) => Math.log10(rank) / LOG_LIMIT,
    low: "1",
    high: "1,000 or more (log scale)",
  },
  entropy: {
    name: "entropy in bits (final)",
    colour: "230 126 34",
    share: (bits) => bits / 8,
    low: "0 bits",
    high: "8 bits or more",
  },
  kept: {
    name: "kept count",
    colour: "230 126 34",
    share: (count) => Math.log10(count) / LOG_LIMIT,
    low: "1 token",
    high: "1,000 tokens or more (log scale)",
  },
};

const PROMPTS = ["hidden", "shown", "scored"].map((key) => [key, key]);

const HINT = "Point at a token, or use the arrow keys, to read it; a click or Enter selects.";
const MARK = /([␣⏎⇥]+)/; // the signs that stand for white space

function element(tag, name, text = "") {
  const made = document.createElement(tag);
  if (name) made.className = `sl-strip-${name}`;
  made.textContent = text;
  return made;
}

function hasModifier(event) {
  return event.ctrlKey || event.metaKey || event.altKey;
}

function probability(p) {
  if (p === 0) return "0";
  return p >= 0.001 ? p.toFixed(3) : p.toExponential(1);
}

function bits(value) {
  return value === null ? "∞ bits" : `${value.toFixed(2)} bits`;
}

/** Return the facts about a token, as [name, text] pairs. */
function facts(token) {
  const known = [
    ["id", String(token.id)],
    ["bytes", token.bytes || "none"],
  ];
  if (token.raw === undefined) return known;
  return [
    ...known,
    ["raw", probability(token.raw)],
    ["final", probability(token.final)],
    ["rank", token.rank.toLocaleString("en")],
    ["surprisal", bits(token.surprisal)],
    ["entropy", bits(token.entropy)],
    ["kept", token.kept.toLocaleString("en")],
  ];
}

/** Return what is special about a token, in words. */
function remarks(token, forks) {
  const found = [];
  if (token.step === undefined) found.push("prompt");
  if (token.given) found.push("chosen by hand");
  if (token.stop) found.push("stop token");
  if (forks.has(token.step)) found.push("forked here");
  return found;
}

/** All tokens: those that the kernel sent as a whole, and those appended since. */
class Tokens {
  constructor(model) {
    this.model = model;
    this.all = [...model.get("tokens")];
    this.listeners = new Set();
    model.on("change:tokens", () => this.replace());
    model.on("change:edition", () => this.replace());
    model.on("msg:custom", (message) => this.receive(message));
  }

  replace() {
    this.all = [...this.model.get("tokens")];
    this.notify(0);
  }

  receive(message) {
    if (message.kind !== "append") return;
    const have = this.all.length;
    if (message.at > have) {
      this.model.send({ kind: "resend" }); // some were lost on the way
      return;
    }
    this.all.push(...message.tokens.slice(have - message.at)); // some may be known
    if (this.all.length > have) this.notify(have);
  }

  notify(from) {
    for (const listener of this.listeners) listener(from);
  }
}

/** One view: the toolbar, the chips, and the line below them. */
class Strip {
  constructor(model, tokens, el) {
    Object.assign(this, { model, tokens });
    this.chips = [];
    this.current = 0; // the chip that Tab reaches
    this.pointed = null; // the chip under the pointer or the keyboard
    const measures = Object.entries(MEASURES).map(([key, { name }]) => [key, name]);
    this.select = this.choice("measure", measures);
    this.prompt = this.choice("prompt", PROMPTS);
    this.legend = element("span", "legend");
    this.list = this.listbox();
    this.readout = element("div", "readout");
    const bar = element("div", "bar");
    const [shade, prompt] = [element("label", "", "shade "), element("label", "", "prompt ")];
    shade.append(this.select);
    prompt.append(this.prompt);
    bar.append(shade, this.legend, prompt);
    this.root = element("div", "root");
    this.root.addEventListener("keydown", (event) => {
      // A plain key is for the strip: in the notebook x would cut a cell.
      if (!hasModifier(event)) event.stopPropagation();
    });
    this.root.append(bar, this.list, this.readout);
    el.append(this.root);
    this.listener = (from) => this.draw(from);
    tokens.listeners.add(this.listener);
    model.on("change:measure", () => this.shade());
    model.on("change:prompt", () => (this.prompt.value = model.get("prompt")));
    model.on("change:selected", () => this.showSelected());
    model.on("change:forks", () => this.showForks());
    this.draw(0);
  }

  close() {
    this.tokens.listeners.delete(this.listener);
    this.root.remove();
  }

  /** Return a drop-down for one of the kernel's traits. */
  choice(trait, choices) {
    const select = document.createElement("select");
    for (const [key, name] of choices) {
      const option = element("option", "", name);
      option.value = key;
      select.append(option);
    }
    select.value = this.model.get(trait);
    select.addEventListener("change", () => {
      this.model.set(trait, select.value);
      this.model.save_changes();
    });
    return select;
  }

  listbox() {
    const list = element("div", "list");
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Tokens");
    list.setAttribute("aria-orientation", "horizontal");
    const at = (event) => this.chips.indexOf(event.target.closest("[role=option]"));
    list.addEventListener("click", (event) => this.choose(at(event)));
    list.addEventListener("keydown", (event) => this.press(event));
    list.addEventListener("focusin", (event) => this.point(at(event)));
    list.addEventListener("pointerover", (event) => this.point(at(event)));
    list.addEventListener("pointerleave", () => this.point(-1));
    return list;
  }

  /** Show the tokens from an index on; those before it are drawn already. */
  draw(from) {
    const list = this.list;
    const follows = list.scrollHeight - list.scrollTop - list.clientHeight < 8;
    const hadFocus = from === 0 && list.contains(document.activeElement);
    if (from === 0) {
      list.replaceChildren();
      this.chips = [];
      this.pointed = null;
    }
    const made = document.createDocumentFragment();
    for (const token of this.tokens.all.slice(from)) {
      const chip = this.chip(token, this.chips.length);
      this.chips.push(chip);
      made.append(chip);
      if (token.breaks) made.append(document.createElement("br"));
    }
    list.append(made);
    list.classList.toggle("sl-strip-empty", this.chips.length === 0);
    this.shade(from);
    this.showForks(from);
    this.showSelected();
    if (hadFocus) this.chips[this.current]?.focus({ preventScroll: true });
    if (follows && from > 0) list.scrollTop = list.scrollHeight;
  }

  chip(token, index) {
    const chip = element("span", "chip");
    for (const part of token.text.split(MARK)) {
      if (part) chip.append(MARK.test(part) ? element("i", "mark", part) : part);
    }
    const before = this.tokens.all[index - 1];
    const isFirst = token.step !== undefined && before && before.step === undefined;
    chip.classList.toggle("sl-strip-prompt", token.step === undefined);
    chip.classList.toggle("sl-strip-first", Boolean(isFirst));
    chip.classList.toggle("sl-strip-given", Boolean(token.given));
    chip.classList.toggle("sl-strip-stop", Boolean(token.stop));
    chip.setAttribute("role", "option");
    chip.setAttribute("aria-selected", "false");
    if (token.step === undefined) chip.setAttribute("aria-disabled", "true");
    chip.tabIndex = -1;
    return chip;
  }

  shade(from = 0) {
    const key = this.model.get("measure");
    const measure = MEASURES[key];
    this.select.value = key;
    this.list.style.setProperty("--sl-colour", measure.colour);
    this.tokens.all.slice(from).forEach((token, index) => {
      const share = token.raw === undefined ? 0 : measure.share(token[key]);
      const depth = Math.min(1, Math.max(0, share)).toFixed(3);
      this.chips[from + index].style.setProperty("--sl-share", depth);
    });
    if (from > 0) return;
    const ramp = element("span", "ramp");
    ramp.style.setProperty("--sl-colour", measure.colour);
    const ends = [measure.low, measure.high].map((text) => element("span", "", text));
    this.legend.replaceChildren(ends[0], ramp, ends[1]);
  }

  showForks(from = 0) {
    const forks = new Set(this.model.get("forks"));
    this.forks = forks;
    this.tokens.all.slice(from).forEach((token, index) => {
      const chip = this.chips[from + index];
      chip.classList.toggle("sl-strip-forked", forks.has(token.step));
      const said = [token.text, ...remarks(token, forks)];
      chip.setAttribute("aria-label", said.join(", "));
    });
    this.read();
  }

  showSelected() {
    const selected = this.model.get("selected");
    const at = this.tokens.all.findIndex((token) => token.step === selected);
    if (at !== this.selectedAt || this.chips[at] !== this.selectedChip) {
      this.selectedChip?.setAttribute("aria-selected", "false");
      this.chips[at]?.setAttribute("aria-selected", "true");
    }
    [this.selectedAt, this.selectedChip] = [at, this.chips[at]];
    this.rove(at >= 0 ? at : Math.min(this.current, this.chips.length - 1));
    this.read();
  }

  /** Make one chip the one that Tab reaches. */
  rove(index) {
    for (const chip of [this.roving, this.chips[this.current]]) {
      if (chip) chip.tabIndex = -1;
    }
    this.current = Math.max(0, index);
    this.roving = this.chips[this.current];
    if (this.roving) this.roving.tabIndex = 0;
  }

  choose(index) {
    const step = this.tokens.all[index]?.step;
    if (step === undefined) return;
    this.rove(index);
    this.chips[index].focus({ preventScroll: true });
    this.setSelected(step);
  }

  setSelected(step) {
    this.model.set("selected", step);
    this.model.save_changes();
  }

  press(event) {
    if (hasModifier(event)) return;
    const last = this.chips.length - 1;
    const goals = {
      ArrowLeft: () => this.current - 1,
      ArrowRight: () => this.current + 1,
      ArrowUp: () => this.across(-1),
      ArrowDown: () => this.across(1),
      Home: () => 0,
      End: () => last,
    };
    if (event.key === "Enter" || event.key === " ") this.choose(this.current);
    else if (event.key === "Escape") this.setSelected(-1);
    else if (event.key in goals) this.go(Math.min(last, Math.max(0, goals[event.key]())));
    else return;
    event.preventDefault();
  }

  go(index) {
    this.rove(index);
    this.roving?.focus({ preventScroll: true });
    this.roving?.scrollIntoView({ block: "nearest" });
  }

  /** Return the chip on the line above (-1) or below (1) that is nearest. */
  across(direction) {
    const middle = (chip) => chip.offsetLeft + chip.offsetWidth / 2;
    const here = this.chips[this.current];
    let [best, line] = [this.current, null];
    for (let at = this.current + direction; this.chips[at]; at += direction) {
      const chip = this.chips[at];
      if (Math.abs(chip.offsetTop - here.offsetTop) < 4) continue;
      line ??= chip.offsetTop;
      if (Math.abs(chip.offsetTop - line) >= 4) break;
      const gap = (index) => Math.abs(middle(this.chips[index]) - middle(here));
      if (best === this.current || gap(at) < gap(best)) best = at;
    }
    return best;
  }

  point(index) {
    const focused = this.chips.indexOf(document.activeElement);
    const at = index >= 0 ? index : focused;
    this.pointed = at >= 0 ? at : null;
    this.read();
  }

  /** Show the facts of the token that is pointed at, else of the selected one. */
  read() {
    const token = this.tokens.all[this.pointed ?? this.selectedAt];
    if (!token) {
      this.readout.replaceChildren(element("span", "hint", HINT));
      return;
    }
    const place = token.step === undefined ? "prompt" : `step ${token.step + 1}`;
    const parts = [element("span", "place", place), element("b", "token", token.text)];
    for (const [name, text] of facts(token)) {
      const fact = element("span", "fact");
      fact.append(element("span", "name", name), ` ${text}`);
      parts.push(fact);
    }
    for (const text of remarks(token, this.forks)) {
      if (text !== "prompt") parts.push(element("span", "remark", text));
    }
    this.readout.replaceChildren(...parts);
  }
}

export default () => {
  let tokens;
  return {
    initialize({ model }) {
      tokens = new Tokens(model);
    },
    render({ model, el }) {
      const strip = new Strip(model, tokens, el);
      return () => strip.close();
    },
  };
};
