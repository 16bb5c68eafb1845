package oracle_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// record is a row of an input or of a table, by column.
type record = map[string]any

// example is a document of a scenario file, as far as the oracle can play it.
type example struct {
	Name    string
	Plan    any
	Hosts   []record
	Running []record
	Steps   []exampleStep
}

// exampleStep is a step of it.
type exampleStep struct {
	At       string
	Plan     any
	Hosts    []record
	Releases []record
	Demand   []record
	Cycles   int
	Stable   bool `yaml:"until_stable"`
	Expect   struct {
		Rows, None map[string][]record
		Sums       []struct {
			Table, Column string
			Where         record
			Equals        float64
		}
	}
}

// startUS is the time 0 of the oracle, 2026-01-05T00:00:00Z.
const startUS = 1767571200e6

// TestCases plays the examples of MD plans against the oracle itself: all that they expect must come out.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		file string
		n    int // scenarios that can be played
	}{{"md.yaml", 20}, {"public.yaml", 15}, {"limits.yaml", 3}, {"reasons.yaml", 10}, {"reclaim.yaml", 2},
		{"placement.yaml", 10}, {"fair.yaml", 10}, {"lending.yaml", 35}, {"windows.yaml", 6}, {"gangs.yaml", 1},
		{"memory.yaml", 7}, {"devices.yaml", 13}} {
		text, err := os.ReadFile("../../testdata/cases/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		played := 0
		for _, doc := range strings.Split(string(text), "\n---\n") {
			var s example
			if err := yaml.Unmarshal([]byte(doc), &s); err != nil {
				continue // something that the oracle does not know, such as several sources
			}
			if !playable(doc) {
				continue
			}
			played++
			t.Run(c.file+"/"+s.Name, func(t *testing.T) { s.play(t) })
		}
		if played < c.n {
			t.Errorf("%s: %d scenarios played, want %d", c.file, played, c.n)
		}
	}
}

// playable tells whether the oracle knows all keys of a scenario.
func playable(doc string) bool {
	for _, word := range []string{"_file:", "runtime:", "unknown:", "force:", "renamed_from:", "table: cycles",
		"cycles: [{", "holdings",
		"limit_", "slot_plans:"} {
		if strings.Contains(doc, word) {
			return false
		}
	}
	return true
}

// stage is a scenario being played.
type stage struct {
	*oracle.Cluster
	t      *testing.T
	policy *plan.Policy
	nowUS  int64
	last   oracle.Result
	lost   map[[2]string]int64 // unit-milliseconds so far, by plan and consumer, of it and those below it
}

func (s *example) play(t *testing.T) {
	g := &stage{t: t, policy: compiled(t, s.Plan), nowUS: -1, lost: map[[2]string]int64{}}
	g.Cluster = oracle.New(g.policy)
	g.SetHosts(g.hostRows(s.Hosts), true)
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Plan != nil {
			g.policy = compiled(t, st.Plan)
			g.SetPolicy(g.policy, false)
		}
		if st.Hosts != nil {
			g.SetHosts(g.hostRows(st.Hosts), false)
		}
		g.Release(holdings(st.Releases))
		if st.Demand != nil {
			g.SetDemand("default", g.demandRows(st.Demand))
		}
		if i == 0 {
			g.Running(holdings(s.Running))
		}
		g.step(i+1, st)
	}
}

