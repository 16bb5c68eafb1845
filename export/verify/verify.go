package verify

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// Options say how a log is verified.
type Options struct {
	Decode   Decode                // reads inputs in Arrow's format; nil: such logs cannot be verified
	Progress func(done, total int) // told after each cycle; nil: nobody is
	// Rules is the version of the rules whose promises are checked, "" for decision.RulesVersion. Cycles of other
	// versions are checked for what no version changes.
	Rules string
}

// Log verifies a log. The error is of one that cannot be read at all; whatever else is wrong stands in the
// report. It reads each file once, and costs about as long as the cycles took to be written.
func Log(r *export.Reader, o Options) (*Report, error) {
	cycles := r.Cycles()
	if len(cycles) == 0 {
		return nil, fmt.Errorf("the log has no cycle yet")
	}
	v := &verifier{log: r, o: o, rules: cmp.Or(o.Rules, decision.RulesVersion), report: newReport(), m: newModel(),
		state: map[string]*kept{},
		times: map[int64]int64{},
		lose:  losses{of: map[[2]string]int64{}, known: map[[2]string]bool{}, late: cycles[0] != 1, told: true}}
	v.report.First, v.report.Last = cycles[0], cycles[len(cycles)-1]
	v.stray()
	if err := v.dropped(); err != nil {
		return nil, err
	}
	for i, c := range cycles {
		v.report.Cycles++
		v.guarded(c)
		v.report.turn()
		if o.Progress != nil {
			o.Progress(i+1, len(cycles))
		}
	}
	v.audit()
	v.report.turn()
	v.tellOther()
	v.report.cannot("INV-8 (the same inputs decide the same): stint replay decides the cycles again")
	v.report.sort()
	return v.report, nil
}

// verifier is a log being verified.
type verifier struct {
	log    *export.Reader
	o      Options
	rules  string // version of the rules whose promises are checked
	other  ruleless
	report *Report
	m      *model

	// Of the cycle:
	cycle, now int64
	table      map[string]*rows
	frame      bool // it has a keyframe
	inputs     int  // that came with it
	// plan and leaf for which anything was under reclaim as the cycle began
	served     map[string]bool
	overrun    map[string]bool                         // hosts on which more is said to run than was held
	switched   bool                                    // a policy or window is another than in the cycle before
	resized    bool                                    // hosts or policy came with it
	begun      map[spot]int64                          // what was held before its events, of spots that have any
	given      map[spot]map[label]int64                // granted
	issued     map[string]bool                         // plans in which a set was made
	takers     map[string]bool                         // plans in which a set with a taker was made
	newClaims  []*claim                                // what was put under reclaim
	cancelled  []*claim                                // what was taken off
	early      map[int]bool                            // rows of reclaims that are taken note of before the releases
	hazy       map[string]bool                         // MD plans of which it is not known what pools some units are of
	owned      map[string]map[string]*pool             // pools of MD plans in which consumers own hosts
	moved      map[string]bool                         // hosts whose units may lie on other parcels since stage own
	relabelled bool                                    // units came to count as something else
	figures    map[string]*slots                       // of slot plans, where they are needed
	shareOf    map[string]map[string]map[string]*share // by plan, pool and consumer
	rooms      map[string]*room
	spreads    map[string]*spread
	scattered  map[string]*scattered // by plan
	stirred    map[string]bool       // plans of which anything is under reclaim or promised
	stays      map[key]int64         // of gangs: units that are not under reclaim
	waited     map[key]bool          // gangs that held nothing that stays when what came back had
	breaks     map[key]int64         // units not under reclaim that were released as gang_broken

	// Of the cycles before:
	stirredOnce map[string]bool // stirred of the cycle before
	// plans of which shortfalls are to be held against their reasons as soon as nothing is under reclaim
	awaited         map[string]bool
	last, lastCycle int64            // now and number of the cycle before
	stable          bool             // it was a fixed point
	times           map[int64]int64  // now by cycle, of the latest
	timesFrom       int64            // the first of them
	quiet           int64            // cycles since the last input or fixed point
	state           map[string]*kept // state tables as last read
	content         []string         // of the sets of state tables as last written
	pools           map[string]*pool // of MD plans
	policyCycle     int64            // in which the last policy came
	switches        map[string]bool  // plans of which a window ever switched
	strange         map[string]bool  // MD plans of which it is not known who owned what
	silent          map[string]bool  // sources that want no more than they hold (D-31)
	lost            bool             // something could not be read: what is held is not known until a keyframe
	blind           bool             // the policy could not be read
	firstKnown      int64            // the first reclaim issued since what is held was taken from a keyframe
	clearUS         int64            // when all that was under reclaim then is over
	stood           *stands          // what the tables of what stands say; nil: not known
	adopted         bool             // what is wanted was taken from the tables once
	lose            losses
	spent           spendings
	past            history
}

