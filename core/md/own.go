package md

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
)

// owners is what stage own works with, and what the plan's parcels are to their owners.
type owners struct {
	assigner ownership.Assigner
	footing  footing
	changes  []change // parts that this cycle's pass changed, for the table ownership
	by       []int64  // by change, then dimension: how much more it is than it was

	laid   bool
	group  []int32            // by ParcelID: the first of the plan's groups that has the host
	first  []int32            // by Node, and one more: where its parcels begin
	parcel []cluster.ParcelID // of owners, in tree order, then in host order
	row    []int32            // by ParcelID of those: its row in parcel
}

// change is a part that is another than it was.
type change struct {
	consumer cluster.ConsumerID
	host     cluster.HostID
}

// deed is a row of deeds that are compared with others.
type deed struct {
	node  plan.Node // None: the consumer is gone
	place int32     // of the host in host order, those that left behind
	row   int32
}

// assign makes a pass over the plan's ownership when it is time for one (docs/ownership.md, "When"), and splits the
// hosts by what came of it. Where that is what was, all that was laid out by it stays.
func (m *Planner) assign() {
	p, o := m.p, &m.owners
	o.changes, o.by, o.laid = o.changes[:0], o.by[:0], o.laid && !p.Rebuilt
	if p.Stirred || mutant == 2 {
		p.Since++
	}
	owned := p.Owns || len(p.Deeds.Host) > 0 || p.Parcels.Owned
	if again := p.Deeds.AnyUnmet && p.Since >= p.MD.OwnershipRebalance; owned && (p.Reassign || again) {
		had := reservedBy(&p.Deeds)
		if hosts, ok := m.movedHosts(); ok {
			m.update(hosts)
		} else {
			deeds := p.Deeds
			m.pass()
			compared := m.compare(&deeds)
			if p.Reassign {
				m.s.Divide(p)
			}
			if <-compared; !p.Reassign { // hosts have what they had: where no part is another they are split as they were
				m.s.DivideAt(p, o.changedHosts())
			}
		}
		o.laid = o.laid && !p.Reassign && !p.Rebuilt && len(o.changes) == 0 && had.is(&p.Deeds)
		p.Since = 0
	}
	p.Reassign = false
}

// layAll lays out what goes by who owns which parcels, and beside that the desk, which has its own copy of the public ones.
func (m *Planner) layAll() {
	m.owners.laid, m.amounts.set, m.census.first, m.fairness.whole = true, nil, nil, map[plan.Node][]cluster.ParcelID{}
	m.sight.forgetGraces()
	m.layPublic()
	m.desk.Field.Among(m.public.parcels)
	cluster.Both(true, func() {
		if m.p.Parcels.Owned {
			m.layOwners()
		}
		m.layReserves()
		m.layPools()
	}, func() { m.desk.Sync(m.s, m.p) })
}

// pass assigns the plan's hosts anew.
func (m *Planner) pass() {
	p, d, f := m.p, &m.p.Deeds, &m.owners.footing
	texts := m.ruleTexts()
	hosts, at := m.planHosts()
	f.set, f.ground, f.host, f.place = m.set, m.ground(hosts, at), f.host[:0], at
	for _, k := range hosts {
		f.host = append(f.host, p.Parcels.Host[k])
	}
	var text []string
	if len(d.Lister) > 0 { // else nobody had anything by a rule
		text = <-texts
	}
	f.gave = m.owners.assigner.Pass(f.ground, m.had(at, text))
	if text == nil {
		text = <-texts
	}
	p.Parcels.Watch(m.s.Host.Len())
	m.setDeeds(f.gave)
	d.Lister, d.List = nil, nil
	for n, t := range text {
		if t != "" {
			d.Lister, d.List = append(d.Lister, m.s.ConsumerOf[n]), append(d.List, t)
		}
	}
	d.Unmet, d.Configured, d.Reserved = make([]int32, m.policy.Len()), nil, nil
	d.Keeper, d.KeptOn, d.KeptAmount = nil, nil, make([][]int64, len(f.gave.Amount))
	for range f.gave.Amount {
		d.Configured, d.Reserved = append(d.Configured, make([]int64, m.policy.Len())), append(d.Reserved, make([]int64, m.policy.Len()))
	}
	m.note()
}

