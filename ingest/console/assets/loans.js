// Loans: who has what of whom, as a matrix of lenders and borrowers.

import { html, useEffect, useMemo, useState } from "./htm-preact-3.1.1.js";
import { Empty, Path, Why, When } from "./parts.js";
import { route, tableOf, useStore, link } from "./store.js";
import { num, count, percent, within } from "./text.js";

const sideMax = 40; // lenders, and borrowers, in the matrix

// upTo is a path up to a depth.
const upTo = (path, depth) => path.split("/").slice(0, depth + 1).join("/");

export const Loans = ({ data, plan }) => {
  useStore();
  const r = route();
  const [loans, setLoans] = useState(null);
  const [error, setError] = useState(null);
  const [depth, setDepth] = useState(0); // 0: as deep as the matrix can be shown
  const [find, setFind] = useState(r.why && plan.byPath.has(r.why) ? r.why : "");
  const [chosen, choose] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    tableOf(data.cycle, "/v1/loans?cycle=" + data.cycle, stop.signal).then((t) => (setLoans(t), setError(null)), (e) => e.name !== "AbortError" && setError(e));
    return () => stop.abort();
  }, [data.cycle]);
  const list = useMemo(() => read(loans, plan, find), [loans, plan, find]);
  const deepest = useMemo(() => Math.max(1, ...list.map((l) => Math.max(l.lender.split("/").length, l.borrower.split("/").length) - 1)), [list]);
  const at = useMemo(() => depth || fitting(list, deepest), [list, depth, deepest]);
  const m = useMemo(() => matrix(list, at), [list, at]);
  if (error) return html`<p class="fault" role="alert">The loans cannot be shown: ${error.message}</p>`;
  if (!loans) return html`<${Empty}>loading …</${Empty}>`;
  const total = list.reduce((n, l) => n + l.units, 0), back = list.reduce((n, l) => n + l.recalled, 0);
  return html`<section class="card loans" aria-labelledby="h-loans"><header><h2 id="h-loans">Who lends whom</h2>
      <input type="search" placeholder="lender or borrower" aria-label="Find a lender or borrower" value=${find} onInput=${(e) => (setFind(e.target.value), choose(null))} />
      <label>level <select onChange=${(e) => setDepth(Number(e.target.value))}><option value="0" selected=${depth === 0}>as fits</option>
        ${Array.from({ length: deepest }, (_, i) => html`<option value=${i + 1} selected=${depth === i + 1}>${i + 1}${i + 1 === deepest ? " (all)" : ""}</option>`)}</select></label>
    </header>
    ${list.length === 0 ? html`<${Empty}>${find ? "Nobody of that name has lent or borrowed anything in plan " + plan.name + "." : "Nothing is lent in plan " + plan.name + " after cycle " + num(data.cycle) + ": owners need what they have, or do not lend."}</${Empty}>`
    : html`<p>${count(total, plan.unit)} lent by ${count(new Set(list.map((l) => l.lender)).size, "owner")} to ${count(new Set(list.map((l) => l.borrower)).size, "borrower")}${back > 0 ? ", " + num(back) + " of them under reclaim" : ""}.
        <span class="dim"> Rows lend, columns borrow. A figure shows what it is made of.</span></p>
      <${Matrix} m=${m} plan=${plan} chosen=${chosen} choose=${choose} />
      <${Chosen} list=${list} chosen=${chosen} depth=${at} plan=${plan} now=${data.now} all=${total} />`}
  </section>`;
};

// read makes loans of the table, those that a text is found in.
function read(t, plan, find) {
  if (!t) return [];
  const list = [];
  const word = find.toLowerCase();
  for (let i = 0; i < t.rows; i++) {
    if (t.get("plan", i) !== plan.name) continue;
    const l = { lender: t.get("lender", i), borrower: t.get("borrower", i), pool: t.get("pool", i), units: t.get("units", i), recalled: t.get("under_recall", i), deadline: t.get("deadline", i) };
    if (word && !l.lender.toLowerCase().includes(word) && !l.borrower.toLowerCase().includes(word)) continue;
    list.push(l);
  }
  return list;
}

// fitting is the deepest level at which there are not more lenders and borrowers than can be seen at once.
function fitting(list, deepest) {
  for (let d = deepest; d > 1; d--) {
    if (new Set(list.map((l) => upTo(l.lender, d))).size <= 24 && new Set(list.map((l) => upTo(l.borrower, d))).size <= 24) return d;
  }
  return 1;
}

