package cycle_test

import (
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// casesMin is how many random cases of each kind an ordinary test run plays. The run that guards main is to end within
// ten minutes on two processors; the soak plays many more cases.
const casesMin = 300

// seedMin is the seed of an ordinary test run, so that what guards main is the same every time; the soak draws its own.
const seedMin = 20261121

// kind is a kind of random cases.
type kind struct {
	name       string
	draw       func(t *rapid.T) site
	small      int64    // cluster.State.UnitsOfHost
	situations []string // that must come up in a soak
}

// kinds are MD plans alone; slot plans, some with an MD plan beside them; an MD plan whose consumers crowd a few hosts;
// an MD plan whose consumers own hosts; slot plans with hybrid branches; MD plans that lend; and MD plans with devices.
var kinds = []kind{{name: "md", draw: drawMD, situations: mdSituations},
	{name: "slot", draw: drawSlots, situations: slotSituations},
	{name: "fair", draw: drawFair, situations: fairSituations},
	{name: "own", draw: drawOwn, situations: ownSituations},
	{name: "hybrid", draw: drawHybrid, situations: hybridSituations}, lendKind, deviceKind}

// TestProperties plays random cases: the engine against the oracle, and the promises of SPEC chapter 11. Onlookers
// hold parts of the engine against the oracle, or against themselves, in the first cases of each kind.
func TestProperties(t *testing.T) {
	n := casesMin
	if testing.Short() {
		n /= 3
	}
	setRapid(t, n, seedMin)
	logs := make([]follower, len(kinds))
	t.Cleanup(func() { changesSeen(t, logs) })
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			c := company{left: n / 6, all: []onlooker{&logs[i], &cloner{}}}
			if k.name != "slot" && k.name != "hybrid" { // they have few MD plans, or none
				c.all = append(c.all, &pooled{})
			}
			rapid.Check(t, func(t *rapid.T) { c.play(t, k) })
			for _, o := range c.all {
				o.report(t, n/10)
			}
		})
	}
}

// onlooker looks on while cases are played.
type onlooker interface {
	begin(p *player)                // a case begins
	look(t *rapid.T, p *player)     // a cycle is about to be run
	end(t *rapid.T, p *player)      // the case has come through
	report(t *testing.T, cases int) // it looked on at so many cases
}

// company is onlookers, and at how many more cases they look on: at all once one has failed, as it is played again and
// again.
type company struct {
	all    []onlooker
	left   int
	failed bool
}

// play plays a case, and has them look on.
func (c *company) play(t *rapid.T, k kind) {
	all, whole := c.all, false
	if c.left <= 0 && !c.failed {
		all = nil
	}
	defer func() { c.failed = c.failed || !whole }()
	p := play(t, k, all...)
	for _, o := range all {
		o.end(t, p)
	}
	c.left--
	whole = true
}

// setRapid says how many cases check plays, and from which seed (0: a random one).
func setRapid(t *testing.T, n int, seed uint64) {
	t.Helper()
	debug.SetGCPercent(400) // cases are small and many
	set(t, "rapid.checks", fmt.Sprint(n))
	set(t, "rapid.nofailfile", "true")
	if seed != 0 {
		set(t, "rapid.seed", fmt.Sprint(seed))
	}
}

// set sets a flag.
func set(t *testing.T, name, value string) {
	t.Helper()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// check plays random cases of a kind and shows every player that came through.
func check(t *testing.T, k kind, seen func(*player)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) { seen(play(t, k)) })
}

// play plays one case.
func play(t *rapid.T, k kind, all ...onlooker) *player {
	p := newPlayer(t, k)
	for _, o := range all {
		o.begin(p)
	}
	p.watch = func(t *rapid.T) {
		for _, o := range all {
			o.look(t, p)
		}
	}
	whole := false
	defer func() {
		if !whole {
			keepFailed(t, k.name, p.scenario())
			t.Logf("%s\nIts last cycle:\n%s", p.scenario(), p.decided())
		}
	}()
	for i := range p.upTo(t, "steps", 1+2*p.eager(), 6) {
		p.step(t, i)
	}
	p.end(t)
	whole = true
	return p
}

// holding is units of a sub-allocation on a host.
type holding struct {
	oracle.Key
	host string
}

