package verify

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
)

// TestDigest holds the digest as it is computed here against the engine's, over tables of every type with nulls.
func TestDigest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		rows := rng.IntN(20)
		words := decision.Words{"", "a", "ä\n", "never used"}
		table := decision.Table{Name: "t", Rows: rows, Columns: []decision.Column{
			{Name: "i", Type: decision.Int}, {Name: "w", Type: decision.Int, Optional: true},
			{Name: "f", Type: decision.Float, Optional: true},
			{Name: "s", Type: decision.Text, Dict: words}, {Name: "l", Type: decision.List},
			{Name: "t", Type: decision.Time},
		}}
		c := table.Columns
		c[1].Null, c[2].Null = make([]bool, rows), make([]bool, rows)
		for row := range rows {
			c[0].Int = append(c[0].Int, rng.Int64N(256)-128)
			c[1].Int = append(c[1].Int, rng.Int64()>>(n%64)-1)
			c[1].Null[row] = rng.IntN(3) == 0
			c[2].Float = append(c[2].Float, rng.NormFloat64())
			c[2].Null[row] = n%2 == 0 && rng.IntN(3) == 0
			c[3].Code = append(c[3].Code, int32(rng.IntN(4))-1)
			c[4].Lists = append(c[4].Lists, make([]string, rng.IntN(3)))
			c[5].Int = append(c[5].Int, rng.Int64())
		}
		if got, want := digestOf([]*decision.Table{&table}), decision.Digest([]decision.Table{table}); got != want {
			t.Fatalf("%d rows: %s, the engine's is %s", rows, got, want)
		}
	}
}

// TestRequirements evaluates requirements on a host.
func TestRequirements(t *testing.T) {
	m := newModel()
	m.policy = &policy{dimensions: []string{"ncpus", "maxmem"}}
	m.numeric["speed"], m.attrs["speed"], m.attrs["model"], m.attrs["fast"] = true, true, true, true
	h := &host{name: "h1", state: "ok", size: []int64{8, 64},
		attr: map[string]any{"model": "A100", "fast": true, "speed": 2.5}}
	for text, want := range map[string]bool{
		"select(ncpus > 7 && maxmem >= 64)":               true,
		"select(ncpus * 2 - 1 == 15)":                     true,
		"select(!(ncpus > 7) || fast)":                    true,
		"select(A100)":                                    true,
		"select(h1) order(-ncpus, name)":                  true,
		"select(model == 'A100' || model == 'H100')":      true,
		"select(model == A100)":                           true,
		"select(model != 'A100')":                         false,
		"select(speed < 2.5)":                             false,
		"select(speed / 0 > 1)":                           false,
		"select(missing == 'x')":                          false,
		"select(state == 'ok' && name == 'h1' && !'T4')":  true,
		"order(name)":                                     true,
		"select(1 + 2 * 3 == 7 && -ncpus < 0)":            true,
		"select(ncpus > 7 && (maxmem > 64 || fast))":      true,
		"select('A100' && !T4 && (ncpus+1)*(2+1) == 27)":  true,
		"order(-maxmem) select(maxmem == 64 && ncpus==8)": true,
	} {
		cond, err := parseSelect(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		} else if got := cond == nil || cond.truth(h, m); got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
	for _, bad := range []string{"select(", "select(ncpus >)", "select()", "select(a))"} {
		if _, err := parseSelect(bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestWindows finds the window that holds, past midnight and over a shift of the clocks.
func TestWindows(t *testing.T) {
	p, err := parsePolicy([]byte(`
stint: 1
timezone: Europe/London
dimensions: [slots]
resource_groups: [{name: G, hosts: [h]}]
consumers: [{path: /A, rank: 3}, {path: /A/x}]
slot_plans:
  - resource_group: G
    consumers: [{path: /A, policy: hybrid, owns: 4, limit: 7}, {path: /A/x, owns: 2, rank: 1}]
    windows:
      - {name: day, hours: "08:00-20:00", days: [mon, tue, wed, thu, fri]}
      - {name: night, hours: "20:00-08:00", days: [mon, tue, wed, thu, fri], consumers: [{path: /A, policy: ownership, owns: 5}]}
      - {name: weekend, hours: "08:00-08:00", days: [sat, sun]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"2026-03-27T19:59:00Z": "day", "2026-03-27T20:00:00Z": "night", "2026-03-28T07:59:00Z": "night",
		"2026-03-28T08:00:00Z": "weekend",
		// summer time has begun
		"2026-03-29T06:59:00Z": "weekend", "2026-03-30T06:59:00Z": "weekend", "2026-03-30T07:00:00Z": "day",
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.windowsAt(now.UnixMicro()); got != want {
			t.Errorf("%s: %s, expected %s", at, got, want)
		}
	}
	day, night := p.plans[0].windows[0].entry, p.plans[0].windows[1].entry
	if a := day["/A"]; a.kind != "hybrid" || a.owns != 4 || a.most != 7 || a.rank != 3 ||
		day["/A/x"].kind != "hybrid" || day["/A/x"].rank != 1 {
		t.Errorf("by day: %+v, %+v", a, day["/A/x"])
	}
	if a := night["/A"]; a.kind != "ownership" || a.owns != 5 || a.most != none {
		t.Errorf("by night: %+v", a)
	}
	if _, err := parsePolicy([]byte("a: &x [1]\nb: *x\n")); err == nil {
		t.Error("an alias is taken")
	}
}

// TestFill divides as SLOT-6 and MD-14 say.
func TestFill(t *testing.T) {
	for _, c := range []struct {
		total        int64
		ratio, limit []int64
		want         []int64
		left         int64
	}{
		{9, []int64{1, 2}, []int64{100, 100}, []int64{3, 6}, 0},
		{10, []int64{1, 2}, []int64{100, 100}, []int64{4, 6}, 0},
		{10, []int64{1, 1, 8}, []int64{9, 9, 2}, []int64{4, 4, 2}, 0},
		{10, []int64{0, 1}, []int64{9, 4}, []int64{0, 4}, 6},
		{0, []int64{1}, []int64{1}, []int64{0}, 0},
	} {
		if got, left := fill(c.total, c.ratio, c.limit); !slices.Equal(got, c.want) || left != c.left {
			t.Errorf("%+v: %v, %d left", c, got, left)
		}
	}
}

// TestDivided reads of a policy file the plans of the division whose log it is; all where it is of none.
func TestDivided(t *testing.T) {
	for division, want := range map[string]string{"": "m G", "division: east": "G", "division: west": "m"} {
		p, err := parsePolicy([]byte(`
stint: 1
dimensions: [slots]
resource_groups: [{name: G, hosts: [g]}, {name: H, hosts: [h]}]
consumers: [{path: /A}]
slot_plans: [{resource_group: G, consumers: [{path: /A, policy: share_ratio}]}]
md_plans: [{name: m, resource_groups: [{name: H}], consumers: [{path: /A}]}]
divisions: [{name: east, plans: [G]}, {name: west, plans: [m]}]
` + division + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, one := range p.plans {
			names = append(names, one.name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q has the plans %s, expected %s", division, got, want)
		}
	}
}