// matrix adds loans up by lender and borrower at a level, those with most first.
function matrix(list, depth) {
  const cells = new Map(), lenders = new Map(), borrowers = new Map();
  for (const l of list) {
    const [a, b] = [upTo(l.lender, depth), upTo(l.borrower, depth)];
    if (!cells.has(a)) cells.set(a, new Map());
    const row = cells.get(a);
    const c = row.get(b) || { units: 0, recalled: 0 };
    c.units += l.units;
    c.recalled += l.recalled;
    row.set(b, c);
    lenders.set(a, (lenders.get(a) || 0) + l.units);
    borrowers.set(b, (borrowers.get(b) || 0) + l.units);
  }
  const ranked = (m) => [...m].sort((x, y) => y[1] - x[1]);
  let most = 1;
  for (const row of cells.values()) for (const c of row.values()) most = Math.max(most, c.units);
  return { cells, lenders: ranked(lenders), borrowers: ranked(borrowers), most };
}

const Matrix = ({ m, plan, chosen, choose }) => {
  const rows = m.lenders.slice(0, sideMax), columns = m.borrowers.slice(0, sideMax);
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Matrix of loans"><table class="matrix">
    <thead><tr><th scope="col">lends ↓ borrows →</th>${columns.map(([b]) => html`<th scope="col" class="turned"><div><${Path} path=${b} /></div></th>`)}<th scope="col" class="n">all</th></tr></thead>
    <tbody>${rows.map(([a, sum]) => html`<tr><th scope="row"><${Path} path=${a} /></th>
      ${columns.map(([b]) => {
        const c = m.cells.get(a).get(b);
        if (!c) return html`<td></td>`;
        const is = chosen && chosen.lender === a && chosen.borrower === b;
        const shade = c.units > 0.66 * m.most ? "h3" : c.units > 0.33 * m.most ? "h2" : c.units > 0.1 * m.most ? "h1" : "h0";
        return html`<td class="n"><button type="button" class=${"loan " + shade + (is ? " is" : "")} aria-pressed=${String(!!is)} onClick=${() => choose(is ? null : { lender: a, borrower: b })}
          aria-label=${a + " lends " + b + " " + num(c.units) + (c.recalled > 0 ? ", " + num(c.recalled) + " under reclaim" : "")}>${num(c.units)}${c.recalled > 0 ? html`<span class="leaving mark" title=${num(c.recalled) + " under reclaim"}></span>` : null}</button></td>`;
      })}<td class="n"><b>${num(sum)}</b></td></tr>`)}</tbody>
    <tfoot><tr><th scope="row">all</th>${columns.map(([, sum]) => html`<td class="n"><b>${num(sum)}</b></td>`)}<td></td></tr></tfoot>
  </table>${m.lenders.length > sideMax || m.borrowers.length > sideMax ? html`<p class="dim">${num(m.lenders.length)} lenders and ${num(m.borrowers.length)} borrowers in all; those with most are shown. Find others by name, or choose a higher level.</p>` : null}</div>`;
};

// Chosen lists the loans behind a figure, or the largest ones.
const Chosen = ({ list, chosen, depth, plan, now, all }) => {
  const some = list.filter((l) => !chosen || (upTo(l.lender, depth) === chosen.lender && upTo(l.borrower, depth) === chosen.borrower)).sort((a, b) => b.units - a.units);
  return html`<h3>${chosen ? html`<${Path} path=${chosen.lender} /> lends <${Path} path=${chosen.borrower} />` : "The largest loans"}</h3>
    <div class="scroll" tabindex="0" role="region" aria-label="Loans"><table><thead><tr><th>lender</th><th>borrower</th><th class="n">${plan.unit}s</th><th class="n">of all lent</th><th>from</th><th class="n">under reclaim</th><th>until</th></tr></thead>
    <tbody>${some.slice(0, 50).map((l) => html`<tr><td><${Why} path=${l.lender} plan=${plan.name} figure="lent" says=${l.lender + " lends"}><${Path} path=${l.lender} /></${Why}></td>
      <td><${Why} path=${l.borrower} plan=${plan.name} figure="held_borrowed" says=${l.borrower + " borrows"}><${Path} path=${l.borrower} /></${Why}></td>
      <td class="n">${num(l.units)}</td><td class="n">${percent(l.units, all)}</td><td>${l.pool === null ? "the lender" : l.pool === "/" ? "the pool of all" : html`the pool of <${Path} path=${l.pool} />`}</td><td class="n">${num(l.recalled)}</td>
      <td>${l.recalled > 0 ? html`<${When} ms=${l.deadline} from=${now} />` : "–"}</td></tr>`)}</tbody></table>
    ${some.length > 50 ? html`<p class="dim">and ${num(some.length - 50)} more</p>` : null}</div>`;
};
