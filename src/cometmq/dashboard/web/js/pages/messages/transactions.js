// Transactions that are open: half messages whose producer has not said yet whether they count.

import { get } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { number } from "../../core/format.js";
import { link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { badge, card, moment, notice, pageHead, when } from "../../parts/bits.js";
import { remarkTexts } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";

const MANY_CHECKS = 3;

export async function page(view) {
  view.title(t("page.transactions"));
  let rows = [];
  const note = h("p.muted");
  const table = new Table({
    label: t("page.transactions"),
    columns: [
      { key: "stored_ms", title: t("transactions.since"), sort: true, cell: (row) => h("div", {}, moment(row.stored_ms), h("div.under", {}, when(row.stored_ms))) },
      { key: "topic", title: t("topic"), sort: true, cell: (row) => h("a.wrap", { href: link("topics", row.topic) }, row.topic) },
      { key: "keys", title: t("keys"), cell: (row) => h("span.clip", {}, row.keys.join(" ")) },
      { key: "producer_group", title: t("transactions.producer"), sort: true },
      { key: "checks", title: t("transactions.checks"), sort: true, number: true, cell: (row) => (row.checks >= MANY_CHECKS ? badge(number(row.checks), "warn") : number(row.checks)) },
      { key: "preview", title: t("body"), cell: (row) => h("code.clip", {}, row.preview) },
      { key: "message_id", title: t("message.id"), cell: (row) => h("code", {}, row.message_id) },
    ],
    source: localSource(() => rows, (row) => `${row.topic} ${row.keys.join(" ")} ${row.producer_group} ${row.message_id}`),
    rowKey: (row) => row.message_id,
    filter: t("delayed.filter"),
    remembers: true,
    sort: "stored_ms",
    none: notice("good", t("transactions.none")),
  });
  view.show(pageHead(t("page.transactions"), { about: t("transactions.about") }), card(null, table.element), note);
  await view.follow(async () => {
    const answer = await get("transactions", { size: 500 });
    view.missing(answer.incomplete);
    rows = answer.rows;
    replace(note, [t("messages.scanned", { count: number(answer.scanned) }), remarkTexts(answer.notes)].filter(Boolean).join(" "));
    await table.load();
  }, { everySeconds: 15 });
}