// ruleTexts writes down the lists of rules, by Node, while the pass is made that they are kept with.
func (m *Planner) ruleTexts() <-chan []string {
	texts, policy, md, own := make(chan []string, 1), m.policy, m.p.MD, m.set.Own
	go func() {
		text := make([]string, policy.Len())
		for n, rules := range own {
			if len(rules) > 0 {
				text[n] = policy.RuleText(md, rules)
			}
		}
		texts <- text
	}()
	return texts
}

// setDeeds makes what a pass gave the plan's deeds.
func (m *Planner) setDeeds(gave *ownership.Deeds) {
	d, host := &m.p.Deeds, m.owners.footing.host
	d.Rule, d.Number, d.Amount, d.Next = gave.Rule, gave.Number, gave.Amount, gave.Next
	d.Consumer, d.Host = make([]cluster.ConsumerID, len(gave.Node)), make([]cluster.HostID, len(gave.Node))
	for i, n := range gave.Node {
		d.Consumer[i], d.Host[i] = m.s.ConsumerOf[n], host[gave.Host[i]]
	}
}

// planHosts is the first parcels of the plan's hosts, in host order, and the place of each there by HostID.
func (m *Planner) planHosts() (hosts []cluster.ParcelID, at []int32) {
	p := &m.p.Parcels
	at = make([]int32, m.s.Host.Len())
	for k := cluster.ParcelID(0); int(k) < p.Len()-p.Left; k = p.End(k) {
		at[p.Host[k]] = int32(len(hosts))
		hosts = append(hosts, k)
	}
	return hosts, at
}

// had is the deeds of the last pass as the next one takes them: those of consumers and hosts that are still in
// the plan; of no rule where the consumer's list is another now.
func (m *Planner) had(at []int32, text []string) *ownership.Deeds {
	d, out := &m.p.Deeds, &ownership.Deeds{Next: m.p.Deeds.Next, Amount: make([][]int64, len(m.p.Parcels.Cap))}
	same := make([]bool, m.policy.Len())
	for i, c := range d.Lister {
		if n := m.s.NodeOf[c]; n != plan.None {
			same[n] = text[n] == d.List[i] || mutant == 3
		}
	}
	var rows []int
	for i, c := range d.Consumer {
		if n := m.s.NodeOf[c]; n != plan.None && m.p.Terms.Member[n] && m.s.Host.Plan[d.Host[i]] == m.p.Index {
			rows = append(rows, i)
		}
	}
	slices.SortStableFunc(rows, func(a, b int) int { // a new policy or table of hosts may have another order
		return cmp.Or(cmp.Compare(m.s.NodeOf[d.Consumer[a]], m.s.NodeOf[d.Consumer[b]]),
			cmp.Compare(m.s.Host.Parcel[d.Host[a]], m.s.Host.Parcel[d.Host[b]]), cmp.Compare(d.Rule[a], d.Rule[b]))
	})
	for _, i := range rows {
		n, rule := m.s.NodeOf[d.Consumer[i]], d.Rule[i]
		if !same[n] {
			rule = ownership.None
		}
		h := at[d.Host[i]]
		if last := len(out.Node) - 1; last >= 0 && rule == ownership.None && out.Node[last] == n && out.Host[last] == h {
			for dim := range out.Amount { // several rules' pieces are of none alike
				out.Amount[dim][last] += d.Amount[dim][i]
			}
			continue
		}
		out.Node, out.Host, out.Rule, out.Number = append(out.Node, n), append(out.Host, h), append(out.Rule, rule), append(out.Number, d.Number[i])
		for dim := range out.Amount {
			out.Amount[dim] = append(out.Amount[dim], d.Amount[dim][i])
		}
	}
	return out
}

