package oracle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// owning compiles an MD plan p over the listed groups G (h1 to h4) and F (h5, h6).
// Entries are those of the plan's consumers.
func owning(t *testing.T, settings string, entries ...string) *plan.Policy {
	t.Helper()
	text := `stint: 1
dimensions: [ncpus, maxmem]
resource_groups: [{name: G, hosts: [h1, h2, h3, h4]}, {name: F, hosts: [h5, h6]}]
consumers: [{path: /A}, {path: /A/A1}, {path: /A/A2}, {path: /B, rank: 1, reclaim_grace: 90s}, {path: /C, rank: 2}]
md_plans:
  - name: p
    resource_groups: [{name: G}, {name: F, preference: 2}]
    ` + settings + `
    consumers: [` + strings.Join(entries, ", ") + `]
`
	p, err := plan.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

// game is a cluster and what its ownership tables add up to.
type game struct {
	*oracle.Cluster
	t    *testing.T
	dims []string
	owns map[string][]int64 // by consumer and host
	last oracle.Result
}

// of starts a game with hosts h1, h2, … of so many CPUs, and twice the memory.
func of(t *testing.T, p *plan.Policy, ncpus ...int64) *game {
	t.Helper()
	g := &game{Cluster: oracle.New(p), t: t, dims: p.Dimensions, owns: map[string][]int64{}}
	g.sizes(ncpus...)
	return g
}

func (g *game) sizes(ncpus ...int64) {
	var list [][2]int64
	for _, n := range ncpus {
		list = append(list, [2]int64{n, 2 * n})
	}
	g.SetHosts(hosts(list...), true)
}

func (g *game) state(host, state string) {
	g.SetHosts([]oracle.Host{{Name: host, State: state}}, false)
}

// wants says how many units of one CPU leaves want: "/B 3 /C 1".
func (g *game) wants(text string) {
	var rows []oracle.Demand
	words := strings.Fields(text)
	for i := 0; i < len(words); i += 2 {
		units := int64(0)
		fmt.Sscan(words[i+1], &units)
		rows = append(rows, demand(words[i], "", units, [2]int64{1}))
	}
	g.SetDemand("s", rows)
}

// cycle runs one and takes its table of ownership into account.
func (g *game) cycle() {
	g.last = g.Cycle()
	for _, o := range g.last.Owned {
		key := o.Consumer + " " + o.Host
		if g.owns[key] == nil {
			g.owns[key] = []int64{0, 0}
		}
		if o.Action == "trimmed" {
			o.Amount = -o.Amount
		}
		g.owns[key][slices.Index(g.dims, o.Dimension)] += o.Amount
	}
}

// owned lists who owns how many CPUs of what: "/A h1=4 h2=4; /B h3=2"; memory is shown where it is not twice that.
func (g *game) owned(want string) {
	g.t.Helper()
	by := map[string][]string{}
	var paths []string
	for key, v := range g.owns {
		path, host, _ := strings.Cut(key, " ")
		if v[0] == 0 && v[1] == 0 {
			continue
		}
		text := fmt.Sprintf("%s=%d", host, v[0])
		if v[1] != 2*v[0] {
			text += fmt.Sprintf("/%d", v[1])
		}
		by[path] = append(by[path], text)
	}
	for path, list := range by {
		slices.Sort(list)
		paths = append(paths, path+" "+strings.Join(list, " "))
	}
	slices.Sort(paths)
	if got := strings.Join(paths, "; "); got != want {
		g.t.Errorf("owned: %q, want %q", got, want)
	}
}

// holds lists what is held: "/B h1=2 owned; …", units of other owners as "lent by", sorted.
func (g *game) holds(want string) {
	g.t.Helper()
	var list []string
	for _, u := range g.last.Held {
		text := fmt.Sprintf("%s %s=%d %s", u.Consumer, u.Host, u.Units, u.Origin)
		if u.Lender != "" {
			text += " of " + u.Lender
		}
		list = append(list, text)
	}
	slices.Sort(list)
	if got := strings.Join(list, "; "); got != want {
		g.t.Errorf("held: %q, want %q", got, want)
	}
}

// figures checks "configured owned reserved" of a consumer's CPUs and memory.
func (g *game) figures(path string, configured, owned, reserved [2]int64) {
	g.t.Helper()
	for _, c := range g.last.Consumers {
		if c.Path == path && (!slices.Equal(c.Configured, configured[:]) || !slices.Equal(c.Owned, owned[:]) ||
			!slices.Equal(c.Reserved, reserved[:])) {
			g.t.Errorf("%s: configured %v owned %v reserved %v, want %v %v %v", path, c.Configured, c.Owned, c.Reserved,
				configured, owned, reserved)
		}
	}
}

// reasons lists the shortfalls: "/B 3 pool_exhausted".
func (g *game) reasons(want string) {
	g.t.Helper()
	var list []string
	for _, s := range g.last.Shortfalls {
		list = append(list, fmt.Sprintf("%s %d %s", s.Consumer, s.Units, s.Reason))
	}
	if got := strings.Join(list, "; "); got != want {
		g.t.Errorf("short: %q, want %q", got, want)
	}
}

// reclaims lists them: "issued /B h1=2 ownership_change".
func (g *game) reclaims(want string) {
	g.t.Helper()
	var list []string
	for _, r := range g.last.Reclaims {
		list = append(list, fmt.Sprintf("%s %s %s=%d %s", r.Action, r.Consumer, r.Host, r.Units, r.Reason))
	}
	if got := strings.Join(list, "; "); got != want {
		g.t.Errorf("reclaims: %q, want %q", got, want)
	}
}

// TestOwn holds the first pass over four hosts of 4 CPUs and two of 8 against what MD-1 to MD-3 say.
func TestOwn(t *testing.T) {
	for _, c := range []struct{ name, entries, want string }{
		{"MD-1 whole hosts in host order", "{path: /A, own: [{group: G, hosts: 2}]}", "/A h1=4 h2=4"},
		{"MD-1 a number of hosts is all there are", "{path: /A, own: [{group: F, hosts: 2}]}", "/A h5=8 h6=8"},
		{"MD-1 a percentage of hosts is rounded down", "{path: /A, own: [{group: G, percent: 70}]}", "/A h1=4 h2=4"},
		{"MD-1 less than one host is none", "{path: /A, own: [{group: G, percent: 24}]}", ""},
		{"MD-1 listed hosts of any group", "{path: /A, own: [{host_list: [h6, h3]}]}", "/A h3=4 h6=8"},
		{"MD-3 those that another lists come last",
			"{path: /A, own: [{group: G, hosts: 1}]}, {path: /B, own: [{host_list: [h1]}]}", "/A h2=4; /B h1=4"},
		{"MD-3 the better rank takes the listed one too",
			"{path: /A, own: [{group: G, hosts: 4}]}, {path: /B, own: [{host_list: [h1]}]}",
			"/A h1=4 h2=4 h3=4 h4=4"},
		{"MD-3 rank goes first", "{path: /A, rank: 2, own: [{group: G, hosts: 1}]}, {path: /B, own: [{group: G, " +
			"hosts: 1}]}", "/A h2=4; /B h1=4"},
		{"MD-3 ties in tree order", "{path: /A, rank: 1, own: [{group: G, hosts: 1}]}, {path: /B, own: [{group: G, " +
			"hosts: 1}]}", "/A h1=4; /B h2=4"},
		{"MD-1 an amount takes whole hosts that fit in it", "{path: /A, own: [{group: G, amount: {ncpus: 10}}]}",
			"/A h1=4 h2=4"},
		{"MD-1 an amount passes over hosts that are too big", "{path: /A, own: [{group: F, amount: {ncpus: 7}}]}", ""},
		{"MD-1 a partial amount ends in a part", "{path: /A, own: [{group: G, amount: {ncpus: 10}, partial: true}]}",
			"/A h1=4 h2=4 h3=2"},
		{"MD-1 what is not named goes along, rounded down",
			"{path: /A, own: [{group: F, amount: {maxmem: 5}, partial: true}]}", "/A h5=2/5"},
		{"MD-1 the largest named fraction",
			"{path: /A, own: [{group: F, amount: {ncpus: 1, maxmem: 8}, partial: true}]}", "/A h5=1/8"},
		{"MD-1 a percentage of each host", "{path: /A, own: [{group: G, per_host: {ncpus: 25%}}]}",
			"/A h1=1 h2=1 h3=1 h4=1"},
		{"MD-1 percentages of hosts are rounded down", "{path: /A, own: [{group: F, per_host: {maxmem: 10%}}]}",
			"/A h5=0/1 h6=0/1"},
		{"MD-1 an amount of each host, at most what there is", "{path: /A, own: [{group: G, per_host: {ncpus: 5}}]}",
			"/A h1=4 h2=4 h3=4 h4=4"},
		{"MD-1 the remainder goes last", "{path: /A, own: [{group: G, remaining: true}]}, {path: /B, own: [{group: " +
			"G, hosts: 1}]}", "/A h2=4 h3=4 h4=4; /B h1=4"},
		{"MD-1 remainders go by rank",
			"{path: /A, rank: 3, own: [{group: G, remaining: true}]}, {path: /B, own: [{group: G, remaining: true}]}",
			"/B h1=4 h2=4 h3=4 h4=4"},
		{"MD-1 the remainder of split hosts",
			"{path: /A, own: [{group: F, per_host: {ncpus: 3}}]}, {path: /B, own: [{group: F, remaining: true}]}",
			"/A h5=3 h6=3; /B h5=5 h6=5"},
		{"MD-3 whole hosts before parts",
			"{path: /A, own: [{group: F, amount: {ncpus: 2}, partial: true}]}, {path: /B, own: [{group: F, hosts: 1}]}",
			"/A h5=2; /B h6=8"},
		{"MD-3 a part when nothing else is left",
			"{path: /A, own: [{group: F, per_host: {ncpus: 2}}]}, {path: /B, own: [{group: F, hosts: 1}]}",
			"/A h5=2 h6=2; /B h5=6"},
		{"MD-1 several rules add up", "{path: /A, own: [{host_list: [h1]}, {group: G, hosts: 1}, {group: F, amount: " +
			"{ncpus: 8}}]}", "/A h1=4 h2=4 h5=8"},
		{"MD-2 children own of what their parent owns",
			"{path: /A, own: [{group: G, hosts: 2}]}, {path: /A/A1, own: [{group: G, hosts: 1}]}, " +
				"{path: /A/A2, own: [{group: G, amount: {ncpus: 3}, partial: true}]}",
			"/A h1=4 h2=4; /A/A1 h1=4; /A/A2 h2=3"},
		{"MD-2 a child's percentage is of its parent's hosts",
			"{path: /A, own: [{group: G, hosts: 2}]}, {path: /A/A1, own: [{group: G, percent: 50}]}, " +
				"{path: /A/A2}", "/A h1=4 h2=4; /A/A1 h1=4"},
		{"MD-2 a part of a part", "{path: /A, own: [{group: G, per_host: {ncpus: 50%}}]}, {path: /A/A1, own: " +
			"[{group: G, per_host: {ncpus: 50%}}]}, {path: /A/A2}",
			"/A h1=2 h2=2 h3=2 h4=2; /A/A1 h1=1 h2=1 h3=1 h4=1"},
		{"MD-2 no more than the parent has", "{path: /A, own: [{group: F, amount: {ncpus: 8}}]}, {path: /A/A1, own: " +
			"[{group: F, remaining: true}]}, {path: /A/A2}",
			"/A h5=8; /A/A1 h5=8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := of(t, owning(t, "placement: stacked", c.entries), 4, 4, 4, 4, 8, 8)
			g.cycle()
			g.owned(c.want)
			g.cycle()
			if len(g.last.Owned) > 0 {
				t.Errorf("nothing changed, but %v", g.last.Owned)
			}
		})
	}
}

