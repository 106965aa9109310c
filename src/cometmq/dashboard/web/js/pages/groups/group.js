// One group: why it is behind, how far in each queue, who its members are, and what they subscribe to.

import { get, path } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { duration, number, rate, short } from "../../core/format.js";
import { link } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, card, empty, figure, moment, notice, pageHead } from "../../parts/bits.js";
import { historyCharts } from "../../parts/history.js";
import { noteRow } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";
import { tabs } from "../../parts/tabs.js";
import { clientDialog } from "./client_dialog.js";
import { deleteGroupDialog, groupSettingsDialog, resetDialog } from "./group_dialogs.js";

export async function page(view, [name], params) {
  view.title(name);
  let group = null;
  const head = h("div", {}, pageHead(name, { crumbs: [[t("page.groups"), link("groups")]] }));
  const stuck = h("div");
  const figures = h("div.grid.tight");
  const mismatches = h("div");
  const charts = historyCharts(
    [
      { title: t("lag"), series: { [`group:${name}:lag`]: t("lag") }, format: short },
      { title: t("groups.tps"), series: { [`group:${name}:tps`]: t("groups.tps") }, format: rate },
    ],
    { minutes: Number(params.minutes) || 60 },
  );
  const rows = (part) => () => group?.[part] ?? [];
  const tables = {
    queues: new Table({
      label: t("queues"),
      columns: queueColumns(),
      source: localSource(rows("queues"), (row) => `${row.topic} ${row.broker} ${row.owner ?? ""}`, { place: (row) => `${row.broker} ${row.queue_id}` }),
      rowKey: (row) => `${row.topic} ${row.broker}:${row.queue_id}`,
      filter: t("groups.queues.filter"),
      sort: "-lag",
      none: empty(t("groups.no_queues"), t("groups.no_queues.text")),
    }),
    members: new Table({
      label: t("members"),
      columns: memberColumns(name),
      source: localSource(rows("members")),
      rowKey: (row) => row.client_id,
      none: empty(t("groups.no_members"), t("groups.no_members.text")),
    }),
    subscriptions: new Table({
      label: t("subscriptions"),
      columns: subscriptionColumns(),
      source: localSource(rows("subscriptions")),
      rowKey: (row) => `${row.topic} ${row.expression}`,
      none: empty(t("groups.no_subscriptions"), t("groups.no_members.text")),
    }),
    settings: new Table({
      label: t("settings"),
      columns: definitionColumns(),
      source: localSource(rows("definitions")),
      rowKey: (row) => row.broker,
    }),
  };
  const parts = tabs(name, [
    { key: "queues", title: t("queues"), build: () => card(null, tables.queues.element) },
    { key: "members", title: t("members"), build: () => card(null, tables.members.element) },
    { key: "subscriptions", title: t("subscriptions"), build: () => [mismatches, card(null, tables.subscriptions.element)] },
    { key: "settings", title: t("settings"), build: () => card(null, tables.settings.element) },
  ]);
  view.show(head, stuck, figures, charts.element, parts.element);

  await view.follow(async () => {
    group = await get(path("groups", name));
    view.missing(group.incomplete);
    replace(head, headOf(group, () => view.refresh()));
    replace(stuck, stuckCard(group));
    stuck.hidden = !stuck.hasChildNodes();
    replace(figures, figuresOf(group));
    replace(mismatches, group.mismatches.length > 0 && notice("bad", h("div.strong", {}, t("groups.mismatch")), group.mismatches.map((one) => h("div", {}, one))));
    mismatches.hidden = !mismatches.hasChildNodes();
    await Promise.all([...Object.values(tables).map((table) => table.load()), charts.load()]);
  });
}

function headOf(group, reload) {
  const topics = topicsByLag(group);
  const reset = () => resetDialog(group.name, { topics, queues: group.queues }, reload);
  return pageHead(group.name, {
    crumbs: [[t("page.groups"), link("groups")]],
    badges: [
      group.online ? badge(t("online"), "good") : badge(t("offline"), "warn"),
      group.mode && badge(t(`mode.${group.mode}`)),
      group.mismatches.length > 0 && badge(t("groups.mismatch.short"), "bad"),
    ],
    actions: [
      group.dead_letters > 0 && h("a.button", { href: link("dead-letters", group.name) }, t("groups.dead_letters", { count: number(group.dead_letters) })),
      button(t("reset.etc"), reset, { kind: "primary", disabled: !may("operator") || !topics.length }),
      button(t("change.etc"), () => groupSettingsDialog(group, reload), { disabled: !may("operator") }),
      button(t("delete.etc"), () => deleteGroupDialog(group), { disabled: !may("admin") }),
    ],
  });
}

