// Time: the cycles of the log as curves, and a slider that chooses the one that all views show.

import { html, useEffect, useMemo, useRef, useState } from "./htm-preact-3.1.1.js";
import * as api from "./api.js";
import { kinds } from "./model.js";
import { Empty, Legend, Path, When, color } from "./parts.js";
import { go, link, route, useStore } from "./store.js";
import { num, count, percent, inURL, stamp } from "./text.js";

const pageCycles = 20000; // of one call
const allCyclesMax = 200000;
let known = { rows: [], whole: false }; // the cycles of the log: number, now and sums

// cyclesOf reads the cycles that are not known yet, the oldest first.
async function cyclesOf(last, signal) {
  const read = (t) => {
    const c = (n) => t.column(n);
    return Array.from({ length: t.rows }, (_, i) => ({
      cycle: c("cycle")[i], now: c("now")[i], wanted: c("units_wanted")[i], held: c("units_held")[i], short: c("units_short")[i],
      granted: c("units_granted")[i], reclaimed: c("units_reclaimed")[i], released: c("units_released")[i], window: c("time_window")[i], revision: c("revision")[i],
    }));
  };
  const newest = known.rows.length > 0 ? known.rows[known.rows.length - 1].cycle : 0;
  if (newest >= last && newest > 0) return known;
  if (newest > 0 && last - newest <= 1000) {
    const more = read(await api.table("/v1/cycles?limit=" + (last - newest), { signal })).filter((r) => r.cycle > newest);
    known = { rows: [...known.rows, ...more] };
    return known;
  }
  let rows = [], before = "";
  while (rows.length < allCyclesMax) {
    const page = read(await api.table("/v1/cycles?limit=" + pageCycles + before, { signal }));
    rows = [...page, ...rows];
    if (page.length < pageCycles) break;
    before = "&before=" + page[0].cycle;
  }
  known = { rows };
  return known;
}

export const forgetCycles = () => (known = { rows: [] });

