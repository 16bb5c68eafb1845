package foreign

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/datasets"
)

// egoText makes a file of a text, nil of "".
func egoText(name, text string) *File {
	if text == "" {
		return nil
	}
	return &File{name, strings.NewReader(text)}
}

// egoData are the files in testdata/ego.
func egoData(t *testing.T, names ...string) (f EGOFiles) {
	t.Helper()
	into := map[string]**File{"allocation.csv": &f.Allocation, "ResourceGroups.xml": &f.Groups, "MDPlan.xml": &f.MDPlan,
		"ConsumerTrees.xml": &f.Trees, "resources.csv": &f.Resources}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata/ego", name))
		if err != nil {
			t.Fatal(err)
		}
		*into[name] = egoText(name, string(text))
	}
	return f
}

// TestEGO imports files of the real systems' form, and holds the plan and the report against what stands in them.
func TestEGO(t *testing.T) {
	for _, c := range []struct {
		name       string
		files      []string
		plan, lost []string
	}{
		{"the reporting table alone", []string{"allocation.csv"}, []string{
			`cluster: "GRID"`,
			`{path: "/Risk/Intraday", owns: 20, lend: {limit: 10}, borrow: {limit: 30, from: ["/Risk/Overnight", "/Research"]}, share: {ratio: 4, max: 90}}`,
			`{path: "/Risk/Overnight", owns: 40, lend: {limit: 20, to: [siblings]}, borrow: {}, share: {ratio: 3}}`, // 2 to 1.5
			`{path: "/Risk/Intraday", owns: 40}`, `hours: "08:00-20:00"`,
			`{path: "/Research", policy: hybrid, owns: 12, reserves: 2, limit: 14}`,
			`{name: "ComputeHosts", hosts: ["all of ComputeHosts"], slots: "100"}`, // the most that were held
		}, []string{"how many slots ComputeHosts has", "allocation.csv:6: a row of RESOURCE_GROUP all (12 times)"}},
		{"everything about slots", []string{"allocation.csv", "ResourceGroups.xml", "ConsumerTrees.xml",
			"resources.csv"}, []string{
			`{name: "ComputeHosts", select: "select(!mg && !A100)", slots: "(ncpus*1)"}`, `placement: balanced`,
			// the tree's order
			"- {path: \"/Research\"}\n  - {path: \"/Risk\"}\n" +
				"  - {path: \"/Risk/Overnight\"}\n  - {path: \"/Risk/Intraday\"}\n",
		}, []string{
			"ResourceGroups.xml:24: <Colour>", "ResourceGroups.xml:6: host mg3", "ResourceGroups.xml:18: resource mg",
			"ConsumerTrees.xml:22: <LendingPolicy>", "ConsumerTrees.xml:21: Shares of /Risk",
			"ConsumerTrees.xml:5: <ExecutionUser> (2 times)", "resources.csv:1: columns mem, swp",
			"consumer /ManagementServices: ConsumerTrees.xml has it, the table has no row of it",
		}},
		{"a multidimensional plan", []string{"MDPlan.xml", "ResourceGroups.xml", "resources.csv"}, []string{
			`overcommit: {ncpus: 1.5}`, `private_pool_grace: 60s`, `{group: "GPUHosts", percent: 50}`,
			`{host_list: ["c08", "c09"]}`,
			`share: {priority: 1, ratio: 2, limit: {ncpus: 90}}`, `preference: {"GPUHosts": 1, "ComputeHosts": 2}`,
			`share_reclaim: false`,
			`reclaim_for_preference: true`,
		}, []string{
			"MDPlan.xml:9: ConsumableResource licences", "MDPlan.xml:11: PolicyParameter DefaultGracePeriod",
			"MDPlan.xml:12: <SlotMapping>", "MDPlan.xml:23: ResReq", "MDPlan.xml:23: HostSelection of type",
			"MDPlan.xml:44: host c99", "MDPlan.xml:45: <Colour>",
		}},
		{"the trees alone", []string{"ConsumerTrees.xml", "ResourceGroups.xml", "resources.csv"}, []string{
			`{path: "/Risk", policy: share_ratio, share: {ratio: 2}}`,
		}, []string{"what consumers own, lend and borrow in ComputeHosts"}},
		{"a group in both kinds of plans",
			[]string{"allocation.csv", "MDPlan.xml", "ResourceGroups.xml", "resources.csv"}, []string{"md_plans:"},
			[]string{"the rows of ComputeHosts: MDPlan.xml divides the group", "the rows of GPUHosts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := EGO(egoData(t, c.files...))
			if err != nil {
				t.Fatal(err)
			}
			var report strings.Builder
			if err := r.Report.Write(&report); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.plan {
				if !strings.Contains(string(r.Dataset.Plan), want) {
					t.Errorf("the plan does not have %s:\n%s", want, r.Dataset.Plan)
				}
			}
			for _, want := range c.lost {
				if !strings.Contains(report.String(), want) {
					t.Errorf("the report does not have %s:\n%s", want, &report)
				}
			}
		})
	}
}