// timesMost is of how many cycles the times are known.
const timesMost = 1 << 20

// kept is a state table, and the cycle that holds it.
type kept struct {
	holder int64
	table  *decision.Table
	rows   *rows
	fresh  bool // read in this cycle
}

// equal counts a figure that is held against another, and adds a fault when they differ.
func (v *verifier) equal(f Fault, want, got int64) bool {
	v.report.Checks[f.Rule]++
	if want == got {
		return true
	}
	f.Expected, f.Got = strconv.FormatInt(want, 10), strconv.FormatInt(got, 10)
	v.fault(f)
	return false
}

// is counts a condition and adds a fault when it does not hold.
func (v *verifier) is(f Fault, ok bool) bool {
	v.report.Checks[f.Rule]++
	if !ok {
		v.fault(f)
	}
	return ok
}

func (v *verifier) fault(f Fault) {
	f.Cycle = v.cycle
	v.report.add(f)
}

// guarded verifies one cycle. Whoever writes to a log can make it say anything, so what nobody thought of is a fault
// of the log too, and no end of the verification.
func (v *verifier) guarded(cycle int64) {
	defer func() {
		if p := recover(); p != nil {
			v.fault(Fault{Rule: "log", Table: "cycles", What: fmt.Sprintf("the cycle makes no sense: %v", p)})
			v.lost = true
		}
	}()
	v.run(cycle)
}

// run verifies one cycle.
func (v *verifier) run(cycle int64) {
	v.cycle, v.m.cycle = cycle, cycle
	v.begun, v.given = map[spot]int64{}, map[spot]map[label]int64{}
	v.issued, v.takers, v.overrun = map[string]bool{}, map[string]bool{}, map[string]bool{}
	v.switched, v.resized, v.relabelled, v.inputs, v.newClaims, v.cancelled = false, false, false, 0, nil, nil
	readable := v.load()
	v.lost = v.lost || !readable
	head := v.table["cycles"]
	if head == nil || head.n != 1 {
		v.lost = true
		return
	}
	v.now = head.number["now"].at(0)
	if v.times[cycle] = v.now; len(v.times) > timesMost {
		v.times = map[int64]int64{cycle: v.now}
	}
	if len(v.times) == 1 {
		v.timesFrom = cycle
	}
	v.order(head)
	other := v.byOtherRules(head)
	v.takeInputs()
	if other {
		v.checkRuleless(head, readable)
		v.last, v.lastCycle = v.now, cycle
		return
	}
	if v.m.policy == nil || v.blind {
		v.lost = true
		return
	}
	v.openWindows()
	v.spend()
	v.decay()
	if v.lost {
		if !v.frame || !readable {
			v.report.cannot("what is held in cycles whose files are damaged, up to the next keyframe, and reclaims " +
				"that were under way then")
			return
		}
		v.adopt()
		v.stay()
		v.blur()
	} else {
		v.happened()
	}
	v.capacities()
	v.wanted()
	v.consumers()
	v.budgets()
	v.calm()
	v.lower()
	v.shares()
	v.holdPast()
	v.amounts()
	v.shortfalls()
	v.promises()
	v.summary(head)
	v.standing()
	v.last, v.lastCycle = v.now, cycle
}

