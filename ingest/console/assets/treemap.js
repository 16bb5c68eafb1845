// The cluster as areas: what is held of a dimension, by consumer or by plan, coloured by what it is held as.

import { html, useMemo, useRef, useState, useLayoutEffect } from "./htm-preact-3.1.1.js";
import { hierarchy, treemap } from "./d3-hierarchy-3.1.3.js";
import { kinds, capacityOf, groupsIn } from "./model.js";
import { go } from "./store.js";
import { num, percent } from "./text.js";

const areaMin = 120; // square pixels: a consumer is divided where those below it have so much each, on average

// byConsumer is the hierarchy of consumers, as deep as areas can be seen; what is held is divided by kind in proportion to units, as the log does not
// have their sizes.
function byConsumer(plan, nodes, dimension, free, area) {
  const all = nodes.reduce((n, node) => n + (node.heldIn.get(dimension) || 0), 0) + free;
  const made = (node) => {
    const value = node.heldIn.get(dimension) || 0;
    const room = all > 0 ? (value / all) * area : 0;
    const below = node.children.filter((c) => (c.heldIn.get(dimension) || 0) > 0);
    if (below.length > 0 && room > areaMin * Math.max(2, below.length)) return { node, name: node.name, children: below.map(made) };
    return { node, name: node.name, children: split(node, value) };
  };
  const children = nodes.filter((n) => (n.heldIn.get(dimension) || 0) > 0).map(made);
  if (free > 0) children.push({ name: "free", free: true, value: free });
  return { name: plan.name, children };
}

// split divides what a consumer holds by kind.
function split(node, value) {
  const units = node.kinds.reduce((a, b) => a + b, 0);
  if (units === 0) return [{ node, kind: 2, value }];
  const parts = [];
  node.kinds.forEach((n, kind) => n > 0 && parts.push({ node, kind, value: (value * n) / units, leaving: 0 }));
  let leaving = node.leaving;
  for (const p of parts.slice().reverse()) { // what leaves is borrowed and shared before it is owned
    const take = Math.min(leaving, node.kinds[p.kind]);
    p.leaving = take / node.kinds[p.kind];
    leaving -= take;
  }
  return parts;
}

// areasOf are the areas of what a group's hosts have.
const areasOf = (g) => [
  { name: "used", used: true, value: g.used }, { name: "closed", closed: true, value: g.closed }, { name: "free", free: true, value: g.free },
].filter((part) => part.value > 0);

// byGroup is the hierarchy of plans and their host groups, with what is free and what is on hosts that are not ok. What a
// plan of one group holds is divided by kind; of several the log does not tell which group has what of it.
function byGroup(plans, dimension, hosts) {
  const children = [];
  for (const plan of plans.values()) {
    const c = capacityOf(hosts, plan).dims.get(dimension);
    if (!c || c.capacity === 0) continue;
    const groups = groupsIn(hosts, plan, dimension);
    if (groups.size > 1) {
      children.push({ name: plan.name, plan: plan.name, children: [...groups].map(([name, g]) => ({ name, group: name, plan: plan.name, children: areasOf(g) })) });
      continue;
    }
    const sum = { kinds: [0, 0, 0, 0], leaving: 0, path: null };
    for (const n of plan.roots) {
      n.kinds.forEach((v, i) => (sum.kinds[i] += v));
      sum.leaving += n.leaving;
    }
    const parts = split(sum, c.used).map((p) => ({ ...p, node: null }));
    parts.push(...areasOf({ used: 0, closed: c.closed, free: c.capacity - c.used - c.closed }));
    children.push({ name: plan.name, plan: plan.name, children: parts });
  }
  return { name: "cluster", children };
}

