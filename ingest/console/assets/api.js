// The calls of the service. The token is in this module alone: in memory, sent as a header, never in a URL.

let token = "";
let onWho = () => {};
let onRefused = () => {};

// Problem is an error as the service tells it (RFC 9457), or that it did not answer (status 0).
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || "the service did not answer");
    this.status = status;
    this.kind = (body.type || "").replace("urn:stint:error:", "");
    this.faults = body.faults || [];
    this.count = body.count || 0;
    this.retryAfter = body.retryAfter || 0;
  }
}

// listen has functions be told who asks, by the headers of answers, and that a token is not known.
export function listen(who, refused) {
  onWho = who;
  onRefused = refused;
}

export function signIn(text) {
  token = text.trim();
}

export const signedIn = () => token !== "";

let division = ""; // whose figures are asked for; "": the service's, whose plans are not divided

// divide has all calls be of one division.
export function divide(name) {
  division = name;
}

const ofDivision = (path) => (division ? path + (path.includes("?") ? "&" : "?") + "division=" + encodeURIComponent(division) : path);

// call makes a request. Errors are Problems.
export async function call(path, options = {}) {
  const headers = { ...options.headers };
  if (token) headers.Authorization = "Bearer " + token;
  const used = token;
  let answer;
  try {
    answer = await fetch(ofDivision(path), { ...options, headers, credentials: "omit", redirect: "error" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, {});
  }
  const role = answer.headers.get("Stint-Role");
  if (role) onWho({ role, name: answer.headers.get("Stint-Name") || "" });
  if (answer.ok) return answer;
  let body = {};
  try {
    body = await answer.json();
  } catch {
    body = { detail: "the service answered with " + answer.status };
  }
  body.retryAfter = Number(answer.headers.get("Retry-After") || 0);
  if (answer.status === 401 && used === token) onRefused(used !== "");
  throw new Problem(answer.status, body);
}

export const json = async (path, options) => (await call(path, options)).json();

// Table is an Arrow stream's rows by column. Texts are arrays of strings, numbers arrays of numbers, times milliseconds.
export class Table {
  constructor(rows, columns) {
    this.rows = rows;
    this.columns = columns; // by name: a Map, as names are others'
  }
  column(name) {
    return this.columns.get(name) || null;
  }
  get(name, row) {
    const c = this.columns.get(name);
    return c ? c[row] : null;
  }
  // records are the rows as Maps, for few of them.
  *records() {
    for (let row = 0; row < this.rows; row++) yield (name) => this.get(name, row);
  }
}

const noBytes = new Table(0, new Map());

// table asks for a table as an Arrow stream.
export async function table(path, options = {}) {
  const headers = { ...options.headers, Accept: "application/vnd.apache.arrow.stream" };
  const answer = await call(path, { ...options, headers });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  if (bytes.length === 0) return noBytes;
  const read = globalThis.fl.tableFromIPC(bytes, { useDate: false });
  const columns = new Map();
  read.schema.fields.forEach((field, i) => columns.set(field.name, read.getChildAt(i).toArray()));
  const t = new Table(read.numRows, columns);
  t.etag = answer.headers.get("ETag") || "";
  t.cycle = Number(answer.headers.get("Stint-Cycle") || 0);
  return t;
}

// events follows /v1/events until signal is aborted: each event goes to tell, `link` hears whether there is a connection.
// A header carries the token, which EventSource could not send.
export async function events(signal, since, tell, link) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const answer = await call("/v1/events" + (since > 0 ? "?since=" + since : ""), { signal });
      link(true);
      wait = 500;
      for await (const event of read(answer.body)) {
        if (event.name === "unauthorized") {
          onRefused(true);
          return;
        }
        if (event.name === "cycle") {
          since = Number(event.id);
          tell(JSON.parse(event.data));
        }
      }
    } catch (error) {
      if (signal.aborted || error.status === 401) return;
      link(false, error);
    }
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(5000, wait * 2);
  }
}

// read takes server-sent events out of a body.
async function* read(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = { name: "message", id: "", data: "" };
      for (const line of text.slice(0, end).split("\n")) {
        const colon = line.indexOf(":");
        const [name, rest] = [line.slice(0, colon), line.slice(colon + 1).trimStart()];
        if (name === "event") event.name = rest;
        if (name === "id") event.id = rest;
        if (name === "data") event.data += rest;
      }
      text = text.slice(end + 2);
      yield event;
    }
  }
}
