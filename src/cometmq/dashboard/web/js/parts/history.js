// Charts of the last hours, with a choice of how many.

import { get } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { remember } from "../core/router.js";
import { t } from "../core/texts.js";
import { segments } from "./bits.js";
import { lineChart } from "./chart.js";

const RANGES = [
  [60, "range.hour"],
  [360, "range.hours6"],
  [1440, "range.day"],
];

/**
 * @param charts [{title, series: {name in the API: label}, format}]
 * @returns {element, load()}
 */
export function historyCharts(charts, { minutes = 60 } = {}) {
  const places = charts.map(() => h("div"));
  let chosen = minutes;
  const load = async () => {
    const names = charts.flatMap((chart) => Object.keys(chart.series));
    const { rows } = await get("history", { series: names.join(","), minutes: chosen, points: 240 });
    const points = new Map(rows.map((row) => [row.series, row.points]));
    for (const [index, chart] of charts.entries()) {
      const series = Object.entries(chart.series).map(([name, label]) => ({ name: label, points: points.get(name) ?? [] }));
      replace(places[index], lineChart({ label: chart.title, series, format: chart.format }));
    }
  };
  const range = segments(
    t("range.label"),
    RANGES.map(([value, key]) => [value, t(key)]),
    chosen,
    async (value) => {
      chosen = value;
      remember({ minutes: value });
      await load();
    },
  );
  const cards = charts.map((chart, index) =>
    h("section.card", {}, h("div.card-head", {}, h("h2", {}, chart.title), index === 0 && range), h("div.card-body", {}, places[index])),
  );
  return { element: h(charts.length > 1 ? "div.grid.wide" : "div", {}, cards), load };
}
