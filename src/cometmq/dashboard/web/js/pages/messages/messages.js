// Find messages of a topic: the newest, by time, key or id, through a filter; and follow new ones as they come. What is
// looked for is the page's address, so that a search can be shared and gone back to.

import { address, get } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { fromLocalInput, number, toLocalInput, zone } from "../../core/format.js";
import { go, link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { button, card, empty, errorNotice, pageHead, segments } from "../../parts/bits.js";
import { Form } from "../../parts/fields.js";
import { messageColumns, messageTexts } from "./message_rows.js";
import { remarkTexts } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";
import { followTopic } from "./tail.js";

const WAYS = ["time", "key", "id"];
const FILTERS = ["", "tags", "sql", "property", "text"];

export async function page(view, _parts, params) {
  view.title(t("page.messages"));
  const by = WAYS.includes(params.by) ? params.by : "time";
  const results = h("div.tab-panel", { aria: { live: "polite" } });
  const names = h("datalist", { id: "topic-names" });
  const form = searchForm(by, params);
  view.show(pageHead(t("page.messages"), { about: t("messages.about") }), form, names, results);
  fillNames(names);
  if (params.live && params.topic) followTopic(view, results, params);
  else if (params.topic || params.key || params.id) await search(view, results, by, params);
  else replace(results, empty(t("messages.choose"), t("messages.choose.text")));
}

async function fillNames(names) {
  const { rows } = await get("topics", { kind: "normal", size: 500, sort: "name" }).catch(() => ({ rows: [] }));
  replace(names, rows.map(({ name }) => h("option", { value: name })));
}

function searchForm(by, params) {
  const form = new Form();
  const fields = {
    time: () => [
      form.field("begin", t("messages.begin"), { type: "datetime-local", step: 1, value: localTime(params.begin_ms), hint: zone() }),
      form.field("end", t("messages.end"), { type: "datetime-local", step: 1, value: localTime(params.end_ms), hint: t("messages.end.hint") }),
      form.field("filter", t("filter"), { type: "select", value: chosenFilter(params), options: FILTERS.map((one) => [one, t(`messages.filter.${one || "none"}`)]) }),
      form.field("value", t("messages.filter.value"), { value: params[chosenFilter(params)] ?? "", hint: t("messages.filter.hint") }),
    ],
    key: () => form.field("key", t("key"), { value: params.key ?? "", required: true, hint: t("messages.key.hint") }),
    id: () => form.field("id", t("message.id"), { value: params.id ?? "", required: true, hint: t("messages.id.hint") }),
  };
  const wanted = (extra = {}) => {
    const { topic } = form.values();
    if (by === "id") return topic ? link("messages", form.value("id"), { topic }) : link("messages", { by, id: form.value("id") });
    if (by === "key") return link("messages", { topic, by, key: form.value("key") });
    const { begin, end, filter, value } = form.values();
    const times = { begin_ms: fromLocalInput(begin), end_ms: fromLocalInput(end) };
    const place = topic === params.topic ? { broker: params.broker, queue_id: params.queue_id } : {};
    return link("messages", { topic, ...times, ...(filter && value ? { [filter]: value } : {}), ...place, ...extra });
  };
  const submit = button(t("messages.search"), () => {}, { kind: "primary", iconName: "search" });
  submit.type = "submit";
  const topic = form.field("topic", t("topic"), { value: params.topic ?? "", list: "topic-names", required: by === "time", hint: by === "time" ? "" : t("messages.topic.hint") });
  const live = by === "time" && button(t("messages.live"), () => form.value("topic") && go(wanted({ live: 1 })), { iconName: "play" });
  return h(
    "form.card.card-body.form.search-form",
    {
      role: "search",
      aria: { label: t("page.messages") },
      onsubmit: (event) => {
        event.preventDefault();
        go(wanted());
      },
    },
    segments(t("messages.by"), WAYS.map((one) => [one, t(`messages.by.${one}`)]), by, (chosen) => go(link("messages", { topic: form.value("topic"), by: chosen }))),
    h("div.fields", {}, topic, fields[by]()),
    h("div.row", {}, submit, live, queueNote(params)),
  );
}

function queueNote({ topic, broker, queue_id, ...rest }) {
  if (!broker && queue_id === undefined) return null;
  const everywhere = link("messages", { topic, ...rest });
  return h("span.muted", {}, t("messages.only_queue", { queue: `${broker ?? ""} : ${queue_id ?? ""}` }), " ", h("a", { href: everywhere }, t("messages.all_queues")));
}

function localTime(text) {
  return text ? toLocalInput(Number(text)) : "";
}

function chosenFilter(params) {
  return FILTERS.find((one) => one && params[one]) ?? "";
}

function query(by, params) {
  if (by === "key") return { topic: params.topic, key: params.key };
  if (by === "id") return { topic: params.topic, id: params.id };
  const { topic, begin_ms, end_ms, tags, sql, property, text, broker, queue_id } = params;
  return { topic, begin_ms, end_ms, tags, sql, property, text, broker, queue_id };
}

async function search(view, results, by, params) {
  let rows = [];
  let last = null;
  const table = new Table({
    label: t("messages"),
    columns: messageColumns(),
    source: localSource(() => rows, messageTexts, { keys: (row) => row.keys.join(" ") }),
    rowKey: (row) => row.offset_id,
    filter: t("messages.narrow"),
    extras: [exportLink(by, params)],
    none: empty(t("messages.none"), t("messages.none.text")),
  });
  const foot = h("div.row");
  const more = button(t("messages.more"), () => load(last.cursor), {});
  async function load(cursor = "") {
    more.disabled = true;
    replace(foot, h("span.muted", {}, t("loading")));
    try {
      last = await get("messages", { ...query(by, params), cursor });
      if (view.isLeft) return;
      rows = [...rows, ...last.rows];
      await table.load();
      drawFoot();
    } catch (error) {
      replace(foot, errorNotice(error));
    } finally {
      more.disabled = false;
    }
  }
  function drawFoot() {
    const scanned = last.scanned > 0 && t("messages.scanned", { count: number(last.scanned) });
    replace(foot, last.cursor && more, h("span.muted", {}, [scanned, remarkTexts(last.notes)].filter(Boolean).join(" ")));
  }
  replace(results, card(null, table.element), foot);
  await load();
}

function exportLink(by, params) {
  if (by !== "time") return null;
  return h("a.button.small.end", { href: address("messages/export", query(by, params)), download: `${params.topic}.jsonl` }, t("export"));
}
