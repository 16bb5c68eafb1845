// Hosts: a map of all hosts of a plan by use and state, one square each, down to one host and what runs on it.

import { html, useEffect, useMemo, useRef, useState } from "./htm-preact-3.1.1.js";
import { Empty, Path, Why, When, color } from "./parts.js";
import { go, route, tableOf, useStore } from "./store.js";
import { kinds } from "./model.js";
import { num, count, percent } from "./text.js";

const steps = 5; // of use
const states = ["ok", "closed", "draining", "unavail"];

// Hosts is the view of a plan's hosts in a cycle.
export const Hosts = ({ data, plan }) => {
  const s = useStore();
  const r = route();
  const [table, setTable] = useState(null);
  const [error, setError] = useState(null);
  const [dimension, setDimension] = useState("");
  const [find, setFind] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    tableOf(data.cycle, "/v1/hosts?cycle=" + data.cycle, stop.signal).then((t) => (setTable({ cycle: data.cycle, t }), setError(null)), (e) => e.name !== "AbortError" && setError(e));
    return () => stop.abort();
  }, [data.cycle]);
  const dim = plan.dims.includes(dimension) ? dimension : "";
  const hosts = useMemo(() => table && read(table.t, plan, dim), [table, plan, dim]);
  const selected = hosts && r.host ? hosts.row.get(r.host) ?? -1 : -1;
  if (error && !table) return html`<p class="fault" role="alert">The hosts cannot be shown: ${error.message}</p>`;
  if (!hosts) return html`<${Empty}>loading …</${Empty}>`;
  const search = (e) => {
    e.preventDefault();
    const word = find.trim().toLowerCase();
    const i = hosts.names.findIndex((n) => n.toLowerCase() === word);
    const at = i >= 0 ? i : word ? hosts.names.findIndex((n) => n.toLowerCase().includes(word)) : -1;
    if (at >= 0) go({ host: hosts.names[at] });
    else setError({ message: "No host of plan " + plan.name + " is called " + find });
  };
  return html`<div class="hosts">
    <section class="card" aria-labelledby="h-hosts"><header><h2 id="h-hosts">${count(hosts.names.length, "host")} of plan ${plan.name}</h2>
      <form role="search" onSubmit=${search}><input type="search" placeholder="find a host" aria-label="Find a host" value=${find} onInput=${(e) => setFind(e.target.value)} /> <button>find</button></form>
      <label>use of <select onChange=${(e) => setDimension(e.target.value)}><option value="" selected=${dim === ""}>the fullest dimension</option>${plan.dims.map((d) => html`<option value=${d} selected=${d === dim}>${d}</option>`)}</select></label></header>
      ${error && html`<p class="fault" role="alert">${error.message}</p>`}
      <${Summary} hosts=${hosts} />
      <${Map_} hosts=${hosts} selected=${selected} theme=${s.theme} />
      <p class="dim">A square is a host, in the plan's order. Drag or use the arrows to move, wheel or + and − to zoom; click, or Enter, for one host.
        ${!s.logAlone && r.cycle === null ? "" : " After an earlier cycle, and of a log, hosts are as the last keyframe up to it has them."}</p>
    </section>
    <${One} data=${data} plan=${plan} hosts=${hosts} selected=${selected} name=${r.host} />
  </div>`;
};

// read takes the hosts of a plan: names, states, and use in steps from 0 (idle) to 4 (full).
function read(t, plan, dim) {
  const of = t.column("plan");
  const rows = [];
  for (let i = 0; i < t.rows; i++) if (of[i] === plan.name) rows.push(i);
  const dims = dim ? [dim] : plan.dims;
  const columns = dims.map((d) => [t.column("capacity_" + d), t.column("used_" + d)]).filter(([a]) => a);
  const [host, state] = [t.column("host"), t.column("state")];
  const names = [], use = new Float32Array(rows.length), step = new Uint8Array(rows.length), is = new Uint8Array(rows.length), row = new Map();
  rows.forEach((from, i) => {
    names.push(host[from]);
    row.set(host[from], i);
    let most = 0;
    for (const [capacity, used] of columns) if (capacity[from] > 0) most = Math.max(most, used[from] / capacity[from]);
    use[i] = most;
    step[i] = most === 0 ? 0 : most >= 0.995 ? 4 : most < 0.34 ? 1 : most < 0.67 ? 2 : 3;
    is[i] = Math.max(0, states.indexOf(state[from]));
  });
  return { t, rows, names, use, step, is, row, dims: plan.dims };
}

const stepNames = ["idle", "to a third", "to two thirds", "above", "full"];

