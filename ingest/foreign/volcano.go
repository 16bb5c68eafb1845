package foreign

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The groups of the API that Queue objects belong to.
const (
	volcanoGroup = "scheduling.volcano.sh/"
	kaiGroup     = "scheduling.run.ai/"

	volcanoRoot = "root" // the queue of Volcano above all others
)

// gpuResource is the resource that KAI calls gpu.
const gpuResource = "nvidia.com/gpu"

// kaiUnits are the units of KAI: thousandths of a core, millions of bytes, thousandths of a GPU.
var kaiUnits = map[string]kubeUnit{
	"cpu": {"cpu_milli", big.NewRat(1, 1000)}, "memory": {"memory_mb", big.NewRat(1e6, 1)},
	gpuResource: {"gpu_milli", big.NewRat(1, 1000)},
}

// queueManifests is a set of Queue objects while it is read.
type queueManifests struct {
	queueTree
	queues []*treeQueue
	named  map[string]*treeQueue
	nodes  bool // whether Node objects are among them
	group  string
	first  string // the first file
}

// queueLost tells why keys of a Queue's spec have no counterpart.
var queueLost = map[string]string{
	"affinity":            "a requirement of a row of demand names hosts or attributes",
	"extendClusters":      "the queue's work in other clusters is not known here",
	"type":                "has no meaning for the division",
	"displayName":         "a consumer has one name, that of the queue",
	"preemptMinRuntime":   "nothing is taken back within a leaf; `min_runtime` of a consumer guards it against others",
	"dequeueStrategy":     "allocations of a leaf are served in order of arrival; one that does not fit stops none",
	"defaultSubgroupSize": "a gang is as large as its row of demand says",
}

// Queues reads Queue objects of Volcano or KAI (NVIDIA's scheduler). Nodes may be among the manifests; else nodes tells
// of them. Faults name file, line, value and reason.
func Queues(files []File, nodes Nodes) (*Result, error) {
	k := &queueManifests{first: files[0].Name, named: map[string]*treeQueue{}}
	k.kube = kube{result: &Result{Name: "queues"}, units: kubeUnits}
	k.p.names.fix(treePartition)
	texts, err := again(files)
	if err != nil {
		return nil, err
	}
	if err := eachManifest(texts(), k.object); err != nil {
		return nil, err
	}
	if len(k.queues) == 0 && k.faults.count == 0 {
		return nil, fmt.Errorf("%s: has no Queue of %s or %s", k.first, strings.TrimSuffix(volcanoGroup, "/"),
			strings.TrimSuffix(kaiGroup, "/"))
	}
	k.tree()
	if k.nodes {
		nodes = Nodes{Files: slices.Concat(texts(), nodes.Files)}
	}
	return k.finish(nodes)
}

// object takes a manifest: a Queue. Nodes are read when all resources are known.
func (k *queueManifests) object(file string, d *node) {
	group, _, _ := strings.Cut(d.value("apiVersion"), "/")
	group += "/"
	switch kind := d.value("kind"); {
	case kind == "Node":
		k.nodes = true
		return
	case kind == "":
		k.faults.add(file, d.line, "is no manifest: it has no kind")
		return
	case kind != "Queue":
		k.result.Report.Add(file, d.line, "kind "+kind, "is none of Queue, Node")
		return
	case group != volcanoGroup && group != kaiGroup:
		k.faults.add(file, d.line, "Queue: apiVersion %q is neither of %s nor of %s", d.value("apiVersion"),
			strings.TrimSuffix(volcanoGroup, "/"), strings.TrimSuffix(kaiGroup, "/"))
		return
	case k.group != "" && group != k.group:
		k.faults.add(file, d.line, "Queue %s: is of %s, those before it are of %s: import each by itself",
			d.value("metadata", "name"), strings.TrimSuffix(group, "/"), strings.TrimSuffix(k.group, "/"))
		return
	}
	q := &treeQueue{file: file, line: d.line, name: d.value("metadata", "name"), weight: 1}
	if group == volcanoGroup && q.name == volcanoRoot {
		k.result.Report.Add(file, d.line, "Queue root", "it always has all there is")
		return
	}
	if other := k.named[q.name]; other != nil {
		k.faults.add(file, d.line, "Queue %s is there twice, first in %s:%d", q.name, other.file, other.line)
		return
	}
	if k.group == "" {
		k.begin(group)
	}
	if group == kaiGroup {
		k.kai(q, d.at("spec"))
	} else {
		k.annotations(q, d)
		k.volcano(q, d.at("spec"))
	}
	k.queues, k.named[q.name] = append(k.queues, q), q
}

