package decision

import (
	"slices"

	"github.com/stintd/stint/core/pack"
)

// Saved are the dictionaries by which saved cycles are read again: those of the state, which have all names
// that the cycles had, under the same codes.
type Saved struct {
	Source, Consumer, Label, Host Dict

	Lost    bool // work lost is told; else it is read as none
	Budgets bool // budgets are; else nobody has one
	History bool // decayed usage is; else no plan has a half-life
	Devices bool // devices are; else no plan has any
}

// SaveEvents names what Events has of a frozen cycle, to be written or read. Read, it has the dictionaries given.
func (c *Cycle) SaveEvents(p *pack.Coder, d *Saved) {
	p.Mark("cycle")
	c.Summary.fields(p, d.Lost)
	s := saver{Coder: p, d: d, plan: words(p, c.Grants.Key.Plan.Dict)}
	g, r, t := &c.Grants, &c.Reclaims, &c.Releases
	s.key(&g.Key)
	s.coded(&g.Source, d.Source)
	s.coded(&g.Host, d.Host)
	pack.Column(p, &g.Units)
	s.coded(&g.Origin, Origins)
	s.coded(&g.Pool, d.Consumer)
	s.coded(&g.Lender, d.Consumer)
	s.key(&r.Key)
	pack.Column(p, &r.Reclaim)
	s.coded(&r.Action, Actions)
	s.coded(&r.Host, d.Host)
	pack.Column(p, &r.Units)
	s.coded(&r.Reason, ReclaimReasons)
	s.coded(&r.ForConsumer, d.Consumer)
	s.coded(&r.ForAllocation, d.Label)
	s.coded(&r.ForSub, d.Label)
	pack.Column(p, &r.Issued)
	pack.Column(p, &r.Deadline)
	s.coded(&r.Source, d.Source)
	s.key(&t.Key)
	s.coded(&t.Host, d.Host)
	pack.Column(p, &t.Units)
	s.coded(&t.Cause, Causes)
	pack.Column(p, &t.Reclaim)
	s.coded(&t.Origin, Origins)
	s.coded(&t.Lender, d.Consumer)
	s.coded(&t.Source, d.Source)
	s.lost(&t.UnitSecondsLost, len(t.Units))
	s.devices(c)
	n := &c.Plans
	pack.Column(p, &n.Revision)
	for _, column := range []*Coded{&n.Author, &n.Message, &n.Digest} {
		s.coded(column, words(p, column.Dict))
	}
}

// SaveStates names the tables of a frozen cycle that say what is true after it, and that of ownership.
func (c *Cycle) SaveStates(p *pack.Coder, d *Saved) {
	p.Mark("states")
	s := saver{Coder: p, d: d, plan: words(p, c.Consumers.Plan.Dict)}
	dimension := words(p, c.Amounts.Dimension.Dict)
	detail := words(p, c.Shortfalls.Detail.Dict)
	n, a, h, f, o := &c.Consumers, &c.Amounts, &c.Shares, &c.Shortfalls, &c.Ownership
	s.coded(&n.Plan, s.plan)
	s.coded(&n.Consumer, d.Consumer)
	s.coded(&n.Policy, Policies)
	s.ints(&n.Rank, &n.Demand, &n.Held, &n.Short)
	s.lost(&n.UnitSecondsLost, len(n.Held))
	s.budgets(n, dimension)
	p.Note(&n.Slot)
	for i := range n.Slot {
		s.ints(&n.Slot[i])
	}
	pack.Bools(p, &n.SlotNull)
	pack.Bools(p, &n.LimitNull)
	s.coded(&a.Plan, s.plan)
	s.coded(&a.Consumer, d.Consumer)
	s.coded(&a.Dimension, dimension)
	s.ints(&a.Configured, &a.Owned, &a.Reserved, &a.Held, &a.Lent, &a.StaticQuota, &a.Limit)
	pack.Bools(p, &a.LimitNull)
	s.coded(&h.Plan, s.plan)
	s.coded(&h.Consumer, d.Consumer)
	s.coded(&h.Pool, d.Consumer)
	s.ints(&h.Ratio, &h.Priority)
	pack.Floats(p, &h.Usage)
	pack.Floats(p, &h.UsageDemand)
	pack.Floats(p, &h.UsageQuota)
	s.ints(&h.UnitsHeld, &h.UnitsWanted)
	s.history(h)
	s.key(&f.Key)
	s.ints(&f.UnitsShort)
	s.coded(&f.Reason, Reasons)
	s.coded(&f.Dimension, dimension)
	s.coded(&f.Blocker, d.Consumer)
	s.coded(&f.Detail, detail)
	s.ints(&f.Until)
	pack.Bools(p, &f.UntilNull)
	s.coded(&o.Plan, s.plan)
	s.coded(&o.Consumer, d.Consumer)
	s.coded(&o.Host, d.Host)
	s.coded(&o.Action, OwnerActions)
	s.coded(&o.Dimension, dimension)
	s.ints(&o.Amount)
}

