// Why: the explanation of a consumer, beside whatever view asked for it.

import { html, useEffect, useRef } from "./htm-preact-3.1.1.js";
import { Why, When, Path } from "./parts.js";
import { go, link, route, useStore } from "./store.js";
import { num, percent, count, reasonText } from "./text.js";

const parts = new Set(["usage", "usage_demand", "usage_quota", "demand part", "quota part", "used lately", "of ratio"]);

// figureNames are the figures as the page calls them.
const figureNames = new Map([
  ["demand", "wanted"], ["held", "held"], ["short", "short"], ["quota", "deserved"], ["lent", "lent"], ["leaving", "under reclaim"], ["usage_quota", "deserved"], ["decayed_usage", "used lately"],
  ["held_owned", "held of its own"], ["held_shared", "held of the pool"], ["held_borrowed", "borrowed"],
]);

// sameFigure tells whether a point is about the figure that was asked for.
const sameFigure = (figure, asked) => figure && asked && (figure === asked || (asked === "held" && figure.startsWith("held_")) || (asked === "usage_quota" && figure === "usage"));

// Panel shows the explanation that the URL asks for.
export const Panel = () => {
  const s = useStore();
  const r = route();
  const head = useRef(null);
  const e = s.explained;
  useEffect(() => {
    if (head.current) head.current.focus();
  }, [r.why]);
  if (!r.why || !e) return null;
  return html`<aside class="panel" aria-labelledby="h-why" onKeyDown=${(k) => k.key === "Escape" && go({ why: null, figure: null })}>
    <header><h2 id="h-why" tabindex="-1" ref=${head}>Why: <${Path} path=${e.path} /></h2>
      <a class="button" href=${link({ why: null, figure: null })} aria-label="Close the explanation">close</a></header>
    <p class="dim">after cycle ${num(e.cycle)}${r.figure ? html`, asked for: <strong>${figureNames.get(r.figure) || r.figure}</strong>` : null}
      ${" · "}<a href=${link({ view: "time" })}>over time</a>${" · "}<a href=${link({ view: "loans" })}>its loans</a></p>
    ${e.error && html`<p class="fault" role="alert">${e.error.message}</p>`}
    ${!e.error && !e.answer && html`<p class="empty" role="status">asking …</p>`}
    ${e.answer && e.answer.plans.map((part) => html`<${Part} key=${part.plan} part=${part} now=${Date.parse(e.answer.now)} asked=${r.figure} />`)}
  </aside>`;
};

const Rules = ({ rules }) => (rules && rules.length > 0 ? html` <span class="rules">${rules.map((r) => html`<span class="rule" title="the rule that this follows from">${r}</span>`)}</span>` : null);

// Part is the explanation within one plan: the answer first, then what it follows from.
const Part = ({ part, now, asked }) => html`<section class="part" aria-label=${"in plan " + (part.plan || "none")}>
  <h3>plan ${part.plan || "none"}${part.policy ? html` <span class="tag">${part.policy}</span>` : null}${part.window ? html` <span class="tag">window ${part.window}</span>` : null}</h3>
  <p class="answer">${part.answer}</p>
  <${Shortfalls} part=${part} now=${now} />
  <${Takings} title="Being taken back for it" list=${part.coming} more=${part.coming_more} now=${now} from />
  <${Takings} title="Being taken back of it" list=${part.leaving} more=${part.leaving_more} now=${now} />
  ${part.points.length > 0 && html`<h4>What it follows from</h4><ul class="points">${part.points.map((p) => html`<li class=${sameFigure(p.figure, asked) ? "asked" : ""}>
      ${p.figure && html`<span class="figure">${figureNames.get(p.figure) || p.figure.replaceAll("_", " ")}${p.dimension ? " (" + p.dimension + ")" : ""}</span> `}${p.text}<${Rules} rules=${p.rules} /></li>`)}</ul>`}
  ${part.happened.length > 0 && html`<h4>In this cycle</h4><ul class="points">${part.happened.map((p) => html`<li>${p.text}<${Rules} rules=${p.rules} /></li>`)}</ul>`}
  ${part.tables.map((t) => html`<${Grid} t=${t} />`)}
</section>`;

