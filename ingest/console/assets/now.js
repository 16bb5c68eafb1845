// Now: who wants, holds, lends, deserves and is short of what in the cycle that is shown.

import { html, useCallback, useMemo, useState, useEffect } from "./htm-preact-3.1.1.js";
import { total, capacityOf, shortBy } from "./model.js";
import { Bar, Rows, Why, When, Path, Legend, memo, useNarrow } from "./parts.js";
import { Treemap } from "./treemap.js";
import { link, go, route, blockers, useStore } from "./store.js";
import { num, count, percent, reasonText } from "./text.js";

const figures = [
  { key: "demand", head: "wants" }, { key: "held", head: "holds" }, { key: "short", head: "short" },
  { key: "quota", head: "deserves" }, { key: "lent", head: "lends" },
];

// Now is the view of a plan in a cycle.
export const Now = ({ data, plan }) => {
  const r = route();
  useStore();
  const focus = r.focus && plan.byPath.get(r.focus);
  const roots = useMemo(() => (focus ? [focus] : plan.roots), [plan, focus]);
  const blocked = blockers();
  return html`<div class="now">
    <${Sums} data=${data} plan=${plan} focus=${focus} />
    <${Tree} key=${plan.name} plan=${plan} roots=${roots} focus=${focus} blocked=${blocked} chosen=${r.why} />
    <div class="beside">
      ${data.holdings ? html`<${Treemap} key=${plan.name} data=${data} plan=${plan} roots=${roots} focus=${focus} blocked=${blocked} chosen=${r.why} />
      <${Capacity} data=${data} plan=${plan} />` : html`<section class="card" role="status">What is held as what is being added up …</section>`}
      <${Budgets} plan=${plan} />
      <${Memory} plan=${plan} />
      <${Reasons} data=${data} plan=${plan} />
    </div>
  </div>`;
};

// Sums are the figures of the plan, or of the branch that is looked at.
const Sums = ({ data, plan, focus }) => {
  const all = focus || total(plan);
  const unit = plan.unit + "s";
  const path = focus ? focus.path : null;
  const one = (name, value, figure, sub) => html`<div class=${"sum" + (value > 0 ? " sum-" + figure : "")}>
    <dt>${name}</dt><dd>${path ? html`<${Why} path=${path} plan=${plan.name} figure=${figure} says=${name + " " + num(value)}>${num(value)}</${Why}>` : num(value)}
      <span class="dim">${sub}</span></dd></div>`;
  return html`<dl class="sums" aria-label=${"Sums of " + (path || "plan " + plan.name)}>
    ${one("wanted", all.demand, "demand", unit)}
    ${one("held", all.held, "held", percent(all.held, all.demand) + " of what is wanted")}
    ${one("short", all.short, "short", percent(all.short, all.demand) + " of what is wanted")}
    ${one("lent", all.lent, "lent", "by owners to others")}
    ${one("under reclaim", all.leaving, "leaving", percent(all.leaving, all.held) + " of what is held")}
    <div class="sum"><dt>cycle</dt><dd>${num(data.cycle)} <span class="dim"><${When} ms=${data.now} /></span></dd></div>
  </dl>`;
};

// rowsOf lists what of the tree is seen: a search shows what matches and what is above it, else a node is seen when all
// above it are open.
function rowsOf(roots, open, search, shortOnly, sort) {
  const rows = [];
  const words = search.toLowerCase();
  const hit = new Map();
  const wanted = (node) => {
    if (!words && !shortOnly) return true;
    if (!hit.has(node)) {
      let is = false;
      for (const c of node.children) is = wanted(c) || is;
      const self = (!words || node.path.toLowerCase().includes(words)) && (!shortOnly || node.short > 0);
      hit.set(node, is || self);
    }
    return hit.get(node);
  };
  const sorted = (list) => (sort ? list.slice().sort((a, b) => (b[sort] ?? b.deserves ?? 0) - (a[sort] ?? a.deserves ?? 0)) : list);
  const add = (list, level) => {
    const seen = sorted(list.filter(wanted));
    seen.forEach((node, i) => {
      rows.push({ node, level, place: i + 1, of: seen.length });
      if (node.children.length > 0 && (open.has(node.path) || words || shortOnly)) add(node.children, level + 1);
    });
  };
  add(roots, 1);
  return rows;
}

// openAtFirst are the nodes that are open at first: so many levels that some forty rows are seen.
function openAtFirst(roots) {
  const open = new Set();
  let level = roots, seen = roots.length;
  while (level.length > 0) {
    const next = level.flatMap((n) => n.children);
    if (seen + next.length > 60 && open.size > 0 || next.length > 400) break;
    for (const n of level) if (n.children.length > 0) open.add(n.path);
    seen += next.length;
    level = next;
  }
  return open;
}

