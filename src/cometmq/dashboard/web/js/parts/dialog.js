// Dialogs: they name the thing they act on, say what came of it, and keep what was typed if it failed.

import { h, replace, freshId } from "../core/dom.js";
import { t } from "../core/texts.js";
import { button, errorNotice } from "./bits.js";
import { icon } from "./icons.js";

/**
 * @param build (dialog) => elements of its body
 * @returns {close, setFoot(...buttons), showProblem(error)}
 */
export function openDialog(title, build, { wide = false } = {}) {
  const id = freshId("dialog");
  const problem = h("div", { aria: { live: "assertive" } });
  const body = h("div.dialog-body");
  const foot = h("div.dialog-foot");
  const element = h(
    `dialog${wide ? ".wide" : ""}`,
    { aria: { labelledby: id } },
    h(
      "div.dialog-head",
      {},
      h("h2", { id }, title),
      h("button.button.quiet.small", { type: "button", aria: { label: t("close") }, onclick: () => element.close() }, icon("close")),
    ),
    body,
    foot,
  );
  const dialog = {
    element,
    close: () => element.close(),
    setBody: (...content) => replace(body, ...content, problem),
    setFoot: (...buttons) => replace(foot, ...buttons),
    showProblem: (error) => {
      replace(problem, error && errorNotice(error));
      if (error) problem.scrollIntoView({ block: "nearest" });
    },
  };
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  dialog.setBody(...[build(dialog)].flat(Infinity));
  element.showModal();
  return dialog;
}

/**
 * One action with a form or a question before it. The buttons are locked while it runs.
 * @param act async () => void; the dialog closes after it, unless it returns false
 */
export function actionDialog(title, build, { action, act, kind = "primary", wide = false, isReady = () => true } = {}) {
  const confirm = button(action, () => run(), { kind });
  const dialog = openDialog(
    title,
    (opened) => {
      opened.setFoot(button(t("cancel"), opened.close), confirm);
      return h(
        "form.form",
        {
          oninput: () => (confirm.disabled = !isReady()),
          onsubmit: (event) => {
            event.preventDefault();
            if (!confirm.disabled) run();
          },
        },
        build(opened),
        h("button", { type: "submit", hidden: true, tabindex: "-1" }),
      );
    },
    { wide },
  );
  confirm.disabled = !isReady();
  async function run() {
    confirm.disabled = true;
    dialog.showProblem(null);
    try {
      if ((await act(dialog)) !== false) dialog.close();
    } catch (error) {
      dialog.showProblem(error);
    } finally {
      confirm.disabled = !isReady();
    }
  }
  return dialog;
}

/** Before something that cannot be undone: the name has to be typed. */
export function confirmByName(title, { name, text, action, act }) {
  const id = freshId("name");
  const input = h("input", { id, autocomplete: "off", spellcheck: "false", autofocus: true });
  return actionDialog(
    title,
    () => [
      h("p", {}, text),
      h("div.field", {}, h("label", { for: id }, t("confirm.type", { name })), input),
    ],
    { action, kind: "danger", act, isReady: () => input.value === name },
  );
}

/** Before something that can be undone or only adds. */
export function confirm(title, { text, action, act, kind = "primary" }) {
  return actionDialog(title, () => (text instanceof Node ? text : h("p", {}, text)), { action, act, kind });
}
