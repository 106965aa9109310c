// What a user chose in this browser: language, theme, which set of name servers, and whether pages follow. Kept in the browser, if it keeps anything.

const PREFIX = "cometmq.";
const DEFAULTS = { language: "", theme: "", following: "yes", site: "" };

export function choice(name) {
  try {
    return localStorage.getItem(PREFIX + name) ?? DEFAULTS[name];
  } catch {
    return DEFAULTS[name]; // storage is switched off
  }
}

export function choose(name, value) {
  DEFAULTS[name] = value;
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // It holds until the page is loaded again.
  }
}

/** `light`, `dark`, or empty: as the system has it. */
export function applyTheme() {
  const theme = choice("theme");
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

export function isDark() {
  const theme = choice("theme");
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
