// The tree of consumers of a cycle, made of the tables that the service gives.

import { nameOf } from "./text.js";

// kinds are what a consumer holds, in the order in which bars and areas stack them.
export const kinds = [
  { key: "owned", name: "owned", says: "on what it owns itself" },
  { key: "private", name: "private pool", says: "from the pool of a consumer above it" },
  { key: "shared", name: "shared", says: "from the pool that all share" },
  { key: "borrowed", name: "borrowed", says: "lent by others, who may want it back" },
];

const kindOf = (origin, lender) => {
  if (origin === "owned") return 0;
  if (origin === "private_pool") return 1;
  return lender === null || lender === undefined ? 2 : 3;
};

// build makes the plans of a cycle: a Map by name.
export function build(consumers, holdings, shares, hosts) {
  const plans = new Map();
  const C = (name) => consumers.column(name);
  const dims = [];
  for (const name of consumers.columns.keys()) if (name.startsWith("static_quota_")) dims.push(name.slice(13));
  const get = (name, row) => (C(name) ? C(name)[row] : null);
  for (let row = 0; row < consumers.rows; row++) {
    const name = C("plan")[row];
    let plan = plans.get(name);
    if (!plan) {
      const md = C("policy")[row] === "md";
      plan = { name, md, unit: md ? "unit" : "slot", dims: md ? dims : ["slots"], nodes: [], roots: [], byPath: new Map() };
      plans.set(name, plan);
    }
    const path = C("consumer")[row];
    const node = {
      path, name: nameOf(path), parent: null, children: [], depth: Number(C("depth")[row]), leaf: C("leaf")[row] === 1,
      policy: C("policy")[row], rank: get("rank", row), demand: get("demand", row), held: get("held", row), short: get("short", row),
      owned: get("owned", row), reserved: get("reserved", row), limit: get("slot_limit", row), quota: get("quota", row),
      kinds: [0, 0, 0, 0], known: false, lent: 0, leaving: 0, deadline: null, usage: null, deserves: null, pool: null, decayed: null, counts: null,
      heldIn: new Map(), ownedIn: new Map(),
      budget: get("budget", row), budgetUsed: get("budget_used", row), budgetDimension: get("budget_dimension", row),
    };
    if (plan.md) {
      for (const d of dims) {
        node.heldIn.set(d, get("held_" + d, row) || 0);
        node.ownedIn.set(d, get("owned_" + d, row) || 0);
      }
    } else {
      node.known = true;
      node.kinds = [get("held_owned", row) || 0, 0, get("held_shared", row) || 0, get("held_borrowed", row) || 0];
      node.lent = get("lent", row) || 0;
      node.heldIn.set("slots", node.held);
    }
    plan.nodes.push(node);
    plan.byPath.set(path, node);
  }
  for (const plan of plans.values()) {
    for (const node of plan.nodes) {
      const i = node.path.lastIndexOf("/");
      node.parent = i > 0 ? plan.byPath.get(node.path.slice(0, i)) || null : null;
      (node.parent ? node.parent.children : plan.roots).push(node);
    }
  }
  if (hosts) for (const plan of plans.values()) countedIn(plan, hosts);
  if (holdings) addHoldings(plans, holdings);
  if (shares) addShares(plans, shares);
  return plans;
}

// countedIn leaves out the dimensions that no host of a plan has.
function countedIn(plan, hosts) {
  const all = capacityOf(hosts, plan);
  const has = plan.dims.filter((d) => (all.dims.get(d) || { capacity: 0 }).capacity > 0);
  if (has.length > 0) plan.dims = has;
}

// addHoldings tells of each consumer and those above it what is held as what, lent and under reclaim.
function addHoldings(plans, t) {
  const [plan, consumer, origin, lender] = ["plan", "consumer", "origin", "lender"].map((n) => t.column(n));
  const [units, leaving, deadline] = ["units", "leaving", "deadline"].map((n) => t.column(n));
  for (const p of plans.values()) for (const node of p.nodes) node.known = true;
  if (!units) return;
  for (let row = 0; row < t.rows; row++) {
    const p = plans.get(plan[row]);
    const node = p && p.byPath.get(consumer[row]);
    if (!node) continue;
    const n = units[row];
    const from = lender[row] ? p.byPath.get(lender[row]) : null;
    const kind = kindOf(origin[row], lender[row]);
    for (let at = node; at; at = at.parent) {
      if (p.md) at.kinds[kind] += n;
      at.leaving += leaving[row];
      if (leaving[row] > 0 && (at.deadline === null || deadline[row] < at.deadline)) at.deadline = deadline[row];
    }
    if (!p.md) continue;
    for (let at = from; at; at = at.parent) {
      if (node === at || node.path.startsWith(at.path + "/")) break; // it stays in the branch
      at.lent += n;
    }
  }
}

