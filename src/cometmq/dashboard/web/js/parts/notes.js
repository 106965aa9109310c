// What the server found out (`Note`): a sentence, what to do about it, and the page where it is mended.

import { h } from "../core/dom.js";
import { bytes, duration, number, percent, time } from "../core/format.js";
import { has, t } from "../core/texts.js";
import { icon } from "./icons.js";

const LASTING_MS = 2000;
const ICONS = { error: "dead", warning: "dead", info: "info" };

export function noteRow(note, { withLink = true } = {}) {
  const [text, fix] = noteTexts(note);
  return h(
    `li.problem.${note.severity}`,
    {},
    icon(ICONS[note.severity] ?? "info"),
    h(
      "div",
      {},
      h("div", {}, h("span.hidden-text", {}, `${t(`severity.${note.severity}`)}: `), h("span.strong.wrap", {}, text)),
      fix && h("div.fix.wrap", {}, fix),
      isLasting(note) && h("div.muted", { title: time(note.since_ms) }, t("for.duration", { duration: duration(Date.now() - note.since_ms) })),
    ),
    withLink && note.page && h("a.button.small", { href: note.page, aria: { label: `${t("show")}: ${text}` } }, t("show")),
  );
}

/** What was found out just now, on request, has no age worth telling. */
function isLasting({ since_ms }) {
  return since_ms > 0 && Date.now() - since_ms >= LASTING_MS;
}

/** The server's own English is for callers of the API; the page has words with readable units in each language. */
export function noteTexts(note) {
  const key = `note.${note.code}`;
  if (!has(key)) return [note.text, note.fix];
  const params = readable(note.params);
  return [t(key, params), t(`${key}.fix`, params)];
}

/** Sentences of an answer (`Remark`), in the page's language. */
export function remarkText(remark) {
  const key = `remark.${remark.code}`;
  return has(key) ? t(key, readable(remark.params)) : remark.text;
}

export function remarkTexts(remarks) {
  return remarks.map(remarkText).join(" ");
}

function readable(params) {
  const show = (name, value) => {
    if (typeof value !== "number") return Array.isArray(value) ? value.join(", ") : value;
    if (name.endsWith("_ms")) return duration(value);
    if (name.endsWith("ratio")) return percent(value);
    if (name.endsWith("bytes")) return bytes(value);
    return number(value);
  };
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, show(name, value)]));
}
