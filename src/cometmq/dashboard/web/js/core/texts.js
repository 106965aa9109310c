// Texts by key in the chosen language. The tables have both languages side by side, so that none can lack one.

import { choice } from "./choices.js";
import common from "../texts/common.js";
import frame from "../texts/frame.js";
import groups from "../texts/groups.js";
import messages from "../texts/messages.js";
import notes from "../texts/notes.js";
import operate from "../texts/operate.js";
import remarks from "../texts/remarks.js";
import overview from "../texts/overview.js";
import servers from "../texts/servers.js";
import topics from "../texts/topics.js";

const TEXTS = { ...common, ...frame, ...overview, ...topics, ...groups, ...messages, ...servers, ...operate, ...notes, ...remarks };
const COLUMNS = { en: 0, zh: 1 };

export const LANGUAGES = [
  ["en", "English"],
  ["zh", "中文"],
];

export function language() {
  const chosen = choice("language");
  if (chosen in COLUMNS) return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** For `Intl`. */
export function locale() {
  return language() === "zh" ? "zh-CN" : "en-GB";
}

/** The text of a key, with `{names}` filled in; `one|many` is chosen by `count`. */
export function t(key, params = {}) {
  const text = TEXTS[key]?.[COLUMNS[language()]];
  if (text === undefined) return key;
  return filled(text, params);
}

export function has(key) {
  return key in TEXTS;
}

function filled(text, params) {
  const [one, many = one] = "count" in params ? text.split("|") : [text];
  const form = String(params.count) === "1" ? one : many;
  return form.replace(/\{(\w+)\}/g, (whole, name) => (name in params ? String(params[name]) : whole));
}
