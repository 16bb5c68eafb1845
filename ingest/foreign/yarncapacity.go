package foreign

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

const capacityPrefix = "yarn.scheduler.capacity."

// property is a setting of a Hadoop configuration file.
type property struct {
	value string
	line  int
	used  bool
}

// capacityScheduler is a capacity-scheduler.xml while it is read.
type capacityScheduler struct {
	*yarn
	properties map[string]*property // by name, capacityPrefix cut off
	root       *yarnQueue
	labelled   map[string][]string // node labels that a queue names capacities of, by queue
}

// capacityKind is how a queue's capacity is given.
type capacityKind uint8

const (
	capacityPercent capacityKind = iota
	capacityWeight
	capacityAbsolute
)

// queueCapacity is a capacity, guaranteed or maximum.
type queueCapacity struct {
	kind   capacityKind
	value  float64 // percent or weight
	amount []int64 // absolute, by dimension
	line   int
}

// yarnLost tells why settings have no counterpart. The first entry that matches counts: a whole name, or its end after
// a point, or what it has in the middle when it ends with a point.
var yarnLost = [][2]string{
	{"user-settings.", "weights of single users are not supported; a user of its own weight is a consumer of its own"},
	{"minimum-user-limit-percent",
		userLimits.lack() + ": allocations of a leaf are served in order of arrival"},
	{"user-limit-factor",
		userLimits.lack() + ": allocations of a leaf are served in order of arrival"},
	{"ordering-policy", "allocations of a leaf are served in order of arrival, fairly among siblings by their ratios"},
	{"enable-size-based-weight",
		"allocations of a leaf are served in order of arrival, fairly among siblings by their ratios"},
	{"maximum-applications", jobCounts.lack()},
	{"max-parallel-apps", jobCounts.lack()},
	{"maximum-am-resource-percent", "an application master is a unit like others"},
	{"acl_submit_applications", "who may submit is `users` of a consumer, by the names that tokens have there"},
	{"acl_administer_queue", "who administers is `admins` of a consumer, by the names that tokens have there"},
	{"acl_application_max_priority", jobPriority.lack()},
	{"state", "a queue that is stopped takes demand here; leave it out of the demand"},
	{"priority",
		"the order among queues that are below their capacity goes by usage ÷ ratio; `share.priority` would be strict"},
	{"disable_preemption",
		"what is above its part is taken back for those below theirs, as `share_reclaim` of the one that takes says"},
	{"maximum-application-lifetime", "the life of work is the client's affair"},
	{"default-application-lifetime", "the life of work is the client's affair"},
	{"maximum-allocation-mb", "units may be as large as a host"},
	{"maximum-allocation-vcores", "units may be as large as a host"},
	{"maximum-allocation", "units may be as large as a host"},
	{"default-node-label-expression", "a row of demand names its plan, that is the node label, itself"},
	{"auto-create-child-queue.", queueRules.lack()},
	{"auto-queue-creation-v2.", queueRules.lack()},
	{"leaf-queue-template.", queueRules.lack()},
	{"queue-mappings", "a row of demand names its consumer itself"},
	{"queue-mappings-override.enable", "a row of demand names its consumer itself"},
	{"mapping-rule-json", "a row of demand names its consumer itself"},
	{"node-locality-delay", "a requirement of a row of demand names hosts or attributes such as rack"},
	{"rack-locality-additional-delay",
		"a requirement of a row of demand names hosts or attributes such as rack"},
}

// lostReason tells why a setting is not carried over.
func lostReason(table [][2]string, name string) string {
	for _, l := range table {
		if name == l[0] || strings.HasSuffix(name, "."+l[0]) ||
			strings.HasSuffix(l[0], ".") && strings.Contains("."+name, "."+l[0]) {
			return l[1]
		}
	}
	return "has no counterpart"
}

// capacity reads capacity-scheduler.xml.
func (y *yarn) capacity(root *element) {
	c := &capacityScheduler{yarn: y, properties: map[string]*property{}, root: &yarnQueue{path: "root"},
		labelled: map[string][]string{}}
	for _, e := range root.children {
		c.property(e)
	}
	c.calculator()
	c.queues(c.root)
	if len(c.root.children) == 0 {
		c.faults.add(c.file, 0, "%sroot.queues names no queue", capacityPrefix)
		return
	}
	c.labels()
	for _, label := range y.labels {
		c.partition(label)
	}
	c.rest()
}

