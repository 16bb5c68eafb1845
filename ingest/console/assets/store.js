// What the page knows: where it is (in the URL), who asks, the newest cycle, and the tables of the cycle that is shown.

import { useEffect, useReducer } from "./htm-preact-3.1.1.js";
import * as api from "./api.js";
import { build } from "./model.js";

export const state = {
  who: null, // role and name, as the last answer told
  asked: null, // why a token is asked for; null: none is
  link: true, // there is a connection to the service
  logAlone: false,
  divisions: [], // of the plans, those that this process decides; none: all plans are decided together
  division: "", // that is shown
  last: null, // the newest cycle, as an event tells it; null: none known
  empty: false, // no cycle has run yet
  data: null, // of the cycle that is shown
  error: null, // why that cannot be shown
  note: "", // what screen readers are told
  explained: null, // the explanation that is shown
  theme: "auto",
  version: 0,
};

const listeners = new Set();

// set changes what is known, and has the page shown anew.
export function set(patch) {
  Object.assign(state, patch);
  state.version++;
  for (const tick of listeners) tick();
}

// useStore has a component be shown anew when something changes.
export function useStore() {
  const [, tick] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    const seen = state.version;
    listeners.add(tick);
    if (seen !== state.version) tick();
    return () => listeners.delete(tick);
  }, []);
  return state;
}

// Views are those of the page, by their word in the URL.
export const views = ["now", "time", "plan", "loans", "hosts", "actors"];

let read = { hash: null };

// route is what the part of the URL behind # says: a view, and parameters.
export function route() {
  if (read.hash !== location.hash) read = { hash: location.hash, at: parse() };
  return read.at;
}

function parse() {
  const [view, query] = location.hash.replace(/^#\/?/, "").split("?");
  const p = new URLSearchParams(query || "");
  const cycle = Number(p.get("cycle"));
  return {
    view: views.includes(view) ? view : "now",
    plan: p.get("plan"), cycle: Number.isInteger(cycle) && cycle > 0 ? cycle : null, focus: p.get("focus"),
    why: p.get("why"), figure: p.get("figure"), host: p.get("host"), revision: p.get("revision"),
    division: p.get("division"),
  };
}

const parameters = ["plan", "cycle", "focus", "why", "figure", "host", "revision", "division"];

// link is the URL of a place: that of now, with some things changed.
export function link(change) {
  const r = { ...route(), ...change };
  let query = "";
  for (const key of parameters) if (r[key]) query += (query ? "&" : "?") + key + "=" + encodeURIComponent(r[key]);
  return "#/" + r.view + query;
}

// go changes the place; with `instead` the place before is not kept for the button Back.
export function go(change, instead = false) {
  const to = link(change);
  if (to === location.hash) return;
  if (instead) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  moved();
}

function moved() {
  if (state.divisions.includes(route().division) && route().division !== state.division) {
    set({ last: null });
    forget();
    begin();
    return;
  }
  set({});
  shown();
  explain();
}

// versions are what published cycles are called by in URLs, so that answers may be kept for ever.
const versions = new Map();

async function versionOf(n, signal) {
  if (!versions.has(n)) {
    const t = await api.table("/v1/cycles/" + n + "/cycles", { signal });
    versions.set(n, t.etag.replace(/^W\/"|"$/g, ""));
  }
  return "version=" + encodeURIComponent(versions.get(n));
}

// cached are the last few cycles that were shown.
const cached = new Map();
const cachedMax = 12;

// load loads a cycle. What consumers want and hold comes first, and is shown (early); what of it is held as what takes
// longer where much is held.
async function load(n, signal, early) {
  if (cached.has(n)) return cached.get(n);
  const v = await versionOf(n, signal);
  const get = (path) => api.table(path + (path.includes("?") ? "&" : "?") + v, { signal });
  const later = Promise.all([get("/v1/holdings?by=consumer&cycle=" + n), get("/v1/hosts?by=group&cycle=" + n)]);
  later.catch(() => {}); // it is waited for below
  const [head, consumers, shares, shortfalls] = await Promise.all([
    get("/v1/cycles/" + n + "/cycles"), get("/v1/cycles/" + n + "/consumers"), get("/v1/cycles/" + n + "/shares"), get("/v1/cycles/" + n + "/shortfalls"),
  ]);
  const made = (holdings, hosts) => ({ cycle: n, now: head.get("now", 0), head, plans: build(consumers, holdings, shares, hosts), holdings, shortfalls, hosts });
  const wait = setTimeout(() => early(made(null, null)), 100);
  const data = made(...(await later.finally(() => clearTimeout(wait))));
  cached.set(n, data);
  if (cached.size > cachedMax) cached.delete(cached.keys().next().value);
  return data;
}

// tableOf asks for another table of a published cycle.
export async function tableOf(n, path, signal) {
  const v = await versionOf(n, signal);
  return api.table(path + (path.includes("?") ? "&" : "?") + v, { signal });
}

let under = null; // the load under way

// shown has the cycle that the URL names be loaded, or the newest one.
async function shown() {
  const n = route().cycle || (state.last && state.last.cycle);
  if (!n || (state.data && state.data.cycle === n && state.data.holdings)) return;
  if (under) {
    if (under.cycle === n) return;
    if (route().cycle === null && under.live) return; // the newest one follows when that is here
    under.stop.abort();
  }
  const mine = { cycle: n, stop: new AbortController(), live: route().cycle === null };
  under = mine;
  try {
    const data = await load(n, mine.stop.signal, (some) => under === mine && set({ data: some, error: null }));
    if (under === mine) set({ data, error: null });
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof api.Problem)) throw error;
    if (under === mine && error.status !== 401) {
      if (error.status === 404) versions.delete(n);
      set({ error: { cycle: n, problem: error } });
      // The newest cycle is there: what was not found has other files meanwhile, as a log that is compacted has.
      if (error.status === 503 || error.status === 429 || error.status === 0 || route().cycle === null) setTimeout(shown, 1500);
    }
  } finally {
    if (under === mine) under = null;
  }
  if (!route().cycle && state.last && state.last.cycle !== n) shown();
}

