package foreign

import (
	"slices"
	"strings"
)

// kueueHostname is the label whose domains are single nodes: a gang within one of them lies on one host.
const kueueHostname = "kubernetes.io/hostname"

// Annotations of a pod template from which Kueue makes the topology request of a pod set.
const (
	kueueRequired  = "kueue.x-k8s.io/podset-required-topology"
	kueuePreferred = "kueue.x-k8s.io/podset-preferred-topology"
)

// topologyLost tells why keys of a topology request have no counterpart.
var topologyLost = map[string]string{
	"podSetGroupName":                        "each pod set is a gang by itself: they may lie in different places",
	"podSetSliceRequiredTopology":            "a gang has one place as a whole; make each slice an allocation",
	"podSetSliceSize":                        "a gang has one place as a whole; make each slice an allocation",
	"podsetSliceRequiredTopologyConstraints": "a gang has one place as a whole; make each slice an allocation",
	"podIndexLabel":                          "units have no numbers",
	"subGroupIndexLabel":                     "units have no numbers",
	"subGroupCount":                          "units have no numbers",
}

// levels returns the node labels of the levels of a flavor's topology, the widest first; nil where it has none.
func (k *kueue) levels(flavor *kueueObject) (labels []string) {
	name := flavor.value("spec", "topologyName")
	i := slices.IndexFunc(k.topologies, func(t *kueueObject) bool { return t.name == name })
	if name == "" || i < 0 {
		return nil
	}
	list := k.topologies[i].at("spec", "levels")
	if list == nil {
		return nil
	}
	for _, level := range list.items {
		labels = append(labels, level.value("nodeLabel"))
	}
	return labels
}

// readTopologies lists what flavors and topologies say of each other and nothing is made of.
func (k *kueue) readTopologies() {
	used := map[string]bool{}
	for _, f := range k.flavors {
		name := f.at("spec", "topologyName")
		if name == nil || name.text == "" {
			continue
		}
		used[name.text] = true
		if !slices.ContainsFunc(k.topologies, func(t *kueueObject) bool { return t.name == name.text }) {
			k.result.Report.Add(f.file, name.line, "topologyName "+name.text,
				"there is no Topology of that name: the hosts of the flavor have no places")
		}
	}
	for _, t := range k.topologies {
		k.known(t, t.at("spec"), "", []string{"levels"}, nil)
		levels := t.at("spec", "levels")
		switch {
		case levels == nil || len(levels.items) == 0:
			k.faults.add(t.file, t.line, "Topology %s: has no levels; give the node label of each", t.name)
			continue
		case !used[t.name]:
			k.result.Report.Add(t.file, t.line, "Topology "+t.name, "no ResourceFlavor names it in topologyName")
			continue
		}
		var labels []string
		for _, level := range levels.items {
			label := level.value("nodeLabel")
			if label == "" || slices.Contains(labels, label) {
				k.faults.add(t.file, level.line, "Topology %s: nodeLabel %q is empty or there twice", t.name, label)
			}
			labels = append(labels, label)
			k.known(t, level, "levels.", []string{"nodeLabel"}, nil)
		}
		k.result.Report.Carry("topology", 1)
	}
}

// levelName returns the attribute of hosts that tells their place at a level: the last part of its label.
func (k *kueue) levelName(label string) string {
	if label == kueueHostname {
		return "host"
	}
	return k.p.names.as("label", label, label[strings.LastIndexByte(label, '/')+1:])
}

// locate gives a host its place at each level of its flavor's topology: the values of the level and of those above it,
// because racks of two blocks may have one name. As in Kueue a node that lacks a label of a level has no place.
func (k *kueue) locate(n, flavor *kueueObject, h *hostRow) {
	labels := k.levels(flavor)
	var path []string
	for _, label := range labels {
		value := n.value("metadata", "labels", label)
		if value == "" && label == kueueHostname {
			value = n.name
		}
		if value == "" {
			k.result.Report.Add(n.file, n.line, "a node's place",
				"it has no label "+label+" of its flavor's topology: no gang that must be together lies on it")
			return
		}
		path = append(path, value)
	}
	for i, label := range labels {
		if name := k.levelName(label); name != "host" {
			h.text[name] = attributeText(name, strings.Join(path[:i+1], "/"))
		}
		if k.located == nil {
			k.located = map[string]int{}
		}
		k.located[label] = max(k.located[label], i+1)
	}
}

// gather gives a pod set's row what its topology request asks for: `together`.
func (k *kueue) gather(w *kueueObject, set *node, row *demandRow) {
	request := set.at("topologyRequest")
	required, preferred := request.at("required"), request.at("preferred")
	if request == nil {
		notes := set.at("template", "metadata", "annotations")
		required, preferred = notes.at(kueueRequired), notes.at(kueuePreferred)
	}
	k.known(w, request, "topologyRequest.", []string{"required", "preferred", "unconstrained"}, topologyLost)
	level, prefix := required, ""
	switch {
	case required != nil && preferred != nil:
		k.faults.add(w.file, preferred.line, "Workload %s: its topology is both required and preferred; keep one of "+
			"them", w.name)
		return
	case required == nil:
		level, prefix = preferred, "prefer "
	}
	if level == nil || level.text == "" || row.units <= 1 {
		return
	}
	depth := k.located[level.text]
	if depth == 0 {
		k.result.Report.Add(w.file, level.line, "Workload: topology level "+level.text,
			"no node of the files has a place at this level: the units lie anywhere")
		return
	}
	row.together = prefix + k.levelName(level.text)
	k.result.Report.Carry("topology request", 1)
	if prefix != "" && depth > 1 {
		k.result.Report.Add(w.file, level.line, "Workload: levels above the preferred one, "+level.text,
			"a gang that fits in no place of the level lies anywhere; the levels above are not tried")
	}
	if row.least < 2 {
		row.least = 2
		k.result.Report.Add(w.file, level.line, "Workload: minCount: 1 of a pod set with a topology",
			"units that are together are 2 at least")
	}
}
