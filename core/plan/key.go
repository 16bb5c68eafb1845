package plan

import (
	"encoding/json"
	"fmt"
)

// object is a mapping of the policy file: the keys that it may have. The parser refuses any other, and the JSON Schema
// is made from it.
type object struct {
	keys  []setting
	names []string
}

// setting is a key of a mapping: what it takes, and what it means.
type setting struct {
	name  string
	takes schema
	doc   string // what it does, and its default
	need  bool   // it must be there
}

func keysOf(keys ...setting) *object {
	o := &object{keys: keys}
	for _, k := range keys {
		o.names = append(o.names, k.name)
	}
	return o
}

// schema is a node of a JSON Schema.
type schema map[string]any

// What values the keys take.
var (
	isName     = schema{"type": "string", "minLength": 1, "maxLength": nameBytesMax}
	isPath     = schema{"type": "string", "pattern": "^(/[^/]+)+$", "maxLength": nameBytesMax}
	isText     = schema{"type": "string", "maxLength": textBytesMax}
	isBool     = schema{"type": "boolean"}
	isWhole    = between(0, numberMax)
	isRank     = between(-1<<31, 1<<31-1)
	isDuration = schema{"anyOf": []schema{{"const": 0},
		{"type": "string", "pattern": `^\+?([0-9]+(\.[0-9]*)?(us|µs|ms|s|m|h))+$|^0$`}}}
	isWait    = schema{"type": "string", "pattern": `^\+?([0-9]+(\.[0-9]*)?(us|µs|ms|s|m|h))+$`}
	isPercent = schema{"anyOf": []schema{{"type": "number", "minimum": 0, "maximum": 100},
		{"type": "string", "pattern": `^[0-9]+(\.[0-9]*)?%$`}}}
	isPart  = schema{"anyOf": []schema{isWhole, {"type": "string", "pattern": `^[0-9]+(\.[0-9]*)?%$`}}}
	isHours = schema{"type": "string", "pattern": `^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$`}
	isDate  = schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\d([ T]([01]\d|2[0-3]):[0-5]\d)?$`}
	isSlots = schema{"anyOf": []schema{isWhole, isText}}
	isPeers = schema{"anyOf": []schema{isName, setOf(isName, peersMax, 1)}}
)

func between(low, high int64) schema {
	return schema{"type": "integer", "minimum": low, "maximum": high}
}

func oneOf(words ...string) schema { return schema{"enum": words} }

func listOf(of schema, most, least int) schema {
	return schema{"type": "array", "items": of, "maxItems": most, "minItems": least}
}

// setOf is a list in which nothing stands twice.
func setOf(of schema, most, least int) schema {
	return listOf(of, most, least).with("uniqueItems", true)
}

// byDimension is a mapping from dimensions to values.
func byDimension(of schema) schema {
	return schema{
		"type": "object", "additionalProperties": of, "minProperties": 1,
		"propertyNames": schema{"pattern": dimensionName.String()},
	}
}

// ref is an object that is defined once and may stand in several places.
func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

const gangWaitDoc = "how long room is held at most for a gang that waits for the rest of its min_units (10m)"

// The mappings of the policy file (SPEC chapter 6).
var (
	fileObject = keysOf(
		setting{"stint", schema{"const": 1}, "version of the policy file's form", true},
		setting{"cluster", isName, "name of the cluster", false},
		setting{"timezone", isName, "wall clock of the windows, such as Europe/London (UTC)", false},
		setting{"interval", isDuration, "between two cycles, at least 1ms (60s)", false},
		setting{"dimensions", setOf(schema{"type": "string", "pattern": dimensionName.String()}, DimensionsMax, 1),
			"countable quantities of hosts, such as slots, ncpus, maxmem, gpus", true},
		setting{"resource_groups", listOf(ref("resource_group"), groupsMax, 0), "named sets of hosts", false},
		setting{"consumers", listOf(ref("consumer"), consumersMax, 1), "the tree; its order breaks ties", true},
		setting{"slot_plans", listOf(ref("slot_plan"), plansMax, 0), "plans that count slots, one for a group", false},
		setting{"md_plans", listOf(ref("md_plan"), plansMax, 0), "plans that pack amounts of several dimensions",
			false},
		setting{"divisions", listOf(ref("division"), divisionsMax, 1),
			"plans that have a journal and a leader of their own (all together)", false},
		setting{"division", isName, "the one that a log is of; written by the service alone", false},
	)
	divisionObject = keysOf(
		setting{"name", schema{"type": "string", "pattern": divisionName.String()}, "name of the division", true},
		setting{"plans", setOf(isName, 2*plansMax, 1), "its plans; each plan is in exactly one division", true},
	)
	groupObject = keysOf(
		setting{"name", isName, "name of the group", true},
		setting{"hosts", setOf(isName, hostsMax, 0), "its hosts, in the order in which they are used", false},
		setting{"select", isText, "the hosts that it takes, such as select(gpus > 0)", false},
		setting{"slots", isSlots,
			"slots of each host: a number, or an expression such as (ncpus*2) (the dimension slots)", false},
	)
	consumerObject = keysOf(
		setting{"path", isPath, "full path, such as /Risk/Intraday", true},
		setting{"rank", isRank, "order among siblings, 0 first (0)", false},
		setting{"reclaim_grace", isDuration,
			"how long its work may go on once its units are taken back (its parent's; 0)", false},
		setting{"min_runtime", isDuration,
			"how long its units run at least before fair reclaim may choose them (its parent's; 0)", false},
		setting{"admins", setOf(isName, peopleMax, 0), "tokens that may change settings below it", false},
		setting{"users", setOf(isName, peopleMax, 0), "tokens that may push its demand", false},
		setting{"system", isBool, "it and all below it are services that keep the cluster alive (false)", false},
		setting{"renamed_from", isPath, "the path it had in the policy before", false},
	)
	slotObject = keysOf(
		setting{"resource_group", isName, "the group that is divided; the plan has its name", true},
		setting{"configured_slots", isWhole, "slots that owners are promised (what the first level owns)", false},
		setting{"allow_overcommit", isBool, "the first level may own more than configured_slots (false)", false},
		setting{"placement", oneOf("stacked", "balanced", "exclusive"),
			"hosts in use first, the emptiest first, or whole hosts (stacked)", false},
		setting{"exclusive", oneOf("allocation", "consumer"), "who has an exclusive host to itself (allocation)",
			false},
		setting{"recall", oneOf("last", "before_borrow"), "when lent slots are taken back (last)", false},
		setting{"share_reclaim", isBool, "what others hold above their share may be taken back (true)", false},
		setting{"share_quota", oneOf("dynamic", "static"),
			"the share among those who are busy, or whoever is (dynamic)", false},
		setting{"distribute_evenly", isBool, "hybrid: what owners leave is for all alike (false)", false},
		setting{"disable_reclaim_on_shrink", isBool,
			"hybrid: when slots are lost, nobody gives back what it owns as configured (false)", false},
		setting{"reclaim_budget", between(1, numberMax), "units put under reclaim in a cycle, at most (unlimited)",
			false},
		setting{"release", oneOf("assumed", "confirmed"),
			"units are free at their deadline, or when the client releases them (assumed)", false},
		setting{"overdue_after", isDuration,
			"how long a confirmation is waited for after the deadline (never given up)", false},
		setting{"lead", isDuration, "how long before a window opens reclaim for it begins (0)", false},
		setting{"gang_wait", isWait, gangWaitDoc, false},
		setting{"consumers", listOf(ref("slot_consumer"), consumersMax, 0), "who takes part, in all windows", false},
		setting{"windows", listOf(ref("slot_window"), windowsMax, 1), "times of day with settings of their own (none)",
			false},
	)
	slotConsumerObject = keysOf(
		setting{"path", isPath, "full path of a consumer", true},
		setting{"rank", isRank, "order among siblings in this plan (the consumer's)", false},
		setting{"policy", oneOf(policyNames...), "of a first-level branch: how its slots are decided", false},
		setting{"owns", isWhole, "slots that it owns (0)", false},
		setting{"reserves", isWhole, "hybrid: slots that are kept free for it (0)", false},
		setting{"limit", isWhole, "hybrid: the most slots that it, and all below it, may hold (none)", false},
		setting{"lend", ref("lend"), "leaves: what of its idle slots is lent (nothing)", false},
		setting{"borrow", ref("borrow"), "leaves: what it may borrow (nothing; {} is unlimited)", false},
		setting{"share", ref("slot_share"), "its part of share pools", false},
		setting{"budget", ref("budget"), "leaves: the most that it may use of share pools and loans in a period (none)",
			false},
	)
	lendObject = keysOf(
		setting{"limit", isWhole, "how many slots (0)", false},
		setting{"to", isPeers, "any, siblings, or a list of consumers (any)", false},
	)
	borrowObject = keysOf(
		setting{"limit", isWhole, "how many slots (unlimited)", false},
		setting{"from", isPeers, "any, siblings, or a list of consumers, in order of preference (any)", false},
	)
	slotShareObject = keysOf(
		setting{"ratio", isWhole, "its part among siblings; 0 gets nothing from pools above it (1)", false},
		setting{"max", isWhole, "the most slots of all kinds that it, and all below it, may hold (none)", false},
	)
	mdObject = keysOf(
		setting{"name", isName, "name of the plan", true},
		setting{"resource_groups", listOf(ref("md_group"), planGroupsMax, 0), "the groups that it divides", true},
		setting{"overcommit", byDimension(schema{"type": "number", "minimum": 0.001, "maximum": overcommitMax / milli}),
			"capacity counts as so many times of itself (1)", false},
		setting{"devices", byDimension(ref("md_device")).with("maxProperties", 1),
			"one dimension is the sum of a host's devices, and a share of it lies on one of them (none)", false},
		setting{"placement", oneOf("best_fit", "stacked", "balanced"), "where units are put (best_fit)", false},
		setting{"public_pool", ref("public_pool"), "settings of the pool of what nobody owns", false},
		setting{"reclaim_for_preference", isBool,
			"an owner takes back what it prefers before it uses what it prefers less (false)", false},
		setting{"ownership_rebalance", between(1, 1<<31-1),
			"cycles with changed input between two redistributions of idle owned hosts (10)", false},
		setting{"share_reclaim", isBool, "what others hold above their share may be taken back (true)", false},
		setting{"fair_band", schema{"type": "number", "minimum": 0, "maximum": 1},
			"part of its quota that a consumer may be above or below it by " +
				"before a unit moves; never less than one unit (0.01)", false},
		setting{"share", ref("md_history"), "lowers ratios by what was used of pools lately (it does not count)",
			false},
		setting{"reclaim_budget", between(1, numberMax), "units put under reclaim in a cycle, at most (unlimited)",
			false},
		setting{"release", oneOf("assumed", "confirmed"),
			"units are free at their deadline, or when the client releases them (assumed)", false},
		setting{"overdue_after", isDuration,
			"how long a confirmation is waited for after the deadline (never given up)", false},
		setting{"lead", isDuration, "how long before a window opens room is made for it (0)", false},
		setting{"gang_wait", isWait, gangWaitDoc, false},
		setting{"consumers", listOf(ref("md_consumer"), consumersMax, 0), "who takes part, in all windows", false},
		setting{"windows", listOf(ref("md_window"), windowsMax, 1), "times of day with settings of their own (none)",
			false},
	)
	deviceObject = keysOf(
		setting{"per", between(1, numberMax), "the amount of each device", true},
	)
	mdGroupObject = keysOf(
		setting{"name", isName, "a resource group", true},
		setting{"preference", between(1, 10), "which of its own hosts a consumer uses first, from 1, the best (5)",
			false},
	)
	publicPoolObject = keysOf(
		setting{"grace", isDuration, "whose reclaim_grace is longer gets nothing of the public pool (none)", false},
	)
	mdConsumerObject = keysOf(
		setting{"path", isPath, "full path of a consumer", true},
		setting{"rank", isRank, "order among siblings in this plan (the consumer's)", false},
		setting{"own", listOf(ref("own"), ownRulesMax, 0), "hosts and parts of hosts that are its own (nothing)",
			false},
		setting{"reserve", ref("reserve"), "what of them is never lent (nothing)", false},
		setting{"preference", schema{"type": "object", "additionalProperties": between(1, 10)},
			"by group: which of its own hosts it uses first (its parent's, the plan's)", false},
		setting{"lend_grace", isDuration,
			"its hosts are lent to those alone whose reclaim_grace is at most that (none)", false},
		setting{"private_pool_grace", isDuration, "the same for what is shared below it (none)", false},
		setting{"share_reclaim", isBool, "false: it, and all below it, take nothing back (true)", false},
		setting{"share", ref("md_share"), "its part of share pools", false},
		setting{"budget", ref("budget"),
			"the most that it, and all below it, may use of pools above it in a period (none)", false},
	)
	mdShareObject = keysOf(
		setting{"priority", isRank, "larger priorities are served first (0)", false},
		setting{"ratio", isWhole, "its part among siblings of its priority; 0 gets nothing (1)", false},
		setting{"limit", byDimension(isWhole),
			"the most that it, and all below it, may hold from pools above it (none)", false},
	)
	mdHistoryObject = keysOf(
		setting{"half_life", isWait, "after which what was used counts half, from 1m to 8760h", true},
		setting{"weight", schema{"type": "number", "minimum": 0.001, "maximum": historyMax / milli},
			"how strongly it counts (1)", false},
	)
	ownObject = keysOf(
		setting{"group", isName, "a group of the plan", false},
		setting{"hosts", isWhole, "so many whole hosts", false},
		setting{"percent", isPercent, "that part of the group's hosts, rounded down", false},
		setting{"host_list", setOf(isName, hostsMax, 1), "these hosts", false},
		setting{"amount", byDimension(isWhole), "whole hosts that fit in the amount", false},
		setting{"partial", isBool, "the amount may end in a part of a host (false)", false},
		setting{"remaining", schema{"const": true}, "what all other rules of its siblings leave", false},
		setting{"per_host", byDimension(isPart), "a part of each host: a number or a percentage", false},
	)
	reserveObject = keysOf(
		setting{"hosts", isWhole, "so many whole hosts", false},
		setting{"percent", isPercent, "that part of each dimension", false},
		setting{"amount", byDimension(isWhole), "so much of each dimension", false},
	)
	windowObject = keysOf(
		setting{"name", isName, "name of the window", true},
		setting{"hours", isHours, `such as "20:00-08:00", which passes midnight`, false},
		setting{"from", isDate, `when a window that is open once opens, such as "2026-12-24 18:00"`, false},
		setting{"until", isDate, "when it closes; a date alone is its first instant", false},
		setting{"days", setOf(oneOf(dayNames...), len(dayNames), 1), "days on which it begins (every day)", false},
		setting{"consumers", schema{}, "entries whose keys replace the plan's while the window is open (none)", false},
	)
)

// schema is the JSON Schema of a mapping.
func (o *object) schema() schema {
	properties, need := schema{}, []string{}
	for _, k := range o.keys {
		p := schema{"description": k.doc}
		for name, v := range k.takes {
			p[name] = v
		}
		properties[k.name] = p
		if k.need {
			need = append(need, k.name)
		}
	}
	return schema{"type": "object", "properties": properties, "required": need, "additionalProperties": false}
}

// with is the schema with more of its keywords.
func (s schema) with(name string, v any) schema {
	s[name] = v
	return s
}

// consumersOf is a window's schema whose entries are of a kind.
func consumersOf(kind string) schema {
	s := windowObject.schema()
	s["oneOf"] = []schema{
		{"required": []string{"hours"}, "not": schema{"anyOf": oneForm([]string{"from", "until"})}},
		{"required": []string{"from", "until"}, "not": schema{"anyOf": oneForm([]string{"hours", "days"})}},
	}
	s["properties"].(schema)["consumers"].(schema)["type"] = "array"
	s["properties"].(schema)["consumers"].(schema)["items"] = ref(kind)
	return s
}

// oneForm asks for exactly one of some keys.
func oneForm(keys []string) (forms []schema) {
	for _, k := range keys {
		forms = append(forms, schema{"required": []string{k}})
	}
	return forms
}

// oneOwnForm asks for exactly one form of a rule of ownership; all but host_list go with a group.
func oneOwnForm() (forms []schema) {
	for _, k := range ownForms {
		form := schema{"required": []string{k, "group"}}
		if k == "host_list" {
			form = schema{"required": []string{k}, "not": schema{"required": []string{"group"}}}
		}
		forms = append(forms, form)
	}
	return forms
}

// SchemaFile is the name of the JSON Schema that stands beside a policy file.
const SchemaFile = "policy.schema.json"

// SchemaLine is the first line of a policy file by which editors find its schema.
const SchemaLine = "# yaml-language-server: $schema=" + SchemaFile + "\n"

// Schema is the JSON Schema (draft 2020-12) of the policy file, for editors: names, types, bounds and the words that
// may stand in each place, from the table by which the file is read. What needs the file as a whole (paths that exist,
// sums, windows that cover the week) is told by Parse alone.
func Schema() []byte {
	s := fileObject.schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = fmt.Sprintf("policy file of stint, version %d", 1)
	s["$defs"] = schema{
		"resource_group": groupObject.schema().with("oneOf", oneForm([]string{"hosts", "select"})),
		"consumer":       consumerObject.schema(),
		"slot_plan":      slotObject.schema(),
		"slot_consumer":  slotConsumerObject.schema(),
		"slot_window":    consumersOf("slot_consumer"),
		"lend":           lendObject.schema(),
		"borrow":         borrowObject.schema(),
		"slot_share":     slotShareObject.schema(),
		"md_plan":        mdObject.schema(),
		"md_device":      deviceObject.schema(),
		"md_group":       mdGroupObject.schema(),
		"public_pool":    publicPoolObject.schema(),
		"md_consumer":    mdConsumerObject.schema(),
		"md_window":      consumersOf("md_consumer"),
		"md_share":       mdShareObject.schema(),
		"md_history":     mdHistoryObject.schema(),
		"division":       divisionObject.schema(),
		"own":            ownObject.schema().with("oneOf", oneOwnForm()),
		"budget":         budgetSchema(),
		"reserve":        reserveObject.schema().with("oneOf", oneForm(reserveObject.names)),
	}
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(text, '\n')
}
