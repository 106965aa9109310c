// Brokers with their roles and figures, name servers and controllers.

import { get } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { bytes, number, percent, rate, time } from "../../core/format.js";
import { link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { badge, button, card, pageHead, usage, when } from "../../parts/bits.js";
import { sparkline } from "../../parts/chart.js";
import { openDialog } from "../../parts/dialog.js";
import { Table, localSource } from "../../parts/table.js";

export async function page(view) {
  view.title(t("page.cluster"));
  let cluster = null;
  const rows = (part) => () => cluster?.[part] ?? [];
  const tables = {
    brokers: new Table({
      label: t("brokers"),
      columns: brokerColumns(),
      source: localSource(rows("brokers"), (row) => `${row.name} ${row.cluster} ${row.address} ${row.version}`),
      rowKey: (row) => `${row.name}:${row.id}`,
      filter: t("cluster.filter"),
      remembers: true,
    }),
    name_servers: new Table({
      label: t("cluster.name_servers"),
      columns: serverColumns(),
      source: localSource(rows("name_servers")),
      rowKey: (row) => row.address,
    }),
    controllers: new Table({
      label: t("cluster.controllers"),
      columns: [...serverColumns(), { key: "is_leader", title: t("role"), cell: (row) => row.is_leader && badge(t("cluster.leader"), "good") }],
      source: localSource(rows("controllers")),
      rowKey: (row) => row.address,
    }),
  };
  const controllers = card(t("cluster.controllers"), tables.controllers.element);
  view.show(
    pageHead(t("page.cluster")),
    card(t("brokers"), tables.brokers.element),
    h("div.grid.wide", {}, nameServersCard(tables.name_servers), controllers),
  );
  await view.follow(async () => {
    cluster = await get("cluster");
    view.missing(cluster.incomplete);
    controllers.hidden = !cluster.controllers.length;
    await Promise.all(Object.values(tables).map((table) => table.load()));
  });
}

function nameServersCard(table) {
  const look = button(t("settings"), settingsDialog, { kind: "small", label: `${t("cluster.name_servers")}: ${t("settings")}` });
  return h("section.card", {}, h("div.card-head", {}, h("h2", {}, t("cluster.name_servers")), look), table.element);
}

async function settingsDialog() {
  let settings = [];
  const table = new Table({
    label: t("settings"),
    columns: [
      { key: "key", title: t("setting"), sort: true, cell: (row) => h("code.wrap", {}, row.key) },
      { key: "value", title: t("value"), sort: true, long: true, cell: (row) => h("code.wrap", {}, row.value || "–") },
    ],
    source: localSource(() => settings, (row) => `${row.key} ${row.value}`),
    rowKey: (row) => row.key,
    filter: t("broker.settings.filter"),
    sort: "key",
    size: 100,
  });
  const dialog = openDialog(t("cluster.name_servers"), () => table.element, { wide: true });
  try {
    settings = (await get("name-servers/settings")).rows;
    await table.load();
  } catch (error) {
    dialog.showProblem(error);
  }
}

function brokerColumns() {
  return [
    { key: "name", title: t("broker"), sort: true, cell: nameCell },
    { key: "is_master", title: t("role"), sort: true, cell: (row) => h("div", {}, roleCell(row), row.version && h("div.under", {}, row.version)) },
    { key: "put_tps", title: t("cluster.in"), sort: true, number: true, cell: (row) => rate(row.put_tps) },
    { key: "trend", title: t("trend"), cell: (row) => sparkline(row.put_trend, t("trend.tps", { name: row.name })) },
    { key: "get_tps", title: t("cluster.out"), sort: true, number: true, cell: (row) => rate(row.get_tps) },
    { key: "put_today", title: t("cluster.today"), sort: true, number: true, cell: (row) => number(row.put_today) },
    { key: "disk_ratio", title: t("overview.disk"), sort: true, cell: diskCell },
    { key: "slave_lag_bytes", title: t("cluster.replication"), sort: true, cell: replicationCell },
    { key: "earliest_message_ms", title: t("cluster.oldest.short"), sort: true, cell: (row) => when(row.earliest_message_ms) },
  ];
}

function nameCell(row) {
  return h("div", {}, h("a.wrap", { href: link("cluster", row.name, { id: row.id }) }, row.id ? `${row.name} · ${row.id}` : row.name), h("div.under", {}, `${row.cluster} · ${row.address}`));
}

export function roleCell(row) {
  if (!row.answers) {
    return badge(t("cluster.silent"), "bad", row.silent_since_ms ? t("missing.since", { time: time(row.silent_since_ms) }) : null);
  }
  return badge(t(row.is_master ? "cluster.master" : "cluster.slave"), row.is_master ? "good" : "");
}

function diskCell(row) {
  if (row.disk_ratio === null) return "–";
  return h("span", {}, usage(row.disk_ratio), ` ${percent(row.disk_ratio)}`);
}

function replicationCell(row) {
  if (row.in_sync === false) return badge(t("cluster.out_of_sync"), "warn");
  if (row.in_sync) return badge(t("cluster.in_sync"), "good");
  if (row.slave_lag_bytes === null) return "–";
  return row.slave_lag_bytes === 0 ? badge(t("cluster.in_sync"), "good") : t("cluster.behind", { bytes: bytes(row.slave_lag_bytes) });
}

function serverColumns() {
  return [
    { key: "address", title: t("address"), sort: true, cell: (row) => h("code", {}, row.address) },
    { key: "answers", title: t("state"), cell: (row) => (row.answers ? badge(t("cluster.answers"), "good") : badge(t("cluster.silent"), "bad")) },
    { key: "problem", title: t("cluster.problem"), long: true },
  ];
}
