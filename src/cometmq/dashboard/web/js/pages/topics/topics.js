// All topics: which there are, how big and how busy they are; and a new one.

import { get } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { number, rate } from "../../core/format.js";
import { link, remember } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, empty, pageHead, segments, when } from "../../parts/bits.js";
import { sparkline } from "../../parts/chart.js";
import { Table } from "../../parts/table.js";
import { newTopicDialog } from "./topic_dialogs.js";

const KINDS = ["normal", "retry", "dead_letter", "system", "all"];

export async function page(view, _parts, params) {
  view.title(t("page.topics"));
  let kind = KINDS.includes(params.kind) ? params.kind : "normal";
  const table = new Table({
    label: t("page.topics"),
    columns: columns(),
    source: async (query) => {
      const answer = await get("topics", { ...query, kind: kind === "all" ? "" : kind });
      view.missing(answer.incomplete);
      return answer;
    },
    rowKey: (row) => row.name,
    filter: t("topics.filter"),
    extras: [
      segments(t("topics.kind"), KINDS.map((one) => [one, t(`topics.kind.${one}`)]), kind, (chosen) => {
        kind = chosen;
        remember({ kind: chosen });
        table.restart();
      }),
    ],
    remembers: true,
    sort: "name",
    none: empty(t("topics.none"), t("topics.none.text")),
  });
  const add = button(t("topics.new"), () => newTopicDialog(() => table.load()), { kind: "primary", iconName: "plus", disabled: !may("operator") });
  view.show(pageHead(t("page.topics"), { actions: [add] }), h("section.card", {}, table.element));
  await view.follow(() => table.load());
}

function columns() {
  return [
    { key: "name", title: t("topic"), sort: true, cell: (row) => h("a.wrap", { href: link("topics", row.name) }, row.name) },
    { key: "message_type", title: t("topics.type"), cell: (row) => typeBadge(row) },
    { key: "messages", title: t("messages"), sort: true, number: true, cell: (row) => number(row.messages) },
    { key: "tps", title: t("topics.in"), sort: true, number: true, cell: (row) => rate(row.tps) },
    { key: "trend", title: t("trend"), cell: (row) => sparkline(row.trend, t("trend.tps", { name: row.name })) },
    { key: "consumers", title: t("groups"), sort: true, number: true, cell: (row) => number(row.consumers) },
    { key: "write_queues", title: t("queues"), sort: true, number: true, cell: (row) => queuesText(row) },
    { key: "perm", title: t("perm"), cell: (row) => permBadge(row.perm) },
    { key: "updated_ms", title: t("topics.updated"), sort: true, cell: (row) => when(row.updated_ms) },
  ];
}

function typeBadge(row) {
  if (row.kind !== "normal") return badge(t(`topics.kind.${row.kind}`), "info");
  return row.message_type && row.message_type !== "NORMAL" ? badge(row.message_type) : h("span.muted", {}, t("topics.kind.normal"));
}

function queuesText(row) {
  return row.read_queues === row.write_queues ? number(row.write_queues) : t("topics.queues", { write: row.write_queues, read: row.read_queues });
}

export function permBadge(perm) {
  return badge(t(`perm.${perm}`), perm === "rw" ? "" : "warn");
}
