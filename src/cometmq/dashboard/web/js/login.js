// Logging in. Also what a session that ended comes to: the address stays, so the page is there again afterwards.

import { post, useToken } from "./core/api.js";
import { h, replace } from "./core/dom.js";
import { t } from "./core/texts.js";
import { button, errorNotice } from "./parts/bits.js";
import { Form } from "./parts/fields.js";
import { languageSwitch } from "./frame.js";

export function showLogin(done) {
  document.title = `${t("login.title")} · CometMQ`;
  for (const open of document.querySelectorAll("dialog[open]")) open.close();
  const form = new Form();
  const problem = h("div", { aria: { live: "assertive" } });
  const submit = button(t("login.action"), () => {}, { kind: "primary" });
  submit.type = "submit";
  const login = async (event) => {
    event.preventDefault();
    replace(problem);
    submit.disabled = true;
    try {
      const answer = await form.checked(() => post("session", form.values()));
      useToken(answer?.csrf_token);
      done();
    } catch (error) {
      replace(problem, errorNotice(error));
      submit.disabled = false;
    }
  };
  replace(
    document.body,
    h(
      "main.login",
      {},
      h(
        "form.login-card",
        { onsubmit: login },
        h("h1.brand", {}, h("img", { src: "web/comet.svg", alt: "", width: 26, height: 26 }), "CometMQ"),
        h("p.muted", {}, t("login.about")),
        problem,
        form.field("name", t("login.user"), { autocomplete: "username", required: true }),
        form.field("password", t("login.password"), { type: "password", autocomplete: "current-password", required: true }),
        submit,
        languageSwitch(() => location.reload()),
      ),
    ),
  );
  form.input("name").focus();
}
