/**
 * Keep the notebook's shortcuts out of the panels.
 *
 * A slider moves with the arrows, a button is pressed with Enter, and the arrows walk
 * through tokens; in a notebook all these are commands too, and Notebook 7 handles them
 * first. Lumino, which handles them there, ignores elements with this attribute.
 */

const ATTRIBUTE = "data-lm-suppress-shortcuts";
const PANEL = ".sampling-lab";
const TOKENS = "[role=listbox]";
const USED = new Set([
  ...["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"],
  ...["Home", "End", "PageUp", "PageDown", "Enter", " "],
]);

/** Return whether a panel uses a key that is pressed in it. */
function isForPanel({ altKey, ctrlKey, key, metaKey, shiftKey, target }) {
  if (altKey || ctrlKey || metaKey || (shiftKey && key === "Enter")) return false;
  // Among the tokens any letter might be meant for them: in the notebook x cuts a cell.
  return USED.has(key) || (key !== "Escape" && target.closest(TOKENS) !== null);
}

/** Mark or unmark the element that has the key event, before any other handler. */
function mark(event) {
  const target = event.target;
  if (target.closest?.(PANEL)) target.toggleAttribute(ATTRIBUTE, isForPanel(event));
}

// The window gets events first; a page listens once, for all its panels.
const LISTENS = Symbol.for("sampling-lab keys");

function listen() {
  if (window[LISTENS]) return;
  window[LISTENS] = true;
  window.addEventListener("keydown", mark, { capture: true });
}

export default { initialize: listen };
