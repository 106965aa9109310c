// Numbers, sizes and times as a person reads them.

import { locale, t } from "./texts.js";

const NONE = "–";

export function number(value) {
  return value === null || value === undefined ? NONE : value.toLocaleString(locale());
}

/** 1234567 as 1.23M, for places where only the size counts. */
export function short(value) {
  if (value === null || value === undefined) return NONE;
  if (Math.abs(value) < 10_000) return number(Math.round(value));
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  const digits = value > 0 && value < 10 ? 1 : 0;
  return value >= 10_000 ? short(value) : value.toLocaleString(locale(), { maximumFractionDigits: digits });
}

export function percent(ratio) {
  if (ratio === null || ratio === undefined) return NONE;
  return `${(ratio * 100).toFixed(ratio > 0 && ratio < 0.1 ? 1 : 0)} %`;
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let index = 0;
  let size = value;
  while (size >= 1024 && index < units.length - 1) {
    size /= 1024;
    index += 1;
  }
  return `${index === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[index]}`;
}

/** A length of time by its two largest units: `3 d 4 h`. */
export function duration(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return NONE;
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = Math.round(milliseconds / 1000);
  const parts = [
    [Math.floor(seconds / 86400), t("unit.day")],
    [Math.floor(seconds / 3600) % 24, t("unit.hour")],
    [Math.floor(seconds / 60) % 60, t("unit.minute")],
    [seconds % 60, t("unit.second")],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(" ");
}

function pad(value, digits = 2) {
  return String(value).padStart(digits, "0");
}

/** `2026-11-18 20:04:05`, in the browser's zone, which the foot of the page names. */
export function time(milliseconds, { withMillis = false } = {}) {
  if (!milliseconds || milliseconds < 0) return NONE;
  const at = new Date(milliseconds);
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  const clock = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  return `${day} ${clock}${withMillis ? `.${pad(at.getMilliseconds(), 3)}` : ""}`;
}

export function clock(milliseconds) {
  const at = new Date(milliseconds);
  return `${pad(at.getHours())}:${pad(at.getMinutes())}`;
}

export function ago(milliseconds, now = Date.now()) {
  if (!milliseconds || milliseconds < 0) return NONE;
  const passed = now - milliseconds;
  if (passed < 1000) return t("time.now");
  return t("time.ago", { duration: duration(passed) });
}

export function zone() {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** For `<input type="datetime-local">`, which knows no zone. */
export function toLocalInput(milliseconds) {
  return time(milliseconds).replace(" ", "T");
}

export function fromLocalInput(text) {
  const at = new Date(text).getTime();
  return Number.isNaN(at) ? null : at;
}
