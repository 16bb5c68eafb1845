package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mdPlan reads MDPlan.xml: each of its distribution trees becomes a multidimensional plan.
func (g *ego) mdPlan(f *File) error {
	root, err := readXML(f.Name, f.R)
	if err != nil {
		return err
	}
	trees := []*element{root}
	if root.name != "DistributionTree" {
		trees = nil
		for _, c := range root.children {
			if c.name == "DistributionTree" {
				trees = append(trees, c)
			} else {
				g.unknown(f.Name, c, root.name)
			}
		}
	}
	if len(trees) == 0 {
		return fmt.Errorf("%s:%d: <%s> has no <DistributionTree>", f.Name, root.line, root.name)
	}
	for _, e := range trees {
		g.mdTree(f.Name, e)
	}
	g.result.Report.Carry("multidimensional plan", len(g.p.plans))
	return nil
}

// egoMD is a multidimensional plan while it is read.
type egoMD struct {
	file         string
	m            madePlan
	dims         []string // ConsumableResource, in order
	firstFree    int      // consumers whose GetFreeFromNextLevelBeforeReclaim is true
	firstReclaim int      // and those whose it is not
	line         int
}

func (g *ego) mdTree(file string, e *element) {
	x := &egoMD{file: file, m: madePlan{name: e.attrs["DistributionTreeName"]}, line: e.line}
	g.attrs(file, e, "DistributionTreeName", "RevisionVersion")
	if why := nameFault(strings.ReplaceAll(x.m.name, "/", "")); why != "" {
		g.faults.add(file, e.line, "DistributionTreeName %q %s", x.m.name, why)
	}
	for _, c := range e.children {
		switch c.name {
		case "ResourceGroupName":
			x.m.groups = append(x.m.groups, c.text)
			if !slices.ContainsFunc(g.defs, func(d egoGroupDef) bool { return d.name == c.text }) {
				g.faults.add(file, c.line, "ResourceGroupName %q is no group of ResourceGroups.xml", c.text)
			}
		case "ConsumableResources":
			g.consumables(x, c)
		case "PolicyParameter":
			name := c.attrs["name"]
			why := "what it means is not known for certain"
			if name == "DefaultGracePeriod" {
				why = "which grace it is, is not known for certain: reclaim_grace of consumers, or public_pool: {grace}"
			}
			g.result.Report.Add(file, c.line, "PolicyParameter "+oneLine(name), why)
		case "SlotMapping":
			g.result.Report.Add(file, c.line, "<SlotMapping>", "a multidimensional plan counts no slots here")
		case "Consumer":
			g.mdConsumer(x, c, "")
		default:
			g.unknown(file, c, "DistributionTree")
		}
	}
	switch {
	case x.firstReclaim > 0 && x.firstFree > 0:
		g.result.Report.Add(file, x.line, "GetFreeFromNextLevelBeforeReclaim",
			"consumers differ; reclaim_for_preference holds for a plan, and is left out")
	case x.firstReclaim > 0:
		x.m.keys = append(x.m.keys, "reclaim_for_preference: true")
	}
	g.p.plans = append(g.p.plans, x.m)
}

// consumables reads the dimensions of a plan, and their overcommit.
func (g *ego) consumables(x *egoMD, e *element) {
	var over []string
	for _, c := range e.children {
		name := identifier(c.text)
		if c.text == "" {
			name = identifier(c.attrs["name"] + c.attrs["Name"])
		}
		g.attrs(x.file, c, "name", "Name", "OverCommitRatio")
		switch {
		case c.name != "ConsumableResource":
			g.unknown(x.file, c, "ConsumableResources")
			continue
		case !slices.Contains(g.p.dims, name):
			g.result.Report.Add(x.file, c.line, "ConsumableResource "+oneLine(c.text+c.attrs["name"]+c.attrs["Name"]),
				"the list of hosts has no such column (egosh resource list -ll -o)")
			continue
		}
		x.dims = append(x.dims, name)
		ratio := c.attrs["OverCommitRatio"]
		if v, err := strconv.ParseFloat(ratio, 64); ratio != "" && (err != nil || v < 0.001 || v > 1000) {
			g.faults.add(x.file, c.line, "OverCommitRatio %q: must be a number from 0.001 to 1000", ratio)
		} else if ratio != "" && v != 1 {
			over = append(over, fmt.Sprintf("%s: %s", name, strconv.FormatFloat(v, 'f', -1, 64)))
		}
	}
	if len(over) > 0 {
		x.m.keys = append(x.m.keys, "overcommit: {"+strings.Join(over, ", ")+"}")
	}
}

