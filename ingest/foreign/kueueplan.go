package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// flavorGroups makes a resource group of each flavor that has a quota.
func (k *kueue) flavorGroups() {
	var names []string
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		for _, q := range o.quotas {
			if slices.Contains(names, q.flavor) {
				continue
			}
			names = append(names, q.flavor)
			if !slices.ContainsFunc(k.flavors, func(f *kueueObject) bool { return f.name == q.flavor }) {
				k.result.Report.Add(o.file, q.line, "flavor "+q.flavor,
					"there is no ResourceFlavor of that name: it counts as one without labels")
				k.flavors = append(k.flavors,
					&kueueObject{node: &node{line: q.line}, file: o.file, kind: "ResourceFlavor", name: q.flavor})
			}
		}
	}
	for _, f := range k.flavors {
		k.known(f, f.at("spec"), "", []string{"nodeLabels", "topologyName"}, kueueLost)
		if !slices.Contains(names, f.name) {
			k.result.Report.Add(f.file, f.line, "ResourceFlavor "+f.name,
				"nobody has a quota of it: its hosts are in no plan")
			continue
		}
		k.result.Report.Carry("flavor", 1)
		if k.hostsOf(f.name) != f.name {
			continue
		}
		k.p.groups = append(k.p.groups, group{name: f.name,
			choose: fmt.Sprintf("select(%s == '%s')", kueueFlavor, attributeText(kueueFlavor, f.name))})
		switch why := nameFault(f.name); {
		case why != "":
			k.faults.add(f.file, f.line, "flavor %q %s", f.name, why)
		case strings.ContainsAny(f.name, "'\\"):
			k.faults.add(f.file, f.line, "flavor %q: a name must not have quotes in it", f.name)
		}
	}
}

// makeHosts makes hosts of nodes, or one a flavor that has all quotas of it.
func (k *kueue) makeHosts() {
	if len(k.nodes) > 0 {
		for _, n := range k.nodes {
			k.host(n)
		}
		if !slices.ContainsFunc(k.hosts, func(h hostRow) bool { return h.text[kueueFlavor] != "" }) {
			k.faults.add(k.nodes[0].file, k.nodes[0].line, "Node %s: neither it nor another node has the labels of a "+
				"flavor: nobody could get anything; give the nodes of the flavors, or no nodes", k.nodes[0].name)
		}
		k.tooMuch()
		return
	}
	if len(k.p.groups) > 0 {
		k.result.Report.Add(k.queues[0].file, 0, "nodes",
			"the files have none: each flavor has one host, with all quotas of it")
	}
	for _, g := range k.p.groups {
		h := hostRow{name: "flavor-" + g.name, size: map[string]int64{}, text: map[string]string{
			kueueFlavor: attributeText(kueueFlavor, g.name)}}
		for _, o := range slices.Concat(k.cohorts, k.queues) {
			for _, q := range o.quotas {
				if q.flavor == g.name {
					h.size[k.p.dims[q.dim]] = min(swfNumberMax, h.size[k.p.dims[q.dim]]+q.nominal)
				}
			}
		}
		k.hosts = append(k.hosts, h)
	}
}

// host makes a host of a node, of the flavor whose labels it has; of several the one with most labels.
func (k *kueue) host(n *kueueObject) {
	h := hostRow{name: n.name, size: map[string]int64{}, text: map[string]string{},
		closed: n.value("spec", "unschedulable") == "true"}
	var best *kueueObject
	labels := -1
	for _, f := range k.flavors {
		want := f.at("spec", "nodeLabels")
		fits := true
		if want != nil {
			for _, key := range want.keys {
				fits = fits && n.value("metadata", "labels", key) == want.fields[key].text
			}
		}
		if count := 0; fits {
			if want != nil {
				count = len(want.keys)
			}
			if count == labels {
				k.result.Report.Add(n.file, n.line, "a node's second flavor",
					fmt.Sprintf("it has the labels of %s too, and counts to %s", f.name, best.name))
			}
			if count > labels {
				best, labels = f, count
			}
		}
	}
	if best == nil {
		k.result.Report.Add(n.file, n.line, "a node", "it has the labels of no flavor: it is in no plan")
	} else {
		h.text[kueueFlavor] = attributeText(kueueFlavor, k.hostsOf(best.name))
		k.locate(n, best, &h)
	}
	k.allocatable(n.file, n.name, n.node, h.size)
	k.result.Report.Carry("node", 1)
	k.hosts = append(k.hosts, h)
}

