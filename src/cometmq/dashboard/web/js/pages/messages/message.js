// One message: its body, what became of it in each group, its way as a time line, and delivering it again.

import { address, get, path, post } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { bytes, duration, number, time } from "../../core/format.js";
import { link } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t, has } from "../../core/texts.js";
import { badge, button, card, cardWithBody, copyable, empty, errorNotice, facts, moment, notice, pageHead } from "../../parts/bits.js";
import { actionDialog } from "../../parts/dialog.js";
import { Form } from "../../parts/fields.js";
import { remarkText, remarkTexts } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";
import { toastOutcome } from "../../parts/toasts.js";

const FORMATS = ["", "json", "avro", "protobuf", "messagepack", "text", "hex"];
const DEAD_LETTER_PREFIX = "%DLQ%";
const FATE_TONES = {
  CONSUMED: "good",
  NOT_CONSUME_YET: "warn",
  NOT_ONLINE: "warn",
  CONSUMED_BUT_FILTERED: "info",
  CONSUME_BROADCASTING: "info",
};

export async function page(view, [id], { topic = "" }) {
  view.title(id);
  const head = h("div", {}, pageHead(id, { crumbs: [[t("page.messages"), link("messages")]] }));
  const about = h("div");
  const body = h("div");
  const trace = h("div.card-body");
  const fates = h("div.card-body");
  const properties = h("div");
  view.show(
    head,
    about,
    h("div.grid.wide", {}, h("div.stack", {}, body, properties), h("div.stack", {}, card(t("message.way"), trace), card(t("message.fate"), fates))),
  );
  let message;
  try {
    message = await get(path("messages", id), { topic });
  } catch (error) {
    replace(head, pageHead(id, { crumbs: [[t("page.messages"), link("messages", { topic })]] }));
    view.show(head, errorNotice(error), empty(t("message.not_found"), t("message.not_found.text"), h("a", { href: link("messages", { by: "id", id, topic }) }, t("message.search_again"))));
    return;
  }
  replace(head, headOf(message, id));
  replace(about, aboutCard(message));
  drawBody(body, message, id, topic);
  replace(properties, propertiesCard(message));
  const where = { topic: message.message.topic };
  await Promise.all([
    part(trace, async () => wayOf(await get(path("messages", id, "trace"), where))),
    part(fates, async () => fateTable(await get(path("messages", id, "fate"), where), message, id)),
  ]);
}

/** Parts come when they come, and one that fails leaves the others. */
async function part(place, build) {
  replace(place, h("p.muted", {}, t("loading")));
  try {
    replace(place, await build());
  } catch (error) {
    replace(place, errorNotice(error));
  }
}

function headOf({ message, body }, id) {
  const isDead = message.topic.startsWith(DEAD_LETTER_PREFIX);
  const group = message.topic.slice(DEAD_LETTER_PREFIX.length);
  return pageHead(message.keys.length ? message.keys.join(" ") : message.message_id, {
    crumbs: isDead
      ? [[t("page.dead-letters"), link("dead-letters")], [group, link("dead-letters", group)]]
      : [[t("page.messages"), link("messages")], [message.topic, link("messages", { topic: message.topic })]],
    badges: [message.tags && badge(message.tags), message.retries > 0 && badge(t("message.retries", { count: message.retries }), "warn"), isDead && badge(t("dead_letter"), "bad")],
    actions: [
      // What a rule hides is not given as a whole, either.
      body.masked.length === 0 && h("a.button", { href: address(path("messages", id, "body"), { topic: message.topic }), download: message.message_id }, t("message.download")),
      button(t("resend.etc"), () => resendDialog(message, id), { kind: "primary", disabled: !may("operator") }),
    ],
  });
}

function aboutCard({ message, store_host, physical_offset }) {
  return h(
    "section.card.card-body.padded",
    {},
    facts([
      [t("message.id"), copyable(message.message_id)],
      [t("topic"), h("a", { href: link("topics", message.topic) }, message.topic)],
      [t("keys"), message.keys.length ? copyable(message.keys.join(" ")) : null],
      [t("message.stored"), moment(message.stored_ms)],
      [t("message.born"), h("span", {}, moment(message.born_ms), ` ${t("by")} ${message.born_host}`)],
      [t("message.place"), `${message.broker} : ${message.queue_id} @ ${number(message.queue_offset)}`],
      [t("message.log"), `${store_host} @ ${number(physical_offset)}`],
      [t("message.offset_id"), copyable(message.offset_id)],
    ]),
  );
}

