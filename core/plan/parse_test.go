package plan

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what comes out into testdata/faults.txt")

// TestFaults compares what is wrong with the files of testdata/faults.txt, message by message.
func TestFaults(t *testing.T) {
	const name = "testdata/faults.txt"
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(file), "\n## ")
	var out strings.Builder
	out.WriteString(head)
	for _, one := range strings.Split(rest, "\n## ") {
		what, body, _ := strings.Cut(one, "\n")
		text, want, ok := strings.Cut("\n"+body, "\n----\n")
		if !ok {
			t.Fatalf("%s: no ---- line", what)
		}
		text = strings.TrimPrefix(text, "\n") + "\n"
		got := ""
		if _, err := Parse("p", []byte(text)); err != nil {
			got = err.Error()
		}
		if want = strings.TrimRight(want, "\n"); got != want && !*rewrite {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
		}
		if got == "" {
			t.Errorf("%s: no fault was found", what)
		}
		fmt.Fprintf(&out, "\n## %s\n%s----\n%s\n", what, strings.TrimPrefix(text, "\n"), got)
	}
	if *rewrite {
		if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFaultsOfText covers what cannot stand in a readable file.
func TestFaultsOfText(t *testing.T) {
	const good = "stint: 1\ndimensions: [ncpus]\nconsumers: [{path: /A}]\n"
	for _, c := range []struct{ name, text, want string }{
		{"invalid UTF-8", good + "cluster: \xff", "p:4:10: the text is not valid UTF-8"},
		{"NUL", good + "cluster: é\x00", "p:4:11: control character U+0000"},
		{"an escaped control character", good + `cluster: "a\u0007"`,
			`p:4:10: cluster: "a\a": a name must not contain control characters`},
		{"too long a name", good + "cluster: " + strings.Repeat("x", 257),
			`p:4:10: cluster: "` + strings.Repeat("x", 64) + `…": has 257 bytes; 256 are allowed`},
		{"too large", strings.Repeat(" ", fileBytesMax+1), "p: the file has 16777217 bytes; 16777216 are allowed"},
		{"too many signs", strings.Repeat(",", signsMax+1),
			"p: the file has 4194305 signs and lines; 4194304 are allowed"},
		{"too deep in brackets", strings.Repeat("[", 1000), `p:1:25: "[": nested more than 24 levels deep`},
		{"too deep in blocks", strings.Repeat("- ", 1000), `p:1:49: "-": nested more than 24 levels deep`},
		{"too deep in mappings", strings.Repeat("{a: ", 1000), `p:1:97: "{": nested more than 24 levels deep`},
		{"too many keys", strings.Repeat("a: 1\n", 10_000), `p:257:2: ":": the mapping has more than 256 keys`},
		{"too many keys in brackets", "{" + strings.Repeat("a: 1, ", 10_000) + "}",
			`p:1:1539: ":": the mapping has more than 256 keys`},
		{"too many keys without a value", "- a\n" + strings.Repeat("- a:\n", 10_000),
			`p:1003:1: "-": more than 1000 keys and entries have no value`},
		{"too many empty entries", strings.Repeat("-\n", 10_000),
			`p:1002:1: "-": more than 1000 keys and entries have no value`},
		{"too many keys without a colon", "[" + strings.Repeat("{a},", 10_000) + "]",
			`p:1:4004: "}": more than 1000 keys and entries have no value`},
		{"too long key paths", strings.Repeat("{"+strings.Repeat("k", 60_000)+": ", 20) + "[" +
			strings.Repeat("1,", 1000),
			`p:1:1200478: "1": the keys above the values are too long`},
	} {
		_, err := Parse("p", []byte(c.text))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// TestFaultsAreCapped holds the list to a hundred and the count of all.
func TestFaultsAreCapped(t *testing.T) {
	text := "stint: 1\ndimensions: [ncpus]\nconsumers:\n" + strings.Repeat("  - {path: bad}\n", 250)
	_, err := Parse("p", []byte(text))
	faults, ok := err.(Faults)
	if !ok || len(faults) != faultsMax+1 {
		t.Fatalf("got %v", err)
	}
	if got, want := faults[faultsMax].String(), "p: 250 faults in all, 100 of them are shown"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	want := Fault{File: "p", Line: 103, Column: 12, Path: "consumers[99].path", Value: "bad",
		Reason: "must be a full path such as /Risk/Intraday"}
	if faults[99] != want {
		t.Errorf("got %+v, want %+v", faults[99], want)
	}
}

func parsed(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := Parse("p", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestExample compiles the example of SPEC chapter 6 and looks at each of its settings.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("testdata/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := parsed(t, string(text))
	wantPaths := []string{"/", "/ManagementServices", "/ManagementServices/Core", "/Risk", "/Risk/Intraday",
		"/Risk/Overnight", "/Research"}
	if !slices.Equal(p.Path, wantPaths) {
		t.Fatalf("tree is %v", p.Path)
	}
	risk, intraday, overnight, research := Node(3), Node(4), Node(5), Node(6)
	s, d := &p.SlotPlans[0], &p.MDPlans[0]
	day, night, w := &s.Windows[0], &s.Windows[1], &d.Windows[0]
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"cluster", p.Cluster, "grid-east"},
		{"digest", p.Digest, fmt.Sprintf("%x", sha256.Sum256(text))},
		{"zone", p.Location.String(), "Europe/London"},
		{"interval", p.IntervalUS, int64(60e6)},
		{"dimensions", p.Dimensions, []string{"ncpus", "maxmem", "gpus", "slots"}},
		{"hosts", p.Groups[0].Hosts, []string{"mg1", "mg2"}},
		{"slots", p.Groups[0].Slots.Text, "12"},
		{"select", p.Groups[1].Select.Text, "select(!mg && gpus == 0)"},
		{"slot expression", p.Groups[1].Slots.Text, "(ncpus*1)"},
		{"system", p.System[1], true},
		{"rank", p.Rank, []int32{0, 0, 0, 0, 0, 1, 1}},
		{"grace, inherited", p.ReclaimUS, []int64{0, 0, 0, 60e6, 60e6, 60e6, 0}},
		{"admins", p.Admins[risk], []string{"risk-admins"}},
		{"end", p.End[risk], research},
		{"line", p.Line[research], int32(15)},
		{"configured", s.ConfiguredSlots, int64(100)},
		{"placement", s.Placement, Stacked},
		{"members", s.Member, []bool{true, false, false, true, true, true, true}},
		{"policies", []PolicyKind{day.Policy[risk], day.Policy[intraday], day.Policy[research]},
			[]PolicyKind{Ownership, Ownership, Hybrid}},
		{"owns by day", []int64{day.Owns[risk], day.Owns[intraday], day.Owns[overnight]}, []int64{60, 40, 10}},
		{"owns by night", []int64{night.Owns[risk], night.Owns[intraday], night.Owns[overnight]}, []int64{60, 20, 20}},
		{"lend by night", night.LendLimit[intraday], int64(30)},
		{"borrow", []int64{day.BorrowLimit[risk], day.BorrowLimit[intraday], day.BorrowLimit[overnight]},
			[]int64{0, 20, Unlimited}},
		{"borrow from", day.BorrowFrom[intraday], []Peer{{Node: research}, {Any: true}}},
		{"share", []int64{day.Ratio[intraday], day.Max[intraday], day.Ratio[overnight], day.Max[overnight]},
			[]int64{2, 80, 1, Unlimited}},
		{"hybrid", []int64{day.Owns[research], day.Reserves[research], day.Limit[research]}, []int64{40, 5, 90}},
		{"hours", night.Window, Window{Name: "night", Line: 26, From: 1200, To: 480, Days: everyDay}},
		{"groups", d.Groups, []PlanGroup{{Group: 2, Preference: 1}}},
		{"overcommit", d.OvercommitMilli, []int64{1500, 1000, 1000, 1000}},
		{"public grace", d.PublicGraceUS, int64(300e6)},
		{"rebalance", d.OwnershipRebalance, int32(10)},
		{"share reclaim", w.ShareReclaim[risk], true},
		{"reserve", w.Reserve[risk], Reserve{Hosts: 5, Percent: Unlimited}},
		{"graces", []int64{w.LendGraceUS[risk], w.PrivateUS[risk]}, []int64{60e6, 60e6}},
		{"MD share", []int64{int64(w.Priority[risk]), w.Ratio[risk], w.Limit[2][risk], w.Limit[0][risk]},
			[]int64{0, 2, 64, Unlimited}},
		{"preference", w.Preference[0][risk], int8(1)},
		{"all day", w.Window, Window{Days: everyDay}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	testOwn(t, w.Own[risk])
}

func testOwn(t *testing.T, got []OwnRule) {
	t.Helper()
	rule := func(line int32, set func(*OwnRule)) OwnRule {
		r := OwnRule{Hosts: Unlimited, Percent: Unlimited, Line: line}
		set(&r)
		return r
	}
	none := Part{Unlimited, Unlimited}
	want := []OwnRule{
		rule(34, func(r *OwnRule) { r.Hosts = 20 }),
		rule(34, func(r *OwnRule) { r.Percent = 10_000 }),
		rule(34, func(r *OwnRule) { r.Group, r.HostList = -1, []string{"g1", "g2"} }),
		rule(35, func(r *OwnRule) { r.Amount, r.Partial = []int64{128, Unlimited, 16, Unlimited}, true }),
		rule(35, func(r *OwnRule) { r.Remaining = true }),
		rule(36, func(r *OwnRule) { r.PerHost = []Part{{Unlimited, 25_000}, none, none, none} }),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("own: got\n%+v\nwant\n%+v", got, want)
	}
}

// TestCases compiles every policy of the worked examples.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		policies := inlinePolicies(string(text))
		if len(policies) == 0 {
			t.Errorf("%s: %d policies found", file, len(policies))
		}
		for _, one := range policies {
			if p, err := Parse(file, []byte(one)); err != nil {
				t.Errorf("%v in\n%s", err, one)
			} else {
				p.Warnings()
			}
		}
	}
}

// inlinePolicies cuts out the blocks under the keys `plan:`.
func inlinePolicies(text string) (out []string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if at := strings.Index(line, "plan:"); at >= 0 && strings.Trim(line, " -") == "plan:" {
			end := i + 1
			for end < len(lines) && strings.HasPrefix(lines[end], strings.Repeat(" ", at+1)) {
				end++
			}
			out = append(out, strings.Join(lines[i+1:end], "\n"))
		}
	}
	return out
}

// TestJSON reads the same policy as JSON, with a byte order mark and in one line.
func TestJSON(t *testing.T) {
	p := parsed(t,
		"\ufeff"+`{"stint":1,"dimensions":["ncpus"],"consumers":[{"path":"/A","reclaim_grace":0}],"resource_groups":[{"name":"G","hosts":["h1"]}],`+
			`"md_plans":[{"name":"p","resource_groups":[{"name":"G"}],"overcommit":{"ncpus":1.250},"consumers":[{"path":"/A","share":{"priority":-5}}]}]}`)
	if d := p.MDPlans[0]; d.OvercommitMilli[0] != 1250 || d.Windows[0].Priority[1] != -5 || !d.OvercommitConfigured {
		t.Errorf("got %+v", d)
	}
}

// TestTree puts siblings in the order of the list, whatever stands between them.
func TestTree(t *testing.T) {
	p := parsed(t, "stint: 1\ndimensions: [ncpus]\nconsumers: [{path: /B/Y}, {path: /A, renamed_from: /Old}, {path: "+
		"/B}, {path: /B/X, users: [u]}, {path: /A/Z}]")
	if want := []string{"/", "/A", "/A/Z", "/B", "/B/Y", "/B/X"}; !slices.Equal(p.Path, want) {
		t.Fatalf("got %v", p.Path)
	}
	for _, c := range []struct {
		what      string
		got, want []Node
	}{
		{"parent", p.Parent, []Node{None, 0, 1, 0, 3, 3}},
		{"first", p.First, []Node{1, 2, None, 4, None, None}},
		{"next", p.Next, []Node{None, 3, None, None, 5, None}},
		{"end", p.End, []Node{6, 3, 3, 6, 5, 6}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
	if !slices.Equal(p.Depth, []int32{0, 1, 2, 1, 2, 2}) || p.RenamedFrom[1] != "/Old" || p.Users[5][0] != "u" {
		t.Errorf("depth %v, renamed %v, users %v", p.Depth, p.RenamedFrom, p.Users)
	}
	if n, ok := p.Find("/B/X"); !ok || n != 5 || p.Leaf(Root) || !p.Leaf(2) || p.Leaf(3) {
		t.Errorf("found %v %v", n, ok)
	}
}

// TestWindowsMerge overrides key by key: a key of a window replaces the plan's as a whole.
func TestWindowsMerge(t *testing.T) {
	p := parsed(t, `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, hosts: [h1, h2]}]
consumers: [{path: /A, rank: 4}, {path: /A/B, rank: 3}, {path: /A/C}, {path: /D}]
md_plans:
  - name: p
    resource_groups: [{name: G, preference: 7}]
    share_reclaim: true
    consumers:
      - {path: /A, share: {priority: 2, ratio: 3}, own: [{group: G, hosts: 1}], preference: {G: 2}}
      - {path: /A/B, rank: 9}
    windows:
      - {name: day, hours: "08:00-20:00", consumers: [{path: /A, share: {ratio: 5}, share_reclaim: false}]}
      - {name: night, hours: "20:00-08:00", consumers: [{path: /A, own: []}, {path: /A/B, preference: {G: 9}}]}
`)
	d := &p.MDPlans[0]
	day, night := &d.Windows[0], &d.Windows[1]
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"member", d.Member, []bool{true, true, true, false, false}},
		{"rank", day.Rank, []int32{0, 4, 9, 0, 0}},
		{"priority", []int32{day.Priority[1], night.Priority[1]}, []int32{0, 2}},
		{"ratio", [][]int64{day.Ratio, night.Ratio}, [][]int64{{1, 5, 1, 0, 0}, {1, 3, 1, 0, 0}}},
		{"own", []int{len(day.Own[1]), len(night.Own[1])}, []int{1, 0}},
		{"preference", [][]int8{day.Preference[0], night.Preference[0]}, [][]int8{{7, 2, 2, 0, 0}, {7, 2, 9, 0, 0}}},
		{"share reclaim", [][]bool{day.ShareReclaim, night.ShareReclaim},
			[][]bool{{true, false, false, false, false}, {true, true, true, false, false}}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestFairReclaimKeys reads what steers fair reclaim: a band, exact, and a shortest run time that those below inherit.
func TestFairReclaimKeys(t *testing.T) {
	p := parsed(t, `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, hosts: [h1]}, {name: H, hosts: [h2]}, {name: I, hosts: [h3]}]
consumers: [{path: /A, min_runtime: 5m}, {path: /A/B}, {path: /A/C, min_runtime: 0}, {path: /D}]
md_plans:
  - {name: g, resource_groups: [{name: G}], consumers: [{path: /A}]}
  - {name: h, resource_groups: [{name: H}], fair_band: 0.125, consumers: [{path: /A}]}
  - {name: i, resource_groups: [{name: I}], fair_band: 0, consumers: [{path: /A}]}
`)
	if want := []int64{0, 300e6, 300e6, 0, 0}; !slices.Equal(p.RuntimeUS, want) {
		t.Errorf("min_runtime: got %v, want %v", p.RuntimeUS, want)
	}
	for i, want := range []int64{10, 125, 0} {
		if got := p.MDPlans[i].FairBandMilli; got != want {
			t.Errorf("fair_band of plan %d: got %d thousandths, want %d", i, got, want)
		}
	}
}

// TestSwitchOfPolicy clears in each window what its policy does not know.
func TestSwitchOfPolicy(t *testing.T) {
	p := parsed(t, `
stint: 1
dimensions: [slots]
resource_groups: [{name: G, hosts: [h1]}]
consumers: [{path: /A}]
slot_plans:
  - resource_group: G
    consumers: [{path: /A, owns: 5, reserves: 2, limit: 9, lend: {limit: 3}, borrow: {}, share: {ratio: 2, max: 8}}]
    windows:
      - {name: own, hours: "00:00-08:00", consumers: [{path: /A, policy: ownership}]}
      - {name: mix, hours: "08:00-16:00", consumers: [{path: /A, policy: hybrid}]}
      - {name: share, hours: "16:00-24:00", consumers: [{path: /A, policy: share_ratio}]}
`)
	for i, want := range [][]int64{
		{5, 0, Unlimited, 3, Unlimited, 2, 8},
		{5, 2, 9, 0, 0, 1, Unlimited},
		{0, 0, Unlimited, 0, 0, 2, 8},
	} {
		w := &p.SlotPlans[0].Windows[i]
		got := []int64{w.Owns[1], w.Reserves[1], w.Limit[1], w.LendLimit[1], w.BorrowLimit[1], w.Ratio[1], w.Max[1]}
		if !slices.Equal(got, want) {
			t.Errorf("window %s: got %v, want %v", w.Name, got, want)
		}
	}
}

// TestWindowAt follows the wall clock, over midnight and through a shift of daylight saving time.
func TestWindowAt(t *testing.T) {
	p := parsed(t, `
stint: 1
timezone: Europe/London
dimensions: [slots]
resource_groups: [{name: G, hosts: [h1]}, {name: H, hosts: [h2]}]
consumers: [{path: /A}]
slot_plans:
  - resource_group: G
    consumers: [{path: /A, policy: hybrid}]
    windows:
      - {name: day, hours: "08:00-20:30", days: [mon, tue, wed, thu, fri]}
      - {name: night, hours: "20:30-08:00", days: [mon, tue, wed, thu]}
      - {name: start, hours: "00:00-08:00", days: [mon]}
      - {name: friday, hours: "20:30-24:00", days: [fri]}
      - {name: weekend, hours: "00:00-24:00", days: [sat, sun]}
md_plans: [{name: p, resource_groups: [{name: H}], consumers: [{path: /A}]}]
`)
	dated := parsed(t, `
stint: 1
timezone: Europe/London
dimensions: [slots]
resource_groups: [{name: G, hosts: [h1]}, {name: H, hosts: [h2]}]
consumers: [{path: /A}]
slot_plans:
  - resource_group: G
    consumers: [{path: /A, policy: hybrid}]
    windows:
      - {name: day, hours: "08:00-20:00"}
      - {name: autumn, from: 2026-10-25, until: 2026-10-25 01:30}
      - {name: night, hours: "20:00-08:00"}
      - {name: summer, from: 2026-07-01 12:00, until: 2026-07-02}
md_plans:
  - name: p
    resource_groups: [{name: H}]
    consumers: [{path: /A}]
    windows: [{name: once, from: 2026-07-01, until: "2026-07-01T06:00"}]
`)
	for at, want := range map[string][2]string{
		"2026-06-30T22:59:59Z": {"night", ""},
		"2026-06-30T23:00:00Z": {"night", "once"}, // midnight by the wall clock
		"2026-07-01T04:59:59Z": {"night", "once"},
		"2026-07-01T05:00:00Z": {"night", ""},
		"2026-07-01T10:59:59Z": {"day", ""},
		"2026-07-01T11:00:00Z": {"summer", ""},
		"2026-07-01T22:59:59Z": {"summer", ""},
		"2026-07-01T23:00:00Z": {"night", ""},
		"2027-07-01T12:00:00Z": {"day", ""}, // once
		"2026-10-24T23:00:00Z": {"autumn", ""},
		"2026-10-25T00:29:59Z": {"autumn", ""}, // 01:29 for the first time; it closes at 01:30
		"2026-10-25T00:30:00Z": {"night", ""},
		"2026-10-25T01:15:00Z": {"night", ""}, // 01:15 for the second time
	} {
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		s, m := &dated.SlotPlans[0], &dated.MDPlans[0]
		got := [2]string{s.Windows[s.WindowAt(instant.UnixMicro(), dated.Location)].Name,
			m.Windows[m.WindowAt(instant.UnixMicro(), dated.Location)].Name}
		if got != want {
			t.Errorf("%s: got %v, want %v", at, got, want)
		}
	}
	for at, want := range map[string]string{
		"2026-01-05T00:00:00Z": "start",   // Monday
		"2026-01-05T08:00:00Z": "day",     //
		"2026-01-05T20:29:59Z": "day",     //
		"2026-01-05T20:30:00Z": "night",   //
		"2026-01-06T07:59:00Z": "night",   // begun on Monday
		"2026-01-09T21:00:00Z": "friday",  //
		"2026-01-10T00:00:00Z": "weekend", //
		"2026-01-11T23:59:00Z": "weekend", //
		"2026-07-06T07:00:00Z": "day",     // 08:00 by the wall clock
		"2026-07-06T06:59:00Z": "start",   //
		"2026-07-06T19:30:00Z": "night",   //
		"1969-12-29T08:30:00Z": "day",     // a Monday; London was an hour ahead all year
	} {
		instant, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		s := &p.SlotPlans[0]
		if got := s.Windows[s.WindowAt(instant.UnixMicro(), p.Location)].Name; got != want {
			t.Errorf("%s: got %s, want %s", at, got, want)
		}
		if got := p.MDPlans[0].WindowAt(instant.UnixMicro(), p.Location); got != 0 {
			t.Errorf("%s: MD window %d", at, got)
		}
	}
}

// TestNumbers reads numbers exactly.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1000, "0.001": 1, "1.5": 1500, "1.50000": 1500, "100": 100_000, "12.345": 12345, ".5": 500, "7.": 7000,
		"1.2345": -1, "": -1, ".": -1, "1e3": -1, "-1": -1, "1_000": -1, "99999999999999999999": -1, "+1": -1,
	} {
		got, ok := parseThousandths(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 1: "0.001", 1500: "1.5", 100_000: "100"} {
		if got := decimal(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	p := parsed(t, `
stint: 1
dimensions: [slots, ncpus]
resource_groups: [{name: G, hosts: [h1]}, {name: H, hosts: [h2]}, {name: I, hosts: [h3, h4]}]
consumers:
  - {path: /A, system: true}
  - {path: /A/L, reclaim_grace: 5m}
  - {path: /B, reclaim_grace: 5m}
  - {path: /C, reclaim_grace: 5m}
  - {path: /Nowhere}
  - {path: /E}
slot_plans:
  - resource_group: G
    consumers:
      - {path: /A, policy: ownership, owns: 4}
      - {path: /A/L, owns: 2, lend: {limit: 1, to: [/B]}}
      - {path: /B, policy: ownership, share: {ratio: 0}}
      - {path: /C, policy: ownership, borrow: {}, share: {max: 0}}
      - {path: /E, policy: ownership, borrow: {}}
    windows:
      - {name: day, hours: "08:00-20:00"}
      - {name: night, hours: "20:00-08:00", consumers: [{path: /A, owns: 3}]}
  - resource_group: H
    consumers: [{path: /B, policy: hybrid, rank: 1, owns: 4, reserves: 4}]
md_plans:
  - name: p
    resource_groups: [{name: I}]
    public_pool: {grace: 1m}
    consumers:
      - {path: /A, rank: 2, own: [{group: I, percent: 50}], reserve: {percent: 100}, lend_grace: 0}
      - {path: /B, rank: 3, share: {ratio: 0}}
      - {path: /C, rank: 4, share: {limit: {ncpus: 0}}, own: [{group: I, hosts: 1}], lend_grace: 1m, reserve: {hosts: 1}}
`)
	want := []string{
		"p:7: plan G, window day: /A/L lends, but nobody can borrow from it",
		"p:6: plan p: /A owns hosts, but no leaf below it takes part in the plan, so that none has them as its own",
		"p:6: plan G, window night: the parent /A owns 3, in window day it owns 4, and nobody owns more in its place",
		"p:8: plan G, window day: /B has share ratio 0, owns nothing and does not borrow",
		"p:9: plan G, window day: /C can never get anything, a limit is 0",
		"p:10: /Nowhere is in no plan and can never get anything",
		"p:13: plan G, window day: all who borrow have the same rank; who borrows first, and gives back last, goes " +
			"by the order of consumers",
		"p:23: plan H: all that is owned is reserved, nothing can be shared",
		"p:26: plan p: all that is owned is reserved, nothing can be lent",
		"p:26: plan p: public_pool.grace is below the reclaim grace of every consumer; nobody can use the public pool",
		"p:8: plan p: /B has share ratio 0 and owns nothing",
		"p:9: plan p: lend_grace of /C is below the reclaim grace of every other consumer; nobody can borrow from it",
	}
	var got []string
	for _, w := range p.Warnings() {
		got = append(got, w.String())
	}
	for _, w := range want {
		if !slices.Contains(got, w) {
			t.Errorf("missing: %s", w)
		}
	}
	if t.Failed() || len(got) != len(want)+4 { // four of them again by night
		t.Errorf("%d warnings:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// TestQuiet gives no warning for a policy that has nothing suspect.
func TestQuiet(t *testing.T) {
	p := parsed(t, `
stint: 1
dimensions: [slots]
resource_groups: [{name: G, hosts: [h1]}]
consumers: [{path: /A}, {path: /B, rank: 1}]
slot_plans:
  - resource_group: G
    consumers:
      - {path: /A, policy: ownership, owns: 4, lend: {limit: 2, to: siblings}}
      - {path: /B, policy: ownership, borrow: {limit: 1, from: [/A]}}
`)
	if got := p.Warnings(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestQuietRanks gives no warning of ranks where they decide nothing but ties, nor of plans that own otherwise by day
// than by night.
func TestQuietRanks(t *testing.T) {
	for _, text := range []string{`
consumers: [{path: /A}, {path: /A/a}, {path: /A/b}, {path: /B}]
slot_plans:
  - resource_group: G
    configured_slots: 800
    consumers:
      - {path: /A, policy: ownership, owns: 200}
      - {path: /A/a, owns: 100, lend: {limit: 50}}
      - {path: /A/b, borrow: {}}
      - {path: /B, policy: ownership, owns: 600, lend: {limit: 9}}
    windows:
      - {name: day, hours: "08:00-20:00"}
      - {name: night, hours: "20:00-08:00", consumers: [{path: /A, owns: 500}, {path: /A/a, owns: 300}, {path: /B, owns: 300}]}
`, `
consumers: [{path: /A}, {path: /B}]
slot_plans: [{resource_group: G, consumers: [{path: /A, policy: hybrid, owns: 2}, {path: /B, policy: hybrid, owns: 2}]}]
`, `
consumers: [{path: /A}, {path: /B}, {path: /C}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B, own: [{host_list: [h1]}]}, {path: /C, own: [{group: G, hosts: 1}]}]}]
`} {
		head := "stint: 1\ndimensions: [slots]\nresource_groups: [{name: G, hosts: [h1, h2]}]"
		if got := parsed(t, head+text).Warnings(); len(got) != 0 {
			t.Errorf("got %v for %s", got, text)
		}
	}
}

// FuzzParse holds the parser to its promises: no panic, faults that can be
// printed, and a policy that compiles again to the same.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/spec.yaml", "testdata/faults.txt"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, one := range strings.Split(string(text), "\n## ") {
			body, _, _ := strings.Cut(one, "\n----\n")
			f.Add([]byte(body[strings.IndexByte(body, '\n')+1:]))
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse("p", text)
		if err != nil {
			faults, ok := err.(Faults)
			if !ok || len(faults) == 0 || err.Error() == "" {
				t.Fatalf("%T: %v", err, err)
			}
			if stack := faults.Bug(); stack != "" {
				t.Fatalf("%v\n%s", err, stack)
			}
			return
		}
		for i := range p.SlotPlans {
			p.SlotPlans[i].WindowAt(0, p.Location)
		}
		for i := range p.MDPlans {
			p.MDPlans[i].WindowAt(0, p.Location)
		}
		p.Warnings()
		again, err := Parse("p", text)
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatalf("not the same again: %v", err)
		}
	})
}

// TestParseAccepted takes policy files of earlier versions that are faulty now, and none that never was taken.
func TestParseAccepted(t *testing.T) {
	const head = "stint: 1\ndimensions: [ncpus]\nresource_groups: [{name: G, hosts: [h1, h2], slots: 4}]\n"
	for name, text := range map[string]string{
		"children own more": head + "consumers: [{path: /A}, {path: /A/x}, {path: /A/y}]\n" +
			"md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A, own: [{group: G, amount: " +
			"{ncpus: 8}, partial: true}]}, {path: /A/x, own: [{group: G, amount: {ncpus: 8}, partial: true}]}, " +
			"{path: /A/y, own: [{group: G, amount: {ncpus: 4}, partial: true}]}]}]\n",
		"a system service without a slot": head + "consumers: [{path: /S, system: true}]\n" +
			"slot_plans: [{resource_group: G, consumers: [{path: /S, policy: ownership, owns: 0}]}]\n",
	} {
		if _, err := Parse("plan", []byte(text)); err == nil {
			t.Errorf("%s: is no fault", name)
		}
		if p, err := ParseAccepted("plan", []byte(text)); err != nil || p.Digest == "" {
			t.Errorf("%s: was in force once: %v", name, err)
		}
		if _, err := ParseAccepted("plan", []byte(text+"x: 1\n")); err == nil {
			t.Errorf("%s: an unknown key was never taken", name)
		}
	}
}

// TestLineEnds holds that a policy means the same whether its lines end with LF or CR LF, within quotes too.
func TestLineEnds(t *testing.T) {
	text := "stint: 1\ndimensions: [n]\nconsumers: [{path: /A}]\nresource_groups:\n" +
		"  - {name: All, select: \"select(n > 0\n      && n < 9)\"}\n"
	for _, end := range []string{"\n", "\r\n"} {
		p, err := Parse("p", []byte(strings.ReplaceAll(text, "\n", end)))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Groups[0].Select.Text; got != "select(n > 0 && n < 9)" {
			t.Errorf("lines that end with %q: %q", end, got)
		}
	}
}