// Time is the view of a plan, or of one consumer, over the cycles.
export const Time = ({ data, plan }) => {
  const s = useStore();
  const r = route();
  const [cycles, setCycles] = useState(known.rows);
  const [error, setError] = useState(null);
  const [curve, setCurve] = useState(null);
  const [span, setSpan] = useState(500);
  const path = r.why && plan.byPath.has(r.why) ? r.why : r.focus || "/";
  const last = s.last ? s.last.cycle : data.cycle;
  useEffect(() => {
    const stop = new AbortController();
    cyclesOf(last, stop.signal).then((k) => (setCycles(k.rows), setError(null)), (e) => e.name !== "AbortError" && setError(e));
    return () => stop.abort();
  }, [last]);
  const until = r.cycle && r.cycle < last - span / 2 ? Math.min(last, r.cycle + Math.floor(span / 2)) : last;
  const shownUntil = curve && r.cycle && curve.path === path && curve.span === span && curve.from <= r.cycle && r.cycle <= curve.until ? curve.until : until;
  useEffect(() => { // a little after the slider came to rest
    const stop = new AbortController();
    const wait = setTimeout(() => {
      api.table("/v1/consumers" + (path === "/" ? "" : inURL(path)) + "?last=" + span + "&until=" + shownUntil, { signal: stop.signal }).then(
        (t) => setCurve({ path, span, until: shownUntil, from: t.rows > 0 ? t.get("cycle", 0) : 0, t }),
        (e) => e.name !== "AbortError" && setError(e));
    }, 120);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [path, span, shownUntil]);
  if (error && cycles.length === 0) return html`<p class="fault" role="alert">The cycles cannot be shown: ${error.message}</p>`;
  if (cycles.length === 0) return html`<${Empty}>loading …</${Empty}>`;
  const at = Math.max(0, cycles.findIndex((c) => c.cycle >= data.cycle));
  return html`<div class="time">
    <${Slider} cycles=${cycles} at=${at} />
    <${Whole} cycles=${cycles} at=${at} span=${span} until=${shownUntil} />
    <section class="card" aria-labelledby="h-curve"><header><h2 id="h-curve">${path === "/" ? html`Plan ${plan.name}` : html`<${Path} path=${path} />`}</h2>
      <${Choose} plan=${plan} path=${path} />
      <label>cycles <select onChange=${(e) => setSpan(Number(e.target.value))}>${[50, 200, 500, 2000, 10000].map((n) => html`<option value=${n} selected=${n === span}>${num(n)}</option>`)}</select></label></header>
      ${error && html`<p class="fault" role="alert">${error.message}</p>`}
      ${curve && curve.path === path ? html`<${Stack} t=${curve.t} plan=${plan} cycle=${data.cycle} theme=${s.theme} />` : html`<${Empty}>loading …</${Empty}>`}
      <${Legend} />
    </section>
  </div>`;
};

// Slider chooses a cycle: the last one means the newest, whichever that is.
const Slider = ({ cycles, at }) => {
  const r = route();
  const c = cycles[at];
  const to = (i) => {
    const n = Math.max(0, Math.min(cycles.length - 1, i));
    go({ cycle: n === cycles.length - 1 ? null : cycles[n].cycle }, true);
  };
  const [held, hold] = useState(null); // where the slider is while it is moved
  const i = held ?? at;
  const rest = useRef(0);
  return html`<section class="card slider" aria-label="Cycle">
    <div class="steps">
      <button type="button" disabled=${i === 0} onClick=${() => to(0)} aria-label="first cycle">«</button>
      <button type="button" disabled=${i === 0} onClick=${() => to(at - 1)} aria-label="cycle before">‹</button>
      <input type="range" min="0" max=${cycles.length - 1} value=${i} aria-label="Cycle" aria-valuetext=${"cycle " + cycles[i].cycle + " at " + stamp(cycles[i].now)}
        onInput=${(e) => {
          const n = Number(e.target.value);
          hold(n);
          clearTimeout(rest.current);
          rest.current = setTimeout(() => (to(n), hold(null)), 90);
        }} />
      <button type="button" disabled=${i === cycles.length - 1} onClick=${() => to(at + 1)} aria-label="cycle behind">›</button>
      <button type="button" disabled=${i === cycles.length - 1} onClick=${() => to(cycles.length - 1)} aria-label="newest cycle">»</button>
    </div>
    <p class="at" role="status"><strong>cycle ${num(cycles[i].cycle)}</strong> of ${num(cycles[0].cycle)} to ${num(cycles[cycles.length - 1].cycle)} · <${When} ms=${cycles[i].now} />
      ${cycles[i].window ? html` · window <span class="tag">${cycles[i].window}</span>` : null} · revision ${num(cycles[i].revision)}
      ${r.cycle === null && held === null ? html` · <span class="good">follows the newest</span>` : null}
      ${" · "}<a href=${link({ view: "now" })}>all figures of this cycle</a></p>
  </section>`;
};

// Choose finds a consumer to be shown.
const Choose = ({ plan, path }) => {
  const [text, setText] = useState("");
  const found = text === "" ? [] : plan.nodes.filter((n) => n.path.toLowerCase().includes(text.toLowerCase())).slice(0, 8);
  return html`<span class="choose"><input type="search" placeholder="another consumer" aria-label="Show another consumer" value=${text} onInput=${(e) => setText(e.target.value)}
      onKeyDown=${(e) => e.key === "Enter" && found.length > 0 && (go({ why: null, focus: found[0].path }), setText(""))} />
    ${found.length > 0 && html`<ul aria-label="Consumers found">${found.map((n) => html`<li><a href=${link({ focus: n.path, why: null })} onClick=${() => setText("")}><${Path} path=${n.path} /></a></li>`)}</ul>`}
    ${path !== "/" && html`<a class="button" href=${link({ focus: null, why: null })}>the whole plan</a>`}</span>`;
};

// Chart is a uPlot in an element of the page, made anew when what it shows is another.
const Chart = ({ make, values, says, on }) => {
  const box = useRef(null);
  useEffect(() => {
    const width = () => Math.max(260, box.current.clientWidth);
    const chart = new globalThis.uPlot({ ...make(), width: width() }, values, box.current);
    const watch = new ResizeObserver(() => chart.setSize({ width: width(), height: chart.height }));
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      chart.destroy();
    };
  }, on);
  return html`<div class="chart" ref=${box} role="img" aria-label=${says}></div>`;
};

