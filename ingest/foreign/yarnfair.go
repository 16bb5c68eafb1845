package foreign

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// fairScheduler is a fair-scheduler.xml while it is read.
type fairScheduler struct {
	*yarn
	total    []int64
	most     []int64 // queueMaxResourcesDefault
	policy   string  // defaultQueueSchedulingPolicy
	settings map[*yarnQueue]*fairQueue
}

// fairQueue is what a queue has of its own.
type fairQueue struct {
	weight      float64
	least, most []int64 // by dimension, none where not given
	policy      string
}

// fairLost tells why elements have no counterpart.
var fairLost = [][2]string{
	{"maxRunningApps", jobCounts.lack()},
	{"queueMaxAppsDefault", jobCounts.lack()},
	{"userMaxAppsDefault", jobCounts.lack()},
	{"maxAMShare", "an application master is a unit like others"},
	{"queueMaxAMShareDefault", "an application master is a unit like others"},
	{"maxContainerAllocation", "units may be as large as a host"},
	{"maxChildResources", queueRules.lack()},
	{"aclSubmitApps", "who may submit is `users` of a consumer, by the names that tokens have there"},
	{"aclAdministerApps", "who administers is `admins` of a consumer, by the names that tokens have there"},
	{"minSharePreemptionTimeout",
		"what is above its part is taken back at once, with the `reclaim_grace` of who has it"},
	{"fairSharePreemptionTimeout",
		"what is above its part is taken back at once, with the `reclaim_grace` of who has it"},
	{"fairSharePreemptionThreshold",
		"what is above its part is taken back at once, with the `reclaim_grace` of who has it"},
	{"defaultMinSharePreemptionTimeout",
		"what is above its part is taken back at once, with the `reclaim_grace` of who has it"},
	{"defaultFairSharePreemptionTimeout",
		"what is above its part is taken back at once, with the `reclaim_grace` of who has it"},
	{"defaultFairSharePreemptionThreshold",
		"what is above its part is taken back at once, with the `reclaim_grace` of who has it"},
	{"allowPreemptionFrom", "what is above its part is taken back, whoever has it"},
	{"reservation", reservations.lack()},
	{"reservation-agent", reservations.lack()},
	{"reservation-policy", reservations.lack()},
	{"reservation-planner", reservations.lack()},
	{"user", userLimits.lack()},
	{"queuePlacementPolicy", "a row of demand names its consumer itself"},
}

// fair reads fair-scheduler.xml.
func (y *yarn) fair(root *element) {
	f := &fairScheduler{yarn: y, settings: map[*yarnQueue]*fairQueue{}, policy: "fair"}
	f.total = y.total(yarnPlain)
	top := &yarnQueue{path: "root"}
	f.settings[top] = &fairQueue{weight: 1, policy: "fair"}
	for _, e := range root.children {
		switch e.name {
		case "queueMaxResourcesDefault":
			f.most = f.resources(e)
		case "defaultQueueSchedulingPolicy", "defaultQueueSchedulingMode":
			f.policy = strings.ToLower(e.text)
		}
	}
	for _, e := range root.children {
		switch name := e.attrs["name"]; {
		case isQueue(e) && name == "root":
			f.queueSettings(top, e)
		case isQueue(e):
			f.child(top, e)
		case e.name == "queueMaxResourcesDefault" || e.name == "defaultQueueSchedulingPolicy" ||
			e.name == "defaultQueueSchedulingMode":
		default:
			f.result.Report.Add(f.file, e.line, "<"+e.name+">", lostReason(fairLost, e.name))
		}
	}
	if len(top.children) == 0 {
		f.child(top, &element{name: "queue", attrs: map[string]string{"name": "default"}, line: root.line})
		f.result.Report.Add(f.file, root.line, "<allocations> without a queue",
			"YARN makes the queue root.default then, and so does this import")
	}
	m := f.plan(yarnPlain)
	f.divide(m, top, floats(f.total))
}

func isQueue(e *element) bool { return e.name == "queue" || e.name == "pool" }

// child reads an element <queue> below another queue.
func (f *fairScheduler) child(up *yarnQueue, e *element) {
	q, ok := f.queue(up, e.attrs["name"], e.line)
	if !ok {
		return
	}
	f.result.Report.Carry("queue", 1)
	f.settings[q] = &fairQueue{weight: 1, most: f.most, policy: f.policy}
	f.queueSettings(q, e)
	f.contradiction(q)
}

