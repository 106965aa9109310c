// The dead letters of one group: what they have in common, each one, and delivering them again to this group only.

import { address, get, path, post, remove } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { number } from "../../core/format.js";
import { go, link, remember } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, card, moment, notice, pageHead, when } from "../../parts/bits.js";
import { confirm, confirmByName } from "../../parts/dialog.js";
import { remarkText, remarkTexts } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";
import { toastOutcome } from "../../parts/toasts.js";

const DEAD_LETTER_PREFIX = "%DLQ%";

export async function page(view, [group], params) {
  view.title(`${group} · ${t("page.dead-letters")}`);
  let origin = params.origin ?? "";
  let last = null;
  let chosen = [];
  const head = h("div", {}, pageHead(group, { crumbs: [[t("page.dead-letters"), link("dead-letters")]] }));
  const note = h("p.muted");
  const resendSome = button(t("dead.resend.chosen"), () => resendChosen(group, chosen, done), { kind: "primary small", disabled: true });
  const kinds = new Table({
    label: t("dead.kinds"),
    columns: kindColumns(),
    source: localSource(() => last?.kinds ?? []),
    rowKey: (row) => `${row.origin_topic} ${row.reason.text}`,
    sort: "-count",
  });
  const letters = new Table({
    label: t("page.dead-letters"),
    columns: letterColumns(group),
    source: async (query) => {
      last = await get(path("dead-letters", group), { ...query, origin });
      await kinds.load();
      replace(head, headOf(group, last, origin, done));
      replace(note, [t("messages.scanned", { count: number(last.scanned) }), remarkTexts(last.notes)].filter(Boolean).join(" "));
      return last;
    },
    rowKey: (row) => row.id,
    filter: t("dead.filter"),
    extras: [resendSome],
    remembers: true,
    selecting: may("operator"),
    onselect: (rows) => {
      chosen = rows;
      resendSome.disabled = rows.length === 0;
      resendSome.textContent = rows.length ? t("dead.resend.some", { count: rows.length }) : t("dead.resend.chosen");
    },
    none: notice("good", t("dead.none_here")),
  });
  async function done() {
    await letters.restart();
  }
  function kindColumns() {
    const choose = (row) => {
      origin = origin === row.origin_topic ? "" : row.origin_topic;
      remember({ origin });
      letters.restart();
    };
    return [
      { key: "origin_topic", title: t("topic"), sort: true, cell: (row) => h("button.text-button", { type: "button", aria: { pressed: String(origin === row.origin_topic) }, onclick: () => choose(row) }, row.origin_topic) },
      { key: "reason", title: t("dead.reason"), long: true, cell: (row) => remarkText(row.reason) },
      { key: "count", title: t("messages"), sort: true, number: true, cell: (row) => number(row.count) },
      { key: "newest_ms", title: t("dead.newest"), sort: true, cell: (row) => when(row.newest_ms) },
    ];
  }
  view.show(head, card(t("dead.kinds"), kinds.element), card(t("dead.letters"), letters.element), note);
  await view.follow(() => letters.load(), { everySeconds: 30 });
}

function headOf(group, last, origin, done) {
  return pageHead(group, {
    crumbs: [[t("page.dead-letters"), link("dead-letters")]],
    badges: [badge(t("dead.count", { count: number(last.total) }), last.total ? "warn" : "good"), origin && badge(origin, "info"), h("a", { href: link("groups", group) }, t("dead.group"))],
    actions: [
      button(t("dead.resend.all"), () => resendAll(group, last, origin, done), { kind: "primary", disabled: !may("operator") || !last.total }),
      h("a.button", { href: address(path("dead-letters", group, "export"), { origin }), download: `${group}-dead-letters.jsonl` }, t("export")),
      button(t("delete.etc"), () => deleteAll(group, last), { disabled: !may("admin") || !last.total }),
    ],
  });
}

function letterColumns(group) {
  const href = (row) => link("messages", row.id, { topic: `${DEAD_LETTER_PREFIX}${group}` });
  return [
    { key: "died_ms", title: t("dead.died"), cell: (row) => h("a", { href: href(row) }, moment(row.died_ms)) },
    { key: "keys", title: t("keys"), cell: (row) => h("span.clip", { title: row.keys.join(" ") }, row.keys.join(" ")) },
    { key: "origin_topic", title: t("topic") },
    { key: "reason", title: t("dead.reason"), cell: (row) => h("span.clip", { title: remarkText(row.reason) }, remarkText(row.reason)) },
    { key: "preview", title: t("body"), cell: (row) => h("code.clip", {}, row.preview) },
  ];
}

function resendChosen(group, rows, done) {
  const names = rows.slice(0, 5).map((row) => h("li", {}, h("code.wrap", {}, row.keys.join(" ") || row.message_id)));
  confirm(t("dead.resend.title", { count: number(rows.length), group }), {
    text: h("div.column", {}, h("p", {}, t("dead.resend.text", { group })), h("ul", {}, names), rows.length > 5 && h("p.muted", {}, t("and_more", { count: rows.length - 5 }))),
    action: t("resend"),
    act: async () => {
      const outcome = await post(path("dead-letters", group, "resend"), { ids: rows.map((row) => row.id) });
      say(group, outcome);
      await done();
    },
  });
}

function resendAll(group, last, origin, done) {
  confirmByName(t("dead.resend.title", { count: number(last.total), group }), {
    name: group,
    text: t(origin ? "dead.resend.all.origin" : "dead.resend.all.text", { group, origin, count: number(last.total) }),
    action: t("resend"),
    act: async () => {
      const outcome = await post(path("dead-letters", group, "resend"), { all: true, origin, confirm: group });
      say(group, outcome);
      await done();
    },
  });
}

/** One line for all that went well, and each that did not. */
function say(group, { done, failed = [], notes = [] }) {
  toastOutcome(t("dead.resent", { count: number(done.length), group }), { failed, notes });
}

function deleteAll(group, last) {
  confirmByName(t("dead.delete.title", { group }), {
    name: group,
    text: t("dead.delete.text", { count: number(last.total) }),
    action: t("delete"),
    act: async () => {
      const outcome = await remove(path("dead-letters", group), { confirm: group });
      toastOutcome(t("dead.deleted", { group }), outcome);
      go(link("dead-letters"));
    },
  });
}
