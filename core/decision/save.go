package decision

import (
	"strings"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/pack"
)

// Saved is how cycles are saved and read again: the dictionaries of the state, which have all names that the cycles
// had, under the same codes.
type Saved struct {
	Source, Consumer, Label, Host Dict

	// Version is the version of the log's columns that the cycles have. What came later has no value in them. Before
	// LinesVersion columns were saved in another order than that of the lines.
	Version int
}

// LinesVersion is the first version of which the columns of cycles are saved in the order of their schemas.
const LinesVersion = 9

// savedFirst are the columns of the tables as they were saved before LinesVersion, in that order; ? marks the rows
// without a value.
var savedFirst = map[string]string{
	"grants": "plan consumer allocation sub source host units origin pool lender",
	"reclaims": "plan consumer allocation sub reclaim action host units reason for_consumer for_allocation for_sub " +
		"issued deadline source taker_wait taker_wait?",
	"releases": "plan consumer allocation sub host units cause reclaim origin lender source unit_seconds_lost",
	"consumers": "plan consumer policy rank demand held short unit_seconds_lost budget budget_dimension budget_used " +
		"budget? owned_configured owned reserved slot_limit static_quota quota held_owned held_shared held_borrowed " +
		"lent free owned? slot_limit?",
	"amounts": "plan consumer dimension configured owned reserved held lent static_quota share_limit share_limit?",
	"shares": "plan consumer pool ratio priority usage usage_demand usage_quota units_held units_wanted " +
		"decayed_usage effective_ratio decayed_usage?",
	"shortfalls": "plan consumer allocation sub units_short reason dimension blocker detail until until? since since?",
	"ownership":  "plan consumer host action dimension amount",
}

// saver goes over the tables of a cycle.
type saver struct {
	*pack.Coder
	of    *Saved
	dicts Dicts
}

func newSaver(p *pack.Coder, of *Saved) *saver {
	return &saver{p, of, Dicts{Source: of.Source, Consumer: of.Consumer, Label: of.Label, Host: of.Host}}
}

// table names the columns of a table.
func (s *saver) table(t column.Schema) {
	if s.of.Version >= LinesVersion {
		t.Save(s.Coder, s.of.Version, s.dicts.named)
		return
	}
	t.SaveNamed(s.Coder, s.of.Version, strings.Fields(savedFirst[t.Name]), s.dicts.named)
}

// SaveEvents names what Events has of a frozen cycle, to be written or read. Read, it has the dictionaries given.
func (c *Cycle) SaveEvents(p *pack.Coder, d *Saved) {
	p.Mark("cycle")
	c.Summary.fields(p, d.Version)
	s := newSaver(p, d)
	s.dicts.Plan = words(p, c.Grants.Plan.Dict)
	tables := []column.Schema{c.Grants.Schema(), c.Reclaims.Schema(), c.Releases.Schema()}
	if d.Version >= LinesVersion {
		s.dicts.Device = words(p, c.Grants.Device.Dict)
	}
	for _, t := range tables {
		s.table(t)
	}
	if d.Version < LinesVersion {
		if d.Version >= tables[0].Line("device").Since {
			s.dicts.Device = words(p, c.Grants.Device.Dict)
		}
		for _, t := range tables {
			t.SaveNamed(p, d.Version, []string{"device"}, s.dicts.named)
		}
	}
	n := &c.Plans
	pack.Column(p, &n.Revision)
	for _, of := range []*Coded{&n.Author, &n.Message, &n.Digest} {
		dict := words(p, of.Dict)
		own := column.Schema{Name: "plans", Lines: []column.Line{{Name: "words", Of: of}}}
		own.SaveNamed(p, d.Version, []string{"words"}, func(string) Dict { return dict })
	}
}

// SaveStates names the tables of a frozen cycle that say what is true after it, and that of ownership.
func (c *Cycle) SaveStates(p *pack.Coder, d *Saved) {
	p.Mark("states")
	s := newSaver(p, d)
	s.dicts.Plan = words(p, c.Consumers.Plan.Dict)
	s.dicts.Dimension = words(p, c.Amounts.Dimension.Dict)
	s.dicts.Detail = words(p, c.Shortfalls.Detail.Dict)
	for _, t := range append(c.states(), c.Ownership.Schema()) {
		s.table(t)
	}
}

// words names the words of a small dictionary of one cycle, and gives it.
func words(p *pack.Coder, d Dict) Dict {
	var list []string
	if d != nil && !p.Loading() {
		list = make([]string, d.Len())
		for i := range list {
			list[i] = string(d.Bytes(int32(i)))
		}
	}
	pack.Texts(p, &list)
	if list == nil {
		return nil
	}
	return Words(list)
}

// fields names what a frozen cycle has of a summary; inputs and the like the log alone knows.
func (s *Summary) fields(p *pack.Coder, version int) {
	for _, v := range []*int64{
		&s.Cycle, &s.NowUS, &s.StartedUS, &s.FinishedUS, &s.Revision, &s.Hosts, &s.Consumers, &s.SubAllocations,
		&s.UnitsWanted, &s.UnitsHeld,
		&s.UnitsGranted, &s.UnitsReclaimed, &s.UnitsLeaving, &s.UnitsCancelled, &s.UnitsPromised, &s.UnitsOverdue,
		&s.UnitsReleased, &s.UnitsShort,
	} {
		pack.Int(p, v)
	}
	p.Note(&s.UnitMSLost)
	if version >= schemas["cycles"].Line("unit_seconds_lost").Since {
		pack.Int(p, &s.UnitMSLost)
	}
	pack.Text(p, &s.Window)
	pack.Text(p, &s.Digest)
	pack.Bool(p, &s.Relabelled)
	pack.Bool(p, &s.Restated)
	p.Note(&s.StageUS)
	for i := range s.StageUS {
		pack.Int(p, &s.StageUS[i])
	}
}