// ground is what a pass goes by: the hosts, their groups, and what is held on them after settle.
func (m *Planner) ground(hosts []cluster.ParcelID, at []int32) *ownership.Ground {
	s, p := m.s, &m.p.Parcels
	g := &ownership.Ground{Tree: &m.policy.Tree, Plan: m.p.MD, Window: m.set, Rank: m.p.RankOrder, Cap: make([][]int64, len(p.Cap))}
	for d := range p.Cap {
		g.Cap[d] = make([]int64, len(hosts))
	}
	for i, k := range hosts {
		m.survey(g, int32(i), k)
	}
	for _, group := range m.p.MD.Groups {
		set := make([]uint64, (len(hosts)+63)/64)
		for _, h := range s.Members(group.Group) {
			i := at[h]
			set[i>>6] |= 1 << (uint(i) & 63)
		}
		g.Group = append(g.Group, set)
	}
	g.Listed = func(name string) int32 {
		if h, ok := s.Host.Find([]byte(name)); ok && s.Host.Plan[h] == m.p.Index {
			return at[h]
		}
		return -1
	}
	g.Known = func(name string, d int) int64 { return s.Stated(m.p, name, d) }
	return g
}

// survey takes down what a host has and what is held on it; i is its place, k its first parcel.
func (m *Planner) survey(g *ownership.Ground, i int32, k cluster.ParcelID) {
	p, f, dims := &m.p.Parcels, &m.owners.footing, len(m.p.Parcels.Cap)
	end := p.End(k)
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
		if len(f.vectors) < dims {
			f.vectors = make([]int64, dims<<10)
		}
		used := f.vectors[:dims:dims]
		f.vectors = f.vectors[dims:]
		for d := range used {
			used[d] = p.Cap[d][k] - p.Free[d][k]
		}
		g.Use = append(g.Use, ownership.Use{Host: i, Owner: m.heir(p.Owner[k]), Amount: used})
	}
}

// heir is for whom work on an owner's parcel counts: the owner, or the nearest consumer above it that a new policy has left.
func (m *Planner) heir(owner cluster.ConsumerID) plan.Node {
	if owner == cluster.NoID || mutant == 4 {
		return plan.Root
	}
	if n := m.s.NodeOf[owner]; n != plan.None {
		return n
	}
	path := m.s.Consumer.String(int32(owner))
	for {
		if n, ok := m.policy.Find(path); ok {
			return n
		}
		path = path[:max(1, strings.LastIndexByte(path, '/'))]
	}
}

// note keeps what a pass told of the rules.
func (m *Planner) note() {
	a, d := &m.owners.assigner, &m.p.Deeds
	d.AnyUnmet = a.AnyUnmet()
	for n := range plan.Node(m.policy.Len()) {
		d.Unmet[n] = a.Unmet(n)
		for dim := range d.Configured {
			if d.Configured[dim][n] = a.Configured(n, dim); mutant == 1 && d.Unmet[n] != ownership.None {
				d.Configured[dim][n] = 0
			}
		}
	}
}

// noteReserved notes what a pass reserved of what a consumer owns, of which nothing is noted.
func (m *Planner) noteReserved(n plan.Node) {
	d, host := &m.p.Deeds, m.owners.footing.host
	places, reserved := m.owners.assigner.Reserved(n)
	for _, h := range places {
		d.Keeper, d.KeptOn = append(d.Keeper, m.s.ConsumerOf[n]), append(d.KeptOn, host[h])
	}
	for dim, column := range d.Reserved {
		d.KeptAmount[dim] = append(d.KeptAmount[dim], reserved[dim]...)
		column[n] = 0
		for _, v := range reserved[dim] {
			column[n] += v
		}
	}
}

