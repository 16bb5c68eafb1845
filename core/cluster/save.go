package cluster

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/stintd/stint/core/pack"
	"github.com/stintd/stint/core/plan"
)

// saveForm is the form of a saved state. A field that comes later raises it and is named if c.Since(of that form):
// states that were saved before are still loaded, and the field is as it was made.
const saveForm = 10

// Save writes every field that later cycles depend on (pack.Coder). Until Hold has returned nobody may change the
// state. Save leaves out fields that can be computed from others (Load lists them), and the policy, whose text the
// caller keeps.
func (s *State) Save(c *pack.Coder) { s.fields(c) }

// Load reads a state that Save wrote, under the policy that it had. What was left out is made again: indices by name
// and key, parsed requirements, the layout of hosts, settings of plans. From it cycles decide bit for bit what they
// would have decided from the state that was saved. Errors: bytes that are no saved state, rows that
// contradict each other.
func Load(c *pack.Coder, p *plan.Policy) (*State, error) {
	s := &State{Policy: p, allocOf: map[allocKey]AllocID{}, subOf: map[subKey]SubID{}}
	hidden := s.fields(c)
	if c.Err() != nil {
		return nil, fmt.Errorf("state: %w", c.Err())
	}
	if err := s.sound(hidden); err != nil {
		return nil, fmt.Errorf("state: damaged: %w", err)
	}
	if err := s.derive(hidden); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return s, nil
}

// Frame is the state as it is now, for the decision log (D-40): the digest of its policy and what Save names. It is a
// copy, so that it can be written at leisure, by any goroutine, more than once. O(bytes of the state).
func (s *State) Frame() io.WriterTo {
	c := pack.Save()
	digest := s.Policy.Digest
	pack.Text(c, &digest)
	s.Save(c)
	c.Hold()
	return c
}

// LoadFrame reads what Frame wrote; policy finds the policy of a digest. Errors: those of Load, and of policy.
func LoadFrame(b []byte, policy func(digest string) (*plan.Policy, error)) (*State, error) {
	c, digest := pack.Load(bytes.NewReader(b), int64(len(b))), ""
	if pack.Text(c, &digest); c.Err() != nil {
		return nil, fmt.Errorf("state: %w", c.Err())
	}
	p, err := policy(digest)
	if err != nil {
		return nil, err
	}
	s, err := Load(c, p)
	if err == nil {
		err = c.End()
	}
	return s, err
}

// Copy is the state again, through its saved form. For tests.
func (s *State) Copy() (*State, error) {
	save := pack.Save()
	s.Save(save)
	var b bytes.Buffer
	if _, err := save.WriteTo(&b); err != nil {
		return nil, err
	}
	load := pack.Load(&b, int64(b.Len()))
	copied, err := Load(load, s.Policy)
	if err == nil {
		err = load.End()
	}
	return copied, err
}

// fields names the fields of the state. Whoever adds one to a struct names it here or among what is derived: a test
// holds it. hidden are the allocations that their key does not find.
func (s *State) fields(c *pack.Coder) (hidden []AllocID) {
	c.Form("state", saveForm)
	pack.Int(c, &s.Revision)
	pack.Int(c, &s.Cycle)
	pack.Int(c, &s.NowUS)
	c.Mark("names")
	s.Consumer.fields(c)
	s.Source.fields(c)
	s.Label.fields(c)
	pack.Column(c, &s.ConsumerOf)
	pack.Column(c, &s.NodeOf)
	s.Host.fields(c)
	c.Mark("shapes")
	pack.Int(c, &s.Shape.dims)
	pack.Column(c, &s.Shape.size)
	s.Need.Names.fields(c)
	if !c.Loading() {
		hidden = s.hidden()
	}
	s.Alloc.fields(c)
	pack.Column(c, &hidden)
	s.Sub.fields(c)
	s.Holding.fields(c)
	s.Set.fields(c)
	c.Mark("plans")
	pack.Rows(c, &s.Plans, func(p *Plan) { p.fields(c) })
	c.Mark("cycle")
	pack.Bool(c, &s.ReportUnknown)
	pack.Rows(c, &s.Released, func(r *Release) { r.fields(c) })
	pack.Rows(c, &s.Reclaims, func(r *Reclaimed) { r.fields(c) })
	pack.Bool(c, &s.NewPlan)
	pack.Bool(c, &s.Relabelled)
	pack.Int(c, &s.arrival)
	pack.Int(c, &s.sequence)
	pack.Int(c, &s.reclaims)
	pack.Int(c, &s.snapshot)
	pack.Rows(c, &s.orphans, func(o *orphan) { o.fields(c) })
	pack.Int(c, &s.orphanUS)
	pack.Column(c, &s.excess)
	pack.Column(c, &s.gone)
	pack.Bool(c, &s.outsideDirty)
	pack.Column(c, &s.silent)
	if c.Since(4) {
		s.Times.fields(c)
	}
	pack.Int(c, &s.HostTables)
	if c.Since(2) {
		pack.Rows(c, &s.asked, func(a *asked) { a.fields(c) })
	}
	if c.Since(3) {
		pack.Rows(c, &s.last, func(f *hostFigures) { f.fields(c) })
	}
	return hidden
}

