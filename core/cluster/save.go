package cluster

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/stintd/stint/core/pack"
	"github.com/stintd/stint/core/plan"
)

// saveForm is the form of a saved state. A field that comes later raises it and is named if c.Since(of that form):
// states that were saved before are still loaded, and the field is as it was made.
const saveForm = 12

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

// fields names the fields of the state. Whoever adds one to a struct names it here, in the schema of its table or among
// what is derived: a test holds it. hidden are the allocations that their key does not find.
func (s *State) fields(c *pack.Coder) (hidden []AllocID) {
	c.Form("state", saveForm)
	pack.Int(c, &s.Revision)
	pack.Int(c, &s.Cycle)
	pack.Int(c, &s.NowUS)
	c.Mark("names")
	s.Consumer.fields(c)
	s.Source.fields(c)
	s.Label.fields(c)
	saveAll(c, s.consumerTables()...)
	s.Host.fields(c)
	c.Mark("shapes")
	pack.Int(c, &s.Shape.dims)
	pack.Column(c, &s.Shape.size)
	s.Need.Names.fields(c)
	if !c.Loading() {
		hidden = s.hidden()
	}
	c.Mark("allocations")
	saveAll(c, s.Alloc.schema())
	pack.Column(c, &hidden)
	c.Mark("sub-allocations")
	saveAll(c, s.Sub.schema())
	c.Mark("holdings")
	saveAll(c, s.Holding.schema())
	c.Mark("reclaim sets")
	saveAll(c, s.Set.schema())
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
	save(c, s.lists(), "excess", "gone")
	pack.Bool(c, &s.outsideDirty)
	save(c, s.lists(), "silent")
	if c.Since(4) {
		pack.Int(c, &s.Times.first)
		save(c, s.lists(), "times")
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
	save(c, h.schema(), "state", "size")
	pack.Rows(c, &h.Attr, func(a *AttrColumn) { a.fields(c) })
	save(c, h.schema(), "order", "plan", "parcel", "listed")
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

func (p *Plan) fields(c *pack.Coder) {
	pack.Text(c, &p.Name)
	c.Mark("parcels")
	saveAll(c, p.Parcels.schema())
	pack.Int(c, &p.Parcels.Left)
	pack.Bool(c, &p.Parcels.Owned)
	pack.Column(c, &p.Parcels.Moved)
	saveAll(c, p.Pairs.schema(), p.leaves())
	pack.Int(c, &p.Window)
	pack.Int(c, &p.Before)
	pack.Int(c, &p.Coming)
	pack.Bool(c, &p.Dirty)
	pack.Bool(c, &p.again)
	pack.Bool(c, &p.Rebuilt)
	pack.Bool(c, &p.Resized)
	save(c, p.lists(), "changed")
	pack.Int(c, &p.Seen)
	c.Mark("deeds")
	saveAll(c, p.Deeds.schema())
	pack.Int(c, &p.Deeds.Next)
	saveAll(c, p.Deeds.lists())
	save(c, p.Deeds.byNode(), "unmet")
	pack.Bool(c, &p.Deeds.Open)
	save(c, p.Deeds.byNode(), "configured", "reserved")
	saveAll(c, p.Deeds.kept())
	pack.Bool(c, &p.Reassign)
	pack.Bool(c, &p.Stirred)
	pack.Bool(c, &p.Turned)
	pack.Int(c, &p.Since)
	save(c, p.lists(), "shifted", "unlabelled")
	if c.Since(6) {
		save(c, p.lists(), "lost")
	}
	if c.Since(8) {
		saveAll(c, p.Budgets.schema())
	}
	if c.Since(9) {
		saveAll(c, p.History.schema())
	}
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
	if c.Since(12) {
		pack.Int(c, &r.WaitedUS)
	} else {
		r.WaitedUS = -1
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
