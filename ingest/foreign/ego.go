package foreign

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// EGOFiles are the files of a cluster of Platform EGO. Each may be missing, but one of Allocation, MDPlan and Trees is
// needed.
type EGOFiles struct {
	Allocation *File // the reporting table CONSUMER_RESOURCE_ALLOCATION, CSV
	Groups     *File // ResourceGroups.xml
	MDPlan     *File // MDPlan.xml
	Trees      *File // ConsumerTrees.xml
	Resources  *File // what egosh resource list -ll prints

	Zone *time.Location // of the plan's windows; nil: as the table tells
}

// ego is a cluster while its files are read.
type ego struct {
	faults  faults
	result  *Result
	p       policy
	defs    []egoGroupDef
	hosts   []hostRow
	hostAt  map[string]int
	tags    []string // attributes of hosts that requirements name
	history *History
	trees   []*egoTree
	order   []string // consumers as ConsumerTrees.xml has them
	zone    *time.Location
}

// EGO reads the files of a cluster. Of a reporting table it makes a slot plan for each resource group, a scenario, and
// what is needed to play its whole time (Result.History, Play); of MDPlan.xml a multidimensional plan. Faults name
// file, line, value and reason.
func EGO(f EGOFiles) (*Result, error) {
	if f.Allocation == nil && f.MDPlan == nil && f.Trees == nil {
		return nil, errors.New("no plan: the reporting table, MDPlan.xml or ConsumerTrees.xml is needed")
	}
	g := &ego{result: &Result{Name: "ego"}, hostAt: map[string]int{}, zone: time.UTC}
	g.p.cluster = "ego"
	for _, one := range []struct {
		file *File
		read func(*File) error
	}{{f.Resources, g.resources}, {f.Groups, g.groups}, {f.Trees, g.consumerTrees}, {f.MDPlan, g.mdPlan}} {
		if one.file == nil {
			continue
		}
		if err := one.read(one.file); err != nil {
			return nil, err
		}
	}
	if f.Groups != nil && f.Resources != nil {
		g.makeGroups(f.Groups.Name)
	}
	if err := g.faults.err(); err != nil {
		return nil, err
	}
	if f.Allocation != nil {
		if err := g.allocation(f.Allocation, f.Zone); err != nil {
			return nil, err
		}
	} else {
		g.treePlans(f.Trees)
	}
	return g.finish(&f)
}

// allocation reads the reporting table and makes slot plans of it.
func (g *ego) allocation(f *File, zone *time.Location) error {
	t := &egoTable{file: f.Name, faults: &g.faults, report: &g.result.Report, zone: zone}
	if err := t.read(f.R); err != nil {
		return err
	}
	if err := g.faults.err(); err != nil {
		return err
	}
	var err error
	if g.zone, err = t.timezone(); err != nil {
		return err
	}
	if g.history, err = t.history(); err != nil {
		return err
	}
	if t.cluster != "" {
		g.p.cluster = t.cluster
	}
	if g.zone != time.UTC {
		g.p.timezone = g.zone.String()
	}
	g.result.Report.Carry("reporting row", t.rows)
	g.leaveMD(f.Name)
	if len(g.history.Lines) == 0 {
		g.history = nil
		return nil
	}
	plans := egoPlans(g.history, g.zone, f.Name, &g.result.Report)
	g.tree(f.Name)
	for _, p := range plans {
		s := egoSlots{file: f.Name, faults: &g.faults, report: &g.result.Report, h: g.history, p: p,
			paths: g.pathsOf(p)}
		made := s.plan()
		g.placement(made, f.Name)
		g.p.slots = append(g.p.slots, made)
		g.result.Report.Carry("slot plan", 1)
		g.result.Report.Carry("time window", len(made.windows))
	}
	g.history.keepLeaves()
	return g.faults.err()
}

// leaveMD drops lines of groups that MDPlan.xml divides: a host is in one plan, and slots are not what that plan
// counts.
func (g *ego) leaveMD(file string) {
	told := map[string]bool{}
	g.history.Lines = slices.DeleteFunc(g.history.Lines, func(l HistoryLine) bool {
		md := g.inMD(l.Plan)
		if md && !told[l.Plan] {
			told[l.Plan] = true
			g.result.Report.Add(file, 0, "the rows of "+l.Plan,
				"MDPlan.xml divides the group in several dimensions; the table counts slots")
		}
		return md
	})
}

