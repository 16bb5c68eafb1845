package explain

import (
	"fmt"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Facts are the tables that an explanation reads: the decisions of a cycle, and earlier decisions that still count.
// Nobody changes the tables; one explanation at a time reads them.
type Facts struct {
	Cycle, NowUS, Revision int64
	Policy                 *plan.Policy // in force in the cycle

	// Of the cycle: state tables as they hold, events as they happened.
	Consumers, Amounts, Shares, Shortfalls *decision.Table
	Grants, Reclaims, Releases             *decision.Table

	// Holdings is what is held where: after the cycle, or in the last keyframe before it; then Later has the grants and
	// releases since. With the columns reclaim and deadline it tells too what is under reclaim.
	Holdings *decision.Table
	Later    struct{ Grants, Releases *decision.Table }

	// Past has the reclaims up to the cycle, the oldest first, and Returned the releases; Returned is not needed where
	// Holdings tells what is under reclaim.
	Past     []*decision.Table
	Returned *decision.Table

	// Hosts is the keyframe of hosts, nil where it is none of this cycle.
	Hosts *decision.Table

	// Part tells that the tables lack consumers that are not explained, so that no sentence may compare with all
	// consumers.
	Part bool

	// Asked finds the size and requirement of demand; nil: nobody knows them. Asked is called once, where units are
	// short.
	Asked func() (*Asked, error)

	known knowledge
}

// Log is a decision log; export.Reader is one.
type Log interface {
	Cycles() []int64
	Holder(table string, cycle int64) (int64, error)
	Table(table string, cycle int64) (*decision.Table, error)
	Rows(table string, first, last int64) (*decision.Table, error)
	Policy(cycle int64) (text []byte, digest string, err error)
}

// Read gathers the facts of a cycle from a log. It reads the policy that was in force, the state tables of the cycle,
// what happened since the last keyframe, and all reclaims and releases up to the cycle: what is under reclaim follows
// from them alone. Errors are the log's, or faults of the policy, which they call by the name given.
func Read(log Log, cycle int64, name string) (*Facts, error) {
	f := &Facts{Cycle: cycle}
	text, _, err := log.Policy(cycle)
	if err != nil {
		return nil, err
	}
	if f.Policy, err = plan.ParseAccepted(name, text); err != nil {
		return nil, err
	}
	c, err := log.Table("cycles", cycle)
	if err != nil {
		return nil, err
	}
	f.NowUS, f.Revision = c.Column("now").Int[0], c.Column("revision").Int[0]
	for _, t := range []struct {
		name string
		to   **decision.Table
	}{
		{"consumers", &f.Consumers}, {"amounts", &f.Amounts}, {"shares", &f.Shares}, {"shortfalls", &f.Shortfalls},
		{"grants", &f.Grants}, {"reclaims", &f.Reclaims}, {"releases", &f.Releases},
	} {
		if *t.to, err = log.Table(t.name, cycle); err != nil {
			return nil, err
		}
	}
	if err := f.readHeld(log); err != nil {
		return nil, err
	}
	past, err := log.Rows("reclaims", log.Cycles()[0], cycle)
	if err != nil {
		return nil, err
	}
	f.Past = []*decision.Table{past}
	f.Returned, err = log.Rows("releases", log.Cycles()[0], cycle)
	return f, err
}

// readHeld reads the last keyframe and what happened since.
func (f *Facts) readHeld(log Log) error {
	frame, err := log.Holder("holdings", f.Cycle)
	if err != nil {
		return err
	}
	if f.Holdings, err = log.Table("holdings", frame); err != nil {
		return err
	}
	if frame == f.Cycle {
		f.Hosts, err = log.Table("hosts", frame)
		return err
	}
	if f.Later.Grants, err = log.Rows("grants", frame+1, f.Cycle); err != nil {
		return err
	}
	f.Later.Releases, err = log.Rows("releases", frame+1, f.Cycle)
	return err
}

// now is the instant of the cycle.
func (f *Facts) now() string { return instant(f.NowUS) }

// slotsOf gives how many slots a slot plan has: those of its ok hosts, and those held on the others (SPEC chapter 3).
// ok is false where no keyframe of the cycle tells it.
func (f *Facts) slotsOf(name string) (slots int64, ok bool) {
	if f.Hosts == nil {
		return 0, false
	}
	t := view(f.Hosts)
	for row := range f.Hosts.Rows {
		switch {
		case t.text("plan", row) != name:
		case t.text("state", row) == "ok":
			slots += t.num("capacity", row)
		default:
			slots += t.num("used", row)
		}
	}
	return slots, true
}

// label is what units count as.
type label struct{ origin, pool, lender string }

// holder is units of a sub-allocation on a host.
type holder struct {
	plan, consumer, allocation, sub, host string
	label
}

// held gives the units held by a consumer and those below it, and those that they lend to others, by holder.
func (f *Facts) held(consumer string) (own, lent *tally[holder]) {
	own, lent = newTally[holder](), newTally[holder]()
	for _, t := range []*decision.Table{f.Holdings, f.Later.Grants, f.Later.Releases} {
		if t == nil {
			continue
		}
		v := view(t)
		mine, lender := f.under(v, "consumer", consumer), f.under(v, "lender", consumer)
		for row := range t.Rows {
			to := own
			switch {
			case mine(row):
			case lender(row):
				to = lent
			default:
				continue
			}
			h := holder{v.text("plan", row), f.renamed(v.text("consumer", row)), v.text("allocation", row),
				v.text("sub", row), v.text("host", row),
				label{v.text("origin", row), v.text("pool", row), f.renamed(v.text("lender", row))}}
			if v.has("cause") {
				release(to, h, v.num("units", row))
			} else {
				to.add(h, v.num("units", row))
			}
		}
	}
	return own, lent
}

// release takes units off those of a holder. A release does not tell of which pool its units were: they go off the
// first that has some.
func release(t *tally[holder], h holder, units int64) {
	for _, k := range t.keys {
		if h.pool = k.pool; k == h {
			n := min(t.of[k], units)
			t.add(k, -n)
			units -= n
		}
	}
}

// renamed is the path that a consumer has in the policy in force, where that says that it was renamed.
func (f *Facts) renamed(path string) string {
	if _, ok := f.Policy.Find(path); ok || path == "" {
		return path
	}
	for n, old := range f.Policy.RenamedFrom {
		if old == path {
			return f.Policy.Path[n]
		}
	}
	return path
}

// tally sums by key, in order of first sight.
type tally[K comparable] struct {
	keys []K
	of   map[K]int64
}

func newTally[K comparable]() *tally[K] { return &tally[K]{of: map[K]int64{}} }

func (t *tally[K]) add(k K, n int64) {
	if _, ok := t.of[k]; !ok {
		t.keys = append(t.keys, k)
	}
	t.of[k] += n
}

// each calls f for what is not 0.
func (t *tally[K]) each(f func(k K, n int64)) {
	for _, k := range t.keys {
		if t.of[k] != 0 {
			f(k, t.of[k])
		}
	}
}

// tableView reads a table by column names.
type tableView struct {
	*decision.Table
	column map[string]*decision.Column
}

func view(t *decision.Table) tableView {
	v := tableView{t, map[string]*decision.Column{}}
	for i := range t.Columns {
		v.column[t.Columns[i].Name] = &t.Columns[i]
	}
	return v
}

func (v tableView) has(column string) bool { return v.column[column] != nil }

// text is a value, "" where there is none.
func (v tableView) text(column string, row int) string {
	c := v.column[column]
	if c == nil || c.Code[row] == decision.Null {
		return ""
	}
	return string(c.Dict.Bytes(c.Code[row]))
}

// null tells whether a row has no value.
func (v tableView) null(column string, row int) bool {
	c := v.column[column]
	return c == nil || c.Type == decision.Text && c.Code[row] == decision.Null || c.Null != nil && c.Null[row]
}

// num is a value, 0 where there is none.
func (v tableView) num(column string, row int) int64 {
	if v.null(column, row) {
		return 0
	}
	return v.column[column].Int[row]
}

// real is a value.
func (v tableView) real(column string, row int) float64 { return v.column[column].Float[row] }

// under tells of rows whether their text is the path of a consumer or of one below it, by the names in force. It looks
// at each word of the dictionary once.
func (f *Facts) under(v tableView, column, path string) func(row int) bool {
	c := v.column[column]
	if c == nil || c.Dict == nil || v.Rows == 0 {
		return func(int) bool { return false }
	}
	in := make([]bool, c.Dict.Len())
	for code := range in {
		in[code] = within(f.renamed(string(c.Dict.Bytes(int32(code)))), path)
	}
	return func(row int) bool { return c.Code[row] != decision.Null && in[c.Code[row]] }
}

// within tells whether a path is another or below it.
func within(path, up string) bool {
	return path == up || up == "/" || strings.HasPrefix(path, up+"/")
}

// key names a consumer in a plan.
type key struct{ plan, consumer string }

// index finds the rows of a table by plan and consumer.
func index(t *decision.Table) map[key][]int {
	v, of := view(t), map[key][]int{}
	for row := range t.Rows {
		k := key{v.text("plan", row), v.text("consumer", row)}
		of[k] = append(of[k], row)
	}
	return of
}

// UnknownError is a name that nothing has.
type UnknownError struct {
	What, Name string   // What: consumer or allocation
	Of         string   // whose allocation
	Near       []string // names that are like it, the nearest first
	Some       []string // for allocations: names that there are, where none is like it
}

// Error names what is not there, and what it may have been meant for.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("no consumer %s", e.Name)
	if e.What == "allocation" {
		text = fmt.Sprintf("no allocation %q of %s wants or holds anything", e.Name, e.Of)
	}
	switch {
	case len(e.Near) > 0:
		return text + "; there is " + strings.Join(e.Near, ", ")
	case len(e.Some) > 0:
		return text + "; there are " + strings.Join(e.Some, ", ")
	}
	return text
}
