package cycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/emit"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/view"
)

// TestReasons plays random cases and holds what core/reason says after every cycle of those who are short against the
// oracle, and its texts against the engine's.
func TestReasons(t *testing.T) {
	n := casesMin / 6
	if testing.Short() {
		n /= 5
	}
	setRapid(t, n, seedMin)
	all := map[string]int{}
	for _, k := range kinds {
		if k.name == "slot" || k.name == "hybrid" { // they have few MD plans, or none
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			r := reasoned{rows: map[string]int{}}
			rapid.Check(t, func(t *rapid.T) { r.play(t, k) })
			t.Logf("rows by reason: %v, %d of them in part; rooms made anew %d times of %d; %d tables filled, %d not",
				r.rows, r.alike, r.rebuilt, r.asked, r.filled, r.passed)
			for name, rows := range r.rows {
				all[name] += rows
			}
			if !testing.Short() && 2*r.rebuilt > r.asked {
				t.Error("rooms were made anew most of the time")
			}
		})
	}
	for _, name := range []string{
		"no_host_matches", "share_limit", "too_big", "max_per_host", "fragmented", "lower_priority", "over_quota",
		"pool_exhausted", "grace_filter", "waiting_for_reclaim", "ownership_unmet", "reclaim_budget",
	} {
		if all[name] == 0 && !testing.Short() {
			t.Errorf("nothing was short for %s", name)
		}
	}
}

// reasoned explains after each cycle, and compares.
type reasoned struct {
	rows           map[string]int // by reason
	asked, rebuilt int
	alike          int // rows of which only so much was compared: see outdone
	filled, passed int // cycles whose tables were compared, and those where they go by what no state shows

	plans []planReasons
}

// planReasons is what is kept of a plan between cycles.
type planReasons struct {
	views   view.Views
	reasons reason.Reasons
}

// play plays a case.
func (r *reasoned) play(t *rapid.T, k kind) {
	p := newPlayer(t, k)
	r.plans = nil
	p.after = func(t *rapid.T) { r.compare(t, p) }
	for i := range p.upTo(t, "steps", 1+2*p.eager(), 6) {
		p.step(t, i)
	}
	p.end(t)
	for i := range r.plans {
		r.rebuilt += r.plans[i].reasons.Rebuilt()
	}
}

// compare explains all MD plans of a case after a cycle.
func (r *reasoned) compare(t *rapid.T, p *player) {
	s := p.engine
	for len(r.plans) < len(s.Plans) {
		r.plans = append(r.plans, planReasons{reasons: reason.Reasons{Eager: len(p.dims)%2 > 0}})
	}
	tables := newTables(s)
	for i := range s.Plans {
		if s.Plans[i].MD == nil {
			continue
		}
		at := slices.IndexFunc(p.last.Reasoned, func(b oracle.Reasoned) bool { return b.Plan == s.Plans[i].Name })
		one, out := &r.plans[i], reason.Shortfalls{Details: tables.details}
		one.views.Follow(s, &s.Plans[i])
		e := envOf(s, &s.Plans[i], &one.views, &p.last.Reasoned[at])
		one.reasons.Explain(e, &out)
		r.asked++
		got, want := shortLines(e, &out), r.want(p, e)
		if s.Plans[i].Parcels.Owned && p.last.Revoked > 0 { // pools of lent parcels count what is not held any more
			r.alike += len(got)
			got, want = outdone(got), outdone(want)
		}
		if !slices.Equal(got, want) {
			t.Logf("%s", p.scenario())
			t.Fatalf("cycle %d: shortfalls of %s:\n%s", p.cycles, e.Plan.Name,
				difference(strings.Join(got, "\n"), strings.Join(want, "\n")))
		}
		tables.fill(e, &out)
	}
	for i := range s.Plans {
		if s.Plans[i].Parcels.Owned && p.last.Revoked > 0 {
			r.passed++
			return
		}
	}
	r.filled++
	want := decision.Cycle{
		Grants: p.out.Grants, Consumers: p.out.Consumers, Amounts: p.out.Amounts, Shares: p.out.Shares,
		Shortfalls: p.out.Shortfalls, Holdings: p.out.Holdings, Hosts: p.out.Hosts, Owners: p.out.Owners,
	}
	to, from := &tables.Consumers, &want.Consumers // columns that core/cycle fills itself
	copy(to.UnitSecondsLost, from.UnitSecondsLost)
	copy(to.Budget, from.Budget)
	copy(to.BudgetUsed, from.BudgetUsed)
	copy(to.BudgetNull, from.BudgetNull)
	copy(to.BudgetDimension.Code, from.BudgetDimension.Code)
	to.BudgetDimension.Dict = from.BudgetDimension.Dict
	if got, want := tables.text(&tables.Cycle), tables.text(&want); got != want {
		t.Fatalf("cycle %d: tables\n%s", p.cycles, difference(got, want))
	}
}

