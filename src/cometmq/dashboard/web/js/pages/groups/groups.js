// All consumer groups: who is behind, who is not there.

import { get } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { duration, number, rate } from "../../core/format.js";
import { link, remember } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, empty, membersCell, pageHead, segments } from "../../parts/bits.js";
import { sparkline } from "../../parts/chart.js";
import { Table } from "../../parts/table.js";
import { groupSettingsDialog } from "./group_dialogs.js";

const STATES = ["", "lagging", "online", "offline"];
const TOPICS_SHOWN = 2;

export async function page(view, _parts, params) {
  view.title(t("page.groups"));
  let state = STATES.includes(params.state) ? params.state : "";
  const table = new Table({
    label: t("page.groups"),
    columns: columns(),
    source: async (query) => {
      const answer = await get("groups", { ...query, state });
      view.missing(answer.incomplete);
      return answer;
    },
    rowKey: (row) => row.name,
    filter: t("groups.filter"),
    extras: [
      segments(t("groups.state"), STATES.map((one) => [one, t(`groups.state.${one || "all"}`)]), state, (chosen) => {
        state = chosen;
        remember({ state: chosen });
        table.restart();
      }),
    ],
    remembers: true,
    sort: "-lag",
    none: empty(t("groups.none"), t("groups.none.text")),
  });
  const add = button(t("groups.new"), () => groupSettingsDialog(null, () => table.load()), { kind: "primary", iconName: "plus", disabled: !may("operator") });
  view.show(pageHead(t("page.groups"), { actions: [add] }), h("section.card", {}, table.element));
  await view.follow(() => table.load());
}

function columns() {
  return [
    { key: "name", title: t("group"), sort: true, cell: nameCell },
    { key: "lag", title: t("lag"), sort: true, number: true, cell: (row) => number(row.lag) },
    { key: "lag_ms", title: t("behind"), sort: true, number: true, cell: (row) => duration(row.lag_ms) },
    { key: "trend", title: t("trend"), cell: (row) => sparkline(row.trend, t("trend.lag", { name: row.name })) },
    { key: "tps", title: t("groups.tps"), sort: true, number: true, cell: (row) => rate(row.tps) },
    { key: "members", title: t("members"), sort: true, number: true, cell: (row) => membersCell(row.members) },
    { key: "dead_letters", title: t("page.dead-letters"), sort: true, number: true, cell: deadLettersCell },
    { key: "topics", title: t("topics"), cell: topicsCell },
  ];
}

function nameCell(row) {
  return h("div.row", {}, h("a.wrap", { href: link("groups", row.name) }, row.name), row.mode === "BROADCASTING" && badge(t("mode.BROADCASTING"), "info"));
}

function deadLettersCell(row) {
  if (!row.dead_letters) return number(row.dead_letters);
  return h("a", { href: link("dead-letters", row.name) }, number(row.dead_letters));
}

function topicsCell(row) {
  const shown = row.topics.slice(0, TOPICS_SHOWN).map((name, index) => [index > 0 && ", ", h("a", { href: link("topics", name) }, name)]);
  const left = row.topics.length - TOPICS_SHOWN;
  return h("span", { title: row.topics.join(", ") }, shown, left > 0 && h("span.muted", {}, ` +${left}`));
}
