package server

import (
	"reflect"

	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/simulation"
)

// call is how a route is described in the OpenAPI document.
type call struct {
	id      string // the operation's
	about   string
	tag     string
	params  []param // besides those of the path
	body    string  // what it takes: the name of an input table, "plan", or "" for nothing
	gives   gives
	refuses []int // statuses besides those of every call
}

// gives is what a call answers with.
type gives struct {
	about string
	value any      // a JSON value of this type; nil: none
	text  []string // media types of texts
	rows  []string // tables: any of these, in all formats; "*": a path of its own for each decision table
	kept  bool     // 304 where the client has it
	head  []string // headers besides
	paged bool     // limit and cursor choose rows
}

// param is a parameter of a call.
type param struct {
	name, in, about string
	schema          object
	must            bool
}

// object is a JSON object of the document.
type object = map[string]any

func query(name, about string, schema object) param {
	return param{name: name, in: "query", about: about, schema: schema}
}

var (
	boolean = object{"type": "boolean"}
	text    = object{"type": "string"}
	name    = object{"type": "string", "maxLength": 256}
	from0   = object{"type": "integer", "format": "int64", "minimum": 0}
	from1   = object{"type": "integer", "format": "int64", "minimum": 1}

	keyParam = param{name: "Idempotency-Key", in: "header",
		about: "the same key twice is applied once (kept for 24 h)", schema: name}
	inForm = query("format", "the format, whatever the content type says",
		choice("auto", "csv", "ndjson", "json", "arrow", "parquet"))
	outForm = query("format", "the format, whatever Accept says",
		choice("arrow", "parquet", "ndjson", "json", "csv"))
	textForm     = query("format", "the form, whatever Accept says", choice("json", "text"))
	shrinkParam  = query("allow_shrink", "take it though it releases more than the shrink guard allows", boolean)
	forceParam   = query("force", "consumers with holdings may be left out; these are reclaimed with grace", boolean)
	cycleParam   = query("cycle", "an earlier cycle, from the decision log; the last one without", from1)
	consumerOf   = query("consumer", "it and those below it", text)
	versionParam = query("version", "the cycle's version, as /v1/events tells it (the first 16 digits of its digest, "+
		"and the microsecond at which it was started): with it the answer may be kept for ever", text)
	sourceParam = query("source", "only what concerns its demand", name)

	inputParams   = []param{inForm, shrinkParam, keyParam}
	inputRefuses  = []int{408, 409, 413, 415, 422, 429, 507}
	tableRefuses  = []int{404, 406, 409, 410, 429}
	acknowledged  = gives{about: "durable", value: acknowledgement{}}
	stintNow      = []string{"Stint-Now"} // the time of the service, which deadlines are compared with
	consoleAnswer = gives{about: "a file of the page", kept: true, head: []string{"ETag"},
		text: []string{"text/html", "text/css", "text/javascript", "text/plain", "image/svg+xml"}}
)

func choice(words ...string) object { return object{"type": "string", "enum": words} }

