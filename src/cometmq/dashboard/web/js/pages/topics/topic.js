// One topic: how full and busy its queues are, who consumes it, and how brokers define it.

import { get, path } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { duration, number, rate } from "../../core/format.js";
import { link } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, card, empty, figure, membersCell, notice, pageHead, when } from "../../parts/bits.js";
import { historyCharts } from "../../parts/history.js";
import { Table, localSource } from "../../parts/table.js";
import { tabs } from "../../parts/tabs.js";
import { resetDialog } from "../groups/group_dialogs.js";
import { changeTopicDialog, deleteTopicDialog, sendDialog } from "./topic_dialogs.js";
import { permBadge } from "./topics.js";

export async function page(view, [name], params) {
  view.title(name);
  let topic = null;
  const head = h("div", {}, pageHead(name, { crumbs: [[t("page.topics"), link("topics")]] }));
  const figures = h("div.grid.tight");
  const series = `topic:${name}:tps`;
  const charts = historyCharts([{ title: t("topics.in"), series: { [series]: t("topics.in") }, format: rate }], {
    minutes: Number(params.minutes) || 60,
  });
  const rows = (part) => () => topic?.[part] ?? [];
  const reload = () => view.refresh();
  const tables = {
    queues: new Table({
      label: t("queues"),
      columns: queueColumns(),
      source: localSource(rows("queues"), undefined, { count: (row) => row.max_offset - row.min_offset }),
      rowKey: (row) => `${row.broker}:${row.queue_id}`,
    }),
    groups: new Table({
      label: t("groups"),
      columns: groupColumns(name, reload),
      source: localSource(rows("groups")),
      rowKey: (row) => row.name,
      sort: "-lag",
      none: empty(t("topics.no_groups"), t("topics.no_groups.text")),
    }),
    definitions: new Table({
      label: t("definitions"),
      columns: definitionColumns(),
      source: localSource(() => withAddresses(topic)),
      rowKey: (row) => row.broker,
    }),
  };
  const parts = tabs(name, [
    { key: "groups", title: t("groups"), build: () => card(null, tables.groups.element) },
    { key: "queues", title: t("queues"), build: () => card(null, tables.queues.element) },
    { key: "definitions", title: t("definitions"), build: () => card(null, tables.definitions.element) },
  ]);
  view.show(head, figures, charts.element, parts.element);

  await view.follow(async () => {
    topic = await get(path("topics", name));
    view.missing(topic.incomplete);
    replace(head, headOf(topic, reload), topic.definitions_differ && notice("warn", t("topics.differ")));
    replace(figures, figuresOf(topic));
    await Promise.all([...Object.values(tables).map((table) => table.load()), charts.load()]);
  });
}

function headOf(topic, reload) {
  const group = { retry: "groups", dead_letter: "dead-letters" }[topic.kind];
  const owner = topic.name.replace(/^%(RETRY|DLQ)%/, "");
  return pageHead(topic.name, {
    crumbs: [[t("page.topics"), link("topics")]],
    badges: [
      topic.kind !== "normal" && badge(t(`topics.kind.${topic.kind}`), "info"),
      topic.message_type && badge(topic.message_type),
      group && h("a", { href: link(group, owner) }, owner),
    ],
    actions: [
      h("a.button", { href: link("messages", { topic: topic.name }) }, t("topics.look")),
      button(t("send"), () => sendDialog(topic.name, reload), { kind: "primary", disabled: !may("operator") }),
      button(t("change.etc"), () => changeTopicDialog(topic, reload), { disabled: !may("operator") }),
      button(t("delete.etc"), () => deleteTopicDialog(topic), { disabled: !may("admin") }),
    ],
  });
}

function figuresOf(topic) {
  const lag = topic.groups.reduce((sum, one) => sum + (one.lag ?? 0), 0);
  return [
    figure(t("messages"), number(topic.messages)),
    figure(t("topics.in"), rate(topic.put_tps)),
    figure(t("groups"), number(topic.groups.length), { note: t("topics.lag_of_all", { lag: number(lag) }) }),
    figure(t("queues"), number(topic.queues.length), { note: t("topics.at_brokers", { count: topic.definitions.length }) }),
  ];
}

function queueColumns() {
  return [
    { key: "broker", title: t("broker"), sort: true, cell: (row) => h("a", { href: link("cluster", row.broker) }, row.broker) },
    { key: "queue_id", title: t("queue"), sort: true, number: true },
    { key: "count", title: t("messages"), sort: true, number: true, cell: (row) => number(row.max_offset - row.min_offset) },
    { key: "min_offset", title: t("offset.first"), sort: true, number: true, cell: (row) => number(row.min_offset) },
    { key: "max_offset", title: t("offset.end"), sort: true, number: true, cell: (row) => number(row.max_offset) },
    { key: "updated_ms", title: t("topics.updated"), sort: true, cell: (row) => when(row.updated_ms) },
  ];
}

function groupColumns(topic, reload) {
  const reset = (row) => resetDialog(row.name, { topics: [topic], topic }, reload);
  return [
    { key: "name", title: t("group"), sort: true, cell: (row) => h("a.wrap", { href: link("groups", row.name) }, row.name) },
    { key: "lag", title: t("lag"), sort: true, number: true, cell: (row) => number(row.lag) },
    { key: "lag_ms", title: t("behind"), sort: true, number: true, cell: (row) => duration(row.lag_ms) },
    { key: "members", title: t("members"), sort: true, number: true, cell: (row) => membersCell(row.members) },
    {
      key: "act",
      title: "",
      end: true,
      cell: (row) => button(t("reset.etc"), () => reset(row), { kind: "small", disabled: !may("operator"), label: t("reset.title", { name: row.name }) }),
    },
  ];
}

function definitionColumns() {
  const attributes = (row) => Object.entries(row.attributes).map(([key, value]) => `${key.replace(/^\+/, "")}=${value}`).join(", ");
  return [
    { key: "broker", title: t("broker"), sort: true, cell: (row) => h("a", { href: link("cluster", row.broker) }, row.broker) },
    { key: "cluster", title: t("cluster"), sort: true },
    { key: "addresses", title: t("addresses"), long: true, cell: (row) => row.addresses },
    { key: "write_queues", title: t("queues.write"), sort: true, number: true },
    { key: "read_queues", title: t("queues.read"), sort: true, number: true },
    { key: "perm", title: t("perm"), cell: (row) => permBadge(row.perm) },
    { key: "attributes", title: t("attributes"), long: true, cell: attributes },
  ];
}

/** What brokers define, with where name servers say they are. */
function withAddresses(topic) {
  const routes = new Map((topic?.route ?? []).map((one) => [one.broker, one.addresses]));
  return (topic?.definitions ?? []).map((row) => ({
    ...row,
    addresses: Object.entries(routes.get(row.broker) ?? {}).map(([id, address]) => `${id}: ${address}`).join(", ") || t("no_route"),
  }));
}