func TestOwnLeastLoaded(t *testing.T) {
	// MD-3: B works on h1 and h2 when A comes to own a host: it gets h3, which is idle, then the least loaded.
	g := of(t, owning(t, "placement: stacked", "{path: /A}", "{path: /B}"), 4, 4, 4)
	g.wants("/B 6")
	g.cycle()
	g.holds("/B h1=4 public_pool; /B h2=2 public_pool")
	g.SetPolicy(owning(t, "placement: stacked", "{path: /A, own: [{group: G, hosts: 2}]}", "{path: /B}"), false)
	g.cycle()
	g.owned("/A h2=4 h3=4")
	// what fits no other parcel of its host stays, and is A's loan
	g.holds("/B h1=4 public_pool; /B h2=2 public_pool of /A")
	g.reclaims("")
}

func TestOwnTakesFromLaterRanks(t *testing.T) {
	// MD-3: no host is public; A takes from the last rank, although the better one has an equally loaded host.
	later := []string{"{path: /B, own: [{group: G, hosts: 2}]}", "{path: /C, own: [{group: G, hosts: 1}]}"}
	g := of(t, owning(t, "placement: stacked", append(later, "{path: /A}")...), 4, 4, 4)
	g.wants("/B 8 /C 4")
	g.cycle()
	g.owned("/B h1=4 h2=4; /C h3=4")
	g.holds("/B h1=4 owned; /B h2=4 owned; /C h3=4 owned")
	g.SetPolicy(owning(t, "placement: stacked", append(later, "{path: /A, own: [{group: G, hosts: 1}]}")...), false)
	g.cycle()
	g.owned("/A h3=4; /B h1=4 h2=4")
	g.figures("/C", [2]int64{4, 8}, [2]int64{}, [2]int64{}) // the average host is missing
	g.wants("/B 8 /C 5")
	g.cycle()
	g.reasons("/C 1 ownership_unmet")
}