// calls describe the routes, by method and name; a test holds them complete.
var calls = map[string]call{
	"PUT /v1/hosts": {"putHosts", "The full table of hosts", "input", inputParams, "hosts", acknowledged, inputRefuses},
	"PATCH /v1/hosts": {"changeHosts", "Changes by host: columns that are not given keep their values", "input",
		inputParams,
		"hosts", acknowledged, inputRefuses},
	"PUT /v1/plan": {"putPlan", "A policy file, in force from the next cycle on", "policy", []param{
		forceParam, query("message", "why it is put; kept with the revision",
			object{"type": "string", "maxLength": 1024}),
		{name: "If-Match", in: "header", about: "the revision it was made from, such as \"3\"; another newest one " +
			"refuses it", schema: text}, keyParam,
	}, "plan", acknowledged, append([]int{412}, inputRefuses...)},
	"GET /v1/plan": {"getPlan", "The newest policy file", "policy", nil, "",
		gives{about: "as it was put", text: []string{"application/yaml"}, head: []string{"ETag"}, kept: true},
		[]int{404, 409}},
	"POST /v1/plan/check": {"checkPlan", "Checks a policy file and compares it with the newest", "policy", []param{
		forceParam, query("windows", "what each consumer has set in each time window, too", boolean),
	}, "plan", gives{about: "whether it would be taken", value: planCheck{}}, []int{408, 409, 413, 415, 422, 429}},
	"PUT /v1/demand/{source}": {"putDemand", "All that a source wants", "input", inputParams, "demand", acknowledged,
		inputRefuses},
	"PATCH /v1/demand/{source}": {"changeDemand",
		"Changes to what a source wants: rows are added or replaced, units 0 takes one away",
		"input", inputParams, "demand", acknowledged, inputRefuses},
	"DELETE /v1/demand/{source}": {"deleteDemand",
		"A source is forgotten, with all that it wants and its idempotency keys; what it holds is released by the " +
			"next cycle",
		"input", []param{shrinkParam, keyParam}, "", acknowledged, []int{404, 409, 422, 429, 507}},
	"PUT /v1/running/{source}": {"putRunning",
		"All that runs of a source, whatever was held before; under the shrink guard",
		"input", inputParams, "running", acknowledged, inputRefuses},
	"POST /v1/releases": {"release",
		"Units given back; those beyond what is held, or of an allocation that is gone, are counted in `beyond`",
		"input", inputParams, "releases", acknowledged, inputRefuses},
	"POST /v1/cycles": {"runCycle", "Runs a cycle now and waits for it", "decisions", nil, "",
		gives{about: "what it did", value: cycleDone{}}, []int{409, 429, 507}},
	"GET /v1/cycles": {"getCycles", "The last cycles", "decisions", []param{
		outForm, query("limit", "at most so many (100)", from1), query("before", "those before this cycle", from1),
	}, "", gives{about: "a row a cycle, the oldest first", rows: []string{"cycles"}}, []int{406, 409, 410, 429}},
	"GET /v1/cycles/{cycle}/{table}": {"get", "A decision table of a cycle", "decisions",
		[]param{outForm, consumerOf, versionParam},
		"", gives{about: "the table", rows: []string{"*"}, kept: true, paged: true}, tableRefuses},
	"GET /v1/changes": {"getChanges",
		"What happened after a cycle: releases, cancellations, grants, reclaims, in order", "decisions", []param{
			outForm, sourceParam, {"since", "query", "the cycle after which they are; 0 is the beginning", from0, true},
			query("wait", "how long to wait for something, such as 30s", text),
		}, "", gives{about: "the changes", rows: []string{"changes"}, head: stintNow}, []int{406, 409, 410, 422, 429}},
	"GET /v1/holdings": {"getHoldings", "What is held now, or after an earlier cycle", "decisions", []param{
		outForm, sourceParam, cycleParam, query("by", "added up by consumer or host", choice("consumer", "host")),
		query("host", "on this host alone", text), consumerOf, versionParam,
	}, "", gives{about: "the holdings", rows: []string{"held", "holding_sums"}, kept: true, head: stintNow,
		paged: true}, tableRefuses},
	"GET /v1/consumers": {"getConsumers", "The consumers with all figures, as of the last cycle", "decisions", []param{
		outForm, query("last", "of one consumer alone", from1), query("until", "of one consumer alone", from1),
	}, "", gives{about: "a row for each consumer in a plan", rows: []string{"consumers", "curve"}, paged: true},
		tableRefuses},
	"GET /v1/consumers/{path}": {"getConsumer", "A consumer and those below it, or its figures over the last cycles",
		"decisions", []param{
			outForm, query("last", "its figures over so many cycles, at 240 of them at most", from1),
			query("until", "the last of these cycles", from1),
		}, "", gives{about: "the figures", rows: []string{"consumers", "curve"}, paged: true}, tableRefuses},
	"GET /v1/explain/{path}": {"explain", "Why a consumer, or an allocation of it, has what it has", "why", []param{
		textForm, query("allocation", "an allocation of the consumer", text), cycleParam,
	}, "", gives{about: "figures with what they follow from", value: explain.Explanation{},
		text: []string{"text/plain"}}, tableRefuses},
	"POST /v1/whatif": {"whatif", "What the next cycle would be under another policy, and what would come of it", "why",
		append([]param{
			textForm, forceParam, query("settle", "how many cycles to look ahead at most, until nothing changes (100)",
				object{"type": "integer", "minimum": 0, "maximum": whatifSettleMax}),
		}, windowParams...), "plan", gives{about: "who gains and loses, what would be reclaimed; nothing is committed",
			value: explain.Comparison{},
			text:  []string{"text/plain"}}, []int{406, 408, 409, 413, 415, 422, 429}},
	"POST /v1/simulate": {"simulate", "What demand and hosts that are not there would get, from whom, what would " +
		"stop for it, and when it would have all of it", "why", append([]param{
		query("horizon", "how far to look ahead, such as 24h, which is the default; 0s: the next cycle alone", text),
		query("every", "between two cycles that are decided (the policy's interval)", text),
		query("plays", "how many futures are drawn where run times are spread (20); 1: none, all units run for the "+
			"median of what is left to them", object{"type": "integer", "minimum": 1, "maximum": playsMax}),
		query("within",
			"how long the answer may take, such as 1s (10s, at most 20s): what is not known by then is left out", text),
	}, windowParams...), "simulation", gives{about: "by sub-allocation; nothing is committed",
		value: simulation.Answer{}},
		[]int{408, 409, 413, 415, 422, 429}},
	"GET /v1/hosts": {"getHosts", "The hosts with state, capacity and use by dimension, and, of a service as it is " +
		"now, attributes", "decisions", []param{
		outForm, cycleParam, query("host", "of this host alone", text),
		query("by", "added up by plan and state, or by plan, resource group and state", choice("plan", "group")),
		versionParam,
	}, "", gives{about: "the hosts", rows: []string{"host_figures", "host_sums"}, kept: true, paged: true},
		tableRefuses},
	"GET /v1/loans": {"getLoans", "Who has what of whom", "decisions", []param{outForm, cycleParam, versionParam}, "",
		gives{about: "the loans", rows: []string{"loans"}, kept: true, paged: true}, tableRefuses},
	"GET /v1/demand/{source}": {"getDemand", "What a source asks for, as of the last cycle", "input", []param{outForm},
		"",
		gives{about: "its sub-allocations, with what they hold", rows: []string{"requests"}, paged: true},
		tableRefuses},
	"GET /v1/sources": {"getSources", "Who pushes demand, and when it pushed last", "input", []param{outForm}, "",
		gives{about: "the sources, as of the last cycle", rows: []string{"sources"}, paged: true}, tableRefuses},
	"PUT /v1/actors/{source}": {"putActor", "What the actor of a source says of itself; in memory alone, so that it " +
		"reports every few seconds", "input", nil, "actor",
		gives{about: "when it was seen", value: actorSeen{}}, []int{408, 413, 429}},
	"GET /v1/actors": {"getActors", "What is granted to each source and what its actor says of it: drift and lag; " +
		"no value where no actor reported since the service began", "decisions", []param{outForm}, "",
		gives{about: "the sources that hold units, or whose actor reported", rows: []string{"actors"}, paged: true},
		tableRefuses},
	"GET /v1/plan/revisions": {"getRevisions",
		"The revisions of the policy that the decision log has, the newest first", "policy", nil, "",
		gives{about: "the revisions", value: []revision{}}, []int{409, 410, 429}},
	"GET /v1/plan/revisions/{n}": {"getRevision",
		"An earlier policy file as it was put; PUT /v1/plan puts it in force again", "policy", nil, "",
		gives{about: "the file", text: []string{"application/yaml"}, head: []string{"ETag"}},
		[]int{404, 409, 410, 429}},
	"GET /v1/events": {"getEvents", "Cycles as they are published, as server-sent events; resumable. The data of an " +
		"event `cycle` is an Event, its id the cycle's number; `unauthorized` comes when the token is not known any " +
		"more", "decisions",
		[]param{
			query("since", "begin behind this cycle; without it, and without Last-Event-ID, the last one comes first",
				from0),
			{name: "Last-Event-ID", in: "header", about: "the cycle seen last", schema: from0},
		}, "", gives{about: "a stream, which ends after ten minutes", text: []string{"text/event-stream"}},
		[]int{409, 410, 429}},

	"GET /":               {"getConsole", "The console: a page for people", "page", nil, "", consoleAnswer, []int{404}},
	"GET /console/{file}": {"getConsoleFile", "A file of the console", "page", nil, "", consoleAnswer, []int{404}},

	"GET /healthz": {"getHealth", "Whether the process can do its work", "state", nil, "",
		gives{about: "it can", value: health{}}, nil},
	"GET /readyz": {"getReady", "Whether input is taken and cycles run", "state", nil, "",
		gives{about: "they do", value: readiness{}}, nil},
	"GET /metrics": {"getMetrics", "Figures for Prometheus", "state", nil, "",
		gives{about: "text format", text: []string{"text/plain"}}, nil},
	"GET /openapi.json": {"getOpenAPI", "This description", "state", nil, "",
		gives{about: "OpenAPI 3.0", value: object{}}, nil},
}

