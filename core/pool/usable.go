package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// More returns how many units more are net of a sub-allocation than the views say, held and not under reclaim: there in
// one pool, and in all.
type More func(sub cluster.SubID, pool cluster.ConsumerID) (there, all int64)

// claims are the sub-allocations below one pool with what each may use of the pool (MD-13), in the order of asks.
type claims struct {
	sub         []cluster.SubID
	leaf        []plan.Node
	net, usable []int64 // units
	demand      []int64 // share usage, capped
	uncapped    []int64
	class       []int32 // by row: of requirement and grace, -1: all parcels
	outstanding bool    // some row may use more than is net

	all, there []int64 // scratch by sub
	classes    []class
	caps       []int32 // classes that cap: those of rows, by first sight
	fits       map[fitKey]*fit
	fitOfShape []*fit  // by shape, of units that may use all parcels
	tree       []int64 // scratch by node less the pool's: demands of a division
	parts      []int64
}

// class is a requirement and a grace, with the parcels that both admit.
type class struct {
	need    cluster.NeedID
	grace   int64
	rows    []uint64 // bitset by row of Owned.Below, of open hosts
	parcels int
	same    int32 // the first class with the same parcels
	caps    bool  // a row is of the class
}

// fitKey is what the fits of units have in common that have no max_per_host.
type fitKey struct {
	shape cluster.ShapeID
	class int32
	side  plan.Node
}

// fit is how many units fit the parcels before a row.
type fit struct {
	units int64
	row   int
}

// claim finds what each sub-allocation may use of a pool. More may be nil. O(sub-allocations of the pool, and parcels
// for each size, requirement and grace that are not plentiful).
func (f *Figures) claimUsable(e *Env, more More) {
	v, s, t := &f.claims, e.State, e.State.Policy
	v.sub, v.leaf, v.net, v.usable = v.sub[:0], v.leaf[:0], v.net[:0], v.usable[:0]
	v.demand, v.class, v.outstanding = v.demand[:0], v.class[:0], false
	v.classes, v.caps = v.classes[:0], v.caps[:0]
	v.all, v.there = column.Zeros(v.all, len(s.Sub.Wanted)), column.Zeros(v.there, len(s.Sub.Wanted))
	v.fits, v.fitOfShape = map[fitKey]*fit{}, column.Zeros(v.fitOfShape, s.Shape.Len())
	pool, id := f.Pool, e.ID(f.Pool)
	for leaf := pool; leaf < t.End[pool]; leaf++ {
		if !t.Leaf(leaf) || !e.Plan.Terms.Member[leaf] {
			continue
		}
		g := e.Views.Usage.Of(leaf)
		for i, key := range g.Key {
			v.all[key.C] += g.Units[i] - g.Leaving[i]
			if key.A == int32(id) {
				v.there[key.C] += g.Units[i] - g.Leaving[i]
			}
		}
		asks := e.Window.ShareReclaim[leaf] && e.Exists(pool, leaf) && !e.Barred(pool, leaf)
		e.EachSub(leaf, func(sub cluster.SubID) {
			there, all := v.there[sub], v.all[sub]
			if more != nil {
				moreThere, moreAll := more(sub, id)
				there, all = there+moreThere, all+moreAll
			}
			usable := there
			if asks && !e.Plan.TooSmall(s, sub) {
				if want := s.Sub.Wanted[sub] - (all - there); want > there {
					usable = max(there, min(want, f.fit(e, leaf, sub, want)))
				}
			}
			if usable > 0 {
				f.addClaim(e, leaf, sub, there, usable)
			}
		})
	}
}

// addClaim adds the row of a sub-allocation.
func (f *Figures) addClaim(e *Env, leaf plan.Node, sub cluster.SubID, net, usable int64) {
	v, capacity := &f.claims, e.Views.Capacity.Of(e.State, f.Pool, e.State.Sub.Shape[sub])
	v.sub, v.leaf = append(v.sub, sub), append(v.leaf, leaf)
	v.net, v.usable = append(v.net, net), append(v.usable, usable)
	v.demand = append(v.demand, max(share.Demand(usable, capacity), share.Fraction(usable, capacity)))
	c := f.classOf(e, leaf, sub)
	v.class = append(v.class, c)
	if c >= 0 && !v.classes[c].caps && v.classes[c].parcels > 0 {
		v.classes[c].caps = true
		v.caps = append(v.caps, c)
	}
	v.outstanding = v.outstanding || usable > net
}