// addShares tells of consumers what they use and deserve of the pool that all share: of MD plans.
function addShares(plans, t) {
  const [plan, consumer, pool] = ["plan", "consumer", "pool"].map((n) => t.column(n));
  const [usage, quota, ratio, priority] = ["usage", "usage_quota", "ratio", "priority"].map((n) => t.column(n));
  const [decayed, effective] = ["decayed_usage", "effective_ratio"].map((n) => t.column(n));
  for (let row = 0; row < t.rows; row++) {
    if (pool[row] !== "/") continue;
    const p = plans.get(plan[row]);
    const node = p && p.byPath.get(consumer[row]);
    if (!node || !p.md) continue;
    node.usage = usage[row];
    node.deserves = quota[row];
    node.pool = { ratio: ratio[row], priority: priority[row] };
    node.decayed = decayed ? decayed[row] : null;
    node.counts = effective && effective[row] !== null && ratio[row] > 0 ? effective[row] / ratio[row] : null;
  }
}

// total is what a plan's first level adds up to.
export function total(plan) {
  const sum = { demand: 0, held: 0, short: 0, leaving: 0, lent: 0, kinds: [0, 0, 0, 0] };
  for (const node of plan.roots) {
    for (const key of ["demand", "held", "short", "leaving", "lent"]) sum[key] += node[key] || 0;
    node.kinds.forEach((n, i) => (sum.kinds[i] += n));
  }
  return sum;
}

// capacityOf adds up the capacity and use of a plan's hosts by dimension.
export function capacityOf(hosts, plan) {
  const all = { hosts: 0, states: new Map(), dims: new Map() };
  if (!hosts || !hosts.column("plan")) return all;
  for (let row = 0; row < hosts.rows; row++) {
    if (hosts.get("plan", row) !== plan.name) continue;
    const state = hosts.get("state", row);
    all.hosts += hosts.get("hosts", row);
    all.states.set(state, (all.states.get(state) || 0) + hosts.get("hosts", row));
    for (const d of plan.dims) {
      const capacity = hosts.get("capacity_" + d, row) || 0;
      const used = hosts.get("used_" + d, row) || 0;
      const was = all.dims.get(d) || { capacity: 0, used: 0, closed: 0 };
      was.used += used;
      was.capacity += capacity;
      if (state !== "ok") was.closed += capacity - used;
      all.dims.set(d, was);
    }
  }
  return all;
}

// groupsIn are the resource groups of a plan that have anything of a dimension, each with what is used, free and on hosts
// that are not ok.
export function groupsIn(hosts, plan, dimension) {
  const groups = new Map();
  if (!hosts || !hosts.column("plan")) return groups;
  for (let row = 0; row < hosts.rows; row++) {
    if (hosts.get("plan", row) !== plan.name) continue;
    const [capacity, used] = [hosts.get("capacity_" + dimension, row) || 0, hosts.get("used_" + dimension, row) || 0];
    const name = hosts.get("group", row) || plan.name;
    const at = groups.get(name) || { used: 0, free: 0, closed: 0 };
    at.used += used;
    at[hosts.get("state", row) === "ok" ? "free" : "closed"] += capacity - used;
    if (capacity > 0) groups.set(name, at);
  }
  return groups;
}

// shortBy adds shortfalls of a plan up by reason and dimension, the largest first.
export function shortBy(t, plan) {
  const by = new Map();
  const C = (name) => t.column(name);
  for (let row = 0; row < t.rows; row++) {
    if (C("plan")[row] !== plan.name && C("plan")[row] !== null) continue;
    const dimension = C("dimension")[row] || "";
    const key = C("reason")[row] + " " + dimension;
    if (!by.has(key)) by.set(key, { reason: C("reason")[row], dimension, units: 0, rows: 0, consumers: new Map(), until: null });
    const at = by.get(key);
    const units = C("units_short")[row];
    at.units += units;
    at.rows += 1;
    at.consumers.set(C("consumer")[row], (at.consumers.get(C("consumer")[row]) || 0) + units);
    const until = C("until")[row];
    if (until !== null && (at.until === null || until > at.until)) at.until = until;
  }
  return [...by.values()].sort((a, b) => b.units - a.units);
}
