package oracle_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

var smokes = flag.Uint64("smokes", 300, "how many random slot clusters are played")

// row is a row of a table by column.
type row = map[string]any

// scenario is as much of a scenario file (SPEC 9.1) as the examples use.
type scenario struct {
	Name           string
	Plan           row
	Hosts, Running []row
	Steps          []struct {
		At                      string
		Plan                    row
		Demand, Hosts, Releases []row
		Cycles                  int
		UntilStable             bool `yaml:"until_stable"`
		Expect                  struct {
			Rows, None map[string][]row
			Sums       []struct {
				Table, Column string
				Where         row
				Equals        int64
			}
		}
	}
}

// TestScenarios plays the worked examples of slot plans.
func TestScenarios(t *testing.T) {
	text, err := os.ReadFile("../../testdata/cases/slot.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var s scenario
		if err := d.Decode(&s); err != nil {
			break
		}
		t.Run(s.Name, s.play)
	}
}

func (s scenario) play(t *testing.T) {
	o := oracle.New(parse(t, s.Plan))
	o.SetHosts(hostRows(s.Hosts), true)
	start, cycles := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), 0
	for i, step := range s.Steps {
		if at, err := time.Parse(time.RFC3339, step.At); err == nil {
			start = at.Add(-time.Duration(cycles) * time.Minute)
		}
		if step.Plan != nil {
			o.SetPolicy(parse(t, step.Plan), false)
		}
		o.SetHosts(hostRows(step.Hosts), false)
		o.Release(holdingRows(step.Releases))
		if step.Demand != nil {
			o.SetDemand("default", demandRows(step.Demand))
		}
		if i == 0 {
			o.Running(holdingRows(s.Running))
		}
		var seen []map[string][]row // by cycle
		var last oracle.Result
		for n := 0; n < max(1, step.Cycles) || step.UntilStable; n++ {
			r := o.Cycle()
			cycles++
			seen = append(seen, tables(r, start.Add(-time.Minute)))
			if step.UntilStable && still(last, r) || n > 60 {
				break
			}
			last = r
		}
		now := seen[len(seen)-1]
		for table, rows := range step.Expect.Rows {
			for _, want := range rows {
				if len(matching(now[table], want)) == 0 {
					t.Errorf("step %d: no %s %v in\n%v", i+1, table, want, lines(now[table]))
				}
			}
		}
		for _, tables := range seen {
			for table, rows := range step.Expect.None {
				for _, not := range rows {
					if got := matching(tables[table], not); len(got) > 0 {
						t.Errorf("step %d: %s %v", i+1, table, got)
					}
				}
			}
		}
		for _, sum := range step.Expect.Sums {
			got := int64(0)
			for _, tables := range seen {
				for _, r := range matching(tables[sum.Table], sum.Where) {
					got += r[sum.Column].(int64)
				}
			}
			if got != sum.Equals {
				t.Errorf("step %d: %s %v: Σ %s = %d, want %d", i+1, sum.Table, sum.Where, sum.Column, got, sum.Equals)
			}
		}
	}
}

// still tells whether a cycle did nothing after the one before it (CYC-2).
func still(before, r oracle.Result) bool {
	return len(r.Grants)+len(r.Releases)+len(r.Reclaims)+r.Leaving+r.Promised == 0 &&
		reflect.DeepEqual(before.Held, r.Held)
}

