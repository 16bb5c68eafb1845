package foreign

import (
	"fmt"
	"slices"
	"strings"
)

// kueuePlan is the plan of all queues; kueueFlavor is the attribute of hosts that names their flavor.
const (
	kueuePlan   = "kueue"
	kueueFlavor = "flavor"
)

// kueue is a set of manifests while it is read.
type kueue struct {
	kube
	flavors []*kueueObject
	cohorts []*kueueObject // first those that are given, then those that are only named
	queues  []*kueueObject // cluster queues
	locals  []*kueueObject // local queues
	nodes   []*kueueObject
	work    []*kueueObject
	hosts   []hostRow
	demand  []demandRow
	joined  map[string]string // flavor whose hosts are those of a different one: that one

	topologies []*kueueObject
	located    map[string]int // label of a level at which some host has a place: how deep it lies, from 1
}

// kueueObject is a manifest.
type kueueObject struct {
	*node
	file  string
	kind  string
	space string // namespace
	name  string

	parent   string // the cohort that it belongs to, "": none
	quotas   []kueueQuota
	children []*kueueObject
	path     string
}

// kueueQuota is what a cluster queue or cohort has of a resource in a flavor.
type kueueQuota struct {
	flavor                string
	dim                   int
	nominal, borrow, lend int64 // none where there is no limit
	line                  int
}

// Kueue reads manifests of Kueue: cluster queues, cohorts, flavors, local queues; and of Kubernetes nodes and of
// workloads where they are among them. Faults name file, line, value and reason.
func Kueue(files []File) (*Result, error) {
	k := &kueue{kube: kube{result: &Result{Name: "kueue"}, units: kubeUnits}}
	k.p.names.fix(kueueFlavor)
	k.p.cluster = "kueue"
	if err := eachManifest(files, k.object); err != nil {
		return nil, err
	}
	if len(k.queues) == 0 && k.faults.count == 0 {
		return nil, fmt.Errorf("%s: no ClusterQueue in it", files[0].Name)
	}
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		k.spec(o)
	}
	k.nothingToShare()
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		for i := range o.quotas {
			o.quotas[i].flavor = k.hostsOf(o.quotas[i].flavor)
		}
	}
	k.tree()
	if err := k.faults.err(); err != nil {
		return nil, err
	}
	k.flavorGroups()
	k.readTopologies()
	k.makeHosts()
	k.plan()
	k.workloads()
	if err := k.faults.err(); err != nil {
		return nil, err
	}
	return k.finish()
}

// finish makes tables of what was read.
func (k *kueue) finish() (*Result, error) {
	k.p.heading = []string{"Queues of Kueue: a nominal quota is owned, and lent to the others of its cohort while " +
		"it is idle."}
	if len(k.demand) > 0 {
		return k.p.finish(k.result, k.hosts, demandTable(k.p.dims, k.demand), demandRead)
	}
	return k.p.finish(k.result, k.hosts, k.p.everything(func(string) []hostRow {
		return slices.DeleteFunc(slices.Clone(k.hosts), func(h hostRow) bool { return h.text[kueueFlavor] == "" })
	}), demandMade)
}

// object takes a manifest.
func (k *kueue) object(file string, d *node) {
	kind := d.value("kind")
	o := &kueueObject{node: d, file: file, kind: kind, name: d.value("metadata", "name"),
		space: d.value("metadata", "namespace")}
	list := map[string]*[]*kueueObject{
		"ClusterQueue": &k.queues, "Cohort": &k.cohorts, "ResourceFlavor": &k.flavors, "LocalQueue": &k.locals,
		"Node": &k.nodes, "Workload": &k.work, "Topology": &k.topologies,
	}[kind]
	switch {
	case kind == "":
		k.faults.add(file, d.line, "is no manifest: it has no kind")
		return
	case list == nil:
		k.result.Report.Add(file, d.line, "kind "+kind,
			"is none of ClusterQueue, Cohort, ResourceFlavor, LocalQueue, Topology, Node, Workload")
		return
	case nameFault(o.name) != "":
		k.faults.add(file, d.line, "%s: metadata.name %q %s", kind, o.name, nameFault(o.name))
		return
	}
	for _, other := range *list {
		if other.name == o.name && other.space == o.space {
			k.faults.add(file, d.line, "%s %s is there twice, first in %s:%d", kind, o.name, other.file, other.line)
			return
		}
	}
	*list = append(*list, o)
}