// tags are the kinds of calls.
var tags = []struct{ name, about string }{
	{"input", "What clients say: hosts, demand, what runs, what came back"},
	{"policy", "The policy file and its revisions"},
	{"decisions", "What was decided, and what is true after it"},
	{"why", "Explanations, and what would be"},
	{"state", "Of the service itself"},
	{"page", "For people"},
}

// statuses that calls refuse with, and why.
var refusals = map[int]string{
	400: "the request cannot be read",
	401: "a bearer token is needed, or it is not known",
	403: "not for this role; or a host that is not this service's, or a web page of another origin",
	404: "there is no such thing, or the version is of another log",
	406: "no format that is known",
	408: "the body did not come in time, or stood still while memory was short",
	412: "If-Match names a revision that is not the newest",
	409: "not as things are: the shrink guard, no policy or no cycle yet, a source that was silent",
	410: "not kept any more: of changes, read the holdings and go on from their cycle; a cursor of another cycle",
	413: "over a limit of bytes or rows, or more memory or time than the caller may have",
	415: "no format or packing that is known",
	417: "Expect asks for something else than 100-continue",
	422: "bad rows or faults, listed; or an idempotency key with another body",
	429: "busy, or the caller's share of a limit is taken: come again",
	503: "not ready, stopping, or not in the decision log yet",
	505: "a version of HTTP that is not known",
	507: "the disk is full: nothing was taken",
}