// stateTables are those that tell what is true after a cycle, and grants.
type stateTables struct {
	decision.Cycle
	details *cluster.Names
	devices *cluster.Names
}

// newTables are empty tables of a state.
func newTables(s *cluster.State) *stateTables {
	v := &stateTables{details: new(cluster.Names), devices: new(cluster.Names)}
	var plans decision.Words
	for i := range s.Plans {
		plans = append(plans, s.Plans[i].Name)
	}
	dicts := decision.Dicts{
		Plan: plans, Source: &s.Source, Consumer: &s.Consumer, Label: &s.Label, Host: &s.Host.Names,
		Dimension: decision.Words(s.Policy.Dimensions), Detail: v.details, Device: v.devices,
	}
	v.ResetEvents(&dicts)
	v.ResetStates(&dicts)
	v.ResetKeyframe(&dicts)
	return v
}

// fill adds the rows of a plan.
func (v *stateTables) fill(e *reason.Env, short *reason.Shortfalls) {
	var shares pool.Shares
	var consumers pool.Consumers
	var amounts pool.Amounts
	shares.Add(&e.Env, e.Figures)
	consumers.Add(&e.Env)
	amounts.Add(&e.Env, e.Figures)
	emit.Shares(&v.Shares, e.State, e.Plan, &shares)
	emit.Consumers(&v.Consumers, e.State, e.Plan, &consumers)
	emit.Amounts(&v.Amounts, e.State, e.Plan, &amounts)
	emit.Shortfalls(&v.Shortfalls, e.State, e.Plan, short, v.details)
	var given []cluster.HoldingID
	for q := range e.State.Holding.Sub {
		given = append(given, cluster.HoldingID(q), cluster.HoldingID(q))
	}
	emit.Grants(&v.Grants, e.State, e.Plan, emit.Given(e.State, e.Plan, e.State.Cycle, given), v.devices)
	emit.Keyframe(&v.Cycle, e.State, e.Plan, v.devices)
}

// text is the tables as text, but for demand that is in no plan.
func (v *stateTables) text(c *decision.Cycle) string {
	text := dump(slices.Concat(c.EventTables()[:1], c.StateTables(), c.KeyframeTables()))
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return strings.Contains(line, "not_in_plan")
	})
	return strings.Join(lines, "\n")
}

// outdone makes one reason of those that go by figures of pools.
func outdone(lines []string) []string {
	for i, line := range lines {
		words := strings.Fields(line)
		if at := slices.IndexFunc(words, func(w string) bool {
			return w == "lower_priority" || w == "over_quota" || w == "pool_exhausted"
		}); at >= 0 {
			lines[i] = strings.Join(words[:at], " ") + " outdone " + words[at+1]
		}
	}
	return lines
}

