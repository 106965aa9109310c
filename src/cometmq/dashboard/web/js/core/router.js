// Addresses behind `#`: `#/groups/billing?tab=members`. So the server serves one page, below any prefix.

/** Names may hold any character; each part is encoded by itself. */
export function link(...parts) {
  const last = parts.at(-1);
  const params = last !== null && typeof last === "object" ? parts.pop() : {};
  const path = parts.map((part) => encodeURIComponent(part)).join("/");
  const query = new URLSearchParams(
    Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== ""),
  ).toString();
  return `#/${path}${query ? `?${query}` : ""}`;
}

export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return {
    parts: path.split("/").filter(Boolean).map(decoded),
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** A hash that somebody typed may be no valid encoding. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function go(hash) {
  if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}

/** Keep a page's state (filter, page, tab) in the address, without a step in the history and without loading it anew. */
export function remember(params) {
  const { parts, params: old } = here();
  history.replaceState(null, "", link(...parts, { ...old, ...params }));
}