// classOf returns the class of a sub-allocation, -1 where all parcels of the pool are in it.
func (f *Figures) classOf(e *Env, leaf plan.Node, sub cluster.SubID) int32 {
	v, key := &f.claims, class{need: e.State.Sub.Need[sub], grace: e.State.Policy.ReclaimUS[leaf]}
	if key.need == cluster.NoID && key.grace == 0 {
		return -1
	}
	for i := range v.classes {
		if one := &v.classes[i]; one.need == key.need && one.grace == key.grace {
			return one.same
		}
	}
	from, to := e.Views.Owned.Below(f.Pool)
	key.rows = make([]uint64, (to-from+63)/64)
	open := 0
	for i, k := range e.Views.Owned.Parcel[from:to] {
		if !e.Plan.Parcels.IsOpen(k) {
			continue
		}
		open++
		if key.grace <= e.Grace(e.Owner(k), f.Pool) && e.Views.Needs.Selects(e.State, e.Plan, key.need, k) {
			key.rows[i>>6] |= 1 << (i & 63)
			key.parcels++
		}
	}
	key.same = int32(len(v.classes))
	switch i := slices.IndexFunc(v.classes, func(one class) bool { return slices.Equal(one.rows, key.rows) }); {
	case key.parcels == open:
		key.same = -1
	case i >= 0:
		key.same = v.classes[i].same
	}
	v.classes = append(v.classes, key)
	return key.same
}

// fit returns how many units of a sub-allocation fit the pool's parcels that it may use, were the pool empty; from want
// on the number does not matter. For a gang that does not fit it is 0.
func (f *Figures) fit(e *Env, leaf plan.Node, sub cluster.SubID, want int64) (units int64) {
	s := e.State
	places, _, _ := e.Views.Needs.Place(sub)
	if s.Sub.MaxPerHost[sub] != plan.Unlimited || places != nil {
		units = f.fitOfSub(e, leaf, sub)
	} else {
		units = f.fitOfKind(e, leaf, sub, max(want, s.Sub.MinUnits[sub]))
	}
	if units < s.Sub.MinUnits[sub] {
		return 0
	}
	return units
}

// fitOfKind is fit of units without max_per_host: kinds remember how far they counted.
func (f *Figures) fitOfKind(e *Env, leaf plan.Node, sub cluster.SubID, want int64) int64 {
	v, key := &f.claims, fitKey{shape: e.State.Sub.Shape[sub], class: f.classOf(e, leaf, sub), side: plan.None}
	from, to := e.Views.Owned.Below(f.Pool)
	own, end := e.Views.Owned.Own(f.Pool)
	if lent := to-from > end-own; lent {
		key.side = e.Toward(leaf, f.Pool)
	}
	one := v.fitOf(key)
	if one.units >= want || one.row >= int(to-from) {
		return one.units
	}
	size := e.State.Shape.Size(key.shape)
	rests := e.Views.Capacity.Rests(e.State, f.Pool, nil)
	for ; one.units < want && one.row < int(to-from); one.row++ {
		if k := e.Views.Owned.Parcel[int(from)+one.row]; f.admits(e, key.class, key.side, one.row, k) {
			one.units = share.Add(one.units, fitOfRest(rests, one.row, size))
		}
	}
	return one.units
}

// fitOf returns the fit of a key.
func (v *claims) fitOf(key fitKey) *fit {
	if key.class < 0 && key.side == plan.None {
		if v.fitOfShape[key.shape] == nil {
			v.fitOfShape[key.shape] = &fit{}
		}
		return v.fitOfShape[key.shape]
	}
	if v.fits[key] == nil {
		v.fits[key] = &fit{}
	}
	return v.fits[key]
}

// admits tells whether a parcel of the pool is one for a class and a side.
func (f *Figures) admits(e *Env, class int32, side plan.Node, row int, k cluster.ParcelID) bool {
	if !e.Plan.Parcels.IsOpen(k) || side != plan.None && e.State.Policy.Within(e.Owner(k), side) {
		return false
	}
	return class < 0 || f.claims.classes[class].rows[row>>6]>>(row&63)&1 == 1
}

// fitOfRest is how many units of a size fit a row of rests.
func fitOfRest(rests [][]int64, row int, size []int64) int64 {
	units := int64(math.MaxInt64)
	for d, u := range size {
		if u > 0 {
			units = min(units, max(0, rests[d][row])/u)
		}
	}
	return units
}

// fitOfSub is fit of units that count host by host, or by value of an attribute. O(parcels of the pool).
func (f *Figures) fitOfSub(e *Env, leaf plan.Node, sub cluster.SubID) (units int64) {
	s, p := e.State, &e.Plan.Parcels
	places, held, isHeld := e.Views.Needs.Place(sub)
	from, to := e.Views.Owned.Below(f.Pool)
	if from == to {
		return 0
	}
	class, side, most := f.classOf(e, leaf, sub), plan.None, s.Sub.MaxPerHost[sub]
	if own, end := e.Views.Owned.Own(f.Pool); to-from > end-own {
		side = e.Toward(leaf, f.Pool)
	}
	on := map[cluster.HostID]int64{}
	if most != plan.Unlimited {
		h := &s.Holding
		for q := s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Pool[q] != e.ID(f.Pool) {
				on[p.Host[h.Parcel[q]]] += h.Units[q]
			}
		}
	}
	size, rests := s.Shape.Size(s.Sub.Shape[sub]), e.Views.Capacity.Rests(s, f.Pool, nil)
	var sum []int64
	if places != nil {
		sum = make([]int64, len(places.Text))
	}
	for row := range int(to - from) {
		k := e.Views.Owned.Parcel[int(from)+row]
		if !f.admits(e, class, side, row, k) {
			continue
		}
		n, host := fitOfRest(rests, row, size), p.Host[k]
		if most != plan.Unlimited {
			n = min(n, max(0, most-on[host]))
			on[host] += n
		}
		if places == nil {
			units = share.Add(units, n)
		} else if value := places.Of[host]; value != cluster.NoID && (!isHeld || value == held) {
			sum[value] = share.Add(sum[value], n)
		}
	}
	for _, n := range sum {
		units = max(units, n)
	}
	return units
}

