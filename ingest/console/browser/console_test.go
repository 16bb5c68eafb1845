package browser

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-rod/rod/lib/input"
)

var dayLog struct {
	once sync.Once
	dir  string
}

// day is the log of a bank's day: 144 cycles in which owners lend, want back, and hosts go.
func day(t testing.TB) string {
	t.Helper()
	dayLog.once.Do(func() {
		dayLog.dir = filepath.Join(filepath.Dir(stint), "day")
		run(t, "simulate", "--scenario", "testdata/day.yaml", "--out", dayLog.dir)
	})
	return dayLog.dir
}

// TestNow reads the figures of a cycle, goes through the tree, and has a shortfall explained (UI-1, UI-3).
func TestNow(t *testing.T) {
	need(t)
	s := serve(t, "--log", day(t))
	b := open(t, s, "#/now?cycle=49&plan=grid")
	b.matches(".sums", `wanted\s+5,263\s`)
	b.matches(".sums", `short\s+476\s+9\.0 % of what is wanted`)
	b.matches(".sums", `2026-01-05 14:00:00 UTC \(\d+ months ago\)`)
	for _, row := range []string{`Intraday\s.*1,195\s+1,195\s+0\s+21\.0 %`, `Train\s.*426\s+141\s+285\s+22\.2 %`, `Research\s.*1,326`} {
		b.see(".row", row)
	}
	b.see(".bar", `wants 426, holds 141, 93 shared, 48 borrowed, short of 285, 29 under reclaim units`)
	b.matches(".legend", `(?s)owned.*private pool.*shared.*borrowed.*lent.*under reclaim`)
	b.see(".reasons tr", `room enough in sum, but on no single host\s+ncpus`)
	b.see("section.card", `Capacity(.|\s)*ncpus\s+8,\d+\s+8,\d+\s+9\d\.\d %`)
	b.see(".treemap svg", `Treemap of ncpus by consumer: 9\d\.\d % used`)

	b.click(".f-short a", `/Research/Train, short 285`)
	b.see(".panel .answer", `/Research/Train is short of 285 units: there is room enough in sum`)
	b.see(".panel .points", `in the way: /Research/Sweep`)
	b.see(".panel .rule", `^MD-11`)
	b.see(".panel time", `2026-01-05 14:20:00 UTC \(in 20 min\)`)
	b.see(".row.blocked", `Sweep`)
	b.see(".treemap .blocked", `Sweep`)
	if got := b.js(`() => location.hash`); !strings.Contains(got, "why=%2FResearch%2FTrain") || !strings.Contains(got, "figure=short") {
		t.Error(got)
	}
	b.click(".panel a", `^/Research/Sweep`)
	b.see(".panel .answer", `^/Research/Sweep is short of`)
	b.press(input.Escape)
	b.gone(".panel", ``)

	b.write("input[type=search]", "liqui")
	b.see(".row", `Liquidity`)
	b.gone(".row", `Intraday`)
	b.click(".row a", `^Treasury`)
	b.matches(".sums", `wanted\s+363`)
	b.click("a.button", `all of plan grid`)
	b.write("input[type=search]", "")
	b.click("label.check", "short only")
	b.gone(".row", `Equities`)
	b.click("label.check", "short only")
	b.click(".row.head button", "lends")
	b.see(".row.head [aria-sort=descending]", "lends")
	b.choose(".treemap, .card header select", "host group")
	b.see(".treemap svg", `by plan|by host group`)
	b.choose(".pick select", "GPU")
	b.see(".row", `Stress\s.*8\s+8\s+0\s+8\s+22`)
}
