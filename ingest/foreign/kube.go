package foreign

import (
	"math/big"
	"slices"
	"strings"
)

// kube is what all readers of Kubernetes objects have in common while they read.
type kube struct {
	faults faults
	result *Result
	p      policy
	units  map[string]kubeUnit // by resource
}

// kubeUnit is the dimension of a resource that is counted in parts or multiples of Kubernetes' unit.
type kubeUnit struct {
	dim  string
	unit *big.Rat
}

// kubeUnits are thousandths of a core and MiB; all other resources are counted in pieces.
var kubeUnits = map[string]kubeUnit{
	"cpu": {"cpu_milli", big.NewRat(1, 1000)}, "memory": {"memory_mib", big.NewRat(1<<20, 1)},
	"ephemeral-storage": {"ephemeral_storage_mib", big.NewRat(1<<20, 1)},
	"storage":           {"storage_mib", big.NewRat(1<<20, 1)},
}

// eachManifest calls take for each object of some files, and for each one of the lists that kubectl prints.
func eachManifest(files []File, take func(file string, d *node)) error {
	for _, f := range files {
		docs, err := readYAML(f)
		if err != nil {
			return err
		}
		for _, d := range docs {
			manifests(f.Name, d, take)
		}
	}
	return nil
}

// manifests calls take for an object, or for those of a list.
func manifests(file string, d *node, take func(file string, d *node)) {
	kind := d.value("kind")
	items := d.at("items")
	if items == nil || !strings.HasSuffix(kind, "List") {
		take(file, d)
		return
	}
	for _, item := range items.items {
		if item.value("kind") == "" && item.fields != nil { // kubectl leaves it out in lists of one kind
			item.fields["kind"] = &node{text: strings.TrimSuffix(kind, "List"), line: item.line}
			item.keys = append(item.keys, "kind")
		}
		manifests(file, item, take)
	}
}

// left lists the keys of a node that nothing is made of: all but some, with reasons by key.
func (k *kube) left(file string, n *node, prefix string, keys []string, why map[string]string) {
	if n == nil {
		return
	}
	for _, key := range n.keys {
		if slices.Contains(keys, key) {
			continue
		}
		reason := why[key]
		if reason == "" {
			reason = "is unknown here"
		}
		k.result.Report.Add(file, n.fields[key].line, prefix+key, reason)
	}
}

// dim is the dimension of a resource.
func (k *kube) dim(resource string) int {
	if u, ok := k.units[resource]; ok {
		return k.p.dimAs(resource, u.dim)
	}
	return k.p.dim(resource)
}

// amount reads a quantity of a resource, in units of its dimension.
func (k *kube) amount(file string, v *node, resource, what string) (int64, bool) {
	unit := big.NewRat(1, 1)
	if u, ok := k.units[resource]; ok {
		unit = u.unit
	} else if strings.HasPrefix(resource, "hugepages-") {
		unit = big.NewRat(1<<20, 1)
	}
	n, exact, ok := quantity(v.text, unit)
	if _, is := rational(v.text); !ok && is {
		k.faults.add(file, v.line, "%s %s of %s: is above %s, the largest amount; where it means that there is no "+
			"limit, give what the nodes have in all", what, v.text, resource, largest(unit))
		return 0, false
	}
	if !ok {
		k.faults.add(file, v.line, "%s %q of %s: must be a quantity such as 1500m, 36Gi or 4", what, v.text, resource)
		return 0, false
	}
	if !exact {
		k.result.Report.Add(file, v.line, "parts of "+resource+" below a unit",
			"amounts are whole: thousandths of a core, MiB, pieces")
	}
	return n, true
}

// allocatable adds what a Node object may give to work to the sizes of its host, for the resources that are known.
func (k *kube) allocatable(file, name string, n *node, size map[string]int64) {
	a := n.at("status", "allocatable")
	if a == nil {
		return
	}
	for _, resource := range a.keys {
		at := k.p.dimKnown(resource)
		if at < 0 {
			k.result.Report.Add(file, a.fields[resource].line, "a node's "+resource, "nobody has a quota of it")
			continue
		}
		if v, ok := k.amount(file, a.fields[resource], resource, "Node "+name+": allocatable"); ok {
			size[k.p.dims[at]] = v
		}
	}
}
