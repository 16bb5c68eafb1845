package server

import (
	"fmt"
	"path"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/simulation"
)

// reading is what a call tells a token that reads one branch only (API-7).
type reading uint8

const (
	undecided reading = iota // nobody thought of it: it is refused
	whole                    // all: nothing of it is one consumer's
	part                     // what is of its branch, and the figures of the consumers above it
	nothing                  // it is refused
	change                   // it changes something, for which roles count
)

// readings are decided for each route, by its method and name; the test of routes holds them complete.
var readings = map[string]reading{
	"PUT /v1/hosts": change, "PATCH /v1/hosts": change, "PUT /v1/plan": change, "PUT /v1/demand/{source}": change,
	"PATCH /v1/demand/{source}": change, "DELETE /v1/demand/{source}": change, "PUT /v1/running/{source}": change,
	"POST /v1/releases": change, "POST /v1/cycles": change, "PUT /v1/actors/{source}": change,

	// Who administers a part of the policy puts the whole file, and rules are no secret. Sums over the cluster are the
	// root's figures, which is above all.
	"GET /v1/plan": whole, "GET /v1/plan/revisions": whole, "GET /v1/plan/revisions/{n}": whole,
	"GET /v1/cycles": whole, "GET /v1/events": whole, "GET /v1/hosts": whole,
	"GET /healthz": whole, "GET /readyz": whole, "GET /openapi.json": whole,
	"GET /": whole, "GET /console/{file}": whole, // the page has no figures of its own

	"POST /v1/plan/check": part, "POST /v1/whatif": part, "POST /v1/simulate": part, "GET /v1/explain/{path}": part,
	"GET /v1/cycles/{cycle}/{table}": part, "GET /v1/consumers": part, "GET /v1/consumers/{path}": part,
	"GET /v1/changes": part, "GET /v1/holdings": part, "GET /v1/loans": part, "GET /v1/demand/{source}": part,
	"GET /v1/sources": part, "GET /v1/actors": part,

	"GET /metrics": nothing,
}

// mayRead refuses what a token that reads one branch may not ask at all.
func (t *Token) mayRead(r *route) error {
	if t.Branch == "" {
		return nil
	}
	switch readings[r.method+" "+r.name] {
	case whole, part, change:
		return nil
	}
	return t.limited("this tells of all")
}

// owns tells whether a consumer is of the token's branch.
func (t *Token) owns(path string) bool { return t.Branch == "" || within(path, t.Branch) }

// figures tells whether a token may see a consumer's figures: those of its branch, and of all above it.
func (t *Token) figures(path string) bool { return t.owns(path) || within(t.Branch, path) }

// mayExplain refuses consumers whose figures a token may not see.
func (t *Token) mayExplain(path string) error {
	if t.figures(path) {
		return nil
	}
	return t.limited(path + " is neither below it nor above")
}

// limited refuses what is not of the token's branch.
func (t *Token) limited(why string) error {
	return problem{Status: 403, Type: "forbidden", Detail: "the token reads " + t.Branch + " only: " + why}
}

// cut is what of a table a token that reads one branch sees.
type cut struct {
	all     bool     // every row: no row is one consumer's
	by      []string // columns of consumers, one of which must be of the branch
	figures bool     // or above it
	masked  []string // of a row whose consumer is not of the branch, these have no value
}

// cuts are the tables that answers have; another one is refused.
var cuts = map[string]cut{
	"consumers": {by: []string{"consumer"}, figures: true}, "amounts": {by: []string{"consumer"}, figures: true},
	"shares":    {by: []string{"consumer"}, figures: true},
	"ownership": {by: []string{"consumer"}, figures: true}, "owners": {by: []string{"consumer"}, figures: true},

	"shortfalls": {by: []string{"consumer"}}, "grants": {by: []string{"consumer"}},
	"releases": {by: []string{"consumer"}}, "changes": {by: []string{"consumer"}},
	"requests": {by: []string{"consumer"}},
	"holdings": {by: []string{"consumer", "lender"}, masked: []string{"source", "allocation", "sub"}},
	"reclaims": {by: []string{"consumer", "for_consumer"}, masked: []string{"allocation", "sub"}},
	"loans":    {by: []string{"lender", "borrower"}}, "sub_allocations": {by: []string{"consumer"}},

	"cycles": {all: true}, "hosts": {all: true}, "attributes": {all: true}, "plans": {all: true},
	"curve": {all: true}, "sources": {all: true}, "actors": {all: true}, // the calls saw to it
}

// takers are the columns that name for what something is taken back; they have no value where that is not of the
// branch.
var takers = []string{"for_allocation", "for_sub"}

// cut gives what of a table the token sees.
func (t *Token) cut(of *decision.Table) (*decision.Table, error) {
	if t.Branch == "" {
		return of, nil
	}
	c, ok := cuts[of.Name]
	switch {
	case !ok:
		return nil, t.limited("the table " + of.Name + " tells of all")
	case c.all:
		return of, nil
	}
	sees := t.owns
	if c.figures {
		sees = t.figures
	}
	var seen []func(row int) bool
	for _, name := range c.by {
		if of.Column(name) != nil {
			seen = append(seen, words(of, name, sees))
		}
	}
	var rows []int32
	for row := range of.Rows {
		if slices.ContainsFunc(seen, func(is func(int) bool) bool { return is(row) }) {
			rows = append(rows, int32(row))
		}
	}
	out := engine.Pick(of, rows)
	t.mask(out, "consumer", c.masked)
	t.mask(out, "for_consumer", takers)
	return out, nil
}

