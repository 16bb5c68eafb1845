package foreign

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// yunikornLabel is the label of nodes that names their partition.
const yunikornLabel = "si/node-partition"

// yuniKorn is a queues.yaml while it is read.
type yuniKorn struct {
	queueTree
	file string
}

// yunikornLost tells why keys of a partition, of a queue and of its properties have no counterpart.
var yunikornLost = map[string]string{
	"placementrules":            "a row of demand names its consumer itself",
	"limits":                    userLimits.lack(),
	"statedumpfilepath":         "is a setting of the scheduler's process",
	"preemption":                "an owner takes back what it is promised, whatever this deprecated key says",
	"maxapplications":           jobCounts.lack(),
	"adminacl":                  "who administers is `admins` of a consumer, by the names that tokens have there",
	"submitacl":                 "who may submit is `users` of a consumer, by the names that tokens have there",
	"childtemplate":             queueRules.lack(),
	"application.sort.policy":   "allocations of a leaf are served in order of arrival",
	"application.sort.priority": jobPriority.lack(),
	"preemption.policy":         "an owner takes back what it is promised from whoever has it",
	"preemption.delay":          "an owner takes back at once, with the `reclaim_grace` of who has it",
	"quota.preemption.delay":    "what is above a limit is taken back at once, with the `reclaim_grace` of who has it",
}

// YuniKorn reads queues.yaml of Apache YuniKorn, as it is or within a ConfigMap, and makes a plan of each partition.
// Faults name file, line, value and reason.
func YuniKorn(queues File, nodes Nodes) (*Result, error) {
	y := &yuniKorn{file: queues.Name}
	y.kube = kube{result: &Result{Name: "yunikorn"}, units: kubeUnits}
	y.rename, y.label = map[string]string{"vcore": "cpu"}, yunikornLabel
	y.p.cluster = "yunikorn"
	y.p.names.fix(treePartition)
	y.p.heading = []string{"Queues of " + oneLine(queues.Name) +
		": guaranteed resources are owned, and lent to the others while they are idle."}
	docs, err := readYAML(queues)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		if d, err = y.config(d); err != nil {
			return nil, err
		}
		y.left(y.file, d, "", []string{"partitions"}, map[string]string{"checksum": "is made by YuniKorn"})
		if list := d.at("partitions"); list != nil {
			for _, part := range list.items {
				y.partition(part)
			}
		}
	}
	if len(y.partitions) == 0 && y.faults.count == 0 {
		return nil, fmt.Errorf("%s: has no `partitions`; queues.yaml of YuniKorn, or the ConfigMap or Helm values "+
			"that have it, is expected", queues.Name)
	}
	return y.finish(nodes)
}

// config finds the configuration in a document: the document itself, or the text queues.yaml of a ConfigMap's data or
// of Helm values; those of charts before 1.0 have it as `configuration`.
func (y *yuniKorn) config(d *node) (*node, error) {
	for _, within := range [][]string{{"data", "queues.yaml"}, {"yunikornDefaults", "queues.yaml"}, {"configuration"}} {
		if text := d.at(within...); text != nil && text.text != "" {
			inner, err := yamlDocument(y.file, text.text, text.line)
			if inner == nil {
				inner = &node{line: text.line}
			}
			return inner, err
		}
	}
	return d, nil
}