// Tree is the tree of consumers as a table: arrows go through it, right and left open and close, Enter explains.
const Tree = ({ plan, roots, focus, blocked, chosen }) => {
  const [open, setOpen] = useState(() => openAtFirst(roots));
  const [search, setSearch] = useState("");
  const [shortOnly, setShort] = useState(false);
  const [sort, setSort] = useState("");
  const [at, setAt] = useState(null); // the path of the row that keys act on
  const narrow = useNarrow(760);
  useEffect(() => {
    if (focus) setOpen((was) => new Set(was).add(focus.path));
  }, [focus]);
  useEffect(() => { // what is in the way, and what is explained, are seen
    const need = [...blocked, ...(chosen ? [chosen] : [])].flatMap((p) => above(plan.byPath.get(p)));
    if (need.some((p) => !open.has(p))) setOpen((was) => new Set([...was, ...need]));
  }, [chosen, blocked.size]);
  const rows = useMemo(() => rowsOf(roots, open, search, shortOnly, sort), [roots, open, search, shortOnly, sort]);
  const most = useMemo(() => Math.max(1, ...roots.map((n) => Math.max(n.demand, n.held + n.lent, n.quota || 0))), [roots]);
  const active = at === null ? -1 : rows.findIndex((r) => r.node.path === at);
  const turn = useCallback((node, want) => setOpen((was) => {
    const now = new Set(was);
    if (want ?? !was.has(node.path)) now.add(node.path);
    else now.delete(node.path);
    return now;
  }), []);
  const keys = (e) => {
    if (e.target.tagName === "INPUT" || e.altKey || e.ctrlKey || e.metaKey) return;
    const i = Math.max(0, active);
    const row = rows[i];
    if (!row) return;
    const to = (n) => setAt(rows[Math.max(0, Math.min(rows.length - 1, n))].node.path);
    const does = {
      ArrowDown: () => to(active < 0 ? 0 : i + 1), ArrowUp: () => to(i - 1), PageDown: () => to(i + 15), PageUp: () => to(i - 15),
      Home: () => to(0), End: () => to(rows.length - 1),
      ArrowRight: () => (row.node.children.length > 0 && !open.has(row.node.path) ? turn(row.node, true) : to(i + 1)),
      ArrowLeft: () => (row.node.children.length > 0 && open.has(row.node.path) ? turn(row.node, false) : row.node.parent && setAt(row.node.parent.path)),
      Enter: () => go({ why: row.node.path, plan: plan.name, figure: row.node.short > 0 ? "short" : "held" }),
    }[e.key];
    if (!does || e.target.tagName === "A" && e.key === "Enter") return;
    e.preventDefault();
    does();
  };
  const render = (i, place) => html`<${Row} key=${rows[i].node.path} row=${rows[i]} index=${i} place=${place} plan=${plan} most=${most} open=${open.has(rows[i].node.path) || !!search || shortOnly}
    active=${i === active} chosen=${rows[i].node.path === chosen} blocked=${blocked.has(rows[i].node.path)} turn=${turn} narrow=${narrow} hash=${location.hash} />`;
  return html`<section class="card tree" aria-labelledby="h-tree">
    <header><h2 id="h-tree">Consumers</h2>
      ${focus && html`<a class="button" href=${link({ focus: null })}>all of plan ${plan.name}</a>`}
      <input type="search" placeholder="find a consumer" aria-label="Find a consumer" value=${search} onInput=${(e) => setSearch(e.target.value)} />
      <label class="check"><input type="checkbox" checked=${shortOnly} onChange=${(e) => setShort(e.target.checked)} /> short only</label>
      <span class="dim" role="status">${count(rows.length, "row")}</span>
    </header>
    <div role="treegrid" class=${"grid" + (narrow ? " narrow" : "")} aria-label=${"Consumers of plan " + plan.name} aria-rowcount=${rows.length + 1} tabindex="0" onKeyDown=${keys}
      aria-activedescendant=${active >= 0 ? "row-" + active : undefined} onFocus=${(e) => e.target === e.currentTarget && at === null && rows.length > 0 && setAt(rows[0].node.path)}>
      <div role="rowgroup"><div class="row head" role="row" aria-rowindex="1">
        <span role="columnheader" class="name">consumer</span>
        <span role="columnheader" class="b">to ${count(most, plan.unit)}</span>
        ${figures.map((f) => html`<span role="columnheader" class="n" aria-sort=${sort === f.key ? "descending" : "none"}>
          <button type="button" tabindex="-1" title="largest first" onClick=${() => setSort(sort === f.key ? "" : f.key)}>${f.head}${sort === f.key ? " ▾" : ""}</button></span>`)}
      </div></div>
      ${rows.length === 0 ? html`<p class="empty">No consumer matches.</p>` : html`<${Rows} count=${rows.length} height=${narrow ? 56 : 30} render=${render} active=${active} />`}
    </div>
    <${Legend} />
  </section>`;
};