// subName is a sub-allocation as a shortfall names it; of a gang with how many units it holds at least, or none.
const subName = (s) => s.allocation + (s.sub ? "/" + s.sub : "") + (s.min_units > 1 ? " (gang of " + num(s.min_units) + ")" : "");

// grouped puts shortfalls together that say the same.
function grouped(list) {
  const by = new Map();
  for (const s of list) {
    const key = [s.reason, s.text, s.blocker, s.until].join("\n");
    if (by.has(key)) {
      const at = by.get(key);
      at.units += s.units_short;
      at.names.push(subName(s));
    } else by.set(key, { ...s, units: s.units_short, names: [subName(s)] });
  }
  return [...by.values()].sort((a, b) => b.units - a.units);
}

const Shortfalls = ({ part, now }) => {
  const list = grouped(part.shortfalls);
  if (list.length === 0) return null;
  return html`<h4>Why it is short</h4><ul class="points">${list.map((s) => html`<li>
    <strong>${count(s.units, part.unit)}</strong>: ${s.text || reasonText(s.reason)} <code class="dim">${s.reason}</code><${Rules} rules=${s.rules} />
    ${s.blocker && html`<div><span class="blocker" aria-hidden="true">▲</span> in the way: ${s.blocker === "/" ? "the whole pool" : html`<${Why} path=${s.blocker} plan=${part.plan} says=${s.blocker}><${Path} path=${s.blocker} /></${Why}>`}</div>`}
    ${s.until && html`<div>ends <${When} ms=${Date.parse(s.until)} from=${now} /> at the latest</div>`}
    <div class="dim">${s.names.length > 4 ? count(s.names.length, "allocation") + ": " + s.names.slice(0, 3).join(", ") + ", …" : s.names.join(", ")}</div>
    ${s.because.length > 0 && html`<ul class="points">${s.because.map((p) => html`<li>${p.text}<${Rules} rules=${p.rules} /></li>`)}</ul>`}
  </li>`)}${part.shortfalls_more ? html`<li class="dim">and ${num(part.shortfalls_more)} more</li>` : null}</ul>`;
};

const Takings = ({ title, list, more, now, from }) => {
  if (list.length === 0) return null;
  return html`<h4>${title}</h4><ul class="points">${list.map((r) => html`<li><strong>${count(r.units, "unit")}</strong> ${from ? html`of <${Why} path=${r.consumer} says=${r.consumer}><${Path} path=${r.consumer} /></${Why}>` : null}
    ${r.for && r.for.consumer && !from ? html` for <${Why} path=${r.for.consumer} says=${r.for.consumer}><${Path} path=${r.for.consumer} /></${Why}>` : null}
    ${" by "}<${When} ms=${Date.parse(r.deadline)} from=${now} />${r.overdue ? html` <span class="tag bad">overdue</span>` : null}
    <div>${r.text}<${Rules} rules=${r.rules} /></div></li>`)}${more ? html`<li class="dim">and ${num(more)} more</li>` : null}</ul>`;
};

const cellOf = (v, column) => (v === null || v === undefined ? "–" : Number.isInteger(v) && !parts.has(column) ? num(v) : percent(v));

// Grid is a table of figures: up the tree, or beside siblings.
const Grid = ({ t }) => html`<details><summary>${t.title}</summary><div class="scroll" tabindex="0" role="region" aria-label=${t.title}><table><thead><tr><th></th>${t.columns.map((c) => html`<th class="n">${c.replaceAll("_", " ")}</th>`)}</tr></thead>
  <tbody>${t.rows.map((r) => html`<tr><th scope="row">${r.name.startsWith("/") ? html`<${Why} path=${r.name} says=${r.name}><${Path} path=${r.name} short /></${Why}>` : r.name.replaceAll("_", " ")}</th>
    ${r.values.map((v, i) => html`<td class="n">${isPart(t, i) ? (v === null ? "–" : percent(v)) : cellOf(v, t.columns[i])}</td>`)}</tr>`)}</tbody></table>
  ${t.more ? html`<p class="dim">and ${num(t.more)} more</p>` : null}</div></details>`;

// isPart tells of a column whether it has parts of a pool: `usage` has, and `demand` and `quota` beside it.
const isPart = (t, i) => t.columns.includes("usage") && ["usage", "demand", "quota", "used lately", "of ratio"].includes(t.columns[i]);
