package foreign

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// treePartition is the attribute of hosts that names their partition, where a cluster has several.
const treePartition = "partition"

// Nodes say what nodes there are, for files that tell of queues alone: objects of kind Node, or equal nodes.
type Nodes struct {
	Files []File            // as kubectl get nodes -o yaml prints them
	Hosts int64             // without Files: how many equal ones
	Size  map[string]string // of each: a quantity such as 64Gi, by resource
}

// queueTree holds trees of queues as YuniKorn, Volcano and KAI have them: a queue is promised amounts, which others use
// while they are idle. What nobody is promised is divided by weights. Each partition of nodes has a tree.
type queueTree struct {
	kube
	rename     map[string]string // names of resources in the files, where they differ from those of nodes
	label      string            // of nodes, names their partition; "": there is one partition
	partitions []*treePart
	hosts      []hostRow
	named      map[string]bool // names of hosts
}

// treePart is a partition of the nodes with its queues; it becomes a plan.
type treePart struct {
	name string
	keys []string // of the plan
	root treeQueue
}

// treeQueue is a queue. Amounts are by resource; a resource that is missing is not promised, not kept, not limited.
type treeQueue struct {
	file     string
	line     int
	name     string
	up       string // the queue above it where files name it; "": the first level
	children []*treeQueue
	names    map[string]bool // of the children
	path     string

	promised map[string]int64
	kept     map[string]int64 // of what is promised: never lent
	most     map[string]int64
	weight   float64 // below 0: as much as is promised
	priority int
	fence    bool          // priorities of the queues below do not count for it
	least    time.Duration // min_runtime
	part     float64       // the largest part of a resource of the nodes that it may have, 0 to 1
	own      []int64       // by dimension, with what is promised below it; none where nothing is
}

// byPromise is the weight of a queue whose files give none.
const byPromise = -1

// resource is the name that nodes give to a resource.
func (t *queueTree) resource(name string) string {
	if other, ok := t.rename[name]; ok {
		return other
	}
	return name
}

// carriedAs are the kinds of amounts as the report counts them.
var carriedAs = map[string]string{"guaranteed": "guarantee", "max": "maximum", "deserved": "deserved amount",
	"capability": "capability", "guarantee": "guarantee"}

// quantities reads a mapping from resources to quantities.
func (t *queueTree) quantities(q *treeQueue, n *node, what string) map[string]int64 {
	list := map[string]int64{}
	if n == nil {
		return list
	}
	for _, key := range n.keys {
		resource := t.resource(key)
		t.dim(resource)
		if v, ok := t.amount(q.file, n.fields[key], resource, "queue "+q.name+": "+what); ok {
			list[resource] = v
		}
	}
	if len(list) > 0 {
		t.result.Report.Carry(carriedAs[what], 1)
	}
	return list
}

// child puts a queue below another one and gives it its path.
func (t *queueTree) child(up, q *treeQueue) bool {
	q.path = up.path + "/" + q.name
	why := nameFault(q.name)
	switch {
	case why != "":
	case up.names[q.name]:
		why = "is there twice"
	case strings.Count(q.path, "/") > 16:
		why = "lies more than 16 levels deep"
	case len(q.path) > 256:
		why = "has a path of more than 256 bytes"
	case len(t.p.consumers) >= consumersMax:
		why = fmt.Sprintf("is one of more than %d queues", consumersMax)
	}
	if why != "" {
		t.faults.add(q.file, q.line, "queue %q %s", q.name, why)
		return false
	}
	if up.names == nil {
		up.names = map[string]bool{}
	}
	up.children, up.names[q.name] = append(up.children, q), true
	t.result.Report.Carry("queue", 1)
	return true
}

