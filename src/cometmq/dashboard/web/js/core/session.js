// Who is here and what they may, as the server told at the start. The server checks each request itself; this only keeps
// pages from offering what would be refused.

export const session = {
  user: null,
  role: "viewer",
  login_required: false,
  read_only: false,
  sites: [],
  site: "",
  version: "",
};

const RANKS = { viewer: 0, operator: 1, admin: 2 };

export function may(role) {
  return !session.read_only && (RANKS[session.role] ?? 0) >= RANKS[role];
}
