package engine

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Standing is what stands after a cycle besides its decisions and holdings: what is asked for, what hosts there are and
// who pushed what. Readers share it; nobody changes it.
type Standing struct {
	Requests *decision.Table // a row for each sub-allocation
	Hosts    *decision.Table // a row for each host
	Sources  []SourceView    // by name
	Cycle    int64

	// Inventory is what requirements may ask of the hosts; shared by cycles between which no table of hosts came.
	Inventory *decision.Table

	hostTables int64 // cluster.State.HostTables of Inventory
}

// SourceView is what is known of a source.
type SourceView struct {
	Name    string
	Owner   string // the token that pushed to it first, of those that may not do everything; "" until there is one
	HeardUS int64  // when it pushed last
	Rows    int64  // of its last snapshot
	Silent  bool   // it was silent for longer than source_ttl
	Wanted  int64  // units
	Held    int64
}

// standing is what stands now. O(sub-allocations + hosts).
func (e *Engine) standing(dict func(decision.Dict) decision.Dict) *Standing {
	s := e.state
	t := &Standing{Requests: requests(s, dict), Hosts: hostsOf(s, dict), Cycle: s.Cycle, hostTables: s.HostTables}
	if last := e.view.Load(); last != nil && last.Standing != nil && last.Standing.Inventory != nil && last.Standing.hostTables == s.HostTables {
		t.Inventory = last.Standing.Inventory
	} else {
		t.Inventory = inventory(s, dict)
	}
	wanted, held := make([]int64, s.Source.Len()), make([]int64, s.Source.Len())
	for sub, a := range s.Sub.Alloc {
		if a != cluster.NoID {
			wanted[s.Sub.Source[sub]] += s.Sub.Wanted[sub]
			held[s.Sub.Source[sub]] += s.Sub.Held[sub]
		}
	}
	silent := s.SilentSources()
	for name, is := range e.sources {
		v := SourceView{Name: name, Owner: is.owner, HeardUS: is.heardUS, Rows: is.rows, Silent: silent[name]}
		if id, ok := s.Source.Find([]byte(name)); ok {
			v.Wanted, v.Held = wanted[id], held[id]
		}
		t.Sources = append(t.Sources, v)
	}
	slices.SortFunc(t.Sources, func(a, b SourceView) int { return cmp.Compare(a.Name, b.Name) })
	return t
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

// planNames are the names of a state's plans, by their index.
func planNames(s *cluster.State) decision.Words {
	words := make(decision.Words, len(s.Plans))
	for i := range words {
		words[i] = s.Plans[i].Name
	}
	return words
}

// coded is a text column of codes.
func coded(name string, codes []int32, d decision.Dict) decision.Column {
	return decision.Column{Name: name, Type: decision.Text, Code: codes, Dict: d}
}

// requests is the table of what is asked for: a row for each sub-allocation, in no order that means anything.
func requests(s *cluster.State, dict func(decision.Dict) decision.Dict) *decision.Table {
	b := &s.Sub
	var subs []int32
	for sub, a := range b.Alloc {
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
	number := func(name string, of func(sub int32) int64) decision.Column {
		values := make([]int64, rows)
		for row, sub := range subs {
			values[row] = of(sub)
		}
		return decision.Column{Name: name, Type: decision.Int, Int: values}
	}
	size := figuresOf(s.Policy, "", rows)
	for row, sub := range subs {
		inSlots := b.Plan[sub] >= 0 && s.Plans[b.Plan[sub]].Slots != nil
		of := s.Size(cluster.SubID(sub))
		size.set(row, inSlots, func(d int) int64 { return of[d] })
	}
	most := number("max_per_host", func(sub int32) int64 { return b.MaxPerHost[sub] })
	most.Optional, most.Null = true, make([]bool, rows)
	for row, v := range most.Int {
		most.Null[row] = v == plan.Unlimited
	}
	columns := []decision.Column{
		coded("plan", column(func(sub int32) int32 { return max(b.Plan[sub], cluster.NoID) }), planNames(s)),
		coded("source", column(func(sub int32) int32 { return int32(b.Source[sub]) }), dict(&s.Source)),
		coded("consumer", column(func(sub int32) int32 { return int32(b.Consumer[sub]) }), dict(&s.Consumer)),
		coded("allocation", column(func(sub int32) int32 { return s.Alloc.Name[b.Alloc[sub]] }), dict(&s.Label)),
		coded("sub", column(func(sub int32) int32 { return b.Name[sub] }), dict(&s.Label)),
	}
	columns = append(columns, size.columns...)
	columns = append(columns,
		coded("requirement", column(func(sub int32) int32 { return int32(b.Need[sub]) }), dict(&s.Need.Names)), most,
		number("wanted", func(sub int32) int64 { return b.Wanted[sub] }), number("held", func(sub int32) int64 { return b.Held[sub] }))
	return &decision.Table{Name: "requests", Rows: rows, Columns: columns}
}

// hostsOf is the table of hosts: those of plans in the plans' order, then those of none. Capacity is what the plan
// counts, overcommit included; of a host in no plan it is its own. Attributes follow, as texts.
func hostsOf(s *cluster.State, dict func(decision.Dict) decision.Dict) *decision.Table {
	var hosts []cluster.HostID
	var plans []int32
	var first []cluster.ParcelID
	for i := range s.Plans {
		p := &s.Plans[i].Parcels
		for k := cluster.ParcelID(0); int(k) < p.Len(); k = p.End(k) {
			hosts, plans, first = append(hosts, p.Host[k]), append(plans, int32(i)), append(first, k)
		}
	}
	for _, h := range s.Host.Order {
		if s.Host.Plan[h] == cluster.NoID {
			hosts, plans, first = append(hosts, h), append(plans, cluster.NoID), append(first, cluster.NoID)
		}
	}
	capacity, used := figuresOf(s.Policy, "capacity_", len(hosts)), figuresOf(s.Policy, "used_", len(hosts))
	names, states := make([]int32, len(hosts)), make([]int32, len(hosts))
	for row, h := range hosts {
		names[row], states[row] = int32(h), int32(s.Host.State[h])
		if plans[row] == cluster.NoID {
			capacity.set(row, false, func(d int) int64 { return s.Host.Size[d][h] })
			continue
		}
		pl := &s.Plans[plans[row]]
		p, k := &pl.Parcels, first[row]
		sum := func(of []int64) (n int64) {
			for i := k; i < p.End(k); i++ {
				n += of[i]
			}
			return n
		}
		capacity.set(row, pl.Slots != nil, func(d int) int64 { return sum(p.Cap[d]) })
		used.set(row, pl.Slots != nil, func(d int) int64 { return sum(p.Cap[d]) - sum(p.Free[d]) })
	}
	columns := []decision.Column{
		coded("plan", plans, planNames(s)), coded("host", names, dict(&s.Host.Names)), coded("state", states, decision.States),
	}
	columns = slices.Concat(columns, capacity.columns, used.columns, attributes(s, hosts, dict))
	return &decision.Table{Name: "hosts", Rows: len(hosts), Columns: columns}
}

// attributes are the attributes of hosts as columns of texts, named `attribute_` and the attribute.
func attributes(s *cluster.State, hosts []cluster.HostID, dict func(decision.Dict) decision.Dict) (columns []decision.Column) {
	for i := range s.Host.Attr {
		a := &s.Host.Attr[i]
		codes := make([]int32, len(hosts))
		words := &cluster.Names{}
		for row, h := range hosts {
			codes[row] = decision.Null
			if !a.Valid[h] {
				continue
			}
			switch a.Kind {
			case plan.Number:
				codes[row] = words.InternString(strconv.FormatFloat(a.Number[h], 'f', -1, 64))
			case plan.Boolean:
				codes[row] = words.InternString(strconv.FormatBool(a.Bool[h]))
			default:
				codes[row] = a.Text.Code[h]
			}
		}
		if a.Kind == plan.Text {
			words = a.Text.Names
		}
		columns = append(columns, coded("attribute_"+a.Name, codes, dict(words)))
	}
	return columns
}
