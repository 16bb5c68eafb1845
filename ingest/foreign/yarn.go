package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The dimensions of YARN: MiB of memory, virtual cores; other resource types follow.
const (
	yarnMemory = "memory_mb"
	yarnCores  = "vcores"
	yarnLabel  = "node_label" // attribute of hosts
	yarnRack   = "rack"       // attribute of hosts
	yarnPlain  = "default"    // the partition of nodes without a label
)

// File is a file of another system.
type File struct {
	Name string
	R    io.Reader
}

// YARNOptions say what the file of queues does not tell: what nodes there are.
type YARNOptions struct {
	Nodes *File            // what the resource manager answers to /ws/v1/cluster/nodes, JSON; nil: Hosts equal ones
	Hosts int64            // how many
	Size  map[string]int64 // of each: memory-mb, vcores, other resource types
}

// yarn is what both kinds of files of queues have in common while they are read.
type yarn struct {
	file   string
	faults faults
	result *Result
	p      policy
	hosts  []hostRow
	labels []string // of nodes, in order of first sight; yarnPlain is the first
}

// yarnQueue is a queue with its settings.
type yarnQueue struct {
	path     string // in YARN: root.a.b
	name     string
	line     int
	children []*yarnQueue
}

// consumer is the path of a queue in stint: root is left out.
func (q *yarnQueue) consumer() string {
	return strings.ReplaceAll(strings.TrimPrefix(q.path, "root"), ".", "/")
}

// YARN reads a file of queues, capacity-scheduler.xml or fair-scheduler.xml as its root element tells, and makes a plan
// for each node label. Faults name file, line, value and reason.
func YARN(queues File, o YARNOptions) (*Result, error) {
	root, err := readXML(queues.Name, queues.R)
	if err != nil {
		return nil, err
	}
	y := &yarn{file: queues.Name, result: &Result{Name: "yarn"}, labels: []string{yarnPlain}}
	y.p.cluster = "yarn"
	y.p.names.fix(yarnLabel, yarnRack)
	y.p.dim(yarnMemory)
	y.p.dim(yarnCores)
	if err := y.nodes(o); err != nil {
		return nil, err
	}
	switch root.name {
	case "configuration":
		y.capacity(root)
	case "allocations":
		y.fair(root)
	default:
		y.faults.add(y.file, root.line, "<%s> is the root element; <configuration> of capacity-scheduler.xml or "+
			"<allocations> of fair-scheduler.xml is expected", root.name)
	}
	if err := y.faults.err(); err != nil {
		return nil, err
	}
	return y.finish()
}

// finish makes tables of what was read.
func (y *yarn) finish() (*Result, error) {
	y.p.heading = []string{"Queues of " + oneLine(y.file) +
		": guaranteed capacities are shares of a pool, lent while they are idle."}
	return y.p.finish(y.result, y.hosts, y.p.everything(y.of), demandMade)
}

// of are the hosts with a label.
func (y *yarn) of(label string) (list []hostRow) {
	for _, h := range y.hosts {
		if len(y.labels) == 1 || h.text[yarnLabel] == attributeText(yarnLabel, label) {
			list = append(list, h)
		}
	}
	return list
}

// total is what the nodes of a label have, by dimension.
func (y *yarn) total(label string) []int64 {
	sum := make([]int64, len(y.p.dims))
	for _, h := range y.of(label) {
		for d, name := range y.p.dims {
			if !h.closed {
				sum[d] += h.size[name]
			}
		}
	}
	return sum
}

// nodes makes the hosts.
func (y *yarn) nodes(o YARNOptions) error {
	if o.Nodes != nil {
		return y.nodeList(o.Nodes)
	}
	if o.Hosts < 1 || o.Hosts > hostsMax {
		return fmt.Errorf("%d hosts: must be from 1 to %d", o.Hosts, hostsMax)
	}
	size := map[string]int64{}
	for _, key := range slices.Sorted(maps.Keys(o.Size)) {
		size[y.p.dims[y.dimension(key)]] = o.Size[key]
	}
	digits := len(strconv.FormatInt(o.Hosts, 10))
	for i := range o.Hosts {
		y.hosts = append(y.hosts, hostRow{name: fmt.Sprintf("node%0*d", digits, i+1), size: size})
	}
	return nil
}

// dimension is the dimension of a resource type.
func (y *yarn) dimension(resource string) int {
	switch resource {
	case "memory-mb", "memory":
		return 0
	case "vcores":
		return 1
	}
	return y.p.dim(resource)
}

// yarnNodes is the resource manager's list of nodes.
type yarnNodes struct {
	Nodes struct {
		Node []struct {
			ID     string   `json:"id"`
			Host   string   `json:"nodeHostName"`
			State  string   `json:"state"`
			Rack   string   `json:"rack"`
			FreeMB int64    `json:"availMemoryMB"`
			UsedMB int64    `json:"usedMemoryMB"`
			Free   int64    `json:"availableVirtualCores"`
			Used   int64    `json:"usedVirtualCores"`
			Labels []string `json:"nodeLabels"`
			Total  struct {
				Of struct {
					Type []struct {
						Name  string `json:"name"`
						Value int64  `json:"value"`
					} `json:"resourceInformation"`
				} `json:"resourceInformations"`
			} `json:"totalResource"`
		} `json:"node"`
	} `json:"nodes"`
}

