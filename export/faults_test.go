package export_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/export/verify"
)

// TestFaultsFound has cycles say that they decided what breaks a promise, each time another one, and holds verify to
// naming that promise. The logs are those of engines that were wrong so, as far as the promise goes: what else does not
// fit then is of no matter here.
func TestFaultsFound(t *testing.T) {
	for _, c := range wrongCycles {
		t.Run(c.name, func(t *testing.T) {
			scenarios, err := scenario.Parse(c.name, []byte(c.scenario))
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "log")
			w, err := export.Open(dir, export.Options{Lazy: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = scenarios[0].Record(&wrongRecorder{recorder{log: w}, &c})
			if err != nil && !errors.Is(err, errOver) {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := export.OpenLog(dir)
			if err != nil {
				t.Fatal(err)
			}
			report, err := verify.Log(r, verify.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range report.Faults {
				if f.Cycle == c.cycle && f.Rule == c.rule && f.Consumer == c.consumer &&
					strings.Contains(f.What, c.what) {
					return
				}
			}
			t.Errorf("no fault of %s in cycle %d that says %q of %q; there are %v", c.rule, c.cycle, c.what, c.consumer,
				report.Faults)
		})
	}
}

// wrongCycle is a cycle of a scenario that decides what it must not. Rows of events are words, "-" for one that is
// missing; nil leaves a table alone. lost changes figures of work lost, of budgets, and of
// what plans remember.
type wrongCycle struct {
	name, scenario string
	cycle          int64
	grants         []string // consumer allocation host units origin pool lender device
	reclaims       []string // consumer allocation host units reason for_consumer for_allocation device
	short          []string // consumer allocation units reason
	lost           func(c *decision.Cycle)
	edit           func(c *decision.Cycle) // of copies of the tables releases and shortfalls

	rule, consumer, what string
}

var errOver = errors.New("the cycle is decided")

// wrongRecorder ends a log with the wrong cycle.
type wrongRecorder struct {
	recorder
	c *wrongCycle
}

// Cycle writes a cycle.
func (r *wrongRecorder) Cycle(out *decision.Cycle, keyframe func(state bool), last bool) error {
	if out.Summary.Cycle != r.c.cycle {
		return r.recorder.Cycle(out, keyframe, last)
	}
	wrong := *out
	plan := string(out.Consumers.Plan.Dict.Bytes(out.Consumers.Plan.Code[0]))
	if r.c.grants != nil {
		g := table(r.c.grants, 8)
		wrong.Grants = decision.Grants{Key: g.key(plan), Source: g.same("default"), Host: g.column(2),
			Units: g.numbers(3), Origin: g.column(4),
			Pool: g.column(5), Lender: g.column(6), Device: g.column(7)}
	}
	if r.c.reclaims != nil {
		g := table(r.c.reclaims, 8)
		wrong.Reclaims = decision.Reclaims{Key: g.key(plan), Action: g.same("issued"), Host: g.column(2),
			Units: g.numbers(3), Reason: g.column(4),
			ForConsumer: g.column(5), ForAllocation: g.column(6), ForSub: g.same("-"), Device: g.column(7),
			Source: g.same("default")}
		for i := range g {
			wrong.Reclaims.Reclaim = append(wrong.Reclaims.Reclaim, int64(1000+i))
			wrong.Reclaims.Issued = append(wrong.Reclaims.Issued, out.Summary.NowUS)
			wrong.Reclaims.Deadline = append(wrong.Reclaims.Deadline, out.Summary.NowUS)
			wrong.Reclaims.TakerWait = append(wrong.Reclaims.TakerWait, 0)
			wrong.Reclaims.TakerWaitNull = append(wrong.Reclaims.TakerWaitNull, true)
		}
	}
	if r.c.short != nil {
		g := table(r.c.short, 4)
		wrong.Shortfalls = decision.Shortfalls{Key: g.key(plan), UnitsShort: g.numbers(2), Reason: g.column(3),
			Dimension: g.same("-"),
			Blocker:   g.same("-"), Detail: g.same("-"), Until: make([]int64, len(g)), UntilNull: make([]bool, len(g)),
			Since: make([]int64, len(g)), SinceNull: make([]bool, len(g))}
		for i := range g {
			wrong.Shortfalls.UntilNull[i] = true
		}
	}
	if r.c.edit != nil {
		wrong.Releases.Units = slices.Clone(out.Releases.Units)
		wrong.Releases.Cause.Code = slices.Clone(out.Releases.Cause.Code)
		wrong.Shortfalls.Detail.Code = slices.Clone(out.Shortfalls.Detail.Code)
		r.c.edit(&wrong)
	}
	if r.c.lost != nil {
		wrong.Releases.UnitSecondsLost = slices.Clone(out.Releases.UnitSecondsLost)
		wrong.Consumers.UnitSecondsLost = slices.Clone(out.Consumers.UnitSecondsLost)
		wrong.Consumers.BudgetUsed = slices.Clone(out.Consumers.BudgetUsed)
		wrong.Shares.DecayedUsage = slices.Clone(out.Shares.DecayedUsage)
		wrong.Shares.EffectiveRatio = slices.Clone(out.Shares.EffectiveRatio)
		wrong.Shares.UsageQuota = slices.Clone(out.Shares.UsageQuota)
		r.c.lost(&wrong)
	}
	if err := r.recorder.Cycle(&wrong, func(bool) {}, false); err != nil {
		return err
	}
	return errOver
}

// events are rows of words.
type events [][]string

func table(lines []string, words int) (rows events) {
	for _, line := range lines {
		row := strings.Fields(line)
		for len(row) < words {
			row = append(row, "-")
		}
		rows = append(rows, row)
	}
	return rows
}

func (e events) column(at int) (c decision.Coded) {
	words := decision.Words{}
	for i, row := range e {
		words = append(words, row[at])
		if c.Add(int32(i)); row[at] == "-" {
			c.Code[i] = decision.Null
		}
	}
	c.Dict = words
	return c
}

func (e events) same(word string) decision.Coded {
	var all events
	for range e {
		all = append(all, []string{word})
	}
	return all.column(0)
}

func (e events) key(plan string) decision.Key {
	return decision.Key{Plan: e.same(plan), Consumer: e.column(0), Allocation: e.column(1), Sub: e.same("")}
}

func (e events) numbers(at int) (list []int64) {
	for _, row := range e {
		n, err := strconv.ParseInt(row[at], 10, 64)
		if err != nil {
			panic(fmt.Sprint("BUG: ", err))
		}
		list = append(list, n)
	}
	return list
}

// slotsOf is a scenario of one group of hosts that count slots.
func slotsOf(consumers, plan, hosts, steps string) string {
	return "name: x\nplan: " + slotPlanOf(consumers, plan) + "\nhosts: " + hosts + "\nsteps: " + steps
}

// slotPlanOf is a policy file with a slot plan.
func slotPlanOf(consumers, plan string) string {
	return `{stint: 1, dimensions: [slots], resource_groups: [{name: G, select: "select(slots > 0)"}], consumers: ` +
		consumers +
		", slot_plans: [{resource_group: G, " + plan + "}]}"
}