const egoHeader = "CLUSTER_NAME,CONSUMER_NAME,RESOURCE_GROUP,TIME_STAMP,TIME_STAMP_GMT,ALLOCATED_OWN," +
	"ALLOCATED_SHARE,ALLOCATED_BORROW,PLANNED_OWN,SHARE_RATIO,PLANNED_HOWN,TOTAL_DEMAND,UNSATISFIED_DEMAND\n"

// egoRow is a row of a consumer at so many quarters of an hour after Monday, 2026-01-05 00:00 UTC.
func egoRow(quarters int64, consumer, figures string) string {
	at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).Add(time.Duration(quarters) * 15 * time.Minute)
	return fmt.Sprintf("c,%s,G,%s,%d,%s\n", consumer, at.Format("2006-01-02 15:04:05.0"), at.UnixMilli(), figures)
}

// TestEGORefused gives files that are refused, each with the place and reason that must be told.
func TestEGORefused(t *testing.T) {
	row := egoRow(0, "/A", "1,0,0,1,1,0,1,0")
	groups := func(inner string) string {
		return "<ResourceGroupConfiguration>\n<ResourceGroup ResourceGroupName=\"G\" availableSlots=\"4\">\n" + inner +
			"\n</ResourceGroup></ResourceGroupConfiguration>"
	}
	hosts := "\"NAME\",\"status\",\"ncpus\"\n\"h1\",\"ok\",\"4\"\n"
	bomb := "<?xml version=\"1.0\"?>\n<!DOCTYPE lolz [<!ENTITY lol \"lol\"><!ENTITY lol2 " +
		"\"&lol;&lol;\">]>\n<MDPlan>&lol2;</MDPlan>"
	for _, c := range []struct{ name, table, groups, md, trees, hosts, want string }{
		{"nothing", "", "", "", "", "", "no plan"},
		{"an empty table", " ", "", "", "", "",
			"t.csv:1: columns of CONSUMER_RESOURCE_ALLOCATION are missing: CONSUMER_NAME"},
		{"no rows", egoHeader, "", "", "", "", "t.csv: has no rows"},
		{"half a row", egoHeader + row + "c,/A,G,2026-01-05 00:1", "", "", "", "",
			"t.csv:3: has 4 fields, the header has 13 columns; is the file cut off?"},
		{"an open quote", egoHeader + "c,\"/A,G\n", "", "", "", "", "t.csv:2: has a quote that does not end"},
		{"a number", egoHeader + egoRow(0, "/A", "1,0,0,many,1,0,1,0"), "", "", "", "",
			`t.csv:2: PLANNED_OWN "many": must be a whole number`},
		{"a number below 0", egoHeader + egoRow(0, "/A", "-1,0,0,1,1,0,1,0"), "", "", "", "",
			`t.csv:2: ALLOCATED_OWN "-1"`},
		{"a number above all", egoHeader + egoRow(0, "/A", "1,0,0,99999999999999999999,1,0,1,0"), "", "", "", "",
			`t.csv:2: PLANNED_OWN`},
		{"a ratio", egoHeader + egoRow(0, "/A", "1,0,0,1,NaN,0,1,0"), "", "", "", "", `t.csv:2: SHARE_RATIO "NaN"`},
		{"UTF-16", "\xff\xfeC\x00L\x00", "", "", "", "", "t.csv:1: is in UTF-16"},
		{"Latin-1", egoHeader + egoRow(0, "/\xe9", "1,0,0,1,1,0,1,0"), "", "", "", "", "is not valid UTF-8"},
		{"two clusters", egoHeader + row + strings.Replace(egoRow(1, "/A", "1,0,0,1,1,0,1,0"), "c,", "d,", 1), "", "",
			"", "", `t.csv:3: CLUSTER_NAME "d"`},
		{"two rows of one time", egoHeader + row + egoRow(0, "/A", "2,0,0,1,1,0,2,0"), "", "", "", "",
			"t.csv:3: /A has a row for that time"},
		{"both policies", egoHeader + egoRow(0, "/A/x", "1,0,0,1,1,0,1,0") + egoRow(0, "/A/y", "1,0,0,0,1,3,1,0"), "",
			"", "", "", "PLANNED_HOWN (hybrid policy), and its branch PLANNED_OWN"},
		{"sums alone", egoHeader + strings.Replace(row, ",G,", ",all,", 1), "", "", "", "",
			"rows of RESOURCE_GROUP all only"},
		{"changed clocks", egoHeader + row + strings.Replace(egoRow(1, "/A", "1,0,0,1,1,0,1,0"), "00:15:00", "01:15:00",
			1), "", "", "", "", "t.csv:3: TIME_STAMP is no longer 0 minutes"},
		{"a bomb", "", "", bomb, "", "", "m.xml:2: a document type declaration"},
		{"another encoding", "", "", "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<MDPlan/>", "", "",
			"m.xml:1: is in ISO-8859-1"},
		{"half a file", "", groups("<ResourceList>")[:100], "<MDPlan/>", "", "", "g.xml:"},
		{"too deep", "", strings.Repeat("<a>", 70), "<MDPlan/>", "", "", "nested more than 64 elements deep"},
		{"another root", "", "<configuration/>", "<MDPlan/>", "", "", "g.xml:1: <configuration> is the root element"},
		{"a plan without trees", "", "", "<MDPlan/>", "", "", "m.xml:1: <MDPlan> has no <DistributionTree>"},
		{"a group of nobody", "", "",
			"<DistributionTree DistributionTreeName=\"x\">\n<ResourceGroupName>H</ResourceGroupName></DistributionTree>", "", "", `m.xml:2: ResourceGroupName "H" is no group of ResourceGroups.xml`},
		{"a tree without anything", "", "", "", "<X/>", "", "x.xml:1: <X> has neither"},
		{"a consumer twice", "", "", "", "<ConsumerHierarchy><Consumer ConsumerName=\"A\"/>\n<Consumer " +
			"ConsumerName=\"A\"/></ConsumerHierarchy>", "", "x.xml:2: consumer /A is there twice"},
		{"hosts cut off", egoHeader + row, groups("<ResourceRequirement>select(ncpus)</ResourceRequirement>"), "", "",
			hosts + "\"h2\",\"o", "h.csv:3:"},
		{"a host twice", egoHeader + row, groups(""), "", "", hosts + hosts[strings.Index(hosts, "\n")+1:],
			"h.csv:3: host h1 is there already, on line 2"},
		{"a requirement", egoHeader + row, groups("<ResourceRequirement>select(ncpus &gt;</ResourceRequirement>"), "",
			"", hosts, "g.xml:3: ResourceRequirement of G"},
		{"slots of an expression", egoHeader + row, strings.Replace(groups(""), "\"4\"", "\"(2*maxslots)\"", 1), "", "",
			hosts, "g.xml:2: availableSlots \"(2*maxslots)\" of G: the list of hosts has no column maxslots"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := EGO(EGOFiles{Allocation: egoText("t.csv", c.table), Groups: egoText("g.xml", c.groups),
				MDPlan: egoText("m.xml", c.md),
				Trees:  egoText("x.xml", c.trees), Resources: egoText("h.csv", c.hosts)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// egoWeek is a table of a consumer A that owns as owns says at each quarter of an hour.
func egoWeek(quarters int64, owns func(at time.Time) int) string {
	var b strings.Builder
	b.WriteString(egoHeader)
	for q := range quarters {
		at := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).Add(time.Duration(q) * 15 * time.Minute)
		n := owns(at)
		b.WriteString(egoRow(q, "/A", fmt.Sprintf("%d,0,0,%d,1,,%d,", n, n, n)))
	}
	return b.String()
}

// TestEGOWindows makes the windows of a plan of what its figures were at each time.
func TestEGOWindows(t *testing.T) {
	day := func(at time.Time) bool { return at.Hour() >= 8 && at.Hour() < 20 }
	weekday := func(at time.Time) bool { return at.Weekday() >= time.Monday && at.Weekday() <= time.Friday }
	for _, c := range []struct {
		name     string
		quarters int64
		owns     func(at time.Time) int
		want     []string
		lost     string
	}{
		{"always", 300, func(time.Time) int { return 5 }, nil, ""},
		{"day and night", 7 * 96, func(at time.Time) int {
			if day(at) {
				return 8
			}
			return 4
		}, []string{`hours: "08:00-20:00"`, `hours: "20:00-08:00"`}, ""},
		{"weekdays", 7 * 96, func(at time.Time) int {
			if day(at) && weekday(at) {
				return 8
			}
			return 4
		}, []string{`hours: "08:00-20:00"` + "\n        days: [mon, tue, wed, thu, fri]",
			`hours: "20:00-08:00", days: [mon, tue, wed, thu, sun]`, `hours: "20:00-20:00", days: [fri, sat]`}, ""},
		{"a new plan in the third week", 20 * 96, func(at time.Time) int {
			if at.After(time.Date(2026, 1, 20, 12, 0, 0, 0, time.UTC)) {
				return 9
			}
			return 4
		}, nil, "the plan of G before 2026-01-20 12:15"},
		{"two days of a week", 2 * 96, func(at time.Time) int {
			if day(at) {
				return 8
			}
			return 4
		}, []string{`hours: "08:00-20:00"`}, "7200 of 10080 minutes of the week"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := EGO(EGOFiles{Allocation: egoText("t.csv", egoWeek(c.quarters, c.owns))})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(r.Dataset.Plan), want) {
					t.Errorf("the plan does not have %s:\n%s", want, r.Dataset.Plan)
				}
			}
			if got := strings.Contains(string(r.Dataset.Plan), "windows:"); got != (c.want != nil) {
				t.Errorf("windows: %v\n%s", got, r.Dataset.Plan)
			}
			var report strings.Builder
			if r.Report.Write(&report); !strings.Contains(report.String(), c.lost) {
				t.Errorf("the report does not have %s:\n%s", c.lost, &report)
			}
		})
	}
}

// TestEGOZone: hours are those of the wall clock that the table's two columns of times tell of, or that is given.
func TestEGOZone(t *testing.T) {
	table := egoHeader + "c,/A,G,2026-01-05 02:00:00,1767571200000,1,0,0,1,1,0,1,0\n"
	r, err := EGO(EGOFiles{Allocation: egoText("t.csv", table)})
	if err != nil || !strings.Contains(string(r.Dataset.Plan), "timezone: Etc/GMT-2\n") {
		t.Errorf("%v", err)
	}
	zone := time.FixedZone("elsewhere", 3600)
	if _, err = EGO(EGOFiles{Allocation: egoText("t.csv", table), Zone: zone}); err == nil ||
		!strings.Contains(err.Error(), "t.csv:2: TIME_STAMP 2026-01-05 02:00:00 is 60 minutes beside") {
		t.Errorf("%v", err)
	}
}

// TestEGOOrder: rows may come in any order, quoted or not, and give the same.
func TestEGOOrder(t *testing.T) {
	text, err := os.ReadFile("testdata/ego/allocation.csv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	turned := slices.Clone(lines)
	for i := 1; i+12 <= len(turned); i += 11 { // whole times, the last before the first
		slices.Reverse(turned[i : i+11])
	}
	other := strings.ReplaceAll(strings.Join(slices.Concat(lines[:1], turned[1:]), ""), `"`, "")
	want, err := EGO(EGOFiles{Allocation: egoText("t.csv", string(text))})
	if err != nil {
		t.Fatal(err)
	}
	got, err := EGO(EGOFiles{Allocation: egoText("t.csv", strings.ReplaceAll(other, "\n", "\r\n"))})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.History.Lines {
		w := &want.History.Lines[i]
		k := slices.IndexFunc(got.History.Lines, func(l HistoryLine) bool {
			return l.Plan == w.Plan && l.Consumer == w.Consumer
		})
		if k < 0 || !slices.Equal(got.History.Lines[k].Demand, w.Demand) ||
			!slices.Equal(got.History.Lines[k].Borrow, w.Borrow) {
			t.Errorf("%s in %s differs", w.Consumer, w.Plan)
		}
	}
	if !slices.Equal(got.History.AtUS, want.History.AtUS) {
		t.Error("times differ")
	}
}

// TestEGOScenario writes a part of the history as a scenario.
func TestEGOScenario(t *testing.T) {
	r, err := EGO(egoData(t, "allocation.csv"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "o")
	if err := r.Write(dir, "csv", datasets.ScenarioOptions{Start: 7 * time.Hour, Length: 2 * time.Hour}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "scenario.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"at: 2026-01-05T07:00:00Z\n    cycles: 60", "at: 2026-01-05T08:00:00Z",
		`{consumer: "/Risk/Intraday", allocation: slots, units: 70, plan: "ComputeHosts"}`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the scenario does not have %s:\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), "- at:"); n != 2 {
		t.Errorf("%d steps, want 2", n)
	}
	if err := r.Write(filepath.Join(t.TempDir(), "p"), "csv",
		datasets.ScenarioOptions{Start: 1000 * time.Hour}); err == nil {
		t.Error("a scenario of no row was written")
	}
}
