// Spark pipelines that run or ran, as they reported themselves.

import { get } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { number, rate } from "../../core/format.js";
import { link } from "../../core/router.js";
import { has, t } from "../../core/texts.js";
import { badge, card, empty, pageHead, when } from "../../parts/bits.js";
import { remarkTexts } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";

const TONES = { running: "good", failed: "bad", ended: "", silent: "warn" };

export async function page(view) {
  view.title(t("page.pipelines"));
  let rows = [];
  const note = h("p.muted");
  const table = new Table({
    label: t("page.pipelines"),
    columns: [
      { key: "name", title: t("name"), sort: true },
      { key: "state", title: t("state"), sort: true, cell: (row) => badge(has(`pipelines.${row.state}`) ? t(`pipelines.${row.state}`) : row.state, TONES[row.state] ?? "") },
      { key: "topic", title: t("topics"), sort: true, cell: (row) => topicLinks(row.topic) },
      { key: "lag", title: t("lag"), sort: true, number: true, cell: (row) => number(row.lag) },
      { key: "rows_per_second", title: t("pipelines.rows"), sort: true, number: true, cell: (row) => rate(row.rows_per_second) },
      { key: "reported_ms", title: t("pipelines.reported"), sort: true, cell: (row) => when(row.reported_ms) },
      { key: "last_error", title: t("pipelines.error"), long: true, cell: (row) => row.last_error && h("span.bad-text", {}, row.last_error) },
    ],
    source: localSource(() => rows),
    rowKey: (row) => row.name,
    filter: t("pipelines.filter"),
    remembers: true,
    sort: "name",
    none: empty(t("pipelines.none"), t("pipelines.none.text")),
  });
  view.show(pageHead(t("page.pipelines"), { about: t("pipelines.about") }), card(null, table.element), note);
  await view.follow(async () => {
    const answer = await get("pipelines");
    rows = answer.rows;
    replace(note, remarkTexts(answer.notes));
    await table.load();
  });
}

function topicLinks(topics) {
  return topics.split(", ").map((name, index) => [index > 0 && ", ", h("a", { href: link("topics", name) }, name)]);
}