// contradiction lists a queue's minimum that is above its maximum: the maximum wins, as in YARN, which only warns.
func (f *fairScheduler) contradiction(q *yarnQueue) {
	s := f.settings[q]
	for d, name := range f.p.dims {
		most := s.at(s.most, d, math.Inf(1))
		if s.at(s.least, d, 0) > most {
			f.result.Report.Add(f.file, q.line, "queue "+q.path,
				fmt.Sprintf("its minimum of %s is above its maximum, and the maximum counts: %s", name, number(most)))
			s.least[d] = s.most[d]
		}
	}
}

// queueSettings reads what a queue's element has.
func (f *fairScheduler) queueSettings(q *yarnQueue, e *element) {
	s := f.settings[q]
	for _, c := range e.children {
		switch {
		case isQueue(c):
			f.child(q, c)
		case c.name == "weight":
			w, err := strconv.ParseFloat(c.text, 64)
			if err != nil || !(w >= 0 && w <= 1e9) {
				f.faults.add(f.file, c.line, "queue %s: weight %q: must be a number from 0 on", q.path, c.text)
				continue
			}
			s.weight = w
			f.result.Report.Carry("weight", 1)
		case c.name == "minResources" && q.path == "root", c.name == "maxResources" && q.path == "root":
			f.result.Report.Add(f.file, c.line, "<"+c.name+"> of root", "root always has all there is")
		case c.name == "minResources":
			s.least = f.resources(c)
			f.result.Report.Carry("minimum", 1)
		case c.name == "maxResources":
			s.most = f.resources(c)
			f.result.Report.Carry("maximum", 1)
		case c.name == "schedulingPolicy" || c.name == "schedulingMode":
			s.policy = strings.ToLower(c.text[strings.LastIndexByte(c.text, '.')+1:])
			f.result.Report.Add(f.file, c.line, "<"+c.name+"> "+c.text,
				"siblings are served by their part of what there is, whichever resource is scarce; allocations of a "+
					"leaf in order of arrival")
		default:
			f.result.Report.Add(f.file, c.line, "<"+c.name+">", lostReason(fairLost, c.name))
		}
	}
}

