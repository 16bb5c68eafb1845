// Figures, times and names as people read them.

const grouped = new Intl.NumberFormat("en-US");
const tenths = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

// num is a whole number with thousands separators; a dash for what is not known.
export const num = (n) => (n === null || n === undefined || Number.isNaN(n) ? "–" : grouped.format(n));

// percent is a part of a whole.
export const percent = (part, whole = 1) => (!whole ? "–" : tenths.format((100 * part) / whole) + " %");

// count is a number with what is counted.
export const count = (n, one, many = one + "s") => num(n) + " " + (n === 1 ? one : many);

// stamp is an instant in milliseconds as date and time in UTC.
export function stamp(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "–";
  return new Date(ms).toISOString().slice(0, 19).replace("T", " ") + " UTC";
}

// clock is the time of day of an instant.
export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);

// span is a length of time in its largest units.
export function span(ms) {
  const s = Math.round(Math.abs(ms) / 1000);
  if (s < 120) return s + " s";
  const m = Math.round(s / 60);
  if (m < 120) return m + " min";
  const h = Math.round(m / 60);
  if (h < 48) return h + " h";
  const d = Math.round(h / 24);
  return d < 60 ? d + " days" : Math.round(d / 30.4) + " months";
}

// relative tells an instant as seen from another.
export function relative(ms, from) {
  const d = ms - from;
  if (Math.abs(d) < 1500) return "now";
  return d < 0 ? span(d) + " ago" : "in " + span(d);
}

// parentOf is the path above a path, null for the first level.
export function parentOf(path) {
  const i = path.lastIndexOf("/");
  return i <= 0 ? null : path.slice(0, i);
}

// nameOf is the last part of a path.
export const nameOf = (path) => path.slice(path.lastIndexOf("/") + 1);

// within tells whether a path is another, or below it.
export const within = (path, up) => path === up || up === "/" || path.startsWith(up + "/");

// inURL is a path as it stands in a URL.
export const inURL = (path) => path.split("/").map(encodeURIComponent).join("/");

// reasons are why units are short, in words; what each means follows the table in docs/log.md.
const reasons = new Map([
  ["waiting_for_reclaim", "promised: others are giving units back"],
  ["no_host_matches", "no host meets the requirement"],
  ["share_limit", "a share limit, or a ratio of 0"],
  ["too_small", "the unit is too small to be counted"],
  ["too_big", "the unit is larger than any host it may use"],
  ["consumer_limit", "a limit of the consumer"],
  ["max_per_host", "max_per_host is reached where it would fit"],
  ["ownership_unmet", "what it should own is not there"],
  ["reclaim_budget", "the reclaim budget of the cycle is used up"],
  ["budget", "its budget of the period is used up"],
  ["borrow_limit", "it borrows as much as it may"],
  ["fragmented", "room enough in sum, but on no single host"],
  ["lower_priority", "others have a higher share priority"],
  ["over_quota", "it has what it deserves"],
  ["pool_exhausted", "the pool is full, or nobody lends"],
  ["not_in_plan", "the consumer is in no plan"],
  ["grace_filter", "its grace is longer than lenders allow"],
  ["gang", "fewer fit than must start together"],
]);
export const reasonText = (reason) => reasons.get(reason) || reason;
