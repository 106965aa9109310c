// Dialogs about one group: reset with a preview, settings, delete.

import { path, post, remove } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { fromLocalInput, number, toLocalInput, zone } from "../../core/format.js";
import { go, link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { button, notice } from "../../parts/bits.js";
import { actionDialog, confirmByName, openDialog } from "../../parts/dialog.js";
import { Form } from "../../parts/fields.js";
import { Table, localSource } from "../../parts/table.js";
import { toastOutcome } from "../../parts/toasts.js";
import { placeOf, placeOptions } from "../topics/topic_dialogs.js";

const TARGETS = ["time", "beginning", "end", "offset"];
const HOUR_MS = 3_600_000;

/**
 * First where to, then what it would do, then the group's name; only then anything is changed.
 * @param topics those of the group; `queues` are its rows with topic, broker, queue_id
 */
export function resetDialog(group, { topics, topic = topics[0], queues = [] }, done) {
  const form = new Form();
  const place = h("div.fields");
  const shown = h("div.form", { aria: { live: "polite" } });
  const wanted = () => wantedReset(form);
  const drawPlace = () => {
    const to = form.value("to");
    replace(
      place,
      to === "time" && form.field("time", t("reset.time"), { type: "datetime-local", step: 1, value: toLocalInput(Date.now() - HOUR_MS), hint: zone() }),
      to === "offset" && [
        form.field("queue", t("queue"), { type: "select", options: queueOptions(queues, form.value("topic")) }),
        form.field("offset", t("offset"), { type: "number", value: 0, min: 0 }),
      ],
    );
  };
  const canPickQueue = queues.length > 0;
  const targets = TARGETS.filter((one) => one !== "offset" || canPickQueue).map((one) => [one, t(`reset.to.${one}`)]);
  const dialog = openDialog(
    t("reset.title", { name: group }),
    () => [
      h("p.muted", {}, t("reset.about")),
      h(
        "form.form",
        { onsubmit: (event) => event.preventDefault(), oninput: () => askForPreview() },
        h(
          "div.fields",
          {},
          form.field("topic", t("topic"), { type: "select", options: topics.map((one) => [one, one]), value: topic, onchange: drawPlace }),
          form.field("to", t("reset.to"), { type: "select", options: targets, value: "time", onchange: drawPlace }),
        ),
        place,
      ),
      shown,
    ],
    { wide: true },
  );
  const preview = button(t("reset.preview"), () => showPreview(), { kind: "primary" });
  function askForPreview() {
    replace(shown);
    dialog.setFoot(button(t("cancel"), dialog.close), preview);
  }
  async function showPreview() {
    preview.disabled = true;
    dialog.showProblem(null);
    try {
      const plan = await form.checked(() => post(path("groups", group, "reset-preview"), wanted()));
      await showPlan(plan);
    } catch (error) {
      dialog.showProblem(error);
    } finally {
      preview.disabled = false;
    }
  }
  async function showPlan(plan) {
    const table = movesTable(plan.moves);
    await table.load();
    const name = new Form();
    const run = button(t("reset.action"), () => reset(name.value("confirm"), run), { kind: "danger", disabled: true });
    const typed = name.field("confirm", t("confirm.type", { name: group }), { oninput: (event) => {
      event.stopPropagation();
      run.disabled = name.value("confirm") !== group;
    } });
    replace(shown, notice(plan.skipped > 0 ? "warn" : "info", h("div.strong", {}, planText(plan)), h("div.muted", {}, t(plan.online ? "reset.online" : "reset.offline"))), table.element, typed);
    dialog.setFoot(button(t("cancel"), dialog.close), run);
    typed.scrollIntoView({ block: "nearest" });
  }
  async function reset(confirm, run) {
    run.disabled = true;
    try {
      const outcome = await post(path("groups", group, "reset"), { ...wanted(), confirm });
      dialog.close();
      toastOutcome(t("reset.done", { name: group }), { ...outcome, done: outcome.failed?.length ? outcome.done : [] });
      await done?.();
    } catch (error) {
      dialog.showProblem(error);
      run.disabled = false;
    }
  }
  drawPlace();
  askForPreview();
}

function wantedReset(form) {
  const to = form.value("to");
  const reset = { topic: form.value("topic"), to };
  if (to === "time") return { ...reset, time_ms: fromLocalInput(form.value("time")) };
  if (to !== "offset") return reset;
  const { broker, queue_id } = JSON.parse(form.value("queue"));
  return { ...reset, broker, queue_id, offset: form.value("offset") };
}

function queueOptions(queues, topic) {
  return queues
    .filter((one) => one.topic === topic)
    .map(({ broker, queue_id }) => [JSON.stringify({ broker, queue_id }), `${broker} : ${queue_id}`]);
}

function planText({ again, skipped }) {
  if (!again && !skipped) return t("reset.plan.nothing");
  const parts = [again > 0 && t("reset.plan.again", { count: number(again) }), skipped > 0 && t("reset.plan.skipped", { count: number(skipped) })];
  return parts.filter(Boolean).join(" ");
}

function movesTable(moves) {
  const size = 10;
  return new Table({
    label: t("reset.preview"),
    columns: [
      { key: "broker", title: t("broker"), sort: true },
      { key: "queue_id", title: t("queue"), sort: true, number: true },
      { key: "before", title: t("reset.before"), sort: true, number: true, cell: (row) => number(row.before) },
      { key: "after", title: t("reset.after"), sort: true, number: true, cell: (row) => number(row.after) },
      { key: "again", title: t("reset.again"), sort: true, number: true, cell: (row) => number(row.again) },
      { key: "skipped", title: t("reset.skipped"), sort: true, number: true, cell: (row) => number(row.skipped) },
    ],
    source: localSource(() => moves),
    rowKey: (row) => `${row.broker}:${row.queue_id}`,
    size,
  });
}

/** @param group an answer of `groups/{group}`, or null for a new one */
export async function groupSettingsDialog(group, done) {
  const form = new Form();
  const now = group?.definitions[0] ?? { enabled: true, orderly: false, broadcast: true, retries: 16, retry_queues: 1, timeout_minutes: 15 };
  const all = await placeOptions();
  const own = group?.definitions.map(({ broker }) => [`broker:${broker}`, t("place.broker", { name: broker })]) ?? [];
  const places = group ? [...all.filter(([value]) => value.startsWith("cluster:")), ...own] : all;
  actionDialog(
    group ? t("groups.change.title", { name: group.name }) : t("groups.new"),
    () => [
      !group && form.field("name", t("name"), { required: true, hint: t("groups.name.hint"), autofocus: true }),
      h(
        "div.fields",
        {},
        form.field("place", t("place"), { type: "select", options: places }),
        form.field("retries", t("groups.retries"), { type: "number", value: now.retries, min: -1, max: 10_000, hint: t("groups.retries.hint") }),
        form.field("retry_queues", t("groups.retry_queues"), { type: "number", value: now.retry_queues, min: 0, max: 1024 }),
        form.field("timeout_minutes", t("groups.timeout"), { type: "number", value: now.timeout_minutes, min: 1, max: 10_000, hint: t("groups.timeout.hint") }),
      ),
      form.field("enabled", t("groups.enabled"), { type: "check", value: now.enabled, hint: t("groups.enabled.hint") }),
      form.field("orderly", t("groups.orderly"), { type: "check", value: now.orderly }),
      form.field("broadcast", t("groups.broadcast"), { type: "check", value: now.broadcast }),
    ],
    {
      action: group ? t("change") : t("create"),
      isReady: () => Boolean(group) || form.value("name") !== "",
      act: async () => {
        const { place, name = group?.name, ...values } = form.values();
        const outcome = await form.checked(() => post("groups", { name, ...values, ...placeOf(place) }));
        toastOutcome(t(group ? "groups.changed" : "groups.created", { name }), outcome);
        await done();
      },
    },
  );
}

export function deleteGroupDialog(group) {
  confirmByName(t("groups.delete.title", { name: group.name }), {
    name: group.name,
    text: t("groups.delete.text", { letters: number(group.dead_letters), members: number(group.members.length) }),
    action: t("groups.delete"),
    act: async () => {
      const outcome = await remove(path("groups", group.name), { confirm: group.name });
      toastOutcome(t("groups.deleted", { name: group.name }), outcome);
      go(link("groups"));
    },
  });
}
