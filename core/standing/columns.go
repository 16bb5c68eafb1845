// Package standing has what stands after a cycle besides its decisions: what is asked for, what hosts there are and
// what is known of them, who has what of whom. It copies the columns of a state that tell this, shares those that did
// not change, and makes tables of them: whole ones for readers, and for the decision log of what changed.
package standing

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Columns are columns of a state as they were after a cycle. Nobody changes them. Those in which nothing changed are
// shared with the cycle before.
type Columns struct {
	policy *plan.Policy

	// By sub-allocation.
	alloc        []cluster.AllocID
	plan         []int32
	source       []cluster.SourceID
	consumer     []cluster.ConsumerID
	name         []int32
	shape        []cluster.ShapeID
	need         []cluster.NeedID
	maxPerHost   []int64
	minUnits     []int64
	together     []int32 // labels, 0: none
	wanted, held []int64
	seq          []int64
	firstSeen    []int64
	orphan       []bool // it wants no more than it still holds

	label  []int32 // of allocations, in the dictionary of labels
	shapes cluster.Shapes

	// By host.
	state  []cluster.HostState
	planOf []int32
	size   [][]int64
	attr   []cluster.AttrColumn
	order  []cluster.HostID

	members [][]cluster.HostID // by resource group
	plans   []planColumns
	loans   decision.Loans

	sources, consumers, labels, needs, hosts decision.Dict
	words                                    []decision.Dict // of attributes that are texts
}

// planColumns are the parcels of a plan.
type planColumns struct {
	name      string
	slots     bool // it counts in slots
	host      []cluster.HostID
	cap, free [][]int64
}

// Frozen gives a function that gives the frozen form of each dictionary, the same one each time.
func Frozen() func(decision.Dict) decision.Dict {
	frozen := map[*cluster.Names]*cluster.Names{}
	return func(d decision.Dict) decision.Dict {
		names, ok := d.(*cluster.Names)
		if !ok {
			return d
		}
		if frozen[names] == nil {
			frozen[names] = names.Frozen()
		}
		return frozen[names]
	}
}

// share gives the column that was kept, where it is equal to the state's, else a copy of the state's. O(rows).
func share[T comparable](kept, now []T) []T {
	if slices.Equal(kept, now) {
		return kept
	}
	return slices.Clone(now)
}

// shareAll is share for several columns.
func shareAll[T comparable](kept, now [][]T) [][]T {
	all := make([][]T, len(now))
	for d := range now {
		var was []T
		if d < len(kept) {
			was = kept[d]
		}
		all[d] = share(was, now[d])
	}
	return all
}

// Keep gives the columns of a state; those equal to old ones (nil: there are none) are shared with old. dict gives the
// form of a dictionary that does not change: see Frozen. O(sub-allocations + hosts + holdings): columns are compared
// whole, whatever changed.
func Keep(s *cluster.State, old *Columns, dict func(decision.Dict) decision.Dict) *Columns {
	if old == nil {
		old = &Columns{}
	}
	b, h := &s.Sub, &s.Host
	k := &Columns{
		policy: s.Policy, shapes: s.Shape, // shapes are only added
		alloc: share(old.alloc, b.Alloc), plan: share(old.plan, b.Plan), source: share(old.source, b.Source),
		consumer: share(old.consumer, b.Consumer), name: share(old.name, b.Name), shape: share(old.shape, b.Shape),
		need: share(old.need, b.Need), maxPerHost: share(old.maxPerHost, b.MaxPerHost),
		minUnits: share(old.minUnits, b.MinUnits), together: share(old.together, b.Together),
		wanted: share(old.wanted, b.Wanted), held: share(old.held, b.Held), label: share(old.label, s.Alloc.Name),
		seq: share(old.seq, b.Seq), firstSeen: share(old.firstSeen, b.FirstSeen), orphan: share(old.orphan, b.Orphan),
		state: share(old.state, h.State), planOf: share(old.planOf, h.Plan), size: shareAll(old.size, h.Size),
		order: share(old.order, h.Order), sources: dict(&s.Source), consumers: dict(&s.Consumer),
		labels: dict(&s.Label), needs: dict(&s.Need.Names), hosts: dict(&h.Names),
		members: shareAll(old.members, members(s)),
	}
	for i := range h.Attr {
		a, was := &h.Attr[i], cluster.AttrColumn{}
		if i < len(old.attr) {
			was = old.attr[i]
		}
		to := cluster.AttrColumn{Name: a.Name, Kind: a.Kind, Valid: share(was.Valid, a.Valid),
			Number: share(was.Number, a.Number), Bool: share(was.Bool, a.Bool)}
		var words decision.Dict
		if a.Kind == plan.Text {
			to.Text.Code, words = share(was.Text.Code, a.Text.Code), dict(a.Text.Names)
		}
		k.attr, k.words = append(k.attr, to), append(k.words, words)
	}
	for i := range s.Plans {
		p, was := &s.Plans[i], planColumns{}
		if i < len(old.plans) {
			was = old.plans[i]
		}
		k.plans = append(k.plans, planColumns{
			name: p.Name, slots: p.Slots != nil, host: share(was.host, p.Parcels.Host),
			cap: shareAll(was.cap, p.Parcels.Cap), free: shareAll(was.free, p.Parcels.Free),
		})
	}
	k.loans = k.loansOf(s)
	return k
}

// members are the hosts of each resource group.
func members(s *cluster.State) [][]cluster.HostID {
	all := make([][]cluster.HostID, len(s.Policy.Groups))
	for g := range all {
		all[g] = s.Members(g)
	}
	return all
}

// BySource adds up what sources want and hold, by their codes.
func (k *Columns) BySource() (wanted, held []int64) {
	wanted, held = make([]int64, k.sources.Len()), make([]int64, k.sources.Len())
	for sub, a := range k.alloc {
		if a != cluster.NoID {
			wanted[k.source[sub]] += k.wanted[sub]
			held[k.source[sub]] += k.held[sub]
		}
	}
	return wanted, held
}

// figures are columns of numbers for each dimension, without rows.
func (k *Columns) figures() decision.Figures {
	return decision.NewFigures(k.policy.Dimensions, len(k.policy.SlotPlans) > 0)
}

// inSlots tells whether a plan counts in slots; no plan does not.
func (k *Columns) inSlots(plan int32) bool { return plan >= 0 && k.plans[plan].slots }

// planNames are the names of the plans, by their index.
func (k *Columns) planNames() decision.Words {
	words := make(decision.Words, len(k.plans))
	for i := range words {
		words[i] = k.plans[i].name
	}
	return words
}

// coded is a text column of codes.
func coded(name string, codes []int32, d decision.Dict) decision.Column {
	return decision.Column{Name: name, Type: decision.Text, Code: codes, Dict: d}
}
