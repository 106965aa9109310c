// What fires now, with silence; the rules; and what fired before.

import { get, path, post, put, remove } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { bytes, duration, number, percent, time } from "../../core/format.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, card, moment, notice, pageHead, when } from "../../parts/bits.js";
import { actionDialog, confirm } from "../../parts/dialog.js";
import { Form } from "../../parts/fields.js";
import { Table, localSource } from "../../parts/table.js";
import { tabs } from "../../parts/tabs.js";
import { toastOutcome } from "../../parts/toasts.js";

const KINDS = ["lag", "lag_ms", "disk", "replication", "dead_letters", "no_consumer", "broker_silent", "certificate"];
const MINUTES = [30, 60, 240, 1440, 10_080];

export async function page(view) {
  view.title(t("page.alerts"));
  let alerts = null;
  const rows = (part) => () => alerts?.[part] ?? [];
  const reload = () => view.refresh();
  const tables = {
    firing: new Table({
      label: t("alerts.firing"),
      columns: [...alertColumns(), { key: "act", title: "", end: true, cell: (row) => silenceButton(row, reload) }],
      source: localSource(rows("firing")),
      rowKey: (row) => `${row.rule} ${row.subject}`,
      sort: "-since_ms",
      none: notice("good", t("alerts.none")),
    }),
    rules: new Table({ label: t("alerts.rules"), columns: ruleColumns(reload), source: localSource(rows("rules")), rowKey: (row) => row.name, sort: "name" }),
    history: new Table({
      label: t("alerts.history"),
      columns: [...alertColumns(), { key: "resolved_ms", title: t("alerts.resolved"), sort: true, cell: (row) => moment(row.resolved_ms) }],
      source: localSource(rows("history"), (row) => `${row.rule} ${row.subject} ${row.text}`),
      rowKey: (row) => `${row.rule} ${row.subject} ${row.since_ms}`,
      filter: t("alerts.filter"),
      sort: "-since_ms",
    }),
  };
  const where = h("p.muted");
  const parts = tabs(t("page.alerts"), [
    { key: "firing", title: t("alerts.firing"), build: () => card(null, tables.firing.element) },
    { key: "rules", title: t("alerts.rules"), build: () => [card(null, tables.rules.element), where] },
    { key: "history", title: t("alerts.history"), build: () => card(null, tables.history.element) },
  ]);
  const add = button(t("alerts.new"), () => ruleDialog(null, reload), { kind: "primary", iconName: "plus", disabled: !may("operator") });
  view.show(pageHead(t("page.alerts"), { about: t("alerts.about"), actions: [add] }), parts.element);
  await view.follow(async () => {
    alerts = await get("alerts");
    where.textContent = t(alerts.webhook ? "alerts.webhook" : "alerts.no_webhook");
    await Promise.all(Object.values(tables).map((table) => table.load()));
  });
}

function alertColumns() {
  return [
    { key: "rule", title: t("alerts.rule"), sort: true },
    { key: "subject", title: t("alerts.subject"), sort: true, cell: (row) => h("span.strong.wrap", {}, row.subject) },
    { key: "text", title: t("alerts.text"), long: true, cell: (row) => h("span", { title: row.text }, `${t(`alerts.kind.${row.kind}`)}: ${amount(row.kind, row.value)}`) },
    { key: "since_ms", title: t("since"), sort: true, cell: (row) => when(row.since_ms) },
  ];
}

function silenceButton(row, done) {
  const isSilent = row.silenced_until_ms > Date.now();
  if (isSilent) {
    const speak = async () => {
      toastOutcome(t("alerts.unsilenced"), await post("alerts/silences", { rule: row.rule, subject: row.subject, minutes: 0 }));
      await done();
    };
    return h("span.row", {}, badge(t("alerts.silent_until", { time: time(row.silenced_until_ms) })), button(t("alerts.unsilence"), speak, { kind: "small", disabled: !may("operator") }));
  }
  return button(t("alerts.silence.etc"), () => silenceDialog(row, done), { kind: "small", disabled: !may("operator"), label: `${t("alerts.silence")}: ${row.rule} ${row.subject}` });
}