// pathParams are the parts of paths.
var pathParams = map[string]param{
	"source": {about: "who pushes, by its own name", schema: name},
	"cycle":  {about: "a number, or latest", schema: object{"type": "string", "pattern": "^([1-9][0-9]*|latest)$"}},
	"path":   {about: "a consumer's path without its first slash, such as Risk/Day", schema: text},
	"n":      {about: "the revision", schema: from1},
	"file":   {about: "the file", schema: text},
}

// typeNames are the names of types in the document where they are not those of Go.
var typeNames = map[reflect.Type]string{
	reflect.TypeFor[acknowledgement]():     "Acknowledgement",
	reflect.TypeFor[planCheck]():           "PlanCheck",
	reflect.TypeFor[actorReport]():         "ActorReport",
	reflect.TypeFor[actorSeen]():           "ActorSeen",
	reflect.TypeFor[revision]():            "Revision",
	reflect.TypeFor[event]():               "Event",
	reflect.TypeFor[cycleDone]():           "CycleDone",
	reflect.TypeFor[health]():              "Health",
	reflect.TypeFor[readiness]():           "Readiness",
	reflect.TypeFor[problemBody]():         "Problem",
	reflect.TypeFor[problemRow]():          "ProblemRow",
	reflect.TypeFor[problemFault]():        "ProblemFault",
	reflect.TypeFor[plan.Change]():         "PolicyChange",
	reflect.TypeFor[plan.Settings]():       "PolicySettings",
	reflect.TypeFor[plan.SettingsRow]():    "PolicySettingsRow",
	reflect.TypeFor[plan.WindowText]():     "PolicyWindow",
	reflect.TypeFor[explain.Part]():        "ExplanationPart",
	reflect.TypeFor[explain.Row]():         "GridRow",
	reflect.TypeFor[explain.Shortfall]():   "ExplainedShortfall",
	reflect.TypeFor[explain.Reclaim]():     "ExplainedReclaim",
	reflect.TypeFor[explain.Change]():      "ConsumerChange",
	reflect.TypeFor[explain.Requirement](): "ExplainedRequirement",
	reflect.TypeFor[simulation.Answer]():   "Simulation",
	reflect.TypeFor[simulation.Row]():      "SimulatedRow",
	reflect.TypeFor[simulation.From]():     "SimulatedOrigin",
	reflect.TypeFor[simulation.Why]():      "SimulatedShortfall",
	reflect.TypeFor[simulation.Stop]():     "SimulatedStop",
	reflect.TypeFor[simulation.Times]():    "SimulatedTimes",
	reflect.TypeFor[explain.Clause]():      "RequirementClause",
}

