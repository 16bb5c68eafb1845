// Plan: the policy in an editor, checked while it is typed; what it would do; its revisions.

import { html, useEffect, useMemo, useState } from "./htm-preact-3.1.1.js";
import * as api from "./api.js";
import { Editor } from "./editor.js";
import { Empty, Path, Rows, When } from "./parts.js";
import { go, route, mayChange, set, useStore } from "./store.js";
import { num, count } from "./text.js";

// draft is what is typed. It outlives the view, and a token that ends: it is in the memory of the page alone.
export const draft = { text: null, base: null, message: "", force: false, origin: "" };
const changed = () => draft.text !== null && draft.base !== null && draft.text !== draft.base.text;
addEventListener("beforeunload", (e) => changed() && e.preventDefault());

// fetchPlan is the newest policy with its revision; none: an empty one.
async function fetchPlan() {
  try {
    const answer = await api.call("/v1/plan");
    return { revision: Number((answer.headers.get("ETag") || "").replaceAll('"', "")), text: await answer.text() };
  } catch (error) {
    if (error.kind === "no-plan") return { revision: 0, text: "" };
    throw error;
  }
}

const asPolicy = (text, signal) => ({ method: "POST", body: text, headers: { "Content-Type": "application/yaml" }, signal });
const checkDelay = 350;