func TestOwnKeepsWhatIsBusy(t *testing.T) {
	// MD-4: of two hosts the owner may keep one: the one with work on it; a lowered number gives up what is idle.
	g := of(t, owning(t, "placement: stacked", "{path: /B, own: [{group: G, hosts: 3}]}"), 4, 4, 4, 4)
	g.wants("/B 9")
	g.cycle()
	g.Release([]oracle.Holding{{Consumer: "/B", Allocation: "a", Host: "h1", Units: 4, Done: true}})
	g.cycle()
	g.holds("/B h2=4 owned; /B h3=1 owned")
	g.SetPolicy(owning(t, "placement: stacked", "{path: /B, own: [{group: G, hosts: 2}]}"), false)
	g.cycle()
	g.owned("/B h2=4 h3=4")
	g.SetPolicy(owning(t, "placement: stacked", "{path: /B, own: [{group: G, hosts: 1}]}"), false)
	g.cycle()
	g.owned("/B h2=4")
	g.holds("/B h2=4 owned; /B h3=1 public_pool")
}

func TestOwnHostLost(t *testing.T) {
	// MD-4: an owner whose host is lost gets another one; when it comes back, nobody is disturbed.
	g := of(t, owning(t, "placement: stacked", "{path: /B, own: [{group: G, hosts: 2}]}"), 4, 4, 4)
	g.cycle()
	g.owned("/B h1=4 h2=4")
	g.state("h1", "unavail")
	g.cycle()
	g.owned("/B h2=4 h3=4")
	g.state("h1", "ok")
	g.cycle()
	g.owned("/B h2=4 h3=4")
	g.state("h3", "closed") // MD-3: an idle closed host is given up for one that is open
	g.cycle()
	g.owned("/B h1=4 h2=4")
	g.state("h1", "draining") // no open host is left
	g.cycle()
	g.owned("/B h1=4 h2=4")
	g.wants("/B 4")
	g.cycle()
	g.state("h2", "closed") // B works on it
	g.state("h3", "ok")
	g.cycle()
	g.owned("/B h2=4 h3=4")
}