// happened checks the tables of a cycle's events, and moves what is held on by them.
func (v *verifier) happened() {
	v.detained()
	v.releases()
	v.hush()
	v.whole("releases", "after what came back")
	v.broken()
	v.waited = map[key]bool{}
	for k := range v.stays {
		v.waited[k] = v.gangWaits(k)
	}
	v.swapsAnew()
	v.own()
	v.entitled()
	v.serves()
	v.reclaims()
	v.grants()
	v.whole("grants", "after the cycle")
	v.gathered()
	v.draining()
	v.keyframe()
	v.owners()
	v.blur()
	v.causes()
}

// order checks that cycles follow one another.
func (v *verifier) order(head *rows) {
	if v.lastCycle > 0 {
		v.equal(Fault{Rule: "log", Table: "cycles", What: "the number of the cycle does not follow the one before"},
			v.lastCycle+1, v.cycle)
		v.is(Fault{Rule: "CYC-9", Table: "cycles", What: "now is before that of the cycle before",
			Expected: instant(v.last), Got: instant(v.now)}, v.now >= v.last)
	}
}

// load reads the cycle's tables, and checks seals and digests on the way.
func (v *verifier) load() bool {
	v.table = map[string]*rows{}
	ok := true
	head, err := v.log.Table("cycles", v.cycle)
	if err != nil {
		v.fault(Fault{Rule: "seal", Table: "cycles", What: err.Error()})
		return false
	}
	v.table["cycles"] = view(head)
	v.report.Rows += int64(head.Rows)
	var decided []*decision.Table
	by := map[string]*decision.Table{}
	for _, name := range v.log.Decided() {
		t := v.read(name)
		if t == nil {
			ok = false
			continue
		}
		decided, by[name] = append(decided, t), t
	}
	for _, name := range []string{"inputs", "holdings", "hosts", "owners"} {
		if holder, err := v.log.Holder(name, v.cycle); name != "inputs" && (err != nil || holder != v.cycle) {
			continue
		}
		ok = v.read(name) != nil && ok
	}
	v.frame = v.table["holdings"] != nil && v.table["hosts"] != nil
	v.manifest(by)
	if ok {
		logged := v.table["cycles"].words["decisions_digest"].text(0)
		got := digestOf(decided)
		v.is(Fault{Rule: "digest", Table: "cycles", What: "decisions_digest is not that of the tables", Expected: got,
			Got: logged}, got == logged)
	}
	return ok
}

// read reads a table as it is in the cycle; a state table that has not changed is not read again.
func (v *verifier) read(name string) *decision.Table {
	holder, err := v.log.Holder(name, v.cycle)
	if err == nil {
		if k := v.state[name]; k != nil && k.holder == holder && holder != v.cycle {
			k.fresh = false
			v.table[name] = k.rows
			return k.table
		}
		var t *decision.Table
		if t, err = v.log.Table(name, v.cycle); err == nil {
			k := &kept{holder, t, view(t), true}
			v.table[name], v.state[name] = k.rows, k
			v.report.Rows += int64(t.Rows)
			return t
		}
	}
	delete(v.state, name)
	v.fault(Fault{Rule: "seal", Table: name, What: err.Error()})
	return nil
}

// fresh tells whether a state table was written in this cycle.
func (v *verifier) fresh(name string) bool { return v.state[name] != nil && v.state[name].fresh }

// takeInputs applies the cycle's inputs to the model.
func (v *verifier) takeInputs() {
	list, err := v.log.Inputs(v.cycle)
	if err != nil {
		v.fault(Fault{Rule: "seal", Table: "inputs", What: err.Error()})
		v.lost = true
		return
	}
	v.named(list)
	for _, in := range list {
		content, err := v.log.InputContent(in.Kind, in.Digest)
		if err == nil {
			v.equal(Fault{Rule: "input", Table: "inputs", What: in.Kind + "/" + in.Digest + ": bytes"},
				int64(len(content)), in.Bytes)
			err = v.take(in, content)
		}
		if err != nil {
			v.fault(Fault{Rule: "input", Table: "inputs", What: fmt.Sprintf("%s/%s: %v", in.Kind, in.Digest, err)})
			v.lost, v.blind = true, v.blind || in.Kind == "plan"
		}
	}
	v.inputs = len(list)
	if v.quiet++; len(list) > 0 {
		v.quiet = 0
	}
}