// mdConsumer reads a consumer and those below it.
func (g *ego) mdConsumer(x *egoMD, e *element, up string) {
	path, ok := g.path(x.file, e, up)
	if !ok {
		return
	}
	g.attrs(x.file, e, "ConsumerName")
	if slices.ContainsFunc(x.m.entries, func(o *entry) bool { return o.path == path }) {
		g.faults.add(x.file, e.line, "consumer %s is there twice", path)
		return
	}
	if !slices.Contains(g.p.consumers, path) {
		g.p.consumers = append(g.p.consumers, path)
	}
	if len(g.order) > 0 && !slices.Contains(g.order, path) {
		g.result.Report.Add(x.file, e.line, "consumer "+path, "ConsumerTrees.xml does not have it; it comes last")
	}
	made := &entry{path: path, ratio: 1, limit: filled(len(g.p.dims), none)}
	x.m.entries = append(x.m.entries, made)
	for _, c := range e.children {
		switch c.name {
		case "Consumer":
			g.mdConsumer(x, c, path)
		case "DistributionPolicies":
			for _, p := range c.children {
				g.mdPolicy(x, p, made)
			}
		case "ExecutionUser":
			g.result.Report.Add(x.file, c.line, "<ExecutionUser>",
				"stint starts no work, and so has no user to start it as")
		default:
			g.unknown(x.file, c, "Consumer")
		}
	}
}

// number is the whole number that an element has as its text.
func (g *ego) number(file string, e *element, most int64) (int64, bool) {
	n, err := strconv.ParseInt(e.text, 10, 64)
	if err != nil || n < 0 || n > most {
		g.faults.add(file, e.line, "<%s> %q: must be a whole number from 0 to %d", e.name, e.text, most)
		return 0, false
	}
	return n, true
}

// mdPolicy reads an element of <DistributionPolicies>.
func (g *ego) mdPolicy(x *egoMD, e *element, made *entry) {
	switch e.name {
	case "Rank":
		if n, ok := g.number(x.file, e, 1<<30); ok && n > 0 {
			made.keys = append(made.keys, fmt.Sprintf("rank: %d", n))
		}
	case "Sharing":
		g.mdSharing(x, e, made)
	case "OwnershipPolicy":
		for _, c := range e.children {
			switch c.name {
			case "PrivatePoolGracePeriod":
				if n, ok := g.number(x.file, c, 1<<30); ok {
					made.keys = append(made.keys, fmt.Sprintf("private_pool_grace: %ds", n))
				}
			case "ResourceGroup":
				g.mdOwns(x, c, made)
			default:
				g.unknown(x.file, c, "OwnershipPolicy")
			}
		}
	default:
		g.unknown(x.file, e, "DistributionPolicies")
	}
}

// mdSharing reads priority, ratio and limits.
func (g *ego) mdSharing(x *egoMD, e *element, made *entry) {
	g.attrs(x.file, e, "priority", "EnforceSiblingShareReclaim")
	if text := e.attrs["priority"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < -1<<30 || n > 1<<30 {
			g.faults.add(x.file, e.line, "priority %q: must be a whole number", text)
		}
		made.priority = n
	}
	switch text := strings.ToLower(e.attrs["EnforceSiblingShareReclaim"]); text {
	case "", "true", "y", "yes", "1":
	case "false", "n", "no", "0":
		made.keys = append(made.keys, "share_reclaim: false")
	default:
		g.result.Report.Add(x.file, e.line, "EnforceSiblingShareReclaim "+quoted(text), "is neither true nor false")
	}
	for _, c := range e.children {
		kind := c.attrs["type"]
		d := slices.Index(g.p.dims, identifier(kind))
		switch {
		case c.name == "Shares" && (kind == "ratio" || kind == ""):
			if n, ok := g.number(x.file, c, 1e9); ok {
				made.ratio = n
			}
		case c.name == "Limit" && d >= 0:
			if n, ok := g.number(x.file, c, 1<<53); ok {
				made.limit[d] = n
			}
		case c.name == "Limit":
			g.result.Report.Add(x.file, c.line, "Limit of type "+quoted(kind), "is no dimension of the hosts")
		default:
			g.unknown(x.file, c, "Sharing")
		}
	}
}