// step runs a step's cycles and looks at what they decided.
func (g *stage) step(i int, st *exampleStep) {
	sums := make([]float64, len(st.Expect.Sums))
	for n, done := 1, false; !done; n++ {
		g.cycle(st.At, n == 1)
		for k, sum := range st.Expect.Sums {
			for _, row := range g.table(sum.Table) {
				if matches(row, sum.Where) {
					v, _ := number(row[sum.Column])
					sums[k] += v
				}
			}
		}
		for table, rows := range st.Expect.None {
			for _, row := range rows {
				if g.has(table, row) {
					g.t.Errorf("step %d: %s has %v", i, table, row)
				}
			}
		}
		if st.Stable && n > 1000 {
			g.t.Fatalf("step %d: no rest", i)
		}
		r := &g.last
		done = n >= max(1, st.Cycles) && (!st.Stable || len(r.Grants)+len(r.Releases)+len(r.Reclaims)+r.Leaving == 0)
	}
	for table, rows := range st.Expect.Rows {
		for _, row := range rows {
			if !g.has(table, row) {
				g.t.Errorf("step %d: %s has no %v, but %v", i, table, row, g.table(table))
			}
		}
	}
	for k, sum := range st.Expect.Sums {
		if math.Abs(sums[k]-sum.Equals) > 1e-4 {
			g.t.Errorf("step %d: sum of %s in %s where %v is %v, want %v", i, sum.Column, sum.Table, sum.Where, sums[k],
				sum.Equals)
		}
	}
}

// cycle runs one, an interval after the last one or at the time that a step gives for its first.
func (g *stage) cycle(at string, first bool) {
	g.nowUS += g.policy.IntervalUS
	if g.nowUS < g.policy.IntervalUS { // the very first
		g.nowUS = 0
	}
	if first && at != "" {
		when, err := time.Parse(time.RFC3339, at)
		if err != nil {
			g.t.Fatal(err)
		}
		g.nowUS = when.UnixMicro() - startUS
	}
	g.last = g.CycleAt(g.nowUS)
	for _, u := range g.last.Releases {
		for path := u.Key.Consumer; len(path) > 1; path = path[:strings.LastIndexByte(path, '/')] {
			g.lost[[2]string{u.Key.Plan, path}] += u.LostMS
		}
	}
}