function drawBody(place, { body }, id, topic) {
  const code = h("pre.code", { tabindex: "0", aria: { label: t("body") } }, body.text);
  const choice = h(
    "select",
    {
      aria: { label: t("message.format") },
      onchange: async () => {
        try {
          drawBody(place, await get(path("messages", id), { topic, format: choice.value }), id, topic);
        } catch (error) {
          replace(place.querySelector(".said"), errorNotice(error));
        }
      },
    },
    FORMATS.map((one) => h("option", { value: one, selected: one === body.format }, one ? t(`format.${one}`) : t("format.auto"))),
  );
  const said = [
    body.problem && notice("warn", body.problem),
    body.is_cut && notice("info", t("message.cut")),
    body.masked.length > 0 && notice("info", t("message.masked", { fields: body.masked.join(", ") })),
  ];
  replace(
    place,
    h(
      "section.card",
      {},
      h("div.card-head", {}, h("h2", {}, t("body")), h("span.muted", {}, bytes(body.bytes)), choice),
      h("div.card-body.column", {}, h("div.said.column", {}, said), body.bytes ? code : h("p.muted", {}, t("message.no_body"))),
    ),
  );
}

function propertiesCard({ properties, system_properties }) {
  const own = Object.entries(properties);
  return cardWithBody(
    t("properties"),
    own.length ? facts(own) : h("p.muted", {}, t("message.no_properties")),
    h("details", {}, h("summary", {}, t("message.system_properties")), facts(Object.entries(system_properties))),
  );
}

function wayOf({ steps, notes }) {
  // What has no time is known from positions alone, and stands beside, under what became of it in each group.
  const known = steps.filter((step) => step.at_ms > 0);
  const rows = known.map((step) =>
    h(
      `li${step.ok ? ".good" : ".bad"}`,
      {},
      h("div", {}, h("span.strong", {}, stepTitle(step)), step.group && [" ", h("a", { href: link(step.kind === "dead_letter" ? "dead-letters" : "groups", step.group) }, step.group)]),
      h("div.wrap", {}, remarkText(step.remark)),
      h("div.when", {}, [time(step.at_ms, { withMillis: true }), step.duration_ms !== null && duration(step.duration_ms), step.client].filter(Boolean).join(" · ")),
    ),
  );
  return [rows.length > 0 && h("ol.timeline", {}, rows), notes.length > 0 && h("p.muted", {}, remarkTexts(notes))];
}

function stepTitle(step) {
  const key = `step.${step.kind}`;
  const title = has(key) ? t(key) : step.kind;
  const isBadNews = step.kind === "dead_letter" || step.kind === "retried";
  return step.ok || isBadNews ? title : t("step.failed", { step: title });
}

async function fateTable({ rows }, { message }, id) {
  const again = (row) => resendDialog(message, id, row.group);
  const table = new Table({
    label: t("message.fate"),
    columns: [
      { key: "group", title: t("group"), sort: true, cell: (row) => h("a.wrap", { href: link("groups", row.group) }, row.group) },
      { key: "state", title: t("state"), sort: true, long: true, cell: fateCell },
      { key: "act", title: "", end: true, cell: (row) => button(t("resend.etc"), () => again(row), { kind: "small", disabled: !may("operator"), label: t("resend.to", { group: row.group }) }) },
    ],
    source: localSource(() => rows),
    rowKey: (row) => row.group,
    none: empty(t("message.no_groups"), ""),
  });
  await table.load();
  return table.element;
}

function fateCell(row) {
  const key = `fate.${row.state}`;
  return h("div", {}, badge(has(key) ? t(key) : row.state, FATE_TONES[row.state] ?? ""), row.reason && h("div.under.wrap", {}, row.reason));
}

/** To one group only, which is what is nearly always meant, or as a new message to a topic. */
export async function resendDialog(message, id, group = "") {
  const form = new Form();
  const isDead = message.topic.startsWith(DEAD_LETTER_PREFIX);
  const own = isDead ? message.topic.slice(DEAD_LETTER_PREFIX.length) : group;
  const groups = await groupsFor(message.topic, own);
  const place = h("div");
  const draw = () =>
    replace(
      place,
      form.value("kind") === "group"
        ? form.field("to", t("group"), { type: "select", options: groups.map((one) => [one, one]), value: own, hint: t("resend.group.hint") })
        : form.field("to", t("topic"), { value: isDead ? "" : message.topic, required: true, hint: t("resend.topic.hint") }),
    );
  const kinds = [...(groups.length ? [["group", t("resend.kind.group")]] : []), ["topic", t("resend.kind.topic")]];
  const what = message.keys.join(" ") || message.message_id;
  actionDialog(
    t("resend.title", { what }),
    () => [form.field("kind", t("resend.kind"), { type: "select", options: kinds, onchange: draw }), place],
    {
      action: t("resend"),
      act: async () => {
        const { kind, to } = form.values();
        const outcome = await form.checked(() => post(path("messages", id, "resend"), { topic: message.topic, [`to_${kind}`]: to }));
        toastOutcome(t(`resend.done.${kind}`, { what, to }), outcome);
      },
    },
  );
  draw();
}

async function groupsFor(topic, own) {
  if (own) return [own];
  const { groups } = await get(path("topics", topic)).catch(() => ({ groups: [] }));
  return groups.map((one) => one.name);
}
