// Package owner says who owns which hosts of an MD plan (docs/ownership.md): it makes the passes of core/ownership over
// the plan's hosts as the state has them. Decide is given an environment and gives back columns of decisions; it
// changes nothing of the state. Book carries the decisions out.
package owner

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
)

// Env is what a pass goes by.
type Env struct {
	State  *cluster.State
	Plan   *cluster.Plan
	Window *plan.MDWindow
}

// New is the environment of a plan in a state.
func New(s *cluster.State, p *cluster.Plan) Env { return Env{s, p, &p.MD.Windows[p.Window]} }

// Decisions are what a pass changed: a row for each dimension of which a consumer has more or less of a host than it
// had. Consumers are in tree order, those that are gone behind them, hosts in host order; of a host what went comes
// before what came.
type Decisions struct {
	Consumer  column.Vector[cluster.ConsumerID]
	Host      column.Vector[cluster.HostID]
	Dimension column.Vector[int32]
	Amount    column.Vector[int64] // below 0: so much went

	passed bool             // a pass was made; else all stays as it was
	deeds  cluster.Deeds    // what all consumers have, and reserve, by now
	again  bool             // all hosts are to be split anew
	split  []cluster.HostID // else these, some named several times
	full   bool             // the pass looked at all hosts
}

// begin empties the decisions.
func (d *Decisions) begin() {
	d.Consumer.Reset()
	d.Host.Reset()
	d.Dimension.Reset()
	d.Amount.Reset()
	d.passed, d.deeds, d.again, d.split, d.full = false, cluster.Deeds{}, false, nil, false
}

// note notes what a consumer has of a host, if that is something else than it was, and tells whether it is.
func (d *Decisions) note(c cluster.ConsumerID, h cluster.HostID, was, is []int64) bool {
	if slices.Equal(was, is) {
		return false
	}
	row := func(dim int) {
		d.Consumer.Add(c)
		d.Host.Add(h)
		d.Dimension.Add(int32(dim))
		d.Amount.Add(is[dim] - was[dim])
	}
	for dim := range is {
		if is[dim] < was[dim] {
			row(dim)
		}
	}
	for dim := range is {
		if is[dim] > was[dim] {
			row(dim)
		}
	}
	return true
}

// Passes is the memory of a plan's passes: what the last one saw and gave, so that the next need look only at what has
// changed. The zero value is ready; who knows nothing decides the same.
type Passes struct {
	assigner ownership.Assigner

	state   *cluster.State // of which the ground is
	set     *plan.MDWindow
	ground  *ownership.Ground // nil: there was no pass
	host    []cluster.HostID  // by number in the ground
	place   []int32           // by HostID: that number
	gave    *ownership.Deeds
	changed []int32
	vectors []int64 // memory for what is held, of which no ground has anything yet
	was, is []int64 // scratch
}

// Touched is how many rows the last pass looked at (ownership.Assigner.Touched).
func (o *Passes) Touched() int64 { return o.assigner.Touched() }

// Decide makes a pass when it is time for one (docs/ownership.md, "When"); out is emptied before.
func (o *Passes) Decide(e Env, out *Decisions) {
	out.begin()
	p := e.Plan
	since := p.Since
	if p.Stirred {
		since++
	}
	again := p.Deeds.Open && since >= p.MD.OwnershipRebalance
	if owned := p.Owns || len(p.Deeds.Host) > 0 || p.Parcels.Owned; !owned || !p.Reassign && !again {
		return
	}
	out.passed = true
	if hosts, ok := o.moved(e); ok {
		o.update(e, hosts, out)
	} else {
		o.pass(e, out)
	}
}

// Book carries a decision out, and notes that the cycle had its pass.
func (d *Decisions) Book(s *cluster.State, p *cluster.Plan) {
	if p.Stirred {
		p.Since++
	}
	if d.passed {
		p.Deeds, p.Since = d.deeds, 0
		if d.full {
			p.Parcels.Watch(s.Host.Len())
		} else {
			clear(p.Parcels.Moved)
		}
		if d.again {
			s.Divide(p)
		} else {
			s.DivideAt(p, d.split)
		}
	}
	p.Reassign = false
}

// pass assigns all hosts of the plan anew.
func (o *Passes) pass(e Env, out *Decisions) {
	s, p := e.State, e.Plan
	hosts, at := e.hosts()
	o.state, o.set, o.host, o.place = s, e.Window, o.host[:0], at
	o.ground = o.survey(e, hosts, at)
	for _, k := range hosts {
		o.host = append(o.host, p.Parcels.Host[k])
	}
	texts := e.texts()
	o.assigner.Both = s.Both
	o.gave = o.assigner.Pass(o.ground, e.had(at, texts))
	d := &out.deeds
	o.write(e, d)
	for n, text := range texts {
		if text != "" {
			d.Lister, d.List = append(d.Lister, s.ConsumerOf[n]), append(d.List, text)
		}
	}
	d.KeptAmount = make([][]int64, len(o.gave.Amount))
	for range o.gave.Amount {
		d.Reserved = append(d.Reserved, make([]int64, s.Policy.Len()))
	}
	for n := range plan.Node(s.Policy.Len()) {
		o.reserve(e, d, n)
	}
	out.full, out.again = true, p.Reassign
	e.compare(&p.Deeds, d, out)
}

// texts writes down the lists of rules by node, with which a pass is kept.
func (e Env) texts() []string {
	text := make([]string, e.State.Policy.Len())
	for n, rules := range e.Window.Own {
		if len(rules) > 0 {
			text[n] = e.State.Policy.RuleText(e.Plan.MD, rules)
		}
	}
	return text
}

// write makes deeds of what a pass gave, and of what it tells of the rules; what is reserved is left out.
func (o *Passes) write(e Env, d *cluster.Deeds) {
	a, gave, n := &o.assigner, o.gave, e.State.Policy.Len()
	d.Rule, d.Number, d.Amount, d.Next = gave.Rule, gave.Number, gave.Amount, gave.Next
	d.Consumer, d.Host = make([]cluster.ConsumerID, len(gave.Node)), make([]cluster.HostID, len(gave.Node))
	for i, n := range gave.Node {
		d.Consumer[i], d.Host[i] = e.State.ConsumerOf[n], o.host[gave.Host[i]]
	}
	d.Open, d.Unmet, d.Configured = a.Open(), make([]int32, n), make([][]int64, len(gave.Amount))
	for dim := range d.Configured {
		d.Configured[dim] = make([]int64, n)
	}
	for n := range plan.Node(n) {
		d.Unmet[n] = a.Unmet(n)
		for dim := range d.Configured {
			d.Configured[dim][n] = a.Configured(n, dim)
		}
	}
}

// reserve adds what is reserved of what a consumer owns, of which the deeds say nothing.
func (o *Passes) reserve(e Env, d *cluster.Deeds, n plan.Node) {
	places, reserved := o.assigner.Reserved(n)
	for _, h := range places {
		d.Keeper, d.KeptOn = append(d.Keeper, e.State.ConsumerOf[n]), append(d.KeptOn, o.host[h])
	}
	for dim, column := range d.Reserved {
		d.KeptAmount[dim] = append(d.KeptAmount[dim], reserved[dim]...)
		column[n] = 0
		for _, v := range reserved[dim] {
			column[n] += v
		}
	}
}