// compiled is a policy that was decoded from YAML: JSON is YAML too.
func compiled(t *testing.T, v any) *plan.Policy {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("case.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func (g *stage) hostRows(rows []record) (list []oracle.Host) {
	for _, row := range rows {
		h := oracle.Host{Size: map[string]int64{}, Attr: map[string]any{}}
		for name, v := range row {
			n, isNumber := number(v)
			_, isDim := g.policy.Dimension(name)
			switch {
			case name == "host":
				h.Name = text(v)
			case name == "state":
				h.State = text(v)
			case isDim:
				h.Size[name] = int64(n)
			case isNumber:
				h.Attr[name] = n
			default:
				h.Attr[name] = v
			}
		}
		list = append(list, h)
	}
	return list
}

func (g *stage) demandRows(rows []record) (list []oracle.Demand) {
	for _, row := range rows {
		d := oracle.Demand{MaxPerHost: plan.Unlimited, Size: map[string]int64{}, Plan: text(row["plan"]),
			Consumer:   text(row["consumer"]),
			Allocation: text(row["allocation"]), Sub: text(row["sub"]), Requirement: text(row["requirement"]),
			Together: text(row["together"])}
		for name, v := range row {
			n, _ := number(v)
			if _, isDim := g.policy.Dimension(name); isDim {
				d.Size[name] = int64(n)
			}
			switch name {
			case "units":
				d.Units = int64(n)
			case "max_per_host":
				d.MaxPerHost = int64(n)
			case "min_units":
				d.MinUnits = int64(n)
			}
		}
		list = append(list, d)
	}
	return list
}

func holdings(rows []record) (list []oracle.Holding) {
	for _, row := range rows {
		n, _ := number(row["units"])
		done, _ := row["done"].(bool)
		list = append(list, oracle.Holding{Consumer: text(row["consumer"]), Allocation: text(row["allocation"]),
			Sub:  text(row["sub"]),
			Host: text(row["host"]), Units: int64(n), Done: done, Device: text(row["device"])})
	}
	return list
}

// table is a table of the last cycle.
func (g *stage) table(name string) (rows []record) {
	r := &g.last
	of := func(k oracle.Key, more record) {
		more["plan"], more["consumer"], more["allocation"], more["sub"] = k.Plan, k.Consumer, k.Allocation, k.Sub
		rows = append(rows, more)
	}
	switch name {
	case "grants":
		for _, u := range r.Grants {
			of(u.Key, record{"host": u.Host, "units": u.Units, "origin": u.Origin, "lender": u.Lender, "pool": u.Pool,
				"device": u.Device})
		}
	case "releases":
		for _, u := range r.Releases {
			of(u.Key, record{"host": u.Host, "units": u.Units, "origin": u.Origin, "lender": u.Lender, "cause": u.Cause,
				"unit_seconds_lost": float64(u.LostMS) / 1000, "device": u.Device})
		}
	case "reclaims":
		for _, u := range r.Reclaims {
			of(u.Key, record{"host": u.Host, "units": u.Units, "action": u.Action, "reason": u.Reason,
				"for_consumer":   u.For.Consumer,
				"for_allocation": u.For.Allocation, "for_sub": u.For.Sub, "device": u.Device,
				"deadline": time.UnixMicro(startUS + u.DeadlineUS).UTC().Format(time.RFC3339)})
		}
	case "shortfalls":
		for _, s := range r.Shortfalls {
			of(s.Key, record{"units_short": s.Units, "reason": s.Reason, "dimension": s.Dimension, "blocker": s.Blocker,
				"until": time.UnixMicro(startUS + s.UntilUS).UTC().Format(time.RFC3339)})
		}
	case "shares":
		for _, s := range r.Shares {
			usage, _ := s.Usage.Float64()
			row := record{"plan": s.Plan, "consumer": s.Path, "pool": s.Pool, "priority": s.Priority, "ratio": s.Ratio,
				"usage":        usage,
				"usage_demand": math.Ldexp(float64(s.Demand), -48), "usage_quota": math.Ldexp(float64(s.Quota), -48),
				"units_held": s.UnitsHeld, "units_wanted": s.UnitsWanted}
			if s.Lowered > 0 {
				row["decayed_usage"], row["effective_ratio"] = math.Ldexp(float64(s.Decayed), -48),
					float64(s.Ratio*s.Lowered)/100
			}
			rows = append(rows, row)
		}
	case "consumers":
		for _, c := range r.Consumers {
			row := record{"plan": c.Plan, "consumer": c.Path, "demand": c.Demand, "held": c.Held, "short": c.Short,
				"unit_seconds_lost": float64(g.lost[[2]string{c.Plan, c.Path}]) / 1000}
			if c.Budget.Hours > 0 {
				row["budget"], row["budget_used"] = c.Budget.Hours, c.BudgetUsed
				if c.Budget.Of != plan.BudgetOfUnits {
					row["budget_dimension"] = c.Budget.What
				}
			}
			for d, dim := range g.policy.Dimensions {
				for column, v := range map[string][]int64{"held": c.Amount, "static_quota": c.StaticPart,
					"configured": c.Configured, "owned": c.Owned,
					"reserved": c.Reserved, "lent": c.Lent} {
					row[column+"_"+dim] = v[d]
				}
			}
			rows = append(rows, row)
		}
	case "ownership":
		for _, o := range r.Owned {
			rows = append(rows, record{"plan": o.Plan, "consumer": o.Consumer, "host": o.Host, "action": o.Action,
				o.Dimension: o.Amount})
		}
	default:
		g.t.Fatalf("the oracle has no table %s", name)
	}
	return rows
}

func (g *stage) has(table string, want record) bool {
	for _, row := range g.table(table) {
		if matches(row, want) {
			return true
		}
	}
	return false
}

// matches tells whether a row has all values that are wanted.
func matches(row, want record) bool {
	for column, v := range want {
		got, there := row[column]
		a, isNumber := number(v)
		b, _ := number(got)
		switch {
		case v == nil:
			if there && text(got) != "" {
				return false
			}
		case !there, isNumber && math.Abs(a-b) > 1e-4, !isNumber && text(got) != text(v):
			return false
		}
	}
	return true
}

// number is a decoded number as float64.
func number(v any) (n float64, ok bool) {
	switch v.(type) {
	case int, int64, uint64, float64:
		n, err := strconv.ParseFloat(fmt.Sprint(v), 64)
		return n, err == nil
	}
	return 0, false
}

// text is a value as text, "" for none.
func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