// player plays one case on the oracle, the engine and a twin of the engine that
// sees the same input with other codes and forgets everything between cycles.
type player struct {
	world
	policy       *plan.Policy
	first        string // the policy file at the start
	oracle       *oracle.Cluster
	engine, twin *cluster.State
	logged       int64 // how many rows the engine's change log had before the cycle
	runner       cycle.Runner
	out, twinOut decision.Cycle
	nowUS        int64
	cycles       int
	aged         bool // all that runs has run for as long as it is protected
	calm         bool // time stands still: what was used decays no more
	settled      int  // cycles that the end of the case took to its fixed point
	forgot       int  // whether plans were made to forget what was used, so that the case ends
	late         int  // cycles in which something was overdue
	reloads      int  // cycles before which the twin was saved and loaded
	steps        []step
	last         oracle.Result
	seen         []oracle.Result

	// The ledger: what the engine's own grants and releases add up to.
	held    map[holding]int64
	leaving map[holding]int64 // of that, under reclaim
	wanted  map[oracle.Key]int64
	rules   map[oracle.Key]oracle.Demand
	orphans map[oracle.Key]bool // whose places a policy file took away
	forced  bool                // the policy file being drawn does so to some that hold something
	// renewed are the sources whose newest snapshot came after the step's releases: what those did to its numbers is
	// gone.
	renewed map[string]bool
	relabel map[string]int   // how often units came to count as something else, by from and to
	changes map[string]int   // how often ownership changed, by how
	owns    map[string]int64 // what is owned, by the engine's table: see ownKey

	seats map[onUnit]int64 // what the last cycle's table of holdings says
	ran   map[string]bool  // plans in which something ran at the start
	drawn device           // of the first plan, at the start

	unitsOfHost int64 // cluster.State.UnitsOfHost

	beside *cluster.State   // gets the same input; nil: there is none
	watch  func(t *rapid.T) // called before each cycle; nil: nobody is
	alone  bool             // no other case is played meanwhile: the twin's processors may be more or fewer
	after  func(t *rapid.T) // called after each cycle; nil: nobody is
}

// startUS is 2026-01-05T00:00:00Z; the first cycle is a minute later, for the oracle at 60 s.
const startUS = 1767571200e6

func newPlayer(t *rapid.T, k kind) *player {
	p := &player{world: world{site: k.draw(t), rows: map[string][]oracle.Demand{}}, held: map[holding]int64{},
		leaving: map[holding]int64{},
		wanted:  map[oracle.Key]int64{}, rules: map[oracle.Key]oracle.Demand{}, orphans: map[oracle.Key]bool{},
		nowUS: startUS, relabel: map[string]int{},
		changes: map[string]int{}, owns: map[string]int64{}, seats: map[onUnit]int64{}, ran: map[string]bool{},
		unitsOfHost: k.small}
	if p.devices {
		p.drawn = p.plans[0].device
	}
	var err error
	p.first = p.yaml()
	if p.policy, err = plan.Parse("case.yaml", []byte(p.first)); err != nil {
		t.Fatalf("%v\n%s", err, p.first)
	}
	p.oracle = oracle.New(p.policy)
	p.oracle.UnitsOfHost = k.small
	p.oracle.StartAt(startUS)
	p.engine, p.twin = p.state(t), p.state(t)
	return p
}

func (p *player) state(t *rapid.T) *cluster.State {
	s, err := cluster.New(p.policy)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s.UnitsOfHost, s.Accepted = p.unitsOfHost, p.unitsOfHost > 0
	return s
}

// step draws a step, gives it to all three and runs its cycles.
func (p *player) step(t *rapid.T, i int) {
	revised := ""
	if i > 0 && (odds(t, "policy", 3) || p.own && once(t, "own policy", 3)) {
		revised = p.revise(t)
	}
	s := p.drawStep(t, i == 0, p.last.Held)
	s.policy, s.forced = revised, revised != "" && p.forced
	p.play(t, s)
	for k := range s.cycles + 1 { // the last one changes nothing (CYC-2)
		p.run(t, k > 0)
		if i == 0 && k == 0 && p.plain && p.unitsOfHost == 0 {
			p.fair(t)
		}
	}
}

