package engine

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Standing is what stands after a cycle besides its decisions and holdings: what is asked for, what hosts there are and
// who pushed what. Readers share it; nobody changes it. A cycle that changed something keeps copies of the state's
// columns, as far as they differ from those kept before; a table is made of them when a reader first asks for it.
type Standing struct {
	Cycle int64

	kept      *keptColumns
	requests  func() *decision.Table
	hosts     func() *decision.Table
	inventory func() *decision.Table
	sources   func() []SourceView
}

// Requests is the table of what is asked for: a row for each sub-allocation, in no order that means anything.
func (t *Standing) Requests() *decision.Table { return t.requests() }

// Hosts is the table of hosts: those of plans in the plans' order, then those of none. Capacity is what the plan counts,
// overcommit included; of a host in no plan it is its own. Attributes follow, as texts.
func (t *Standing) Hosts() *decision.Table { return t.hosts() }

// Inventory is the table of what requirements may ask of hosts (see Inventory).
func (t *Standing) Inventory() *decision.Table { return t.inventory() }

// Sources are those who push, by name.
func (t *Standing) Sources() []SourceView { return t.sources() }

// SourceView is what is known of a source.
type SourceView struct {
	Name    string
	Owner   string // the token that pushed to it first, of those that may not do everything; "" until there is one
	HeardUS int64  // when it pushed last
	Rows    int64  // of its last snapshot
	Silent  bool   // it was silent for longer than source_ttl
	Wanted  int64  // units
	Held    int64

	id int32 // in the dictionary of sources, NoID: it has no demand
}

// keptColumns are columns of the state as they were after a cycle. Those in which nothing changed are shared with the
// cycle before.
type keptColumns struct {
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
	wanted, held []int64

	label  []int32 // of allocations, in the dictionary of labels
	shapes cluster.Shapes

	// By host.
	state  []cluster.HostState
	planOf []int32
	size   [][]int64
	attr   []cluster.AttrColumn
	order  []cluster.HostID

	plans []keptPlan

	sources, consumers, labels, needs, hosts decision.Dict
	words                                    []decision.Dict // of attributes that are texts
}

// keptPlan are the parcels of a plan.
type keptPlan struct {
	name      string
	slots     bool // it counts in slots
	host      []cluster.HostID
	cap, free [][]int64
}

// share gives the column that was kept, where it is equal to the state's, else a copy of the state's. O(rows).
func share[T comparable](kept, now []T) []T {
	if slices.Equal(kept, now) {
		return kept
	}
	return slices.Clone(now)
}

// shareAll is share for columns by dimension.
func shareAll(kept, now [][]int64) [][]int64 {
	all := make([][]int64, len(now))
	for d := range now {
		var was []int64
		if d < len(kept) {
			was = kept[d]
		}
		all[d] = share(was, now[d])
	}
	return all
}

// keep gives the columns of a state; those equal to old ones are shared with old. O(sub-allocations + hosts): columns are
// compared whole, whatever changed.
func keep(s *cluster.State, old *keptColumns, dict func(decision.Dict) decision.Dict) *keptColumns {
	b, h := &s.Sub, &s.Host
	k := &keptColumns{
		policy: s.Policy, shapes: s.Shape, // shapes are only added
		alloc: share(old.alloc, b.Alloc), plan: share(old.plan, b.Plan), source: share(old.source, b.Source),
		consumer: share(old.consumer, b.Consumer), name: share(old.name, b.Name), shape: share(old.shape, b.Shape),
		need: share(old.need, b.Need), maxPerHost: share(old.maxPerHost, b.MaxPerHost),
		wanted: share(old.wanted, b.Wanted), held: share(old.held, b.Held), label: share(old.label, s.Alloc.Name),
		state: share(old.state, h.State), planOf: share(old.planOf, h.Plan), size: shareAll(old.size, h.Size), order: share(old.order, h.Order),
		sources: dict(&s.Source), consumers: dict(&s.Consumer), labels: dict(&s.Label), needs: dict(&s.Need.Names), hosts: dict(&h.Names),
	}
	for i := range h.Attr {
		a, was := &h.Attr[i], cluster.AttrColumn{}
		if i < len(old.attr) {
			was = old.attr[i]
		}
		to := cluster.AttrColumn{Name: a.Name, Kind: a.Kind, Valid: share(was.Valid, a.Valid), Number: share(was.Number, a.Number), Bool: share(was.Bool, a.Bool)}
		var words decision.Dict
		if a.Kind == plan.Text {
			to.Text.Code, words = share(was.Text.Code, a.Text.Code), dict(a.Text.Names)
		}
		k.attr, k.words = append(k.attr, to), append(k.words, words)
	}
	for i := range s.Plans {
		p, was := &s.Plans[i], keptPlan{}
		if i < len(old.plans) {
			was = old.plans[i]
		}
		k.plans = append(k.plans, keptPlan{
			name: p.Name, slots: p.Slots != nil, host: share(was.host, p.Parcels.Host),
			cap: shareAll(was.cap, p.Parcels.Cap), free: shareAll(was.free, p.Parcels.Free),
		})
	}
	return k
}

