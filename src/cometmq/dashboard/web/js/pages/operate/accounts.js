// Accounts of the brokers and what they may do.

import { get, path, put, remove } from "../../core/api.js";
import { h, replace } from "../../core/dom.js";
import { may, session } from "../../core/session.js";
import { t } from "../../core/texts.js";
import { badge, button, card, empty, errorNotice, notice, pageHead } from "../../parts/bits.js";
import { actionDialog, confirmByName } from "../../parts/dialog.js";
import { Form } from "../../parts/fields.js";
import { Table, localSource } from "../../parts/table.js";
import { toastOutcome } from "../../parts/toasts.js";

const ACTIONS = ["All", "Pub", "Sub", "Create", "Update", "Delete", "Get", "List"];

export async function page(view) {
  view.title(t("page.accounts"));
  if (session.role !== "admin") return view.show(pageHead(t("page.accounts")), errorNotice({ message: t("admins_only") }));
  let rows = [];
  const reload = () => view.refresh();
  const unchecked = h("div");
  const table = new Table({
    label: t("page.accounts"),
    columns: columns(reload),
    source: localSource(() => rows, (row) => row.name),
    rowKey: (row) => row.name,
    filter: t("accounts.filter"),
    sort: "name",
    none: empty(t("accounts.none"), t("accounts.none.text")),
  });
  const add = button(t("accounts.new"), () => accountDialog(null, reload), { kind: "primary", iconName: "plus", disabled: !may("admin") });
  view.show(pageHead(t("page.accounts"), { about: t("accounts.about"), actions: [add] }), unchecked, card(null, table.element));
  return view.follow(async () => {
    const answer = await get("accounts");
    view.missing(answer.incomplete);
    replace(unchecked, !answer.checked && notice("warn", t("accounts.unchecked")));
    unchecked.hidden = answer.checked;
    rows = answer.rows;
    await table.load();
  });
}

function columns(done) {
  return [
    { key: "name", title: t("accounts.account"), sort: true, cell: (row) => h("span", {}, h("span.strong.wrap", {}, row.name), !row.enabled && [" ", badge(t("accounts.disabled"), "warn")]) },
    { key: "role", title: t("accounts.role"), sort: true, cell: (row) => row.role && badge(t(`role.${row.role}`), row.is_super ? "info" : "") },
    { key: "kind", title: t("accounts.kind"), sort: true, cell: (row) => t(`accounts.kind.${row.kind}`) },
    { key: "rules", title: t("accounts.rules"), long: true, cell: rulesCell },
    {
      key: "act",
      title: "",
      end: true,
      cell: (row) =>
        row.kind === "acl2" &&
        h(
          "span.row",
          {},
          button(t("accounts.rule.etc"), () => ruleDialog(row, done), { kind: "small", disabled: !may("admin"), label: t("accounts.rule.title", { name: row.name }) }),
          button(t("change.etc"), () => accountDialog(row, done), { kind: "small", disabled: !may("admin"), label: `${t("change")}: ${row.name}` }),
          button(t("delete.etc"), () => deleteDialog(row, done), { kind: "small", disabled: !may("admin"), label: `${t("delete")}: ${row.name}` }),
        ),
    },
  ];
}

function rulesCell(row) {
  if (row.is_super) return h("span.muted", {}, t("accounts.everything"));
  return h(
    "ul",
    {},
    row.rules.map((rule) =>
      h("li", {}, badge(t(`decision.${rule.decision}`), rule.decision === "Allow" ? "good" : "bad"), " ", h("code", {}, rule.resource), ` ${rule.actions.join(", ")}`, rule.source_ips.length > 0 && h("span.muted", {}, ` ${t("accounts.from", { addresses: rule.source_ips.join(", ") })}`)),
    ),
  );
}

function accountDialog(account, done) {
  const form = new Form();
  actionDialog(
    account ? t("accounts.change.title", { name: account.name }) : t("accounts.new"),
    () => [
      !account && form.field("name", t("accounts.account"), { required: true, autofocus: true }),
      form.field("password", t("login.password"), { type: "password", autocomplete: "new-password", hint: account ? t("accounts.password.hint") : "" }),
      form.field("is_super", t("accounts.super"), { type: "check", value: account?.is_super ?? false, hint: t("accounts.super.hint") }),
      form.field("enabled", t("accounts.enabled"), { type: "check", value: account?.enabled ?? true }),
    ],
    {
      action: account ? t("change") : t("create"),
      isReady: () => Boolean(account) || (form.value("name") !== "" && form.value("password") !== ""),
      act: async () => {
        const { name = account?.name, password, ...values } = form.values();
        const outcome = await form.checked(() => put("accounts", { name, password: password || null, ...values }));
        toastOutcome(t("accounts.saved", { name }), outcome);
        await done();
      },
    },
  );
}

function ruleDialog(account, done) {
  const form = new Form();
  actionDialog(
    t("accounts.rule.title", { name: account.name }),
    () => [
      form.field("resource", t("accounts.resource"), { required: true, hint: t("accounts.resource.hint"), autofocus: true }),
      h("fieldset.field", {}, h("legend", {}, t("accounts.actions")), h("div.row", {}, ACTIONS.map((one) => form.field(one, one, { type: "check" })))),
      h("p.muted", {}, t("accounts.actions.hint")),
      h(
        "div.fields",
        {},
        form.field("decision", t("accounts.decision"), { type: "select", options: ["Allow", "Deny"].map((one) => [one, t(`decision.${one}`)]) }),
        form.field("source_ips", t("accounts.source_ips"), { hint: t("accounts.source_ips.hint") }),
      ),
    ],
    {
      action: t("accounts.rule.action"),
      isReady: () => form.value("resource") !== "",
      act: async () => {
        const { resource, decision, source_ips } = form.values();
        const rule = { resource, decision, source_ips: source_ips.split(/[\s,]+/).filter(Boolean), actions: ACTIONS.filter((one) => form.value(one)) };
        const outcome = await form.checked(() => put(path("accounts", account.name, "rules"), rule));
        toastOutcome(t("accounts.saved", { name: account.name }), outcome);
        await done();
      },
    },
  );
}

function deleteDialog(account, done) {
  confirmByName(t("accounts.delete.title", { name: account.name }), {
    name: account.name,
    text: t("accounts.delete.text"),
    action: t("delete"),
    act: async () => {
      toastOutcome(t("accounts.deleted", { name: account.name }), await remove(path("accounts", account.name), { confirm: account.name }));
      await done();
    },
  });
}
