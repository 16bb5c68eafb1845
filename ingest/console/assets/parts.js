// Parts that several views are made of.

import { Component, html, useEffect, useLayoutEffect, useRef, useState } from "./htm-preact-3.1.1.js";
import { kinds } from "./model.js";
import { link, go } from "./store.js";
import { num, count, stamp, relative } from "./text.js";

// When is an instant, as date and time and as seen from another.
export const When = ({ ms, from = Date.now() }) =>
  ms === null || ms === undefined
    ? html`<span>–</span>`
    : html`<time datetime=${new Date(ms).toISOString()}>${stamp(ms)} <span class="dim">(${relative(ms, from)})</span></time>`;

// Path is the path of a consumer: its name stands out, and neither changes the direction of what is around it.
export const Path = ({ path, short = false }) => {
  const i = path.lastIndexOf("/");
  return html`<bdi class="path" title=${path}>${short ? null : html`<span class="dim">${path.slice(0, i + 1)}</span>`}${path.slice(i + 1) || "/"}</bdi>`;
};

// Why is a figure that leads to its explanation.
export const Why = ({ path, plan, figure, says, children, class: name = "", tab }) => html`
  <a class=${"why " + name} href=${link({ why: path, plan, figure })} tabindex=${tab} aria-label=${says + ": why?"} title=${says + " – click: why?"}
    onClick=${(e) => {
      if (e.ctrlKey || e.metaKey || e.shiftKey) return;
      e.preventDefault();
      go({ why: path, plan, figure });
    }}>${children}</a>`;

const part = (n, of) => (of > 0 ? Math.max(0, Math.min(100, (100 * n) / of)) : 0) + "%";

// Bar is what a consumer wants, holds, lends and deserves, on a scale that has most as its end.
export const Bar = ({ node, most, unit }) => {
  const says = [
    "wants " + num(node.demand), "holds " + num(node.held),
    ...kinds.map((k, i) => (node.kinds[i] > 0 ? num(node.kinds[i]) + " " + k.name : "")),
    node.lent > 0 ? "lends " + num(node.lent) : "", node.quota !== null ? "deserves " + num(node.quota) : "",
    node.short > 0 ? "short of " + num(node.short) : "", node.leaving > 0 ? num(node.leaving) + " under reclaim" : "",
  ].filter(Boolean).join(", ");
  let at = 0;
  return html`<div class="bar" role="img" aria-label=${says + " " + unit + "s"} title=${says}>
    ${node.demand > 0 && html`<div class="wants" style=${{ width: part(node.demand, most) }}></div>`}
    ${!node.known && node.held > 0 && html`<div class="seg k-unknown" style=${{ width: part(node.held, most) }}></div>`}
    ${kinds.map((k, i) => {
      const from = at;
      at += node.kinds[i];
      return node.kinds[i] > 0 && html`<div class=${"seg k-" + k.key} style=${{ left: part(from, most), width: part(node.kinds[i], most) }}></div>`;
    })}
    ${node.leaving > 0 && html`<div class="seg leaving" style=${{ left: part(node.held - node.leaving, most), width: part(node.leaving, most) }}></div>`}
    ${node.lent > 0 && html`<div class="lent" style=${{ left: part(node.held, most), width: part(node.lent, most) }}></div>`}
    ${node.quota !== null && html`<div class="quota" style=${{ left: part(node.quota, most) }}></div>`}
  </div>`;
};

// Legend explains the colours and marks of bars, curves and areas, once for all views.
export const Legend = () => html`
  <ul class="legend" aria-label="Legend">
    ${kinds.map((k) => html`<li title=${k.says}><span class=${"swatch k-" + k.key}></span>${k.name} <span class="dim more">${k.says}</span></li>`)}
    <li title="what is its own and held by others"><span class="swatch s-lent"></span>lent <span class="dim more">its own, held by others</span></li>
    <li title="must be given back by a deadline"><span class="swatch k-shared leaving"></span>under reclaim <span class="dim more">to be given back by a deadline</span></li>
    <li title="what it asks for"><span class="swatch s-wants"></span>wanted</li>
    <li title="its quota"><span class="swatch s-quota"></span>deserved</li>
    <li title="wanted and not held"><span class="swatch s-short"></span>short</li>
    <li title="stands in the way of the consumer that is explained"><span class="blocker">▲</span> in the way</li>
  </ul>`;

let printing = matchMedia("print").matches;
const printed = new Set();
addEventListener("beforeprint", () => {
  printing = true;
  for (const f of printed) f();
});
addEventListener("afterprint", () => {
  printing = false;
  for (const f of printed) f();
});
const printRowsMax = 2000;

// Rows is a list of which only what is seen is in the page. render(i) gives row i, which must be `height` high; active is a
// row that must be seen. Its parent says what the list is; on paper all rows are there.
export const Rows = ({ count: rows, height, render, active = -1, class: name = "", role = "rowgroup", tabs = false, says }) => {
  const box = useRef(null);
  const [seen, look] = useState({ from: 0, to: 40 });
  const measure = () => {
    const el = box.current;
    if (!el) return;
    if (printing) {
      look({ from: 0, to: Math.min(rows, printRowsMax), all: true });
      return;
    }
    const from = Math.max(0, Math.floor(el.scrollTop / height) - 6);
    const to = Math.min(rows, Math.ceil((el.scrollTop + el.clientHeight) / height) + 6);
    look((was) => (was.from === from && was.to === to && !was.all ? was : { from, to }));
  };
  useLayoutEffect(measure, [rows, height]);
  useEffect(() => {
    addEventListener("resize", measure);
    printed.add(measure);
    return () => {
      removeEventListener("resize", measure);
      printed.delete(measure);
    };
  });
  useLayoutEffect(() => {
    const el = box.current;
    if (!el || active < 0) return;
    const top = active * height;
    if (top < el.scrollTop) el.scrollTop = top;
    else if (top + height > el.scrollTop + el.clientHeight) el.scrollTop = top + height - el.clientHeight;
  }, [active]);
  const list = [];
  for (let i = seen.from; i < Math.min(seen.to, rows); i++) list.push(render(i, { top: i * height + "px", height: height + "px" }));
  return html`<div class=${"rows " + name} ref=${box} onScroll=${measure} role=${role} tabindex=${tabs ? 0 : undefined} aria-label=${says}>
    <div class="room" role="presentation" style=${{ height: rows * height + "px" }}>${list}</div>
  </div>`;
};

// useWidth tells whether the page is narrower than so many pixels.
export function useNarrow(pixels) {
  const query = "(max-width: " + pixels + "px)";
  const [narrow, set] = useState(matchMedia(query).matches);
  useEffect(() => {
    const m = matchMedia(query);
    const tell = () => set(m.matches);
    m.addEventListener("change", tell);
    return () => m.removeEventListener("change", tell);
  }, [query]);
  return narrow;
}

// Empty says why there is nothing to be seen.
export const Empty = ({ children }) => html`<p class="empty">${children}</p>`;

// color is a colour of the page's style sheet, as it is now.
export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

// memo makes a component that is shown anew only when a property is another one; `place`, where a row is, by its value.
export const memo = (show) => class extends Component {
  shouldComponentUpdate(next) {
    const was = this.props;
    for (const key in next) if (next[key] !== was[key] && !(key === "place" && next.place.top === was.place.top && next.place.height === was.place.height)) return true;
    return false;
  }
  render(props) {
    return show(props);
  }
};

export { count };