func TestOwnShrunkHost(t *testing.T) {
	// MD-4 (3): a host shrinks; what is owned of it follows, and a partial amount is completed elsewhere.
	g := of(t, owning(t, "placement: stacked", "{path: /B, own: [{group: G, amount: {ncpus: 6}, partial: true}]}"), 4,
		4, 4)
	g.cycle()
	g.owned("/B h1=4 h2=2")
	g.sizes(2, 4, 4)
	g.cycle()
	g.owned("/B h1=2 h2=4")
	g.figures("/B", [2]int64{6, 12}, [2]int64{6, 12}, [2]int64{})
}

func TestOwnSplit(t *testing.T) {
	// MD-4 (4): C works in the public pool on the host that B comes to own in part:
	// what the public half does not hold is on loan.
	g := of(t, owning(t, "", "{path: /B}", "{path: /C}"), 4)
	g.wants("/C 4")
	g.cycle()
	half := "{path: /B, own: [{group: G, per_host: {ncpus: 50%}}]}"
	g.SetPolicy(owning(t, "", half, "{path: /C}"), false)
	g.cycle()
	g.holds("/C h1=2 public_pool; /C h1=2 public_pool of /B")
	g.reclaims("")
	g.wants("/B 2 /C 4")
	g.cycle()
	g.holds("/C h1=2 public_pool; /C h1=2 public_pool of /B")
	g.reclaims("issued /C h1=2 recall")
	g.SetPolicy(owning(t, "overcommit: {ncpus: 0.5}", half, "{path: /C}"), false)
	g.wants("/C 2")
	g.cycle()
	g.holds("/C h1=1 public_pool; /C h1=1 public_pool of /B")
}