// mdOwns reads what a consumer owns of a resource group.
func (g *ego) mdOwns(x *egoMD, e *element, made *entry) {
	g.attrs(x.file, e, "name", "PreferenceLevel", "GetFreeFromNextLevelBeforeReclaim")
	group := e.attrs["name"]
	if !slices.Contains(x.m.groups, group) {
		g.faults.add(x.file, e.line, "ResourceGroup %q is none of the plan's", group)
		return
	}
	if text := e.attrs["PreferenceLevel"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 10 {
			g.result.Report.Add(x.file, e.line, "PreferenceLevel "+quoted(text), "must be from 1 to 10 here")
		} else {
			if made.prefers == nil {
				made.prefers = map[string]int{}
			}
			made.prefers[group] = n
		}
	}
	switch text := strings.ToLower(e.attrs["GetFreeFromNextLevelBeforeReclaim"]); text {
	case "":
	case "true", "y", "yes", "1":
		x.firstFree++
	case "false", "n", "no", "0":
		x.firstReclaim++
	default:
		g.result.Report.Add(x.file, e.line, "GetFreeFromNextLevelBeforeReclaim "+quoted(text),
			"is neither true nor false")
	}
	for _, c := range e.children {
		if c.name != "HostSelection" {
			g.unknown(x.file, c, "ResourceGroup")
			continue
		}
		if need := c.attrs["ResReq"]; need != "" {
			g.result.Report.Add(x.file, c.line, "ResReq "+quoted(need),
				"hosts are owned by number, part or list, not by a requirement; a resource group may have one")
		}
		if kind := c.attrs["type"]; kind != "" {
			g.result.Report.Add(x.file, c.line, "HostSelection of type "+quoted(kind),
				"its types are not known for certain; whole hosts are owned, as what stands in it says")
		}
		for _, n := range c.children {
			g.hostRule(x, n, group, made)
		}
	}
}

// hostRule makes a rule of ownership of a number or list of hosts.
func (g *ego) hostRule(x *egoMD, e *element, group string, made *entry) {
	switch e.name {
	case "NumHosts":
		switch kind := strings.ToLower(e.attrs["type"]); {
		case strings.HasPrefix(kind, "percent"):
			if n, ok := g.number(x.file, e, 100); ok && n > 0 {
				made.rules = append(made.rules, fmt.Sprintf("{group: %s, percent: %d}", quoted(group), n))
			}
		case kind == "remaining" || strings.EqualFold(e.text, "remaining"):
			made.rules = append(made.rules, fmt.Sprintf("{group: %s, remaining: true}", quoted(group)))
		case kind == "" || kind == "number" || kind == "absolute":
			if n, ok := g.number(x.file, e, hostsMax); ok && n > 0 {
				made.rules = append(made.rules, fmt.Sprintf("{group: %s, hosts: %d}", quoted(group), n))
			}
		default:
			g.result.Report.Add(x.file, e.line, "NumHosts of type "+quoted(kind),
				"is not known; number and percent are")
		}
	case "HostList":
		var list []string
		for _, h := range e.children {
			switch {
			case h.name != "Host":
				g.unknown(x.file, h, "HostList")
			case g.hostKnown(h.text):
				list = append(list, quoted(h.text))
			default:
				g.result.Report.Add(x.file, h.line, "host "+h.text, "the list of hosts does not have it")
			}
		}
		if len(list) > 0 {
			made.rules = append(made.rules, "{host_list: ["+strings.Join(list, ", ")+"]}")
		}
	default:
		g.unknown(x.file, e, "HostSelection")
	}
}

func (g *ego) hostKnown(name string) bool {
	_, ok := g.hostAt[name]
	return ok
}
