// Actors: who puts the decisions in force, whether what runs is what is granted, and how long a decision takes.

import { html, useEffect, useState } from "./htm-preact-3.1.1.js";
import * as api from "./api.js";
import { Empty } from "./parts.js";
import { useStore } from "./store.js";
import { num, count, relative, stamp } from "./text.js";

const again = 5000; // ms; an actor reports as often
const lateAfter = 30000; // ms without a report, after which an actor is taken for dead
const slow = 2; // seconds from a decision to its effect

// Ago is an instant as seen from another.
const Ago = ({ ms, from }) => ms === null ? "–" : html`<time class="nowrap" datetime=${new Date(ms).toISOString()} title=${stamp(ms)}>${relative(Math.min(ms, from), from)}</time>`;

const seconds = (n) => (n === null ? "–" : n.toFixed(n < 10 ? 2 : 0) + " s");

export const Actors = () => {
  const s = useStore();
  const [rows, setRows] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    const stop = new AbortController();
    const load = () => api.table("/v1/actors", { signal: stop.signal }).then(
      (t) => (setRows([...t.records()]), setError(null)), (e) => e.name !== "AbortError" && setError(e));
    load();
    const timer = setInterval(load, again);
    return () => (clearInterval(timer), stop.abort());
  }, [s.who, s.division]);
  if (error && !rows) return html`<p class="fault" role="alert">The actors cannot be shown: ${error.message}</p>`;
  if (!rows) return html`<${Empty}>loading …</${Empty}>`;
  const now = Date.now();
  const list = rows.map((of) => ({ of, fault: fault(of, now) }));
  return html`<section class="card actors" aria-labelledby="h-actors"><header><h2 id="h-actors">Actors</h2></header>
    ${error && html`<p class="fault" role="alert">${error.message}; what is shown is older.</p>`}
    ${list.length === 0 ? html`<${Empty}>No source holds units, and no actor has reported. An actor (stint act) starts and stops in a cluster what is decided here.</${Empty}>`
    : html`<p>${summary(list)}</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Actors"><table><thead><tr><th>source</th><th>state</th><th class="n">granted</th><th class="n">running</th>
      <th class="n">not running</th><th class="n">not granted</th><th class="n">lag p50</th><th class="n">lag p99</th><th class="n">late</th><th>seen</th><th>cluster listed</th></tr></thead>
      <tbody>${list.map((a) => html`<${Row} ...${a} now=${now} />`)}</tbody></table></div>
    <p class="dim">Granted: units that the service holds for the source. Not running: granted and not in the cluster. Not granted: in the cluster and not granted.
      Lag: from a decision to its effect, of the starts and stops of the last hour, 1,000 at most. Late: units that ran past their deadline since the actor began. Seen: the actor's last report since the service began.</p>`}
  </section>`;
};

// fault says what is wrong with an actor, "" for nothing.
function fault(of, now) {
  if (of("seen") === null) return "no report";
  if (now - of("seen") > lateAfter) return "silent";
  if (now - of("listed") > lateAfter) return "no list";
  if (of("late") > 0) return "late";
  if (of("drift") > 0) return "drift";
  return of("lag_p99") > slow ? "slow" : "";
}

const Row = ({ of, fault: is, now }) => html`<tr><th scope="row"><bdi>${of("source")}</bdi></th>
  <td><span class=${"tag" + (is === "" || is === "no report" ? "" : " bad")}>${is || "in force"}</span></td>
  ${["granted", "running", "held_not_running", "running_not_held"].map((name) => html`<td class="n">${num(of(name))}</td>`)}
  <td class="n">${seconds(of("lag_p50"))}</td><td class="n" title=${of("effects") === null ? "" : "of " + count(of("effects"), "effect")}>${seconds(of("lag_p99"))}</td>
  <td class="n">${num(of("late"))}</td>
  <td class="nowrap">${of("seen") === null ? "never" : html`<${Ago} ms=${of("seen")} from=${now} />`}</td><td><${Ago} ms=${of("listed")} from=${now} /></td></tr>`;

// summary tells in a sentence how things stand.
function summary(list) {
  const known = list.filter((a) => a.of("seen") !== null);
  const sum = (name) => known.reduce((n, a) => n + Number(a.of(name)), 0);
  if (known.length === 0) return "No actor has reported since the service began: who starts and stops the work of " + count(list.length, "source") + " is not known here.";
  const drift = sum("drift");
  return count(known.length, "actor") + ": " + (drift === 0 ? "what runs is what is granted." : count(drift, "unit") + " in drift.");
}