// above are the paths above a node.
function above(node) {
  const list = [];
  for (let n = node && node.parent; n; n = n.parent) list.push(n.path);
  return list;
}

// Row is a consumer.
const Row = memo(({ row, index, place, plan, most, open, active, chosen, blocked, turn, narrow }) => {
  const { node, level } = row;
  const has = node.children.length > 0;
  const cell = (key) => {
    if (key === "quota" && plan.md) {
      return node.deserves === null ? "–" : html`<${Why} path=${node.path} plan=${plan.name} figure="usage_quota" tab="-1"
        says=${node.path + " deserves " + percent(node.deserves) + " of the pool that all share, and uses " + percent(node.usage)}>${percent(node.deserves)}</${Why}>`;
    }
    const value = node[key];
    if (value === null) return "–";
    return html`<${Why} path=${node.path} plan=${plan.name} figure=${key} tab="-1" class=${value === 0 ? "zero" : ""}
      says=${node.path + ", " + figures.find((f) => f.key === key).head + " " + num(value)}>${num(value)}</${Why}>`;
  };
  return html`<div class=${"row" + (active ? " active" : "") + (chosen ? " chosen" : "") + (blocked ? " blocked" : "")} role="row" id=${"row-" + index} style=${place}
    aria-rowindex=${index + 2} aria-level=${level} aria-posinset=${row.place} aria-setsize=${row.of} aria-expanded=${has ? String(open) : undefined} aria-selected=${String(chosen)}>
    <span role="gridcell" class="name" style=${{ paddingLeft: (level - 1) * (narrow ? 10 : 16) + "px" }}>
      ${has ? html`<button type="button" class="turn" tabindex="-1" aria-label=${(open ? "close " : "open ") + node.path} onClick=${() => turn(node)}>${open ? "▾" : "▸"}</button>` : html`<span class="turn"></span>`}
      ${blocked && html`<span class="blocker" title="stands in the way of the consumer that is explained">▲<span class="unseen">in the way</span></span>`}
      ${has ? html`<a href=${link({ focus: node.path })} tabindex="-1" title=${node.path + " – click: this branch alone"}><${Path} path=${node.path} short /></a>` : html`<${Path} path=${node.path} short />`}
    </span>
    <span role="gridcell" class="b"><${Bar} node=${node} most=${most} unit=${plan.unit} /></span>
    ${figures.map((f) => html`<span role="gridcell" class=${"n f-" + f.key + (f.key === "short" && node.short > 0 ? " is" : "")} data-head=${f.head}>${cell(f.key)}</span>`)}
  </div>`;
});

// Capacity is what the plan's hosts have and what of it is used, by dimension.
const Capacity = ({ data, plan }) => {
  const all = capacityOf(data.hosts, plan);
  const states = [...all.states].filter(([s]) => s !== "ok");
  return html`<section class="card" aria-labelledby="h-capacity"><header><h2 id="h-capacity">Capacity</h2>
      <a class="button" href=${link({ view: "hosts" })}>${count(all.hosts, "host")}</a>
      ${states.map(([s, n]) => html`<span class="tag">${num(n)} ${s}</span>`)}</header>
    <table><thead><tr><th>dimension</th><th class="n">used</th><th class="n">of</th><th class="n">part</th><th class="wide"><span class="unseen">as a bar</span></th></tr></thead>
      <tbody>${plan.dims.map((d) => {
        const c = all.dims.get(d) || { capacity: 0, used: 0 };
        return html`<tr><th scope="row">${d}</th><td class="n">${num(c.used)}</td><td class="n">${num(c.capacity)}</td><td class="n">${percent(c.used, c.capacity)}</td>
          <td class="wide"><div class="gauge"><div style=${{ width: (c.capacity ? Math.min(100, (100 * c.used) / c.capacity) : 0) + "%" }}></div></div></td></tr>`;
      })}</tbody></table>
  </section>`;
};

const budgetsMax = 12;

