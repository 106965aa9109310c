// One box that finds topics, groups, brokers and pages; opened by `/` or Ctrl+K, used by keyboard alone.

import { get } from "../core/api.js";
import { h, replace } from "../core/dom.js";
import { NAVIGATION } from "../core/pages.js";
import { go, link } from "../core/router.js";
import { t } from "../core/texts.js";

const PAUSE_MS = 120;
const MESSAGE_ID = /^[0-9A-F]{32,40}$/i;

const LINKS = {
  topic: (row) => link("topics", row.name),
  group: (row) => link("groups", row.name),
  broker: (row) => link("cluster", row.name),
  client: (row) => link("groups", row.group, { tab: "members" }),
  page: (row) => row.href,
  message: (row) => link("messages", { by: "id", id: row.name }),
  key: (row) => link("messages", { by: "key", key: row.name }),
};

export function openSearch() {
  if (document.querySelector("dialog[open]")) return;
  let rows = [];
  let chosen = 0;
  let turn = 0;
  let pause;
  const list = h("div.search-results", { id: "search-results", role: "listbox", aria: { label: t("search.results") } });
  const input = h("input.search-input", {
    type: "text",
    role: "combobox",
    placeholder: t("search.placeholder"),
    autocomplete: "off",
    spellcheck: "false",
    aria: { label: t("search.placeholder"), controls: "search-results", expanded: "true", autocomplete: "list" },
    oninput: () => {
      clearTimeout(pause);
      pause = setTimeout(find, PAUSE_MS);
    },
    onkeydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && rows.length) {
        event.preventDefault();
        choose((chosen + step + rows.length) % rows.length);
      } else if (event.key === "Enter" && rows[chosen]) {
        event.preventDefault();
        open(rows[chosen]);
      }
    },
  });
  const dialog = h(
    "dialog.search",
    { aria: { label: t("search.title") }, onclick: (event) => event.target === dialog && dialog.close() },
    input,
    list,
    h("div.search-foot", {}, t("search.keys")),
  );
  dialog.addEventListener("close", () => dialog.remove());

  function open(row) {
    dialog.close();
    go(LINKS[row.type](row));
  }
  function choose(index) {
    chosen = index;
    for (const [at, option] of [...list.children].entries()) option.setAttribute("aria-selected", String(at === index));
    list.children[index]?.scrollIntoView({ block: "nearest" });
    if (list.children[index]) input.setAttribute("aria-activedescendant", list.children[index].id);
    else input.removeAttribute("aria-activedescendant");
  }
  function show(found) {
    rows = found;
    const options = rows.map((row, index) =>
      h(
        "div",
        { id: `search-${index}`, role: "option", aria: { selected: "false" }, onclick: () => open(row) },
        h("span.name", {}, row.name),
        h("span.kind", {}, t(`search.kind.${row.type}`)),
      ),
    );
    replace(list, options);
    if (!rows.length) replace(list, h("div.empty", { role: "option", aria: { selected: "false", disabled: "true" } }, t("search.none")));
    choose(0);
  }
  async function find() {
    const wanted = input.value.trim();
    const mine = ++turn;
    const pages = pageRows(wanted);
    if (!wanted) return show(pages);
    const known = await get("search", { q: wanted }).catch(() => ({ rows: [] }));
    if (mine !== turn || !dialog.isConnected) return;
    const asMessage = MESSAGE_ID.test(wanted) ? [{ type: "message", name: wanted }] : [];
    show([...asMessage, ...known.rows, ...pages, ...(asMessage.length ? [] : [{ type: "key", name: wanted }])]);
  }
  document.body.append(dialog);
  dialog.showModal();
  show(pageRows(""));
}

function pageRows(wanted) {
  const pages = NAVIGATION.flatMap(([, entries]) => entries).map(([page]) => ({
    type: "page",
    name: t(`page.${page}`),
    href: link(page),
  }));
  return pages.filter((one) => one.name.toLowerCase().includes(wanted.toLowerCase()));
}