// standing is what stands now; old: what stood before, nil for nothing.
func (e *Engine) standing(old *Standing, dict func(decision.Dict) decision.Dict) *Standing {
	s := e.state
	was := &keptColumns{}
	if old != nil {
		was = old.kept
	}
	k := keep(s, was, dict)
	silent := s.SilentSources()
	var sources []SourceView
	for name, is := range e.sources {
		v := SourceView{Name: name, Owner: is.owner, HeardUS: is.heardUS, Rows: is.rows, Silent: silent[name], id: cluster.NoID}
		if id, ok := s.Source.Find([]byte(name)); ok {
			v.id = id
		}
		sources = append(sources, v)
	}
	return &Standing{
		Cycle: s.Cycle, kept: k, requests: sync.OnceValue(k.requests), hosts: sync.OnceValue(k.hostTable),
		inventory: sync.OnceValue(k.inventory), sources: sync.OnceValue(func() []SourceView { return k.summed(sources) }),
	}
}

// after is what stands after a later cycle that changed nothing of it.
func (t *Standing) after(cycle int64) *Standing {
	later := *t
	later.Cycle = cycle
	return &later
}

// summed adds up what sources want and hold, and puts them in the order of their names.
func (k *keptColumns) summed(sources []SourceView) []SourceView {
	wanted, held := make([]int64, k.sources.Len()), make([]int64, k.sources.Len())
	for sub, a := range k.alloc {
		if a != cluster.NoID {
			wanted[k.source[sub]] += k.wanted[sub]
			held[k.source[sub]] += k.held[sub]
		}
	}
	for i := range sources {
		if id := sources[i].id; id != cluster.NoID {
			sources[i].Wanted, sources[i].Held = wanted[id], held[id]
		}
	}
	slices.SortFunc(sources, func(a, b SourceView) int { return cmp.Compare(a.Name, b.Name) })
	return sources
}

// figures are columns of numbers: one for each dimension of a policy, and one for what slot plans count in.
type figures struct {
	columns []decision.Column
	dims    int // of the policy
	slots   int // the column of slots, -1 where nothing counts in them
}

// figuresOf makes the columns, named with a prefix, for so many rows without values. A policy need not have a dimension
// `slots`; slot plans count in them all the same.
func figuresOf(p *plan.Policy, prefix string, rows int) figures {
	names := slices.Clone(p.Dimensions)
	f := figures{dims: len(names), slots: slices.Index(names, "slots")}
	if f.slots < 0 && len(p.SlotPlans) > 0 {
		f.slots = len(names)
		names = append(names, "slots")
	}
	for _, name := range names {
		f.columns = append(f.columns, decision.Column{
			Name: prefix + name, Type: decision.Int, Optional: true, Int: make([]int64, rows), Null: slices.Repeat([]bool{true}, rows),
		})
	}
	return f
}

// set gives a row the figures of a plan: in a slot plan there is one, its slots.
func (f *figures) set(row int, inSlots bool, of func(d int) int64) {
	if inSlots {
		f.columns[f.slots].Int[row], f.columns[f.slots].Null[row] = of(0), false
		return
	}
	for d := range f.dims {
		f.columns[d].Int[row], f.columns[d].Null[row] = of(d), false
	}
}