// begin settles what differs between the two systems.
func (k *queueManifests) begin(group string) {
	k.group, k.result.Name = group, "volcano"
	if group == kaiGroup {
		k.units, k.result.Name = kaiUnits, "kai"
		k.rename = map[string]string{"gpu": gpuResource}
	}
	k.p.cluster = k.result.Name
	k.p.heading = []string{"Queues of " + k.result.Name +
		": what a queue is promised is owned, and lent to the others while it is idle."}
	k.partitions = []*treePart{{name: k.result.Name, root: treeQueue{file: k.first}}}
}

// annotationLost tells why annotations of a queue of Volcano have no counterpart.
var annotationLost = map[string]string{
	"volcano.sh/hierarchy":         "the place of a queue is its `parent`; give that",
	"volcano.sh/hierarchy-weights": "the weight of a queue is its `weight`, those above it have their own; give these",
	"volcano.sh/dequeue-strategy":  queueLost["dequeueStrategy"],
}

// annotations lists those of a queue that Volcano knows.
func (k *queueManifests) annotations(q *treeQueue, d *node) {
	list := d.at("metadata", "annotations")
	if list == nil {
		return
	}
	for _, key := range list.keys {
		if strings.HasPrefix(key, "volcano.sh/") {
			reason := annotationLost[key]
			if reason == "" {
				reason = "is unknown here"
			}
			k.result.Report.Add(q.file, list.fields[key].line, "Queue: annotation "+key, reason)
		}
	}
}

// volcano reads the spec of a queue of Volcano.
func (k *queueManifests) volcano(q *treeQueue, s *node) {
	k.left(q.file, s, "Queue: ", []string{"weight", "capability", "deserved", "guarantee", "parent", "priority",
		"reclaimable"}, queueLost)
	if q.up = s.value("parent"); q.up == volcanoRoot {
		q.up = ""
	}
	q.promised = k.quantities(q, s.at("deserved"), "deserved")
	q.most = k.quantities(q, s.at("capability"), "capability")
	q.kept = k.quantities(q, s.at("guarantee", "resource"), "guarantee")
	if w := s.at("weight"); w != nil {
		q.weight = k.number(q, w, "weight")
	}
	k.priority(q, s.at("priority"))
	if v := s.at("reclaimable"); v != nil && v.text == "false" {
		k.result.Report.Add(q.file, v.line, "reclaimable: false", "who holds more than its part gives it back")
	}
}

// kai reads the spec of a queue of KAI.
func (k *queueManifests) kai(q *treeQueue, s *node) {
	k.left(q.file, s, "Queue: ", []string{"parentQueue", "resources", "priority", "reclaimMinRuntime"}, queueLost)
	q.up = s.value("parentQueue")
	k.priority(q, s.at("priority"))
	if v := s.at("reclaimMinRuntime"); v != nil && v.text != "" {
		d, err := time.ParseDuration(v.text)
		if err != nil || d < 0 {
			k.faults.add(q.file, v.line, "Queue %s: reclaimMinRuntime %q: must be a duration such as 10m", q.name,
				v.text)
		}
		q.least = d.Truncate(time.Second)
		k.result.Report.Carry("least run time", 1)
	}
	r := s.at("resources")
	k.left(q.file, r, "resources: ", []string{"cpu", "memory", "gpu"}, nil)
	q.promised, q.most, q.weight = map[string]int64{}, map[string]int64{}, math.NaN()
	for _, name := range []string{"gpu", "cpu", "memory"} { // the weight of the scarcest counts
		n := r.at(name)
		if n == nil {
			continue
		}
		k.left(q.file, n, "resources."+name+": ", []string{"quota", "limit", "overQuotaWeight"}, nil)
		k.kaiAmount(q, name, "quota", n, q.promised)
		k.kaiAmount(q, name, "limit", n, q.most)
		w := n.at("overQuotaWeight")
		if w == nil {
			continue
		}
		v := k.number(q, w, "overQuotaWeight")
		if !math.IsNaN(q.weight) && v != q.weight {
			k.result.Report.Add(q.file, w.line, "overQuotaWeight of "+name,
				"a queue has one ratio for all resources; the first of gpu, cpu, memory counts")
			continue
		}
		q.weight = v
	}
	if math.IsNaN(q.weight) {
		q.weight = 1
	}
}