// inMD tells whether a resource group is in a multidimensional plan.
func (g *ego) inMD(name string) bool {
	return slices.ContainsFunc(g.p.plans, func(m madePlan) bool { return slices.Contains(m.groups, name) })
}

// keepLeaves drops the lines of branches and the settings: they are in the plan.
func (h *History) keepLeaves() {
	h.Lines = slices.DeleteFunc(h.Lines, func(l HistoryLine) bool { return !l.leaf })
	for i := range h.Lines {
		h.Lines[i].setting, h.Lines[i].settings = nil, nil
	}
}

// tree puts the consumers in order: as in ConsumerTrees.xml, else as the table first names them, children behind their
// parents.
func (g *ego) tree(file string) {
	known := map[string]bool{}
	for _, path := range slices.Concat(g.order, g.p.consumers) {
		known[path] = true
	}
	first := g.order
	for i := range g.history.Lines {
		path := g.history.Lines[i].Consumer
		if !known[path] && len(g.order) > 0 {
			g.result.Report.Add(file, 0, "consumer "+path, "ConsumerTrees.xml does not have it; it comes last")
		}
		known[path] = true
		first = append(first, path)
	}
	g.p.consumers = preorder(slices.Concat(first, g.p.consumers))
	inTable := map[string]bool{}
	for i := range g.history.Lines {
		for up := g.history.Lines[i].Consumer; up != ""; up = parentOf(up) {
			inTable[up] = true
		}
	}
	for _, path := range g.order {
		if !inTable[path] {
			g.result.Report.Add(file, 0, "consumer "+path,
				"ConsumerTrees.xml has it, the table has no row of it: it takes no part in a plan")
		}
	}
}

// preorder lists paths and those above them once each: siblings in the order in which they first come, children behind
// their parent.
func preorder(paths []string) (list []string) {
	children, seen := map[string][]string{}, map[string]bool{}
	for _, path := range paths {
		var way []string
		for up := path; up != "" && !seen[up]; up = parentOf(up) {
			seen[up] = true
			way = append(way, up)
		}
		for _, one := range slices.Backward(way) {
			children[parentOf(one)] = append(children[parentOf(one)], one)
		}
	}
	var walk func(path string)
	walk = func(path string) {
		for _, c := range children[path] {
			list = append(list, c)
			walk(c)
		}
	}
	walk("")
	return list
}

// pathsOf are the consumers of a plan, with those above them, in the order of the policy.
func (g *ego) pathsOf(p *egoPlan) []string {
	in := map[string]bool{}
	for _, n := range p.lines {
		for up := g.history.Lines[n].Consumer; up != ""; up = parentOf(up) {
			in[up] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(g.p.consumers), func(path string) bool { return !in[path] })
}

// finish makes hosts where the files name none, and tables.
func (g *ego) finish(f *EGOFiles) (*Result, error) {
	g.p.heading = []string{"A cluster of Platform EGO: see docs/import.md for what its words became."}
	if g.history != nil {
		g.p.heading = append(g.p.heading, "The plan is that of "+oneLine(f.Allocation.Name)+", as it was last.")
	}
	if len(g.hosts) > 0 && f.Groups == nil {
		g.result.Report.Add(f.Resources.Name, 0, "the list of hosts",
			"ResourceGroups.xml is needed too: it tells which hosts a group has, and their slots")
		g.hosts, g.p.dims = nil, nil
	}
	if f.Groups != nil && len(g.hosts) == 0 {
		g.result.Report.Add(f.Groups.Name, 0, "the resource groups",
			"the list of hosts is needed too: egosh resource list -ll")
		g.p.groups = nil
	}
	if len(g.p.dims) == 0 {
		g.p.dims = []string{"slots"}
	}
	for _, s := range g.p.slots {
		g.madeUp(s.group)
	}
	if len(g.p.plans) > 0 && len(g.hosts) == 0 {
		return nil, fmt.Errorf("%s divides hosts: the list of hosts and ResourceGroups.xml are needed too",
			f.MDPlan.Name)
	}
	if len(g.p.consumers) > consumersMax {
		return nil, fmt.Errorf("%s: there are %d consumers; %d are the most", f.plans(), len(g.p.consumers),
			consumersMax)
	}
	r := g.result
	read, err := g.p.build(r, g.hosts)
	if err != nil {
		return nil, err
	}
	attrs := attributes{table: r.Dataset.Hosts, at: map[string]int{}}
	for i := range r.Dataset.Hosts.Attr {
		attrs.at[r.Dataset.Hosts.Attr[i].Name] = i
	}
	for _, tag := range g.tags {
		attrs.column(tag, plan.Boolean)
	}
	slots, err := g.slots(r)
	if err != nil {
		return nil, fmt.Errorf("%s: hosts and resource groups do not go together:\n%w", f.plans(), err)
	}
	if g.history == nil {
		r.demand(g.everything(slots))
		_, err := prove(read, r.Dataset, false)
		return r, err
	}
	g.compareSlots(slots, f.Allocation.Name)
	r.History, r.Zone = g.history, g.zone
	r.demand(g.history.demandAt(g.history.busiest(), len(g.p.dims), len(g.p.slots) > 1))
	r.Play, err = g.playable(slots)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.plans(), err)
	}
	return r, nil
}

