package explain

import "fmt"

// balance is what a leaf has of a pool and what it deserves there, parts of the pool.
type balance struct {
	consumer     string
	usage, quota float64
	unit         float64 // what a unit of it counts, on average; 0: not known
}

// moves tells how far the holder and the taker of a reclaim for a share are above and below what they deserve of the
// pool (MD-17), and what they have once all that is under reclaim is done. It is "" where the table of shares does not
// have both.
func (p *part) moves(r *Reclaim) string {
	from, to, ok := p.balances(r.Consumer, r.For.Consumer)
	if !ok {
		return ""
	}
	gone, come := int64(0), int64(0)
	for i := range p.going {
		if g := &p.going[i]; g.plan == p.Plan && g.consumer == r.Consumer {
			gone += g.units
		}
	}
	s := view(p.f.Shortfalls)
	for row := range s.Rows {
		if s.text("plan", row) == p.Plan && s.text("consumer", row) == r.For.Consumer &&
			s.text("reason", row) == "waiting_for_reclaim" {
			come += s.num("units_short", row)
		}
	}
	return from.sentence(-gone) + "; " + to.sentence(come)
}

// sentence tells what a leaf has, deserves, and has with some units more or less.
func (b *balance) sentence(more int64) string {
	text := fmt.Sprintf("%s has %s of the pool", b.consumer, percent(b.usage))
	if b.unit == 0 {
		return text + fmt.Sprintf(" and deserves %s", percent(b.quota))
	}
	return text + fmt.Sprintf(", deserves %s and will have %s", percent(b.quota),
		percent(max(0, b.usage+float64(more)*b.unit)))
}

// balances finds two leaves in the table of shares: in the pool in which the first is furthest above what it deserves.
func (p *part) balances(holder, taker string) (from, to balance, ok bool) {
	v, rows := view(p.f.Shares), p.shareRows()
	a, known := p.tree().Find(holder)
	b, both := p.tree().Find(taker)
	if !known || !both {
		return from, to, false
	}
	for _, i := range rows[p.key(a)] {
		for _, j := range rows[p.key(b)] {
			if v.text("pool", i) != v.text("pool", j) {
				continue
			}
			if one := balanceOf(v, i); !ok || one.usage-one.quota > from.usage-from.quota {
				from, to, ok = one, balanceOf(v, j), true
			}
		}
	}
	return from, to, ok
}

func balanceOf(v tableView, row int) balance {
	b := balance{consumer: v.text("consumer", row), usage: v.real("usage", row), quota: v.real("usage_quota", row)}
	held, wanted, demand := v.num("units_held", row), v.num("units_wanted", row), v.real("usage_demand", row)
	switch {
	case held > 0:
		b.unit = b.usage / float64(held)
	case wanted > 0 && demand < 1: // else some of what it wants counts for less
		b.unit = demand / float64(wanted)
	}
	return b
}
