// Delayed and timed messages that wait, soonest first, and taking one back.

import { get, post } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { duration, number } from "../../core/format.js";
import { link } from "../../core/router.js";
import { may } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { button, card, empty, moment, pageHead } from "../../parts/bits.js";
import { confirm } from "../../parts/dialog.js";
import { remarkTexts } from "../../parts/notes.js";
import { Table, localSource } from "../../parts/table.js";
import { toastOutcome } from "../../parts/toasts.js";

export async function page(view) {
  view.title(t("page.delayed"));
  let rows = [];
  const note = h("p.muted");
  const table = new Table({
    label: t("page.delayed"),
    columns: columns((row) => recall(row, () => view.refresh())),
    source: localSource(() => rows, (row) => `${row.topic} ${row.keys.join(" ")} ${row.tags} ${row.message_id}`),
    rowKey: (row) => row.message_id,
    filter: t("delayed.filter"),
    remembers: true,
    sort: "due_ms",
    none: empty(t("delayed.none"), t("delayed.none.text")),
  });
  view.show(pageHead(t("page.delayed"), { about: t("delayed.about") }), card(null, table.element), note);
  await view.follow(async () => {
    const answer = await get("waiting", { size: 500 });
    view.missing(answer.incomplete);
    rows = answer.rows;
    replace(note, [t("messages.scanned", { count: number(answer.scanned) }), remarkTexts(answer.notes)].filter(Boolean).join(" "));
    await table.load();
  }, { everySeconds: 15 });
}

function columns(recallRow) {
  return [
    { key: "due_ms", title: t("delayed.due"), sort: true, cell: (row) => h("div", {}, moment(row.due_ms), h("div.under", {}, row.due_ms > Date.now() ? t("delayed.in", { duration: duration(row.due_ms - Date.now()) }) : t("delayed.now"))) },
    { key: "topic", title: t("topic"), sort: true, cell: (row) => h("a.wrap", { href: link("topics", row.topic) }, row.topic) },
    { key: "keys", title: t("keys"), cell: (row) => h("span.clip", {}, row.keys.join(" ")) },
    { key: "preview", title: t("body"), cell: (row) => h("code.clip", {}, row.preview) },
    { key: "stored_ms", title: t("message.stored"), sort: true, cell: (row) => moment(row.stored_ms) },
    {
      key: "act",
      title: "",
      end: true,
      cell: (row) => row.recall && button(t("recall.etc"), () => recallRow(row), { kind: "small", disabled: !may("operator"), label: `${t("recall")}: ${row.keys.join(" ") || row.message_id}` }),
    },
  ];
}

function recall(row, done) {
  const what = row.keys.join(" ") || row.message_id;
  confirm(t("recall.title", { what }), {
    text: t("recall.text", { topic: row.topic }),
    action: t("recall"),
    kind: "danger",
    act: async () => {
      const outcome = await post("waiting/recall", { topic: row.topic, handle: row.recall });
      toastOutcome(t("recall.done", { what }), outcome);
      await done();
    },
  });
}