// fields names the bytes of the names; their index is made again.
func (n *Names) fields(c *pack.Coder) {
	pack.Raw(c, &n.bytes)
	pack.Appended(c, &n.end)
	if c.Loading() && c.Err() == nil {
		if err := n.index(); err != nil {
			c.Fail("%w", err)
		}
	}
}

func (h *Hosts) fields(c *pack.Coder) {
	c.Mark("hosts")
	h.Names.fields(c)
	pack.Column(c, &h.State)
	pack.Columns(c, &h.Size)
	pack.Rows(c, &h.Attr, func(a *AttrColumn) { a.fields(c) })
	pack.Column(c, &h.Order)
	pack.Column(c, &h.Plan)
	pack.Column(c, &h.Parcel)
	pack.Bools(c, &h.listed)
}

func (a *AttrColumn) fields(c *pack.Coder) {
	pack.Text(c, &a.Name)
	pack.Int(c, &a.Kind)
	pack.Bools(c, &a.Valid)
	pack.Floats(c, &a.Number)
	pack.Bools(c, &a.Bool)
	if a.Text.Names == nil {
		a.Text.Names = &Names{}
	}
	c.Note(&a.Text.Names)
	a.Text.Names.fields(c)
	pack.Column(c, &a.Text.Code)
}

func (l *Allocs) fields(c *pack.Coder) {
	c.Mark("allocations")
	pack.Column(c, &l.Plan)
	pack.Column(c, &l.Consumer)
	pack.Column(c, &l.Source)
	pack.Column(c, &l.Name)
	pack.Column(c, &l.Arrival)
	pack.Column(c, &l.First)
	pack.Column(c, &l.Last)
	pack.Column(c, &l.Next)
	pack.Column(c, &l.free)
}

func (b *Subs) fields(c *pack.Coder) {
	c.Mark("sub-allocations")
	pack.Column(c, &b.Source)
	pack.Column(c, &b.Plan)
	pack.Column(c, &b.Consumer)
	pack.Column(c, &b.Alloc)
	pack.Column(c, &b.Name)
	pack.Column(c, &b.Shape)
	pack.Column(c, &b.Need)
	pack.Column(c, &b.MaxPerHost)
	pack.Column(c, &b.Wanted)
	pack.Column(c, &b.Held)
	pack.Column(c, &b.Pair)
	pack.Column(c, &b.First)
	pack.Column(c, &b.Next)
	pack.Column(c, &b.Seq)
	pack.Bools(c, &b.Orphan)
	pack.Column(c, &b.Turns)
	pack.Column(c, &b.seen)
	pack.Column(c, &b.free)
	if c.Since(5) {
		pack.Column(c, &b.FirstSeen)
	} else {
		b.FirstSeen = make([]int64, len(b.Seq))
	}
	if c.Since(7) {
		pack.Column(c, &b.MinUnits)
	} else {
		b.MinUnits = slices.Repeat([]int64{1}, len(b.Seq))
	}
	if c.Since(9) {
		pack.Column(c, &b.Together)
	} else {
		b.Together = make([]int32, len(b.Seq))
	}
}

func (h *Holdings) fields(c *pack.Coder) {
	c.Mark("holdings")
	pack.Column(c, &h.Sub)
	pack.Column(c, &h.Parcel)
	pack.Column(c, &h.Units)
	pack.Column(c, &h.Origin)
	pack.Column(c, &h.Pool)
	pack.Column(c, &h.Lender)
	pack.Column(c, &h.Granted)
	pack.Column(c, &h.NextOfSub)
	pack.Column(c, &h.PrevOfSub)
	pack.Column(c, &h.NextOnParcel)
	pack.Column(c, &h.PrevOnParcel)
	pack.Column(c, &h.Set)
	pack.Column(c, &h.NextOfSet)
	pack.Column(c, &h.Due)
	if c.Since(10) {
		pack.Column(c, &h.Device)
	}
	pack.Column(c, &h.free)
}

func (t *Sets) fields(c *pack.Coder) {
	c.Mark("reclaim sets")
	pack.Column(c, &t.Number)
	pack.Column(c, &t.Plan)
	pack.Column(c, &t.Reason)
	pack.Column(c, &t.Issued)
	pack.Column(c, &t.Taker)
	pack.Column(c, &t.Target)
	pack.Column(c, &t.Owner)
	pack.Column(c, &t.Units)
	pack.Column(c, &t.First)
	pack.Column(c, &t.kept)
	pack.Column(c, &t.free)
}

