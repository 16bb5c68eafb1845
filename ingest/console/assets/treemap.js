// The cluster as areas: what is held of a dimension, by consumer or by plan, coloured by what it is held as.

import { html, useMemo, useRef, useState, useLayoutEffect } from "./htm-preact-3.1.1.js";
import { hierarchy, treemap } from "./d3-hierarchy-3.1.3.js";
import { kinds, capacityOf } from "./model.js";
import { go } from "./store.js";
import { num, percent } from "./text.js";

const areaMin = 90; // square pixels: what is smaller is not divided

// byConsumer is the hierarchy of consumers; what is held is divided by kind in proportion to units, as the log does not
// have their sizes.
function byConsumer(plan, nodes, dimension, free, area) {
  const all = nodes.reduce((n, node) => n + (node.heldIn.get(dimension) || 0), 0) + free;
  const made = (node) => {
    const value = node.heldIn.get(dimension) || 0;
    const room = all > 0 ? (value / all) * area : 0;
    const below = node.children.filter((c) => (c.heldIn.get(dimension) || 0) > 0);
    if (below.length > 0 && room > areaMin * 2) return { node, name: node.name, children: below.map(made) };
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

// byPlan is the hierarchy of plans, each divided by kind, with what is free and what is on hosts that are not ok.
function byPlan(plans, dimension, hosts) {
  const children = [];
  for (const plan of plans.values()) {
    const c = capacityOf(hosts, plan).dims.get(dimension);
    if (!c || c.capacity === 0) continue;
    const sum = { kinds: [0, 0, 0, 0], leaving: 0, path: null };
    for (const n of plan.roots) {
      n.kinds.forEach((v, i) => (sum.kinds[i] += v));
      sum.leaving += n.leaving;
    }
    const parts = split(sum, c.used).map((p) => ({ ...p, node: null }));
    if (c.closed > 0) parts.push({ name: "closed", closed: true, value: c.closed });
    if (c.capacity - c.used - c.closed > 0) parts.push({ name: "free", free: true, value: c.capacity - c.used - c.closed });
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
    const of = by === "consumer" ? byConsumer(plan, roots, dim, free, width * height) : byPlan(data.plans, dim, data.hosts);
    const root = hierarchy(of).sum((d) => d.value || 0).sort((a, b) => (a.data.free ? 1 : 0) - (b.data.free ? 1 : 0) || b.value - a.value);
    treemap().size([width, height]).paddingTop((n) => (n.depth > 0 && n.children && n.x1 - n.x0 > 46 && n.y1 - n.y0 > 30 && !onlyParts(n) ? 15 : 0))
      .paddingInner(1).round(true)(root);
    return root;
  }, [data, plan, roots, dim, by, width, focus, capacity]);
  const dims = by === "consumer" ? plan.dims : [...new Set([...data.plans.values()].flatMap((p) => p.dims))];
  const says = "Treemap of " + dim + " by " + by + (capacity ? ": " + percent(capacity.used, capacity.capacity) + " used" : "") + ". The table has the same figures.";
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
        ${tree.value > 0 ? tree.descendants().map((n) => cell(n, { dim, blocked, chosen, plan })) : null}
        ${!(tree.value > 0) && html`<text class="t-none" x="12" y="28">nothing is held</text>`}
      </svg>
    </div>
  </section>`;
};

const onlyParts = (n) => !n.children.some((c) => c.children);

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
  const label = path || (d.plan ? "plan " + d.plan : d.name);
  const title = label + ": " + num(Math.round(n.value)) + " " + dim + (d.kind !== undefined ? ", " + kinds[d.kind].name : "") +
    (d.leaving > 0 ? ", " + percent(d.leaving) + " of it under reclaim" : "");
  if (n.children) {
    const marks = (path && blocked.has(path) ? " blocked" : "") + (path && path === chosen ? " chosen" : "");
    const text = onlyParts(n) ? null : n.y1 - n.y0 > 30 && w > 46;
    return html`<g key=${"f" + label + n.depth} onClick=${open} class=${"frame" + marks + (path ? " can" : "")}>
      <rect x=${n.x0} y=${n.y0} width=${w} height=${h}><title>${title}</title></rect>
      ${text && html`<text class="t-head" x=${n.x0 + 4} y=${n.y0 + 11}>${clip(d.name, w - 8)}</text>`}
    </g>`;
  }
  const first = n.parent.children[0] === n && d.node && onlyParts(n.parent);
  const mark = path && blocked.has(path) ? "▲ " : "";
  const name = d.free || d.closed ? d.name : first && d.node ? mark + d.node.name : d.kind !== undefined && !d.node ? kinds[d.kind].name : "";
  const sort = d.free ? "free" : d.closed ? "closed" : "k-" + kinds[d.kind].key;
  return html`<g key=${"c" + label + sort} onClick=${open} class=${"cell " + sort + (path ? " can" : "") + (path && path === chosen ? " chosen" : "") + (path && blocked.has(path) ? " blocked" : "")}>
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