// property reads an element <property>.
func (c *capacityScheduler) property(e *element) {
	if e.name != "property" {
		c.result.Report.Add(c.file, e.line, "<"+e.name+">",
			"is no property; what other files have is not read: give them joined")
		return
	}
	var name, value *element
	for _, part := range e.children {
		switch part.name {
		case "name":
			name = part
		case "value":
			value = part
		case "description", "final", "source":
		default:
			c.result.Report.Add(c.file, part.line, "<"+part.name+">", "is unknown within <property>")
		}
	}
	if name == nil || name.text == "" {
		c.faults.add(c.file, e.line, "a property without a <name>")
		return
	}
	key, ours := strings.CutPrefix(name.text, capacityPrefix)
	if !ours {
		c.result.Report.Add(c.file, e.line, name.text, "is no setting of the capacity scheduler")
		return
	}
	if value == nil {
		value = &element{}
	}
	if old := c.properties[key]; old != nil {
		c.result.Report.Add(c.file, old.line, name.text,
			fmt.Sprintf("line %d gives it again, and the last one counts", e.line))
	}
	c.properties[key] = &property{value: value.text, line: e.line}
}

// get finds a property, which counts as carried over.
func (c *capacityScheduler) get(key string) (p *property, ok bool) {
	if p, ok = c.properties[key]; ok {
		p.used = true
	}
	return p, ok
}

// calculator leaves memory as the only dimension where YARN looks at nothing else.
func (c *capacityScheduler) calculator() {
	p, ok := c.get("resource-calculator")
	if ok && strings.HasSuffix(p.value, ".DominantResourceCalculator") {
		return
	}
	line, why := 0, "resource-calculator is DefaultResourceCalculator where nothing else is given"
	if ok {
		line, why = p.line, p.value
	}
	c.p.dims = c.p.dims[:1]
	for i := range c.hosts {
		c.hosts[i].size = map[string]int64{yarnMemory: c.hosts[i].size[yarnMemory]}
	}
	c.result.Report.Add(c.file, line, "virtual cores, and what else nodes have beside memory",
		"YARN counts memory alone: "+why)
}

// queues reads the queues below one.
func (c *capacityScheduler) queues(up *yarnQueue) {
	p, ok := c.get(up.path + ".queues")
	if !ok {
		return
	}
	for name := range strings.SplitSeq(p.value, ",") {
		if q, ok := c.queue(up, strings.TrimSpace(name), p.line); ok {
			c.result.Report.Carry("queue", 1)
			c.queues(q)
		}
	}
}

// labels finds the node labels that queues have capacities of.
func (c *capacityScheduler) labels() {
	for _, key := range slices.SortedFunc(maps.Keys(c.properties),
		func(a, b string) int { return c.properties[a].line - c.properties[b].line }) {
		q, rest, ok := strings.Cut(key, ".accessible-node-labels")
		if !ok {
			continue
		}
		label, setting, inner := strings.Cut(strings.TrimPrefix(rest, "."), ".")
		if rest == "" {
			c.get(key) // which labels a queue may use: those that it has a capacity of
		} else if inner && (setting == "capacity" || setting == "maximum-capacity") && q != "root" {
			if !slices.ContainsFunc(c.hosts, func(h hostRow) bool {
				return h.text[yarnLabel] == attributeText(yarnLabel, label)
			}) {
				c.result.Report.Add(c.file, c.properties[key].line, "node label "+label,
					"no node has it: give the list of nodes")
				c.get(key)
				continue
			}
			c.labelled[q] = append(c.labelled[q], label)
		}
	}
	for _, label := range c.yarn.labels[1:] {
		if !slices.ContainsFunc(slices.Collect(maps.Values(c.labelled)),
			func(l []string) bool { return slices.Contains(l, label) }) {
			c.result.Report.Add(c.file, 0, "nodes with label "+label,
				"no queue has a capacity of them: their hosts are in no plan")
		}
	}
}

