package oracle_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// lending compiles an MD plan p like owning does, over a tree with a branch in a branch. /A/A2 and /D have a grace
// of 90 s; the ranks are those of the order.
func lending(t *testing.T, settings, entries string) *plan.Policy {
	t.Helper()
	text := `stint: 1
dimensions: [ncpus, maxmem]
resource_groups: [{name: G, hosts: [h1, h2, h3, h4]}, {name: F, hosts: [h5, h6]}]
consumers: [{path: /A}, {path: /A/A1}, {path: /A/A2, rank: 1, reclaim_grace: 90s}, {path: /A/A3, rank: 2}, {path: /A/A3/X}, {path: /A/A3/Y},
  {path: /C, rank: 1}, {path: /D, rank: 2, reclaim_grace: 90s}]
md_plans:
  - name: p
    placement: stacked
    resource_groups: [{name: G}, {name: F, preference: 2}]
    ` + settings + `
    consumers: [` + entries
	for _, path := range []string{"/A", "/A/A1", "/A/A2", "/A/A3", "/A/A3/X", "/A/A3/Y", "/C", "/D"} {
		if !strings.Contains(entries, "path: "+path+"}") && !strings.Contains(entries, "path: "+path+",") {
			text += "{path: " + path + "}, "
		}
	}
	p, err := plan.Parse("test.yaml", []byte(text+"]\n"))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// own is an entry of lending's plan, with what else it says.
func own(path, rule string, more ...string) string {
	return fmt.Sprintf("{path: %s, own: [{%s}]%s}, ", path, rule, strings.Join(append([]string{""}, more...), ", "))
}

// script plays lines on a game and holds what comes out against them:
//
//	wants /C 3 /D 1x2      from now on, units of one CPU, or of two; then a cycle
//	cycle                  another one
//	rest                   as many as it takes
//	plan …                 the plan's entries are others
//	host h1 closed         a host's state
//	gone /C h1 1           units that the client ended
//	holds /C h1=3 / of /A  what is held: pool and lender, "own" for what is
//	takes /D h1=1 recall for /A/A1 until 150
//	                       what is put under reclaim; "back" before what is taken off it
//	short /C 2 fragmented  the shortfalls
//	usage /C / 0.5         share usages in pools
func script(t *testing.T, settings, entries string, ncpus []int64, text string) {
	t.Helper()
	g := of(t, lending(t, settings, entries), ncpus...)
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		got := ""
		switch word {
		case "wants":
			g.units(words)
			g.cycle()
			continue
		case "cycle":
			g.cycle()
			continue
		case "rest":
			for range 20 {
				if g.cycle(); len(g.last.Grants)+len(g.last.Reclaims)+len(g.last.Releases)+g.last.Leaving == 0 {
					break
				}
			}
			continue
		case "plan":
			g.SetPolicy(lending(t, settings, rest), false)
			continue
		case "host":
			g.state(words[0], words[1])
			continue
		case "gone":
			g.Release([]oracle.Holding{{Consumer: words[0], Allocation: "a", Sub: "1", Host: words[1], Units: 1,
				Done: true}})
			continue
		case "holds":
			got = g.held()
		case "takes":
			got = g.taken()
		case "short":
			got = g.short()
		case "usage":
			got = g.usages(words)
		default:
			t.Fatalf("no such word: %s", word)
		}
		if got != rest {
			t.Errorf("%s: got %q, want %q", word, got, rest)
		}
	}
}

// units sets the demand: "/C 3 /D 1x2". The sub-allocation is named after the size.
func (g *game) units(words []string) {
	var rows []oracle.Demand
	for i := 0; i < len(words); i += 2 {
		units, size := int64(0), int64(1)
		a, b, _ := strings.Cut(words[i+1], "x")
		fmt.Sscan(a, &units)
		fmt.Sscan(b, &size)
		rows = append(rows, demand(words[i], fmt.Sprint(size), units, [2]int64{size}))
	}
	g.SetDemand("s", rows)
}

