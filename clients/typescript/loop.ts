// A client of a stint service, typed by its OpenAPI description: it pushes demand, runs a cycle, follows the changes,
// asks why it has no more, and gives back what is done.
//
//   node loop.js http://127.0.0.1:7468 /Research
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

const [base, consumer] = process.argv.slice(2);
const stint = createClient<paths, "application/json" | "application/problem+json">({ baseUrl: base });

function must<T>(answer: { data?: T; error?: components["schemas"]["Problem"] }): T {
  if (answer.error) throw new Error(`${answer.error.detail} (${answer.error.type})`);
  return answer.data as T;
}

const path = { source: "typescript" };
const demand: components["schemas"]["DemandRow"][] = [{ consumer, allocation: "work", units: 1000, ncpus: 1 }];
const taken = must(await stint.PUT("/v1/demand/{source}", {
  params: { path }, body: demand, headers: { "Content-Type": "application/json" },
}));
const done = must(await stint.POST("/v1/cycles"));
if (done.cycle < taken.cycle) throw new Error(`cycle ${done.cycle} does not go by an input for ${taken.cycle}`);

const changes = must(await stint.GET("/v1/changes", { params: { query: { since: 0, source: path.source } } }));
const granted = changes.filter((c) => c.change === "grant").reduce((sum, c) => sum + c.units, 0);
const why = must(await stint.GET("/v1/explain/{path}", { params: { path: { path: consumer.slice(1) } } }));
console.log(`${granted} units granted; ${why.plans[0].answer}`);

const units: components["schemas"]["ReleasesRow"][] = changes
  .filter((c) => c.change === "grant")
  .map((c) => ({ consumer: c.consumer!, allocation: c.allocation!, sub: c.sub, host: c.host!, units: c.units, done: true }));
const back = must(await stint.POST("/v1/releases", { body: units, headers: { "Content-Type": "application/json" } }));
console.log(`${back.released} units given back`);
if (granted === 0 || back.released !== granted) process.exit(1);