// play gives a step's input to all three.
func (p *player) play(t *rapid.T, s step) {
	p.steps = append(p.steps, s)
	p.nowUS += int64(s.wait) * 60e6
	p.oracle.Wait(int64(s.wait) * 60e6)
	p.apply(t, p.engine, s, 0)
	if p.beside != nil {
		p.apply(t, p.beside, s, 0)
	}
	flap(t, p.twin, len(p.steps))
	p.apply(t, p.twin, s, 3)
	p.twin.Forget(nil)
	p.twin.ForgetNeeds()
	flap(t, p.twin, len(p.steps)+1)
	if len(s.hosts) > 0 {
		p.oracle.SetHosts(s.hosts, s.full)
	}
	if !s.late {
		p.oracle.Release(s.releases)
	}
	for _, d := range s.demand {
		p.oracle.SetDemand(d.source, d.rows)
	}
	p.oracle.Running(s.running)
	if s.late {
		p.oracle.Release(s.releases)
	}
	p.note(s)
}

// cyclesMax is how many cycles a case may take to its fixed point.
const cyclesMax = 200

// end runs the case to its fixed point, which must come and stay (CYC-2, INV-10), and holds what only binds there.
// Where clients have to confirm what is due, they do.
func (p *player) end(t *rapid.T) {
	if p.windowed() { // no window comes for long
		p.play(t, step{wait: (24*60 + 60 - int(p.nowUS/60e6)%(24*60)) % (24 * 60)})
		p.run(t, false)
	}
	p.rest(t)
	for p.protects() { // at last all that runs has run for as long as it is protected
		p.play(t, step{wait: runtimeMost})
		if p.run(t, false); p.out.Summary.Stable() {
			p.aged = true
			break
		}
		p.rest(t)
	}
	p.calm = p.remembers()
	for { // until no budget is used up meanwhile, or renewed
		was := p.broke()
		for range 2 {
			p.run(t, true)
		}
		if p.broke() == was {
			break
		}
		p.rest(t)
	}
	if p.unitsOfHost == 0 { // the promises to those who are short know of no sizes that are too small
		p.atRest(t)
	}
}

// rest runs the case to a fixed point. Consumers of a plan that remembers may take turns without end (docs/memory.md):
// then there must be one once it forgets.
func (p *player) rest(t *rapid.T) {
	for ; !p.out.Summary.Stable() || p.switches(); p.settled++ {
		if p.settled == cyclesMax*(1+p.forgot) {
			if !p.remembers() {
				t.Fatalf("INV-10: no fixed point after %d cycles with the same input", cyclesMax)
			}
			p.forget(t)
		}
		if due := p.overdue(); len(due) > 0 {
			p.play(t, step{releases: due})
		}
		p.run(t, false)
	}
}

// overdue lists what is under reclaim and due where only clients end it.
func (p *player) overdue() (rows []oracle.Holding) {
	for i := range p.slots {
		if !p.slots[i].confirms {
			continue
		}
		rows = append(rows, p.dueIn(p.slots[i].name)...)
	}
	for i := range p.plans {
		if p.plans[i].confirms {
			rows = append(rows, p.dueIn(p.plans[i].name)...)
		}
	}
	return rows
}

func (p *player) dueIn(name string) (rows []oracle.Holding) {
	h, s := &p.engine.Holding, p.engine
	for q, sub := range h.Sub {
		if sub == cluster.NoID || h.Set[q] == cluster.NoID || h.Due[q] > p.nowUS+60e6 ||
			s.Plans[s.Sub.Plan[sub]].Name != name {
			continue
		}
		parcel := &s.Plans[s.Sub.Plan[sub]].Parcels
		rows = append(rows, oracle.Holding{Consumer: s.Consumer.String(int32(s.Sub.Consumer[sub])),
			Allocation: s.Label.String(s.Alloc.Name[s.Sub.Alloc[sub]]),
			Sub:        s.Label.String(s.Sub.Name[sub]), Host: s.Host.Names.String(int32(parcel.Host[h.Parcel[q]])),
			Units: h.Units[q]})
	}
	return rows
}

// revise puts a policy of other shares, limits and figures in force, and gives its file.
func (p *player) revise(t *rapid.T) string {
	p.reviseDevices(t)
	for i := range p.plans {
		for k := range p.plans[i].members {
			p.plans[i].members[k].share = p.drawShare(t)
		}
	}
	p.reviseSlots(t)
	p.reviseOwn(t)
	if p.forced = false; p.blended() && once(t, "other places", 10) {
		p.replace(t)
	}
	return p.decree(t)
}

