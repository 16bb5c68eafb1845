package foreign

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// none is an amount that is not given.
const none = plan.Unlimited

// consumersMax bounds the consumers of a policy that is made here.
const consumersMax = 100_000

// policy is a policy file on its way: what an importer found, in the words of stint.
type policy struct {
	heading   []string // lines of comment
	cluster   string
	names     names
	dims      []string
	groups    []group
	consumers []string                 // paths, parents before children
	runtimes  map[string]time.Duration // min_runtime, by path
	plans     []madePlan
	slots     []*slotPlan
	timezone  string // "": none
}

// group is a resource group: its hosts are chosen or listed. slots is what a host of it has of them, "" the dimension.
type group struct {
	name, choose string // choose: a select expression
	hosts        []string
	slots        string
}

// text writes the group.
func (g *group) text(b *strings.Builder) {
	fmt.Fprintf(b, "  - {name: %s", quoted(g.name))
	if g.choose != "" {
		fmt.Fprintf(b, ", select: %s", quoted(g.choose))
	} else {
		list := make([]string, len(g.hosts))
		for i, h := range g.hosts {
			list[i] = quoted(h)
		}
		fmt.Fprintf(b, ", hosts: [%s]", strings.Join(list, ", "))
	}
	if g.slots != "" {
		fmt.Fprintf(b, ", slots: %s", quoted(g.slots))
	}
	b.WriteString("}\n")
}

// madePlan is an MD plan.
type madePlan struct {
	name    string
	keys    []string // further keys, such as "overcommit: {ncpus: 1.5}"
	groups  []string
	entries []*entry // by path, parents before children
}

// entry is what a consumer has in a plan. Amounts are by dimension, none where not given.
type entry struct {
	path     string
	own      []owned
	reserve  []int64 // nil: nothing
	keepsAll bool    // all that it owns is reserved
	priority int
	ratio    int64 // 1 where the files tell nothing
	limit    []int64
	prefers  map[string]int // resource groups, 1 the best
	asks     []bool         // by dimension: what it may ask for; nil: all
	remark   string         // beside the entry: where it comes from
	rules    []string       // further rules of ownership
	keys     []string       // further keys, such as "rank: 2"
}

type owned struct {
	group  string
	amount []int64
}

// quoted is a text as YAML reads it back.
func quoted(s string) string { return strconv.Quote(s) }

// nameFault tells why a text cannot be a consumer's name, "" when it can.
func nameFault(s string) string {
	switch {
	case s == "":
		return "is empty"
	case strings.Contains(s, "/"):
		return "has a / in it, which separates the names of a path"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "has control characters"
	case len(s) > 200:
		return "is longer than 200 bytes"
	}
	return ""
}

// text is the policy file.
func (p *policy) text() []byte {
	var b strings.Builder
	for _, line := range p.heading {
		fmt.Fprintf(&b, "# %s\n", line)
	}
	fmt.Fprintf(&b, "stint: 1\ncluster: %s\n", quoted(p.cluster))
	if p.timezone != "" {
		fmt.Fprintf(&b, "timezone: %s\n", p.timezone)
	}
	fmt.Fprintf(&b, "dimensions: [%s]\nresource_groups:\n", strings.Join(p.dims, ", "))
	for i := range p.groups {
		p.groups[i].text(&b)
	}
	b.WriteString("consumers:\n")
	for _, c := range p.consumers {
		least := ""
		if d, ok := p.runtimes[c]; ok {
			least = fmt.Sprintf(", min_runtime: %ds", int64(d.Seconds()))
		}
		fmt.Fprintf(&b, "  - {path: %s%s}\n", quoted(c), least)
	}
	if len(p.slots) > 0 {
		b.WriteString("slot_plans:\n")
	}
	for _, s := range p.slots {
		s.text(&b)
	}
	if len(p.plans) > 0 {
		b.WriteString("md_plans:\n")
	}
	for i := range p.plans {
		m := &p.plans[i]
		fmt.Fprintf(&b, "  - name: %s\n", quoted(m.name))
		for _, k := range m.keys {
			fmt.Fprintf(&b, "    %s\n", k)
		}
		b.WriteString("    resource_groups:\n")
		for _, g := range m.groups {
			fmt.Fprintf(&b, "      - {name: %s}\n", quoted(g))
		}
		b.WriteString("    consumers:\n")
		for _, e := range m.entries {
			p.entry(&b, e)
		}
	}
	return []byte(b.String())
}

