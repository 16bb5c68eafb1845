package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// wanting is an actor without a cluster: of allocation a two units run, and a list wants rows.
func wanting(accepted map[subKey]map[string]any, rows ...map[string]any) *actor {
	a := &actor{m: newMetrics(nil), log: Options{}.withDefaults().Log, list: &Listing{Demand: rows},
		led: &ledger{units: map[string]*entry{}}, demand: demandState{accepted: accepted}}
	for _, id := range []string{"u1", "u2"} {
		a.led.units[id] = &entry{Unit: Unit{ID: id, Consumer: "/A", Allocation: "a"}, State: started}
	}
	return a
}

func wanted(allocation string, units int, requirement string) map[string]any {
	return map[string]any{"consumer": "/A", "allocation": allocation, "units": json.Number(fmt.Sprint(units)),
		"requirement": requirement}
}

// TestRaisedRowRefused has the service refuse a row that was raised to what runs: it is known again, its last good
// version takes its place, raised as well, and the other rows are pushed.
func TestRaisedRowRefused(t *testing.T) {
	good := map[subKey]map[string]any{{"/A", "a", ""}: wanted("a", 1, "good")}
	a := wanting(good, wanted("a", 1, "bad"), wanted("b", 1, ""))
	rows, whole := a.wants()
	if got := fmt.Sprintf("%v %v %v", whole, rows[0]["units"], rows[0]["requirement"]); got != "true 2 bad" {
		t.Fatal("before the refusal: ", got)
	}
	a.refused(rows, &client.Problem{Status: 422, Rows: []client.Bad{{Row: 1, Reason: "no requirement"}}})
	for range 2 {
		rows, whole = a.wants()
		got := fmt.Sprintf("%v %v %v %v", whole, len(rows), rows[0]["units"], rows[0]["requirement"])
		if got != "true 2 2 good" {
			t.Error("after the refusal: ", got)
		}
	}
	a.refused(rows, &client.Problem{Status: 422, Rows: []client.Bad{{Row: 1, Reason: "its consumer is gone"}}})
	if rows, whole = a.wants(); whole || len(rows) != 1 || rows[0]["allocation"] != "b" {
		t.Error("when neither is good: ", rows)
	}
	if a.list.Demand[0]["units"] != json.Number("1") {
		t.Error("the list was changed")
	}
}

// TestUnknownRowRefused has a row refused of which no good version is known. Where units of it run, the others are
// pushed as changes, for the service would release what a whole table lacks.
func TestUnknownRowRefused(t *testing.T) {
	a := wanting(nil, wanted("a", 2, "bad"), wanted("b", 1, "bad"), wanted("c", 1, ""))
	rows, _ := a.wants()
	a.refused(rows, &client.Problem{Status: 422, Rows: []client.Bad{{Row: 1}, {Row: 2}, {Row: 99}}})
	if rows, whole := a.wants(); whole || len(rows) != 1 || rows[0]["allocation"] != "c" {
		t.Error(rows, whole)
	}
	delete(a.led.units, "u1")
	delete(a.led.units, "u2")
	if rows, whole := a.wants(); !whole || len(rows) != 1 || rows[0]["allocation"] != "c" {
		t.Error(rows, whole)
	}
	if n := len(a.demand.refused); n != 2 {
		t.Errorf("%d rows are refused", n)
	}
	a.refused(rows, errors.New("no connection"))
}

// TestEffects has percentiles of the last effects.
func TestEffects(t *testing.T) {
	var e effects
	if p := e.percentiles(50, 99); p[0] != nil || p[1] != nil {
		t.Error("percentiles of nothing")
	}
	a := wanting(nil)
	for i := range effectsMost + 100 {
		a.effect("start", time.Duration(i)*time.Minute)
	}
	if p := a.effects.percentiles(50, 99, 100); len(a.effects) != effectsMost || *p[0] != 60*599 || *p[1] != 60*1089 ||
		*p[2] != 60*1099 {
		t.Error(len(a.effects), *p[0], *p[1], *p[2])
	}
	a.effects[0].at = a.effects[0].at.Add(-2 * effectsLast)
	a.effect("stop", 0)
	if len(a.effects) != effectsMost || *a.effects.percentiles(1)[0] != 60*109 {
		t.Error(len(a.effects))
	}
}
