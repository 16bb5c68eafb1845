package verify

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// timesKept is of how many of the latest cycles stint knows the times for certain: units of earlier ones count as
// having run at least since then.
const timesKept = 1 << 16

// losses is the work that reclaims stopped before its end (D-120), in unit-milliseconds.
type losses struct {
	of    map[[2]string]int64 // by plan and consumer, what those below it lost left out: in all cycles so far
	late  bool                // the log does not tell of all cycles: the first figure of each consumer is believed
	known map[[2]string]bool  // of whom there was one since then
	cycle int64               // in this cycle, by its releases
	told  bool                // its releases tell
	taken bool                // what is held was taken from its tables: nobody looked at its releases
}

// forget makes what was lost so far unknown.
func (l *losses) forget() { l.of, l.known, l.late = map[[2]string]int64{}, map[[2]string]bool{}, true }

// lost is the figure of a row, false where the log does not tell.
func (t *rows) lost(row int) (ms int64, told bool) {
	c := t.number["unit_seconds_lost"]
	if c.real == nil || c.missing(row) {
		return 0, false
	}
	return int64(math.Round(1e3 * c.float(row))), true
}

// loses checks how much work a release stopped: none unless the client or its deadline ended a reclaim, else how long
// its units had run. Which of a sub-allocation's units on a host came back is not told: where they were granted in
// several cycles, it is between the least and the most that they can have run.
func (v *verifier) loses(at spot, row int, n, reclaim int64, why string) {
	got, told := v.table["releases"].lost(row)
	if v.lose.told = v.lose.told && told; !told {
		return
	}
	v.lose.cycle += got
	v.lose.of[[2]string{at.plan, at.consumer}] += got
	f := at.about("D-120", "releases", "unit-milliseconds lost")
	if reclaim == 0 || why != "client" && why != "grace_expired" {
		v.equal(f, 0, got)
		return
	}
	p := v.m.piles[at]
	if p == nil || len(v.m.former[at.row()]) > 0 { // or units of another size, of which the row may be
		return
	}
	least, most, known := v.ran(p, n)
	if !known {
		return
	}
	if f.Got, f.Expected = grouped(got), grouped(least); least != most {
		f.Expected = fmt.Sprintf("%s to %s", grouped(least), grouped(most))
	}
	v.is(f, least <= got && got <= most)
}

// ran is the least and the most that some units of a pile can have run together. known is false where its grants do not
// account for so many.
func (v *verifier) ran(p *pile, units int64) (least, most int64, known bool) {
	since := func(cycle int64) int64 {
		us, ok := v.times[max(cycle, 1)] // what ran before the first cycle began with it
		if !ok {
			return math.MinInt64
		}
		return (v.now - us) / 1000
	}
	cycles := slices.SortedFunc(maps.Keys(p.lots), cmp.Compare[int64])
	sum := func(each func(cycle int64) int64) (total int64, all bool) {
		left := units
		for _, cycle := range cycles {
			k := min(left, p.lots[cycle])
			if left -= k; k > 0 {
				total += k * each(cycle)
			}
		}
		return total, left == 0
	}
	sure := true
	most, known = sum(func(cycle int64) int64 {
		ms := since(cycle)
		sure = sure && ms != math.MinInt64
		return max(0, ms)
	})
	if !sure {
		most = math.MaxInt64
	}
	slices.Reverse(cycles)
	least, _ = sum(func(cycle int64) int64 { return since(max(cycle, v.timesFrom, v.cycle-timesKept)) })
	return least, most, known
}

// lostInAll holds the figures of consumers, which add up what was lost so far, against the releases.
func (v *verifier) lostInAll(t *rows) {
	plan, consumer := t.words["plan"], t.words["consumer"]
	figure, below := map[[2]string]int64{}, map[[2]string]int64{}
	for row := range t.n {
		ms, told := t.lost(row)
		if !told {
			v.lose.forget()
			return
		}
		id := [2]string{plan.text(row), consumer.text(row)}
		figure[id] = ms
		below[[2]string{id[0], parentOf(id[1])}] += ms
	}
	for id, ms := range figure {
		own := ms - below[id]
		if v.lose.late && !v.lose.known[id] {
			v.lose.of[id] = own
		}
		v.lose.known[id] = true
		v.equal(of("D-120", "consumers", id[0], id[1],
			"unit-milliseconds lost so far, besides those of consumers below it"),
			v.lose.of[id], own)
	}
}

// lostInCycle holds the figure of the cycle against its releases.
func (v *verifier) lostInCycle(head *rows) {
	if v.lose.taken {
		v.lose.cycle, v.lose.told, v.lose.taken = 0, true, false
		return
	}
	got, told := head.lost(0)
	f := Fault{Rule: "D-120", Table: "cycles", What: "unit-milliseconds lost"}
	if told && v.lose.told {
		v.equal(f, v.lose.cycle, got)
	}
	if v.table["releases"].n > 0 {
		f.What = "cycles and releases must both tell of work lost, or neither"
		v.is(f, told == v.lose.told)
	}
	v.lose.cycle, v.lose.told = 0, true
}

// keep goes on under another policy: consumers that it renames take along what they lost, and plans that it does not
// have are forgotten.
func (l *losses) keep(was, now *policy) {
	maps.DeleteFunc(l.of, func(id [2]string, _ int64) bool {
		a, b := was.byName[id[0]], now.byName[id[0]]
		return b == nil || a != nil && a.md != b.md
	})
	maps.DeleteFunc(l.known, func(id [2]string, _ bool) bool { return now.byName[id[0]] == nil })
	for old, name := range now.renamed {
		for _, p := range now.plans {
			from, to := [2]string{p.name, old}, [2]string{p.name, name}
			l.of[to] += l.of[from]
			l.known[to] = l.known[from]
			delete(l.of, from)
			delete(l.known, from)
		}
	}
}