// makeHosts makes hosts of nodes, or as many equal ones as there are.
func (t *queueTree) makeHosts(n Nodes) error {
	t.dim("cpu") // the resources that every node has, even where no queue names them
	t.dim("memory")
	if len(n.Files) > 0 {
		err := eachManifest(n.Files, t.host)
		if err == nil && len(t.hosts) == 0 && t.faults.count == 0 {
			err = fmt.Errorf("%s: has no Node; give what kubectl get nodes -o yaml prints", n.Files[0].Name)
		}
		return err
	}
	if n.Hosts < 1 || n.Hosts > hostsMax {
		return fmt.Errorf("%d hosts: the files have no nodes; give Node objects, or from 1 to %d equal hosts", n.Hosts,
			hostsMax)
	}
	size, text := map[string]int64{}, map[string]string(nil)
	if len(t.partitions) > 1 { // where a node without a label is, too
		first := t.partitions[0]
		text = map[string]string{treePartition: attributeText(treePartition, first.name)}
		t.result.Report.Add(first.root.file, first.root.line, "partitions beside "+first.name,
			"equal hosts have no label: all of them are in the first partition; give Node objects")
	}
	for _, key := range slices.Sorted(maps.Keys(n.Size)) {
		resource := t.resource(key)
		d := t.dim(resource)
		if v, ok := t.amount("the size of hosts", &node{text: n.Size[key]}, resource, "amount"); ok {
			size[t.p.dims[d]] = v
		}
	}
	digits := len(strconv.FormatInt(n.Hosts, 10))
	for i := range n.Hosts {
		t.hosts = append(t.hosts, hostRow{name: fmt.Sprintf("node%0*d", digits, i+1), size: size, text: text})
	}
	return nil
}

// host makes a host of a Node object.
func (t *queueTree) host(file string, d *node) {
	name := d.value("metadata", "name")
	switch {
	case d.value("kind") != "Node":
		t.result.Report.Add(file, d.line, "kind "+d.value("kind"), "is no Node")
		return
	case nameFault(name) != "":
		t.faults.add(file, d.line, "Node: metadata.name %q %s", name, nameFault(name))
		return
	case t.named[name]:
		t.faults.add(file, d.line, "Node %s is there twice", name)
		return
	case len(t.hosts) >= hostsMax:
		t.faults.add(file, d.line, "Node %s is one of more than %d", name, hostsMax)
		return
	}
	if t.named == nil {
		t.named = map[string]bool{}
	}
	t.named[name] = true
	h := hostRow{name: name, size: map[string]int64{}, closed: d.value("spec", "unschedulable") == "true"}
	if len(t.partitions) > 1 {
		part := d.value("metadata", "labels", t.label)
		if part == "" {
			part = t.partitions[0].name
		}
		h.text = map[string]string{treePartition: attributeText(treePartition, part)}
	}
	t.allocatable(file, name, d, h.size)
	t.result.Report.Carry("node", 1)
	t.hosts = append(t.hosts, h)
}

// of are the hosts of a partition.
func (t *queueTree) of(part string) (list []hostRow) {
	for _, h := range t.hosts {
		if len(t.partitions) == 1 || h.text[treePartition] == attributeText(treePartition, part) {
			list = append(list, h)
		}
	}
	return list
}