// times are moments on an axis, the day with the first of each.
const times = (list) => list.map((s, i) => {
  const text = new Date(s * 1000).toISOString();
  const day = i === 0 || text.slice(0, 10) !== new Date(list[i - 1] * 1000).toISOString().slice(0, 10);
  const time = list.length > 1 && list[1] - list[0] < 60 ? text.slice(11, 19) : text.slice(11, 16);
  return list.length > 1 && list[1] - list[0] >= 86400 ? text.slice(0, 10) : day ? time + "\n" + text.slice(0, 10) : time;
});

const axes = () => {
  const line = { stroke: color("dim"), grid: { stroke: color("grid"), width: 1 }, ticks: { stroke: color("grid") }, font: "12px system-ui, sans-serif" };
  return [{ ...line, values: (_, list) => times(list) }, { ...line, size: 64, values: (_, list) => list.map((v) => num(v)) }];
};

// marker draws a line at a moment.
const marker = (x) => ({
  hooks: {
    draw: [(u) => {
      const at = u.valToPos(x, "x", true);
      if (at < u.bbox.left || at > u.bbox.left + u.bbox.width) return;
      u.ctx.save();
      u.ctx.strokeStyle = color("text");
      u.ctx.lineWidth = 1.5;
      u.ctx.setLineDash([]);
      u.ctx.beginPath();
      u.ctx.moveTo(at, u.bbox.top);
      u.ctx.lineTo(at, u.bbox.top + u.bbox.height);
      u.ctx.stroke();
      u.ctx.restore();
    }],
  },
});

const utc = (s) => globalThis.uPlot.tzDate(new Date(s * 1000), "Etc/UTC");
const pointsMax = 1500;

// thin takes some of a long list, its last among them.
function thin(list) {
  if (list.length <= pointsMax) return list;
  const step = (list.length - 1) / (pointsMax - 1);
  return Array.from({ length: pointsMax }, (_, i) => list[Math.round(i * step)]);
}

// Whole is the curves of all plans together.
const Whole = ({ cycles, at, span, until }) => {
  const s = useStore();
  const end = cycles.findIndex((c) => c.cycle >= until);
  const list = useMemo(() => thin(cycles.slice(Math.max(0, (end < 0 ? cycles.length : end + 1) - span), end < 0 ? cycles.length : end + 1)), [cycles, end, span]);
  const c = cycles[at];
  const values = [list.map((x) => x.now / 1000), ...["wanted", "held", "short", "reclaimed"].map((k) => list.map((x) => x[k]))];
  const make = () => ({
    height: 170, tzDate: utc, legend: { show: false }, cursor: { y: false }, axes: axes(), plugins: [marker(c.now / 1000)],
    scales: { y: { range: (_, lo, hi) => [0, Math.max(1, hi * 1.05)] } },
    series: [{}, { stroke: color("wants"), width: 2, dash: [5, 3] }, { stroke: color("owned"), width: 2 }, { stroke: color("short"), width: 2 }, { stroke: color("borrowed"), width: 2 }],
  });
  const says = "wanted " + num(c.wanted) + ", held " + num(c.held) + ", short " + num(c.short) + ", put under reclaim " + num(c.reclaimed) + " units in cycle " + c.cycle;
  return html`<section class="card" aria-labelledby="h-whole"><header><h2 id="h-whole">All plans</h2>
    <ul class="keys"><li><span class="line l-wants"></span>wanted <b>${num(c.wanted)}</b></li><li><span class="line l-held"></span>held <b>${num(c.held)}</b></li>
      <li><span class="line l-short"></span>short <b>${num(c.short)}</b></li><li><span class="line l-reclaimed"></span>put under reclaim <b>${num(c.reclaimed)}</b></li></ul></header>
    <${Chart} make=${make} values=${values} says=${"Curves over cycles " + list[0].cycle + " to " + list[list.length - 1].cycle + ": " + says} on=${[list, c.cycle, s.theme, s.version && matchMedia("(prefers-color-scheme: dark)").matches]} />
  </section>`;
};