// tooMuch lists quotas that are more than the nodes have.
func (k *kueue) tooMuch() {
	for _, g := range k.p.groups {
		for d, name := range k.p.dims {
			has, quota := int64(0), int64(0)
			for _, h := range k.hosts {
				if h.text[kueueFlavor] == attributeText(kueueFlavor, g.name) {
					has += h.size[name]
				}
			}
			for _, o := range slices.Concat(k.cohorts, k.queues) {
				for _, q := range o.quotas {
					if q.flavor == g.name && q.dim == d {
						quota += q.nominal
					}
				}
			}
			if quota > has {
				k.result.Report.Add(k.queues[0].file, 0,
					fmt.Sprintf("quotas of %s in flavor %s: %d in all", name, g.name, quota),
					fmt.Sprintf("its nodes have %d: who comes last in the file owns less", has))
			}
		}
	}
}

// plan makes the entries of all consumers.
func (k *kueue) plan() {
	m := madePlan{name: kueuePlan}
	for _, g := range k.p.groups {
		m.groups = append(m.groups, g.name)
	}
	var roots []*kueueObject
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		if o.parent == "" {
			roots = append(roots, o)
		}
	}
	for _, o := range roots {
		e := k.entry(o, 0) // nothing of other cohorts
		e.keepsAll = true  // and nothing for them
		m.entries = append(m.entries, e)
		k.entries(&m, o)
	}
	k.p.plans = []madePlan{m}
}

// entries makes the entries of those below a cohort or queue.
func (k *kueue) entries(m *madePlan, up *kueueObject) {
	weights := make([]float64, len(up.children))
	for i, c := range up.children {
		weights[i] = 1
		if w := c.at("spec", "fairSharing", "weight"); w != nil && w.text != "" {
			v, ok := rational(w.text)
			if !ok {
				k.faults.add(c.file, w.line, "%s %s: weight %q: must be a quantity from 0 on", c.kind, c.name, w.text)
				continue
			}
			weights[i], _ = v.Float64()
			k.result.Report.Carry("fair sharing weight", 1)
		}
	}
	list := ratios(weights)
	for i, c := range up.children {
		e := k.entry(c, max(1, list[i]))
		if weights[i] == 0 {
			e.priority = -1 // it gets what the others leave
		}
		m.entries = append(m.entries, e)
		k.entries(m, c)
	}
}

// entry makes what a consumer has in the plan.
func (k *kueue) entry(o *kueueObject, ratio int64) *entry {
	e := &entry{path: o.path, ratio: ratio, remark: fmt.Sprintf("%s, line %d", o.kind, o.line)}
	owns := k.owns(o)
	for _, g := range k.p.groups {
		if amount := owns[g.name]; amount != nil && slices.ContainsFunc(amount, func(n int64) bool { return n > 0 }) {
			e.own = append(e.own, owned{g.name, amount})
		}
	}
	k.limits(o, e, owns)
	k.preemption(o)
	e.asks, e.prefers = make([]bool, len(k.p.dims)), map[string]int{}
	for _, q := range o.quotas {
		if e.prefers[q.flavor] == 0 {
			e.prefers[q.flavor] = min(10, len(e.prefers)+1)
		}
		e.asks[q.dim] = true
	}
	if o.kind == "LocalQueue" {
		e.asks = k.asks(o)
	}
	return e
}

// asks are the resources that a local queue's cluster queue has quotas of.
func (k *kueue) asks(o *kueueObject) []bool {
	asks := make([]bool, len(k.p.dims))
	for _, q := range k.queues {
		if q.name == o.value("spec", "clusterQueue") {
			for _, one := range q.quotas {
				asks[one.dim] = true
			}
		}
	}
	return asks
}