// entry writes a consumer's entry in a plan: on one line, and a line for each of its rules of ownership.
func (p *policy) entry(b *strings.Builder, e *entry) {
	remark := ""
	if e.remark != "" {
		remark = "  # " + e.remark
	}
	share := fmt.Sprintf("ratio: %d", e.ratio)
	if e.priority != 0 {
		share = fmt.Sprintf("priority: %d, %s", e.priority, share)
	}
	if slices.ContainsFunc(e.limit, func(n int64) bool { return n != none }) {
		share += ", limit: " + p.amounts(e.limit)
	}
	fmt.Fprintf(b, "      - path: %s%s\n", quoted(e.path), remark)
	for _, k := range e.keys {
		fmt.Fprintf(b, "        %s\n", k)
	}
	if len(e.own)+len(e.rules) > 0 {
		b.WriteString("        own:\n")
	}
	for _, rule := range e.rules {
		fmt.Fprintf(b, "          - %s\n", rule)
	}
	for _, o := range e.own {
		fmt.Fprintf(b, "          - {group: %s, amount: %s, partial: true}\n", quoted(o.group), p.amounts(o.amount))
	}
	switch {
	case len(e.own) == 0:
	case e.keepsAll:
		b.WriteString("        reserve: {percent: 100}\n")
	case slices.ContainsFunc(e.reserve, func(n int64) bool { return n > 0 }):
		some := slices.Clone(e.reserve)
		for d, n := range some {
			if n == 0 {
				some[d] = none
			}
		}
		fmt.Fprintf(b, "        reserve: {amount: %s}\n", p.amounts(some))
	}
	if len(e.prefers) > 1 {
		var list []string
		for _, g := range inOrder(e.prefers) {
			list = append(list, fmt.Sprintf("%s: %d", quoted(g), e.prefers[g]))
		}
		fmt.Fprintf(b, "        preference: {%s}\n", strings.Join(list, ", "))
	}
	fmt.Fprintf(b, "        share: {%s}\n", share)
}