// forgetReserved takes away what is noted of what consumers reserve. O(rows).
func (m *Planner) forgetReserved(nodes []plan.Node) {
	d, kept := &m.p.Deeds, 0
	for i, c := range d.Keeper {
		if _, drop := slices.BinarySearch(nodes, m.s.NodeOf[c]); drop {
			continue
		}
		d.Keeper[kept], d.KeptOn[kept] = c, d.KeptOn[i]
		for _, column := range d.KeptAmount {
			column[kept] = column[i]
		}
		kept++
	}
	d.Keeper, d.KeptOn = d.Keeper[:kept], d.KeptOn[:kept]
	for dim, column := range d.KeptAmount {
		d.KeptAmount[dim] = column[:kept]
	}
}

// orderReserved brings what is noted of what consumers reserve into tree order, as a pass notes it. O(rows), with a logarithm.
func (m *Planner) orderReserved() {
	d := &m.p.Deeds
	rows := make([]int, len(d.Keeper))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(m.s.NodeOf[d.Keeper[a]], m.s.NodeOf[d.Keeper[b]]) })
	d.Keeper, d.KeptOn = picked(d.Keeper, rows), picked(d.KeptOn, rows)
	for dim, column := range d.KeptAmount {
		d.KeptAmount[dim] = picked(column, rows)
	}
}

// picked is some rows of a column.
func picked[T any](column []T, rows []int) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = column[row]
	}
	return out
}

// compare begins to note whose parts of which hosts a pass changed, and what of them is reserved, and tells when it has. Until then
// nothing else of deeds is to be read than what is owned, and nothing written.
func (m *Planner) compare(had *cluster.Deeds) (done chan struct{}) {
	o, now, done := &m.owners, &m.p.Deeds, make(chan struct{})
	was, is := m.inOrder(had), m.inOrder(now) // by parcels as they are
	go func() {
		o.compare(had, now, was, is)
		for n := range plan.Node(m.policy.Len()) {
			m.noteReserved(n)
		}
		close(done)
	}()
	return done
}

// compare notes the parts that are not the same in rows of what was had and of what is, both in the same order.
func (o *owners) compare(had, now *cluster.Deeds, was, is []deed) {
	more := max(0, len(is)-len(was))
	o.changes, o.by = slices.Grow(o.changes, more), slices.Grow(o.by, more*len(now.Amount))
	before, after := make([]int64, len(now.Amount)), make([]int64, len(now.Amount))
	for len(was) > 0 || len(is) > 0 {
		var c cluster.ConsumerID
		var h cluster.HostID
		if len(is) == 0 || len(was) > 0 && inOrder(had, now, was[0], is[0]) <= 0 {
			c, h = had.Consumer[was[0].row], had.Host[was[0].row]
		} else {
			c, h = now.Consumer[is[0].row], now.Host[is[0].row]
		}
		was, is = sumOf(before, had, was, c, h), sumOf(after, now, is, c, h)
		if mutant != 5 || slices.Max(after) > 0 {
			o.note(c, h, before, after)
		}
	}
}

// changedHosts lists the hosts of the parts that a pass changed, some of them several times.
func (o *owners) changedHosts() (hosts []cluster.HostID) {
	for _, one := range o.changes {
		hosts = append(hosts, one.host)
	}
	return hosts
}

// note notes a part as a change, if it is another than it was.
func (o *owners) note(c cluster.ConsumerID, h cluster.HostID, was, is []int64) {
	if slices.Equal(was, is) {
		return
	}
	o.changes = append(o.changes, change{c, h})
	for d := range is {
		o.by = append(o.by, is[d]-was[d])
	}
}

// inOrder is the rows of deeds by the consumers in tree order, those that are gone last, and the places of their hosts. They stand so
// already where no new policy or table of hosts has come in between.
func (m *Planner) inOrder(d *cluster.Deeds) []deed {
	rows, place := make([]deed, len(d.Consumer)), m.places()
	for i, c := range d.Consumer {
		rows[i] = deed{m.s.NodeOf[c], int32(place(d.Host[i])), int32(i)}
	}
	order := func(a, b deed) int { return inOrder(d, d, a, b) }
	if !slices.IsSortedFunc(rows, order) {
		slices.SortStableFunc(rows, order)
	}
	return rows
}

