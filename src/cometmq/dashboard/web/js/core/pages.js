// Which module shows which address, and how pages are ordered in the navigation. A page is loaded when it is first visited.

/** {first part of the address: [module for the list, module for one thing]} */
export const PAGES = {
  overview: ["overview"],
  topics: ["topics/topics", "topics/topic"],
  groups: ["groups/groups", "groups/group"],
  messages: ["messages/messages", "messages/message"],
  "dead-letters": ["messages/dead_letters", "messages/dead_letters_of_group"],
  delayed: ["messages/delayed"],
  transactions: ["messages/transactions"],
  cluster: ["servers/cluster", "servers/broker"],
  pipelines: ["servers/pipelines"],
  alerts: ["operate/alerts"],
  accounts: ["operate/accounts"],
  audit: ["operate/audit"],
};

/** [title's key, [page, icon]...] */
export const NAVIGATION = [
  ["nav.now", [["overview", "overview"]]],
  [
    "nav.messaging",
    [
      ["topics", "topics"],
      ["groups", "groups"],
      ["messages", "messages"],
      ["dead-letters", "dead"],
      ["delayed", "delayed"],
      ["transactions", "transactions"],
    ],
  ],
  [
    "nav.servers",
    [
      ["cluster", "cluster"],
      ["pipelines", "pipelines"],
    ],
  ],
  [
    "nav.operate",
    [
      ["alerts", "alerts"],
      ["accounts", "accounts"],
      ["audit", "audit"],
    ],
  ],
];

/** The module of an address, or null if there is none. */
export async function pageOf(parts) {
  const modules = PAGES[parts[0] ?? "overview"];
  const name = modules?.[Math.min(parts.length, 2) - (parts.length ? 1 : 0)];
  if (!name) return null;
  const module = await import(`../pages/${name}.js`);
  return module.page;
}
