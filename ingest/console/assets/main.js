// The page: its head, the view that the URL names, the explanation beside it, and what must be said about the connection.

import { html, render, useEffect, useState, useRef, useErrorBoundary } from "./htm-preact-3.1.1.js";
import * as api from "./api.js";
import { useStore, route, link, go, views, begin, forget, set, setTheme, state } from "./store.js";
import { When, Empty } from "./parts.js";
import { num, stamp } from "./text.js";
import { Now } from "./now.js";
import { Panel } from "./why.js";

const names = { now: "Now", time: "Time", plan: "Plan", loans: "Loans", hosts: "Hosts", actors: "Actors" };

// loaded are the views that are loaded when they are first looked at.
const loaded = new Map([["now", Now]]);
const parts = { time: ["./time.js", "Time"], plan: ["./plan.js", "Plan"], loans: ["./loans.js", "Loans"], hosts: ["./hosts.js", "Hosts"], actors: ["./actors.js", "Actors"] };

// curves loads what draws curves, which is a script of its own with a sheet of its own.
const curves = () => Promise.all([
  added("link", { rel: "stylesheet", href: "/console/uplot-1.6.32.css" }), added("script", { src: "/console/uplot-1.6.32.js" }),
]);

// added puts an element into the page's head; it is done when that is loaded.
const added = (name, properties) => new Promise((done, failed) => {
  const element = Object.assign(document.createElement(name), properties, { onload: done, onerror: failed });
  document.head.append(element);
});

function useView(view) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (loaded.has(view)) return;
    const [file, name] = parts[view];
    Promise.all([import(file), view === "time" ? curves() : null]).then(([m]) => {
      loaded.set(view, m[name]);
      tick((n) => n + 1);
    }, () => set({ link: false }));
  }, [view, state.link]);
  return loaded.get(view);
}

const App = () => {
  const s = useStore();
  const r = route();
  const [broken, mend] = useErrorBoundary();
  const View = useView(r.view);
  useEffect(() => {
    document.title = names[r.view] + (s.data ? " – cycle " + num(s.data.cycle) : "") + " – stint";
  });
  const plans = s.data ? [...s.data.plans.values()] : [];
  const plan = plans.find((p) => p.name === r.plan) || plans[0];
  return html`
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main").focus(); }}>to the content</a>
    <${Head} plans=${plans} plan=${plan} />
    <${Notices} />
    <div class=${"body" + (r.why ? " with-panel" : "")}>
      <main id="main" tabindex="-1">
        ${broken
          ? html`<p class="fault" role="alert">This view cannot be shown: ${String(broken.message || broken)} <button type="button" onClick=${mend}>try again</button></p>`
          : !View ? html`<${Empty}>loading …</${Empty}>`
          : r.view === "plan" || r.view === "actors" ? html`<${View} />`
          : s.data && plan ? html`<${View} data=${s.data} plan=${plan} />`
          : s.data ? html`<${Empty}>There is no consumer in any plan. The policy decides that: see <a href=${link({ view: "plan" })}>Plan</a>.</${Empty}>`
          : html`<${Waiting} />`}
      </main>
      <${Panel} />
    </div>
    <${SignIn} />`;
};

// Waiting says why no cycle is shown.
const Waiting = () => {
  const s = useStore();
  if (s.error) return null; // a notice tells
  if (s.empty && s.logAlone) return html`<${Empty}>The log is empty: no cycle was written to it yet. This page shows the first one as soon as it is there.</${Empty}>`;
  if (s.empty) return html`<${Empty}>No cycle has run yet. Put a policy in force (see <a href=${link({ view: "plan" })}>Plan</a>), push hosts and demand; this page shows the first cycle as soon as it is there.</${Empty}>`;
  return html`<div class="waiting" role="status">loading …</div>`;
};

// elsewhere is a place without what is of one division alone.
const elsewhere = { plan: null, cycle: null, focus: null, why: null, figure: null, host: null, revision: null };

