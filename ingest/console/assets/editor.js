// A text in an editor with its lines' numbers, and faults beside the lines that have them. Of a long text only the numbers
// that are seen are in the page.

import { html, useEffect, useRef, useState } from "./htm-preact-3.1.1.js";

const lineHeight = 18;

export const Editor = ({ text, faults, change, jump, readOnly, says }) => {
  const area = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(420);
  const lines = useLines(text);
  const at = new Map();
  for (const f of faults) if (f.line) at.set(f.line, at.has(f.line) ? at.get(f.line) + "\n" + f.reason : f.reason);
  useEffect(() => {
    const watch = new ResizeObserver(() => area.current && setHeight(area.current.clientHeight));
    watch.observe(area.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => { // to a fault: its line is seen, and the cursor stands at its column
    if (!jump || !area.current) return;
    const el = area.current;
    const starts = offset(text, jump.line) + Math.max(0, (jump.column || 1) - 1);
    el.focus();
    el.setSelectionRange(starts, starts);
    el.scrollTop = Math.max(0, (jump.line - 1) * lineHeight - el.clientHeight / 2);
  }, [jump]);
  const first = Math.floor(top / lineHeight), last = Math.min(lines, first + Math.ceil(height / lineHeight) + 1);
  const list = [];
  for (let i = first; i < last; i++) {
    const fault = at.get(i + 1);
    list.push(html`<div key=${i} class=${fault ? "bad" : ""} style=${{ top: i * lineHeight - top + 8 + "px" }} title=${fault || ""}>${fault ? "✗ " : ""}${i + 1}</div>`);
  }
  const marks = [];
  for (const line of at.keys()) {
    if (line > first && line <= last) marks.push(html`<div key=${line} class="mark-line" style=${{ top: (line - 1) * lineHeight - top + 8 + "px" }}></div>`);
  }
  return html`<div class="editor"><div class="numbers" aria-hidden="true">${list}</div><div class="marks" aria-hidden="true">${marks}</div>
    <textarea ref=${area} aria-label=${says} aria-describedby="faults" aria-invalid=${String(at.size > 0)} spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" readonly=${readOnly}
      value=${text} onInput=${(e) => change(e.target.value)} onScroll=${(e) => setTop(e.target.scrollTop)}
      onKeyDown=${(e) => { // Tab goes on to what follows: the keyboard is not caught here
        if (e.key === "Enter" && !readOnly && !e.isComposing) indent(e);
      }}></textarea></div>`;
};

// useLines counts the lines of a text.
function useLines(text) {
  let n = 1;
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) n++;
  return n;
}

// offset is where a line begins.
function offset(text, line) {
  let at = 0;
  for (let n = 1; n < line; n++) {
    const next = text.indexOf("\n", at);
    if (next < 0) return text.length;
    at = next + 1;
  }
  return at;
}

// indent has a new line begin as far in as the one before it.
function indent(e) {
  const el = e.target;
  const start = el.value.lastIndexOf("\n", el.selectionStart - 1) + 1;
  const space = /^ */.exec(el.value.slice(start, el.selectionStart))[0];
  if (!space) return;
  e.preventDefault();
  document.execCommand("insertText", false, "\n" + space);
}