func TestOwnTooMuchOnAParcel(t *testing.T) {
	// Two units of B, of 5 and 3 CPUs, on h5, of which A comes to own 6: the older one takes A's parcel, the other one
	// fits neither and is reclaimed. When the old policy comes back in time, that is cancelled.
	whole := owning(t, "", "{path: /A}", "{path: /B}")
	half := owning(t, "", "{path: /A, own: [{group: F, per_host: {ncpus: 6}}]}", "{path: /B}")
	g := of(t, whole, 0, 0, 0, 0, 8)
	g.SetDemand("s", []oracle.Demand{demand("/B", "", 1, [2]int64{5})})
	g.cycle()
	g.SetDemand("s", []oracle.Demand{demand("/B", "", 1, [2]int64{5}), demand("/B", "x", 1, [2]int64{3})})
	g.cycle()
	g.holds("/B h5=1 public_pool; /B h5=1 public_pool")
	g.SetPolicy(half, false)
	g.cycle()
	g.owned("/A h5=6")
	g.holds("/B h5=1 public_pool; /B h5=1 public_pool of /A") // 5 on A's 6; 3 on the public 2
	g.reclaims("issued /B h5=1 ownership_change")
	g.SetPolicy(whole, false)
	g.cycle()
	g.reclaims("cancelled /B h5=1 ownership_change")
	g.holds("/B h5=1 public_pool; /B h5=1 public_pool")
}

func TestOwnIsUsedFirst(t *testing.T) {
	// MD-6, MD-7: B uses the group that the plan prefers, then its other host, then
	// the public pool; nobody else gets its hosts.
	g := of(t, owning(t, "", "{path: /B, reserve: {percent: 100}, own: [{group: G, hosts: 1}, {group: F, hosts: 1}]}",
		"{path: /C}"), 2, 2, 0, 0, 2)
	g.wants("/B 1 /C 9")
	g.cycle()
	g.holds("/B h5=1 owned; /C h2=2 public_pool")
	g.wants("/B 3 /C 9")
	g.cycle()
	g.holds("/B h1=1 owned; /B h5=2 owned; /C h2=2 public_pool")
	g.wants("/B 5 /C 1")
	g.cycle()
	g.holds("/B h1=2 owned; /B h2=1 public_pool; /B h5=2 owned; /C h2=1 public_pool")
}

func TestOwnPreference(t *testing.T) {
	g := of(t, owning(t, "", "{path: /B, preference: {G: 1}, own: [{group: G, hosts: 1}, {group: F, hosts: 1}]}"), 2, 0,
		0, 0, 2)
	g.wants("/B 1")
	g.cycle()
	g.holds("/B h1=1 owned")
}

func TestOwnIsNoShare(t *testing.T) {
	// MD-12, MD-18: what is owned counts in no pool and against no limit; the public pool is the other host alone, of
	// which the limit caps the demand (MD-13.5).
	g := of(t, owning(t, "", "{path: /B, own: [{group: G, hosts: 1}], share: {limit: {ncpus: 1}}}",
		"{path: /C, share: {ratio: 0}}"), 4, 4)
	g.wants("/B 9 /C 1")
	g.cycle()
	g.holds("/B h1=4 owned; /B h2=1 public_pool")
	g.reasons("/B 4 share_limit; /C 1 share_limit")
	want(t, g.last, map[string]float64{"/B usage": .25, "/B demand": .25, "/B held": 5, "/B static": 4},
		"/B 4 share_limit ncpus /B", "/C 1 share_limit  /C")
}

func TestOwnReserve(t *testing.T) {
	// MD-5: in order of assignment; B owns h1, h2 and 2 of h3.
	for _, c := range []struct {
		reserve string
		want    [2]int64
	}{
		{"{hosts: 2}", [2]int64{8, 16}}, {"{hosts: 9}", [2]int64{10, 20}}, {"{percent: 25}", [2]int64{2, 5}},
		{"{percent: 100}", [2]int64{10, 20}},
		{"{amount: {ncpus: 5}}", [2]int64{5, 10}}, {"{amount: {maxmem: 9}}", [2]int64{4, 9}},
		{"{amount: {ncpus: 1, maxmem: 3}}", [2]int64{1, 3}},
	} {
		g := of(t, owning(t, "", "{path: /B, reserve: "+c.reserve+", own: [{group: G, amount: {ncpus: 10}, "+
			"partial: true}]}"), 4, 4, 4)
		g.cycle()
		g.figures("/B", [2]int64{10, 20}, [2]int64{10, 20}, c.want)
	}
}