// known lists what keys below a node nothing is made of, with reasons by key.
func (k *kueue) known(o *kueueObject, n *node, prefix string, keys []string, why map[string]string) {
	k.left(o.file, n, o.kind+": "+prefix, keys, why)
}

// kueueLost tells why keys of a spec have no counterpart.
var kueueLost = map[string]string{
	"namespaceSelector": "a row of demand names its consumer itself",
	"queueingStrategy": "allocations of a leaf are served in order of arrival; one that does not fit does " +
		"not stop the next",
	"flavorFungibility":         "flavors are used best preference first, without waiting for room in a better one",
	"admissionChecks":           "admission checks are not known; leave work out of the demand until it may run",
	"admissionChecksStrategy":   "admission checks are not known; leave work out of the demand until it may run",
	"stopPolicy":                "a queue that is stopped takes demand here; leave it out of the demand",
	"admissionScope":            "`share: {half_life}` of the plan counts what was used before; set it there",
	"nodeTaints":                "a node's taints do not bar anybody; a requirement may name hosts or attributes",
	"tolerations":               "a node's taints do not bar anybody; a requirement may name hosts or attributes",
	"concurrentAdmissionPolicy": "an allocation is asked for once",
}

// spec reads a cluster queue's or cohort's spec.
func (k *kueue) spec(o *kueueObject) {
	s := o.at("spec")
	keys := []string{"cohort", "cohortName", "resourceGroups", "fairSharing", "preemption", "parent", "parentName"}
	k.known(o, s, "", keys, kueueLost)
	k.known(o, s.at("fairSharing"), "fairSharing.", []string{"weight"}, nil)
	for _, key := range []string{"cohort", "cohortName", "parent", "parentName"} {
		if v := s.value(key); v != "" {
			o.parent = v
		}
	}
	k.result.Report.Carry(map[string]string{"ClusterQueue": "cluster queue", "Cohort": "cohort"}[o.kind], 1)
	groups := s.at("resourceGroups")
	if groups == nil {
		return
	}
	k.together(o, groups)
	for _, g := range groups.items {
		k.known(o, g, "resourceGroups.", []string{"coveredResources", "flavors"}, nil)
		flavors := g.at("flavors")
		if flavors == nil {
			continue
		}
		for _, f := range flavors.items {
			k.known(o, f, "flavors.", []string{"name", "resources"}, nil)
			if r := f.at("resources"); r != nil {
				for _, one := range r.items {
					k.quota(o, f.value("name"), one)
				}
			}
		}
	}
}

// together notes that the pods of a queue need resources of several flavors at once, one of each group. A unit lies on
// one host, so that flavors which are the only ones of their groups are one group of hosts here.
func (k *kueue) together(o *kueueObject, groups *node) {
	first := ""
	for _, g := range groups.items {
		flavors := g.at("flavors")
		if flavors == nil {
			continue
		}
		if len(flavors.items) > 1 && len(groups.items) > 1 {
			k.result.Report.Add(o.file, g.line, o.kind+": several flavors in one of several resource groups",
				"a unit lies on one host: one that needs resources of two groups fits where a host has both")
			continue
		}
		for _, f := range flavors.items {
			name := f.value("name")
			switch {
			case first == "":
				first = name
			case name != "" && k.hostsOf(name) != k.hostsOf(first):
				if k.joined == nil {
					k.joined = map[string]string{}
				}
				k.joined[k.hostsOf(name)] = k.hostsOf(first)
				k.result.Report.Add(o.file, f.line, "flavor "+name+" apart from "+first,
					"a unit lies on one host: hosts of "+first+" have the resources of both")
			}
			if len(groups.items) == 1 {
				first = "" // flavors of one group are alternatives
			}
		}
	}
}

// hostsOf returns the flavor whose hosts have the resources of a flavor: itself unless it is joined with others.
func (k *kueue) hostsOf(flavor string) string {
	for k.joined[flavor] != "" {
		flavor = k.joined[flavor]
	}
	return flavor
}