// kaiFactor is what KAI's plain numbers count, in Kubernetes' units.
var kaiFactor = map[string]*big.Rat{"cpu": big.NewRat(1, 1000), "memory": big.NewRat(1e6, 1), "gpu": big.NewRat(1, 1)}

// kaiAmount reads a plain number; -1 is no limit.
func (k *queueManifests) kaiAmount(q *treeQueue, name, key string, n *node, into map[string]int64) {
	v := n.at(key)
	if v == nil {
		return
	}
	resource := k.resource(name)
	d := k.dim(resource)
	if v.text == "-1" {
		if key == "quota" {
			k.result.Report.Add(q.file, v.line, "quota: -1 of "+name,
				"the queue is promised all there is; it shares by its weight here")
		}
		return
	}
	amount, ok := new(big.Rat).SetString(v.text)
	whole := new(big.Int)
	if ok = ok && len(v.text) < 40 && !strings.ContainsAny(v.text, "eE/"); ok {
		amount.Mul(amount, kaiFactor[name]).Quo(amount, k.units[resource].unit)
		whole.Quo(amount.Num(), amount.Denom())
	}
	if !ok || amount.Sign() < 0 || !whole.IsInt64() || whole.Int64() > swfNumberMax {
		k.faults.add(q.file, v.line, "Queue %s: %s %q of %s: must be -1 or a number from 0 on, of at most %d %s",
			q.name, key, v.text, name, int64(swfNumberMax), k.p.dims[d])
		return
	}
	if !amount.IsInt() {
		k.result.Report.Add(q.file, v.line, "parts of "+name+" below a unit", "amounts are whole "+k.p.dims[d])
	}
	into[resource] = whole.Int64()
	k.result.Report.Carry(key, 1)
}

// number reads a weight.
func (k *queueManifests) number(q *treeQueue, n *node, what string) float64 {
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || !(v >= 0 && v <= 1e9) {
		k.faults.add(q.file, n.line, "Queue %s: %s %q: must be a number from 0 on", q.name, what, n.text)
		return 1
	}
	k.result.Report.Carry("weight", 1)
	return v
}

// priority reads the priority of a queue.
func (k *queueManifests) priority(q *treeQueue, n *node) {
	if n == nil || n.text == "" {
		return
	}
	v, err := strconv.ParseInt(n.text, 10, 32)
	if err != nil {
		k.faults.add(q.file, n.line, "Queue %s: priority %q: must be a whole number of 32 bits", q.name, n.text)
		return
	}
	q.priority = int(v)
	k.result.Report.Carry("priority", 1)
}

// tree puts queues below each other.
func (k *queueManifests) tree() {
	below := map[string][]*treeQueue{}
	for _, q := range k.queues {
		if q.up != "" && k.named[q.up] == nil {
			k.faults.add(q.file, q.line, "Queue %s: there is no queue %q above it", q.name, q.up)
			continue
		}
		below[q.up] = append(below[q.up], q)
	}
	placed := 0
	var place func(up *treeQueue, name string)
	place = func(up *treeQueue, name string) {
		for _, q := range below[name] {
			placed++
			if k.child(up, q) {
				place(q, q.name)
			}
		}
	}
	if len(k.partitions) == 0 {
		return
	}
	place(&k.partitions[0].root, "")
	if placed < len(k.queues) && k.faults.count == 0 {
		q := k.queues[slices.IndexFunc(k.queues, func(q *treeQueue) bool { return q.path == "" })]
		k.faults.add(q.file, q.line, "Queue %s lies below itself", q.name)
	}
}

// again reads files whole, so that they can be read twice.
func again(files []File) (func() []File, error) {
	texts := make([]string, len(files))
	for i, f := range files {
		text, err := readWhole(f.Name, f.R)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return func() []File {
		list := make([]File, len(files))
		for i, f := range files {
			list[i] = File{f.Name, strings.NewReader(texts[i])}
		}
		return list
	}, nil
}
