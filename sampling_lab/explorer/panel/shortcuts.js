/**
 * Keep the notebook's shortcuts out of the panels.
 *
 * A slider moves with the arrows, a button is pressed with Enter, and the arrows walk
 * through tokens; in a notebook all these are commands too, and Notebook 7 hears them
 * first. Lumino, which hears them there, lets an element with this attribute alone.
 */

const ATTRIBUTE = "data-lm-suppress-shortcuts";
const PANEL = ".sampling-lab";
const TOKENS = "[role=listbox]";
const USED = new Set([
  ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"],
  ...["Home", "End", "PageUp", "PageDown", "Enter", " "],
]);

/** Return whether a key pressed in a panel is for the panel. */
function isForPanel({ altKey, ctrlKey, key, metaKey, shiftKey, target }) {
  if (altKey || ctrlKey || metaKey || (shiftKey && key === "Enter")) return false;
  // Among the tokens any letter might be meant for them: in the notebook x cuts a cell.
  return USED.has(key) || (key !== "Escape" && target.closest(TOKENS) !== null);
}

/** Mark what a key is pressed in, or unmark it, before anyone else hears of it. */
function mark(event) {
  const target = event.target;
  if (target.closest?.(PANEL)) target.toggleAttribute(ATTRIBUTE, isForPanel(event));
}

// The window is the first to hear; each page listens once, however many panels it has.
const LISTENS = Symbol.for("sampling-lab keys");

function listen() {
  if (window[LISTENS]) return;
  window[LISTENS] = true;
  window.addEventListener("keydown", mark, { capture: true });
}

export default { initialize: listen };