let asking = null;

// explain has the explanation that the URL asks for be loaded: of a consumer in the cycle that is shown.
async function explain() {
  const r = route();
  const n = r.cycle || (state.data && state.data.cycle);
  if (!r.why || !n) {
    if (state.explained && !r.why) set({ explained: null });
    return;
  }
  const key = n + " " + r.why;
  if (state.explained && state.explained.key === key) return;
  if (asking) asking.abort();
  asking = new AbortController();
  set({ explained: { key, path: r.why, cycle: n, answer: state.explained && state.explained.path === r.why ? state.explained.answer : null } });
  try {
    const answer = await api.json("/v1/explain" + inPath(r.why) + "?cycle=" + n, { signal: asking.signal });
    set({ explained: { key, path: r.why, cycle: n, answer } });
  } catch (error) {
    if (error.name !== "AbortError") set({ explained: { key, path: r.why, cycle: n, error } });
  }
}

const inPath = (path) => path.split("/").map(encodeURIComponent).join("/");

// blockers are the consumers that stand in the way of the one explained.
export function blockers() {
  const of = new Set();
  const e = state.explained;
  if (!e || !e.answer) return of;
  for (const part of e.answer.plans) {
    for (const s of part.shortfalls) if (s.blocker && s.blocker !== "/") of.add(s.blocker);
    for (const c of part.coming) of.add(c.consumer);
  }
  of.delete(e.path);
  return of;
}

// chosen is what the service says of itself; where its plans are divided, what the division says that the URL names, or
// the first.
async function chosen(signal) {
  api.divide("");
  const ready = await api.json("/readyz", { signal });
  const divisions = Object.keys(ready.divisions || {});
  const division = divisions.includes(route().division) ? route().division : divisions[0] || "";
  api.divide(division);
  set({ divisions, division });
  return division ? ready.divisions[division] : ready;
}

let following = null;

// begin finds out who asks and what is shown, and follows the cycles from there on. It begins anew when there is another token.
export async function begin() {
  if (following) following.abort();
  following = new AbortController();
  const signal = following.signal;
  try {
    const ready = await chosen(signal);
    set({ logAlone: ready.log_alone === true, empty: ready.cycle === 0 });
    await api.call("/v1/cycles?limit=1", { signal });
    set({ asked: null, link: true });
  } catch (error) {
    if (signal.aborted || error.status === 401) return;
    set({ link: false, why: error });
    setTimeout(() => !signal.aborted && begin(), 1500);
    return;
  }
  shown();
  explain();
  let instance = null;
  api.events(signal, state.last ? state.last.cycle : 0, (event) => {
    const was = state.last;
    if (was && event.cycle <= was.cycle && event.version !== was.version) forget(); // another log, or an older state
    versions.set(event.cycle, event.version);
    set({ last: event, empty: false });
    if (!route().cycle) {
      shown().then(explain);
    }
  }, async (up, error) => {
    if (!up) {
      set({ link: false, why: error });
      return;
    }
    set({ link: true });
    const ready = await api.json("/readyz").catch(() => null);
    if (!ready) return;
    if (instance !== null && ready.instance !== instance && state.last && ready.cycle < state.last.cycle) forget();
    instance = ready.instance;
    set({ empty: ready.cycle === 0, logAlone: ready.log_alone === true });
    if (state.error) shown();
  });
}

// forget drops what is known of cycles: of another log, or of who signs out.
export function forget() {
  versions.clear();
  cached.clear();
  set({ data: null, explained: null });
}

api.listen(
  (who) => {
    if (!state.who || state.who.role !== who.role || state.who.name !== who.name) set({ who });
  },
  (had) => {
    if (following) following.abort();
    set({ asked: had ? "The token is not known any more: it ended, or was taken back. Nothing of what you typed is lost." : "This service asks for a token." });
  },
);

// mayChange tells whether who asks may put a policy in force.
export const mayChange = () => !state.logAlone && !!state.who && (state.who.role === "admin" || state.who.role === "consumer_admin");

// setTheme has the page be dark, light, or as the system is.
export function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  set({ theme });
}

addEventListener("popstate", moved);
addEventListener("hashchange", moved);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => set({}));
