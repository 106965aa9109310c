// A table that sorts, filters, pages and lets rows be chosen. Where its rows come from is a function: of the server, which
// then does the work, or `localSource` for what a page holds already.

import { h, freshId, replace } from "../core/dom.js";
import { number } from "../core/format.js";
import { here, remember } from "../core/router.js";
import { t } from "../core/texts.js";
import { button, empty, errorNotice } from "./bits.js";

const FILTER_PAUSE_MS = 200;

export class Table {
  /**
   * @param label what the rows are, for those who do not see the table
   * @param columns [{key, title, cell(row), sort: may be sorted, number: aligned right, long: may wrap}]
   * @param source async ({page, size, sort, q}) => {rows, total}
   * @param rowKey (row) => text that is a row's own
   * @param filter placeholder of the filter; empty: no filter
   * @param extras elements beside the filter
   * @param selecting whether rows can be chosen; `onselect(rows)` hears of it
   * @param remembers whether filter, sorting and page are kept in the page's address
   */
  constructor(options) {
    const { label, columns, source, rowKey, filter = "", extras = [], size = 50, sort = "" } = options;
    const { selecting = false, onselect = () => {}, remembers = false, none = null } = options;
    Object.assign(this, { label, columns, source, rowKey, selecting, onselect, remembers, none });
    const kept = remembers ? here().params : {};
    this.query = { page: Number(kept.page) || 1, size, sort: kept.sort ?? sort, q: kept.q ?? "" };
    this.chosen = new Map();
    this.rows = [];
    this.total = 0;
    this.turn = 0;
    this.body = h("tbody");
    this.heads = h("tr");
    this.pager = h("div.pager.end");
    this.message = h("div", { aria: { live: "polite" } });
    const hasBar = filter || extras.length > 0;
    this.element = h(
      "div",
      {},
      hasBar && h("div.table-bar", {}, filter && this.#filter(filter), ...extras),
      h(
        "div.table-scroll",
        { tabindex: "0", role: "region", aria: { label } },
        h("table", {}, h("caption.hidden-text", {}, label), h("thead", {}, this.heads), this.body),
      ),
      this.message,
      h("div.table-bar", {}, this.pager),
    );
    this.#drawHeads();
  }

  /** Fetch the rows again. Returns the source's answer; problems are its caller's. */
  async load() {
    const turn = ++this.turn;
    const answer = await this.source({ ...this.query });
    if (turn !== this.turn) return answer; // a later question has been asked meanwhile
    this.rows = answer.rows;
    this.total = answer.total ?? answer.rows.length;
    this.#drawRows();
    return answer;
  }

  /** Ask again because something beside the table changed, from the first page. */
  async restart() {
    this.query.page = 1;
    this.chosen.clear();
    this.onselect([]);
    await this.#reload();
  }

  async #reload() {
    if (this.remembers) {
      const { page, sort, q } = this.query;
      remember({ page: page > 1 ? page : "", sort, q });
    }
    try {
      await this.load();
    } catch (error) {
      replace(this.message, errorNotice(error));
    }
  }

