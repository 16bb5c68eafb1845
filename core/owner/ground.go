package owner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
)

// hosts is the first parcels of the plan's hosts, in host order, and by HostID the place of each there.
func (e Env) hosts() (hosts []cluster.ParcelID, at []int32) {
	p := &e.Plan.Parcels
	at = make([]int32, e.State.Host.Len())
	for k := cluster.ParcelID(0); int(k) < p.Len()-p.Left; k = p.End(k) {
		at[p.Host[k]] = int32(len(hosts))
		hosts = append(hosts, k)
	}
	return hosts, at
}

// survey is what a pass goes by: the hosts, their groups, and what is held on them after settle.
func (o *Passes) survey(e Env, hosts []cluster.ParcelID, at []int32) *ownership.Ground {
	s, p := e.State, &e.Plan.Parcels
	g := &ownership.Ground{
		Tree: &s.Policy.Tree, Plan: e.Plan.MD, Window: e.Window, Rank: e.Plan.RankOrder,
		Cap: make([][]int64, len(p.Cap)), Closed: make([]uint64, (len(hosts)+63)/64),
	}
	for d := range p.Cap {
		g.Cap[d] = make([]int64, len(hosts))
	}
	for i, k := range hosts {
		o.surveyHost(e, g, int32(i), k)
	}
	for _, group := range e.Plan.MD.Groups {
		set := make([]uint64, (len(hosts)+63)/64)
		for _, h := range s.Members(group.Group) {
			i := at[h]
			set[i>>6] |= 1 << (uint(i) & 63)
		}
		g.Group = append(g.Group, set)
	}
	index := e.Plan.Index
	g.Listed = func(name string) int32 {
		if h, ok := s.Host.Find([]byte(name)); ok && s.Host.Plan[h] == index {
			return at[h]
		}
		return -1
	}
	g.Known = func(name string, d int) int64 { return s.Stated(&s.Plans[index], name, d) }
	return g
}

// surveyHost takes down what a host has, whether it is closed, and what is held on it; i is its place, k its first
// parcel.
func (o *Passes) surveyHost(e Env, g *ownership.Ground, i int32, k cluster.ParcelID) {
	p, dims := &e.Plan.Parcels, len(e.Plan.Parcels.Cap)
	end := p.End(k)
	g.Closed[i>>6] &^= 1 << (i & 63)
	if e.State.Host.State[p.Host[k]].Shut() {
		g.Closed[i>>6] |= 1 << (i & 63)
	}
	for d := range p.Cap {
		g.Cap[d][i] = 0
		for _, v := range p.Cap[d][k:end] {
			g.Cap[d][i] += v
		}
	}
	for ; k < end; k++ {
		if p.First[k] == cluster.NoID {
			continue
		}
		if len(o.vectors) < dims {
			o.vectors = make([]int64, dims<<10)
		}
		used := o.vectors[:dims:dims]
		o.vectors = o.vectors[dims:]
		for d := range used {
			used[d] = p.Cap[d][k] - p.Free[d][k]
		}
		g.Use = append(g.Use, ownership.Use{Host: i, Owner: e.heir(p.Owner[k]), Amount: used})
	}
}

// heir is for whom work on an owner's parcel counts: the owner, or the nearest consumer above it that a new policy has
// left.
func (e Env) heir(owner cluster.ConsumerID) plan.Node {
	if owner == cluster.NoID {
		return plan.Root
	}
	if n := e.State.NodeOf[owner]; n != plan.None {
		return n
	}
	path := e.State.Consumer.String(int32(owner))
	for {
		if n, ok := e.State.Policy.Find(path); ok {
			return n
		}
		path = path[:max(1, strings.LastIndexByte(path, '/'))]
	}
}

// had is the deeds of the last pass as the next one takes them: of consumers and hosts that are still in the plan; of
// no rule where the consumer's list is another now.
func (e Env) had(at []int32, texts []string) *ownership.Deeds {
	s, d := e.State, &e.Plan.Deeds
	out := &ownership.Deeds{Next: d.Next, Amount: make([][]int64, len(e.Plan.Parcels.Cap))}
	same := make([]bool, s.Policy.Len())
	for i, c := range d.Lister {
		if n := s.NodeOf[c]; n != plan.None {
			same[n] = texts[n] == d.List[i]
		}
	}
	var rows []int
	for i, c := range d.Consumer {
		if n := s.NodeOf[c]; n != plan.None && e.Plan.Terms.Member[n] && s.Host.Plan[d.Host[i]] == e.Plan.Index {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { // a new policy or table of hosts may have another order
		return cmp.Or(cmp.Compare(s.NodeOf[d.Consumer[a]], s.NodeOf[d.Consumer[b]]),
			cmp.Compare(s.Host.Parcel[d.Host[a]], s.Host.Parcel[d.Host[b]]), cmp.Compare(d.Rule[a], d.Rule[b]))
	})
	for _, i := range rows {
		n, h, rule := s.NodeOf[d.Consumer[i]], at[d.Host[i]], d.Rule[i]
		if !same[n] {
			rule = ownership.None
		}
		last := len(out.Node) - 1
		if last >= 0 && rule == ownership.None && out.Node[last] == n && out.Host[last] == h {
			for dim := range out.Amount { // several rules' pieces are of none alike
				out.Amount[dim][last] += d.Amount[dim][i]
			}
			continue
		}
		out.Node, out.Host = append(out.Node, n), append(out.Host, h)
		out.Rule, out.Number = append(out.Rule, rule), append(out.Number, d.Number[i])
		for dim := range out.Amount {
			out.Amount[dim] = append(out.Amount[dim], d.Amount[dim][i])
		}
	}
	return out
}