// Budgets are the consumers whose use of pools is limited by the period, those who used most of theirs first.
const Budgets = ({ plan }) => {
  const all = useMemo(() => plan.nodes.filter((n) => n.budget !== null).sort((a, b) => b.budgetUsed / b.budget - a.budgetUsed / a.budget), [plan]);
  if (all.length === 0) return null;
  const measure = (n) => (n.budgetDimension === null ? "unit" : n.budgetDimension) + "-hours";
  return html`<section class="card" aria-labelledby="h-budgets"><header><h2 id="h-budgets">Budgets</h2>
      <span class="dim">${num(all.filter((n) => n.budgetUsed >= n.budget).length)} of ${num(all.length)} used up</span></header>
    <table><thead><tr><th>consumer</th><th class="n">used</th><th class="n">of</th><th class="n">part</th><th class="wide"><span class="unseen">as a bar</span></th></tr></thead>
      <tbody>${all.slice(0, budgetsMax).map((n) => html`<tr><th scope="row"><${Why} path=${n.path} plan=${plan.name} figure="budget"
          says=${n.path + " used " + num(Math.floor(n.budgetUsed)) + " of " + num(n.budget) + " " + measure(n)}><${Path} path=${n.path} /></${Why}></th>
          <td class="n">${num(Math.floor(n.budgetUsed))}</td><td class="n">${num(n.budget)} <span class="dim">${measure(n)}</span></td><td class="n">${percent(n.budgetUsed, n.budget)}</td>
          <td class="wide"><div class="gauge"><div style=${{ width: Math.min(100, (100 * n.budgetUsed) / n.budget) + "%" }}></div></div></td></tr>`)}</tbody></table>
    ${all.length > budgetsMax && html`<p class="dim">and ${num(all.length - budgetsMax)} more</p>`}
  </section>`;
};

const memoryMax = 12;

// Memory is what consumers of a plan with a half-life used lately, those whose ratios are lowered most by it first.
const Memory = ({ plan }) => {
  const all = useMemo(() => plan.nodes.filter((n) => n.counts !== null).sort((a, b) => a.counts - b.counts || b.decayed - a.decayed), [plan]);
  if (all.length === 0) return null;
  return html`<section class="card" aria-labelledby="h-memory"><header><h2 id="h-memory">Used lately</h2>
      <span class="dim">ratios of ${num(all.filter((n) => n.counts < 1).length)} of ${num(all.length)} are lowered for it</span></header>
    <table><thead><tr><th>consumer</th><th class="n">of the pool</th><th class="n">ratio</th><th class="n">counts by</th><th class="wide"><span class="unseen">as a bar</span></th></tr></thead>
      <tbody>${all.slice(0, memoryMax).map((n) => html`<tr><th scope="row"><${Why} path=${n.path} plan=${plan.name} figure="decayed_usage"
          says=${n.path + " used " + percent(n.decayed) + " of the pool that all share lately, and its ratio counts by " + n.counts.toFixed(2)}><${Path} path=${n.path} /></${Why}></th>
          <td class="n">${percent(n.decayed)}</td><td class="n">${num(n.pool.ratio)}</td><td class="n">${n.counts.toFixed(2)}</td>
          <td class="wide"><div class="gauge"><div style=${{ width: Math.min(100, 100 * n.decayed) + "%" }}></div></div></td></tr>`)}</tbody></table>
    ${all.length > memoryMax && html`<p class="dim">and ${num(all.length - memoryMax)} more</p>`}
  </section>`;
};

const reasonsMax = 12;

// Reasons are why units are short, the most frequent first, each with who is short of most.
const Reasons = ({ data, plan }) => {
  const all = useMemo(() => shortBy(data.shortfalls, plan), [data, plan]);
  const units = all.reduce((n, r) => n + r.units, 0);
  return html`<section class="card" aria-labelledby="h-short"><header><h2 id="h-short">Why units are short</h2>
      <span class="dim">${count(units, plan.unit)} of ${count(new Set(all.flatMap((r) => [...r.consumers.keys()])).size, "consumer")}</span></header>
    ${all.length === 0 ? html`<p class="empty">Nobody is short of anything.</p>` : html`<table class="reasons"><thead><tr><th class="n">${plan.unit}s</th><th>reason</th><th>most of them</th></tr></thead>
      <tbody>${all.slice(0, reasonsMax).map((r) => {
        const worst = [...r.consumers].sort((a, b) => b[1] - a[1]);
        return html`<tr><td class="n">${num(r.units)}</td><td>${reasonText(r.reason)}${r.dimension ? html` <span class="tag">${r.dimension}</span>` : null}<br /><code class="dim">${r.reason}</code>
          ${r.until !== null && html`<br /><span class="dim">until <${When} ms=${r.until} from=${data.now} /></span>`}</td>
          <td>${worst.slice(0, 3).map(([path, n]) => html`<div><${Why} path=${path} plan=${plan.name} figure="short" says=${path + " " + num(n) + " short"}><${Path} path=${path} /> <span class="dim">${num(n)}</span></${Why}></div>`)}
          ${worst.length > 3 && html`<span class="dim">and ${num(worst.length - 3)} more</span>`}</td></tr>`;
      })}</tbody></table>`}
  </section>`;
};