var (
	fairMB       = regexp.MustCompile(`^(\d+)(?:\.\d+)?\s*mb$`)
	fairCores    = regexp.MustCompile(`^(\d+)(?:\.\d+)?\s*vcores$`)
	fairPercent  = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*%\s*(memory|cpu)?$`)
	fairAssigned = regexp.MustCompile(`^([a-z0-9._/-]+)\s*=\s*(\d+(?:\.\d+)?)\s*(%|[A-Za-z]*)$`)
)

// resources reads amounts in one of their three forms: 8192 mb, 4 vcores; memory-mb=8192, vcores=4; percentages of the
// cluster.
func (f *fairScheduler) resources(e *element) []int64 {
	out := filled(len(f.p.dims), none)
	for part := range strings.SplitSeq(e.text, ",") {
		part = strings.TrimSpace(part)
		if !f.resource(e, out, strings.ToLower(part), part) {
			f.faults.add(f.file, e.line, "<%s> %q: %q must be such as 8192 mb, 4 vcores, memory-mb=8192, or 50%%",
				e.name, e.text, part)
		}
	}
	return out
}

// resource reads one amount of a list.
func (f *fairScheduler) resource(e *element, out []int64, part, asWritten string) bool {
	whole := func(d int, text string) bool {
		n, ok := amountOf(text)
		if ok {
			out[d] = n
		}
		return ok
	}
	if m := fairMB.FindStringSubmatch(part); m != nil {
		return whole(0, m[1])
	}
	if m := fairCores.FindStringSubmatch(part); m != nil {
		return whole(1, m[1])
	}
	if m := fairPercent.FindStringSubmatch(part); m != nil {
		for d := range out {
			if m[2] == "" || m[2] == "memory" && d == 0 || m[2] == "cpu" && d == 1 {
				out[d] = percentOf(f.total[d], m[1])
			}
		}
		return true
	}
	m := fairAssigned.FindStringSubmatch(asWritten)
	if m == nil {
		return false
	}
	d := f.known(m[1])
	if d < 0 {
		f.result.Report.Add(f.file, e.line, "<"+e.name+"> of "+m[1], "it is no dimension here: no node has it")
		return true
	}
	if m[3] == "%" {
		out[d] = percentOf(f.total[d], m[2])
		return true
	}
	return whole(d, m[2]+m[3])
}

// known is the dimension of a resource type, -1 when no node has it.
func (y *yarn) known(resource string) int {
	switch resource {
	case "memory-mb", "memory":
		return 0
	case "vcores":
		return 1
	}
	return y.p.dimKnown(resource)
}

// percentOf is a percentage of an amount, rounded down.
func percentOf(n int64, percent string) int64 {
	v, err := strconv.ParseFloat(percent, 64)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return int64(float64(n)*v/100 + 1e-6)
}

// divide makes entries of the queues below one, whose steady fair share is share, by dimension.
func (f *fairScheduler) divide(m *madePlan, up *yarnQueue, share []float64) {
	if len(up.children) == 0 {
		return
	}
	parts := make([][]float64, len(up.children)) // by queue and dimension
	for i := range parts {
		parts[i] = make([]float64, len(share))
	}
	weights := make([]float64, len(up.children))
	last := make([]bool, len(up.children)) // gets what the others leave
	for d := range share {
		f.dimensionShares(up, d, share[d], parts, weights, last)
	}
	list := ratios(weights)
	for i, q := range up.children {
		s := f.settings[q]
		e := &entry{path: q.consumer(), ratio: max(1, list[i]), limit: s.most, remark: fmt.Sprintf("line %d", q.line)}
		if last[i] {
			e.ratio, e.priority = 1, -1
		}
		m.entries = append(m.entries, e)
		f.divide(m, q, parts[i])
	}
}

// dimensionShares divides a share of one dimension as YARN does, and raises the weights of those whose minimum is more
// than their weight gives: their part is then the minimum when all ask. By the policy fair memory alone counts, by drf
// the largest.
func (f *fairScheduler) dimensionShares(
	up *yarnQueue, d int, share float64, parts [][]float64, weights []float64, last []bool,
) {
	list := make([]*fairQueue, len(up.children))
	least := 0.0
	for i, q := range up.children {
		list[i] = f.settings[q]
		least += list[i].at(list[i].least, d, 0)
	}
	level := fairLevel(list, d, share)
	for i, s := range list {
		parts[i][d] = s.clamp(d, level)
		if d > 0 && f.settings[up].policy != "drf" {
			continue
		}
		weight, low := s.weight, s.at(s.least, d, 0)
		switch {
		case least >= share && share > 0: // minimums take all there is
			weight = low / share
			last[i] = (d == 0 || last[i]) && low == 0
		case low > level*s.weight && level > 0:
			weight = low / level
		case s.weight == 0:
			last[i] = d == 0 || last[i]
		}
		weights[i] = max(weights[i], weight)
	}
	if least > share && (d == 0 || f.settings[up].policy == "drf") {
		f.result.Report.Add(f.file, up.line, "minimums below "+up.path,
			fmt.Sprintf("they are more %s than there is: each gets its part in their proportion", f.p.dims[d]))
	}
}

// at is an amount of a dimension, or what counts where it is not given.
func (s *fairQueue) at(amounts []int64, d int, missing float64) float64 {
	if amounts == nil || amounts[d] == none {
		return missing
	}
	return float64(amounts[d])
}

// clamp is a queue's fair share at a level: what each has for a weight of 1.
func (s *fairQueue) clamp(d int, level float64) float64 {
	least := max(s.weight*level, s.at(s.least, d, 0))
	return min(least, s.at(s.most, d, least)) // the maximum wins, as in YARN
}

// fairLevel is the level at which fair shares are all there is (YARN's ComputeFairShares).
func fairLevel(list []*fairQueue, d int, share float64) float64 {
	used := func(level float64) (sum float64) {
		for _, s := range list {
			sum += s.clamp(d, level)
		}
		return sum
	}
	high := 1.0
	for range 100 {
		if used(high) >= share {
			break
		}
		high *= 2
	}
	low := 0.0
	for range 100 {
		if middle := (low + high) / 2; used(middle) < share {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

func floats(list []int64) []float64 {
	out := make([]float64, len(list))
	for i, n := range list {
		out[i] = float64(n)
	}
	return out
}