func parse(t *testing.T, policy any) *plan.Policy {
	t.Helper()
	text, err := yaml.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Parse("case.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func hostRows(rows []row) (list []oracle.Host) {
	for _, r := range rows {
		h := oracle.Host{Name: r["host"].(string), Size: map[string]int64{}, Attr: map[string]any{}}
		for name, v := range r {
			switch v := v.(type) {
			case uint64:
				h.Size[name] = int64(v)
			case string:
				if name == "state" {
					h.State = v
				}
			}
		}
		list = append(list, h)
	}
	return list
}

func demandRows(rows []row) (list []oracle.Demand) {
	for _, r := range rows {
		d := oracle.Demand{Consumer: r["consumer"].(string), Allocation: r["allocation"].(string),
			Units: int64(r["units"].(uint64)), MaxPerHost: plan.Unlimited}
		list = append(list, d)
	}
	return list
}

func holdingRows(rows []row) (list []oracle.Holding) {
	for _, r := range rows {
		list = append(list, oracle.Holding{Consumer: r["consumer"].(string), Allocation: r["allocation"].(string),
			Host: r["host"].(string), Units: int64(r["units"].(uint64))})
	}
	return list
}

// tables are the tables of a cycle, as far as examples look at them.
func tables(r oracle.Result, start time.Time) map[string][]row {
	m := map[string][]row{}
	for name, list := range map[string][]oracle.Units{"grants": r.Grants, "releases": r.Releases} {
		for _, u := range list {
			m[name] = append(m[name], row{"consumer": u.Consumer, "host": u.Host, "cause": u.Cause, "origin": u.Origin,
				"lender": u.Lender, "pool": u.Pool, "units": u.Units})
		}
	}
	for _, u := range r.Reclaims {
		m["reclaims"] = append(m["reclaims"],
			row{"consumer": u.Consumer, "host": u.Host, "action": u.Action, "reason": u.Reason,
				"for_consumer": u.For.Consumer, "units": u.Units,
				"deadline": start.Add(time.Duration(u.DeadlineUS) * time.Microsecond).Format(time.RFC3339)})
	}
	for _, c := range r.Consumers {
		f := c.Slots
		m["consumers"] = append(m["consumers"],
			row{"consumer": c.Path, "demand": c.Demand, "held": c.Held, "short": c.Short,
				"owned_configured": f.OwnedConfigured, "owned": f.Owned, "reserved": f.Reserved, "slot_limit": f.Limit,
				"static_quota": f.StaticQuota, "quota": f.Quota, "held_owned": f.HeldOwned, "held_shared": f.HeldShared,
				"held_borrowed": f.HeldBorrowed, "lent": f.Lent, "free": f.Free})
	}
	for _, s := range r.Shortfalls {
		m["shortfalls"] = append(m["shortfalls"],
			row{"consumer": s.Consumer, "allocation": s.Allocation, "units_short": s.Units,
				"reason": s.Reason, "blocker": s.Blocker})
	}
	return m
}

// matching are the rows that have what a partial row says.
func matching(rows []row, want row) (list []row) {
	for _, r := range rows {
		ok := true
		for name, v := range want {
			ok = ok && fmt.Sprint(v) == fmt.Sprint(r[name])
		}
		if ok {
			list = append(list, r)
		}
	}
	return list
}

func lines(rows []row) string {
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

// world is a random slot cluster; in a crowded one, few leaves with many limits want all there is.
type world struct {
	*rand.Rand
	crowded bool
	leaves  []string
	max     map[string]int64 // by consumer, of those that have one
	borrow  map[string]int64
	lend    map[string]int64
	slots   map[string]int64 // by host of the group
	rows    []oracle.Demand
	wants   map[oracle.Key]int64
	size    map[oracle.Key]int64
}

func (w *world) odds(n int) bool { return w.IntN(n) == 0 }

// either is one of two numbers, the other in a crowded world.
func (w *world) either(roomy, crowded int) int {
	if w.crowded {
		return crowded
	}
	return roomy
}

func pick[T any](w *world, list ...T) T { return list[w.IntN(len(list))] }

// policy draws consumers in up to three levels; shape is the same every time, settings are drawn anew.
func (w *world) policy(t *testing.T, paths []string) *plan.Policy {
	w.max, w.borrow, w.lend = map[string]int64{}, map[string]int64{}, map[string]int64{}
	leaf := func(path string) bool {
		return !strings.Contains(strings.Join(paths, " ")+" ", path+"/")
	}
	var consumers, entries []any
	owns := map[string]int64{}
	for i := len(paths) - 1; i >= 0; i-- {
		path := paths[i]
		owns[path] += int64(w.IntN(5))
		if up := path[:strings.LastIndex(path, "/")]; up != "" {
			owns[up] += owns[path]
		}
	}
	ratio := map[string]bool{}
	for _, path := range paths {
		e, first := row{"path": path}, "/"+strings.Split(path, "/")[1]
		if path == first {
			ratio[first] = w.odds(5)
			e["policy"] = map[bool]string{true: "share_ratio", false: "ownership"}[ratio[first]]
		}
		share := row{"ratio": pick(w, w.either(0, 1), 1, 1, 1, 2, 2, 3)}
		if w.odds(w.either(8, 4)) {
			w.max[path] = int64(3 + w.IntN(8))
			share["max"] = w.max[path]
		}
		e["share"] = share
		if !ratio[first] {
			e["owns"] = owns[path]
		}
		if !ratio[first] && leaf(path) {
			if !w.odds(3) {
				w.lend[path] = int64(w.IntN(5))
				e["lend"] = w.peers(row{"limit": w.lend[path]}, "to", path, paths)
			}
			if w.odds(2) {
				e["borrow"] = w.peers(row{}, "from", path, paths)
			} else if w.odds(2) {
				w.borrow[path] = int64(w.IntN(5))
				e["borrow"] = w.peers(row{"limit": w.borrow[path]}, "from", path, paths)
			}
		}
		entries = append(entries, e)
		consumers = append(consumers, row{"path": path, "rank": w.IntN(3),
			"reclaim_grace": fmt.Sprint(pick(w, 0, 0, 90, 200, 400), "s")})
	}
	p := row{"resource_group": "G", "consumers": entries, "placement": pick(w, "stacked", "balanced"),
		"recall": pick(w, "last", "before_borrow"), "share_quota": pick(w, "dynamic", "dynamic", "static"),
		"share_reclaim": !w.odds(5)}
	if w.odds(3) {
		p["reclaim_budget"] = 1 + w.IntN(3)
	}
	if w.odds(5) {
		p["release"], p["overdue_after"] = "confirmed", pick(w, "0s", "90s")
	}
	return parse(t, row{"stint": 1, "dimensions": []string{"slots"}, "consumers": consumers, "slot_plans": []any{p},
		"resource_groups": []any{row{"name": "G", "select": "select(zone == 1)", "slots": "(slots*1)"}}})
}

func (w *world) peers(r row, key, self string, paths []string) row {
	if w.odds(2) {
		list := []string{pick(w, "any", "siblings")}
		if other := pick(w, paths...); other != self {
			list = append([]string{other}, list...)
		}
		r[key] = list
	}
	return r
}

// tree draws the paths of two to eight leaves in up to three levels.
func (w *world) tree() (paths []string) {
	for n := 2 + w.IntN(w.either(7, 4)); len(w.leaves) < n; {
		path := fmt.Sprintf("/c%d", len(paths))
		paths = append(paths, path)
		if !w.odds(2) {
			w.leaves = append(w.leaves, path)
			continue
		}
		for range 1 + w.IntN(3) {
			child := fmt.Sprintf("%s/c%d", path, len(paths))
			paths = append(paths, child)
			if !w.odds(4) {
				w.leaves = append(w.leaves, child)
				continue
			}
			for range 1 + w.IntN(2) {
				paths = append(paths, fmt.Sprintf("%s/c%d", child, len(paths)))
				w.leaves = append(w.leaves, paths[len(paths)-1])
			}
		}
	}
	return paths
}

// demand changes some of the rows that were wanted before, and adds some.
func (w *world) demand() []oracle.Demand {
	for i := range w.rows {
		if w.odds(3) {
			w.rows[i].Units = int64(w.IntN(9))
		}
	}
	w.wants, w.size = map[oracle.Key]int64{}, map[oracle.Key]int64{}
	for range w.IntN(5) {
		d := oracle.Demand{Consumer: pick(w, w.leaves...), Allocation: pick(w, "a", "b"), Sub: pick(w, "", "s"),
			Units:       1 + int64(w.IntN(8)),
			MaxPerHost:  pick(w, plan.Unlimited, plan.Unlimited, plan.Unlimited, 1, 3),
			Requirement: pick(w, "", "", "", "", "select(fast)", "order(slots)"),
			Size:        map[string]int64{"slots": pick[int64](w, 0, 1, 1, 2, 3)}}
		if w.crowded {
			d.Requirement = ""
		}
		i := slices.IndexFunc(w.rows, func(o oracle.Demand) bool { return key(o) == key(d) })
		if i < 0 {
			w.rows = append(w.rows, d)
		} else if w.odds(2) {
			w.rows[i] = d
		}
	}
	for _, d := range w.rows {
		w.wants[key(d)], w.size[key(d)] = d.Units, max(1, d.Size["slots"])
	}
	return w.rows
}

func key(d oracle.Demand) oracle.Key {
	return oracle.Key{Plan: "G", Consumer: d.Consumer, Allocation: d.Allocation, Sub: d.Sub}
}

// hosts draws hosts, all of them or some that change.
func (w *world) hosts(full bool) (rows []oracle.Host) {
	for i := range w.either(4, 3) {
		if !full && w.odds(2) {
			continue
		}
		h := oracle.Host{Name: fmt.Sprintf("h%d", i), State: "ok",
			Size: map[string]int64{"slots": int64(w.either(1, 3) + w.IntN(w.either(7, 4)))},
			Attr: map[string]any{"fast": w.odds(2), "zone": 1.}}
		if !full {
			h.State = pick(w, "ok", "ok", "ok", "closed", "draining", "unavail")
			h.Attr["zone"] = float64(min(w.IntN(6), 1))
		}
		delete(w.slots, h.Name)
		if h.Attr["zone"] == 1. {
			w.slots[h.Name] = h.Size["slots"]
		}
		rows = append(rows, h)
	}
	return rows
}

// TestSmoke plays random clusters, to a fixed point or not so far (CYC-2, INV-10), with limits and capacities held all
// the way (INV-1, INV-4, INV-9).
func TestSmoke(t *testing.T) {
	for seed := range *smokes {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), slots: map[string]int64{}}
		w.crowded = w.odds(2)
		paths := w.tree()
		o := oracle.New(w.policy(t, paths))
		o.SetHosts(w.hosts(true), true)
		for step := range 6 {
			switch {
			case step == 0:
			case w.odds(4):
				o.SetPolicy(w.policy(t, paths), false)
			case w.odds(w.either(4, 12)):
				o.SetHosts(w.hosts(false), false)
			}
			o.SetDemand("s", w.demand())
			for i := 0; step == 0 && i < len(w.rows); i++ {
				d := w.rows[i]
				o.Running([]oracle.Holding{{Consumer: d.Consumer, Allocation: d.Allocation, Sub: d.Sub, Host: "h0",
					Units: int64(w.IntN(3))}})
			}
			w.settle(t, o, fmt.Sprint("seed ", seed, " step ", step), step == 5 || w.odds(2))
			if t.Failed() {
				return
			}
		}
	}
}