// planNames are the names of the plans, by their index.
func (k *keptColumns) planNames() decision.Words {
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

// requests makes the table of what is asked for. O(sub-allocations).
func (k *keptColumns) requests() *decision.Table {
	var subs []int32
	for sub, a := range k.alloc {
		if a != cluster.NoID {
			subs = append(subs, int32(sub))
		}
	}
	rows := len(subs)
	column := func(of func(sub int32) int32) []int32 {
		codes := make([]int32, rows)
		for row, sub := range subs {
			codes[row] = of(sub)
		}
		return codes
	}
	number := func(name string, of []int64) decision.Column {
		values := make([]int64, rows)
		for row, sub := range subs {
			values[row] = of[sub]
		}
		return decision.Column{Name: name, Type: decision.Int, Int: values}
	}
	size := figuresOf(k.policy, "", rows)
	for row, sub := range subs {
		of := k.shapes.Size(k.shape[sub])
		size.set(row, k.plan[sub] >= 0 && k.plans[k.plan[sub]].slots, func(d int) int64 { return of[d] })
	}
	most := number("max_per_host", k.maxPerHost)
	most.Optional, most.Null = true, make([]bool, rows)
	for row, v := range most.Int {
		most.Null[row] = v == plan.Unlimited
	}
	columns := []decision.Column{
		coded("plan", column(func(sub int32) int32 { return max(k.plan[sub], cluster.NoID) }), k.planNames()),
		coded("source", column(func(sub int32) int32 { return int32(k.source[sub]) }), k.sources),
		coded("consumer", column(func(sub int32) int32 { return int32(k.consumer[sub]) }), k.consumers),
		coded("allocation", column(func(sub int32) int32 { return k.label[k.alloc[sub]] }), k.labels),
		coded("sub", column(func(sub int32) int32 { return k.name[sub] }), k.labels),
	}
	columns = append(columns, size.columns...)
	columns = append(columns, coded("requirement", column(func(sub int32) int32 { return int32(k.need[sub]) }), k.needs), most,
		number("wanted", k.wanted), number("held", k.held))
	return &decision.Table{Name: "requests", Rows: rows, Columns: columns}
}

// end is the parcel behind those of the host that parcel i is the first of.
func (p *keptPlan) end(i int) int {
	h := p.host[i]
	for i++; i < len(p.host) && p.host[i] == h; i++ {
	}
	return i
}

// hostTable makes the table of hosts. O(hosts).
func (k *keptColumns) hostTable() *decision.Table {
	var hosts []cluster.HostID
	var plans []int32
	var first []int
	for i := range k.plans {
		p := &k.plans[i]
		for at := 0; at < len(p.host); at = p.end(at) {
			hosts, plans, first = append(hosts, p.host[at]), append(plans, int32(i)), append(first, at)
		}
	}
	for _, h := range k.order {
		if k.planOf[h] == cluster.NoID {
			hosts, plans, first = append(hosts, h), append(plans, cluster.NoID), append(first, 0)
		}
	}
	capacity, used := figuresOf(k.policy, "capacity_", len(hosts)), figuresOf(k.policy, "used_", len(hosts))
	names, states := make([]int32, len(hosts)), make([]int32, len(hosts))
	for row, h := range hosts {
		names[row], states[row] = int32(h), int32(k.state[h])
		if plans[row] == cluster.NoID {
			capacity.set(row, false, func(d int) int64 { return k.size[d][h] })
			continue
		}
		p, at := &k.plans[plans[row]], first[row]
		end := p.end(at)
		sum := func(of []int64) (n int64) {
			for i := at; i < end; i++ {
				n += of[i]
			}
			return n
		}
		capacity.set(row, p.slots, func(d int) int64 { return sum(p.cap[d]) })
		used.set(row, p.slots, func(d int) int64 { return sum(p.cap[d]) - sum(p.free[d]) })
	}
	columns := []decision.Column{
		coded("plan", plans, k.planNames()), coded("host", names, k.hosts), coded("state", states, decision.States),
	}
	columns = slices.Concat(columns, capacity.columns, used.columns, k.attributes(hosts))
	return &decision.Table{Name: "hosts", Rows: len(hosts), Columns: columns}
}

// attributes are the attributes of hosts as columns of texts, named `attribute_` and the attribute.
func (k *keptColumns) attributes(hosts []cluster.HostID) (columns []decision.Column) {
	for i := range k.attr {
		a, words := &k.attr[i], k.words[i]
		made := &cluster.Names{}
		codes := make([]int32, len(hosts))
		for row, h := range hosts {
			codes[row] = decision.Null
			if !a.Valid[h] {
				continue
			}
			switch a.Kind {
			case plan.Number:
				codes[row] = made.InternString(strconv.FormatFloat(a.Number[h], 'f', -1, 64))
			case plan.Boolean:
				codes[row] = made.InternString(strconv.FormatBool(a.Bool[h]))
			default:
				codes[row] = a.Text.Code[h]
			}
		}
		if a.Kind != plan.Text {
			words = made
		}
		columns = append(columns, coded("attribute_"+a.Name, codes, words))
	}
	return columns
}
