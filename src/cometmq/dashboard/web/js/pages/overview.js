// What is wrong, worst first and with what to do; then how busy it is, and who is behind.

import { get } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { duration, number, percent, rate, short } from "../core/format.js";
import { link } from "../core/router.js";
import { t } from "../core/texts.js";
import { badge, card, figure, membersCell, notice, pageHead } from "../parts/bits.js";
import { sparkline } from "../parts/chart.js";
import { historyCharts } from "../parts/history.js";
import { noteRow } from "../parts/notes.js";
import { Table, localSource } from "../parts/table.js";

const HEALTH_TONES = { good: "good", warning: "warn", bad: "bad" };
const PROBLEMS_SHOWN = 8;

export async function page(view, _parts, params) {
  view.title(t("page.overview"));
  const head = h("div", {}, pageHead(t("page.overview")));
  const problems = h("div");
  const figures = h("div.grid.tight");
  const charts = historyCharts(
    [
      { title: t("overview.throughput"), series: { put_tps: t("overview.in"), get_tps: t("overview.out") }, format: rate },
      { title: t("overview.lag"), series: { lag: t("overview.lag") }, format: short },
    ],
    { minutes: Number(params.minutes) || 60 },
  );
  let lagging = [];
  const table = new Table({
    label: t("overview.lagging"),
    columns: laggingColumns(),
    source: localSource(() => lagging),
    rowKey: (row) => row.name,
    none: notice("good", t("overview.lagging.none")),
  });
  let showsAll = false;
  view.show(head, problems, figures, charts.element, card(t("overview.lagging"), table.element));

  await view.follow(async () => {
    const answer = await get("overview");
    view.missing(answer.incomplete);
    replace(head, pageHead(t("page.overview"), { badges: [badge(t(`health.${answer.health}`), HEALTH_TONES[answer.health])] }));
    const showAll = () => {
      showsAll = true;
      replace(problems, problemsCard(answer.problems, true, showAll));
    };
    replace(problems, problemsCard(answer.problems, showsAll, showAll));
    replace(figures, totals(answer.totals));
    lagging = answer.lagging;
    await Promise.all([table.load(), charts.load()]);
  });
}

function problemsCard(problems, showsAll, showAll) {
  if (!problems.length) return notice("good", h("div.strong", {}, t("overview.well")), h("div.muted", {}, t("overview.well.text")));
  const shown = showsAll ? problems : problems.slice(0, PROBLEMS_SHOWN);
  const left = problems.length - shown.length;
  return h(
    "section.card",
    { id: "problems" },
    h("div.card-head", {}, h("h2", {}, t("overview.problems", { count: problems.length }))),
    h("ul", {}, shown.map((note) => noteRow(note))),
    left > 0 && h("div.table-bar", {}, h("button.text-button", { type: "button", onclick: showAll }, t("overview.more", { count: left }))),
  );
}

function totals(all) {
  return [
    figure(t("overview.in"), rate(all.put_tps), { note: t("overview.today", { count: short(all.put_today) }) }),
    figure(t("overview.out"), rate(all.get_tps), { note: t("overview.today", { count: short(all.get_today) }) }),
    figure(t("overview.lag"), short(all.lag), {
      note: t("overview.of_groups", { lagging: number(all.groups_lagging), groups: number(all.groups) }),
      href: link("groups", { state: "lagging" }),
    }),
    figure(t("page.dead-letters"), short(all.dead_letters), { href: link("dead-letters"), tone: all.dead_letters ? "warn" : "" }),
    figure(t("overview.brokers"), number(all.brokers), {
      note: all.brokers_silent ? t("overview.silent", { count: all.brokers_silent }) : t("overview.all_answer"),
      href: link("cluster"),
      tone: all.brokers_silent ? "bad" : "",
    }),
    all.replicas > 0 &&
      figure(t("overview.replicas"), number(all.replicas), {
        note: all.replicas_behind ? t("overview.replicas_behind", { count: all.replicas_behind }) : t("overview.keep_up"),
        href: link("cluster"),
        tone: all.replicas_behind ? "warn" : "",
      }),
    figure(t("overview.disk"), percent(all.disk_ratio), { note: t("overview.fullest"), href: link("cluster"), tone: all.disk_ratio > 0.85 ? "bad" : "" }),
  ];
}

function laggingColumns() {
  return [
    { key: "name", title: t("group"), sort: true, cell: (row) => h("a.wrap", { href: link("groups", row.name) }, row.name) },
    { key: "lag", title: t("lag"), sort: true, number: true, cell: (row) => number(row.lag) },
    { key: "lag_ms", title: t("behind"), sort: true, number: true, cell: (row) => duration(row.lag_ms) },
    { key: "trend", title: t("trend"), cell: (row) => sparkline(row.trend, t("trend.lag", { name: row.name })) },
    { key: "members", title: t("members"), sort: true, number: true, cell: (row) => membersCell(row.members) },
  ];
}
