// Dialogs about one topic: create, change, delete, send a message.

import { get, patch, path, post, remove } from "../../core/api.js";
import { h } from "../../core/dom.js";
import { number } from "../../core/format.js";
import { go, link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { notice } from "../../parts/bits.js";
import { actionDialog, confirmByName } from "../../parts/dialog.js";
import { Form } from "../../parts/fields.js";
import { toast, toastOutcome } from "../../parts/toasts.js";

const TYPES = ["", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "UNSPECIFIED"];
const PERMS = ["rw", "r", "w"];

/** The clusters and masters that something can be created at: `[[value, text]]`, clusters first. */
export async function placeOptions() {
  const { clusters, brokers } = await get("cluster");
  const masters = brokers.filter((one) => one.is_master);
  return [
    ...clusters.map((name) => [`cluster:${name}`, t("place.cluster", { name })]),
    ...masters.map(({ name }) => [`broker:${name}`, t("place.broker", { name })]),
  ];
}

/** `cluster:NAME` or `broker:NAME` as the API has it. */
export function placeOf(value) {
  const [kind, ...rest] = value.split(":");
  return { [kind]: rest.join(":") };
}

export async function newTopicDialog(done) {
  const places = await placeOptions();
  const form = new Form();
  actionDialog(
    t("topics.new"),
    () => [
      form.field("name", t("name"), { required: true, hint: t("topics.name.hint"), autofocus: true }),
      h(
        "div.fields",
        {},
        form.field("place", t("place"), { type: "select", options: places }),
        form.field("message_type", t("topics.type"), { type: "select", options: TYPES.map((one) => [one, one || t("topics.type.default")]), hint: t("topics.type.hint") }),
        form.field("write_queues", t("queues.write"), { type: "number", value: 8, min: 1, max: 1024, hint: t("queues.hint") }),
        form.field("read_queues", t("queues.read"), { type: "number", value: 8, min: 1, max: 1024 }),
        form.field("perm", t("perm"), { type: "select", options: PERMS.map((one) => [one, t(`perm.${one}`)]) }),
      ),
      form.field("order", t("topics.order"), { type: "check", hint: t("topics.order.hint") }),
    ],
    {
      action: t("create"),
      isReady: () => form.value("name") !== "",
      act: async () => {
        const { place, ...values } = form.values();
        const outcome = await form.checked(() => post("topics", { ...values, ...placeOf(place) }));
        toastOutcome(t("topics.created", { name: values.name }), outcome);
        await done();
      },
    },
  );
}

/** @param topic an answer of `topics/{topic}` */
export function changeTopicDialog(topic, done) {
  const now = topic.definitions[0];
  const form = new Form();
  const places = [["", t("place.everywhere")], ...topic.definitions.map(({ broker }) => [`broker:${broker}`, t("place.broker", { name: broker })])];
  actionDialog(
    t("topics.change.title", { name: topic.name }),
    () => [
      topic.definitions_differ && notice("warn", t("topics.differ")),
      h(
        "div.fields",
        {},
        form.field("place", t("place"), { type: "select", options: places }),
        form.field("write_queues", t("queues.write"), { type: "number", value: now.write_queues, min: 1, max: 1024 }),
        form.field("read_queues", t("queues.read"), { type: "number", value: now.read_queues, min: 1, max: 1024, hint: t("queues.fewer") }),
        form.field("perm", t("perm"), { type: "select", options: PERMS.map((one) => [one, t(`perm.${one}`)]), value: now.perm }),
      ),
    ],
    {
      action: t("change"),
      act: async () => {
        const { place, ...values } = form.values();
        const where = place ? placeOf(place) : {};
        const outcome = await form.checked(() => patch(path("topics", topic.name), { ...values, ...where }));
        toastOutcome(t("topics.changed", { name: topic.name }), outcome);
        await done();
      },
    },
  );
}

export function deleteTopicDialog(topic) {
  confirmByName(t("topics.delete.title", { name: topic.name }), {
    name: topic.name,
    text: t("topics.delete.text", { messages: number(topic.messages), groups: number(topic.groups.length) }),
    action: t("topics.delete"),
    act: async () => {
      const clusters = new Set(topic.definitions.map((one) => one.cluster));
      const cluster = clusters.size === 1 ? [...clusters][0] : "";
      const outcome = await remove(path("topics", topic.name), { confirm: topic.name, cluster });
      toastOutcome(t("topics.deleted", { name: topic.name }), outcome);
      go(link("topics"));
    },
  });
}

export function sendDialog(topic, done) {
  const form = new Form();
  actionDialog(
    t("send.title", { name: topic }),
    () => [
      form.field("body", t("send.body"), { type: "textarea", rows: 7 }),
      h(
        "div.fields",
        {},
        form.field("tags", t("tag")),
        form.field("keys", t("keys"), { hint: t("send.keys.hint") }),
        form.field("delay_s", t("send.delay"), { type: "number", value: "", min: 0, max: 259200, hint: t("send.delay.hint") }),
      ),
      form.field("properties", t("properties"), { type: "textarea", rows: 2, hint: t("send.properties.hint") }),
    ],
    {
      action: t("send"),
      act: async () => {
        const { body, tags, keys, delay_s, properties } = form.values();
        const message = {
          body,
          tags,
          keys: keys.split(/\s+/).filter(Boolean),
          delay_ms: (delay_s ?? 0) * 1000,
          properties: parsedProperties(properties),
        };
        const sent = await form.checked(() => post(path("topics", topic, "messages"), message));
        toast("good", h("div.strong", {}, t("send.done", { status: sent.status })), h("a.wrap", { href: link("messages", sent.message_id, { topic }) }, sent.message_id));
        await done?.();
      },
    },
  );
}

/** Lines of `name=value`. */
function parsedProperties(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(
    lines.map((line) => {
      const [name, ...value] = line.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
}
