// Small parts without a state of their own.

import { h } from "../core/dom.js";
import { ago, number, time } from "../core/format.js";
import { t } from "../core/texts.js";
import { icon } from "./icons.js";

/** @param tone bad, warn, good, info, or nothing */
export function badge(text, tone = "", title = null) {
  return h(`span.badge${tone ? `.${tone}` : ""}`, { title }, text);
}

export function button(text, onclick, { kind = "", iconName = "", disabled = false, title = null, label = null } = {}) {
  const classes = kind ? `.${kind.split(" ").join(".")}` : "";
  return h(
    `button.button${classes}`,
    { type: "button", onclick, disabled, title, aria: { label } },
    iconName && icon(iconName),
    text,
  );
}

export function card(title, ...content) {
  return h("section.card", {}, title && h("div.card-head", {}, h("h2", {}, title)), ...content);
}

export function cardWithBody(title, ...content) {
  return card(title, h("div.card-body", {}, ...content));
}

export function facts(pairs) {
  return h(
    "dl.facts",
    {},
    pairs
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))),
  );
}

export function figure(label, value, { note = "", href = null, tone = "" } = {}) {
  return h(
    href ? "a.card.figure-card" : "div.card.figure-card",
    { href },
    h("div.label", {}, label),
    h(`div.value${tone ? `.${tone}-text` : ""}`, {}, value),
    note && h("div.note", {}, note),
  );
}

export function empty(title, text = "", ...actions) {
  return h("div.empty", {}, h("strong", {}, title), text && h("p", {}, text), ...actions);
}

const NOTICE_ICONS = { bad: "dead", warn: "dead", good: "check", info: "info" };

export function notice(tone, ...content) {
  return h(`div.notice.${tone}`, {}, icon(NOTICE_ICONS[tone]), h("div", {}, ...content));
}

/** What happened and, if the server knows, what to do. */
export function errorNotice(error) {
  return notice("bad", h("div", {}, error.message), error.hint && h("div.muted", {}, error.hint));
}

/** A time as words, the exact one when pointed at. */
export function when(milliseconds) {
  if (!milliseconds) return h("span.muted", {}, "–");
  return h("time", { datetime: new Date(milliseconds).toISOString(), title: time(milliseconds, { withMillis: true }) }, ago(milliseconds));
}

export function moment(milliseconds) {
  if (!milliseconds) return h("span.muted", {}, "–");
  return h("time", { datetime: new Date(milliseconds).toISOString(), title: ago(milliseconds) }, time(milliseconds));
}

/** Text with a button that copies it. */
export function copyable(text) {
  const copy = h(
    "button.button.quiet.small",
    {
      type: "button",
      title: t("copy"),
      aria: { label: t("copy.what", { what: text }) },
      onclick: async () => {
        await navigator.clipboard.writeText(text);
        copy.replaceChildren(icon("check"));
      },
    },
    icon("copy"),
  );
  return h("span.copyable", {}, h("code.wrap", {}, text), copy);
}

export function usage(ratio, { warnAt = 0.75, badAt = 0.9 } = {}) {
  const tone = ratio >= badAt ? ".bad" : ratio >= warnAt ? ".warn" : "";
  const filled = h("i", { style: { width: `${Math.min(100, Math.round(ratio * 100))}%` } });
  return h(`span.bar${tone}`, { aria: { hidden: "true" } }, filled);
}

export function pageHead(title, { crumbs = [], about = "", badges = [], actions = [] } = {}) {
  return h(
    "header.page-head",
    {},
    h(
      "div.column",
      {},
      crumbs.length > 0 && h("div.crumbs", {}, crumbs.map(([text, href]) => [h("a", { href }, text), " / "])),
      h("div.row", {}, h("h1", {}, title), ...badges),
      about && h("p.about", {}, about),
    ),
    h("div.row", {}, ...actions),
  );
}

/** One of several, shown side by side. */
export function segments(label, options, chosen, onchoose) {
  const buttons = options.map(([value, text]) =>
    h(
      "button",
      {
        type: "button",
        aria: { pressed: String(value === chosen) },
        onclick: () => {
          for (const [index, one] of buttons.entries()) one.setAttribute("aria-pressed", String(options[index][0] === value));
          onchoose(value);
        },
      },
      text,
    ),
  );
  return h("div.segments", { role: "group", aria: { label } }, buttons);
}

/** How many members a group has; a group without any stands out. */
export function membersCell(members) {
  return members === 0 ? badge(t("offline"), "warn") : number(members);
}
