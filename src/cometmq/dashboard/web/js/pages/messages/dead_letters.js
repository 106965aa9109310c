// Groups that gave up on messages: how many, since when, and whether they become more.

import { get } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { number } from "../../core/format.js";
import { link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { card, notice, pageHead, when } from "../../parts/bits.js";
import { sparkline } from "../../parts/chart.js";
import { Table, localSource } from "../../parts/table.js";

export async function page(view) {
  view.title(t("page.dead-letters"));
  let rows = [];
  const table = new Table({
    label: t("page.dead-letters"),
    columns: [
      { key: "group", title: t("group"), sort: true, cell: (row) => h("a.wrap", { href: link("dead-letters", row.group) }, row.group) },
      { key: "count", title: t("page.dead-letters"), sort: true, number: true, cell: (row) => h("b", {}, number(row.count)) },
      { key: "trend", title: t("trend"), cell: (row) => sparkline(row.trend, t("trend.dead", { name: row.group })) },
      { key: "updated_ms", title: t("dead.newest"), sort: true, cell: (row) => when(row.updated_ms) },
    ],
    source: localSource(() => rows, (row) => row.group),
    rowKey: (row) => row.group,
    filter: t("groups.filter"),
    remembers: true,
    sort: "-count",
    none: notice("good", t("dead.none")),
  });
  view.show(pageHead(t("page.dead-letters"), { about: t("dead.about") }), card(null, table.element));
  await view.follow(async () => {
    const answer = await get("dead-letters");
    view.missing(answer.incomplete);
    rows = answer.rows;
    await table.load();
  });
}