// named checks that cycles.inputs names the inputs.
func (v *verifier) named(list []export.Input) {
	var want, got []string
	for _, in := range list {
		want = append(want, in.Kind+"/"+in.Digest)
	}
	if c := v.table["cycles"].table.Column("inputs"); c != nil && len(c.Lists) == 1 {
		got = c.Lists[0]
	}
	v.is(Fault{Rule: "manifest", Table: "cycles", What: "the column inputs does not name the rows of the table inputs",
		Expected: fmt.Sprint(want), Got: fmt.Sprint(got)}, slices.Equal(want, got))
}

// take applies one input.
func (v *verifier) take(in export.Input, content []byte) error {
	if in.Kind == "plan" {
		v.equal(Fault{Rule: "input", Table: "inputs", What: in.Kind + "/" + in.Digest + ": rows"}, 0, in.Rows)
		p, err := parsePolicy(content)
		if err != nil {
			return err
		}
		if v.m.policy != nil {
			v.lose.keep(v.m.policy, p)
			v.spent, v.past = v.spent.keep(p), v.past.keep(p)
		}
		v.m.setPolicy(p)
		v.pools = nil
		v.resized, v.switched, v.policyCycle, v.blind = true, true, v.cycle, false
		return nil
	}
	if v.m.policy == nil {
		return fmt.Errorf("it comes before any policy")
	}
	if in.Kind == "demand_delete" {
		delete(v.silent, in.Source)
		v.m.removeSource(in.Source)
		return nil
	}
	if in.Kind == "silence" {
		if v.silent == nil {
			v.silent = map[string]bool{}
		}
		v.silent[in.Source] = true
		return nil
	}
	g, err := readGrid(in.Kind, in.Format, v.m.policy.dimensions, content, v.o.Decode)
	if err != nil {
		return err
	}
	v.equal(Fault{Rule: "input", Table: "inputs", What: in.Kind + "/" + in.Digest + ": rows"}, int64(len(g.rows)),
		in.Rows)
	switch in.Kind {
	case "hosts", "hosts_change":
		v.resized = true
		v.m.setHosts(g, in.Kind == "hosts")
	case "demand":
		delete(v.silent, in.Source)
		return v.m.setDemand(in.Source, g, true)
	case "demand_change":
		return v.m.setDemand(in.Source, g, false)
	case "running":
		v.run0(g)
	case "running_all":
		v.resync(in.Source, g)
	case "releases":
		v.ask(g)
	default:
		return fmt.Errorf("an input of kind %q is not known", in.Kind)
	}
	return nil
}

// hush has silent sources want no more than they hold.
func (v *verifier) hush() {
	for _, s := range v.m.subs {
		if v.silent[s.source] {
			s.units = min(s.units, s.held)
			s.lower()
		}
	}
}

// entitled computes the figures of slot plans that stand before anything is granted.
func (v *verifier) entitled() {
	v.figures = map[string]*slots{}
	for _, p := range v.m.policy.plans {
		if p.md || !v.fresh("consumers") && !v.fresh("shortfalls") && v.table["grants"].n+v.table["reclaims"].n == 0 {
			continue
		}
		f := v.entitle(p)
		f.drawn = map[string]int64{}
		for _, path := range v.m.policy.paths {
			f.drawn[path] = v.m.account(p.name, path).shared
		}
		v.figures[p.name] = f
	}
}

// openWindows notes in which plans another window holds than in the cycle before.
func (v *verifier) openWindows() {
	if v.switches == nil {
		v.switches = map[string]bool{}
	}
	for _, t := range v.m.policy.plans {
		if len(t.windows) < 2 {
			continue
		}
		if v.opened(t) || v.nears(t) {
			v.switches[t.name], v.switched = true, true
		}
	}
}

// opened tells whether another window of a plan holds than in the cycle before.
func (v *verifier) opened(t *plan) bool {
	return v.lastCycle > 0 && t.at(v.last, v.m.policy.zone) != t.at(v.now, v.m.policy.zone)
}

