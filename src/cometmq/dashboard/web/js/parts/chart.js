// Charts as inline SVG: lines over time with a cursor that reads them, and small ones for rows of tables.

import { h, replace, svg } from "../core/dom.js";
import { clock, rate, time } from "../core/format.js";
import { t } from "../core/texts.js";

const SERIES_MAX = 6;
const MARGIN = { left: 46, right: 8, top: 8, bottom: 20 };

/**
 * Lines over time. `series` is `[{name, points: [[ms, value], …]}]`, oldest first; a value of null is a gap.
 * @param label what the chart shows, for those who do not see it
 */
export function lineChart({ label, series, height = 168, format = rate }) {
  const shown = series.slice(0, SERIES_MAX);
  const drawing = h("div");
  const values = shown.map((one) => h("b", {}, format(lastValue(one.points))));
  const moment = h("li", {}, "");
  const legend = h(
    "ul.chart-legend",
    {},
    shown.map((one, index) => h("li", {}, h(`span.swatch.s${index + 1}`), h("span.clip", {}, one.name), values[index])),
    moment,
  );
  const element = h("figure.chart", {}, drawing, legend);
  if (!shown.some((one) => one.points.length > 1)) {
    return h("figure.chart", {}, h("div.empty", {}, h("strong", {}, t("chart.none")), t("chart.none.text")));
  }
  const read = (at) => {
    for (const [index, one] of shown.entries()) {
      values[index].textContent = format(at === null ? lastValue(one.points) : nearest(one.points, at)?.[1]);
    }
    moment.textContent = at === null ? "" : time(at);
  };
  const draw = (width) => replace(drawing, plot({ label, shown, width, height, format, read }));
  draw(640);
  let drawnWidth = 640;
  new ResizeObserver(([entry]) => {
    const width = Math.round(entry.contentRect.width);
    if (width > 0 && width !== drawnWidth) {
      drawnWidth = width;
      draw(width);
    }
  }).observe(element);
  return element;
}

function plot({ label, shown, width, height, format, read }) {
  const points = shown.flatMap((one) => one.points).filter(([, value]) => value !== null);
  const first = Math.min(...points.map(([at]) => at));
  const last = Math.max(...points.map(([at]) => at));
  const top = roundTop(Math.max(...points.map(([, value]) => value)));
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const x = (at) => MARGIN.left + (last === first ? 0 : ((at - first) / (last - first)) * inner.width);
  const y = (value) => MARGIN.top + inner.height - (value / top) * inner.height;

  const levels = [0, top / 2, top].map((level) => [
    svg("line", { class: "axis", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(level), y2: y(level) }),
    svg("text", { x: MARGIN.left - 7, y: y(level) + 4, "text-anchor": "end" }, format(level)),
  ]);
  const stops = Math.max(2, Math.min(7, Math.floor(inner.width / 90)));
  const times = Array.from({ length: stops }, (_, index) => first + ((last - first) * index) / (stops - 1));
  const marks = times.map((at, index) =>
    svg("text", { x: x(at), y: height - 4, "text-anchor": index === 0 ? "start" : index === stops - 1 ? "end" : "middle" }, clock(at)),
  );
  const lines = shown.map((one, index) => [
    shown.length === 1 && svg("path", { class: `area s${index + 1}`, d: areaPath(one.points, x, y) }),
    svg("path", { class: `line s${index + 1}`, d: linePath(one.points, x, y) }),
  ]);
  const cursor = svg("line", { class: "cursor", y1: MARGIN.top, y2: MARGIN.top + inner.height, visibility: "hidden" });
  const summary = shown.map((one) => `${one.name}: ${format(lastValue(one.points))}`).join(", ");
  const drawing = svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}. ${summary}` },
    levels,
    marks,
    lines,
    cursor,
  );
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const ratio = (((event.clientX - box.left) / box.width) * width - MARGIN.left) / inner.width;
    const at = first + Math.min(1, Math.max(0, ratio)) * (last - first);
    cursor.setAttribute("visibility", "visible");
    cursor.setAttribute("x1", x(at));
    cursor.setAttribute("x2", x(at));
    read(at);
  });
  drawing.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    read(null);
  });
  return drawing;
}

/** For a row of a table; says in words what it shows. */
export function sparkline(values, label) {
  const known = (values ?? []).filter((value) => value !== null);
  if (known.length < 2) return h("span.muted", {}, "–");
  const width = 84;
  const height = 20;
  const top = Math.max(...known) || 1;
  const points = values.map((value, index) => [index, value]);
  const x = (index) => (index / (values.length - 1)) * width;
  const y = (value) => height - 2 - (value / top) * (height - 4);
  return svg(
    "svg",
    { class: "sparkline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    svg("path", { class: "area s1", d: areaPath(points, x, y) }),
    svg("path", { class: "line s1", d: linePath(points, x, y) }),
  );
}

function linePath(points, x, y) {
  let path = "";
  let isGap = true;
  for (const [at, value] of points) {
    if (value === null) {
      isGap = true;
      continue;
    }
    path += `${isGap ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
    isGap = false;
  }
  return path;
}

function areaPath(points, x, y) {
  const known = points.filter(([, value]) => value !== null);
  if (!known.length) return "";
  const ground = y(0).toFixed(1);
  return `${linePath(known, x, y)}L${x(known.at(-1)[0]).toFixed(1)} ${ground}L${x(known[0][0]).toFixed(1)} ${ground}Z`;
}

/** The next of 1, 2, 5, 10, 20, … that holds the value. */
function roundTop(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function lastValue(points) {
  return points.at(-1)?.[1] ?? null;
}

function nearest(points, at) {
  return points.reduce((best, point) => (!best || Math.abs(point[0] - at) < Math.abs(best[0] - at) ? point : best), null);
}
