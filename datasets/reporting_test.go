package datasets_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stintd/stint/datasets"
)

// TestReporting holds a table to what an accountant would check: branches are the sums of their leaves, nobody is given
// more than it asks for, nothing is given twice, lent is what is borrowed. Its plan differs by day and night, and a
// seed gives the same bytes.
func TestReporting(t *testing.T) {
	var last []byte
	for _, seed := range []uint64{3, 3, 4} {
		dir := t.TempDir()
		rows, err := datasets.Reporting(dir, datasets.ReportingOptions{Hosts: 40, Consumers: 30, Days: 2, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, datasets.ReportingTable))
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && bytes.Equal(last, text) != (seed == 3) {
			t.Errorf("seed %d: the bytes of before: %v", seed, bytes.Equal(last, text))
		}
		last = text
		if rows != 2*96*30 {
			t.Errorf("%d rows, want %d", rows, 2*96*30)
		}
		accounts(t, text)
	}
	if _, err := datasets.Reporting(t.TempDir(),
		datasets.ReportingOptions{Hosts: 1, Consumers: 1, Days: 0}); err == nil {
		t.Error("a table of one consumer and no day was made")
	}
}

func accounts(t *testing.T, text []byte) {
	table, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range table[0] {
		at[name] = i
	}
	sums := map[string]map[string]int64{} // by branch and instant, what of a column its leaves have less what it has
	plans := map[string]bool{}
	for _, row := range table[1:] {
		number := func(name string) int64 { n, _ := strconv.ParseInt(row[at[name]], 10, 64); return n }
		held := number("ALLOCATED_OWN") + number("ALLOCATED_SHARE") + number("ALLOCATED_BORROW")
		if held > number("TOTAL_DEMAND") || held+number("UNSATISFIED_DEMAND") != number("TOTAL_DEMAND") ||
			number("ALLOCATED_OWN") > number("PLANNED_OWN") {
			t.Fatalf("does not add up: %v", row)
		}
		branch, sign := row[at["CONSUMER_NAME"]], int64(-1)
		if dir := filepath.Dir(branch); dir != "/" {
			branch, sign = dir, 1
		} else {
			plans[branch+row[at["PLANNED_OWN"]]] = true
		}
		key := branch + " " + row[at["TIME_STAMP_GMT"]]
		if sums[key] == nil {
			sums[key] = map[string]int64{}
		}
		for _, name := range []string{"ALLOCATED_OWN", "ALLOCATED_SHARE", "ALLOCATED_BORROW", "ALLOCATED_LEND",
			"PLANNED_OWN", "TOTAL_DEMAND"} {
			sums[key][name] += sign * number(name)
		}
		now := row[at["TIME_STAMP_GMT"]]
		if sums[now] == nil {
			sums[now] = map[string]int64{}
		}
		sums[now]["loans"] += sign * (number("ALLOCATED_BORROW") - number("ALLOCATED_LEND"))
		if sign < 0 {
			sums[now]["held"] += held
			sums[now]["loans"] += number("ALLOCATED_BORROW") - number("ALLOCATED_LEND") // of branches nothing counts
		}
	}
	for key, by := range sums {
		for name, n := range by {
			if name == "held" && n <= 40*16 {
				continue
			}
			if n != 0 {
				t.Errorf("%s: %s is off by %d", key, name, n)
			}
		}
	}
	if len(plans) != 4 {
		t.Errorf("the branches own %v: want two figures each, for day and night", plans)
	}
}
