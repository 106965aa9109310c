// Start: who is here, then the frame and the page that the address names.

import { get, useToken, whenLoginIsNeeded } from "./core/api.js";
import { applyTheme, choice, choose } from "./core/choices.js";
import { h, replace } from "./core/dom.js";
import { session } from "./core/session.js";
import { language, t } from "./core/texts.js";
import { buildFrame, leaveFrame } from "./frame.js";
import { showLogin } from "./login.js";
import { errorNotice } from "./parts/bits.js";

let isStarting = false;

applyTheme();
document.documentElement.lang = language() === "zh" ? "zh-CN" : "en";
whenLoginIsNeeded(() => document.querySelector(".frame") && start());
start();

async function start() {
  if (isStarting) return; // several answers at once may say that a login is needed
  isStarting = true;
  try {
    // Whatever set of name servers was chosen last may be gone by now.
    enter(await get("me", { site: "" }));
  } catch (error) {
    const again = h("button.button", { type: "button", onclick: start }, t("again"));
    replace(document.body, h("main.login", {}, h("div.login-card", {}, errorNotice(error), again)));
  } finally {
    isStarting = false;
  }
}

function enter(me) {
  useToken(me.csrf_token);
  Object.assign(session, me);
  if (!me.sites.some((one) => one.name === choice("site"))) choose("site", "");
  if (me.user || !me.login_required) {
    buildFrame(start);
  } else {
    leaveFrame();
    showLogin(start);
  }
}
