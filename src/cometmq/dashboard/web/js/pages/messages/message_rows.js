// Rows of messages, as searches and the live tail show them.

import { h } from "../../core/dom.js";
import { bytes, number } from "../../core/format.js";
import { link } from "../../core/router.js";
import { t } from "../../core/texts.js";
import { badge, moment } from "../../parts/bits.js";

export function messageLink(row) {
  return link("messages", row.offset_id || row.message_id, { topic: row.topic });
}

export function messageColumns() {
  return [
    { key: "stored_ms", title: t("message.stored"), sort: true, cell: (row) => h("a", { href: messageLink(row) }, moment(row.stored_ms)) },
    { key: "keys", title: t("keys"), sort: true, cell: (row) => h("span.clip", { title: row.keys.join(" ") }, row.keys.join(" ")) },
    { key: "tags", title: t("tag"), sort: true, cell: (row) => row.tags && badge(row.tags) },
    { key: "preview", title: t("body"), cell: (row) => h("code.clip", {}, row.preview) },
    { key: "body_bytes", title: t("size"), sort: true, number: true, cell: (row) => bytes(row.body_bytes) },
    {
      key: "place",
      title: t("message.place"),
      cell: (row) => h("span.muted", {}, `${row.broker} : ${row.queue_id} @ ${number(row.queue_offset)}`),
    },
  ];
}

export function messageTexts(row) {
  return `${row.keys.join(" ")} ${row.tags} ${row.preview} ${row.message_id}`;
}