function silenceDialog(row, done) {
  const form = new Form();
  const options = MINUTES.map((one) => [String(one), duration(one * 60_000)]);
  actionDialog(t("alerts.silence.title", { subject: row.subject }), () => form.field("minutes", t("alerts.silence.for"), { type: "select", options, value: "60" }), {
    action: t("alerts.silence"),
    act: async () => {
      const silence = { rule: row.rule, subject: row.subject, minutes: Number(form.value("minutes")) };
      toastOutcome(t("alerts.silenced", { subject: row.subject }), await post("alerts/silences", silence));
      await done();
    },
  });
}

function ruleColumns(done) {
  return [
    { key: "name", title: t("name"), sort: true, cell: (row) => h("span", {}, h("span.strong", {}, row.name), !row.enabled && [" ", badge(t("alerts.off"))]) },
    { key: "kind", title: t("alerts.kind"), sort: true, cell: (row) => t(`alerts.kind.${row.kind}`) },
    { key: "threshold", title: t("alerts.threshold"), number: true, cell: (row) => amount(row.kind, row.threshold) },
    { key: "pattern", title: t("alerts.pattern"), cell: (row) => h("code", {}, row.pattern) },
    { key: "for_seconds", title: t("alerts.for"), number: true, cell: (row) => duration(row.for_seconds * 1000) },
    {
      key: "act",
      title: "",
      end: true,
      cell: (row) =>
        h("span.row", {}, button(t("change.etc"), () => ruleDialog(row, done), { kind: "small", disabled: !may("operator"), label: `${t("change")}: ${row.name}` }), button(t("delete.etc"), () => deleteRule(row, done), { kind: "small", disabled: !may("operator"), label: `${t("delete")}: ${row.name}` })),
    },
  ];
}

/** A value or a threshold in the unit of its kind. */
function amount(kind, value) {
  if (kind === "disk") return percent(value);
  if (kind === "lag_ms") return duration(value);
  if (kind === "replication") return bytes(value);
  if (kind === "certificate") return t("alerts.days", { count: number(Math.floor(value)) });
  return number(value);
}

function ruleDialog(rule, done) {
  const form = new Form();
  actionDialog(
    rule ? t("alerts.change.title", { name: rule.name }) : t("alerts.new"),
    () => [
      !rule && form.field("name", t("name"), { required: true, autofocus: true }),
      h(
        "div.fields",
        {},
        form.field("kind", t("alerts.kind"), { type: "select", options: KINDS.map((one) => [one, t(`alerts.kind.${one}`)]), value: rule?.kind }),
        form.field("threshold", t("alerts.threshold"), { type: "number", value: rule?.threshold ?? 0, min: 0, step: "any", hint: t("alerts.threshold.hint") }),
        form.field("pattern", t("alerts.pattern"), { value: rule?.pattern ?? "*", required: true, hint: t("alerts.pattern.hint") }),
        form.field("for_seconds", t("alerts.for_seconds"), { type: "number", value: rule?.for_seconds ?? 60, min: 0, max: 86_400 }),
      ),
      form.field("enabled", t("alerts.enabled"), { type: "check", value: rule?.enabled ?? true }),
    ],
    {
      action: rule ? t("change") : t("create"),
      isReady: () => Boolean(rule) || form.value("name") !== "",
      act: async () => {
        const { name = rule?.name, ...values } = form.values();
        const outcome = await form.checked(() => put("alerts/rules", { name, ...values }));
        toastOutcome(t("alerts.saved", { name }), outcome);
        await done();
      },
    },
  );
}

function deleteRule(rule, done) {
  confirm(t("alerts.delete.title", { name: rule.name }), {
    text: t("alerts.delete.text"),
    action: t("delete"),
    kind: "danger",
    act: async () => {
      toastOutcome(t("alerts.deleted", { name: rule.name }), await remove(path("alerts", "rules", rule.name)));
      await done();
    },
  });
}