// nears tells whether a plan prepares for another window that opens within its lead.
func (v *verifier) nears(t *plan) bool {
	return t.lead > 0 && t.at(v.now+t.lead, v.m.policy.zone) != t.at(v.now, v.m.policy.zone)
}

// dropped applies the inputs that were in force before the first cycle, where earlier ones were dropped.
func (v *verifier) dropped() error {
	inputs, err := v.log.Before()
	if err != nil || len(inputs) == 0 {
		return err
	}
	v.lost, v.m.lost = true, true
	for _, in := range inputs {
		content, err := v.log.InputContent(in.Kind, in.Digest)
		if err == nil {
			err = v.take(in, content)
		}
		if err != nil {
			v.fault(Fault{Rule: "input", Table: "inputs", What: fmt.Sprintf("%s/%s: %v", in.Kind, in.Digest, err)})
		}
	}
	v.m.revision, v.policyCycle, v.m.replaced = 0, 0, 0
	v.report.cannot("what was under reclaim before the first cycle that was kept")
	return nil
}

// dim tells whether reclaims may be under way that are not known, since they were issued before what is held was.
func (v *verifier) dim() bool { return v.now < v.clearUS }

// adopt goes on after files that could not be read: what is held is what the keyframe says, what is wanted that and
// what is short.
func (v *verifier) adopt() {
	v.adopted = true
	v.lose.forget()
	v.spent.unknown()
	v.past.unknown()
	v.lose.taken = true
	t := v.table["holdings"]
	keys, labels, host, units, granted := t.keys(), t.labels(), t.words["host"], t.number["units"], t.number["granted"]
	device := t.words["device"]
	for _, at := range slices.Collect(maps.Keys(v.m.piles)) {
		p := v.m.piles[at]
		for l, n := range maps.Clone(p.label) {
			v.m.put(at, l, -n, 0)
		}
	}
	for row := range t.n {
		v.m.forsake(keys(row))
		v.m.sit(v.m.put(spot{keys(row), host.text(row)}, labels(row), units.at(row), granted.at(row)+1),
			device.text(row), units.at(row))
	}
	v.m.claims, v.m.leaving, v.lost = map[int64][]*claim{}, 0, false
	for _, p := range v.m.piles {
		p.leaving, p.leavingOn = 0, nil
	}
	for k, s := range v.m.subs {
		if s.orphan && s.held == 0 {
			delete(v.m.subs, k)
			v.m.replaced++
		}
	}
	ended := map[key]bool{} // what gave back the last of its units in the cycle still counts in it
	releases := v.table["releases"]
	for row, keys := 0, releases.keys(); row < releases.n; row++ {
		if k := keys(row); v.m.subs[k] == nil && !ended[k] {
			ended[k] = true
			v.m.replaced++
		}
	}
	v.m.lost = false
	v.m.disown()
	v.adoptDemand()
	reclaims := v.table["reclaims"]
	for row := range reclaims.n { // reasons of this cycle's shortfalls go by whether there was any
		if reclaims.words["action"].text(row) == "issued" {
			v.issued[reclaims.words["plan"].text(row)] = true
		}
	}
	v.firstKnown, v.clearUS = 0, v.now
	clear(v.m.swaps)
	for _, t := range v.m.policy.plans {
		switch {
		case t.confirmed && t.overdue == none:
			v.clearUS = math.MaxInt64
		case v.clearUS < math.MaxInt64:
			for _, grace := range v.m.policy.grace {
				v.clearUS = max(v.clearUS, v.now+grace+max(0, t.overdue)+2*v.m.policy.interval)
			}
		}
	}
	v.m.revision = v.table["cycles"].number["revision"].at(0)
	v.estranged()
}

// adoptDemand takes the units that sub-allocations want from the units held and the shortfalls.
func (v *verifier) adoptDemand() {
	short := map[key]int64{}
	f := v.table["shortfalls"]
	keys := f.keys()
	for row := range f.n {
		short[keys(row)] += f.number["units_short"].at(row)
	}
	for k, s := range v.m.subs {
		if s.units = s.held + short[k]; k.plan == "" && s.units == 0 {
			delete(v.m.subs, k) // a policy took its consumer away, and the demand from before names it still
		}
	}
}