// inOrder compares rows a of one table of deeds and b of another.
func inOrder(one, other *cluster.Deeds, a, b deed) int {
	if (a.node == plan.None) != (b.node == plan.None) {
		return cmp.Compare(b.node, a.node) // those that are gone last
	}
	if a.node != b.node {
		return cmp.Compare(a.node, b.node)
	}
	return cmp.Or(cmp.Compare(one.Consumer[a.row], other.Consumer[b.row]), cmp.Compare(a.place, b.place))
}

// sumOf adds up the pieces of a consumer's part of a host, which come first among the rows, and gives the rows behind them.
func sumOf(sum []int64, d *cluster.Deeds, rows []deed, c cluster.ConsumerID, h cluster.HostID) []deed {
	clear(sum)
	for ; len(rows) > 0 && d.Consumer[rows[0].row] == c && d.Host[rows[0].row] == h; rows = rows[1:] {
		for dim := range sum {
			sum[dim] += d.Amount[dim][rows[0].row]
		}
	}
	return rows
}

// places gives hosts their places in host order; those that left the plan stand behind, in the order of the hosts table.
func (m *Planner) places() func(h cluster.HostID) int {
	var order map[cluster.HostID]int
	return func(h cluster.HostID) int {
		if m.s.Host.Plan[h] == m.p.Index {
			return int(m.s.Host.Parcel[h])
		}
		if order == nil {
			order = make(map[cluster.HostID]int, len(m.s.Host.Order))
			for i, id := range m.s.Host.Order {
				order[id] = i
			}
		}
		if i, ok := order[h]; ok {
			return m.p.Parcels.Len() + i
		}
		return m.p.Parcels.Len() + len(order) + int(h)
	}
}

// layOwners tells leaves their parcels, and parcels the first of the plan's groups that has their host.
func (m *Planner) layOwners() {
	o, p, n := &m.owners, &m.p.Parcels, m.policy.Len()
	o.group, o.first, o.row, o.parcel = zeroed(o.group, p.Len()), zeroed(o.first, n+2), resized(o.row, p.Len()), resized(o.parcel, p.Len())
	for i := len(m.p.MD.Groups) - 1; i >= 0; i-- {
		for _, h := range m.s.Members(m.p.MD.Groups[i].Group) {
			for k, end := m.s.Host.Parcel[h], p.End(m.s.Host.Parcel[h]); k < end; k++ {
				o.group[k] = int32(i)
			}
		}
	}
	for _, owner := range p.Owner {
		if owner != cluster.NoID {
			o.first[m.s.NodeOf[owner]+2]++
		}
	}
	for i := range n {
		o.first[i+1] += o.first[i]
	}
	for k, owner := range p.Owner {
		if owner != cluster.NoID {
			at := &o.first[m.s.NodeOf[owner]+1]
			o.parcel[*at], o.row[k] = cluster.ParcelID(k), *at
			*at++
		}
	}
	o.parcel = o.parcel[:o.first[n]]
}

// owned is the parcels of a consumer's own, in host order. Read them only.
func (m *Planner) owned(n plan.Node) []cluster.ParcelID {
	if !m.p.Parcels.Owned {
		return nil
	}
	return m.owners.parcel[m.owners.first[n]:m.owners.first[n+1]]
}

// preference is how much a leaf prefers a parcel of its own: 1 is best (MD-6).
func (m *Planner) preference(leaf plan.Node, k cluster.ParcelID) int8 {
	return m.set.Preference[m.owners.group[k]][leaf]
}

// owns is what the rules of a consumer ask for, what it owns and what of that is reserved, in a dimension.
func (m *Planner) owns(n plan.Node, d int) (configured, owned, reserved int64) {
	deeds := &m.p.Deeds
	if deeds.Configured == nil {
		return 0, 0, 0
	}
	return deeds.Configured[d][n], m.amounts.owned[d][n], deeds.Reserved[d][n]
}