// partition reads an element of `partitions`.
func (y *yuniKorn) partition(n *node) {
	part := &treePart{name: n.value("name"), keys: []string{"share_reclaim: false"}}
	if part.name == "" {
		part.name = "default"
	}
	switch {
	case nameFault(part.name) != "":
		y.faults.add(y.file, n.line, "partition %q %s", part.name, nameFault(part.name))
		return
	case strings.ContainsAny(part.name, `'\`):
		y.faults.add(y.file, n.line, "partition %q: a name must not have quotes in it", part.name)
		return
	case slices.ContainsFunc(y.partitions, func(o *treePart) bool { return o.name == part.name }):
		y.faults.add(y.file, n.line, "partition %q is there twice", part.name)
		return
	}
	y.left(y.file, n, "partition: ", []string{"name", "queues", "nodesortpolicy"}, yunikornLost)
	if n.value("nodesortpolicy", "type") == "fair" {
		part.keys = append(part.keys, "placement: balanced")
	}
	y.left(y.file, n.at("nodesortpolicy"), "nodesortpolicy: ", []string{"type"},
		map[string]string{"resourceweights": "all resources of a host weigh the same"})
	part.root = treeQueue{file: y.file, line: n.line}
	top := n.at("queues")
	if top == nil || len(top.items) == 0 {
		y.faults.add(y.file, n.line, "partition %s has no queues", part.name)
		return
	}
	if len(top.items) == 1 && strings.EqualFold(top.items[0].value("name"), "root") {
		root := top.items[0]
		y.left(y.file, root, "queue root: ", []string{"name", "parent", "queues"},
			withReasons("root always has all there is", "resources", "properties"))
		top = root.at("queues")
	}
	if top == nil || len(top.items) == 0 { // all work is in queues that a rule makes
		top = &node{items: []*node{{line: n.line, keys: []string{"name"},
			fields: map[string]*node{"name": {text: "default", line: n.line}}}}}
		y.result.Report.Add(y.file, n.line, "partition "+part.name+" without a queue below root",
			"YuniKorn makes queues by its placement rules; this import makes the queue default")
	}
	y.partitions = append(y.partitions, part)
	for _, q := range top.items {
		y.queue(&part.root, q)
	}
	raise(&part.root)
}

// raise gives queues the priority of the highest below them, as YuniKorn does but where priority.policy is fence.
// Children have theirs already.
func raise(q *treeQueue) {
	if len(q.children) == 0 {
		return
	}
	most := math.MinInt32
	for _, c := range q.children {
		raise(c)
		most = max(most, c.priority)
	}
	if !q.fence {
		q.priority = min(math.MaxInt32, max(math.MinInt32, q.priority+most))
	}
}

// withReasons are the reasons of keys of a queue, some of them replaced by one.
func withReasons(reason string, keys ...string) map[string]string {
	why := map[string]string{}
	for key, text := range yunikornLost {
		why[key] = text
	}
	for _, key := range keys {
		why[key] = reason
	}
	return why
}

// queue reads a queue and those below it.
func (y *yuniKorn) queue(up *treeQueue, n *node) {
	q := &treeQueue{file: y.file, line: n.line, name: strings.ToLower(n.value("name")), weight: byPromise}
	if strings.Contains(q.name, ".") {
		y.faults.add(y.file, n.line, "queue %q has a point in it, which separates the names of queues", q.name)
		return
	}
	if !y.child(up, q) {
		return
	}
	y.left(y.file, n, "queue: ", []string{"name", "parent", "resources", "properties", "queues"}, yunikornLost)
	r := n.at("resources")
	y.left(y.file, r, "resources: ", []string{"guaranteed", "max"}, nil)
	q.promised = y.quantities(q, r.at("guaranteed"), "guaranteed")
	q.most = y.quantities(q, r.at("max"), "max")
	y.properties(q, n.at("properties"))
	below := n.at("queues")
	if below == nil {
		if n.value("parent") == "true" {
			y.result.Report.Add(y.file, n.line, "parent: true of a queue without queues",
				"YuniKorn makes queues below it by its placement rules; it is a leaf here")
		}
		return
	}
	for _, c := range below.items {
		y.queue(q, c)
	}
}

// properties reads the priority of a queue; the other properties are listed.
func (y *yuniKorn) properties(q *treeQueue, n *node) {
	y.left(y.file, n, "properties: ", []string{"priority.offset", "priority.policy"}, yunikornLost)
	q.fence = strings.EqualFold(n.value("priority.policy"), "fence")
	offset := n.at("priority.offset")
	if offset == nil {
		return
	}
	v, err := strconv.ParseInt(offset.text, 10, 32)
	if err != nil {
		y.faults.add(y.file, offset.line, "queue %s: priority.offset %q: must be a whole number of 32 bits", q.path,
			offset.text)
		return
	}
	q.priority = int(v)
	y.result.Report.Carry("priority", 1)
	if strings.Count(q.path, "/") > 1 {
		y.result.Report.Add(y.file, offset.line, "priority.offset of a queue below others",
			"the highest of the queues below one counts for it too, whether or not that one asks for anything")
	}
}
