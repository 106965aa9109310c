// A page while it is shown: what it puts on the screen, how it is kept up to date, and what ends with it.

import { choice } from "./choices.js";
import { append, h, replace } from "./dom.js";
import { time } from "./format.js";
import { pulse } from "./live.js";
import { t } from "./texts.js";
import { errorNotice, notice } from "../parts/bits.js";

const SECONDS = 10;

export class View {
  /**
   * @param root where the page goes
   * @param status (text, tone) => void: shows when the page was brought up to date
   */
  constructor(root, status) {
    this.root = root;
    this.status = status;
    this.isLeft = false;
    this.endings = [];
    this.trouble = h("div", { aria: { live: "polite" } });
    this.gaps = h("div", { aria: { live: "polite" } });
    this.freshMs = 0;
  }

  title(text) {
    document.title = `${text} · CometMQ`;
  }

  show(...content) {
    replace(this.root, this.trouble, this.gaps, ...content);
    for (const one of [this.trouble, this.gaps]) one.hidden = !one.hasChildNodes();
  }

  add(...content) {
    append(this.root, content);
  }

  onleave(action) {
    this.endings.push(action);
  }

  leave() {
    this.isLeft = true;
    for (const action of this.endings) action();
    // A dialog is about the page that opened it.
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  }

  /**
   * Load now, and again whenever there are new figures or, for what is costly to ask, every so many seconds. If loading fails, the page keeps what it has and says since when it is old; a first load that
   * fails is the page's answer.
   */
  async follow(load, { everySeconds = null } = {}) {
    let isLoading = false;
    const once = async () => {
      if (isLoading) return;
      isLoading = true;
      try {
        await load();
        if (this.isLeft) return;
        this.freshMs = Date.now();
        this.#say(this.trouble);
        this.status(t("status.updated", { time: time(this.freshMs).slice(11) }), "");
      } catch (error) {
        if (this.isLeft || error.status === 401) return;
        const since = this.freshMs ? h("div.muted", {}, t("status.old", { time: time(this.freshMs) })) : null;
        this.#say(this.trouble, errorNotice(error), since);
        this.status(t("status.failed"), "bad");
      } finally {
        isLoading = false;
      }
    };
    const again = () => this.mayFollow() && once();
    this.refresh = once;
    await once();
    if (this.isLeft) return;
    // New figures are announced; without the stream, pages ask by themselves.
    const timer = setInterval(() => (everySeconds || !pulse.isOpen) && again(), (everySeconds ?? SECONDS) * 1000);
    const forget = everySeconds ? () => {} : pulse.onfigures(again);
    this.onleave(() => {
      clearInterval(timer);
      forget();
    });
  }

  /** Not while nobody looks, and not under the hands of somebody who fills in a dialog. */
  mayFollow() {
    return choice("following") === "yes" && !document.hidden && !document.querySelector("dialog[open]");
  }

  /** Servers that an answer lacks: `[{server, problem, since_ms}]`. */
  missing(incomplete = []) {
    if (!incomplete?.length) return this.#say(this.gaps);
    const lines = incomplete.map((one) =>
      h("li", {}, h("b", {}, one.server), ": ", one.problem, one.since_ms ? h("span.muted", {}, ` (${t("missing.since", { time: time(one.since_ms) })})`) : null),
    );
    return this.#say(this.gaps, notice("warn", h("div.strong", {}, t("missing.title", { count: incomplete.length })), h("ul", {}, lines)));
  }

  #say(place, ...content) {
    replace(place, ...content);
    place.hidden = !place.hasChildNodes();
  }
}