// fieldsAbout say what fields mean, by type and key of the document. A test holds that each is there.
var fieldsAbout = map[string]string{
	"ActorReport.running":          "units in its last list of the cluster",
	"ActorReport.held_not_running": "units that the service holds and that do not run",
	"ActorReport.running_not_held": "units that run and that the service does not hold",
	"ActorReport.lag_p50":          "seconds from a decision to its effect, of half of the effects at most; null: none",
	"ActorReport.lag_p99":          "likewise, of 99 of a hundred",
	"ActorReport.effects":          "starts and stops that the lags are of, of the last hour, at most 1,000",
	"ActorReport.late":             "units that ran past their deadlines since it began",
	"ActorReport.listed":           "when its last list of the cluster began",

	"Acknowledgement.snapshot": "names the input",
	"Acknowledgement.cycle":    "the first that goes by it",
	"Acknowledgement.released": "units given back; of a source that was deleted, units that the next cycle releases",
	"Acknowledgement.beyond":   "units given back beyond what was held, those of allocations that are gone among them",
	"Acknowledgement.repeated": "the same was taken before, under the same idempotency key",
	"Acknowledgement.warnings": "of a policy file: what is legal but suspect",
	"Comparison.revision":      "the newest, with which it is compared",
	"Comparison.same":          "consumers to whom it makes no difference",
	"Comparison.settled":       "before, after",
	"ConsumerChange.settled":   "what it holds once nothing changes any more",
	"Event.newest_revision":    "in force from the next cycle on where it is another",
	"Event.version":            "to be named in calls for what the cycle decided",
	"ExplainedReclaim.for":     "null: a rule",

	"ExplainedShortfall.requirement": "which of the plan's hosts meet what it requires of them; of the last cycle",
	"ExplainedRequirement.hosts":     "of the plan",
	"ExplainedRequirement.match":     "that meet all of it",
	"ExplainedRequirement.open":      "of these, that are ok",
	"ExplainedRequirement.clauses":   "each condition by itself",
	"ExplanationPart.answer":         "what is short, why, and what would change it, in a sentence or two",
	"ExplanationPart.plan":           "empty for what is in no plan",

	"Grid.more":                   "rows left out",
	"PlanCheck.changes":           "as stint diff --output json tells them, the first 1,000",
	"PlanCheck.changes_count":     "of all changes",
	"PlanCheck.refused":           "why it would not be taken",
	"PlanCheck.revision":          "it is compared with; 0: there is none",
	"PlanCheck.same":              "not a byte is another",
	"Point.figure":                "a column of the decision log",
	"PolicyChange.about":          "the consumer that it is about",
	"PolicyChange.is":             "its value now; of what is added, the keys that have not their defaults",
	"PolicyChange.key":            "of a change",
	"PolicyChange.was":            "its value before; of what is renamed, the name",
	"Problem.count":               "of bad rows or faults in all",
	"Problem.type":                "stable: urn:stint:error: and the kind",
	"Readiness.log_behind_cycles": "cycles that the decision log does not have yet",
	"Revision.cycle":              "from which on it is in force",
	"Simulation.cycles":           "that were decided for the first future",
	"Simulation.drawn":            "times are percentiles of futures that were drawn; else of the expected one",
	"Simulation.every":            "between two cycles that were decided: times are true to that",
	"Simulation.plays":            "futures that were drawn and played to the end",
	"Simulation.units_otherwise":  "put under reclaim in the same time, for others or by a rule",
	"Simulation.units_unknown":    "that run now, of which nobody said how long: they are taken to go on for ever",
	"Simulation.until":            "as far as was looked",
	"Simulation.whole":            "false: time or cycles ran out before the horizon",
	"SimulatedRow.all":            "when it would have had all of them, those that are done by then among them",
	"SimulatedRow.first":          "when it would have a unit",
	"SimulatedRow.from":           "whose units it would have been given, in the future that is as expected",
	"SimulatedRow.short":          "after the next cycle",
	"SimulatedRow.units_most":     "that it would have had by the end, those that are done among them",
	"SimulatedRow.units_now":      "that the next cycle would give",
	"SimulatedStop.allocation":    "null: not for the caller to know",
	"SimulatedTimes.p50":          "half of the futures have it by then; null: not as far as was looked",
	"Settling.stable":             "false: the end was not seen",
	"Taking.for":                  "null: a rule",
}