// cap caps demands by requirements, then by share limits (MD-13). Limits may be nil.
func (f *Figures) cap(e *Env, limits *Limits) {
	v := &f.claims
	v.uncapped = append(v.uncapped[:0], v.demand...)
	f.capByRequirements(e)
	if limits == nil {
		return
	}
	t := e.State.Policy
	dims := len(e.Plan.Parcels.Cap)
	for n := t.End[f.Pool] - 1; n > f.Pool; n-- { // children before parents
		if !e.Plan.Terms.Member[n] {
			continue
		}
		amount, limited := make([]int64, dims), false
		for d := range amount {
			amount[d] = math.MaxInt64
			if most := e.ShareLimit(n, d); most != plan.Unlimited {
				amount[d], limited = most-limits.Held(n, d), true
			}
		}
		if !limited {
			continue
		}
		from, to := v.below(t, n)
		for d := range amount {
			if amount[d] == math.MaxInt64 {
				continue
			}
			for i := from; i < to; i++ { // what is net from this pool does not count here
				amount[d] += e.State.Size(v.sub[i])[d] * v.net[i]
			}
			amount[d] = max(0, amount[d])
		}
		f.capAt(e, amount, func(i int) bool { return i >= from && i < to })
	}
}

// below returns the rows of the leaves below a consumer.
func (v *claims) below(t *plan.Policy, n plan.Node) (from, to int) {
	from, _ = slices.BinarySearch(v.leaf, n)
	to, _ = slices.BinarySearch(v.leaf, t.End[n])
	return from, to
}

// capByRequirements caps the demands of those that are restricted to some parcels of the pool, those with the fewest
// parcels first.
func (f *Figures) capByRequirements(e *Env) {
	v := &f.claims
	slices.SortStableFunc(v.caps, func(a, b int32) int {
		return cmp.Compare(v.classes[a].parcels, v.classes[b].parcels)
	})
	if len(v.caps) == 0 {
		return
	}
	rests := e.Views.Capacity.Rests(e.State, f.Pool, nil)
	for _, at := range v.caps {
		within := make([]bool, len(v.classes))
		for i := range v.classes {
			within[i] = v.classes[i].parcels > 0 && vecpack.Within(v.classes[i].rows, v.classes[at].rows)
		}
		amount := make([]int64, len(rests))
		vecpack.EachBit(v.classes[at].rows, func(row int) {
			for d := range amount {
				amount[d] = share.Add(amount[d], rests[d][row])
			}
		})
		f.capAt(e, amount, func(i int) bool { return v.class[i] >= 0 && within[v.class[i]] })
	}
}

// capAt divides among some rows at most what some amounts hold of what these may use.
func (f *Figures) capAt(e *Env, amount []int64, in func(row int) bool) {
	v := &f.claims
	used, whole := make([]int64, len(amount)), int64(0)
	v.tree = column.Zeros(v.tree, len(f.Demand))
	for i := range v.sub {
		if !in(i) {
			continue
		}
		whole = share.Add(whole, v.uncapped[i])
		for d, u := range e.State.Size(v.sub[i]) {
			used[d] = share.Add(used[d], share.Mul(u, v.usable[i]))
		}
		at := v.leaf[i] - f.Pool
		v.tree[at] = share.Add(v.tree[at], v.demand[i])
	}
	total, over := whole, false
	for d, u := range used {
		if u > amount[d] {
			total, over = min(total, share.Part(whole, amount[d], u)), true
		}
	}
	if !over {
		return
	}
	e.sumUp(f.Pool, v.tree)
	v.parts = column.Zeros(v.parts, len(v.tree))
	v.parts[0] = total
	for n := f.Pool; n < e.State.Policy.End[f.Pool]; n++ {
		f.divide(e, n, v.tree, v.parts)
	}
	for i := range v.sub { // in the order of asks
		if left := &v.parts[v.leaf[i]-f.Pool]; in(i) {
			v.demand[i] = min(v.demand[i], *left)
			*left -= v.demand[i]
		}
	}
}