// plans is the name of the file that has the plans.
func (f *EGOFiles) plans() string {
	for _, one := range []*File{f.Allocation, f.MDPlan, f.Trees} {
		if one != nil {
			return one.Name
		}
	}
	return ""
}

// madeUp makes a group and a host of it that has as many slots as the table shows, where the files name no group of its
// name.
func (g *ego) madeUp(name string) {
	if slices.ContainsFunc(g.p.groups, func(o group) bool { return o.name == name }) {
		return
	}
	made := group{name: name}
	if g.history != nil {
		n := max(g.history.mostHeld(name), 1)
		host := hostRow{name: "all of " + name, size: map[string]int64{"slots": n}}
		made.slots, made.hosts = fmt.Sprint(n), []string{host.name}
		g.hosts = append(g.hosts, host)
		g.result.Report.Add(name, 0, "how many slots "+name+" has", fmt.Sprintf(
			"no file tells its hosts; it is one host with the most slots that the table has in use at one time, %d", n))
	}
	g.p.groups = append(g.p.groups, made)
}

// mostHeld is the most slots of a plan that were held at one time.
func (h *History) mostHeld(plan string) (most int64) {
	sum := make([]int64, len(h.AtUS))
	for i := range h.Lines {
		l := &h.Lines[i]
		for at := range l.Demand {
			if l.Plan == plan && l.Demand[at] != NotTold {
				sum[at] += int64(l.Own[at]) + int64(l.Share[at]) + int64(l.Borrow[at])
			}
		}
	}
	for _, n := range sum {
		most = max(most, n)
	}
	return most
}

// slots is how many slots each slot plan has on hosts that are ok.
func (g *ego) slots(r *Result) (map[string]int64, error) {
	p, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		return nil, err
	}
	s, err := cluster.New(p)
	if err != nil {
		return nil, err
	}
	if err := s.SetHosts(r.Dataset.Hosts, true); err != nil {
		return nil, err
	}
	by := map[string]int64{}
	for i := range s.Plans {
		if s.Plans[i].Slots == nil {
			continue
		}
		for k, n := range s.Plans[i].Parcels.Cap[0] {
			if s.Plans[i].Parcels.IsOpen(cluster.ParcelID(k)) {
				by[s.Plans[i].Name] += n
			}
		}
	}
	return by, nil
}

// compareSlots tells where the table has more slots in use than the hosts have.
func (g *ego) compareSlots(slots map[string]int64, file string) {
	for _, s := range g.p.slots {
		if most := g.history.mostHeld(s.group); most > slots[s.group] {
			g.result.Report.Add(file, 0, fmt.Sprintf("%d slots of %s in use at one time", most, s.group),
				fmt.Sprintf("the hosts that are up have %d: what is compared is what these could give", slots[s.group]))
		}
	}
}

// Playable is a policy by which the time of a history can be played fast: the slots of each plan are on a few hosts. A
// unit of a history takes one slot and has no requirement, so that hosts matter to nobody's figures but by ties (D-74).
type Playable struct {
	Plan  []byte
	Hosts *cluster.HostTable
}

// playHosts is how many hosts a plan has that is played: the fewer, the more holdings are on each, and the more, the
// more are looked through for room. 32 was the fastest of 1 to 512 on the table of stint gen reporting.
const playHosts = 32