// envOf is what reasons go by after a cycle of which the oracle tells what no state shows.
func envOf(s *cluster.State, p *cluster.Plan, v *view.Views, basis *oracle.Reasoned) *reason.Env {
	e := &reason.Env{Env: pool.New(s, p, v), Promises: new(pool.Promises), Figures: new(pool.Book),
		Denied: map[cluster.SubID]bool{}}
	e.Promises.Sum(e.Env)
	subs := map[oracle.Key]cluster.SubID{}
	for leaf := range plan.Node(s.Policy.Len()) {
		e.EachSub(leaf, func(sub cluster.SubID) {
			if s.Short(sub) > 0 { // of several sizes of one name one is wanted
				subs[keyOf(s, p, sub)] = sub
			}
		})
	}
	for _, j := range basis.Joined {
		e.Promises.Add(pool.Join{Sub: subs[j.Key], Parcel: parcelNamed(e, j.Host, j.Owner)})
	}
	for _, key := range basis.Denied {
		if sub, ok := subs[key]; ok {
			e.Denied[sub] = true
		}
	}
	stood := make([][]int64, len(s.Policy.Dimensions))
	for d := range stood {
		stood[d] = make([]int64, s.Policy.Len())
		for n, path := range s.Policy.Path {
			if amount := basis.Stood[path]; amount != nil {
				stood[d][n] = amount[d]
			}
		}
	}
	e.Granted, e.Limits = pool.LimitsOf(&e.Env, stood), pool.NewLimits(&e.Env, e.Promises)
	e.Figures.Sum(&e.Env, e.Promises)
	return e
}

// keyOf names a sub-allocation.
func keyOf(s *cluster.State, p *cluster.Plan, sub cluster.SubID) oracle.Key {
	return oracle.Key{
		Plan: p.Name, Consumer: s.Consumer.String(int32(s.Sub.Consumer[sub])),
		Allocation: s.Label.String(s.Alloc.Name[s.Sub.Alloc[sub]]), Sub: s.Label.String(s.Sub.Name[sub]),
	}
}

// parcelNamed is an owner's parcel of a host.
func parcelNamed(e *reason.Env, host, owner string) cluster.ParcelID {
	for k, h := range e.Plan.Parcels.Host {
		if e.State.Host.Names.String(int32(h)) == host && e.State.Policy.Path[e.Owner(cluster.ParcelID(k))] == owner {
			return cluster.ParcelID(k)
		}
	}
	panic(fmt.Sprintf("%s has no parcel of %s", owner, host))
}

// shortLines are shortfalls as lines.
func shortLines(e *reason.Env, out *reason.Shortfalls) (lines []string) {
	s := e.State
	for i, sub := range out.Sub.Values() {
		blocker, dimension, detail, until := "", "", "", int64(0)
		if n := out.Blocker.At(i); n != plan.None {
			blocker = s.Policy.Path[n]
		}
		if d := out.Dimension.At(i); d != decision.Null {
			dimension = s.Policy.Dimensions[d]
		}
		if text := out.Detail.At(i); text != decision.Null {
			detail = out.Details.String(text)
		}
		if us := out.Until.At(i); us != 0 {
			until = us - startUS
		}
		lines = append(lines, fmt.Sprintf("%v %d %s %q %q %d %s", keyOf(s, e.Plan, sub), out.Units.At(i),
			decision.Reasons[out.Reason.At(i)], dimension, blocker, until, detail))
	}
	return lines
}

// want is the oracle's shortfalls of a plan, with the engine's texts. They were compared before.
func (r *reasoned) want(p *player, e *reason.Env) (lines []string) {
	details := p.out.Shortfalls.Detail
	for i, row := range p.last.Shortfalls {
		if row.Plan == e.Plan.Name {
			r.rows[row.Reason]++
			lines = append(lines, fmt.Sprintf("%v %d %s %q %q %d %s", row.Key, row.Units, row.Reason, row.Dimension,
				row.Blocker, row.UntilUS, details.At(i)))
		}
	}
	return lines
}
