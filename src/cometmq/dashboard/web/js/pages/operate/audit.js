// Who changed what, from where, and how it ended.

import { get } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { session } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, card, empty, errorNotice, moment, pageHead } from "../../parts/bits.js";
import { Table } from "../../parts/table.js";

const TONES = { done: "good", partly: "warn" };

export async function page(view) {
  view.title(t("page.audit"));
  if (session.role !== "admin") return view.show(pageHead(t("page.audit")), errorNotice({ message: t("admins_only") }));
  const table = new Table({
    label: t("page.audit"),
    columns: [
      { key: "at_ms", title: t("time"), cell: (row) => moment(row.at_ms) },
      { key: "user", title: t("audit.user"), cell: (row) => h("span", {}, row.user || t("audit.anybody"), " ", row.role && badge(t(`role.${row.role}`))) },
      { key: "peer", title: t("audit.peer") },
      { key: "action", title: t("audit.action"), cell: (row) => h("span.strong", {}, row.action) },
      { key: "target", title: t("audit.target"), long: true, cell: (row) => h("code.wrap", {}, targetText(row.target)) },
      { key: "result", title: t("audit.result"), long: true, cell: (row) => badge(row.result, TONES[row.result] ?? "bad") },
    ],
    source: (query) => get("audit", query),
    rowKey: (row) => `${row.at_ms} ${row.action} ${row.user}`,
    filter: t("audit.filter"),
    remembers: true,
    none: empty(t("audit.none"), t("audit.none.text")),
  });
  view.show(pageHead(t("page.audit"), { about: t("audit.about") }), card(null, table.element));
  return view.follow(() => table.load());
}

function targetText(target) {
  return Object.entries(target)
    .map(([key, value]) => `${key}=${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(" ");
}