func (p *Plan) fields(c *pack.Coder) {
	pack.Text(c, &p.Name)
	p.Parcels.fields(c)
	p.Pairs.fields(c)
	pack.Column(c, &p.FirstAlloc)
	pack.Column(c, &p.LastAlloc)
	pack.Column(c, &p.FirstPair)
	pack.Column(c, &p.RankOrder)
	pack.Int(c, &p.Window)
	pack.Int(c, &p.Before)
	pack.Int(c, &p.Coming)
	pack.Bool(c, &p.Dirty)
	pack.Bool(c, &p.again)
	pack.Bool(c, &p.Rebuilt)
	pack.Bool(c, &p.Resized)
	pack.Column(c, &p.Changed)
	pack.Int(c, &p.Seen)
	p.Deeds.fields(c)
	pack.Bool(c, &p.Reassign)
	pack.Bool(c, &p.Stirred)
	pack.Bool(c, &p.Turned)
	pack.Int(c, &p.Since)
	pack.Column(c, &p.shifted)
	pack.Column(c, &p.Unlabelled)
	if c.Since(6) {
		pack.Column(c, &p.Lost)
	}
	if c.Since(8) {
		p.Budgets.fields(c)
	}
	if c.Since(9) {
		p.History.fields(c)
	}
}

func (p *Parcels) fields(c *pack.Coder) {
	c.Mark("parcels")
	pack.Column(c, &p.Host)
	pack.Column(c, &p.Owner)
	pack.Columns(c, &p.Cap)
	pack.Columns(c, &p.Free)
	pack.Columns(c, &p.Kept)
	pack.Columns(c, &p.Owed)
	pack.Column(c, &p.Open)
	pack.Column(c, &p.First)
	pack.Int(c, &p.Left)
	pack.Bool(c, &p.Owned)
	pack.Column(c, &p.Moved)
}

func (q *Pairs) fields(c *pack.Coder) {
	pack.Column(c, &q.Leaf)
	pack.Column(c, &q.Shape)
	pack.Column(c, &q.Pool)
	pack.Column(c, &q.Units)
	pack.Column(c, &q.Leaving)
	pack.Column(c, &q.Next)
}

func (d *Deeds) fields(c *pack.Coder) {
	c.Mark("deeds")
	pack.Column(c, &d.Consumer)
	pack.Column(c, &d.Host)
	pack.Column(c, &d.Rule)
	pack.Column(c, &d.Number)
	pack.Columns(c, &d.Amount)
	pack.Int(c, &d.Next)
	pack.Column(c, &d.Lister)
	pack.Texts(c, &d.List)
	pack.Column(c, &d.Unmet)
	pack.Bool(c, &d.AnyUnmet)
	pack.Columns(c, &d.Configured)
	pack.Columns(c, &d.Reserved)
	pack.Column(c, &d.Keeper)
	pack.Column(c, &d.KeptOn)
	pack.Columns(c, &d.KeptAmount)
}

func (r *Release) fields(c *pack.Coder) {
	pack.Int(c, &r.Sub)
	pack.Int(c, &r.Parcel)
	pack.Int(c, &r.Host)
	pack.Int(c, &r.Units)
	pack.Int(c, &r.Cause)
	pack.Int(c, &r.Number)
	pack.Int(c, &r.Origin)
	pack.Int(c, &r.Lender)
	if c.Since(6) {
		pack.Int(c, &r.Granted)
	} else {
		r.Granted = math.MaxInt64 // not known: it counts as not having run
	}
	if c.Since(10) {
		pack.Int(c, &r.Devices)
	}
	c.Note(&r.LostMS)
}

func (r *Reclaimed) fields(c *pack.Coder) {
	pack.Int(c, &r.Number)
	pack.Int(c, &r.Action)
	pack.Int(c, &r.Sub)
	pack.Int(c, &r.Taker)
	pack.Int(c, &r.Parcel)
	pack.Int(c, &r.Host)
	pack.Int(c, &r.Units)
	pack.Int(c, &r.Reason)
	pack.Int(c, &r.Issued)
	pack.Int(c, &r.Deadline)
	if c.Since(10) {
		pack.Int(c, &r.Devices)
	}
}

func (f *hostFigures) fields(c *pack.Coder) {
	pack.Int(c, &f.host)
	pack.Int(c, &f.state)
	pack.Column(c, &f.size)
}

func (a *asked) fields(c *pack.Coder) {
	pack.Int(c, &a.sub)
	pack.Int(c, &a.need)
	pack.Int(c, &a.wanted)
	pack.Int(c, &a.most)
	if c.Since(7) {
		pack.Int(c, &a.least)
	} else {
		a.least = 1
	}
	if c.Since(9) {
		pack.Int(c, &a.together)
	}
}

func (o *orphan) fields(c *pack.Coder) {
	pack.Int(c, &o.sub)
	pack.Int(c, &o.graceUS)
}
