// What one consumer tells about itself: the queues it holds, how fast it is, its settings, what its threads do.

import { get, path } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { number, rate } from "../../core/format.js";
import { t } from "../../core/texts.js";
import { button, facts, when } from "../../parts/bits.js";
import { openDialog } from "../../parts/dialog.js";
import { Table, localSource } from "../../parts/table.js";

const WAIT = () => h("p.muted", {}, t("loading"));

export async function clientDialog(group, client) {
  const dialog = openDialog(client, WAIT, { wide: true });
  const load = async (stacks) => {
    try {
      const told = await get(path("groups", group, "clients", client), { stacks });
      await show(told);
    } catch (error) {
      dialog.setBody();
      dialog.showProblem(error);
    }
  };
  const show = async (told) => {
    const queues = queuesTable(told.queues);
    const rates = ratesTable(told.rates);
    await Promise.all([queues.load(), rates.load()]);
    dialog.setBody(
      told.stacks && [h("h3", {}, t("client.stacks")), h("pre.code.straight", { tabindex: "0" }, told.stacks)],
      h("h3", {}, t("client.rates")),
      rates.element,
      h("h3", {}, t("client.queues")),
      queues.element,
      h("h3", {}, t("client.properties")),
      facts(Object.entries(told.properties)),
    );
  };
  dialog.setFoot(button(t("client.with_stacks"), () => load(true)), button(t("again"), () => load(false)), button(t("close"), dialog.close));
  await load(false);
}

function queuesTable(queues) {
  return new Table({
    label: t("client.queues"),
    columns: [
      { key: "topic", title: t("topic"), sort: true },
      { key: "broker", title: t("broker"), sort: true },
      { key: "queue_id", title: t("queue"), sort: true, number: true },
      { key: "commit_offset", title: t("offset"), sort: true, number: true, cell: (row) => number(row.commit_offset) },
      { key: "cached_messages", title: t("client.cached"), sort: true, number: true, cell: (row) => number(row.cached_messages) },
      { key: "last_pull_ms", title: t("client.pulled"), cell: (row) => when(row.last_pull_ms) },
      { key: "last_consume_ms", title: t("client.consumed"), cell: (row) => when(row.last_consume_ms) },
    ],
    source: localSource(() => queues),
    rowKey: (row) => `${row.topic} ${row.broker}:${row.queue_id}`,
    size: 20,
  });
}

function ratesTable(rates) {
  return new Table({
    label: t("client.rates"),
    columns: [
      { key: "topic", title: t("topic"), sort: true },
      { key: "consume_rt_ms", title: t("client.takes"), number: true, cell: (row) => t("client.ms", { ms: number(Math.round(row.consume_rt_ms * 10) / 10) }) },
      { key: "ok_tps", title: t("client.ok"), number: true, cell: (row) => rate(row.ok_tps) },
      { key: "failed_tps", title: t("client.failed"), number: true, cell: (row) => rate(row.failed_tps) },
      { key: "failed_in_hour", title: t("client.failed_hour"), number: true, cell: (row) => number(row.failed_in_hour) },
    ],
    source: localSource(() => rates),
    rowKey: (row) => row.topic,
  });
}
