package server

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// shapes make the schemas of the document: of Go types as they are written as JSON, and of the rows of tables.
type shapes struct {
	named  object                     // components by name
	origin map[string]any             // what each was made of: a type, or the name of a table
	tables map[string]*decision.Table // without rows
}

// instantNames are the keys of texts that are instants.
var instantNames = []string{"now", "until", "issued", "deadline", "earliest", "latest", "began", "listed", "seen"}

// wordsOf are the fields that have one of few words, by type and key.
var wordsOf = map[string][]string{
	"ExplanationPart.kind": {"slots", "md"}, "ExplanationPart.unit": {"slot", "unit"},
	"PolicySettings.kind": {"slots", "md"}, "PolicyChange.kind": {"added", "removed", "renamed", "changed"},
	"Health.status": {"ok"}, "Readiness.status": {"ok"},
}

// begin tells whether a component is yet to be made.
func (b *shapes) begin(name string, of any) bool {
	if was, ok := b.origin[name]; ok {
		if was != of {
			panic(fmt.Sprintf("BUG: %v and %v are both called %s", was, of, name))
		}
		return false
	}
	b.origin[name] = of
	return true
}

// of is the schema of a type.
func (b *shapes) of(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer", "format": "int64"}
	case reflect.Float64:
		return object{"type": "number", "format": "double"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Interface: // a figure of a grid
		return object{"type": "number", "nullable": true}
	case reflect.Map:
		return object{"type": "object"}
	case reflect.Slice:
		return object{"type": "array", "items": b.of(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": b.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Pointer:
		return nullable(b.of(t.Elem()))
	case reflect.Struct:
		return b.ref(t)
	}
	panic("BUG: no schema for " + t.String())
}

// nullable is a schema or null.
func nullable(s object) object {
	if _, ref := s["$ref"]; ref {
		return object{"type": "object", "allOf": []object{s}, "nullable": true}
	}
	s["nullable"] = true
	return s
}

// ref is a reference to the schema of a struct, which is made when it is first asked for.
func (b *shapes) ref(t reflect.Type) object {
	name := t.Name()
	if other, ok := typeNames[t]; ok {
		name = other
	}
	if b.begin(name, t) { // before its fields: types may have themselves
		b.named[name] = b.structure(name, t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (b *shapes) structure(name string, t reflect.Type) object {
	properties, required := object{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "" || key == "-" {
			continue
		}
		is := f.Type
		if rest == "" {
			required = append(required, key)
		} else if is.Kind() == reflect.Pointer { // it is left out, and never null
			is = is.Elem()
		}
		s := b.of(is)
		if is.Kind() == reflect.String && slices.Contains(instantNames, key) {
			s["format"] = "date-time"
		}
		if words := wordsOf[name+"."+key]; words != nil {
			s["enum"] = words
		}
		if about := fieldsAbout[name+"."+key]; about != "" {
			if _, ref := s["$ref"]; ref {
				s = object{"allOf": []object{s}}
			}
			s["description"] = about
		}
		properties[key] = s
	}
	return object{"type": "object", "required": required, "properties": properties, "additionalProperties": false}
}

// blankDimension is the dimension of the policy by which tables are laid out. Columns that are named by it are those
// that there are one of for each dimension.
const blankDimension = "dimension0"

const blankPolicy = `
stint: 1
dimensions: [` + blankDimension + `]
resource_groups: [{name: All, select: "select(dimension0 > 0)"}]
consumers: [{path: /A}]
md_plans: [{name: md, resource_groups: [{name: All}], consumers: [{path: /A}]}]
`

// rowNames are the tables that answers have, by the names of their rows' schemas.
var rowNames = map[string]string{
	"cycles": "Cycle", "grants": "Grant", "reclaims": "Reclaim", "releases": "Release", "consumers": "Consumer",
	"amounts": "Amount", "shares": "PoolShare", "shortfalls": "Shortfall", "ownership": "OwnershipChange",
	"plans": "PolicyRevision", "inputs": "Input", "holdings": "Holding", "hosts": "HostCapacity", "owners": "Owner",
	"loans": "Loan", "sub_allocations": "SubAllocation", "attributes": "Attribute", "changes": "Change",
	"held": "HeldUnits", "holding_sums": "HoldingSum", "host_figures": "Host", "host_sums": "HostSum",
	"requests": "Request", "sources": "Source", "actors": "Actor", "curve": "CurvePoint",
}

// decisionTables are the tables of a cycle, each with a path of its own.
var decisionTables = []string{
	"amounts", "attributes", "consumers", "cycles", "grants", "holdings", "hosts", "inputs", "loans", "owners",
	"ownership", "plans", "reclaims", "releases", "shares", "shortfalls", "sub_allocations",
}

// moreColumns are tables with columns beside those that are listed: one for each dimension, and of hosts attributes.
var moreColumns = map[string]object{
	"consumers":       anything("a figure of a dimension, such as owned_ncpus"),
	"loans":           anything("an amount of a dimension, such as amount_ncpus"),
	"requests":        anything("the size of a unit in a dimension"),
	"sub_allocations": anything("the size of a unit in a dimension"),
	"holding_sums":    anything("an amount of a dimension, such as amount_ncpus"),
	"host_sums":       anything("capacity_ and used_, by dimension"),
	"host_figures":    anything("capacity_ and used_ by dimension, attribute_ by attribute"),
}

// anything is a value of a column whose type only its name tells. Where the others are numbers, too, it is all types
// that a row's columns have: languages with types have one for all keys that are not named.
func anything(about string) object {
	types := []object{}
	for _, t := range []string{"string", "number", "boolean"} {
		types = append(types, object{"type": t, "nullable": true})
	}
	return object{"description": about, "anyOf": types}
}

// loose are columns that not every answer has: of sums those of the other grouping, and what a log has besides.
var loose = map[string][]string{
	"held": {"granted"}, "holding_sums": {"pool", "host"}, "host_sums": {"group"}, "host_figures": {"group"},
	"loans":  {"deadline"},
	"cycles": {"cycle", "inputs", "consumers_cycle", "shares_cycle", "shortfalls_cycle", "standing_cycle"},
}

// layouts lays all tables out that answers have.
func layouts() map[string]*decision.Table {
	p, err := plan.Parse("blank", []byte(blankPolicy))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	v, err := engine.Blank(p)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	tables := map[string]*decision.Table{
		"changes": engine.NoChanges(), "held": &v.Holdings.Table, "requests": v.Standing.Requests(),
		"host_figures": v.Standing.Hosts(), "loans": v.Standing.Loans(), "sources": sourcesTable(nil),
		"actors": actorsTable(nil, nil),
		"curve":  curveTable(nil), "host_sums": hostsBy(v.Standing.Hosts(), []string{"plan", "group", "state"}),
		"holding_sums": sumBy(&v.Holdings.Table, nil, groupings["consumer"], nil).table("holdings",
			groupings["consumer"], "leaving"),
		"holdings": tableOf(v.Last.Holdings.Schema().Table()), "hosts": tableOf(v.Last.Hosts.Schema().Table()),
		"owners": tableOf(v.Last.Owners.Schema().Table()),
	}
	inputs, _ := decision.SchemaOf("inputs")
	tables["inputs"] = &decision.Table{Columns: inputs.At(math.MaxInt)}
	cycles := v.Last.Summary.Schema().Table()
	tables["cycles"] = &cycles
	tables["cycles"].Columns = slices.Concat([]decision.Column{{Name: "cycle"}}, cycles.Columns)
	for _, t := range v.Last.Tables() {
		tables[t.Name] = &t
	}
	sums := tables["holding_sums"]
	sums.Columns = append(sums.Columns, decision.Column{Name: "host", Type: decision.Text}) // of the other grouping
	for _, name := range []string{"sub_allocations", "attributes"} {
		tables[name] = v.Standing.Table(name)
	}
	tables["consumers"] = v.Consumers()
	return tables
}

// row is a reference to the schema of a table's rows.
func (b *shapes) row(table string) object {
	name := rowNames[table]
	if name == "" {
		panic("BUG: the rows of " + table + " have no name")
	}
	if b.begin(name, table) {
		b.named[name] = b.columns(table)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (b *shapes) columns(table string) object {
	properties, required := object{}, []string{}
	schema, _ := decision.SchemaOf(table)
	for i := range b.tables[table].Columns {
		c := &b.tables[table].Columns[i]
		if c.Name == blankDimension || strings.HasSuffix(c.Name, "_"+blankDimension) {
			continue
		}
		s, words := columnShape(c), worded[table+"."+c.Name]
		if l := schema.Line(c.Name); l != nil {
			words = l.Words
			describe(s, l)
		}
		if words != nil {
			s["enum"] = append(anys(words), nil)
		}
		properties[c.Name] = s
		if !slices.Contains(loose[table], c.Name) {
			required = append(required, c.Name)
		}
	}
	s := object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	if more := moreColumns[table]; more != nil {
		s["additionalProperties"] = more
	}
	return s
}

// columnShape is the schema of a column's values.
func columnShape(c *decision.Column) (s object) {
	if slices.Contains(booleans, c.Name) {
		return object{"type": "boolean"}
	}
	switch c.Type {
	case decision.Int:
		s = object{"type": "integer", "format": "int64"}
	case decision.Float:
		s = object{"type": "number", "format": "double"}
	case decision.Time:
		s = object{"type": "string", "format": "date-time"}
	case decision.List:
		return object{"type": "array", "items": object{"type": "string"}}
	default:
		s = object{"type": "string", "nullable": true}
	}
	if c.Optional {
		s["nullable"] = true
	}
	return s
}

// describe says of a column what its line does, without the marks of Markdown.
func describe(s object, l *column.Line) {
	if l.Doc != "" {
		s["description"] = markdown.Replace(links.ReplaceAllString(l.Doc, "$1"))
	}
}

// worded are the columns that have one of few words, of tables that the log does not have.
var worded = map[string]decision.Words{
	"changes.change": engine.ChangeKinds, "changes.origin": decision.Origins, "changes.cause": decision.Causes,
	"changes.reason": decision.ReclaimReasons, "curve.unit": {"slots", "units"}, "held.origin": decision.Origins,
	"holding_sums.origin": decision.Origins, "host_figures.state": decision.States, "host_sums.state": decision.States,
}

func anys(words []string) (all []any) {
	for _, w := range words {
		all = append(all, w)
	}
	return all
}

// inputs are the tables that clients send, without a column for each dimension.
var inputs = map[string]column.Schema{
	"hosts": new(cluster.HostTable).Schema(nil), "demand": new(cluster.DemandTable).Schema(nil),
	"asked":   {Lines: slices.Concat(table.Asked(nil).Lines, new(cluster.DemandTable).Schema(nil).Lines)},
	"running": new(cluster.HoldingTable).Schema(), "releases": new(cluster.HoldingTable).Releases(),
}

// moreInputs are the tables of them with columns beside those that are listed.
var moreInputs = map[string]object{
	"hosts":  anything("capacity in a dimension of the policy, or an attribute"),
	"demand": anything("the size of a unit in a dimension of the policy"),
	"asked":  anything("the size of a unit in a dimension of the policy"),
	"runtimes": {"type": "string", "description": "a percentile, such as p50 or p99.9: how long so many units of a " +
		"hundred run at most, such as 10m"},
}

// inputRow is the schema of a row of a table that clients send, as JSON.
func inputRow(table string) object {
	properties, required := object{}, []string{}
	if table == "runtimes" { // its other columns are percentiles
		properties["consumer"] = object{"type": "string",
			"description": "it and all below it that have none of their own"}
		required = append(required, "consumer")
	}
	for _, l := range inputs[table].Lines {
		s := inputShape(&l)
		describe(s, &l)
		if l.Nullable {
			s["nullable"] = true
		} else {
			required = append(required, l.Name)
		}
		properties[l.Name] = s
	}
	s := object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	if more := moreInputs[table]; more != nil {
		s["additionalProperties"] = more
	}
	return s
}

// links are those of Markdown, with their texts; markdown takes other marks away.
var (
	links    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	markdown = strings.NewReplacer("`", "", "*", "")
)

// inputShape is the schema of the values of a column.
func inputShape(l *column.Line) object {
	switch {
	case l.Words != nil:
		return object{"type": "string", "enum": append(anys(l.Words), nil)}
	case column.Slice[bool](l.Of) != nil:
		return object{"type": "boolean"}
	case column.Slice[int64](l.Of) != nil:
		return object{"type": "integer", "format": "int64", "minimum": l.Input.Least, "maximum": cluster.NumberMax}
	}
	return object{"type": "string", "maxLength": l.Input.Most}
}