// Plan is the view.
export const Plan = () => {
  const s = useStore();
  const r = route();
  const [, again] = useState(0);
  const [error, setError] = useState(null);
  const [check, setCheck] = useState(null);
  const [whatif, setWhatif] = useState(null);
  const [done, setDone] = useState(null);
  const [jump, setJump] = useState(null);
  const [tab, setTab] = useState("check");
  const [revisions, setRevisions] = useState(null);
  const may = mayChange();
  const show = () => again((n) => n + 1);
  const newest = s.last ? s.last.newest_revision : 0;

  const begin = (keep) => fetchPlan().then((base) => {
    setError(null);
    if (!keep && changed()) return; // somebody began to type before the answer came: the draft is of the base before
    draft.base = base;
    if (!keep || draft.text === null) Object.assign(draft, { text: base.text, message: "", force: false, origin: "" });
    show();
  }, setError);
  useEffect(() => {
    if (s.asked === null && (draft.base === null || (!changed() && draft.base.revision !== newest && newest > 0))) begin(false);
  }, [s.asked, newest, s.link]);
  useEffect(() => {
    if (s.asked !== null) return;
    api.json("/v1/plan/revisions").then(setRevisions, () => setRevisions((was) => was || []));
  }, [s.asked, newest, done, s.last && s.last.revision]);

  useEffect(() => { // a check a little after the last key
    if (draft.text === null || s.asked !== null) return undefined;
    const stop = new AbortController();
    const text = draft.text;
    setCheck((was) => (was ? { ...was, old: was.text !== text } : null));
    const wait = setTimeout(() => {
      api.json("/v1/plan/check?windows=true" + (draft.force ? "&force=true" : ""), asPolicy(text, stop.signal)).then(
        (answer) => setCheck({ text, answer, faults: [] }),
        (e) => {
          if (e.name === "AbortError" || e.status === 401) return;
          setCheck({ text, faults: e.faults.length > 0 ? e.faults : [{ reason: e.message }], count: e.count });
        });
    }, checkDelay);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [draft.text, draft.force, s.asked, s.link]);

  const change = (text) => {
    draft.text = text;
    setDone(null);
    show();
  };
  const ask = () => {
    const text = draft.text;
    setWhatif({ text, asking: true });
    setTab("check");
    api.json("/v1/whatif" + (draft.force ? "?force=true" : ""), asPolicy(text)).then(
      (answer) => setWhatif({ text, answer }), (e) => setWhatif({ text, error: e.message }));
  };
  const put = async () => {
    const was = draft.base;
    try {
      const answer = await api.json("/v1/plan?message=" + encodeURIComponent(draft.message) + (draft.force ? "&force=true" : ""),
        { ...asPolicy(draft.text), method: "PUT", headers: { "Content-Type": "application/yaml", "If-Match": was.revision > 0 ? '"' + was.revision + '"' : "*" } });
      draft.base = { revision: answer.revision, text: draft.text };
      setDone({ revision: answer.revision, cycle: answer.cycle, was });
      Object.assign(draft, { message: "", force: false, origin: "" });
      setWhatif(null);
      set({ note: "Revision " + answer.revision + " is accepted" });
    } catch (e) {
      setDone({ error: e });
    }
    show();
  };
  const load = (text, origin, message) => {
    if (changed() && !confirm("What is in the editor is not in force and will be replaced. Go on?")) return;
    Object.assign(draft, { text, origin, message });
    setDone(null);
    setWhatif(null);
    show();
  };
  if (error && draft.text === null) return html`<p class="fault" role="alert">The policy cannot be shown: ${error.message}</p>`;
  if (draft.text === null) return html`<${Empty}>loading …</${Empty}>`;
  const dirty = changed();
  const current = check && check.text === draft.text ? check : null;
  const faults = check ? check.faults : [];
  const fine = current && current.answer && current.answer.ok;
  const stale = dirty && newest > 0 && draft.base.revision > 0 && newest !== draft.base.revision;
  return html`<div class="plan">
    <section class="card edit" aria-labelledby="h-policy"><header><h2 id="h-policy">Policy ${draft.base.revision ? html`<span class="dim">revision ${num(draft.base.revision)}${dirty ? ", changed here" : ""}</span>` : html`<span class="dim">none yet</span>`}</h2>
        ${dirty && html`<button type="button" onClick=${() => (Object.assign(draft, { text: draft.base.text, origin: "", message: "" }), setWhatif(null), setDone(null), show())}>undo all changes</button>`}
        ${!may && html`<span class="tag" title="what is typed can be checked, and asked what if, but not put in force">${s.logAlone ? "a log: for reading" : "role " + (s.who ? s.who.role : "–") + ": may not change it"}</span>`}</header>
      <${Editor} text=${draft.text} faults=${faults} change=${change} jump=${jump} says="Policy file" />
      <${Faults} check=${check} current=${current} to=${setJump} />
      ${stale && html`<p class="notice" role="alert">Revision ${num(newest)} came meanwhile; what you typed was made from revision ${num(draft.base.revision)}, and would be refused.
        <button type="button" onClick=${() => begin(true)}>Compare with revision ${num(newest)}</button> What you typed stays.</p>`}
      ${may && html`<div class="put">
        <label class="grow">Message <input value=${draft.message} maxlength="400" placeholder="what changes, and why" onInput=${(e) => (draft.message = e.target.value, show())} /></label>
        ${(draft.force || (current && current.answer && current.answer.forceable)) && html`<label class="check"><input type="checkbox" checked=${draft.force} onChange=${(e) => (draft.force = e.target.checked, show())} /> force: reclaim what it takes away</label>`}
        <button type="button" disabled=${!dirty || !fine} onClick=${ask}>what if?</button>
        <button type="button" class="main" disabled=${!dirty || !fine || draft.message.trim() === ""} onClick=${put} title=${draft.message.trim() === "" ? "a message says why" : ""}>put in force</button>
      </div>`}
      ${!may && !s.logAlone && html`<div class="put"><button type="button" disabled=${!dirty || !fine} onClick=${ask}>what if?</button></div>`}
      <${Done} done=${done} undo=${(was) => load(was.text, "revision " + was.revision, "back to revision " + was.revision)} />
    </section>
    <section class="card" aria-label="What it does">
      <div class="tabs" role="tablist" aria-label="What it does" onKeyDown=${(e) => tabKeys(e, tabs, tab, setTab)}>${tabs.map(([key, name]) => html`<button type="button" role="tab" id=${"tab-" + key} aria-controls="tab-body" aria-selected=${String(tab === key)} tabindex=${tab === key ? 0 : -1} onClick=${() => setTab(key)}>${name}</button>`)}</div>
      <div id="tab-body" role="tabpanel" aria-labelledby=${"tab-" + tab} tabindex="0">
        ${tab === "check" && html`<div class="side-by-side"><${Check} check=${check} base=${draft.base} dirty=${dirty} /><${Whatif} whatif=${whatif} text=${draft.text} alone=${s.logAlone} dirty=${dirty} /></div>
          ${dirty && html`<h3>Lines that differ from revision ${num(draft.base.revision)}</h3><${Diff} before=${draft.base.text} after=${draft.text} />`}`}
        ${tab === "windows" && html`<${Windows} check=${check} />`}
        ${tab === "revisions" && html`<${Revisions} list=${revisions} base=${draft.base} may=${may} load=${load} shown=${r.revision} />`}
      </div>
    </section>
  </div>`;
};

const tabs = [["check", "Check and what if"], ["windows", "By time window"], ["revisions", "Revisions"]];

function tabKeys(e, list, at, to) {
  const i = Math.max(0, list.findIndex(([k]) => k === at)), n = list.length;
  const next = e.key === "ArrowRight" ? (i + 1) % n : e.key === "ArrowLeft" ? (i + n - 1) % n : -1;
  if (next < 0) return;
  e.preventDefault();
  to(list[next][0]);
  setTimeout(() => document.getElementById("tab-" + list[next][0]).focus());
}

// Faults lists what is wrong, each leading to its line.
const Faults = ({ check, current, to }) => html`<div id="faults" class="faults" role="status">
  ${!current ? html`<span class="dim">checking …</span>`
  : current.faults.length === 0 ? (current.answer.ok ? html`<span class="good">✓ no faults</span>` : html`<span class="fault">It would be refused: ${current.answer.refused}</span>`)
  : html`<span class="fault">${count(current.count || current.faults.length, "fault")}</span><ol>${current.faults.slice(0, 100).map((f) => html`<li>${f.line
    ? html`<button type="button" class="link" onClick=${() => to({ line: f.line, column: f.column })}>line ${num(f.line)}${f.column ? ", column " + f.column : ""}</button>: ` : null}<bdi>${f.reason}</bdi>${f.path ? html` <code class="dim">${f.path}</code>` : null}</li>`)}</ol>`}
</div>`;

const Done = ({ done, undo }) => {
  if (!done) return null;
  if (done.error) return html`<p class="fault" role="alert">It was not put in force: ${done.error.message} What you typed is still here.</p>`;
  return html`<p class="good" role="status">Revision ${num(done.revision)} is accepted, and in force from cycle ${num(done.cycle)} on.
    ${done.was.revision > 0 && html`<button type="button" onClick=${() => undo(done.was)}>take revision ${num(done.was.revision)} back into the editor</button>`}</p>`;
};

const listed = 40; // lines of a list that are shown
const List = ({ title, list, all = (list || []).length }) => (!list || list.length === 0 ? null : html`<p><strong>${title}</strong> (${num(all)})</p><ul class="short">${list.slice(0, listed).map((x) => html`<li><bdi>${x}</bdi></li>`)}${all > listed ? html`<li class="dim">and ${num(all - listed)} more</li>` : null}</ul>`);

// changeText is a change of a policy in a line, as stint diff writes it.
const changeText = (c) => {
  switch (c.kind) {
    case "changed": return `${c.where}: ${c.key} ${c.was || "none"} → ${c.is || "none"}`;
    case "renamed": return `${c.where}: was ${c.was}`;
    default: return `${c.where} ${c.kind}${c.is ? `: ${c.is}` : ""}`;
  }
};

// Check is what differs from the policy in force, and what is suspect.
const Check = ({ check, base, dirty }) => {
  const a = check && check.answer;
  return html`<section aria-labelledby="h-check"><h3 id="h-check">Check</h3>
    ${!dirty ? html`<p class="dim">Nothing is changed: this is revision ${num(base.revision)}.</p>` : null}
    ${check && check.faults.length > 0 && html`<p class="fault">It has faults: it cannot be compared before they are gone.</p>`}
    ${a && html`<p>${count(a.consumers, "consumer")}.</p>
      <${List} title="Changes" list=${a.changes.map(changeText)} all=${a.changes_count} /><${List} title="Suspect" list=${a.warnings} />`}</section>`;
};

const differs = (p) => p && p.before !== p.after;
const pair = (p) => (p === null || p === undefined ? "–" : p.before === p.after || p.before === null ? num(p.after ?? p.before) : num(p.before) + " → " + num(p.after));
const gain = (p) => (p ? (p.after || 0) - (p.before || 0) : 0);

// Whatif is what the next cycle would be.
const Whatif = ({ whatif, text, alone, dirty }) => {
  const a = whatif && whatif.answer;
  const list = useMemo(() => (a ? a.changes.slice().sort((x, y) => gain(x.held) - gain(y.held)) : []), [a]);
  return html`<section aria-labelledby="h-whatif"><h3 id="h-whatif">What if</h3>
    ${alone && html`<p class="dim">A log alone cannot be asked: <code>stint whatif --log LOG --plan P</code> can.</p>`}
    ${!alone && !whatif && html`<p class="dim">${dirty ? "Ask what the next cycle would be under this policy: who gains, who loses, what is reclaimed. Nothing is changed by it." : "Change something, and ask what it would do."}</p>`}
    ${whatif && whatif.asking && html`<p role="status">asking …</p>`}
    ${whatif && whatif.error && html`<p class="fault" role="alert">${whatif.error}</p>`}
    ${a && html`<div role="status">${whatif.text !== text && html`<p class="dim">That was before the last changes in the editor.</p>`}
      <dl class="figures"><div><dt>held</dt><dd>${pair({ before: a.before.units_held, after: a.after.units_held })}</dd></div><div><dt>short</dt><dd>${pair({ before: a.before.units_short, after: a.after.units_short })}</dd></div>
        <div><dt>put under reclaim</dt><dd>${pair({ before: a.before.units_reclaimed, after: a.after.units_reclaimed })}</dd></div>
        ${a.settled && html`<div><dt>held in the end</dt><dd>${pair({ before: a.settled[0].units_held, after: a.settled[1].units_held })}</dd></div>`}</dl></div>
      ${list.length === 0 ? html`<p>Nobody gains or loses anything.</p>` : html`<div class="scroll" tabindex="0" role="region" aria-label="Who gains and who loses"><table><thead><tr><th>consumer</th><th class="n">next cycle</th><th class="n">in the end</th><th class="n">deserved</th><th class="n">reclaimed</th></tr></thead>
        <tbody>${list.slice(0, 60).map((c) => {
          const g = gain(c.settled || c.held) || gain(c.held);
          return html`<tr><th scope="row"><${Path} path=${c.consumer} />${g !== 0 ? html` <span class=${g > 0 ? "good" : "fault"}>${g > 0 ? "gains " + num(g) : "loses " + num(-g)}</span>` : null}</th>
            <td class="n">${pair(c.held)}</td><td class="n">${pair(c.settled)}</td><td class="n">${c.quota ? pair(c.quota) : "–"}</td><td class="n">${differs(c.reclaimed) ? pair(c.reclaimed) : "–"}</td></tr>`;
        })}</tbody></table>${list.length > 60 ? html`<p class="dim">and ${num(list.length - 60)} more</p>` : null}</div>`}
      ${a.reclaims.length > 0 && html`<h4>Reclaimed at once</h4><ul class="short">${a.reclaims.slice(0, 30).map((t) => html`<li>${count(t.units, "unit")} of <${Path} path=${t.consumer} />${t.for ? html` for <${Path} path=${t.for} />` : null}: ${t.reason.replaceAll("_", " ")}, by <${When} ms=${Date.parse(t.latest)} from=${Date.parse(a.now)} /></li>`)}</ul>`}
      <p class="dim">${num(a.same)} others are as before.</p>`}
  </section>`;
};

// Windows is the policy as tables: what each consumer has set in each window.
const Windows = ({ check }) => {
  const plans = check && check.answer && check.answer.windows;
  const [at, setAt] = useState({ plan: "", window: 0 });
  if (!plans) return html`<${Empty}>${check && check.faults.length > 0 ? "The policy has faults; the table shows it when they are gone." : "loading …"}</${Empty}>`;
  if (plans.length === 0) return html`<${Empty}>The policy has no plan.</${Empty}>`;
  const p = plans.find((x) => x.plan === at.plan) || plans[0];
  const w = Math.min(at.window, p.windows.length - 1);
  const others = (row, k) => p.windows.length > 1 && row.values.some((v) => v[k] !== row.values[w][k]);
  const columns = { gridTemplateColumns: "minmax(160px, 2fr) repeat(" + p.keys.length + ", minmax(80px, 1fr))" };
  return html`<div class="windows"><p>${plans.length > 1 && html`<label>plan <select onChange=${(e) => setAt({ plan: e.target.value, window: 0 })}>${plans.map((x) => html`<option value=${x.plan} selected=${x === p}>${x.plan}</option>`)}</select></label> `}
      ${p.windows.length > 1 ? html`<span role="group" aria-label="Time window">${p.windows.map((x, i) => html`<button type="button" aria-pressed=${String(i === w)} onClick=${() => setAt({ plan: p.plan, window: i })}><bdi>${x.name}</bdi> <span class="dim">${x.when}</span></button> `)}</span> <span class="dim">What is another in another window is <span class="other">marked</span>.</span>`
      : html`<span class="dim">one window: all day</span>`}</p>
    <div class="scroll" tabindex="0" role="region" aria-label=${"Settings of plan " + p.plan}><div role="table" aria-label=${"Plan " + p.plan + ", window " + (p.windows[w].name || "all day")} aria-rowcount=${p.consumers.length + 1} class="settings">
      <div role="rowgroup"><div role="row" class="srow head" style=${columns}><span role="columnheader">consumer</span>${p.keys.map((k) => html`<span role="columnheader">${k}</span>`)}</div></div>
      <${Rows} count=${p.consumers.length} height=${28} render=${(i, place) => {
        const row = p.consumers[i];
        return html`<div role="row" class="srow" key=${row.path} style=${{ ...place, ...columns }} aria-rowindex=${i + 2}><span role="rowheader"><${Path} path=${row.path} /></span>
          ${row.values[w].map((v, k) => html`<span role="cell" class=${others(row, k) ? "other" : ""} title=${others(row, k) ? p.windows.map((x, j) => x.name + ": " + (row.values[j][k] || "–")).join("\n") : v}>${v || html`<span class="dim">–</span>`}</span>`)}</div>`;
      }} /></div></div></div>`;
};

// Revisions lists the policies that were, one of them beside what is in force.
const Revisions = ({ list, base, may, load, shown }) => {
  const [text, setText] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    setText(null);
    setError(null);
    if (!shown) return;
    api.call("/v1/plan/revisions/" + encodeURIComponent(shown)).then(async (a) => setText(await a.text()), setError);
  }, [shown]);
  if (!list) return html`<${Empty}>loading …</${Empty}>`;
  if (list.length === 0) return html`<${Empty}>There is no revision yet.</${Empty}>`;
  const pick = (r) => (e) => (e.preventDefault(), go({ revision: String(r.revision) }));
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Revisions"><table><thead><tr><th class="n">revision</th><th>from cycle</th><th>when</th><th>by</th><th>message</th></tr></thead>
    <tbody>${list.slice(0, 200).map((r) => html`<tr class=${String(r.revision) === shown ? "chosen" : ""}><td class="n"><a href="#" onClick=${pick(r)} aria-label=${"Revision " + r.revision}>${num(r.revision)}</a>${r.in_force ? html` <span class="tag">in force</span>` : null}</td><td>${num(r.cycle)}</td>
      <td>${r.now ? html`<${When} ms=${Date.parse(r.now)} />` : "–"}</td><td><bdi>${r.author || "–"}</bdi></td><td><bdi>${r.message || "–"}</bdi></td></tr>`)}</tbody></table></div>
    ${error && html`<p class="fault" role="alert">${error.message}</p>`}
    ${shown && text !== null && html`<h3>Revision ${shown} ${text === base.text ? "is the newest" : "and what came of it: lines that differ from the newest"}</h3>
      ${may && text !== base.text && html`<p><button type="button" onClick=${() => load(text, "revision " + shown, "back to revision " + shown)}>restore: take revision ${shown} into the editor</button></p>`}
      ${text === base.text ? null : html`<${Diff} before=${text} after=${base.text} />`}`}`;
};

let library = null;

// differ loads the library that compares lines when it is first needed.
function differ() {
  library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "/console/diff-8.0.4.js";
    script.onload = () => done(globalThis.Diff);
    script.onerror = () => failed(new Error("the file could not be loaded"));
    document.head.append(script);
  });
  return library;
}

const around = 2; // lines that are the same, before and behind one that differs
const linesMax = 400;

// Diff shows the lines in which two texts differ.
const Diff = ({ before, after }) => {
  const [hunks, setHunks] = useState(null);
  useEffect(() => {
    let stopped = false;
    const wait = setTimeout(async () => {
      try {
        const lib = await differ();
        const made = lib.structuredPatch("", "", before, after, "", "", { context: around, timeout: 2000 });
        if (!stopped) setHunks(made ? made.hunks : "more differs than can be shown here");
      } catch (e) {
        if (!stopped) setHunks("the differences cannot be shown: " + e.message);
      }
    }, 200);
    return () => {
      stopped = true;
      clearTimeout(wait);
    };
  }, [before, after]);
  if (hunks === null) return html`<p class="dim">comparing …</p>`;
  if (typeof hunks === "string") return html`<p class="dim">${hunks}</p>`;
  if (hunks.length === 0) return html`<p class="dim">No line differs.</p>`;
  let lines = 0;
  return html`<div class="scroll diff" tabindex="0" role="region" aria-label="Lines that differ">${hunks.map((h) => {
    let [o, n] = [h.oldStart, h.newStart];
    return lines > linesMax ? null : html`<pre>${h.lines.map((l) => {
      lines++;
      const sign = l[0];
      const at = sign === "-" ? o++ : sign === "+" ? n++ : (o++, n++);
      return html`<div class=${sign === "-" ? "gone" : sign === "+" ? "come" : "same"}><span class="at">${at}</span><span class="sign">${sign}</span><bdi>${l.slice(1)}</bdi></div>`;
    })}</pre>`;
  })}${lines > linesMax ? html`<p class="dim">and more</p>` : null}</div>`;
};
