// One stream of server-sent events for each tab, opened while somebody listens. The browser connects again by itself.

import { address } from "./api.js";

/** @returns a function that ends it */
export function listen(path, params, handlers, onstate = () => {}) {
  const source = new EventSource(address(path, params), { withCredentials: true });
  for (const [name, action] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => action(JSON.parse(event.data)));
  }
  source.onopen = () => onstate("open");
  source.onerror = () => onstate(source.readyState === EventSource.CLOSED ? "closed" : "waiting");
  return () => source.close();
}

/**
 * What the dashboard announces to every page: new figures, and alerts. A tab that nobody looks at lets go of its stream,
 * since a browser has only six connections to one server.
 */
export const pulse = {
  isOpen: false,
  listeners: new Set(),

  /** @returns a function that ends it */
  onfigures(action) {
    this.listeners.add(action);
    return () => this.listeners.delete(action);
  },

  /** @param onalert hears of each alert that begins or ends */
  start(onalert) {
    let end = null;
    // Many tabs hear it at the same moment; the server says over what time they are to ask.
    const tell = ({ spread_ms = 0 }) => setTimeout(() => this.listeners.forEach((action) => action()), Math.random() * spread_ms);
    const handlers = { snapshot: tell, alert: onalert };
    const update = () => {
      end?.();
      end = null;
      this.isOpen = false;
      if (!document.hidden) end = listen("events", {}, handlers, (state) => (this.isOpen = state === "open"));
    };
    document.addEventListener("visibilitychange", update);
    update();
    return () => {
      document.removeEventListener("visibilitychange", update);
      end?.();
      this.isOpen = false;
    };
  },
};
