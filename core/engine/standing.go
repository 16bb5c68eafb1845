package engine

import (
	"cmp"
	"slices"
	"sync"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/standing"
)

// Standing has the tables that describe a cycle's end besides its decisions and holdings: demand, hosts, loans and
// sources. Readers share a Standing, and nobody changes one. Each table is built from the kept columns when a reader
// first asks for the table.
type Standing struct {
	Cycle int64

	columns   *standing.Columns
	requests  func() *decision.Table
	hosts     func() *decision.Table
	inventory func() *decision.Table
	loans     func() *decision.Table
	tables    func() []decision.Table
	sources   func() []SourceView
	sums      func() []standing.HostSum
}

// Requests is the table of what is asked for: a row for each sub-allocation, in no order that means anything.
func (t *Standing) Requests() *decision.Table { return t.requests() }

// Hosts is the table of hosts (standing.Columns.Hosts).
func (t *Standing) Hosts() *decision.Table { return t.hosts() }

// Inventory is the table of what requirements may ask of hosts (standing.Columns.Inventory).
func (t *Standing) Inventory() *decision.Table { return t.inventory() }

// Loans is the table of loans: units that a consumer holds of another consumer's own.
func (t *Standing) Loans() *decision.Table { return t.loans() }

// HostSums are the hosts added up by plan and state (standing.Columns.HostSums).
func (t *Standing) HostSums() []standing.HostSum { return t.sums() }

// Table is a table of the decision log that tells what stands (decision.IsStanding), whole.
func (t *Standing) Table(name string) *decision.Table {
	of := t.tables()
	return &of[slices.IndexFunc(of, func(t decision.Table) bool { return t.Name == name })]
}

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

// standing is what stands now; old: what stood before, nil for nothing.
func (e *Engine) standing(old *Standing, dict func(decision.Dict) decision.Dict) *Standing {
	s := e.state
	var was *standing.Columns
	if old != nil {
		was = old.columns
	}
	k := standing.Keep(s, was, dict)
	silent := s.SilentSources()
	var sources []SourceView
	for name, is := range e.sources {
		v := SourceView{Name: name, Owner: is.owner, HeardUS: is.heardUS, Rows: is.rows, Silent: silent[name],
			id: cluster.NoID}
		if id, ok := s.Source.Find([]byte(name)); ok {
			v.id = id
		}
		sources = append(sources, v)
	}
	return &Standing{
		Cycle: s.Cycle, columns: k, requests: sync.OnceValue(k.Requests), hosts: sync.OnceValue(k.Hosts),
		inventory: sync.OnceValue(k.Inventory),
		loans:     sync.OnceValue(k.Loans),
		tables:    sync.OnceValue(func() []decision.Table { return k.Whole().Tables() }),
		sources:   sync.OnceValue(func() []SourceView { return summed(k, sources) }),
		sums:      sync.OnceValue(k.HostSums),
	}
}

// after is what stands after a later cycle that changed nothing of it.
func (t *Standing) after(cycle int64) *Standing {
	later := *t
	later.Cycle = cycle
	return &later
}

// summed adds up what sources want and hold, and puts them in the order of their names.
func summed(k *standing.Columns, sources []SourceView) []SourceView {
	wanted, held := k.BySource()
	for i := range sources {
		if id := sources[i].id; id != cluster.NoID {
			sources[i].Wanted, sources[i].Held = wanted[id], held[id]
		}
	}
	slices.SortFunc(sources, func(a, b SourceView) int { return cmp.Compare(a.Name, b.Name) })
	return sources
}