// mask takes the values of some text columns away in rows of whose consumer the token may not know them.
func (t *Token) mask(of *decision.Table, consumer string, columns []string) {
	if of.Column(consumer) == nil {
		return
	}
	mine := words(of, consumer, t.owns)
	for i := range of.Columns {
		c := &of.Columns[i]
		if !slices.Contains(columns, c.Name) {
			continue
		}
		c.Code = slices.Clone(c.Code)
		for row := range c.Code {
			if !mine(row) {
				c.Code[row] = decision.Null
			}
		}
	}
}

// cut are the rows that the caller sees.
func (q *request) cut(next rows) rows {
	if q.who == nil || q.who.Branch == "" {
		return next
	}
	who := q.who
	return func(most int) (*decision.Table, error) {
		t, err := next(most)
		if err != nil || t == nil {
			return nil, err
		}
		return who.cut(t)
	}
}

// cutFacts leaves of what an explanation goes by what a token sees.
func (t *Token) cutFacts(f *explain.Facts) error {
	if t.Branch == "" {
		return nil
	}
	f.Part = true
	for _, table := range []**decision.Table{
		&f.Consumers, &f.Amounts, &f.Shares, &f.Shortfalls, &f.Grants, &f.Reclaims, &f.Releases,
		&f.Holdings, &f.Later.Grants, &f.Later.Releases, &f.Returned,
	} {
		if *table == nil {
			continue
		}
		seen, err := t.cut(*table)
		if err != nil {
			return err
		}
		*table = seen
	}
	past := f.Past
	f.Past = make([]*decision.Table, len(past))
	for i := range past {
		var err error
		if f.Past[i], err = t.cut(past[i]); err != nil {
			return err
		}
	}
	asked := f.Asked
	if asked == nil {
		return nil
	}
	f.Asked = func() (*explain.Asked, error) {
		a, err := asked()
		if err != nil || a == nil {
			return a, err
		}
		requests, err := t.cut(a.Requests)
		return &explain.Asked{Requests: requests, Inventory: a.Inventory}, err
	}
	return nil
}

// cutComparison leaves of a what-if what a token sees: changes of its branch and of what is above it, and what is taken
// of its branch or for it. Sums over the cluster stay.
func (t *Token) cutComparison(c *explain.Comparison) {
	if t.Branch == "" {
		return
	}
	c.Changes = slices.DeleteFunc(c.Changes, func(ch explain.Change) bool { return !t.figures(ch.Consumer) })
	c.Reclaims = slices.DeleteFunc(c.Reclaims, func(k explain.Taking) bool {
		return !t.owns(k.Consumer) && (k.For == nil || !t.owns(*k.For))
	})
}

// cutSimulation leaves of a simulation what a token sees: what would stop of other branches without its name.
func (t *Token) cutSimulation(a *simulation.Answer) {
	if t.Branch == "" {
		return
	}
	for i := range a.Stops {
		if s := &a.Stops[i]; !t.owns(s.Consumer) {
			s.Allocation, s.Sub = nil, nil
		}
	}
}

// cutSources leaves of the sources those that push demand of a token's branch, or that are its own, with what they
// want and hold in the branch.
func (t *Token) cutSources(at *engine.Standing) (list []engine.SourceView) {
	if t.Branch == "" {
		return at.Sources()
	}
	wanted, held := map[string]int64{}, map[string]int64{}
	r := at.Requests()
	mine := words(r, "consumer", t.owns)
	source, want, have := r.Column("source"), r.Column("wanted").Int, r.Column("held").Int
	for row := range r.Rows {
		if mine(row) {
			name := string(source.Dict.Bytes(source.Code[row]))
			wanted[name] += want[row]
			held[name] += have[row]
		}
	}
	for _, is := range at.Sources() {
		if _, ok := wanted[is.Name]; ok || is.Owner == t.Name {
			is.Wanted, is.Held = wanted[is.Name], held[is.Name]
			is.Rows = 0 // of the whole snapshot
			list = append(list, is)
		}
	}
	return list
}

// mayPut tells whether a token that reads one branch could put a policy file: what the state says of others' work is
// not for it to know.
func (t *Token) mayPut(was *engine.PolicyView, in *engine.Input) error {
	if t.Branch == "" || was == nil {
		return nil
	}
	return principal{t}.MayPlan(was.Policy, was.Text, in.Body)
}

// checkBranch tells what is wrong with the branch that a token reads.
func (t *Token) checkBranch() string {
	switch {
	case t.Branch == "":
		return ""
	case t.Role == RoleAdmin:
		return "an administrator reads all; a branch is for other roles"
	case t.Branch != path.Clean(t.Branch) || t.Branch == "/" || t.Branch[0] != '/' ||
		len(t.Branch) > cluster.NameBytesMax:
		return fmt.Sprintf("branch %q: must be the path of a consumer, such as /Risk", t.Branch)
	}
	return ""
}
