// One broker: how busy it is, its settings with those that may change while it runs, and all that it tells about itself.

import { get, patch, path, post } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { bytes, number, percent, rate } from "../../core/format.js";
import { link } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, card, figure, notice, pageHead, segments, when } from "../../parts/bits.js";
import { actionDialog, confirmByName } from "../../parts/dialog.js";
import { Form } from "../../parts/fields.js";
import { historyCharts } from "../../parts/history.js";
import { Table, localSource } from "../../parts/table.js";
import { tabs } from "../../parts/tabs.js";
import { toastOutcome } from "../../parts/toasts.js";
import { roleCell } from "./cluster.js";

const SHOWN = ["all", "changed", "live"];

export async function page(view, [name], params) {
  const id = params.id ?? "0";
  view.title(name);
  let told = null;
  let settings = [];
  let shown = "all";
  const head = h("div", {}, pageHead(name, { crumbs: [[t("page.cluster"), link("cluster")]] }));
  const figures = h("div.grid.tight");
  const series = (figureName) => `broker:${name}:${figureName}`;
  const charts = historyCharts(
    [
      { title: t("overview.throughput"), series: { [series("put_tps")]: t("overview.in"), [series("get_tps")]: t("overview.out") }, format: rate },
      { title: t("overview.disk"), series: { [series("disk_ratio")]: t("overview.disk") }, format: percent },
    ],
    { minutes: Number(params.minutes) || 60 },
  );
  const wanted = { all: () => true, changed: (row) => row.is_default === false, live: (row) => row.change === "live" };
  const loadSettings = async () => {
    settings = (await get(path("brokers", name, id, "settings"))).rows;
    await settingsTable.load();
  };
  const settingsTable = new Table({
    label: t("settings"),
    columns: settingColumns((row) => settingDialog(name, id, row, loadSettings)),
    source: localSource(() => settings.filter(wanted[shown]), (row) => `${row.key} ${row.value} ${row.help}`),
    rowKey: (row) => row.key,
    filter: t("broker.settings.filter"),
    extras: [
      segments(t("broker.settings.show"), SHOWN.map((one) => [one, t(`broker.settings.${one}`)]), shown, (chosen) => {
        shown = chosen;
        settingsTable.restart();
      }),
    ],
    sort: "key",
    size: 100,
  });
  const runtimeTable = new Table({
    label: t("broker.runtime"),
    columns: [
      { key: "key", title: t("name"), sort: true, cell: (row) => h("code", {}, row.key) },
      { key: "value", title: t("value"), sort: true, long: true },
    ],
    source: localSource(() => Object.entries(told?.runtime ?? {}).map(([key, value]) => ({ key, value }))),
    rowKey: (row) => row.key,
    filter: t("broker.runtime.filter"),
    sort: "key",
    size: 100,
  });
  const parts = tabs(name, [
    { key: "settings", title: t("settings"), build: () => card(null, settingsTable.element) },
    { key: "runtime", title: t("broker.runtime"), build: () => card(null, runtimeTable.element) },
  ]);
  view.show(head, figures, charts.element, parts.element);
  // Settings are read once: while somebody reads them, they must not move.
  const once = loadSettings().catch((error) => replace(settingsTable.message, notice("bad", error.message)));
  await view.follow(async () => {
    told = await get(path("brokers", name, id));
    view.missing(told.incomplete);
    replace(head, headOf(told.broker, () => view.refresh()));
    replace(figures, figuresOf(told.broker));
    await Promise.all([runtimeTable.load(), charts.load()]);
  });
  await once;
}