func (g *ego) playable(slots map[string]int64) (*Playable, error) {
	p := policy{cluster: g.p.cluster, dims: []string{"slots"}, consumers: g.p.consumers, slots: g.p.slots,
		timezone: g.p.timezone}
	var hosts []hostRow
	for _, s := range g.p.slots {
		if slots[s.group] == 0 {
			return nil, fmt.Errorf("resource group %s has no slots on hosts that are up; give it hosts, "+
				"or leave out the files of hosts", s.group)
		}
		made := group{name: s.group}
		n := min(slots[s.group], playHosts)
		for i := range n { // slots that do not divide evenly go to the first
			each := slots[s.group] / n
			if i < slots[s.group]%n {
				each++
			}
			host := hostRow{name: fmt.Sprintf("%s %d", s.group, i+1), size: map[string]int64{"slots": each}}
			made.hosts, hosts = append(made.hosts, host.name), append(hosts, host)
		}
		p.groups = append(p.groups, made)
	}
	text := p.text()
	if _, err := plan.Parse("plan.yaml", text); err != nil {
		return nil, fmt.Errorf("the policy that the files give has faults:\n%w", err)
	}
	return &Playable{text, hostTable(p.dims, hosts)}, nil
}

// busiest is the instant at which most is asked for.
func (h *History) busiest() (at int) {
	sum := make([]int64, len(h.AtUS))
	for i := range h.Lines {
		for k, n := range h.Lines[i].Demand {
			sum[k] += int64(max(n, 0))
		}
	}
	return slices.Index(sum, slices.Max(sum))
}

// egoAllocation is the name of the allocation that each leaf has.
const egoAllocation = "slots"

// demandAt is the table of what leaves ask for at an instant: units of one slot. Leaves that ask for nothing have no
// row.
func (h *History) demandAt(at, dims int, named bool) *cluster.DemandTable {
	t := &cluster.DemandTable{Consumer: column(), Allocation: column(), Sub: column(), Plan: column(),
		Requirement: column(), Size: make([][]int64, dims)}
	for i := range h.Lines {
		l := &h.Lines[i]
		if l.Demand[at] <= 0 {
			continue
		}
		t.Rows++
		t.Consumer.Code = append(t.Consumer.Code, t.Consumer.Names.InternString(l.Consumer))
		t.Allocation.Code = append(t.Allocation.Code, t.Allocation.Names.InternString(egoAllocation))
		t.Units = append(t.Units, int64(l.Demand[at]))
		if named {
			t.Plan.Code = append(t.Plan.Code, t.Plan.Names.InternString(l.Plan))
		}
	}
	return t
}

// everything is the demand in which each leaf of every plan asks for all there is.
func (g *ego) everything(slots map[string]int64) *cluster.DemandTable {
	h := History{}
	for _, s := range g.p.slots {
		for i, e := range s.entries {
			if i+1 == len(s.entries) || !below(s.entries[i+1].path, e.path) {
				h.Lines = append(h.Lines,
					HistoryLine{Plan: s.group, Consumer: e.path,
						Demand: []int32{int32(min(slots[s.group], egoSlotsMax))}})
			}
		}
	}
	if len(h.Lines) > 0 {
		return h.demandAt(0, len(g.p.dims), true)
	}
	return g.p.everything(func(name string) (list []hostRow) {
		for i := range g.p.plans {
			if g.p.plans[i].name == name {
				list = g.hostsOf(g.p.plans[i].groups)
			}
		}
		return list
	})
}

// hostsOf are the hosts of groups: of those chosen by an expression all hosts.
func (g *ego) hostsOf(groups []string) (list []hostRow) {
	for _, h := range g.hosts {
		if slices.ContainsFunc(g.p.groups, func(o group) bool {
			return slices.Contains(groups, o.name) && (o.choose != "" || slices.Contains(o.hosts, h.name))
		}) {
			list = append(list, h)
		}
	}
	return list
}

// placement is what ConsumerTrees.xml says of a plan's placement.
func (g *ego) placement(s *slotPlan, file string) {
	for _, t := range g.trees {
		if by, ok := t.placement[s.group]; ok {
			s.placement = by
		}
		for path, ratio := range t.ratio {
			for i := range s.entries {
				if e := &s.entries[i]; e.path == path && t.has(s.group) && !e.shares(ratio) {
					g.result.Report.Add(t.file, t.line[path], "Shares of "+path,
						"the table has another SHARE_RATIO, or counts it in other units; the table counts")
				}
			}
		}
	}
}