// quota reads an element of `resources`.
func (k *kueue) quota(o *kueueObject, flavor string, r *node) {
	k.known(o, r, "resources.", []string{"name", "nominalQuota", "borrowingLimit", "lendingLimit"}, nil)
	name := r.value("name")
	if flavor == "" || name == "" {
		k.faults.add(o.file, r.line, "%s %s: a flavor or resource without a name", o.kind, o.name)
		return
	}
	q := kueueQuota{flavor: flavor, dim: k.dim(name), borrow: none, lend: none, line: r.line}
	for _, of := range []struct {
		key  string
		into *int64
	}{{"nominalQuota", &q.nominal}, {"borrowingLimit", &q.borrow}, {"lendingLimit", &q.lend}} {
		v := r.at(of.key)
		if v == nil || v.text == "" {
			continue
		}
		if n, ok := k.amount(o.file, v, name, o.kind+" "+o.name+": "+of.key); ok {
			*of.into = n
			k.result.Report.Carry(map[string]string{"nominalQuota": "nominal quota",
				"borrowingLimit": "borrowing limit", "lendingLimit": "lending limit"}[of.key], 1)
		}
	}
	if slices.ContainsFunc(o.quotas,
		func(other kueueQuota) bool { return other.flavor == q.flavor && other.dim == q.dim }) {
		k.faults.add(o.file, r.line, "%s %s: resource %s of flavor %s is there twice", o.kind, o.name, name, flavor)
		return
	}
	if q.lend != none && q.lend > q.nominal && o.kind == "ClusterQueue" {
		k.faults.add(o.file, r.line, "%s %s: lendingLimit %s is above nominalQuota %s", o.kind, o.name,
			r.value("lendingLimit"), r.value("nominalQuota"))
	}
	o.quotas = append(o.quotas, q)
}

// tree puts cohorts and queues below each other.
func (k *kueue) tree() {
	by := map[string]*kueueObject{}
	for _, c := range k.cohorts {
		by[c.name] = c
	}
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		if o.parent != "" && by[o.parent] == nil {
			c := &kueueObject{node: &node{line: o.line}, file: o.file, kind: "Cohort", name: o.parent}
			if why := nameFault(o.parent); why != "" {
				k.faults.add(o.file, o.line, "%s %s: cohort %q %s", o.kind, o.name, o.parent, why)
				o.parent = ""
				continue
			}
			by[c.name] = c
			k.cohorts = append(k.cohorts, c)
			k.result.Report.Carry("cohort", 1)
		}
	}
	for _, c := range k.cohorts {
		up := c
		for steps := 0; up.parent != ""; steps++ {
			if up = by[up.parent]; steps > len(k.cohorts) {
				k.faults.add(c.file, c.line, "cohort %s lies below itself", c.name)
				return
			}
		}
	}
	var roots []*kueueObject
	for _, o := range slices.Concat(k.cohorts, k.queues) {
		if o.parent == "" {
			roots = append(roots, o)
		} else {
			by[o.parent].children = append(by[o.parent].children, o)
		}
	}
	k.localQueues()
	for _, o := range roots {
		k.place(o, "", 1)
	}
}

// localQueues puts local queues below their cluster queues.
func (k *kueue) localQueues() {
	for _, l := range k.locals {
		k.known(l, l.at("spec"), "", []string{"clusterQueue", "fairSharing"}, kueueLost)
		name := l.value("spec", "clusterQueue")
		i := slices.IndexFunc(k.queues, func(q *kueueObject) bool { return q.name == name })
		if i < 0 {
			k.faults.add(l.file, l.line, "LocalQueue %s: there is no ClusterQueue %q", l.name, name)
			continue
		}
		k.result.Report.Carry("local queue", 1)
		k.queues[i].children = append(k.queues[i].children, l)
	}
}

// place gives an object and all below it their paths.
func (k *kueue) place(o *kueueObject, up string, depth int) {
	o.path = up + "/" + o.name
	if o.kind == "LocalQueue" {
		o.path = up + "/" + strings.TrimPrefix(o.space+"."+o.name, ".")
	}
	switch {
	case depth > 16:
		k.faults.add(o.file, o.line, "%s %s lies more than 16 levels deep", o.kind, o.name)
		return
	case slices.Contains(k.p.consumers, o.path):
		k.faults.add(o.file, o.line, "%s %s: another cohort or queue has the path %s", o.kind, o.name, o.path)
		return
	case len(o.path) > 256:
		k.faults.add(o.file, o.line, "%s %s: its path has more than 256 bytes: %s", o.kind, o.name, o.path)
		return
	}
	k.p.consumers = append(k.p.consumers, o.path)
	for _, c := range o.children {
		k.place(c, o.path, depth+1)
	}
}