func TestOwnUnmetFigures(t *testing.T) {
	// An unmet list counts the hosts that are missing as the table has them; per_host what it asks for.
	g := of(t, owning(t, "", "{path: /A, reserve: {percent: 100}, own: [{host_list: [h1, h3, h4]}]}",
		"{path: /B, own: [{group: G, per_host: {ncpus: 3}}]}"), 4, 4, 6)
	g.state("h3", "unavail")
	g.cycle()
	g.owned("/A h1=4; /B h2=3")
	g.figures("/A", [2]int64{10, 20}, [2]int64{4, 8}, [2]int64{4, 8})
	g.figures("/B", [2]int64{6, 12}, [2]int64{3, 6}, [2]int64{})
	g.wants("/B 5")
	g.cycle()
	g.reasons("/B 1 ownership_unmet")
}

func TestOwnWindows(t *testing.T) {
	// PLAN-1, PLAN-2: in a window of its own B owns more; cycles come a minute apart from midnight.
	g := of(t,
		owning(t,
			`windows: [{name: a, hours: "00:00-00:02"}, {name: b, hours: "00:02-24:00", consumers: [{path: /B, own: [{group: G, hosts: 2}]}]}]`,
			"{path: /B, own: [{group: G, hosts: 1}]}"), 4, 4)
	g.cycle()
	g.owned("/B h1=4")
	g.cycle()
	g.owned("/B h1=4 h2=4")
}

func TestOwnGrownHost(t *testing.T) {
	// A host of the owner's grows: its amount takes the rest of it; whole hosts grow with it.
	g := of(t, owning(t, "", "{path: /B, own: [{group: G, amount: {ncpus: 7}, partial: true}]}",
		"{path: /C, own: [{group: F, hosts: 1}]}"), 4, 0, 0, 0, 2)
	g.cycle()
	g.owned("/B h1=4; /C h5=2")
	g.sizes(8, 0, 0, 0, 3)
	g.cycle()
	g.owned("/B h1=7; /C h5=3")
}

func TestOwnMovesUnits(t *testing.T) {
	// B works on its own half of h5 and on the public one; when it comes to own the host, all of it is its own, and
	// nothing is reclaimed; when it owns nothing any more, all of it is public.
	half := "{path: /B, own: [{group: F, per_host: {ncpus: 50%}}]}"
	g := of(t, owning(t, "", half), 0, 0, 0, 0, 4)
	g.wants("/B 3")
	g.cycle()
	g.holds("/B h5=1 public_pool; /B h5=2 owned")
	g.SetPolicy(owning(t, "", "{path: /B, own: [{host_list: [h5]}]}"), false)
	g.cycle()
	g.holds("/B h5=3 owned")
	g.SetPolicy(owning(t, "", "{path: /B}"), false)
	g.cycle()
	g.holds("/B h5=3 public_pool")
	g.reclaims("")
}

func TestOwnHostLeavesThePlan(t *testing.T) {
	// D-25: nothing of a host that left is owned; its units count as public and
	// are reclaimed, unless it comes back in time.
	text := `stint: 1
dimensions: [ncpus, maxmem]
resource_groups: [{name: G, select: select(in)}]
consumers: [{path: /B, reclaim_grace: 90s}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /B, own: [{group: G, hosts: 1}]}]}]
`
	p, err := plan.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g := &game{Cluster: oracle.New(p), t: t, dims: p.Dimensions, owns: map[string][]int64{}}
	set := func(in bool) {
		g.SetHosts([]oracle.Host{{Name: "h1", Size: map[string]int64{"ncpus": 4, "maxmem": 8},
			Attr: map[string]any{"in": in}}}, false)
	}
	set(true)
	g.wants("/B 3")
	g.cycle()
	g.holds("/B h1=3 owned")
	set(false)
	g.cycle()
	g.owned("")
	g.holds("/B h1=3 public_pool")
	g.reclaims("issued /B h1=3 ownership_change")
	set(true)
	g.cycle()
	g.owned("/B h1=4")
	g.holds("/B h1=3 owned")
	g.reclaims("cancelled /B h1=3 ownership_change")
}