// Summary counts hosts by use and state, and is the legend of the map.
const Summary = ({ hosts }) => {
  const uses = new Array(steps).fill(0), is = new Array(states.length).fill(0);
  hosts.step.forEach((n) => uses[n]++);
  hosts.is.forEach((n) => is[n]++);
  return html`<ul class="legend" aria-label="Hosts by use and state">${stepNames.map((n, i) => html`<li><span class=${"swatch h-" + i}></span>${n} <b>${num(uses[i])}</b></li>`)}
    ${states.map((n, i) => i > 0 && html`<li><span class=${"swatch state-" + n}></span>${n} <b>${num(is[i])}</b></li>`)}</ul>`;
};

// Map_ draws the hosts. A bitmap has a pixel for each; near by those that are seen are drawn one by one.
const Map_ = ({ hosts, selected, theme }) => {
  const canvas = useRef(null);
  const view = useRef({ x: 0, y: 0, size: 0 });
  const [at, setAt] = useState(selected >= 0 ? selected : 0);
  const [told, tell] = useState("");
  const n = hosts.names.length;
  const side = useRef({ columns: 1 });
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const paint = useMemo(() => colors(), [theme, dark]);

  const [[w0, h0], resize] = useState([900, 420]);
  const bitmap = useMemo(() => {
    const [w, h] = [w0, h0];
    let columns = Math.max(1, Math.min(n, Math.floor(Math.sqrt((n * w) / h))));
    while (columns < n && (h / Math.ceil(n / columns)) < w / columns - 0.01 && h / Math.ceil(n / columns) < w / (columns + 1) + 0.01) columns++;
    side.current = { columns, rows: Math.ceil(n / columns), w, h };
    const b = document.createElement("canvas");
    b.width = columns;
    b.height = side.current.rows;
    const c = b.getContext("2d");
    const image = c.createImageData(b.width, b.height);
    const words = new Uint32Array(image.data.buffer);
    for (let i = 0; i < n; i++) words[i] = hosts.is[i] === 0 ? paint.step[hosts.step[i]] : paint.state[hosts.is[i]];
    c.putImageData(image, 0, 0);
    return b;
  }, [hosts, paint, w0, h0]);

  const draw = () => {
    const box = canvas.current;
    if (!box) return;
    const scale = devicePixelRatio || 1;
    const [w, h] = [box.clientWidth, box.clientHeight];
    if (box.width !== Math.round(w * scale) || box.height !== Math.round(h * scale)) {
      box.width = Math.round(w * scale);
      box.height = Math.round(h * scale);
    }
    const c = box.getContext("2d");
    const { columns, rows } = side.current;
    const fit = Math.min(w / columns, h / rows);
    const v = view.current;
    if (v.size === 0) v.size = fit;
    v.size = Math.max(fit, Math.min(48, v.size));
    v.x = Math.max(0, Math.min(v.x, columns * v.size - w));
    v.y = Math.max(0, Math.min(v.y, rows * v.size - h));
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.fillStyle = paint.back;
    c.fillRect(0, 0, w, h);
    c.imageSmoothingEnabled = false;
    c.drawImage(bitmap, -v.x, -v.y, columns * v.size, rows * v.size);
    const [x0, x1] = [Math.floor(v.x / v.size), Math.min(columns, Math.ceil((v.x + w) / v.size))];
    const [y0, y1] = [Math.floor(v.y / v.size), Math.min(rows, Math.ceil((v.y + h) / v.size))];
    if (v.size >= 5) {
      c.fillStyle = paint.back;
      for (let x = x0; x <= x1; x++) c.fillRect(x * v.size - v.x - 0.5, 0, 1, h);
      for (let y = y0; y <= y1; y++) c.fillRect(0, y * v.size - v.y - 0.5, w, 1);
    }
    if (v.size >= 4) marks(c, v, x0, x1, y0, y1);
    const i = selected >= 0 ? selected : document.activeElement === box ? at : -1;
    for (const [k, width] of [[selected, 3], [document.activeElement === box ? at : -1, 2]]) {
      if (k < 0 || i < 0) continue;
      c.lineWidth = width;
      c.strokeStyle = k === selected ? paint.mark : paint.text;
      const s = Math.max(v.size, 7);
      c.strokeRect((k % columns) * v.size - v.x - (s - v.size) / 2, Math.floor(k / columns) * v.size - v.y - (s - v.size) / 2, s, s);
    }
  };

  // marks tell states apart without colour: a cross, a stroke, a dot.
  const marks = (c, v, x0, x1, y0, y1) => {
    const { columns } = side.current;
    c.strokeStyle = paint.text;
    c.lineWidth = Math.max(1, v.size / 12);
    c.beginPath();
    for (let y = y0; y < y1; y++) for (let x = x0; x < x1; x++) {
      const is = hosts.is[y * columns + x];
      if (!is) continue;
      const [a, b, s] = [x * v.size - v.x, y * v.size - v.y, v.size];
      c.moveTo(a + s * 0.2, b + s * 0.8);
      c.lineTo(a + s * 0.8, b + s * 0.2);
      if (is === 3) {
        c.moveTo(a + s * 0.2, b + s * 0.2);
        c.lineTo(a + s * 0.8, b + s * 0.8);
      } else if (is === 1) c.rect(a + s * 0.2, b + s * 0.2, s * 0.6, s * 0.6);
    }
    c.stroke();
  };

  useEffect(() => {
    draw();
  });
  useEffect(() => {
    const watch = new ResizeObserver(() => {
      view.current = { x: 0, y: 0, size: 0 };
      resize([canvas.current.clientWidth, canvas.current.clientHeight]);
    });
    watch.observe(canvas.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    if (selected >= 0) {
      setAt(selected);
      seen(selected);
    }
  }, [selected]);

  const frame = useRef(0);
  const later = () => {
    cancelAnimationFrame(frame.current);
    frame.current = requestAnimationFrame(draw);
  };
  const seen = (i) => {
    const v = view.current, box = canvas.current, { columns } = side.current;
    const [x, y] = [(i % columns) * v.size, Math.floor(i / columns) * v.size];
    if (x < v.x || x + v.size > v.x + box.clientWidth) v.x = x - box.clientWidth / 2;
    if (y < v.y || y + v.size > v.y + box.clientHeight) v.y = y - box.clientHeight / 2;
    later();
  };
  const zoom = (factor, x, y) => {
    const v = view.current;
    const to = Math.max(Math.min(side.current.w / side.current.columns, side.current.h / side.current.rows), Math.min(48, v.size * factor));
    v.x = ((v.x + x) / v.size) * to - x;
    v.y = ((v.y + y) / v.size) * to - y;
    v.size = to;
    later();
  };
  const hostAt = (e) => {
    const box = canvas.current.getBoundingClientRect(), v = view.current, { columns } = side.current;
    const x = Math.floor((e.clientX - box.left + v.x) / v.size), y = Math.floor((e.clientY - box.top + v.y) / v.size);
    const i = y * columns + x;
    return x >= 0 && x < columns && y >= 0 && i < n ? i : -1;
  };
  const says = (i) => hosts.names[i] + ": " + states[hosts.is[i]] + ", " + percent(hosts.use[i]) + " used";
  const drag = useRef(null);
  const down = (e) => {
    drag.current = { x: e.clientX, y: e.clientY, far: false };
    canvas.current.setPointerCapture(e.pointerId);
  };
  const move = (e) => {
    const d = drag.current;
    if (!d) {
      const i = hostAt(e);
      canvas.current.title = i < 0 ? "" : says(i);
      return;
    }
    if (Math.abs(e.clientX - d.x) + Math.abs(e.clientY - d.y) > 3 || d.far) {
      view.current.x -= e.clientX - d.x;
      view.current.y -= e.clientY - d.y;
      Object.assign(d, { x: e.clientX, y: e.clientY, far: true });
      later();
    }
  };
  const up = (e) => {
    const d = drag.current;
    drag.current = null;
    const i = hostAt(e);
    if (d && !d.far && i >= 0) go({ host: hosts.names[i] });
  };
  useEffect(() => {
    const box = canvas.current;
    const wheel = (e) => {
      e.preventDefault();
      const b = box.getBoundingClientRect();
      zoom(Math.exp(-e.deltaY / 300), e.clientX - b.left, e.clientY - b.top);
    };
    box.addEventListener("wheel", wheel, { passive: false });
    return () => box.removeEventListener("wheel", wheel);
  });
  const keys = (e) => {
    const { columns, w, h } = side.current;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[e.key];
    if (by) {
      const i = Math.max(0, Math.min(n - 1, at + by));
      setAt(i);
      seen(i);
      tell(says(i));
    } else if (e.key === "+" || e.key === "=") zoom(1.5, w / 2, h / 2);
    else if (e.key === "-") zoom(1 / 1.5, w / 2, h / 2);
    else if (e.key === "Enter" && n > 0) go({ host: hosts.names[at] });
    else return;
    e.preventDefault();
  };
  return html`<canvas class="map" ref=${canvas} tabindex="0" role="application" aria-label="Map of hosts: arrows go from host to host, plus and minus zoom, Enter chooses"
      onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => (drag.current = null)} onKeyDown=${keys}
      onFocus=${() => (n > 0 && tell(says(at)), later())} onBlur=${later}></canvas>
    <p class="unseen" role="status">${told}</p>`;
};

// colors are those of the map, as words of a bitmap.
function colors() {
  const c = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const word = (name) => {
    c.fillStyle = color(name);
    c.fillRect(0, 0, 1, 1);
    return new Uint32Array(c.getImageData(0, 0, 1, 1).data.buffer)[0];
  };
  return {
    step: ["h0", "h1", "h2", "h3", "h4"].map(word), state: [0, word("closed"), word("shared"), word("short")],
    back: color("card"), text: color("text"), mark: color("short"),
  };
}

// One is a host: what it has, and what runs on it.
const One = ({ data, plan, hosts, selected, name }) => {
  const [runs, setRuns] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    if (!name) return undefined;
    const stop = new AbortController();
    setRuns(null);
    tableOf(data.cycle, "/v1/holdings?cycle=" + data.cycle + "&host=" + encodeURIComponent(name), stop.signal).then(
      (t) => (setRuns(t), setError(null)), (e) => e.name !== "AbortError" && setError(e));
    return () => stop.abort();
  }, [name, data.cycle]);
  if (!name) return html`<section class="card" aria-label="One host"><${Empty}>Choose a host to see what it has and what runs on it.</${Empty}></section>`;
  if (selected < 0) return html`<section class="card" aria-label="One host"><h2><bdi>${name}</bdi></h2><${Empty}>It is no host of plan ${plan.name} in cycle ${num(data.cycle)}.</${Empty}></section>`;
  const from = hosts.rows[selected];
  const attributes = [...hosts.t.columns.keys()].filter((c) => c.startsWith("attribute_") && hosts.t.get(c, from) !== null);
  return html`<section class="card" aria-labelledby="h-host"><header><h2 id="h-host"><bdi>${name}</bdi></h2><span class="tag">${states[hosts.is[selected]]}</span></header>
    <table><thead><tr><th>dimension</th><th class="n">used</th><th class="n">of</th><th class="n">part</th></tr></thead><tbody>${hosts.dims.map((d) => {
      const [used, capacity] = [hosts.t.get("used_" + d, from) || 0, hosts.t.get("capacity_" + d, from) || 0];
      return html`<tr><th scope="row">${d}</th><td class="n">${num(used)}</td><td class="n">${num(capacity)}</td><td class="n">${percent(used, capacity)}</td></tr>`;
    })}</tbody></table>
    ${attributes.length > 0 && html`<p>${attributes.map((a) => html`<span class="tag">${a.slice(10)} <bdi>${hosts.t.get(a, from)}</bdi></span> `)}</p>`}
    <h3>What runs on it</h3>
    ${error && html`<p class="fault" role="alert">${error.message}</p>`}
    ${!runs ? html`<${Empty}>loading …</${Empty}>` : runs.rows === 0 ? html`<${Empty}>Nothing is held here.</${Empty}>`
    : html`<div class="scroll" tabindex="0" role="region" aria-label="Holdings"><table><thead><tr><th>consumer</th><th>allocation</th><th class="n">units</th><th>held as</th><th>of</th><th>under reclaim</th></tr></thead>
      <tbody>${Array.from({ length: Math.min(runs.rows, 200) }, (_, i) => {
        const get = (c) => runs.get(c, i);
        const kind = get("origin") === "owned" ? 0 : get("origin") === "private_pool" ? 1 : get("lender") ? 3 : 2;
        return html`<tr><td><${Why} path=${get("consumer")} plan=${plan.name} figure="held" says=${get("consumer")}><${Path} path=${get("consumer")} /></${Why}></td>
          <td><bdi>${get("allocation")}${get("sub") ? "/" + get("sub") : ""}</bdi></td><td class="n">${num(get("units"))}</td><td class="nowrap"><span class=${"swatch k-" + kinds[kind].key}></span> ${kinds[kind].name}</td>
          <td>${get("lender") ? html`<${Why} path=${get("lender")} plan=${plan.name} figure="lent" says=${get("lender")}><${Path} path=${get("lender")} /></${Why}>` : "–"}</td>
          <td>${get("reclaim") ? html`<${When} ms=${get("deadline")} from=${data.now} />` : "–"}</td></tr>`;
      })}</tbody></table>${runs.rows > 200 ? html`<p class="dim">and ${num(runs.rows - 200)} more</p>` : null}</div>`}
  </section>`;
};
