package plan

import (
	"fmt"
	"strings"
	"time"
)

// Period is how long a budget lasts, by the policy's wall clock.
type Period uint8

// The periods of budgets. A week begins on Monday.
const (
	PerDay Period = iota
	PerWeek
	PerMonth
)

var periodNames = []string{"day", "week", "month"} // by Period

// String is the period's name in the file.
func (p Period) String() string { return periodNames[p] }

// BudgetOfUnits says that a budget counts units, not amounts of a dimension.
const BudgetOfUnits = -1

// Budget is how much a consumer, and all below it, may use of pools above it in each period (BUD-1).
type Budget struct {
	Hours int64  // unit-hours, or hours of one of the dimension; 0: no budget
	Of    int32  // the figure of a unit's size that it counts, or BudgetOfUnits
	What  string // the name of that: units, a dimension, or slots
	Per   Period
}

// SameMeasure tells whether what was used of another budget counts against this one.
func (b Budget) SameMeasure(o Budget) bool { return b.What == o.What && b.Per == o.Per }

// String is a budget in words such as "1000 gpus hours per month".
func (b Budget) String() string {
	if b.Hours == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s per %s", b.Hours, b.Measure(), b.Per)
}

// Measure is what a budget is counted in: unit-hours, or hours of a dimension.
func (b Budget) Measure() string {
	if b.Of == BudgetOfUnits {
		return "unit-hours"
	}
	return b.What + " hours"
}

// budgetOf is a consumer's budget, of 0 hours where it has none.
func budgetOf(list []Budget, n Node) Budget {
	if list == nil {
		return Budget{}
	}
	return list[n]
}

// Begin is the first instant of the period that holds an instant, both in µs since 1970: of the day, the Monday or the
// first of the month by the wall clock of a time zone.
func (p Period) Begin(nowUS int64, at *time.Location) int64 {
	y, m, d := time.UnixMicro(nowUS).In(at).Date()
	return firstOfDay(p.first(y, m, d), at).UnixMicro()
}

// End is the first instant of the period after the one that holds an instant, both in µs since 1970.
func (p Period) End(nowUS int64, at *time.Location) int64 {
	first := p.first(time.UnixMicro(nowUS).In(at).Date())
	switch p {
	case PerWeek:
		first = first.AddDate(0, 0, 7)
	case PerMonth:
		first = first.AddDate(0, 1, 0)
	default:
		first = first.AddDate(0, 0, 1)
	}
	return firstOfDay(first, at).UnixMicro()
}

// first is the first day of the period that holds a day, as a date without a time zone.
func (p Period) first(y int, m time.Month, d int) time.Time {
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	switch p {
	case PerWeek:
		return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
	case PerMonth:
		return day.AddDate(0, 0, 1-d)
	}
	return day
}

// firstOfDay is the first instant at which the wall clock of a time zone shows a day. Where clocks go forward at
// midnight, that is when they do; where they go back, the first of two midnights.
func firstOfDay(day time.Time, at *time.Location) time.Time {
	t := time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, at)
	if t.Hour() == 0 && t.Minute() == 0 {
		return firstOf(t)
	}
	if t.Day() == day.Day() { // the day begins later than at midnight
		begins, _ := t.ZoneBounds()
		return begins
	}
	_, ends := t.ZoneBounds()
	return ends
}

// budgets reads the budgets that the entries of a plan's consumers have, nil where none has one. In windows a budget is
// a fault: it holds in all of them. counts is by what units are measured in the plan.
func (r *reader) budgets(p *Policy, list []*entry, windows [][]*entry, counts []string) []Budget {
	var out []Budget
	for n, e := range list {
		if e == nil {
			continue
		}
		v, ok := e.fields.get("budget")
		if !ok {
			continue
		}
		if b, ok := r.budget(v, counts); ok {
			if out == nil {
				out = make([]Budget, p.Len())
			}
			out[n] = b
		}
	}
	for _, entries := range windows {
		for _, e := range entries {
			if e == nil {
				continue
			}
			if v, ok := e.fields.get("budget"); ok {
				r.fault(v, "a budget holds in all windows; give it in the plan's consumers")
			}
		}
	}
	return out
}

// slotBudgets is budgets of a slot plan, where leaves alone have one: what a branch's family pool gives is not told
// from what others give.
func (r *reader) slotBudgets(p *Policy, s *SlotPlan, list []*entry, windows [][]*entry) []Budget {
	out := r.budgets(p, list, windows, []string{"slots"})
	for n, e := range list {
		if e == nil {
			continue
		}
		v, ok := e.fields.get("budget")
		switch {
		case !ok:
		case p.First[n] != None:
			r.fault(v, "%s is no leaf; in a slot plan only leaves have budgets", p.Path[n])
		case s.Placement == Exclusive:
			r.fault(v, "goes with placement: stacked or balanced only")
		}
	}
	return out
}

// budgetSchema is the JSON Schema of a budget.
func budgetSchema() schema {
	return schema{
		"type": "object", "required": []string{"per"}, "minProperties": 2, "maxProperties": 2,
		"additionalProperties": false,
		"properties": schema{"per": oneOf(periodNames...).with("description",
			"the period, by the wall clock of the policy's time zone")},
		"patternProperties": schema{"^[a-z][a-z0-9_]*_hours$": between(1, numberMax).with("description",
			"units_hours, or the hours of a dimension such as gpus_hours")},
	}
}

const hoursSuffix = "_hours"

// budget reads budget: {units_hours: 1000, per: month}.
func (r *reader) budget(v value, counts []string) (b Budget, ok bool) {
	f, ok := r.fields(v)
	if !ok {
		return b, false
	}
	per, ok := r.need(v, f, "per")
	if ok {
		i, known := r.word(per, periodNames...)
		b.Per, ok = Period(i), known
	}
	said := 0
	for _, one := range f {
		if one.key == "per" {
			continue
		}
		said++
		of, what, wrong := measured(one.key, counts)
		if b.Of, b.What = of, what; wrong != "" {
			r.add(Fault{Line: one.keyAt.Line, Column: one.keyAt.Column, Path: one.at.String(), Reason: wrong})
			ok = false
			continue
		}
		hours, good := r.integer(one.value, 1, numberMax)
		b.Hours, ok = hours, ok && good
	}
	if said != 1 {
		r.fault(v, "a budget has one amount, such as units_hours: 1000%s", pick(said == 0, "", "; this has several"))
		return b, false
	}
	return b, ok
}

// measured is what a key such as gpus_hours counts, or what is wrong with it.
func measured(key string, counts []string) (of int32, what, wrong string) {
	name, hours := strings.CutSuffix(key, hoursSuffix)
	if hours && name == "units" {
		return BudgetOfUnits, name, ""
	}
	known := "unknown key; known here: per, units_hours"
	for i, dimension := range counts {
		if hours && name == dimension {
			return int32(i), name, ""
		}
		known += ", " + dimension + hoursSuffix
	}
	return 0, "", known
}
