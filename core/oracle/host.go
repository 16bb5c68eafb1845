package oracle

import (
	"maps"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// used is what a plan's units take of a host, as a vector like its capacity.
func (c *Cluster) used(in int, h *host) []int64 {
	v := make([]int64, len(c.capacity(in, h)))
	for _, u := range h.units {
		if u.sub.alloc.plan == in {
			for d, n := range u.sub.size {
				v[d] += n
			}
		}
	}
	return v
}

// capacity is what a host has for a plan: its vector after overcommit (D-22), of whole devices alone; in a slot plan
// its slots.
func (c *Cluster) capacity(in int, h *host) []int64 {
	if in >= len(c.p.MDPlans) {
		return []int64{c.slotsOf(in, h)}
	}
	v := make([]int64, len(h.size))
	for d, n := range h.size {
		whole, _ := muldiv(uint64(n), uint64(c.p.MDPlans[in].OvercommitMilli[d]), 1000)
		v[d] = int64(min(whole, 1<<58))
	}
	if d, per, ok := c.devices(in); ok {
		v[d] = c.devicesOf(in, h) * per
	}
	return v
}

// small tells whether the hosts of its plan would hold too many units of a
// sub-allocation's size, were they empty (D-52).
func (c *Cluster) small(s *sub) bool {
	if s.alloc.plan < 0 {
		return false
	}
	hosts, sum := c.order[s.alloc.plan], big.NewInt(0)
	for _, h := range hosts {
		sum.Add(sum, big.NewInt(c.packs(s.alloc.plan, s.size, c.capacity(s.alloc.plan, h))))
	}
	most := int64(1<<22 + 1<<12*len(hosts))
	if c.UnitsOfHost > 0 {
		most = c.UnitsOfHost * int64(len(hosts))
	}
	return sum.Cmp(big.NewInt(most)) > 0
}

// slotsOf are a host's slots by the expression of a slot plan's group.
func (c *Cluster) slotsOf(in int, h *host) int64 { return c.slots[in][h] }

// countSlots counts the slots of all hosts for a plan, 0 where the expression has no value.
func (c *Cluster) countSlots(in int) map[*host]int64 {
	slots, b := map[*host]int64{}, c.bind(c.p.Groups[c.groups(in)[0]].Slots)
	for i, h := range c.hosts {
		if b == nil {
			slots[h] = h.size[dimension(c.p, "slots")]
		} else {
			slots[h], _ = b.Number(i)
		}
	}
	return slots
}

// groups are the resource groups of a plan.
func (c *Cluster) groups(in int) []int {
	if in >= len(c.p.MDPlans) {
		return []int{c.p.SlotPlans[in-len(c.p.MDPlans)].Group}
	}
	var list []int
	for _, g := range c.p.MDPlans[in].Groups {
		list = append(list, g.Group)
	}
	return list
}

// arrange puts the hosts of every plan in host order (D-1). What is held on hosts that
// left an MD plan counts as public from then on.
func (c *Cluster) arrange() {
	defer func() {
		for _, h := range slices.Concat(c.gone, c.hosts) {
			for _, u := range h.units {
				if in := u.sub.alloc.plan; in < len(c.p.MDPlans) && !slices.Contains(c.order[in], h) &&
					!c.listed(in, h) {
					c.label(u, plan.Root)
				}
			}
		}
	}()
	c.order, c.grouped = make([][]*host, len(c.p.MDPlans)+len(c.p.SlotPlans)), map[int][]*host{}
	c.slots = make([]map[*host]int64, len(c.order))
	if len(c.hosts) == 0 { // no name in a requirement would be known
		return
	}
	for in := range c.order {
		if in >= len(c.p.MDPlans) {
			c.slots[in] = c.countSlots(in)
		}
		for _, g := range c.groups(in) {
			c.grouped[g] = c.inGroup(g)
			for _, h := range c.grouped[g] {
				if !slices.Contains(c.order[in], h) {
					c.order[in] = append(c.order[in], h)
				}
			}
		}
	}
}

// listed tells whether a group of a plan lists a host, there or not.
func (c *Cluster) listed(in int, h *host) bool {
	return slices.ContainsFunc(c.groups(in), func(g int) bool { return slices.Contains(c.p.Groups[g].Hosts, h.Name) })
}

// inGroup are the hosts of a resource group in its order.
func (c *Cluster) inGroup(g int) []*host {
	var list []*host
	group := c.p.Groups[g]
	for _, name := range group.Hosts {
		if i := slices.IndexFunc(c.hosts, func(h *host) bool { return h.Name == name }); i >= 0 {
			list = append(list, c.hosts[i])
		}
	}
	if group.Select == nil {
		return list
	}
	for i, ok := range c.matches(group.Select) {
		if ok {
			list = append(list, c.hosts[i])
		}
	}
	return list
}

// planOf is the plan that a host belongs to, -1 when none.
func (c *Cluster) planOf(h *host) int {
	return slices.IndexFunc(c.order, func(list []*host) bool { return slices.Contains(list, h) })
}

// matches tells for every host of the table whether it meets a requirement; none is met by all.
func (c *Cluster) matches(r *plan.Requirement) []bool {
	b, ok := c.bind(r), make([]bool, len(c.hosts))
	for i := range ok {
		ok[i] = b == nil || b.Match(i)
	}
	return ok
}

// bind resolves a requirement's names, which must exist; nil stays nil.
func (c *Cluster) bind(r *plan.Requirement) *plan.Bound {
	if r == nil {
		return nil
	}
	b, err := r.Bind(tableOf(c))
	if err != nil {
		panic("oracle: " + err.Error())
	}
	return b
}

// parsed is a requirement's text, parsed; nil for none.
func parsed(text string) *plan.Requirement {
	if text == "" {
		return nil
	}
	r, err := plan.ParseRequirement(text)
	if err != nil {
		panic("oracle: " + err.Error())
	}
	return r
}

// table is the cluster's hosts as plan.Hosts: columns are the dimensions, `host`, `state`, then names of attributes.
type table struct {
	c     *Cluster
	names []string // of the columns; attributes in order of their names
}

func tableOf(c *Cluster) table {
	attrs := map[string]bool{}
	for _, h := range c.hosts {
		for name := range h.Attr {
			attrs[name] = true
		}
	}
	return table{c, slices.Concat(c.p.Dimensions, []string{"host", "state"}, slices.Sorted(maps.Keys(attrs)))}
}

// at is the value of a column on a host: int64, float64, string, bool or nil.
func (t table) at(name string, host int) any {
	h := t.c.hosts[host]
	if d, ok := t.c.p.Dimension(name); ok {
		return float64(h.size[d])
	}
	switch name {
	case "host":
		return h.Name
	case "state":
		return h.State
	}
	return h.Attr[name]
}

func (t table) Column(name string) (col int, kind plan.Kind, ok bool) {
	col = slices.Index(t.names, name)
	if col < 0 {
		return 0, 0, false
	}
	for h := range t.c.hosts {
		switch t.at(name, h).(type) {
		case string:
			return col, plan.Text, true
		case bool:
			return col, plan.Boolean, true
		case float64:
			return col, plan.Number, true
		}
	}
	return col, plan.Number, true
}

func (t table) NumberAt(col, host int) (float64, bool) {
	v, ok := t.at(t.names[col], host).(float64)
	return v, ok
}

func (t table) TextAt(col, host int) ([]byte, bool) {
	v, ok := t.at(t.names[col], host).(string)
	return []byte(v), ok
}

func (t table) BoolAt(col, host int) (v, ok bool) {
	v, ok = t.at(t.names[col], host).(bool)
	return v, ok
}

func (t table) HasWord(word string) bool {
	for h := range t.c.hosts {
		if t.WordAt(word, h) {
			return true
		}
	}
	return false
}

func (t table) WordAt(word string, host int) bool {
	h := t.c.hosts[host]
	return h.Name == word || h.Attr["type"] == word || h.Attr["model"] == word
}