const Head = ({ plans, plan }) => {
  const s = useStore();
  const r = route();
  const live = r.cycle === null;
  return html`<header class="top">
    <a class="brand" href=${link({ view: "now", focus: null, why: null, figure: null })}>stint</a>
    <nav aria-label="Views"><ul>${views.filter((v) => v !== "actors" || !s.logAlone).map((v) => html`<li><a href=${link({ view: v })} aria-current=${r.view === v ? "page" : undefined}>${names[v]}</a></li>`)}</ul></nav>
    <span class="spread"></span>
    ${s.divisions.length > 1 && html`<label class="pick">division <select onChange=${(e) => go({ ...elsewhere, division: e.target.value })}>
      ${s.divisions.map((d) => html`<option value=${d} selected=${d === s.division}>${d}</option>`)}</select></label>`}
    ${plans.length > 1 && html`<label class="pick">plan <select onChange=${(e) => go({ plan: e.target.value, focus: null })}>
      ${plans.map((p) => html`<option value=${p.name} selected=${p === plan}>${p.name}</option>`)}</select></label>`}
    ${s.data && html`<span class=${"cycle" + (live ? " live" : "")} title=${stamp(s.data.now)}>cycle ${num(s.data.cycle)}${live ? "" : html` <a href=${link({ cycle: null })}>to the newest</a>`}</span>`}
    <label class="pick colours"><span class="unseen">colours</span><select value=${s.theme} onChange=${(e) => setTheme(e.target.value)}>
      <option value="auto">colours: system</option><option value="light">light</option><option value="dark">dark</option></select></label>
    ${s.who && html`<span class="who" title=${"role " + s.who.role}><bdi>${s.who.name}</bdi> <span class="tag">${s.logAlone ? "a log" : s.who.role}</span></span>`}
    ${api.signedIn() && html`<button type="button" onClick=${() => { api.signIn(""); forget(); set({ who: null, last: null }); begin(); }}>sign out</button>`}
  </header>`;
};

// Notices are what must be known about what is shown.
const Notices = () => {
  const s = useStore();
  const r = route();
  const list = [];
  if (!s.link && s.asked === null) {
    list.push(html`<p class="notice bad" role="alert">No connection to the service${s.why && s.why.status ? ": " + s.why.message : ""}. It is tried again; what is shown is
      ${s.data ? " cycle " + num(s.data.cycle) : " nothing yet"}. Nothing that you typed is lost.</p>`);
  }
  if (s.error && (!s.data || s.data.cycle !== s.error.cycle)) {
    const p = s.error.problem;
    const gone = r.cycle !== null && (p.kind === "compacted" || p.status === 404);
    list.push(html`<p class="notice" role="alert">Cycle ${num(s.error.cycle)} cannot be shown: ${p.message}. ${gone ? html`<a href=${link({ cycle: null })}>Show the newest cycle</a>` : "It is tried again."}
      ${s.data ? " What is shown is cycle " + num(s.data.cycle) + "." : ""}</p>`);
  } else if (r.cycle !== null && s.data && s.last && s.last.cycle > s.data.cycle) {
    list.push(html`<p class="notice" role="status">This is cycle ${num(s.data.cycle)}, of <${When} ms=${s.data.now} />; the newest one is ${num(s.last.cycle)}. <a href=${link({ cycle: null })}>Show the newest cycle</a></p>`);
  }
  return list;
};

// SignIn asks for a token, before everything else, and leaves what is behind it as it is.
const SignIn = () => {
  const s = useStore();
  const [text, setText] = useState("");
  const box = useRef(null);
  useEffect(() => {
    const d = box.current;
    if (!d) return;
    if (s.asked !== null && !d.open) d.showModal();
    if (s.asked === null && d.open) d.close();
  }, [s.asked]);
  return html`<dialog class="sign-in" ref=${box} aria-labelledby="h-sign" onCancel=${(e) => e.preventDefault()}>
    <form method="dialog" onSubmit=${(e) => { e.preventDefault(); api.signIn(text); setText(""); begin(); }}>
      <h2 id="h-sign">Sign in</h2>
      <p role="status">${s.asked}</p>
      <label>Token <input type="password" autocomplete="off" spellcheck="false" value=${text} onInput=${(e) => setText(e.target.value)} required /></label>
      <p class="dim">It is kept in the memory of this page alone, and sent to this service alone. Reload the page, and it is forgotten.</p>
      <button class="main" type="submit">sign in</button>
    </form>
  </dialog>`;
};

const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
begin();