// owns is what an object and all below it have quotas of, by flavor and dimension.
func (k *kueue) owns(o *kueueObject) map[string][]int64 {
	by := map[string][]int64{}
	add := func(flavor string, d int, n int64) {
		if by[flavor] == nil {
			by[flavor] = make([]int64, len(k.p.dims))
		}
		by[flavor][d] = min(swfNumberMax, by[flavor][d]+n)
	}
	for _, q := range o.quotas {
		add(q.flavor, q.dim, q.nominal)
	}
	for _, c := range o.children {
		for flavor, amount := range k.owns(c) {
			for d, n := range amount {
				add(flavor, d, n)
			}
		}
	}
	return by
}

// limits gives an entry what it may borrow, and what it does not lend.
func (k *kueue) limits(o *kueueObject, e *entry, owns map[string][]int64) {
	limit, keeps := filled(len(k.p.dims), none), make([]int64, len(k.p.dims))
	with, flavors := make([]int, len(k.p.dims)), make([]int, len(k.p.dims))
	for _, q := range o.quotas {
		flavors[q.dim]++
		if q.borrow != none {
			with[q.dim]++
			limit[q.dim] = max(0, limit[q.dim]) + q.borrow
		}
		if q.lend != none {
			keeps[q.dim] += max(0, owns[q.flavor][q.dim]-q.lend)
		}
	}
	for d := range limit {
		switch {
		case with[d] > 0 && with[d] < flavors[d]:
			limit[d] = none
			k.result.Report.Add(o.file, o.line, "borrowing limits of single flavors",
				"a limit is of a dimension over all flavors, and one of them has none")
		case with[d] > 1:
			k.result.Report.Add(o.file, o.line, "borrowing limits of single flavors",
				"a limit is of a dimension over all flavors: it is their sum")
		}
	}
	e.limit, e.reserve = limit, keeps
	if o.parent == "" && slices.ContainsFunc(o.quotas,
		func(q kueueQuota) bool { return q.borrow != none || q.lend != none }) {
		k.result.Report.Add(o.file, o.line, "limits of "+o.kind+" "+o.name,
			"it belongs to no cohort above it: there is nobody to borrow from or lend to")
	}
}

// preemption lists what a cluster queue says of preemption and is otherwise here.
func (k *kueue) preemption(o *kueueObject) {
	if o.kind != "ClusterQueue" {
		return
	}
	p := o.at("spec", "preemption")
	if v := p.value("reclaimWithinCohort"); v != "Any" && o.parent != "" {
		line := o.line
		if p != nil {
			line = p.line
		}
		if v == "" {
			v = "Never, which is the default"
		}
		k.result.Report.Add(o.file, line, "reclaimWithinCohort: "+v,
			"an owner takes back what it lends from whoever has it, as with Any; `reclaim_grace` gives them time")
	}
	if v := p.at("withinClusterQueue"); v != nil && v.text != "Never" {
		k.result.Report.Add(o.file, v.line, "withinClusterQueue: "+v.text,
			jobPriority.lack()+", and do not take from each other")
	}
	if v := p.at("borrowWithinCohort"); v != nil && v.value("policy") != "Never" {
		k.result.Report.Add(o.file, v.line, "borrowWithinCohort",
			"who borrows takes from others by fair shares, whatever the priorities of their work")
	}
	k.known(o, p, "preemption.", []string{"reclaimWithinCohort", "withinClusterQueue", "borrowWithinCohort"}, nil)
}

// workloads makes demand of workloads that are not finished.
func (k *kueue) workloads() {
	for _, w := range k.work {
		name := w.value("spec", "queueName")
		i := slices.IndexFunc(k.locals, func(l *kueueObject) bool { return l.name == name && l.space == w.space })
		switch {
		case k.finished(w):
			k.result.Report.Add(w.file, w.line, "a workload", "it is finished")
			continue
		case w.value("spec", "active") == "false":
			k.result.Report.Add(w.file, w.line, "a workload", "it is not active")
			continue
		case i < 0:
			k.result.Report.Add(w.file, w.line, "a workload",
				fmt.Sprintf("there is no LocalQueue %s in its namespace", name))
			continue
		}
		k.known(w, w.at("spec"), "", []string{"queueName", "podSets", "active"}, map[string]string{
			"priority":                    jobPriority.lack(),
			"priorityClassName":           jobPriority.lack(),
			"priorityClassSource":         jobPriority.lack(),
			"priorityClassRef":            jobPriority.lack(),
			"maximumExecutionTimeSeconds": "the life of work is the client's affair",
		})
		k.podSets(w, k.locals[i].path)
	}
}

