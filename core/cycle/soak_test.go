package cycle_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestSoak plays as many random cases as STINT_SOAK says, from the seed STINT_SEED or a random one, and prints how
// often each situation occurred: a rule that never came up was not tested.
func TestSoak(t *testing.T) {
	text := os.Getenv("STINT_SOAK")
	if text == "" {
		t.Skip("STINT_SOAK is not set: it gives the number of random cases")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("STINT_SOAK=%q: want a number of cases", text)
	}
	seed := rand.Uint64()
	if text := os.Getenv("STINT_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STINT_SEED=%q: %v", text, err)
		}
	}
	t.Logf("seed %d", seed)
	counts, began := map[string]int{}, time.Now()
	check(t, n, seed, func(p *player) { p.count(counts) })
	t.Logf("%d cases, %d cycles in %v", counts["case"], counts["cycle"], time.Since(began).Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-32s %8d  %6.2f %% of cases", name, counts[name], 100*float64(counts[name])/float64(counts["case"]))
	}
	for _, name := range situations {
		if n >= 1000 && counts[name]*1000 < counts["case"] {
			t.Errorf("%s occurred %d times in %d cases: less than 0.1 %%", name, counts[name], counts["case"])
		}
	}
}

// situations must each occur in one case of a thousand.
var situations = []string{
	"release client", "release demand_gone", "release done", "release grace_expired", "release host_lost",
	"reclaim cancelled", "reclaim issued", "revised policy",
	"short fragmented", "short lower_priority", "short max_per_host", "short no_host_matches", "short over_quota",
	"short pool_exhausted", "short share_limit", "short too_big",
	"placement balanced", "placement best_fit", "placement stacked", "requirement order", "requirement select",
	"plain first cycle", "running", "full host table", "equal priority and ratio", "equal priority, other ratio", "other priority",
	"host closed", "host draining", "host unavail", "overcommit", "several plans",
}

// count adds the situations of a case, each as often as it occurred in another cycle or row.
func (p *player) count(n map[string]int) {
	n["case"]++
	n["cycle"] += len(p.seen)
	add := func(name string, is bool) {
		if is {
			n[name]++
		}
	}
	for _, r := range p.seen {
		for _, u := range r.Releases {
			n["release "+u.Cause]++
		}
		for _, u := range r.Reclaims {
			n["reclaim "+u.Cause]++
		}
		for _, s := range r.Shortfalls {
			n["short "+s.Reason]++
		}
		for _, g := range r.Grants {
			m := p.plans[slices.IndexFunc(p.plans, func(m mdPlan) bool { return m.name == g.Plan })]
			n["placement "+m.placement]++
			add("overcommit", len(m.overcommit) > 0)
		}
		p.countShares(n, r)
	}
	for i, s := range p.steps {
		add("plain first cycle", i == 0 && p.plain)
		add("running", len(s.running) > 0)
		add("full host table", s.full && i > 0)
		for _, h := range s.hosts {
			add("host "+h.State, true)
		}
		for _, d := range s.demand {
			for _, r := range d.rows {
				add("requirement select", strings.Contains(r.Requirement, "select"))
				add("requirement order", strings.Contains(r.Requirement, "order"))
			}
		}
	}
	add("several plans", len(p.plans) > 1)
	n["revised policy"] += p.revised
}

// countShares counts pairs of siblings that both want something of a pool, by what decides between them.
func (p *player) countShares(n map[string]int, r oracle.Result) {
	for i, a := range r.Shares {
		for _, b := range r.Shares[i+1:] {
			switch parent := a.Path[:strings.LastIndex(a.Path, "/")+1]; {
			case a.Plan != b.Plan || a.Path == "/" || b.Path[:strings.LastIndex(b.Path, "/")+1] != parent:
			case a.Priority != b.Priority:
				n["other priority"]++
			case a.Ratio != b.Ratio:
				n["equal priority, other ratio"]++
			default:
				n["equal priority and ratio"]++
			}
		}
	}
}

// scenario renders a case as a scenario file (SPEC 9.1). What such a file cannot say stands in comments.
func (p *player) scenario() string {
	var b strings.Builder
	b.WriteString("name: a random case\nplan:\n")
	for s := range strings.Lines(p.yaml()) {
		b.WriteString("  " + s)
	}
	list := func(indent, name, comment string, rows []map[string]any) {
		fmt.Fprintf(&b, "%s%s:%s\n", indent, name, comment)
		if len(rows) == 0 {
			fmt.Fprintf(&b, "%s  []\n", indent)
		}
		for _, row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(&b, "%s  - %s\n", indent, text)
		}
	}
	for i, s := range p.steps {
		if i == 0 {
			list("", "hosts", "", hostRows(s.hosts))
			if len(s.running) > 0 {
				list("", "running", " # of the source "+s.source, holdingRows(s.running, false))
			}
			b.WriteString("steps:\n")
		}
		fmt.Fprintf(&b, "  - cycles: %d\n", s.cycles+1)
		if i > 0 && len(s.hosts) > 0 {
			comment := ""
			if s.full {
				comment = " # a full table: hosts that it does not name are gone"
			}
			list("    ", "hosts", comment, hostRows(s.hosts))
		}
		if len(s.demand) > 0 {
			b.WriteString("    demand:\n")
		}
		for _, d := range s.demand {
			list("      ", d.source, "", demandRows(d.rows))
		}
		if len(s.releases) > 0 {
			comment := ""
			if s.late {
				comment = " # after the demand"
			}
			list("    ", "releases", comment, holdingRows(s.releases, true))
		}
	}
	return b.String()
}