// amounts is a mapping from dimensions to amounts, of those that are given.
func (p *policy) amounts(v []int64) string {
	var parts []string
	for d, n := range v {
		if n != none {
			parts = append(parts, fmt.Sprintf("%s: %d", p.dims[d], n))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// filled is a slice of n equal amounts.
func filled(n int, v int64) []int64 { return slices.Repeat([]int64{v}, n) }

// ratios makes whole numbers in the proportions of weights, the smallest that keep them to a millionth; a weight above
// 0 is never 0.
func ratios(weights []float64) []int64 {
	const weightMax = 1e12
	most := 0.0
	for _, w := range weights {
		most = max(most, min(w, weightMax))
	}
	if most <= 0 {
		return filled(len(weights), 1)
	}
	scale := 1e6
	for most*scale > weightMax {
		scale /= 10
	}
	var divisor int64
	list := make([]int64, len(weights))
	for i, w := range weights {
		if list[i] = int64(min(w, weightMax)*scale + 0.5); list[i] == 0 && w > 0 {
			list[i] = 1
		}
		divisor = gcd(divisor, list[i])
	}
	for i := range list {
		list[i] /= divisor
	}
	return list
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// finish makes a result of the policy with its hosts and demand, and proves it: stint reads the policy and finds in it
// what the importer put there, takes the tables, and runs a cycle. made tells that the demand was made by the importer,
// so that a unit of it that fits nowhere is an error; of demand that the files give, such units are listed.
func (p *policy) finish(r *Result, hosts []hostRow, demand *cluster.DemandTable, origin origin) (*Result, error) {
	read, err := p.build(r, hosts)
	if err != nil {
		return nil, err
	}
	r.demand(demand)
	large, err := prove(read, r.Dataset, r.Lives != nil)
	switch {
	case err != nil:
		return nil, err
	case large.units > 0 && origin == demandMade && fitAll(demand, hosts, p.dims):
		r.Report.Add(r.Name, 0, fmt.Sprintf("%d units of demand", large.units), "they fit hosts but no part of a host "+
			"that is owned: promises of one resource are large beside those of another; the first: "+large.reason)
	case large.units > 0 && origin == demandMade:
		return nil, fmt.Errorf("%w: %d units of the demand that it made fit no host: %s", ErrImporter, large.units,
			large.reason)
	case large.units > 0:
		r.Report.Add(r.Name, 0, fmt.Sprintf("%d units of demand", large.units),
			"each is larger than every host that it may use; the first: "+large.reason)
	}
	return r, nil
}

// demand takes the table of demand, unless it has no rows: only CSV can tell an empty table from a broken file.
func (r *Result) demand(t *cluster.DemandTable) {
	if t.Rows == 0 {
		r.Report.Add(r.Name, 0, "demand", "nobody asks for anything that a host has: there is no table of it")
		return
	}
	r.Dataset.Demand = t
}

// fitAll tells whether a unit of each row fits a host that is open, whoever owns it.
func fitAll(demand *cluster.DemandTable, hosts []hostRow, dims []string) bool {
	for row := range demand.Rows {
		if !slices.ContainsFunc(hosts, func(h hostRow) bool {
			for d, name := range dims {
				if demand.Size[d][row] > h.size[name] {
					return false
				}
			}
			return !h.closed && !h.gone
		}) {
			return false
		}
	}
	return true
}

// planPlace is a place in the policy that an error names; nobody has that file.
var planPlace = regexp.MustCompile(`(?m)^plan\.yaml:(\d+)(:\d+)?: `)

// inFiles replaces the places that errors of the policy name by the consumers' entries there and where these come from;
// other places are left out.
func inFiles(errors, text string) string {
	lines := strings.Split(text, "\n")
	return planPlace.ReplaceAllStringFunc(errors, func(place string) string {
		n, err := strconv.Atoi(planPlace.FindStringSubmatch(place)[1])
		if err != nil {
			return place
		}
		for i := min(n, len(lines)) - 1; i >= 0; i-- {
			if _, entry, ok := strings.Cut(lines[i], "- path: "); ok {
				path, remark, _ := strings.Cut(entry, "  # ")
				return strings.TrimSpace(path+" "+remark) + ": "
			}
		}
		return ""
	})
}

// origin tells where the rows of demand come from.
type origin uint8

const (
	demandRead origin = iota // from the files
	demandMade               // from the importer: every leaf asks for all there is
)

// build writes the policy, reads it back, and makes the table of hosts. An error of the policy is one of the files
// together: their statements contradict each other.
func (p *policy) build(r *Result, hosts []hostRow) (*plan.Policy, error) {
	if n := len(p.dims); n > plan.DimensionsMax {
		return nil, fmt.Errorf("the files name %d resources; a policy has at most %d dimensions: leave out the "+
			"resources that nobody is short of (%s)", n, plan.DimensionsMax, strings.Join(p.dims, ", "))
	}
	text := p.text()
	read, err := plan.Parse("plan.yaml", text)
	if err != nil {
		return nil, fmt.Errorf("the files contradict each other:\n%s", inFiles(err.Error(), string(text)))
	}
	if err := p.reconcile(read); err != nil {
		return nil, err
	}
	r.Report.Renamed = p.names.renamed
	r.Dataset = &datasets.Dataset{Dimensions: p.dims, Hosts: hostTable(p.dims, hosts), Plan: text}
	return read, nil
}