// readJSON reads a file's only JSON value.
func readJSON(f *File, into any) error {
	text, err := readWhole(f.Name, f.R)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		offset := int64(len(text))
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			offset = syntax.Offset
		} else if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) {
			offset = kind.Offset
		}
		line := 1 + bytes.Count(text[:min(max(offset, 0), int64(len(text)))], []byte("\n"))
		return fmt.Errorf("%s:%d: %s", f.Name, line, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// nodeList makes hosts of the resource manager's list.
func (y *yarn) nodeList(f *File) error {
	var list yarnNodes
	if err := readJSON(f, &list); err != nil {
		return err
	}
	if n := len(list.Nodes.Node); n == 0 || n > hostsMax {
		return fmt.Errorf("%s: has %d nodes (nodes.node); there must be from 1 to %d", f.Name, n, hostsMax)
	}
	seen := map[string]bool{}
	labelled := false
	for _, n := range list.Nodes.Node {
		h := hostRow{name: n.Host, size: map[string]int64{}, text: map[string]string{yarnLabel: yarnPlain}}
		switch {
		case n.Host == "" || seen[n.Host]:
			return fmt.Errorf("%s: node %q: nodeHostName %q is empty or there twice", f.Name, n.ID, n.Host)
		case nameFault(n.Host) != "":
			return fmt.Errorf("%s: node %q: nodeHostName %q %s", f.Name, n.ID, n.Host, nameFault(n.Host))
		case len(n.Labels) > 0 && strings.ContainsAny(n.Labels[0], `'\`):
			return fmt.Errorf("%s: node %q: label %q: a label must not have quotes in it", f.Name, n.ID, n.Labels[0])
		case n.State == "UNHEALTHY" || n.State == "DECOMMISSIONING":
			h.closed = true
		case n.State != "RUNNING" && n.State != "NEW":
			y.result.Report.Add(f.Name, 0, "a node", "its state is "+n.State+": it is no host")
			continue
		}
		seen[n.Host] = true
		h.size[yarnMemory], h.size[yarnCores] = n.FreeMB+n.UsedMB, n.Free+n.Used
		for _, r := range n.Total.Of.Type {
			h.size[y.p.dims[y.dimension(r.Name)]] = r.Value
		}
		for name, v := range h.size {
			if v < 0 {
				return fmt.Errorf("%s: node %s: %s %d is below 0", f.Name, n.Host, name, v)
			}
		}
		if len(n.Labels) > 0 && n.Labels[0] != "" {
			labelled = true
			h.text[yarnLabel] = attributeText(yarnLabel, n.Labels[0])
			y.label(n.Labels[0])
		}
		if n.Rack != "" {
			h.text[yarnRack] = n.Rack
		}
		y.hosts = append(y.hosts, h)
	}
	if len(y.hosts) == 0 {
		return fmt.Errorf("%s: none of its %d nodes is RUNNING; give the list of a cluster that runs", f.Name,
			len(list.Nodes.Node))
	}
	y.result.Report.Carry("node", len(y.hosts))
	if !labelled {
		for i := range y.hosts {
			delete(y.hosts[i].text, yarnLabel)
		}
	}
	return nil
}

// label notes a node label.
func (y *yarn) label(name string) {
	if !slices.Contains(y.labels, name) {
		y.labels = append(y.labels, name)
	}
}

// plan begins the plan of the nodes of a label.
func (y *yarn) plan(label string) *madePlan {
	choose := "select(" + yarnMemory + " > 0)"
	if len(y.labels) > 1 {
		choose = fmt.Sprintf("select(%s == '%s')", yarnLabel, attributeText(yarnLabel, label))
	}
	y.p.groups = append(y.p.groups, group{name: label, choose: choose})
	y.p.plans = append(y.p.plans, madePlan{name: label, groups: []string{label}})
	return &y.p.plans[len(y.p.plans)-1]
}

// queue checks a queue's name and makes a consumer of it.
func (y *yarn) queue(up *yarnQueue, name string, line int) (q *yarnQueue, ok bool) {
	q = &yarnQueue{path: up.path + "." + name, name: name, line: line}
	why := nameFault(name)
	switch {
	case why != "":
	case strings.Contains(name, "."):
		why = "has a point in it, which separates the names of queues"
	case slices.ContainsFunc(up.children, func(o *yarnQueue) bool { return o.name == name }):
		why = "is there twice"
	case len(y.p.consumers) >= consumersMax:
		why = fmt.Sprintf("is one of more than %d queues", consumersMax)
	case strings.Count(q.path, ".") > 32:
		why = "is nested more than 32 levels deep"
	}
	if why != "" {
		y.faults.add(y.file, line, "queue %q %s", q.path, why)
		return nil, false
	}
	up.children = append(up.children, q)
	y.p.consumers = append(y.p.consumers, q.consumer())
	return q, true
}

// oneLine is a text without line breaks, for comments.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