const columns = ["owned", "private_pool", "shared", "borrowed"];

// Stack is what a consumer holds, stacked by kind, with what it wants as a line and what it lends as an outline above.
const Stack = ({ t, plan, cycle, theme }) => {
  const rows = useMemo(() => {
    const list = [];
    for (let i = 0; i < t.rows; i++) if (t.get("plan", i) === plan.name) list.push(i);
    return list;
  }, [t, plan.name]);
  const C = (name) => rows.map((i) => t.get(name, i));
  const x = C("now").map((ms) => ms / 1000);
  const stack = [];
  columns.forEach((name, k) => {
    const own = C(name);
    stack.push(own.map((v, i) => v + (k > 0 ? stack[k - 1][i] : 0)));
  });
  const top = stack[3] || [];
  const lent = C("lent").map((v, i) => (v > 0 ? top[i] + v : null));
  const cycles = C("cycle");
  let at = cycles.findIndex((n) => n >= cycle);
  if (at < 0) at = cycles.length - 1;
  if (rows.length === 0) return html`<${Empty}>It takes no part in this plan in these cycles.</${Empty}>`;
  const quota = C("quota");
  const hasQuota = quota.some((q) => q !== null);
  const figure = (name) => t.get(name, rows[at]);
  const unit = figure("unit").replace(/s$/, "");
  const make = () => {
    const fill = kinds.map((k) => color(k.key));
    return {
      height: 260, tzDate: utc, legend: { show: false }, cursor: { y: false }, axes: axes(), plugins: [marker(x[at])],
      scales: { y: { range: (_, lo, hi) => [0, Math.max(1, hi * 1.05)] } },
      series: [{}, ...[3, 2, 1, 0].map((k) => ({ fill: fill[k], stroke: fill[k], width: 1, points: { show: false }, paths: globalThis.uPlot.paths.stepped({ align: 1 }) })),
        { stroke: color("owned"), width: 2, dash: [3, 3], points: { show: false }, paths: globalThis.uPlot.paths.stepped({ align: 1 }) },
        { stroke: color("text"), width: 2, points: { show: false }, paths: globalThis.uPlot.paths.stepped({ align: 1 }) },
        { stroke: color("quota"), width: 1.5, dash: [8, 4], points: { show: false }, show: hasQuota, paths: globalThis.uPlot.paths.stepped({ align: 1 }) }],
    };
  };
  const values = [x, stack[3], stack[2], stack[1], stack[0], lent, C("demand"), hasQuota ? quota : x.map(() => null)];
  const names = [["wanted", "demand"], ["held", "held"], ["short", "short"], ...kinds.map((k, i) => [k.name, columns[i]]), ["lent", "lent"], ["granted", "granted"], ["put under reclaim", "reclaimed"], ["given back", "released"]];
  const says = names.map(([n, c]) => n + " " + num(figure(c))).join(", ") + " " + unit + "s in cycle " + cycles[at];
  return html`<${Chart} make=${make} values=${values} says=${"Stacked curves, in " + unit + "s: " + says} on=${[t, plan.name, at, theme, matchMedia("(prefers-color-scheme: dark)").matches]} />
    <dl class="figures" aria-label=${"Figures in cycle " + cycles[at]}>${names.map(([n, c]) => html`<div><dt>${n}</dt><dd>${num(figure(c))}</dd></div>`)}
      ${hasQuota && html`<div><dt>deserved</dt><dd>${num(figure("quota"))}</dd></div>`}<div><dt>met</dt><dd>${percent(figure("held"), figure("demand"))}</dd></div></dl>`;
};