/** Where most waits first: that is the one to be reset. */
function topicsByLag({ queues }) {
  const lags = new Map();
  for (const { topic, lag } of queues) lags.set(topic, (lags.get(topic) ?? 0) + lag);
  return [...lags].sort(([, one], [, other]) => other - one).map(([topic]) => topic);
}

function stuckCard(group) {
  if (!group.stuck.length) return null;
  return h(
    "section.card",
    { id: "stuck" },
    h("div.card-head", {}, h("h2", {}, t("groups.stuck"))),
    h("ul", {}, group.stuck.map((note) => noteRow(note, { withLink: note.page !== link("groups", group.name) }))),
  );
}

function figuresOf(group) {
  return [
    figure(t("lag"), number(group.lag), { note: t("groups.in_flight", { count: number(group.in_flight) }) }),
    figure(t("behind"), duration(group.lag_ms), { note: t("behind.note") }),
    figure(t("groups.tps"), rate(group.tps)),
    figure(t("members"), number(group.members.length)),
    figure(t("page.dead-letters"), number(group.dead_letters), { href: link("dead-letters", group.name), tone: group.dead_letters ? "warn" : "" }),
  ];
}

function queueColumns() {
  return [
    { key: "topic", title: t("topic"), sort: true, cell: (row) => h("a.wrap", { href: link("topics", row.topic) }, row.topic) },
    { key: "place", title: t("queue"), sort: true, cell: (row) => `${row.broker} : ${row.queue_id}` },
    { key: "lag", title: t("lag"), sort: true, number: true, cell: (row) => h(row.lag > 0 ? "b" : "span.muted", {}, number(row.lag)) },
    { key: "lag_ms", title: t("behind"), sort: true, number: true, cell: (row) => duration(row.lag_ms) },
    { key: "consumer_offset", title: t("groups.position"), sort: true, number: true, cell: (row) => `${number(row.consumer_offset)} / ${number(row.broker_offset)}` },
    { key: "consumed_ms", title: t("groups.consumed"), sort: true, cell: (row) => moment(row.consumed_ms) },
    { key: "owner", title: t("groups.owner"), sort: true, cell: (row) => (row.owner ? h("span.clip.narrow", { title: row.owner }, row.owner) : h("span.muted", {}, t("nobody"))) },
    { key: "act", title: "", end: true, cell: (row) => lookLink(row) },
  ];
}

/** What the group has to consume next in this queue. */
function lookLink(row) {
  if (!row.lag) return null;
  const place = { topic: row.topic, broker: row.broker, queue_id: row.queue_id, begin_ms: row.consumed_ms || undefined };
  return h("a", { href: link("messages", place), aria: { label: t("groups.look.label", { queue: `${row.topic} ${row.broker}:${row.queue_id}` }) } }, t("groups.look"));
}

function memberColumns(group) {
  return [
    { key: "client_id", title: t("client"), sort: true, long: true, cell: (row) => h("code.wrap", {}, row.client_id) },
    { key: "address", title: t("address"), sort: true },
    { key: "language", title: t("language.client"), sort: true },
    { key: "version", title: t("version"), sort: true },
    { key: "queues", title: t("queues"), sort: true, number: true, cell: (row) => number(row.queues) },
    {
      key: "act",
      title: "",
      end: true,
      cell: (row) => button(t("client.look"), () => clientDialog(group, row.client_id), { kind: "small", label: `${t("client.look")}: ${row.client_id}` }),
    },
  ];
}

function subscriptionColumns() {
  return [
    { key: "topic", title: t("topic"), sort: true, cell: (row) => h("a.wrap", { href: link("topics", row.topic) }, row.topic) },
    { key: "expression", title: t("filter"), sort: true, long: true, cell: (row) => h("code", {}, row.expression) },
    { key: "expression_type", title: t("filter.type"), sort: true },
  ];
}

function definitionColumns() {
  const yes = (value) => (value ? t("yes") : t("no"));
  return [
    { key: "broker", title: t("broker"), sort: true },
    { key: "enabled", title: t("groups.enabled"), cell: (row) => (row.enabled ? t("yes") : badge(t("no"), "bad")) },
    { key: "orderly", title: t("groups.orderly"), cell: (row) => yes(row.orderly) },
    { key: "broadcast", title: t("groups.broadcast"), cell: (row) => yes(row.broadcast) },
    { key: "retries", title: t("groups.retries"), number: true },
    { key: "retry_queues", title: t("groups.retry_queues"), number: true },
    { key: "timeout_minutes", title: t("groups.timeout"), number: true },
  ];
}
