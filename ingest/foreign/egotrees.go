package foreign

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// egoTree is a distribution tree of ConsumerTrees.xml: of its elements, those whose meaning is certain.
type egoTree struct {
	file, name string
	groups     []string
	placement  map[string]string // by group
	paths      []string          // of consumers, parents before children
	ratio      map[string]int64
	line       map[string]int // of a path's ratio
}

func (t *egoTree) has(group string) bool { return slices.Contains(t.groups, group) }

// consumerTrees reads ConsumerTrees.xml.
func (g *ego) consumerTrees(f *File) error {
	root, err := readXML(f.Name, f.R)
	if err != nil {
		return err
	}
	g.inTrees(f.Name, root)
	if len(g.order) == 0 && len(g.trees) == 0 && g.faults.count == 0 {
		return fmt.Errorf("%s:%d: <%s> has neither <ConsumerHierarchy> nor <DistributionTree>", f.Name, root.line,
			root.name)
	}
	g.order = preorder(g.order)
	g.result.Report.Carry("ordered consumer", len(g.order))
	return nil
}

// inTrees looks for hierarchies and trees, whatever they stand in.
func (g *ego) inTrees(file string, e *element) {
	switch e.name {
	case "ConsumerHierarchy":
		for _, c := range e.children {
			g.hierarchy(file, c, "")
		}
	case "DistributionTree":
		g.distribution(file, e)
	default:
		for _, c := range e.children {
			switch c.name {
			case "ConsumerHierarchy", "DistributionTree":
				g.inTrees(file, c)
			default:
				g.unknown(file, c, e.name)
			}
		}
	}
}

// path is the path of a <Consumer> element.
func (g *ego) path(file string, e *element, up string) (path string, ok bool) {
	name := e.attrs["ConsumerName"]
	why := nameFault(name)
	if why == "" && strings.Count(up, "/") >= 32 {
		why = "is nested more than 32 levels deep"
	}
	if why != "" {
		g.faults.add(file, e.line, "ConsumerName %q %s", name, why)
		return "", false
	}
	return up + "/" + name, true
}

// hierarchy reads a consumer and those below it.
func (g *ego) hierarchy(file string, e *element, up string) {
	switch e.name {
	case "Consumer":
		path, ok := g.path(file, e, up)
		if !ok {
			return
		}
		if slices.Contains(g.order, path) {
			g.faults.add(file, e.line, "consumer %s is there twice", path)
			return
		}
		g.order = append(g.order, path)
		g.attrs(file, e, "ConsumerName")
		for _, c := range e.children {
			g.hierarchy(file, c, path)
		}
	case "ExecutionUser":
		g.result.Report.Add(file, e.line, "<ExecutionUser>", "stint starts no work, and so has no user to start it as")
	default:
		g.unknown(file, e, "ConsumerHierarchy")
	}
}

// distribution reads a tree of slot plans.
func (g *ego) distribution(file string, e *element) {
	t := &egoTree{file: file, name: e.attrs["DistributionTreeName"], placement: map[string]string{},
		ratio: map[string]int64{}, line: map[string]int{}}
	g.attrs(file, e, "DistributionTreeName")
	for _, c := range e.children {
		switch {
		case c.name == "ResourceGroupName" && c.text != "":
			t.groups = append(t.groups, c.text)
		case c.name == "PolicyParameter" && c.attrs["ParameterName"] == "DistributeBy" && len(t.groups) > 0:
			group := t.groups[len(t.groups)-1]
			switch by := c.text + c.attrs["ParameterValue"]; by {
			case "":
				t.placement[group] = "stacked"
			case "EqualFreeSlot":
				t.placement[group] = "balanced"
			default:
				g.result.Report.Add(file, c.line, "DistributeBy "+oneLine(by),
					"is neither empty (stacked) nor EqualFreeSlot (balanced)")
			}
		case c.name == "Consumer":
			g.treeConsumer(file, c, t, "")
		default:
			g.unknown(file, c, "DistributionTree")
		}
	}
	g.trees = append(g.trees, t)
}

// treeConsumer reads a consumer of a tree: its ratio.
func (g *ego) treeConsumer(file string, e *element, t *egoTree, up string) {
	path, ok := g.path(file, e, up)
	if !ok {
		return
	}
	g.attrs(file, e, "ConsumerName")
	if !slices.Contains(t.paths, path) {
		t.paths = append(t.paths, path)
	}
	for _, c := range e.children {
		switch c.name {
		case "Consumer":
			g.treeConsumer(file, c, t, path)
		case "ExecutionUser":
			g.result.Report.Add(file, c.line, "<ExecutionUser>",
				"stint starts no work, and so has no user to start it as")
		case "DistributionPolicies":
			for _, p := range c.children {
				if p.name != "SharingPolicy" {
					g.unknown(file, p, "DistributionPolicies")
					continue
				}
				g.sharing(file, p, t, path)
			}
		default:
			g.unknown(file, c, "Consumer")
		}
	}
}

func (g *ego) sharing(file string, e *element, t *egoTree, path string) {
	g.attrs(file, e)
	for _, c := range e.children {
		n, err := strconv.ParseInt(c.text, 10, 64)
		switch {
		case c.name != "Shares" || c.attrs["Type"] != "ratio":
			g.unknown(file, c, "SharingPolicy")
		case err != nil || n < 0 || n > 1e9:
			g.faults.add(file, c.line, "Shares %q: must be a whole number from 0 to 1000000000", c.text)
		default:
			t.ratio[path], t.line[path] = n, c.line
		}
	}
}

// treePlans makes slot plans of trees alone, where there is no table: what they own, lend and borrow is not known, so
// that all share.
func (g *ego) treePlans(f *File) {
	var paths []string
	for _, t := range g.trees {
		paths = append(paths, t.paths...)
	}
	g.p.consumers = preorder(slices.Concat(g.order, paths, g.p.consumers))
	for _, t := range g.trees {
		for _, name := range t.groups {
			if g.inMD(name) {
				g.result.Report.Add(f.Name, 0, "the tree "+t.name+" of "+name, "MDPlan.xml divides the group")
				continue
			}
			if len(t.paths) == 0 {
				g.result.Report.Add(f.Name, 0, "the tree "+t.name+" of "+name, "it has no consumers")
				continue
			}
			s := &slotPlan{group: name, placement: t.placement[name]}
			for _, path := range preorder(t.paths) {
				ratio, ok := t.ratio[path]
				if !ok {
					ratio = 1
				}
				e := slotEntry{path: path}
				if parentOf(path) == "" {
					e.keys = append(e.keys, slotKey{name: "policy", value: underShareRatio})
				}
				e.keys = append(e.keys, slotKey{"share", fmt.Sprintf("{ratio: %d}", ratio), ratio == 1})
				s.entries = append(s.entries, e)
			}
			g.p.slots = append(g.p.slots, s)
			g.result.Report.Carry("slot plan", 1)
			g.result.Report.Add(f.Name, 0, "what consumers own, lend and borrow in "+name,
				"ConsumerTrees.xml is read for what is certain in it; "+
					"the reporting table CONSUMER_RESOURCE_ALLOCATION has the figures (--allocation)")
		}
	}
}