// Treemap shows a plan's consumers, from one of them down, or all plans.
export const Treemap = ({ data, plan, roots, focus, blocked, chosen }) => {
  const box = useRef(null);
  const [width, setWidth] = useState(600);
  const [by, setBy] = useState("consumer");
  const [dimension, setDimension] = useState(plan.dims[0]);
  const dim = plan.dims.includes(dimension) ? dimension : plan.dims[0];
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => box.current && setWidth(Math.max(200, Math.floor(box.current.clientWidth))));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const height = width < 500 ? 240 : 300;
  const capacity = useMemo(() => capacityOf(data.hosts, plan).dims.get(dim), [data, plan, dim]);
  const tree = useMemo(() => {
    const free = capacity && !focus ? Math.max(0, capacity.capacity - capacity.used) : 0;
    const of = by === "consumer" ? byConsumer(plan, roots, dim, free, width * height) : byGroup(data.plans, dim, data.hosts);
    const root = hierarchy(of).sum((d) => d.value || 0).sort((a, b) => (a.data.free ? 1 : 0) - (b.data.free ? 1 : 0) || b.value - a.value);
    treemap().size([width, height]).paddingTop((n) => (n.depth > 0 && n.children && n.x1 - n.x0 > 46 && n.y1 - n.y0 > 30 && headed(n) ? 15 : 0))
      .paddingInner(1).round(true)(root);
    return root;
  }, [data, plan, roots, dim, by, width, focus, capacity]);
  const dims = by === "consumer" ? plan.dims : [...new Set([...data.plans.values()].flatMap((p) => p.dims))];
  const says = "Treemap of " + dim + " by " + (by === "plan" ? "host group" : by) + (capacity ? ": " + percent(capacity.used, capacity.capacity) + " used" : "") + ". The table has the same figures.";
  return html`<section class="card" aria-labelledby="h-areas">
    <header><h2 id="h-areas">Who has how much</h2>
      <label>by <select value=${by} onChange=${(e) => setBy(e.target.value)}>
        <option value="consumer">consumer</option><option value="plan">host group</option></select></label>
      <label>area <select onChange=${(e) => setDimension(e.target.value)}>${dims.map((d) => html`<option value=${d} selected=${d === dim}>${d}</option>`)}</select></label>
    </header>
    <div class="treemap" ref=${box}>
      <svg width=${width} height=${height} viewBox=${"0 0 " + width + " " + height} role="img" aria-label=${says}>
        <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect class="hatch" width="2.5" height="6" /></pattern></defs>
        ${tree.value > 0 ? tree.descendants().map((n) => cell(n, { dim, blocked, chosen: new Set(chosen ? [chosen] : []) })) : null}
        ${!(tree.value > 0) && html`<text class="t-none" x="12" y="28">nothing is held</text>`}
      </svg>
    </div>
  </section>`;
};

// within tells whether a consumer, or one below it where those below have no areas of their own, is in a set.
const within = (set, node, divided) => set.has(node.path) || (!divided && node.children.length > 0 && [...set].some((p) => p.startsWith(node.path + "/")));

const onlyParts = (n) => !n.children.some((c) => c.children);

// headed tells whether an area has its name above it: consumers that are divided, plans and groups.
const headed = (n) => !n.data.node || !onlyParts(n);

// cell draws a node: a part of what is held with its colour, or the frame of a consumer.
function cell(n, { dim, blocked, chosen }) {
  const [w, h] = [n.x1 - n.x0, n.y1 - n.y0];
  if (n.depth === 0 || w < 1 || h < 1) return null;
  const d = n.data;
  const path = d.node && d.node.path;
  const open = (e) => {
    if (!path) return;
    e.stopPropagation();
    go({ why: path, figure: "held" });
  };
  const group = d.group || (n.parent && n.parent.data.group);
  const label = path || (group ? "group " + group + ", " : "") + (d.plan ? "plan " + d.plan : d.name);
  const title = label + ": " + num(Math.round(n.value)) + " " + dim + (d.kind !== undefined ? ", " + kinds[d.kind].name : "") +
    (d.leaving > 0 ? ", " + percent(d.leaving) + " of it under reclaim" : "");
  if (n.children) {
    const divided = !onlyParts(n);
    const marks = (path && within(blocked, d.node, divided) ? " blocked" : "") + (path && within(chosen, d.node, divided) ? " chosen" : "");
    const text = headed(n) && n.y1 - n.y0 > 30 && w > 46;
    return html`<g key=${"f" + label + n.depth} onClick=${open} class=${"frame" + marks + (path ? " can" : "")}>
      <rect x=${n.x0} y=${n.y0} width=${w} height=${h}><title>${title}</title></rect>
      ${text && html`<text class="t-head" x=${n.x0 + 4} y=${n.y0 + 11}>${clip(d.name, w - 8)}</text>`}
    </g>`;
  }
  const first = n.parent.children[0] === n && d.node && onlyParts(n.parent);
  const [inWay, is] = path ? [within(blocked, d.node, false), within(chosen, d.node, false)] : [false, false];
  const mark = inWay ? "▲ " : "";
  const name = d.free || d.closed || d.used ? d.name : first && d.node ? mark + d.node.name : d.kind !== undefined && !d.node ? kinds[d.kind].name : "";
  const sort = d.free ? "free" : d.closed ? "closed" : d.used ? "used" : "k-" + kinds[d.kind].key;
  return html`<g key=${"c" + label + sort} onClick=${open} class=${"cell " + sort + (path ? " can" : "") + (is ? " chosen" : "") + (inWay ? " blocked" : "")}>
    <rect x=${n.x0} y=${n.y0} width=${w} height=${h}><title>${title}</title></rect>
    ${d.leaving > 0 && html`<rect class="hatched" x=${n.x1 - w * d.leaving} y=${n.y0} width=${w * d.leaving} height=${h} fill="url(#hatch)" />`}
    ${name && w > 30 && h > 13 && html`<text x=${n.x0 + 4} y=${n.y0 + 12}>${clip(name, w - 6)}</text>`}
  </g>`;
}

// clip shortens a name to so many pixels.
function clip(name, pixels) {
  const most = Math.floor(pixels / 6.3);
  const letters = [...name];
  return letters.length <= most ? name : most < 3 ? "" : letters.slice(0, most - 1).join("") + "…";
}