// forget puts the policy file in force with plans that do not remember what was used.
func (p *player) forget(t *rapid.T) {
	for i := range p.plans {
		p.plans[i].history = ""
	}
	p.forced, p.forgot = false, p.forgot+1
	p.play(t, step{policy: p.decree(t)})
}

// decree puts the policy file in force that the site is now, and gives its text.
func (p *player) decree(t *rapid.T) string {
	var err error
	text := p.yaml()
	if p.policy, err = plan.Parse("case.yaml", []byte(text)); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p.oracle.SetPolicy(p.policy, p.forced)
	states := []*cluster.State{p.engine, p.twin}
	if p.beside != nil {
		states = append(states, p.beside)
	}
	for _, s := range states {
		if p.forced && s.SetPolicy(p.policy, false) == nil {
			t.Fatalf("PLAN-4: consumers that hold something were removed\n%s", text)
		}
		if err := s.SetPolicy(p.policy, p.forced); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	for i := range p.consumers {
		p.consumers[i].was = ""
	}
	return text
}

// apply gives a step's input to an engine; junk words change every code of its dictionaries.
func (p *player) apply(t *rapid.T, st *cluster.State, s step, junk int) {
	try := func(err error) {
		if err != nil {
			t.Fatalf("input refused: %v", err)
		}
	}
	w := tables{p.policy, junk}
	if len(s.hosts) > 0 {
		try(st.SetHosts(w.hosts(s.hosts), s.full))
	}
	release := func(now bool) {
		if now && len(s.releases) > 0 {
			_, _, err := st.Release(w.holdings(s.releases))
			try(err)
		}
	}
	release(!s.late)
	for _, d := range s.demand {
		try(st.SetDemand(d.source, w.demand(d.rows)))
	}
	if len(s.running) > 0 {
		try(st.AddRunning(s.source, w.holdings(s.running)))
	}
	release(s.late)
}

// note takes a step's input into the ledger.
func (p *player) note(s step) {
	p.renewed = map[string]bool{}
	for _, d := range s.demand {
		p.renewed[d.source] = !s.late
		for k := range p.rules {
			if strings.HasPrefix(k.Allocation, d.source) && !p.orphans[k] {
				delete(p.rules, k)
				p.wanted[k] = 0
			}
		}
		for _, r := range d.rows {
			p.rules[key(r)], p.wanted[key(r)] = r, r.Units
		}
	}
	for _, r := range s.running {
		p.ran[p.planOf(r.Host)] = true
		for k := range p.rules {
			if k.Consumer == r.Consumer && k.Allocation == r.Allocation && k.Sub == r.Sub &&
				k.Plan == p.planOf(r.Host) {
				p.held[holding{k, r.Host}] += r.Units
			}
		}
	}
}

// run is one cycle of all three, and everything that must hold after it. still: the input is the last cycle's.
func (p *player) run(t *rapid.T, still bool) {
	if p.cycles++; !p.calm {
		p.nowUS += 60e6
	}
	before, rested, broke := stateOf(&p.out), p.out.Summary.Stable(), p.broke()
	if p.watch != nil {
		p.watch(t)
	}
	p.reload(t)
	fresh := cycle.Runner{Eager: true} // knows nothing of earlier cycles
	if p.cycles%2 > 0 {                // with a Runner that goes on, where nothing else changed too
		p.engine.Forget(nil)
		if p.cycles%3 == 0 {
			p.engine.ForgetNeeds()
		}
	}
	p.logged = p.engine.Changes.Count()
	p.runner.Run(p.engine, p.nowUS, &p.out)
	if p.alone {
		procs := runtime.GOMAXPROCS(1 + p.cycles%3)
		fresh.Run(p.twin, p.nowUS, &p.twinOut)
		runtime.GOMAXPROCS(procs)
	} else {
		fresh.Run(p.twin, p.nowUS, &p.twinOut)
	}
	p.runner.Keyframe(&p.out)
	fresh.Keyframe(&p.twinOut)
	if p.calm {
		p.last = p.oracle.CycleAt(0) // an earlier time counts as the last cycle's (CYC-9)
	} else {
		p.last = p.oracle.Cycle()
	}
	p.countRelabels()
	p.countOwned()
	if p.out.Summary.UnitsOverdue > 0 {
		p.late++
	}
	p.seen = append(p.seen, p.last)
	if a, b := everything(&p.out), everything(&p.twinOut); decision.Content(a) != decision.Content(b) {
		t.Fatalf("INV-8: cycle %d: the twin decides otherwise:\n%s", p.cycles, difference(dump(a), dump(b)))
	}
	if err := p.engine.Verify(); err != nil {
		t.Fatalf("cycle %d: %v", p.cycles, err)
	}
	want, got := expected(p.last), tabled(&p.out, len(p.dims))
	for _, table := range []string{"releases", "lost", "ownership", "grants", "labels", "reclaims", "held", "consumers",
		"amounts", "shares", "shortfalls"} {
		if table == "shares" {
			p.shares(t)
			p.budgets(t)
		} else if !slices.Equal(got[table], want[table]) {
			t.Logf("reclaims of the engine: %v", p.out.Reclaims)
			t.Fatalf("cycle %d: %s: engine and oracle differ:\n%s", p.cycles, table,
				difference(strings.Join(got[table], "\n"), strings.Join(want[table], "\n")))
		}
	}
	if p.after != nil {
		p.after(t)
	}
	p.ledger(t)
	p.estates(t)
	if p.devices {
		p.deviceLedger(t)
	}
	if p.unitsOfHost == 0 {
		p.conserving(t)
		p.scattered(t)
		p.wholeGangs(t)
		p.slotPromises(t)
	}
	if still && rested && broke == p.broke() && (p.aged || !p.protects()) && !p.switched() && p.still(p.nowUS) {
		if s := &p.out.Summary; !s.Stable() {
			t.Fatalf("CYC-2: cycle %d has the same input as the fixed point before it: %+v", p.cycles, s)
		}
		if stateOf(&p.out) != before {
			t.Fatalf("CYC-2: cycle %d has the same input and other tables:\n%s", p.cycles,
				difference(stateOf(&p.out), before))
		}
	}
}

// reload has the twin go on from what was saved of it, now and then, with input that waits for its cycle or without.
func (p *player) reload(t *rapid.T) {
	if (p.cycles*5+len(p.steps))%3 > 0 {
		return
	}
	saved, err := p.twin.Copy()
	if err != nil {
		t.Fatalf("cycle %d: the state cannot be saved and loaded: %v", p.cycles, err)
	}
	p.twin = saved
	p.twin.UnitsOfHost, p.twin.Accepted = p.unitsOfHost, p.unitsOfHost > 0
	p.reloads++
}

// countRelabels counts units that count as something else than after the last cycle.
func (p *player) countRelabels() {
	if len(p.seen) == 0 {
		return
	}
	type place struct {
		oracle.Key
		host string
	}
	change := map[place]map[string]int64{}
	add := func(u oracle.Units, n int64) {
		at := place{u.Key, u.Host}
		if change[at] == nil {
			change[at] = map[string]int64{}
		}
		change[at][u.Origin+" "+u.Lender] += n
	}
	for _, u := range p.seen[len(p.seen)-1].Held {
		add(u, -u.Units)
	}
	for _, u := range p.last.Held {
		add(u, u.Units)
	}
	for _, u := range p.last.Grants {
		add(u, -u.Units)
	}
	for _, u := range p.last.Releases {
		add(u, u.Units)
	}
	for _, by := range change {
		for from, lost := range by {
			for to, got := range by {
				if a, _, _ := strings.Cut(from, " "); lost < 0 && got > 0 {
					b, _, _ := strings.Cut(to, " ")
					p.relabel[a+" to "+b]++
				}
			}
		}
	}
}

// decided is what the engine decided last, a line a row.
func (p *player) decided() string {
	var b strings.Builder
	got := tabled(&p.out, len(p.dims))
	for _, table := range []string{"releases", "ownership", "labels", "reclaims", "held", "consumers", "amounts",
		"shortfalls"} {
		for _, line := range got[table] {
			fmt.Fprintf(&b, "%-10s %s\n", table, line)
		}
	}
	return b.String()
}