func hostRows(rows []oracle.Host) (list []map[string]any) {
	for _, h := range rows {
		row := map[string]any{"host": h.Name, "state": h.State}
		for d, n := range h.Size {
			row[d] = n
		}
		maps.Copy(row, h.Attr)
		list = append(list, row)
	}
	return list
}

func demandRows(rows []oracle.Demand) (list []map[string]any) {
	for _, r := range rows {
		row := map[string]any{"plan": r.Plan, "consumer": r.Consumer, "allocation": r.Allocation, "sub": r.Sub, "units": r.Units}
		for d, n := range r.Size {
			row[d] = n
		}
		if r.Requirement != "" {
			row["requirement"] = r.Requirement
		}
		if r.MaxPerHost != plan.Unlimited {
			row["max_per_host"] = r.MaxPerHost
		}
		list = append(list, row)
	}
	return list
}

func holdingRows(rows []oracle.Holding, done bool) (list []map[string]any) {
	for _, h := range rows {
		row := map[string]any{"consumer": h.Consumer, "allocation": h.Allocation, "sub": h.Sub, "host": h.Host, "units": h.Units}
		if done {
			row["done"] = h.Done
		}
		list = append(list, row)
	}
	return list
}

// tables turns rows into the input tables of core/cluster. So many junk words stand first in every dictionary.
type tables struct {
	p    *plan.Policy
	junk int
}

// text makes a text column; "" is Null.
func (w tables) text(words ...string) cluster.TextColumn {
	c := cluster.TextColumn{Names: &cluster.Names{}}
	for i := range w.junk {
		c.Names.InternString(fmt.Sprintf("junk%d", i))
	}
	for _, s := range words {
		code := cluster.Null
		if s != "" {
			code = c.Names.InternString(s)
		}
		c.Code = append(c.Code, code)
	}
	return c
}

// column collects one value of every row.
func column[R, V any](rows []R, of func(R) V) []V {
	list := make([]V, len(rows))
	for i, r := range rows {
		list[i] = of(r)
	}
	return list
}

// sizes makes a column per dimension that any row names.
func sizes[R any](w tables, rows []R, of func(R) map[string]int64) [][]int64 {
	list := make([][]int64, len(w.p.Dimensions))
	for d, name := range w.p.Dimensions {
		if slices.ContainsFunc(rows, func(r R) bool { _, ok := of(r)[name]; return ok }) {
			list[d] = column(rows, func(r R) int64 { return of(r)[name] })
		}
	}
	return list
}

func (w tables) hosts(rows []oracle.Host) *cluster.HostTable {
	t := &cluster.HostTable{Rows: len(rows), Host: w.text(column(rows, func(h oracle.Host) string { return h.Name })...),
		State: column(rows, func(h oracle.Host) cluster.HostState {
			return cluster.HostState(slices.Index(cluster.HostStates[:], h.State))
		}),
		Size: sizes(w, rows, func(h oracle.Host) map[string]int64 { return h.Size })}
	if rows[0].Attr == nil { // a table of states only
		return t
	}
	valid := slices.Repeat([]bool{true}, len(rows))
	for _, name := range slices.Sorted(maps.Keys(rows[0].Attr)) {
		c := cluster.AttrColumn{Name: name, Valid: valid}
		switch rows[0].Attr[name].(type) {
		case float64:
			c.Kind, c.Number = plan.Number, column(rows, func(h oracle.Host) float64 { return h.Attr[name].(float64) })
		case bool:
			c.Kind, c.Bool = plan.Boolean, column(rows, func(h oracle.Host) bool { return h.Attr[name].(bool) })
		case string:
			c.Kind, c.Text = plan.Text, w.text(column(rows, func(h oracle.Host) string { return h.Attr[name].(string) })...)
		}
		t.Attr = append(t.Attr, c)
	}
	return t
}

func (w tables) demand(rows []oracle.Demand) *cluster.DemandTable {
	return &cluster.DemandTable{Rows: len(rows),
		Consumer:    w.text(column(rows, func(r oracle.Demand) string { return r.Consumer })...),
		Allocation:  w.text(column(rows, func(r oracle.Demand) string { return r.Allocation })...),
		Sub:         w.text(column(rows, func(r oracle.Demand) string { return r.Sub })...),
		Plan:        w.text(column(rows, func(r oracle.Demand) string { return r.Plan })...),
		Requirement: w.text(column(rows, func(r oracle.Demand) string { return r.Requirement })...),
		Units:       column(rows, func(r oracle.Demand) int64 { return r.Units }),
		Size:        sizes(w, rows, func(r oracle.Demand) map[string]int64 { return r.Size }),
		MaxPerHost:  column(rows, func(r oracle.Demand) int64 { return r.MaxPerHost })}
}

func (w tables) holdings(rows []oracle.Holding) *cluster.HoldingTable {
	return &cluster.HoldingTable{Rows: len(rows),
		Consumer:   w.text(column(rows, func(h oracle.Holding) string { return h.Consumer })...),
		Allocation: w.text(column(rows, func(h oracle.Holding) string { return h.Allocation })...),
		Sub:        w.text(column(rows, func(h oracle.Holding) string { return h.Sub })...),
		Host:       w.text(column(rows, func(h oracle.Holding) string { return h.Host })...),
		Units:      column(rows, func(h oracle.Holding) int64 { return h.Units }),
		Done:       column(rows, func(h oracle.Holding) bool { return h.Done })}
}
