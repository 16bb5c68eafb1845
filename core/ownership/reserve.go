package ownership

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Reserved gives what of a consumer's parts is reserved (MD-5) as of the last pass: rows in
// order of the parts' numbers, hosts, and amounts by dimension, then row. Parts of which nothing is
// reserved have no row. O(parts · log parts).
func (a *Assigner) Reserved(n plan.Node) (host []int32, amount [][]int64) {
	dims := a.dims
	amount = make([][]int64, dims)
	r := &a.g.Window.Reserve[n]
	if !a.g.Plan.Member[n] || n == plan.Root ||
		r.Hosts == plan.Unlimited && r.Percent == plan.Unlimited && r.Amount == nil {
		return nil, amount
	}
	parts := a.deeds.parts(n)
	most := reserving(r, parts, dims)
	for i, p := range parts {
		v := p.amount
		switch {
		case r.Hosts != plan.Unlimited && int64(i) >= r.Hosts:
			return host, amount
		case r.Hosts == plan.Unlimited:
			v = cut(make([]int64, dims), most, p.amount)
			pay(most, v)
		}
		if zero(v) {
			continue
		}
		host = append(host, p.host)
		for d := range v {
			amount[d] = append(amount[d], v[d])
		}
	}
	return host, amount
}

// reserving is what is to be reserved in all, by dimension; Unlimited where a dimension goes along.
func reserving(r *plan.Reserve, parts []ownedPart, dims int) []int64 {
	if r.Amount != nil {
		return slices.Clone(r.Amount)
	}
	most := make([]int64, dims)
	if r.Percent == plan.Unlimited {
		return most
	}
	for _, p := range parts {
		add(most, p.amount)
	}
	for d := range most {
		most[d], _ = share.Scale(most[d], r.Percent, hundred)
	}
	return most
}

// ownedPart is a part, all its pieces together.
type ownedPart struct {
	host   int32
	number int64
	amount []int64
}

// parts gives a consumer's parts in the order of their numbers.
func (t *Deeds) parts(n plan.Node) (parts []ownedPart) {
	from, _ := slices.BinarySearch(t.Node, n)
	for i := from; i < len(t.Node) && t.Node[i] == n; i++ {
		if i == from || t.Host[i] != t.Host[i-1] {
			parts = append(parts, ownedPart{t.Host[i], t.Number[i], make([]int64, len(t.Amount))})
		}
		for d, v := range parts[len(parts)-1].amount {
			parts[len(parts)-1].amount[d] = share.Add(v, t.Amount[d][i])
		}
	}
	slices.SortFunc(parts, func(a, b ownedPart) int { return cmp.Compare(a.number, b.number) })
	return parts
}
