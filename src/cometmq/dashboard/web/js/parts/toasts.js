// Short notices at the edge of the page about what was done. They leave by themselves, except bad ones.

import { h } from "../core/dom.js";
import { t } from "../core/texts.js";
import { button, notice } from "./bits.js";
import { remarkText } from "./notes.js";

const SECONDS = 6;
const COUNT_MAX = 4;
const LINES_MAX = 4;

const place = h("div.toasts", { role: "status", aria: { live: "polite" } });

export function toast(tone, ...content) {
  if (!place.isConnected) document.body.append(place);
  while (place.children.length >= COUNT_MAX) place.firstElementChild.remove();
  const one = notice(tone, ...content);
  place.append(one);
  if (tone === "good") setTimeout(() => one.remove(), SECONDS * 1000);
  else one.append(button(t("close"), () => one.remove(), { kind: "quiet small" }));
}

/**
 * What a change did: the title says what, the lines where, and where not.
 * The server's `what` of each place is English, for callers of the API.
 */
export function toastOutcome(title, { done = [], failed = [], notes = [] } = {}) {
  const places = done.map((one) => one.where).filter(Boolean);
  const lines = [
    ...failed.slice(0, LINES_MAX).map((one) => `${one.where}: ${one.problem}`),
    places.length > 0 && t("done.where", { places: places.slice(0, LINES_MAX).join(", ") + (places.length > LINES_MAX ? " …" : "") }),
    ...notes.map(remarkText),
  ].filter(Boolean);
  const tone = failed.length ? "bad" : "good";
  toast(tone, h("div.strong.wrap", {}, title), lines.map((line) => h("div.muted.wrap", {}, line)));
}
