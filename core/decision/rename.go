package decision

// names are the columns of a cycle's events that name allocations and sub-allocations, and those that name sources.
func (c *Cycle) names() (labels, sources []*Coded) {
	g, r, t := &c.Grants, &c.Reclaims, &c.Releases
	labels = []*Coded{&g.Allocation, &g.Sub, &r.Allocation, &r.Sub, &r.ForAllocation, &r.ForSub, &t.Allocation, &t.Sub}
	return labels, []*Coded{&g.Source, &r.Source, &t.Source}
}

// EachName calls label for each code of an allocation or sub-allocation in the cycle's events, and source for each of a
// source, Null ones too.
func (c *Cycle) EachName(label, source func(code int32)) {
	labels, sources := c.names()
	for _, column := range labels {
		for _, code := range column.Code {
			label(code)
		}
	}
	for _, column := range sources {
		for _, code := range column.Code {
			source(code)
		}
	}
}

// RenameEvents is a frozen cycle without its state tables and keyframes, as Events gives it, in which names have other
// codes, given by the old ones, and other dictionaries. The cycle stays as it is. O(rows).
func (c *Cycle) RenameEvents(labelOf, sourceOf []int32, label, source Dict) *Cycle {
	renamed := c.Events()
	labels, sources := renamed.names()
	for _, column := range labels {
		column.rename(labelOf, label)
	}
	for _, column := range sources {
		column.rename(sourceOf, source)
	}
	return renamed
}

func (c *Coded) rename(of []int32, dict Dict) {
	codes := make([]int32, len(c.Code))
	for row, code := range c.Code {
		if codes[row] = Null; code != Null {
			codes[row] = of[code]
		}
	}
	c.Code, c.Dict = codes, dict
}
