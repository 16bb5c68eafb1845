package verify

import (
	"slices"
	"testing"
)

// owning is a plan of three levels on four hosts, after its first pass.
func owning(t *testing.T) (*verifier, *plan) {
	t.Helper()
	p, err := parsePolicy([]byte(`
stint: 1
dimensions: [ncpus, maxmem]
resource_groups: [{name: G, hosts: [h1, h2, h3, h4]}]
consumers: [{path: /A, reclaim_grace: 60s}, {path: /A/x}, {path: /A/y, rank: 1, reclaim_grace: 2m}, {path: /B, rank: 1, reclaim_grace: 5m}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    public_pool: {grace: 4m}
    consumers:
      - {path: /A, own: [{group: G, percent: "50%"}, {group: G, amount: {ncpus: 5}, partial: true}], reserve: {amount: {ncpus: 9}}, lend_grace: 90s, private_pool_grace: 3m}
      - {path: /A/x, own: [{group: G, hosts: 1}, {group: G, per_host: {maxmem: 12.5%}}], reserve: {hosts: 1}}
      - {path: /A/y, own: [{host_list: [h2, h9]}]}
      - {path: /B, own: [{group: G, remaining: true}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	v := &verifier{report: newReport(), m: newModel(), moved: map[string]bool{}}
	v.m.setPolicy(p)
	g := &grid{names: []string{"host", "ncpus", "maxmem"}, at: map[string]int{"host": 0, "ncpus": 1, "maxmem": 2},
		typed: true}
	for _, h := range []string{"h1", "h2", "h3", "h4"} {
		g.rows = append(g.rows, []any{h, int64(8), int64(32)})
	}
	v.m.setHosts(g, true)
	e := newEstate()
	e.window = p.plans[0].windows[0]
	v.pass(p.plans[0], e)
	return v, p.plans[0]
}

// TestPass looks at what a pass gives: whole hosts by percentage and number, parts at the end of an amount and of each
// host, what remains; what that leaves of hosts as parcels, and where reserves lie.
func TestPass(t *testing.T) {
	v, p := owning(t)
	e := v.m.estates["p"]
	for k, want := range map[part][]int64{
		{"/A", "h1"}: {8, 32}, {"/A", "h2"}: {8, 32}, {"/A", "h3"}: {5, 20}, {"/A", "h4"}: nil,
		{"/A/x", "h1"}: {8, 32}, {"/A/x", "h2"}: {1, 4}, {"/A/x", "h3"}: {0, 2}, {"/A/y", "h2"}: {7, 28},
		{"/B", "h3"}: {3, 12}, {"/B", "h4"}: {8, 32}, {"/B", "h1"}: nil,
	} {
		if got := e.parts[k]; !slices.Equal(got, want) {
			t.Errorf("%s has %v of %s, expected %v", k.of, got, k.host, want)
		}
	}
	if !e.unmet["/A/y"] || !e.unmet["/A/x"] || e.unmet["/A"] || e.unmet["/B"] {
		t.Errorf("unmet: %v", e.unmet)
	}
	var owners []string
	for _, c := range v.m.parcels(e, p, "h3") {
		owners = append(owners, c.owner)
	}
	if !slices.Equal(owners, []string{"/A", "/A/x", "/B"}) {
		t.Errorf("the parcels of h3 are of %v", owners)
	}
	if got := e.reserved["/A"]; !slices.Equal(got, []int64{9, 36}) {
		t.Errorf("/A reserves %v", got)
	}
	if got := e.aside[aside{"/A", "/A/x", "h1"}]; !slices.Equal(got, []int64{8, 32}) { // it has none of its own there
		t.Errorf("of h1 /A reserves %v on what /A/x owns", got)
	}
	if v.report.Count != 0 {
		t.Errorf("faults: %+v", v.report.Faults)
	}
}

// TestLabels looks at what units count as, whom they may be lent to, and what of a parcel reaches which pool.
func TestLabels(t *testing.T) {
	v, p := owning(t)
	w, e := p.windows[0], v.m.estates["p"]
	for _, c := range []struct {
		leaf, owner string
		want        label
		grace       int64 // in seconds
	}{
		{"/A/x", "/A/x", label{origin: "owned"}, 180}, // of its own pool, were it one
		{"/A/y", "/A/x", label{"private_pool", "/A", "/A/x"}, 180},
		{"/A/y", "/A", label{"private_pool", "/A", ""}, 180},
		{"/B", "/A/x", label{"public_pool", "/", "/A/x"}, 90},
		{"/B", "/", label{"public_pool", "/", ""}, 240},
	} {
		l := labelOf(c.leaf, c.owner)
		if l != c.want || l.owner(c.leaf) != c.owner {
			t.Errorf("%s on what %s owns: %+v, of %s", c.leaf, c.owner, l, l.owner(c.leaf))
		}
		if got := p.graceIn(w, c.owner, l.pool); c.leaf != c.owner && got != c.grace*1e6 {
			t.Errorf("%s on what %s owns: grace %d", c.leaf, c.owner, got)
		}
	}
	if !v.slow(p, w, "/B", "/A/x") || v.slow(p, w, "/A/y", "/A/x") || v.slow(p, w, "/B", "/B") {
		t.Error("graces are filtered otherwise")
	}
	on := holders{{leaf: "/A/x", owner: "/A/x", size: []int64{1, 2}, units: 2},
		{leaf: "/A/y", owner: "/A/x", pool: "/A", size: []int64{1, 1}, units: 1}}
	c, _ := v.parcelOf(p, "h2", "/A/x")
	if got := e.rest(on, c, "h2", "/"); !slices.Equal(got, []int64{0, 0}) {
		t.Errorf("of %v there reach the public pool %v", c.size, got)
	}
	c, _ = v.parcelOf(p, "h2", "/A/y")
	if got := e.rest(nil, c, "h2", "/A"); !slices.Equal(got, []int64{7, 28}) {
		t.Errorf("of %v reach the pool of /A %v", c.size, got)
	}
}
