// Tabs with one panel; the chosen one is in the address. Arrow keys move between them.

import { freshId, h, replace } from "../core/dom.js";
import { here, remember } from "../core/router.js";

/** @param tabs [{key, title, build: (panel) => elements}]; `build` runs when its tab is chosen */
export function tabs(label, all) {
  const id = freshId("tabs");
  const panel = h("div.tab-panel", { id: `${id}-panel`, role: "tabpanel", tabindex: "0" });
  const wanted = here().params.tab;
  let chosen = all.find((tab) => tab.key === wanted) ?? all[0];
  const buttons = all.map((tab) =>
    h(
      "button",
      {
        id: `${id}-${tab.key}`,
        type: "button",
        role: "tab",
        aria: { controls: `${id}-panel` },
        onclick: () => choose(tab),
        onkeydown: (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          const next = all[(all.indexOf(tab) + step + all.length) % all.length];
          choose(next);
          buttons[all.indexOf(next)].focus();
        },
      },
      tab.title,
    ),
  );
  function choose(tab) {
    chosen = tab;
    remember({ tab: tab === all[0] ? "" : tab.key });
    draw();
  }
  function draw() {
    for (const [index, tab] of all.entries()) {
      buttons[index].setAttribute("aria-selected", String(tab === chosen));
      buttons[index].tabIndex = tab === chosen ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `${id}-${chosen.key}`);
    replace(panel, chosen.build(panel));
  }
  draw();
  return {
    element: h("div.column", {}, h("div.tabs", { role: "tablist", aria: { label } }, buttons), panel),
    redraw: draw,
    get chosen() {
      return chosen.key;
    },
  };
}