// settle runs cycles until nothing changes, and two more.
func (w *world) settle(t *testing.T, o *oracle.Cluster, name string, whole bool) {
	var last oracle.Result
	for n, quiet := 0, 0; quiet < 3 && (whole || n < 2); n++ {
		r := o.Cycle()
		w.check(t, r, fmt.Sprint(name, " cycle ", n))
		if quiet++; !still(last, r) {
			quiet = 0
		}
		last = r
		if n > 60 {
			t.Errorf("%s: no fixed point: %+v\n%+v\n%+v", name, r.Grants, r.Reclaims, r.Releases)
			return
		}
	}
}

func (w *world) check(t *testing.T, r oracle.Result, name string) {
	on, held, short := map[string]int64{}, map[oracle.Key]int64{}, map[oracle.Key]int64{}
	for _, u := range r.Held {
		on[u.Host] += u.Units * w.size[u.Key]
		held[u.Key] += u.Units
	}
	for _, s := range r.Shortfalls {
		short[s.Key] += s.Units
	}
	for h, n := range on {
		if most, in := w.slots[h]; in && n > most {
			t.Errorf("%s: %s holds %d of %d", name, h, n, w.slots[h])
		}
	}
	for k, n := range w.wants {
		if held[k]+short[k] != n || held[k] > n {
			t.Errorf("%s: %v wants %d, holds %d, short of %d", name, k, n, held[k], short[k])
		}
	}
	by := map[string]oracle.Consumer{}
	for _, c := range r.Consumers {
		by[c.Path] = c
	}
	for _, u := range r.Grants {
		for path, most := range w.max {
			if (u.Consumer == path || strings.HasPrefix(u.Consumer, path+"/")) && by[path].Held > most {
				t.Errorf("%s: %s holds %d above its maximum %d", name, path, by[path].Held, most)
			}
		}
		if most, ok := w.borrow[u.Consumer]; ok && u.Origin == "borrowed" && by[u.Consumer].Slots.HeldBorrowed > most {
			t.Errorf("%s: %s borrowed %d", name, u.Consumer, by[u.Consumer].Slots.HeldBorrowed)
		}
		if u.Lender != "" && by[u.Lender].Slots.Lent > w.lend[u.Lender] {
			t.Errorf("%s: %s lent %d", name, u.Lender, by[u.Lender].Slots.Lent)
		}
	}
}
