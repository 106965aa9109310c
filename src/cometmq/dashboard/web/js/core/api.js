// The JSON API, which is all that pages use. Problems come as `ApiError` with a text for people.

import { choice } from "./choices.js";
import { t } from "./texts.js";

const BASE = "api/v1/";
const SECONDS_MAX = 30;

export class ApiError extends Error {
  constructor({ status, code, message, hint = "", field = null }) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.field = field;
  }
}

const session = { csrf: "", onLogin: () => {} };

/** Called with the answer of `me`, once it is known who is here. */
export function useToken(token) {
  session.csrf = token ?? "";
}

/** What to do when an answer is 401: the login expired. */
export function whenLoginIsNeeded(action) {
  session.onLogin = action;
}

export function get(path, params = {}, options = {}) {
  return call("GET", path, { params, ...options });
}

export function post(path, body = {}, params = {}) {
  return call("POST", path, { params, body });
}

export function put(path, body = {}, params = {}) {
  return call("PUT", path, { params, body });
}

export function patch(path, body = {}, params = {}) {
  return call("PATCH", path, { params, body });
}

export function remove(path, body = undefined) {
  return call("DELETE", path, { body });
}

/** `/topics/{topic}` with names of any script: `path("topics", name, "queues")`. */
export function path(...parts) {
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

export function address(path, params = {}) {
  const all = Object.entries({ site: choice("site"), ...params });
  const query = new URLSearchParams(all.filter(([, value]) => value !== undefined && value !== null && value !== ""));
  const text = query.toString();
  return `${BASE}${path}${text ? `?${text}` : ""}`;
}

async function call(method, path, { params, body, signal }) {
  const late = AbortSignal.timeout(SECONDS_MAX * 1000);
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-CSRF-Token"] = session.csrf;
  let response;
  try {
    response = await fetch(address(path, params), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: signal ? AbortSignal.any([signal, late]) : late,
      credentials: "same-origin",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    const key = error.name === "TimeoutError" ? "error.late" : "error.unreachable";
    throw new ApiError({ status: 0, code: key, message: t(key, { seconds: SECONDS_MAX }) });
  }
  if (response.ok) return response.status === 204 ? null : response.json();
  const problem = await problemOf(response);
  if (response.status === 401 && path !== "session") session.onLogin();
  throw problem;
}

async function problemOf(response) {
  const fallback = { status: response.status, code: "http", message: `HTTP ${response.status} ${response.statusText}` };
  try {
    const { error } = await response.json();
    return new ApiError({ ...fallback, ...error });
  } catch {
    return new ApiError(fallback); // not the API speaks, but perhaps a proxy in between
  }
}