// finish makes a plan of each partition, and tables of what was read.
func (t *queueTree) finish(nodes Nodes) (*Result, error) {
	if err := t.faults.err(); err != nil {
		return nil, err
	}
	if err := t.makeHosts(nodes); err != nil {
		return nil, err
	}
	if err := t.faults.err(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, part := range t.partitions {
		choose := fmt.Sprintf("select(%s >= 0)", t.p.dims[0])
		if len(t.partitions) > 1 {
			choose = fmt.Sprintf("select(%s == '%s')", treePartition, attributeText(treePartition, part.name))
		}
		t.p.groups = append(t.p.groups, group{name: part.name, choose: choose})
		m := madePlan{name: part.name, groups: []string{part.name}, keys: part.keys}
		total := make([]int64, len(t.p.dims))
		for _, h := range t.of(part.name) {
			for d, name := range t.p.dims {
				total[d] += h.size[name]
			}
		}
		part.root.part = 1
		t.owns(&part.root)
		t.tooMuch(part, total)
		t.entries(&m, &part.root, total, seen)
		t.p.plans = append(t.p.plans, m)
	}
	if err := t.faults.err(); err != nil {
		return nil, err
	}
	return t.p.finish(t.result, t.hosts, t.p.everything(t.of), demandMade)
}

// owns computes what a queue owns: what it is promised, and no less than the queues below it together.
func (t *queueTree) owns(q *treeQueue) {
	q.own = filled(len(t.p.dims), none)
	for _, c := range q.children {
		t.owns(c)
		for d, n := range c.own {
			if n != none {
				q.own[d] = min(swfNumberMax, max(0, q.own[d])+n)
			}
		}
	}
	for resource, n := range q.promised {
		d := t.dim(resource)
		if most, limited := q.most[resource]; limited && most < n {
			t.result.Report.Add(q.file, q.line, "queue "+q.path,
				fmt.Sprintf("it is promised more %s than it may have, and the most it may have counts: %d",
					t.p.dims[d], most))
			n = most
		}
		q.own[d] = max(q.own[d], n)
	}
	for resource, n := range q.kept {
		d := t.dim(resource)
		q.own[d] = max(q.own[d], n)
	}
	for d, n := range q.own { // an amount of 0 would be a part of a host without any of the resource
		if n == 0 {
			q.own[d] = none
		}
	}
}

// tooMuch lists promises that are more than the nodes have.
func (t *queueTree) tooMuch(part *treePart, total []int64) {
	for d, name := range t.p.dims {
		if n := part.root.own[d]; n != none && n > total[d] {
			t.result.Report.Add(part.root.file, part.root.line, fmt.Sprintf("promises of %s: %d in all", name, n),
				fmt.Sprintf("the nodes have %d: who comes last in the file owns less", total[d]))
		}
	}
}

// entries makes consumers and entries of the queues below one.
func (t *queueTree) entries(m *madePlan, up *treeQueue, total []int64, seen map[string]bool) {
	weights := make([]float64, len(up.children))
	for i, c := range up.children {
		c.part = t.mayHave(up, c, total)
		weights[i] = c.weight
		if c.weight < 0 {
			weights[i] = t.promisedPart(c, total)
		}
	}
	list := ratios(weights)
	for i, c := range up.children {
		e := &entry{path: c.path, ratio: list[i], priority: c.priority,
			remark: fmt.Sprintf("%s, line %d", oneLine(c.file), c.line)}
		if c.weight == 0 {
			e.ratio = 0
		}
		if slices.ContainsFunc(c.own, func(n int64) bool { return n > 0 }) {
			e.own = []owned{{m.name, c.own}}
		}
		for resource, n := range c.kept {
			if e.reserve == nil {
				e.reserve = make([]int64, len(t.p.dims))
			}
			e.reserve[t.dim(resource)] = n
		}
		for resource, n := range c.most {
			if e.limit == nil {
				e.limit = filled(len(t.p.dims), none)
			}
			d := t.dim(resource)
			e.limit[d] = max(0, n-max(0, c.own[d])) // a limit counts what is held beside what is owned
		}
		if !seen[c.path] {
			seen[c.path] = true
			t.p.consumers = append(t.p.consumers, c.path)
		}
		if c.least > 0 {
			if t.p.runtimes == nil {
				t.p.runtimes = map[string]time.Duration{}
			}
			t.p.runtimes[c.path] = c.least
		}
		m.entries = append(m.entries, e)
		t.entries(m, c, total, seen)
	}
}

// promisedPart is the largest part of a resource of the nodes that a queue is promised; of one that is promised
// nothing, the part that it may have.
func (t *queueTree) promisedPart(q *treeQueue, total []int64) float64 {
	part := 0.0
	for d, n := range q.own {
		if n > 0 && total[d] > 0 {
			part = max(part, float64(n)/float64(total[d]))
		}
	}
	if part == 0 {
		return q.part
	}
	return part
}

// mayHave is the largest part of a resource of the nodes that a queue may have: no more than the queue above it.
func (t *queueTree) mayHave(up, q *treeQueue, total []int64) float64 {
	part := 0.0
	for resource, n := range q.most {
		if all := total[t.dim(resource)]; n > 0 && all > 0 {
			part = max(part, float64(n)/float64(all))
		}
	}
	if part == 0 {
		return up.part
	}
	return min(part, up.part)
}