// saver goes over tables.
type saver struct {
	*pack.Coder
	d    *Saved
	plan Dict
}

func (s *saver) key(k *Key) {
	s.coded(&k.Plan, s.plan)
	s.coded(&k.Consumer, s.d.Consumer)
	s.coded(&k.Allocation, s.d.Label)
	s.coded(&k.Sub, s.d.Label)
}

func (s *saver) ints(columns ...*[]int64) {
	for _, column := range columns {
		pack.Column(s.Coder, column)
	}
}

// lost names a column of work lost in a table of so many rows.
func (s *saver) lost(v *[]float64, rows int) {
	if s.d.Lost {
		pack.Floats(s.Coder, v)
	} else if s.Note(v); s.Loading() {
		*v = make([]float64, rows)
	}
}

// budgets names the columns of budgets in the table of consumers.
func (s *saver) budgets(n *Consumers, dimension Dict) {
	if s.d.Budgets {
		s.ints(&n.Budget)
		s.coded(&n.BudgetDimension, dimension)
		pack.Floats(s.Coder, &n.BudgetUsed)
		pack.Bools(s.Coder, &n.BudgetNull)
		return
	}
	s.Note(&n.Budget)
	s.Note(&n.BudgetDimension.Code)
	s.Note(&n.BudgetDimension.Dict)
	s.Note(&n.BudgetUsed)
	s.Note(&n.BudgetNull)
	for s.Loading() && len(n.Budget) < len(n.Held) {
		n.withoutBudget()
	}
}

// history names the columns of plans with a half-life in the table of shares.
func (s *saver) history(h *Shares) {
	if s.d.History {
		pack.Floats(s.Coder, &h.DecayedUsage)
		pack.Floats(s.Coder, &h.EffectiveRatio)
		pack.Bools(s.Coder, &h.HistoryNull)
		return
	}
	s.Note(&h.DecayedUsage)
	s.Note(&h.EffectiveRatio)
	s.Note(&h.HistoryNull)
	if rows := len(h.Usage); s.Loading() {
		h.DecayedUsage, h.EffectiveRatio = make([]float64, rows), make([]float64, rows)
		h.HistoryNull = slices.Repeat([]bool{true}, rows)
	}
}

// devices names the columns of devices in the tables of events, which have one dictionary.
func (s *saver) devices(c *Cycle) {
	g, r, t := &c.Grants, &c.Reclaims, &c.Releases
	if s.d.Devices {
		dict := words(s.Coder, g.Device.Dict)
		s.coded(&g.Device, dict)
		s.coded(&r.Device, dict)
		s.coded(&t.Device, dict)
		return
	}
	rows := [...]int{len(g.Units), len(r.Units), len(t.Units)}
	for i, column := range []*Coded{&g.Device, &r.Device, &t.Device} {
		s.Note(&column.Code)
		s.Note(&column.Dict)
		if s.Loading() {
			column.Code = without(rows[i])
		}
	}
}

// coded names the codes of a column. Read, they must be in the dictionary, which becomes the column's.
func (s *saver) coded(c *Coded, d Dict) {
	pack.Column(s.Coder, &c.Code)
	s.Note(&c.Dict)
	if !s.Loading() {
		return
	}
	c.Dict = d
	for row, code := range c.Code {
		if code < Null || code != Null && (d == nil || int(code) >= d.Len()) {
			s.Fail("row %d has the code %d, which is not in its dictionary", row, code)
			return
		}
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
func (s *Summary) fields(p *pack.Coder, lost bool) {
	for _, v := range []*int64{
		&s.Cycle, &s.NowUS, &s.StartedUS, &s.FinishedUS, &s.Revision, &s.Hosts, &s.Consumers, &s.SubAllocations,
		&s.UnitsWanted, &s.UnitsHeld,
		&s.UnitsGranted, &s.UnitsReclaimed, &s.UnitsLeaving, &s.UnitsCancelled, &s.UnitsPromised, &s.UnitsOverdue,
		&s.UnitsReleased, &s.UnitsShort,
	} {
		pack.Int(p, v)
	}
	if p.Note(&s.UnitMSLost); lost {
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
