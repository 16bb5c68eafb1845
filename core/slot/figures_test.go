package slot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// newPlanner is the planner of a plan with one host of so many slots, where consumers want units of a slot; it has
// entitled them to what they deserve. A line of consumers has a path, a rank and an entry; the policy is ownership
// where none is named.
func newPlanner(t *testing.T, settings, consumers string, slots int, wants string) *Planner {
	t.Helper()
	text := "stint: 1\ndimensions: [slots]\nresource_groups: [{name: G, select: \"select(slots > 0)\"}]\nconsumers:\n"
	entries := ""
	for line := range strings.Lines(consumers) {
		if path, entry, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			rank, entry, _ := strings.Cut(entry, "; ")
			if strings.Count(path, "/") == 1 && !strings.HasPrefix(entry, "policy: ") {
				entry = "policy: ownership, " + entry
			}
			text += fmt.Sprintf("  - {path: %s, rank: %s}\n", path, rank)
			entries += fmt.Sprintf("      - {path: %s, %s}\n", path, entry)
		}
	}
	text += "slot_plans:\n  - resource_group: G\n" + settings + "    consumers:\n" + entries
	p, err := plan.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	o := table.Options{Format: table.CSV, Dimensions: p.Dimensions}
	hosts, err := table.ReadHosts(strings.NewReader(fmt.Sprintf("host,slots\nh1,%d\n", slots)), o)
	if err == nil {
		err = s.SetHosts(hosts, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	rows := "consumer,allocation,units,slots\n"
	for want := range strings.FieldsSeq(wants) {
		path, units, _ := strings.Cut(want, "=")
		rows += fmt.Sprintf("%s,a,%s,1\n", path, units)
	}
	demand, err := table.ReadDemand(strings.NewReader(rows), o)
	if err == nil {
		err = s.SetDemand("s", demand)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(60e6)
	m := new(Planner)
	m.Attach(s, &s.Plans[0], 60e6)
	m.Own()
	m.Entitle()
	return m
}

// by is a figure of all consumers, in the order of the policy.
func (m *Planner) by(figure []int64) string {
	var list []string
	for n := plan.Root; int(n) < m.policy.Len(); n++ {
		list = append(list, fmt.Sprintf("%s=%d", m.policy.Path[n], figure[n]))
	}
	return strings.Join(list, " ")
}

// TestFigures holds who owns how much and who deserves how much against figures worked out by hand, rule by rule.
func TestFigures(t *testing.T) {
	owns := func(m *Planner) []int64 { return m.owned.of }
	pools := func(m *Planner) []int64 { return m.owned.pool }
	dynamic := func(m *Planner) []int64 { return m.quota.dynamic }
	static := func(m *Planner) []int64 { return m.quota.static }
	hybrid := func(m *Planner) []int64 { return m.hybrid.quota }
	for _, c := range []struct {
		rule, name          string
		settings, consumers string
		slots               int
		wants               string
		figure              func(m *Planner) []int64
		want                string
	}{
		{
			rule:      "SLOT-1",
			name:      "what a branch owns beyond its children is the family's pool, what nobody owns the cluster's",
			consumers: "/A: 0; owns: 6\n/A/x: 0; owns: 2\n/A/y: 1; owns: 1\n/B: 1; owns: 1", slots: 10, figure: pools,
			want: "/=3 /A=3 /A/x=0 /A/y=0 /B=0",
		},
		{
			rule: "SLOT-13", name: "fewer slots than are owned: in rank order",
			consumers: "/A: 1; owns: 4, lend: {limit: 4}\n/B: 0; owns: 4, lend: {limit: 4}", slots: 6, figure: owns,
			want: "/=6 /A=2 /B=4",
		},
		{
			rule: "SLOT-13", name: "fewer slots than are owned: what is never lent before the rest",
			consumers: "/A: 1; owns: 4, lend: {limit: 1}\n/B: 0; owns: 4, lend: {limit: 4}", slots: 6, figure: owns,
			want: "/=6 /A=3 /B=3",
		},
		{
			rule: "SLOT-6", name: "the pool by ratio, none more than it can use",
			consumers: "/A: 0; share: {ratio: 1}\n/B: 1; share: {ratio: 2}\n/C: 2; share: {ratio: 3}",
			slots:     12, wants: "/A=9 /B=9 /C=2",
			figure: dynamic, want: "/=12 /A=4 /B=6 /C=2",
		},
		{
			rule: "SLOT-6", name: "static: the pool by ratio, whatever is wanted",
			consumers: "/A: 0; share: {ratio: 1}\n/B: 1; share: {ratio: 2}\n/C: 2; share: {ratio: 3}",
			slots:     12, wants: "/A=9",
			figure: static, want: "/=12 /A=2 /B=4 /C=6",
		},
		{
			rule: "SLOT-5", name: "what a family does not need of its pool goes up",
			consumers: "/A: 0; owns: 6\n/A/x: 0; share: {ratio: 1}\n/B: 1; share: {ratio: 1}",
			slots:     8, wants: "/A/x=2 /B=9",
			figure: dynamic, want: "/=8 /A=2 /A/x=2 /B=6",
		},
		{
			rule: "SLOT-4", name: "a maximum caps what is needed",
			consumers: "/A: 0; share: {ratio: 1, max: 3}\n/B: 1; share: {ratio: 1}", slots: 12, wants: "/A=12 /B=12",
			figure: dynamic, want: "/=12 /A=3 /B=9",
		},
		{
			rule: "SLOT-4", name: "a maximum counts what is owned first",
			consumers: "/A: 0; owns: 2, share: {ratio: 1, max: 3}\n/B: 1; share: {ratio: 1}",
			slots:     12, wants: "/A=12 /B=12",
			figure: dynamic, want: "/=10 /A=1 /B=9",
		},
		{
			rule: "SLOT-4", name: "behind a ratio of 0 nobody draws on pools above it",
			consumers: "/A: 0; owns: 2, share: {ratio: 0}\n/A/x: 0; share: {ratio: 1}\n/B: 1; share: {ratio: 1}",
			slots:     8, wants: "/A/x=9 /B=9",
			figure: dynamic, want: "/=8 /A=2 /A/x=2 /B=6",
		},
		{
			rule: "SLOT-23", name: "hybrid: by what is owned, what is left by that again",
			consumers: "/A: 0; policy: hybrid, owns: 1\n/B: 1; policy: hybrid, owns: 2\n/C: 2; policy: hybrid, owns: 3",
			slots:     12,
			wants:     "/A=12 /B=12 /C=3", figure: hybrid, want: "/=12 /A=3 /B=6 /C=3",
		},
		{
			rule: "SLOT-23", name: "hybrid: those who own nothing come last",
			consumers: "/A: 0; policy: hybrid, owns: 0\n/B: 1; policy: hybrid, owns: 6",
			slots:     6, wants: "/A=6 /B=4", figure: hybrid,
			want: "/=6 /A=2 /B=4",
		},
		{
			rule: "SLOT-24", name: "hybrid: slots that are left go in rank order to those who had a fraction",
			consumers: "/A: 1; policy: hybrid, owns: 1\n/B: 0; policy: hybrid, owns: 1\n/C: 2; policy: hybrid, owns: 1",
			slots:     10,
			wants:     "/A=10 /B=10 /C=10", figure: hybrid, want: "/=10 /A=3 /B=4 /C=3",
		},
		{
			rule: "SLOT-25", name: "hybrid: what owners leave goes to all alike",
			settings:  "    distribute_evenly: true\n",
			consumers: "/A: 0; policy: hybrid, owns: 1\n/B: 1; policy: hybrid, owns: 3\n/C: 2; policy: hybrid, owns: 8",
			slots:     12,
			wants:     "/A=12 /B=12 /C=4", figure: hybrid, want: "/=12 /A=3 /B=5 /C=4",
		},
		{
			rule: "SLOT-22", name: "hybrid: at least the reserve, at most the limit",
			consumers: "/A: 0; policy: hybrid, owns: 4, reserves: 2\n/B: 1; policy: hybrid, owns: 4, limit: 5",
			slots:     8,
			wants:     "/B=8", figure: hybrid, want: "/=8 /A=2 /B=5",
		},
	} {
		t.Run(c.rule+" "+c.name, func(t *testing.T) {
			m := newPlanner(t, c.settings, c.consumers, c.slots, c.wants)
			if got := m.by(c.figure(m)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// TestCrowd holds the heap of leaves that give against a sorted list, while what they go by falls.
func TestCrowd(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 1 + r.IntN(20)
		key, rank := make([]int64, n), make([]int32, n)
		c := &crowd{Planner: &Planner{tree: &tree{rankOf: rank}}, key: func(leaf plan.Node) int64 { return key[leaf] }}
		for i := range n {
			key[i], rank[i] = r.Int64N(6), int32(i)
			c.leaf = append(c.leaf, plan.Node(i))
		}
		r.Shuffle(n, func(i, j int) { rank[i], rank[j] = rank[j], rank[i] })
		c.heap()
		for len(c.leaf) > 0 {
			list := slices.Clone(c.leaf)
			slices.SortFunc(list, func(a, b plan.Node) int {
				if c.before(a, b) {
					return -1
				}
				return 1
			})
			if c.leaf[0] != list[0] {
				t.Fatalf("%d is on top, want %d: keys %v, ranks %v", c.leaf[0], list[0], key, rank)
			}
			if top := c.leaf[0]; key[top] > 0 && r.IntN(3) > 0 {
				key[top] -= 1 + r.Int64N(key[top]) // it gave something
				c.sink(0)
			} else if got := c.pop(); got != list[0] {
				t.Fatalf("popped %d, want %d", got, list[0])
			} else if r.IntN(10) == 0 {
				c.push([]plan.Node{got})
				key[got] = 0
				c.heap()
			}
		}
	}
}
