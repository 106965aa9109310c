// What stands around every page: navigation, search, cluster, who is here, language and theme. It shows the page that the
// address names, and says so if that page fails.

import { remove } from "./core/api.js";
import { applyTheme, choice, choose, isDark } from "./core/choices.js";
import { h, replace } from "./core/dom.js";
import { zone } from "./core/format.js";
import { pulse } from "./core/live.js";
import { NAVIGATION, pageOf } from "./core/pages.js";
import { here, link } from "./core/router.js";
import { session } from "./core/session.js";
import { LANGUAGES, language, t } from "./core/texts.js";
import { View } from "./core/view.js";
import { badge, button, empty, errorNotice, segments } from "./parts/bits.js";
import { icon } from "./parts/icons.js";
import { openSearch } from "./parts/search.js";
import { toast } from "./parts/toasts.js";

const state = { view: null, show: null, hasKeys: false, endPulse: () => {} };

/** @param restart reads again who is here */
export function buildFrame(restart) {
  const root = h("main.page", { id: "page", tabindex: "-1" });
  const status = h("span.muted.wide-only", { id: "status" });
  const frame = h("div.frame");
  const setMenu = (isOpen) => {
    frame.classList.toggle("menu-open", isOpen);
    menu.setAttribute("aria-expanded", String(isOpen));
  };
  const menu = h(
    "button.button.quiet.menu-button",
    { type: "button", aria: { label: t("menu"), controls: "side", expanded: "false" }, onclick: () => setMenu(!frame.classList.contains("menu-open")) },
    icon("menu"),
  );
  const links = new Map();
  const side = h("aside.side", { id: "side" }, brand(), siteChoice(), navigation(links), sideFoot(restart));
  const top = h("header.top", {}, menu, searchButton(), h("div.top-right", {}, status, followButton()));
  replace(frame, side, h("div.main", {}, top, root), h("div.veil", { onclick: () => setMenu(false) }));
  replace(document.body, h("a.skip", { href: "#page", onclick: (event) => skip(event, root) }, t("skip")), frame);

  state.show = async () => {
    const { parts } = here();
    setMenu(false);
    for (const [page, entry] of links) {
      if (page === (parts[0] ?? "overview")) entry.setAttribute("aria-current", "page");
      else entry.removeAttribute("aria-current");
    }
    await showPage(root, status);
  };
  if (!state.hasKeys) {
    state.hasKeys = true;
    addEventListener("hashchange", () => document.querySelector(".frame") && state.show());
    addEventListener("keydown", onKey);
  }
  state.endPulse();
  state.endPulse = pulse.start(sayAlert);
  state.show();
}

/** Called when nobody is logged in any more. */
export function leaveFrame() {
  state.view?.leave();
  state.view = null;
  state.endPulse();
}

function sayAlert(alert) {
  const isOver = alert.state === "resolved";
  const text = t(isOver ? "alerts.over" : "alerts.fired", { rule: alert.rule, subject: alert.subject });
  toast(isOver ? "good" : "bad", h("a", { href: link("alerts") }, text));
}

async function showPage(root, status) {
  state.view?.leave();
  const view = new View(root, (text, tone) => {
    status.textContent = text;
    status.classList.toggle("bad-text", tone === "bad");
  });
  state.view = view;
  status.textContent = "";
  const { parts, params } = here();
  root.setAttribute("aria-busy", "true");
  try {
    const page = await pageOf(parts);
    if (view !== state.view) return;
    scrollTo(0, 0);
    if (page) await page(view, parts.slice(1), params);
    else notFound(view);
  } catch (error) {
    if (view === state.view) replace(root, h("h1", {}, t("page.broken")), errorNotice(error));
    throw error;
  } finally {
    if (view === state.view) root.removeAttribute("aria-busy");
  }
}

function notFound(view) {
  view.title(t("page.unknown"));
  view.show(h("h1", {}, t("page.unknown")), empty(t("page.unknown.text"), "", h("a", { href: link("overview") }, t("page.overview"))));
}

function skip(event, root) {
  event.preventDefault();
  root.focus();
}

function onKey(event) {
  const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
  const isSearch = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping);
  if (!isSearch || !document.querySelector(".frame")) return;
  event.preventDefault();
  openSearch();
}

function brand() {
  return h("a.brand", { href: link("overview") }, h("img", { src: "web/comet.svg", alt: "", width: 22, height: 22 }), "CometMQ");
}

function siteChoice() {
  if (session.sites.length < 2) return null;
  const select = h(
    "select",
    {
      aria: { label: t("site.choice") },
      onchange: () => {
        choose("site", select.value);
        location.reload();
      },
    },
    session.sites.map(({ name }) => h("option", { value: name, selected: name === (choice("site") || session.site) }, name)),
  );
  return select;
}

function navigation(links) {
  const parts = NAVIGATION.map(([title, entries]) =>
    h(
      "div",
      {},
      title !== "nav.now" && h("div.nav-title", {}, t(title)),
      entries.map(([page, iconName]) => {
        const entry = h("a.nav-link", { href: link(page) }, icon(iconName), t(`page.${page}`));
        links.set(page, entry);
        return entry;
      }),
    ),
  );
  return h("nav", { aria: { label: t("nav.label") } }, parts);
}

function sideFoot(restart) {
  const logout = async () => {
    leaveFrame(); // nothing more is asked for under this login
    await remove("session");
    restart();
  };
  return h(
    "div.side-foot",
    {},
    session.read_only && h("div", {}, badge(t("read_only"), "info", t("read_only.text"))),
    session.user &&
      h(
        "div.row",
        {},
        h("span.wrap", {}, session.user, " ", badge(t(`role.${session.role}`))),
        session.login_required && button("", logout, { kind: "quiet small", iconName: "out", label: t("logout"), title: t("logout") }),
      ),
    h("div.row", {}, languageSwitch(() => location.reload()), themeSwitch()),
    h("div", { title: t("zone.text") }, zone()),
    session.version && h("div", {}, `CometMQ ${session.version}`),
  );
}

export function languageSwitch(changed) {
  return segments(t("language"), LANGUAGES, language(), (chosen) => {
    choose("language", chosen);
    changed();
  });
}

function themeSwitch() {
  const toggle = button("", () => {
    choose("theme", isDark() ? "light" : "dark");
    applyTheme();
    draw();
  }, { kind: "quiet small" });
  const draw = () => {
    replace(toggle, icon(isDark() ? "sun" : "moon"));
    const text = t(isDark() ? "theme.light" : "theme.dark");
    toggle.setAttribute("aria-label", text);
    toggle.title = text;
  };
  draw();
  return toggle;
}

function searchButton() {
  return h(
    "button.search-button",
    { type: "button", onclick: openSearch, aria: { keyshortcuts: "/ Control+K" } },
    icon("search"),
    h("span", {}, t("search.placeholder")),
    h("kbd", {}, "/"),
  );
}

function followButton() {
  const toggle = button("", () => {
    choose("following", choice("following") === "yes" ? "no" : "yes");
    draw();
    if (choice("following") === "yes") state.view?.refresh?.();
  }, { kind: "quiet small" });
  const draw = () => {
    const isOn = choice("following") === "yes";
    const text = t(isOn ? "follow.stop" : "follow.start");
    replace(toggle, icon(isOn ? "pause" : "play"));
    toggle.setAttribute("aria-label", text);
    toggle.title = text;
  };
  draw();
  return toggle;
}
