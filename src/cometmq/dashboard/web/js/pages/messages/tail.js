// The live tail: new messages of a topic as they come, newest first.

import { listen } from "../../core/live.js";
import { h, replace } from "../../core/dom.js";
import { number } from "../../core/format.js";
import { link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { badge, button, card, empty, notice } from "../../parts/bits.js";
import { messageColumns, messageTexts } from "./message_rows.js";
import { Table, localSource } from "../../parts/table.js";

const ROWS_MAX = 200;
const DRAW_MS = 250;

export function followTopic(view, results, params) {
  let rows = [];
  let seen = 0;
  let skipped = 0;
  let isPaused = false;
  let drawing = null;
  const state = h("span", { aria: { live: "polite" } });
  const count = h("span.muted");
  const table = new Table({
    label: t("messages"),
    columns: messageColumns(),
    source: localSource(() => rows, messageTexts),
    rowKey: (row) => row.offset_id,
    filter: t("messages.narrow"),
    size: ROWS_MAX,
    none: empty(t("tail.waiting"), t("tail.waiting.text")),
  });
  const draw = () => {
    drawing = null;
    const lost = skipped > 0 && t("tail.skipped", { count: number(skipped) });
    replace(count, [t("tail.seen", { count: number(seen) }), lost].filter(Boolean).join(" · "));
    table.load();
  };
  const onmessage = (row) => {
    seen += 1;
    if (isPaused) return;
    rows = [row, ...rows].slice(0, ROWS_MAX);
    drawing ??= setTimeout(draw, DRAW_MS);
  };
  const onskipped = (told) => {
    skipped += told.count;
    drawing ??= setTimeout(draw, DRAW_MS);
  };
  const problem = h("div", { aria: { live: "polite" } });
  const onproblem = (told) => replace(problem, notice("warn", told.problem));
  const pause = button(t("tail.pause"), () => {
    isPaused = !isPaused;
    pause.textContent = t(isPaused ? "tail.go_on" : "tail.pause");
  });
  const stop = h("a.button", { href: link("messages", { ...params, live: "" }) }, t("tail.stop"));
  const filter = params.sql ? { tail_filter: params.sql, tail_filter_type: "SQL92" } : { tail_filter: params.tags };
  const others = { tail_property: params.property, tail_text: params.text };
  const tones = { open: "good", waiting: "warn", closed: "bad" };
  const handlers = { message: onmessage, tail_skipped: onskipped, tail_problem: onproblem };
  const end = listen("events", { tail_topic: params.topic, ...filter, ...others }, handlers, (now) =>
    replace(state, badge(t(`tail.${now}`), tones[now])),
  );
  view.onleave(() => {
    end();
    clearTimeout(drawing);
  });
  replace(results, h("div.row", {}, state, pause, stop, count), problem, card(null, table.element));
  draw();
}