// partition makes the plan of the nodes of a label.
func (c *capacityScheduler) partition(label string) {
	if label != yarnPlain && !slices.ContainsFunc(slices.Collect(maps.Values(c.labelled)),
		func(l []string) bool { return slices.Contains(l, label) }) {
		return
	}
	total := c.total(label)
	m := c.plan(label)
	if label != yarnPlain {
		c.result.Report.Carry("node label", 1)
	}
	most := make([]float64, len(total))
	for d, n := range total {
		most[d] = float64(n)
	}
	c.children(m, c.root, label, most)
	for _, key := range []string{".capacity", ".maximum-capacity"} {
		if p, ok := c.get(c.setting(c.root, label, key)); ok && p.value != "100" && p.value != "100.0" {
			c.result.Report.Add(c.file, p.line, capacityPrefix+"root"+key, "root always has all there is")
		}
	}
}

// setting is the key of a queue's setting for the nodes of a label.
func (c *capacityScheduler) setting(q *yarnQueue, label, key string) string {
	if label == yarnPlain {
		return q.path + key
	}
	return q.path + ".accessible-node-labels." + label + key
}

// children makes entries of the queues below one, which may have no more than most.
func (c *capacityScheduler) children(m *madePlan, up *yarnQueue, label string, most []float64) {
	var list []*yarnQueue
	var given []queueCapacity
	for _, q := range up.children {
		p, ok := c.get(c.setting(q, label, ".capacity"))
		if !ok && (label != yarnPlain) {
			continue // it has nothing of the label
		}
		g := queueCapacity{line: q.line}
		if ok {
			g = c.parse(p)
			c.result.Report.Carry("capacity", 1)
		} else {
			c.result.Report.Add(c.file, q.line, "queue "+q.path, "has no capacity: it counts as 0")
		}
		list, given = append(list, q), append(given, g)
	}
	if len(list) == 0 {
		return
	}
	c.sums(up, list, given)
	weight := capacityRatios(given)
	for i, q := range list {
		e := &entry{path: q.consumer(), ratio: weight[i], remark: fmt.Sprintf("line %d", given[i].line)}
		switch {
		case given[i].kind == capacityAbsolute:
			e.own = []owned{{label, given[i].amount}}
		case given[i].value == 0 && slices.ContainsFunc(given, func(o queueCapacity) bool { return o.value > 0 }):
			e.ratio, e.priority = 1, -1 // it gets what its siblings leave
		}
		mine := c.maximum(e, q, label, most)
		m.entries = append(m.entries, e)
		c.children(m, q, label, mine)
	}
}

// capacityRatios are the ratios of siblings: their percentages or weights; of absolute ones their memory, as what is
// idle goes to the one that uses least of its own.
func capacityRatios(given []queueCapacity) []int64 {
	weights := make([]float64, len(given))
	for i, g := range given {
		if weights[i] = g.value; g.kind == capacityAbsolute {
			weights[i] = float64(max(1, g.amount[0]))
		}
	}
	list := ratios(weights)
	for i, n := range list {
		list[i] = max(1, n)
	}
	return list
}

// sums compares siblings: percentages must be 100 in all, and all be given alike.
func (c *capacityScheduler) sums(up *yarnQueue, list []*yarnQueue, given []queueCapacity) {
	percent, first := 0.0, given[0]
	for i, g := range given {
		if g.kind != first.kind {
			c.faults.add(c.file, g.line, "queue %s: its capacity is given in another way than that of %s (line %d): "+
				"percentages, weights and amounts of siblings cannot be mixed",
				list[i].path, list[0].path, first.line)
			return
		}
		percent += g.value
	}
	switch {
	case first.kind != capacityPercent || math.Abs(percent-100) < 0.01:
	case percent > 100:
		c.faults.add(c.file, first.line, "the capacities of the queues below %s are %s %% in all: YARN refuses "+
			"more than 100", up.path, number(percent))
	case percent > 0:
		c.result.Report.Add(c.file, first.line,
			fmt.Sprintf("the capacities of the queues below %s, %s %% in all", up.path, number(percent)),
			"they divide all there is in their proportions, so that each is guaranteed more")
	}
}