  #filter(placeholder) {
    let pause;
    const id = freshId("filter");
    const input = h("input.filter", {
      id,
      type: "search",
      placeholder,
      value: this.query.q,
      aria: { label: placeholder },
      oninput: () => {
        clearTimeout(pause);
        pause = setTimeout(() => {
          this.query.q = input.value.trim();
          this.query.page = 1;
          this.#reload();
        }, FILTER_PAUSE_MS);
      },
    });
    return input;
  }

  #drawHeads() {
    const heads = this.columns.map((column) => {
      const sorted = this.query.sort.replace(/^-/, "") === column.key;
      const direction = this.query.sort.startsWith("-") ? "descending" : "ascending";
      const title = column.sort
        ? h("button", { type: "button", onclick: () => this.#sortBy(column) }, column.title)
        : column.title || h("span.hidden-text", {}, t("table.actions"));
      return h(`th${column.number ? ".number" : ""}`, { scope: "col", aria: { sort: sorted ? direction : null } }, title);
    });
    replace(this.heads, this.selecting && h("th", { scope: "col" }, this.#everyBox()), heads);
  }

  /** First click: the direction in which such a column is most telling; second click: the other one. */
  #sortBy(column) {
    const first = column.number ? `-${column.key}` : column.key;
    const second = column.number ? column.key : `-${column.key}`;
    this.query.sort = this.query.sort === first ? second : first;
    this.query.page = 1;
    this.#drawHeads();
    this.#reload();
  }

  #drawRows() {
    const focus = this.#focusedPlace();
    replace(this.message, this.rows.length === 0 && (this.none && !this.query.q ? this.none : empty(t("table.none"), this.query.q ? t("table.none.filter") : "")));
    replace(this.body, this.rows.map((row) => this.#row(row)));
    if (this.every) this.every.checked = this.rows.length > 0 && this.rows.every((row) => this.chosen.has(this.rowKey(row)));
    this.#drawPager();
    this.#restoreFocus(focus);
  }

  #row(row) {
    const key = this.rowKey(row);
    const cells = this.columns.map((column) => {
      const classes = [column.number && "number", column.long && "long", column.end && "end"].filter(Boolean);
      return h(["td", ...classes].join("."), {}, column.cell ? column.cell(row) : row[column.key]);
    });
    return h("tr", { data: { key } }, this.selecting && h("td", {}, this.#box(row, key)), cells);
  }

  #box(row, key) {
    return h("input", {
      type: "checkbox",
      checked: this.chosen.has(key),
      aria: { label: t("table.choose", { what: key }) },
      onchange: (event) => {
        if (event.target.checked) this.chosen.set(key, row);
        else this.chosen.delete(key);
        this.onselect([...this.chosen.values()]);
      },
    });
  }

  #everyBox() {
    this.every = h("input", {
      type: "checkbox",
      aria: { label: t("table.choose.all") },
      onchange: (event) => {
        for (const row of this.rows) {
          if (event.target.checked) this.chosen.set(this.rowKey(row), row);
          else this.chosen.delete(this.rowKey(row));
        }
        this.#drawRows();
        this.onselect([...this.chosen.values()]);
      },
    });
    return this.every;
  }

  #drawPager() {
    const { page, size } = this.query;
    const pages = Math.max(1, Math.ceil(this.total / size));
    const first = this.total ? (page - 1) * size + 1 : 0;
    const turnTo = (target) => () => {
      this.query.page = target;
      this.#reload();
    };
    replace(
      this.pager,
      t("table.range", { first: number(first), last: number(Math.min(page * size, this.total)), total: number(this.total) }),
      pages > 1 && [
        button("‹", turnTo(page - 1), { kind: "small", disabled: page <= 1, label: t("table.previous") }),
        button("›", turnTo(page + 1), { kind: "small", disabled: page >= pages, label: t("table.next") }),
      ],
    );
    this.pager.parentElement.hidden = this.total <= 8 && pages === 1;
  }

  /** A refresh must not take the focus away from somebody who goes through the rows by keyboard. */
  #focusedPlace() {
    const row = document.activeElement?.closest?.("tr");
    if (!row || !this.body.contains(row)) return null;
    return { key: row.dataset.key, index: [...row.querySelectorAll("a, button, input")].indexOf(document.activeElement) };
  }

  #restoreFocus(place) {
    if (!place) return;
    const row = [...this.body.rows].find((one) => one.dataset.key === place.key);
    row?.querySelectorAll("a, button, input")[place.index]?.focus({ preventScroll: true });
  }
}

/**
 * Rows that the page holds already.
 * @param rowsNow () => array
 * @param texts (row) => what the filter looks at
 * @param values {column key: (row) => value to sort by}; a column without one is sorted by `row[key]`
 */
export function localSource(rowsNow, texts = (row) => Object.values(row).join(" "), values = {}) {
  return async ({ page, size, sort, q }) => {
    const wanted = q.toLowerCase();
    let rows = rowsNow().filter((row) => !wanted || texts(row).toLowerCase().includes(wanted));
    if (sort) {
      const key = sort.replace(/^-/, "");
      const value = values[key] ?? ((row) => row[key]);
      rows = rows.toSorted((a, b) => compare(value(a), value(b)) * (sort.startsWith("-") ? -1 : 1));
    }
    return { rows: rows.slice((page - 1) * size, page * size), total: rows.length };
  };
}

function compare(a, b) {
  if (typeof a === "string" || typeof b === "string") {
    return String(a ?? "").localeCompare(String(b ?? ""), undefined, { numeric: true });
  }
  return (a ?? -1) - (b ?? -1);
}