function headOf(broker, reload) {
  const act = (allowed) => writePermission(broker.name, allowed, reload);
  return pageHead(broker.id ? `${broker.name} · ${broker.id}` : broker.name, {
    crumbs: [[t("page.cluster"), link("cluster")]],
    badges: [roleCell(broker), badge(broker.version), h("span.muted", {}, `${broker.cluster} · ${broker.address}`)],
    actions: broker.is_master
      ? [
          button(t("broker.drain"), () => act(false), { disabled: !may("admin") }),
          button(t("broker.undrain"), () => act(true), { disabled: !may("admin") }),
        ]
      : [button(t("broker.elect"), () => elect(broker, reload), { disabled: !may("admin") })],
  });
}

function figuresOf(broker) {
  return [
    figure(t("overview.in"), rate(broker.put_tps), { note: t("overview.today", { count: number(broker.put_today) }) }),
    figure(t("overview.out"), rate(broker.get_tps), { note: t("overview.today", { count: number(broker.get_today) }) }),
    figure(t("overview.disk"), percent(broker.disk_ratio), { tone: broker.disk_ratio > 0.85 ? "bad" : "" }),
    figure(t("cluster.oldest"), when(broker.earliest_message_ms)),
    broker.slave_lag_bytes !== null && figure(t("cluster.replication"), t("cluster.behind", { bytes: bytes(broker.slave_lag_bytes) })),
  ];
}

function settingColumns(change) {
  return [
    { key: "key", title: t("setting"), sort: true, cell: (row) => h("div", {}, h("code", {}, row.key), row.help && h("div.under.wrap.setting-help", {}, row.help)) },
    { key: "value", title: t("value"), sort: true, long: true, cell: (row) => h("span", {}, h("code.wrap", {}, row.value || "–"), row.is_default === false && [" ", badge(t("broker.settings.not_default"), "info", row.default && t("broker.settings.default", { value: row.default }))]) },
    { key: "change", title: t("broker.settings.change"), sort: true, cell: (row) => h("span.muted", {}, t(`change.${row.change}`)) },
    {
      key: "act",
      title: "",
      end: true,
      cell: (row) =>
        row.change !== "never" && button(t("change.etc"), () => change(row), { kind: "small", disabled: !may("admin"), label: `${t("change")}: ${row.key}` }),
    },
  ];
}

function settingDialog(name, id, setting, done) {
  const form = new Form();
  const input = setting.choices.length
    ? { type: "select", options: setting.choices.map((one) => [one, one]), value: setting.value }
    : { value: setting.value };
  actionDialog(
    t("broker.settings.title", { key: setting.key, broker: name }),
    () => [
      setting.help && h("p", {}, setting.help),
      form.field("value", t("value"), { ...input, hint: setting.default === null ? "" : t("broker.settings.default", { value: setting.default }) }),
      setting.change === "next_start" && notice("warn", t("broker.settings.next_start")),
      setting.change === "unknown" && notice("info", t("broker.settings.unknown")),
    ],
    {
      action: t("change"),
      isReady: () => form.value("value") !== setting.value,
      act: async () => {
        const outcome = await form.checked(() => patch(path("brokers", name, id, "settings"), { values: { [setting.key]: form.value("value") } }));
        toastOutcome(t("broker.settings.done", { key: setting.key, broker: name }), outcome);
        await done();
      },
    },
  );
}

function writePermission(name, allowed, done) {
  const key = allowed ? "broker.undrain" : "broker.drain";
  confirmByName(t(`${key}.title`, { name }), {
    name,
    text: t(`${key}.text`),
    action: t(key),
    act: async () => {
      const outcome = await post(path("brokers", name, "write-permission"), { allowed });
      toastOutcome(t(`${key}.done`, { name }), outcome);
      await done();
    },
  });
}

function elect(broker, done) {
  confirmByName(t("broker.elect.title", { name: broker.name, id: broker.id }), {
    name: broker.name,
    text: t("broker.elect.text"),
    action: t("broker.elect"),
    act: async () => {
      const outcome = await post(path("brokers", broker.name, "election"), { broker_id: broker.id, confirm: broker.name });
      toastOutcome(t("broker.elect.done", { name: broker.name }), outcome);
      await done();
    },
  });
}