// maximum gives an entry its limit, and returns what the queue may have at most, by dimension.
func (c *capacityScheduler) maximum(e *entry, q *yarnQueue, label string, most []float64) []float64 {
	p, ok := c.get(c.setting(q, label, ".maximum-capacity"))
	if !ok || p.value == "-1" || p.value == "-1.0" { // YARN's words for: not set
		return most
	}
	g := c.parse(p)
	if g.kind == capacityWeight {
		c.faults.add(c.file, p.line, "maximum-capacity %q: must be a percentage or amounts", p.value)
		return most
	}
	c.result.Report.Carry("maximum capacity", 1)
	mine := slices.Clone(most)
	limit := filled(len(most), none)
	for d := range most {
		switch {
		case g.kind == capacityAbsolute && g.amount[d] != none:
			mine[d] = min(most[d], float64(g.amount[d]))
		case g.kind == capacityPercent:
			mine[d] = most[d] * g.value / 100
		}
		if g.kind == capacityPercent && g.value == 100 {
			continue
		}
		limit[d] = int64(mine[d] + 1e-6)
		for _, o := range e.own { // what is owned is no part of the share
			limit[d] = max(0, limit[d]-max(0, o.amount[d]))
		}
	}
	e.limit = limit
	return mine
}

// parse reads a capacity: 12.5, 3w or [memory=10240,vcores=12].
func (c *capacityScheduler) parse(p *property) queueCapacity {
	g := queueCapacity{line: p.line}
	text := p.value
	if inner, ok := strings.CutPrefix(text, "["); ok {
		g.kind, g.amount = capacityAbsolute, filled(len(c.p.dims), none)
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || inner == "" {
			c.faults.add(c.file, p.line, "capacity %q: must be such as [memory=10240,vcores=12]", text)
			return g
		}
		for part := range strings.SplitSeq(inner, ",") {
			c.amount(&g, p, part)
		}
		return g
	}
	most := 100.0
	if weight, ok := strings.CutSuffix(text, "w"); ok {
		g.kind, text, most = capacityWeight, weight, 1e9
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(v >= 0 && v <= most) {
		c.faults.add(c.file, p.line, "capacity %q: must be a percentage from 0 to 100, a weight such as 3w, or "+
			"amounts such as [memory=10240,vcores=12]", p.value)
		return g
	}
	g.value = v
	return g
}

// amount reads a part of an absolute capacity, such as memory=10240.
func (c *capacityScheduler) amount(g *queueCapacity, p *property, part string) {
	key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
	n, ok := amountOf(strings.TrimSpace(value))
	if !ok {
		c.faults.add(c.file, p.line, "capacity %q: %q must be an amount such as memory=10240 (a percentage or a "+
			"weight for each resource is not supported)", p.value, part)
		return
	}
	d := c.known(key)
	if d < 0 || d >= len(c.p.dims) {
		c.result.Report.Add(c.file, p.line, "capacity of "+key,
			"it is no dimension here: no node has it, or YARN does not count it")
		return
	}
	g.amount[d] = n
}

// amountOf reads a whole number, with a suffix for MiB of memory.
func amountOf(text string) (n int64, ok bool) {
	times := int64(1)
	for suffix, factor := range map[string]int64{"Mi": 1, "Gi": 1 << 10, "Ti": 1 << 20} {
		if cut, has := strings.CutSuffix(text, suffix); has {
			text, times = cut, factor
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > swfNumberMax/times {
		return 0, false
	}
	return n * times, true
}

// rest lists what nothing was made of.
func (c *capacityScheduler) rest() {
	known := map[string]bool{"root": true}
	for _, path := range c.p.consumers {
		known["root"+strings.ReplaceAll(path, "/", ".")] = true
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.properties),
		func(a, b string) int { return c.properties[a].line - c.properties[b].line }) {
		p := c.properties[key]
		if p.used {
			continue
		}
		what, why := key, lostReason(yarnLost, key)
		if strings.HasPrefix(key, "root.") {
			queue := key
			for queue != "root" && !known[queue] {
				queue = queue[:strings.LastIndexByte(queue, '.')]
			}
			what = strings.TrimPrefix(key[len(queue):], ".")
			if last := key[strings.LastIndexByte(key, '.')+1:]; why == "has no counterpart" &&
				strings.Contains("capacity maximum-capacity queues", last) {
				what, why = key, "the queue is in no list of queues"
			}
		}
		c.result.Report.Add(c.file, p.line, what, why)
	}
}

// number is a number as people write it.
func number(f float64) string { return strconv.FormatFloat(math.Round(f*1e6)/1e6, 'f', -1, 64) }