func (g *game) held() string {
	var list []string
	for _, u := range g.last.Held {
		text := fmt.Sprintf("%s %s=%d %s", u.Consumer, u.Host, u.Units, cmp.Or(u.Pool, "own"))
		if u.Lender != "" {
			text += " of " + u.Lender
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return strings.Join(list, "; ")
}

func (g *game) taken() string {
	var list []string
	for _, r := range g.last.Reclaims {
		text := fmt.Sprintf("%s %s=%d %s", r.Consumer, r.Host, r.Units, r.Reason)
		if r.For.Consumer != "" {
			text += " for " + r.For.Consumer
		}
		if r.Action == "cancelled" {
			text = "back " + text
		} else {
			text += fmt.Sprint(" until ", r.DeadlineUS/1e6)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

func (g *game) short() string {
	var list []string
	for _, s := range g.last.Shortfalls {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", s.Consumer, s.Units, s.Reason, s.Blocker)))
	}
	return strings.Join(list, "; ")
}

// usages are those of the consumers and pools that are asked for.
func (g *game) usages(words []string) string {
	var list []string
	for i := 0; i < len(words); i += 3 {
		for _, s := range g.last.Shares {
			if s.Path == words[i] && s.Pool == words[i+1] {
				f, _ := s.Usage.Float64()
				list = append(list, fmt.Sprintf("%s %s %.3f", s.Path, s.Pool, f))
			}
		}
	}
	return strings.Join(list, " ")
}

// all is how a consumer of the first level owns all of G.
const all = "group: G, percent: 100"

func TestLending(t *testing.T) {
	line := own("/A", all) + own("/A/A3", all) + own("/A/A3/X", all)
	for _, c := range []struct {
		name, settings, entries string
		ncpus                   []int64
		text                    string
	}{
		{"MD-7 its own, its parent's pool, the public pool", "",
			own("/A", "group: G, hosts: 2") + own("/A/A1", "group: G, hosts: 1"), []int64{2, 2, 2}, `
			wants /A/A1 5
			holds /A/A1 h1=2 own; /A/A1 h2=2 /A; /A/A1 h3=1 /`},
		{"MD-7 a pool's own parcels before lent ones", "",
			own("/A", "group: G, hosts: 2") + own("/A/A1", "group: G, hosts: 1"), []int64{1, 1}, `
			wants /A/A2 2
			holds /A/A2 h1=1 /A of /A/A1; /A/A2 h2=1 /A`},
		{"MD-8 what is lent goes up level by level", "", line, []int64{4}, `
			wants /A/A3/Y 1 /A/A1 1 /C 1
			holds /A/A1 h1=1 /A of /A/A3/X; /A/A3/Y h1=1 /A/A3 of /A/A3/X; /C h1=1 / of /A/A3/X`},
		{"MD-8 the nearer pool comes first", "", line, []int64{4}, `
			wants /A/A3/X 1 /A/A3/Y 1 /A/A1 1 /C 9
			holds /A/A1 h1=1 /A of /A/A3/X; /A/A3/X h1=1 own; /A/A3/Y h1=1 /A/A3 of /A/A3/X; /C h1=1 / of /A/A3/X`},
		{"MD-8 only what its owner does not want is lent", "", line, []int64{4}, `
			wants /A/A3/X 9 /C 9
			holds /A/A3/X h1=4 own
			short /A/A3/X 5 pool_exhausted; /C 9 pool_exhausted`},
		{"MD-8 of a lent parcel each pool counts what has reached it", "", line, []int64{10}, `
			wants /A/A3/X 1 /A/A3/Y 2 /A/A1 3 /C 2
			usage /A/A3/Y /A/A3 0.222 /A/A1 /A 0.429 /C / 0.500`},
		{"MD-8 a private pool counts its own parcels whole", "", own("/A", all), []int64{4}, `
			wants /C 2 /A/A1 1
			usage /A/A1 /A 0.250 /C / 0.667`},
		{"MD-12 a unit counts in the pool where the ways meet", "", line, []int64{4}, `
			wants /A/A3/Y 1 /A/A1 1
			usage /A/A3/Y /A/A3 0.250 /A/A1 /A 0.333
			short `},
		{"MD-5 a reserve is never lent", "", own("/A", "group: G, hosts: 2") +
			own("/A/A1", "group: G, hosts: 2", "reserve: {hosts: 1}"), []int64{2, 2}, `
			wants /C 9
			holds /C h2=2 / of /A/A1
			wants /C 9 /A/A1 1
			holds /A/A1 h1=1 own; /C h2=2 / of /A/A1
			takes `},
		{"MD-5 a part of a parcel is reserved", "", own("/C", "group: G, hosts: 1", "reserve: {amount: {ncpus: 1}}"),
			[]int64{4}, `
			wants /D 9
			holds /D h1=3 / of /C
			wants /D 9 /C 1
			holds /C h1=1 own; /D h1=3 / of /C
			takes `},
		{"MD-5 a branch's reserve is for all below it", "", own("/A", all, "reserve: {percent: 50}"), []int64{4}, `
			wants /C 9
			holds /C h1=2 / of /A
			wants /C 9 /A/A1 2
			holds /A/A1 h1=2 /A; /C h1=2 / of /A`},
		{"MD-5 it lies on the parcels of those below, too", "",
			own("/A", all, "reserve: {hosts: 1}") + own("/A/A1", "host_list: [h1]"), []int64{2, 2}, `
			wants /C 9
			holds /C h2=2 / of /A
			wants /C 2 /A/A2 1
			holds /A/A2 h1=1 /A of /A/A1; /C h2=2 / of /A`},
		{"MD-5 what is reserved does not count in pools", "", own("/C", "group: G, hosts: 1", "reserve: {percent: 50}"),
			[]int64{4, 4}, `
			wants /D 3
			usage /D / 0.500
			wants /D 3 /C 3
			usage /D / 0.600`},
		{"INV-3 a reserve that appears is cleared", "", own("/C", all), []int64{4}, `
			wants /D 4
			plan ` + own("/C", all, "reserve: {percent: 50}") + `
			cycle
			takes /D h1=2 reserve until 210
			plan ` + own("/C", all, "reserve: {percent: 25}") + `
			cycle
			takes back /D h1=1 reserve
			rest
			holds /D h1=3 / of /C`},
		{"MD-9 the lender's grace", "", own("/C", all, "lend_grace: 60s"), []int64{4}, `
			wants /D 1 /A/A1 1
			holds /A/A1 h1=1 / of /C
			short /D 1 grace_filter`},
		{"MD-9 a grace that is just as long", "", own("/C", all, "lend_grace: 90s"), []int64{4}, `
			wants /D 1
			holds /D h1=1 / of /C`},
		{"MD-9 the private pool's grace is for its children", "", own("/A", all, "private_pool_grace: 60s"), []int64{4},
			`
			wants /A/A2 1 /A/A1 1 /D 1
			holds /A/A1 h1=1 /A; /D h1=1 / of /A
			short /A/A2 1 grace_filter`},
		{"MD-9 the branch's lend_grace is for outsiders", "", own("/A", all, "lend_grace: 60s") + own("/A/A1", all),
			[]int64{4}, `
			wants /A/A2 1 /C 1 /D 1
			holds /A/A2 h1=1 /A of /A/A1; /C h1=1 / of /A/A1
			short /D 1 grace_filter`},
		{"MD-9 the public pool's grace", "public_pool: {grace: 60s}", "", []int64{4}, `
			wants /C 1 /D 1
			holds /C h1=1 /
			short /D 1 grace_filter`},
		{"MD-9 a holding stays when its grace becomes too long, and gets the smaller one", "", own("/C", all),
			[]int64{4}, `
			wants /D 4
			plan ` + own("/C", all, "lend_grace: 30s") + `
			wants /D 5
			holds /D h1=4 / of /C
			takes 
			short /D 1 grace_filter
			wants /D 4 /C 1
			takes /D h1=1 recall for /C until 210
			cycle
			holds /C h1=1 own; /D h1=3 / of /C`},
		{"MD-6 owners' best hosts are used first, their worst lent first", "",
			own("/A", all) + own("/C", "group: F, hosts: 2"), []int64{1, 1, 0, 0, 1, 1}, `
			wants /D 3
			holds /D h1=1 / of /A; /D h2=1 / of /A; /D h5=1 / of /C
			wants /D 3 /C 1
			holds /C h6=1 own; /D h1=1 / of /A; /D h2=1 / of /A; /D h5=1 / of /C`},
		{"MD-6 a consumer's pool is used by its preference", "",
			"{path: /A, own: [{group: G, hosts: 1}, {group: F, hosts: 1}], preference: {G: 3, F: 4}}, ",
			[]int64{1, 0, 0, 0, 1}, `
			wants /A/A1 1
			holds /A/A1 h1=1 /A
			wants /A/A1 1 /C 1
			holds /A/A1 h1=1 /A; /C h5=1 / of /A`},
		{"MD-11 a closed host counts with what is held on it in the pool", "", own("/A", all), []int64{4, 4}, `
			wants /A/A1 6 /C 2
			host h2 closed
			wants /A/A1 4 /C 2
			usage /A/A1 /A 1.000 /C / 1.000`},
	} {
		t.Run(c.name, func(t *testing.T) { script(t, c.settings, c.entries, c.ncpus, c.text) })
	}
}

func TestRecall(t *testing.T) {
	mine := own("/A", all) + own("/A/A1", all)
	for _, c := range []struct {
		name, settings, entries string
		ncpus                   []int64
		text                    string
	}{
		{"MD-10 an owner takes back what it lent, as few as it needs", "", mine, []int64{4}, `
			wants /C 4
			wants /C 4 /A/A1 1
			takes /C h1=1 recall for /A/A1 until 120
			short /A/A1 1 waiting_for_reclaim /C
			cycle
			holds /A/A1 h1=1 own; /C h1=3 / of /A/A1`},
		{"MD-10 those below its parent take back from those outside", "", own("/A", all), []int64{4}, `
			wants /C 4
			wants /C 4 /A/A2 3
			takes /C h1=3 recall for /A/A2 until 120
			cycle
			holds /A/A2 h1=3 /A; /C h1=1 / of /A`},
		{"MD-10 from a sibling's parcel, too", "", mine, []int64{2}, `
			wants /C 2
			wants /C 2 /A/A2 1
			takes /C h1=1 recall for /A/A2 until 120
			cycle
			holds /A/A2 h1=1 /A of /A/A1; /C h1=1 / of /A/A1`},
		{"MD-10 an owner takes back from its sibling", "", mine, []int64{2}, `
			wants /A/A3/X 2
			wants /A/A3/X 2 /A/A1 1
			takes /A/A3/X h1=1 recall for /A/A1 until 120`},
		{"MD-10 nobody takes back from its own branch what that drew on", "share_reclaim: false", own("/A", all),
			[]int64{2}, `
			wants /A/A3/X 2
			wants /A/A3/X 2 /A/A1 1
			takes 
			short /A/A1 1 pool_exhausted`},
		{"MD-10 the last rank gives first", "", mine, []int64{4}, `
			wants /C 2 /D 2
			wants /C 2 /D 2 /A/A1 3
			takes /C h1=1 recall for /A/A1 until 120; /D h1=2 recall for /A/A1 until 210`},
		{"MD-10 one large unit rather than three small ones", "", mine, []int64{6}, `
			wants /C 1x3 /D 3
			wants /C 1x3 /D 3 /A/A1 1x3
			takes /C h1=1 recall for /A/A1 until 120`},
		{"MD-10 what is not needed in the end is not taken", "", mine, []int64{6}, `
			wants /C 1x4 /D 2
			wants /C 1x4 /D 2 /A/A1 1x5
			takes /C h1=1 recall for /A/A1 until 120; /D h1=1 recall for /A/A1 until 210`},
		{"MD-10 the owner's grace where it is smaller", "", own("/C", all, "lend_grace: 100s"), []int64{4}, `
			wants /D 4
			wants /D 4 /C 1
			takes /D h1=1 recall for /C until 210`},
		{"CYC-6 what comes free is kept for the owner", "", mine, []int64{2}, `
			wants /C 1 /D 1
			wants /C 2 /D 1 /A/A1 1x2
			takes /C h1=1 recall for /A/A1 until 120; /D h1=1 recall for /A/A1 until 210
			cycle
			holds /D h1=1 / of /A/A1
			short /A/A1 1 waiting_for_reclaim /D; /C 2 pool_exhausted
			cycle
			cycle
			holds /A/A1 h1=1 own`},
		{"CYC-6 an owner takes over room promised to an outsider", "", mine + "{path: /C, share: {priority: 1}}, ",
			[]int64{2}, `
			wants /D 2
			wants /D 2 /C 1x2
			takes /D h1=2 fair_share for /C until 210
			wants /D 2 /C 1x2 /A/A1 1x2
			takes back /D h1=2 fair_share for /C; /D h1=2 recall for /A/A1 until 210
			short /A/A1 1 waiting_for_reclaim /D; /C 1 pool_exhausted
			cycle
			holds /A/A1 h1=1 own`},
		{"CYC-6 and gives back what it does not need of it", "", mine + "{path: /C, share: {priority: 1}}, ",
			[]int64{2}, `
			wants /D 2
			wants /D 2 /C 1x2
			wants /D 2 /C 1x2 /A/A1 1
			takes back /D h1=2 fair_share for /C; /D h1=1 recall for /A/A1 until 210
			cycle
			holds /A/A1 h1=1 own; /D h1=1 / of /A/A1`},
		{"CYC-6 but not where others can give", "", mine + "{path: /C, share: {priority: 1}}, ", []int64{4}, `
			wants /D 4
			wants /D 4 /C 1x2
			takes /D h1=2 fair_share for /C until 210
			wants /D 4 /C 1x2 /A/A1 1
			takes /D h1=1 recall for /A/A1 until 270
			short /A/A1 1 waiting_for_reclaim /D; /C 1 waiting_for_reclaim /D`},
		{"CYC-6 an owner takes over what its sibling recalled there", "", mine, []int64{2}, `
			wants /D 2
			wants /D 2 /A/A2 1x2
			takes /D h1=2 recall for /A/A2 until 210
			wants /D 2 /A/A2 1x2 /A/A1 1x2
			takes back /D h1=2 recall for /A/A2; /D h1=2 recall for /A/A1 until 210
			cycle
			holds /A/A1 h1=1 own`},
		{"CYC-6 its sibling does not take it back", "", mine, []int64{2}, `
			wants /D 2
			wants /D 2 /A/A1 1x2
			wants /D 2 /A/A1 1x2 /A/A2 1x2
			takes 
			short /A/A1 1 waiting_for_reclaim /D; /A/A2 1 pool_exhausted`},
		{"CYC-6 a recall that nobody wants is cancelled", "", mine, []int64{4}, `
			wants /D 4
			wants /D 4 /A/A1 2
			wants /D 4 /A/A1 1
			takes back /D h1=1 recall for /A/A1
			cycle
			holds /A/A1 h1=1 own; /D h1=3 / of /A/A1`},
		{"CYC-6 nor one whose taker is gone", "", mine, []int64{4}, `
			wants /D 4
			wants /D 4 /A/A1 2
			wants /D 4
			takes back /D h1=2 recall for /A/A1
			holds /D h1=4 / of /A/A1`},
		{"CYC-7 a free parcel of its own ends a recall", "", mine, []int64{1, 1}, `
			wants /D 2
			wants /D 2 /A/A1 1
			takes /D h2=1 recall for /A/A1 until 210
			gone /D h1 1
			cycle
			takes back /D h2=1 recall for /A/A1
			holds /A/A1 h1=1 own; /D h2=1 / of /A/A1`},
		{"CYC-1 what an outsider would get is not granted", "",
			own("/A", "group: G, hosts: 1") + own("/A/A1", "group: G, hosts: 1"), []int64{4}, `
			wants /C 3
			wants /C 4 /A/A1 1x2
			takes /C h1=1 recall for /A/A1 until 120
			holds /C h1=3 / of /A/A1`},
		{"CYC-4 the budget", "reclaim_budget: 1", mine, []int64{4}, `
			wants /C 4
			wants /C 4 /A/A1 2
			takes /C h1=1 recall for /A/A1 until 120
			short /A/A1 1 waiting_for_reclaim /C; /A/A1 1 reclaim_budget`},
		{"MD-6 without reclaim_for_preference what is idle is used", "",
			"{path: /C, own: [{group: G, hosts: 1}, {group: F, hosts: 1}]}, ",
			[]int64{1, 0, 0, 0, 1}, `
			wants /D 2
			gone /D h1 1
			wants /D 1 /C 1
			holds /C h1=1 own; /D h5=1 / of /C
			takes `},
		{"MD-6 with it the better one is recalled", "reclaim_for_preference: true",
			"{path: /C, own: [{group: G, hosts: 1}, {group: F, hosts: 1}]}, ",
			[]int64{1, 0, 0, 0, 1}, `
			wants /D 2
			gone /D h1 1
			wants /D 1 /C 1
			takes /D h5=1 recall for /C until 210
			holds /D h5=1 / of /C
			rest
			holds /C h5=1 own; /D h1=1 / of /C`},
		{"MD-6 where nothing can be recalled the next one is used", "reclaim_for_preference: true",
			"{path: /C, own: [{group: G, hosts: 1}, {group: F, hosts: 1}]}, ", []int64{1, 0, 0, 0, 1}, `
			wants /C 2
			holds /C h1=1 own; /C h5=1 own`},
		{"INV-1 nothing is taken back on a closed host for a taker", "", mine, []int64{1, 1}, `
			wants /C 2
			host h2 closed
			wants /C 2 /A/A1 1
			takes /C h1=1 recall for /A/A1 until 120`},
	} {
		t.Run(c.name, func(t *testing.T) { script(t, c.settings, c.entries, c.ncpus, c.text) })
	}
}

func TestPrivateShares(t *testing.T) {
	for _, c := range []struct {
		name, settings, entries string
		ncpus                   []int64
		text                    string
	}{
		{"MD-17 a private pool is fair on its own", "", own("/A", all), []int64{4}, `
			wants /A/A1 9
			wants /A/A1 9 /A/A3/X 9
			takes /A/A1 h1=2 fair_share for /A/A3/X until 120
			rest
			holds /A/A1 h1=2 /A; /A/A3/X h1=2 /A`},
		{"MD-12 what is held from another pool does not count", "", own("/A", "group: G, hosts: 1"), []int64{4, 4}, `
			wants /A/A1 8
			holds /A/A1 h1=4 /A; /A/A1 h2=4 /
			wants /A/A1 8 /A/A3/X 2
			takes /A/A1 h1=2 fair_share for /A/A3/X until 120`},
		{"MD-16 ratios in a private pool", "", own("/A", all) + "{path: /A/A1, share: {ratio: 3}}, ", []int64{4}, `
			wants /A/A1 9 /A/A3/X 9
			holds /A/A1 h1=3 /A; /A/A3/X h1=1 /A`},
		{"MD-16 priorities in a private pool", "", own("/A", all) + "{path: /A/A3, share: {priority: 1}}, ", []int64{4},
			`
			wants /A/A1 9
			wants /A/A1 9 /A/A3/X 3
			takes /A/A1 h1=3 fair_share for /A/A3/X until 120`},
		{"MD-16 priorities of the first level do not reach into it", "",
			own("/A", all) + "{path: /C, share: {priority: 9}}, ", []int64{4}, `
			wants /A/A1 3 /C 9
			holds /A/A1 h1=3 /A; /C h1=1 / of /A
			wants /A/A1 4 /C 9
			takes /C h1=1 recall for /A/A1 until 120`},
		{"MD-17 below a branch in a private pool", "", own("/A", all), []int64{4}, `
			wants /A/A3/X 4
			wants /A/A3/X 4 /A/A3/Y 4
			takes /A/A3/X h1=2 fair_share for /A/A3/Y until 120`},
		{"MD-17 the private pool's grace at most", "", own("/A", all, "private_pool_grace: 200s") +
			"{path: /A/A1, share: {priority: 1}}, ", []int64{4}, `
			wants /A/A2 4
			plan ` + own("/A", all, "private_pool_grace: 70s") + `{path: /A/A1, share: {priority: 1}}, 
			wants /A/A2 4 /A/A1 1
			takes /A/A2 h1=1 fair_share for /A/A1 until 190`},
		{"MD-17 who takes nothing back still recalls", "", own("/A", all, "share_reclaim: false"), []int64{4}, `
			wants /C 2 /A/A1 2
			wants /C 2 /A/A1 2 /A/A3/X 3
			takes /C h1=2 recall for /A/A3/X until 120
			short /A/A3/X 2 waiting_for_reclaim /C; /A/A3/X 1 pool_exhausted`},
		{"MD-17 what is lent is shared in the pool it reached", "", own("/A", all) + own("/A/A1", all), []int64{4}, `
			wants /C 4
			wants /C 4 /D 4
			takes /C h1=2 fair_share for /D until 120`},
		{"MD-18 a branch's limit counts what is held from pools above it", "",
			own("/A", "group: G, hosts: 1", "share: {limit: {ncpus: 1}}"), []int64{2, 4}, `
			wants /A/A1 5
			holds /A/A1 h1=2 /A; /A/A1 h2=1 /
			short /A/A1 2 share_limit /A`},
		{"MD-18 a leaf's counts all but its own", "", own("/A", "group: G, hosts: 2") +
			own("/A/A1", "group: G, hosts: 1", "share: {limit: {ncpus: 1}}"), []int64{2, 4}, `
			wants /A/A1 5
			holds /A/A1 h1=2 own; /A/A1 h2=1 /A
			short /A/A1 2 share_limit /A/A1`},
		{"MD-18 what is over it is taken back", "", own("/A", "group: G, hosts: 1"), []int64{2, 4}, `
			wants /A/A1 5
			holds /A/A1 h1=2 /A; /A/A1 h2=3 /
			plan ` + own("/A", "group: G, hosts: 1", "share: {limit: {ncpus: 1}}") + `
			cycle
			takes /A/A1 h2=2 over_limit until 120
			rest
			holds /A/A1 h1=2 /A; /A/A1 h2=1 /`},
		{"D-6 a branch of ratio 0 has its own pool", "", own("/A", "group: G, hosts: 1", "share: {ratio: 0}"),
			[]int64{2, 4}, `
			wants /A/A1 5
			holds /A/A1 h1=2 /A
			short /A/A1 3 share_limit /A`},
		{"D-6 a leaf of ratio 0 has what it owns", "", own("/A", all) +
			own("/A/A1", "group: G, hosts: 1", "share: {ratio: 0}"), []int64{2, 4}, `
			wants /A/A1 5 /C 6
			holds /A/A1 h1=2 own; /C h2=4 / of /A
			short /A/A1 3 share_limit /A/A1; /C 2 pool_exhausted`},
		{"MD-18 a limit stops recall, too", "", own("/A", all) + "{path: /A/A1, share: {limit: {ncpus: 1}}}, ",
			[]int64{4}, `
			wants /C 4
			wants /C 4 /A/A1 3
			takes /C h1=1 recall for /A/A1 until 120
			short /A/A1 1 waiting_for_reclaim /C; /A/A1 2 share_limit /A/A1
			cycle
			holds /A/A1 h1=1 /A; /C h1=3 / of /A
			short /A/A1 2 share_limit /A/A1; /C 1 pool_exhausted`},
		{"CYC-4 rules come before recalls", "reclaim_budget: 2", own("/A", all), []int64{4}, `
			wants /C 4
			plan ` + own("/A", all, "reserve: {percent: 50}") + `
			wants /C 4 /A/A1 3
			takes /C h1=2 reserve until 120`},
	} {
		t.Run(c.name, func(t *testing.T) { script(t, c.settings, c.entries, c.ncpus, c.text) })
	}
}

func TestLentFigures(t *testing.T) {
	// /A/A2 takes all of h2, which is /A's own, and 2 of h1, which /A/A1 lends; /C all of the public h5, and the rest
	// of h1. Static quotas divide the 4 that /A's pool owns among three children, and the 4 public ones among three of
	// the first level.
	g := of(t, lending(t, "", own("/A", all)+own("/A/A1", "group: G, hosts: 1")), 4, 4, 0, 0, 4)
	g.units(strings.Fields("/A/A2 6 /C 6"))
	g.cycle()
	if got := g.held(); got != "/A/A2 h1=2 /A of /A/A1; /A/A2 h2=4 /A; /C h1=2 / of /A/A1; /C h5=4 /" {
		t.Error(got)
	}
	lent := map[string]int64{"/A": 2, "/A/A1": 4}
	static := map[string]int64{"/A": 1, "/A/A1": 1, "/A/A2": 1, "/A/A3": 1, "/C": 1, "/D": 1}
	for _, c := range g.last.Consumers {
		if c.Lent[0] != lent[c.Path] || c.StaticPart[0] != static[c.Path] {
			t.Errorf("%s: lent %d, static quota %d, want %d, %d", c.Path, c.Lent[0], c.StaticPart[0], lent[c.Path],
				static[c.Path])
		}
	}
}
