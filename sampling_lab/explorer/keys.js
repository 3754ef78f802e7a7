/**
 * Keep the notebook's shortcuts out of the panels.
 *
 * A slider moves with the arrows and a button is pressed with Enter, but in a notebook
 * these, and every letter, are commands too; Notebook 7 even hears them first. Lumino,
 * which hears them there, lets an element with this attribute alone.
 */

const PANEL = ".sampling-lab";
const ATTRIBUTE = "data-lm-suppress-shortcuts";

/** Return whether a key is for the notebook: to save, to run or to leave a cell. */
function isForNotebook(event) {
  const { altKey, ctrlKey, key, metaKey, shiftKey } = event;
  return altKey || ctrlKey || metaKey || key === "Escape" || (shiftKey && key === "Enter");
}

/** Mark what a key is pressed in, or unmark it, before anyone else hears of it. */
function mark(event) {
  const target = event.target;
  if (target.closest?.(PANEL)) target.toggleAttribute(ATTRIBUTE, !isForNotebook(event));
}

// The window is the first to hear; each page listens once, however many panels it has.
const LISTENS = Symbol.for("sampling-lab keys");

function listen() {
  if (window[LISTENS]) return;
  window[LISTENS] = true;
  window.addEventListener("keydown", mark, { capture: true });
}

export default { initialize: listen };