// finished tells whether a workload has come to its end.
func (k *kueue) finished(w *kueueObject) bool {
	list := w.at("status", "conditions")
	return list != nil && slices.ContainsFunc(list.items, func(c *node) bool {
		return c.value("type") == "Finished" && c.value("status") == "True"
	})
}

// podSets makes a row of each pod set: as many units as pods, as large as what the containers of one request.
func (k *kueue) podSets(w *kueueObject, consumer string) {
	sets := w.at("spec", "podSets")
	if sets == nil {
		return
	}
	if len(sets.items) > 1 {
		k.result.Report.Add(w.file, sets.items[1].line, "a workload with several pod sets",
			"each pod set is a gang by itself: one may start before the others")
	}
	for _, s := range sets.items {
		row := demandRow{consumer: consumer, allocation: w.space + "." + w.name, sub: s.value("name"), units: 1,
			size: make([]int64, len(k.p.dims))}
		if !k.counts(w, s, &row) {
			continue
		}
		k.gather(w, s, &row)
		k.known(w, s, "podSets.", []string{"name", "count", "minCount", "topologyRequest", "template"}, nil)
		spec := s.at("template", "spec")
		if c := spec.at("containers"); c != nil {
			for _, one := range c.items {
				k.requests(w, one.at("resources", "requests"), row.size)
			}
		}
		for _, key := range []string{"initContainers", "nodeSelector", "affinity", "tolerations"} {
			if v := spec.at(key); v != nil {
				k.result.Report.Add(w.file, v.line, "Workload: "+key,
					"where a pod may run is `requirement` of a row of demand, and what it needs the sum of its "+
						"containers")
			}
		}
		if !slices.ContainsFunc(row.size, func(n int64) bool { return n > 0 }) {
			k.result.Report.Add(w.file, s.line, "a pod set", "its containers request nothing that a quota is of")
			continue
		}
		k.demand = append(k.demand, row)
		k.result.Report.Carry("pod set of workload", 1)
	}
}

// counts reads how many pods a pod set has, and with how many of them Kueue may start it. It returns false where they
// are no numbers.
func (k *kueue) counts(w *kueueObject, set *node, row *demandRow) bool {
	read := func(key string, missing int64) (int64, bool) {
		c := set.at(key)
		if c == nil || c.text == "" {
			return missing, true
		}
		n, exact, ok := quantity(c.text, quantitySuffix[""])
		if !ok || !exact {
			k.faults.add(w.file, c.line, "Workload %s: %s %q: must be a whole number", w.name, key, c.text)
		}
		return n, ok && exact
	}
	var ok bool
	if row.units, ok = read("count", 1); !ok {
		return false
	}
	if row.least, ok = read("minCount", row.units); !ok {
		return false
	}
	row.least = max(1, min(row.least, row.units))
	return true
}

// requests adds what a container requests to a size.
func (k *kueue) requests(w *kueueObject, r *node, size []int64) {
	if r == nil {
		return
	}
	for _, resource := range r.keys {
		d := k.p.dimKnown(resource)
		if d < 0 {
			k.result.Report.Add(w.file, r.fields[resource].line, "Workload: requests of "+resource,
				"nobody has a quota of it")
			continue
		}
		if n, ok := k.amount(w.file, r.fields[resource], resource, "Workload "+w.name+": requests"); ok {
			size[d] += n
		}
	}
}

// inOrder are the flavors of preferences, best first.
func inOrder(prefers map[string]int) []string {
	names := slices.Sorted(maps.Keys(prefers))
	slices.SortStableFunc(names, func(a, b string) int { return prefers[a] - prefers[b] })
	return names
}

// nothingToShare refuses queues none of which has a quota: there would be no resource to divide.
func (k *kueue) nothingToShare() {
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		if len(o.quotas) > 0 {
			return
		}
	}
	if k.faults.count == 0 {
		o := k.queues[0]
		k.faults.add(o.file, o.line, "%s %s: no queue has resourceGroups with a nominalQuota, so that nothing is "+
			"there to divide; add the quotas", o.kind, o.name)
	}
}
