package main

import (
	"fmt"
	"strings"
)

// hostileCapacity makes a capacity-scheduler.xml.
func hostileCapacity(g *hostile) []string {
	var b strings.Builder
	set := func(key, value string) {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n",
			inXML("yarn.scheduler.capacity."+key), inXML(value))
	}
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	if g.some(2) {
		set("resource-calculator", "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator")
	}
	kind := g.IntN(3)
	var below func(up string, depth int, most int)
	below = func(up string, depth int, most int) {
		g.names = map[string]bool{}
		var names []string
		for range 1 + g.IntN(4) {
			names = append(names, g.name(".,"))
		}
		set(up+".queues", strings.Join(names, ","))
		parts := g.percents(len(names))
		for i, name := range names {
			path := up + "." + name
			mine := most * parts[i] / 100
			switch {
			case g.wild && g.some(8):
				set(path+".capacity", g.number())
			case kind == 0:
				set(path+".capacity", fmt.Sprint(parts[i]))
			case kind == 1:
				set(path+".capacity", g.upTo(9)+"w")
			default:
				set(path+".capacity", fmt.Sprintf("[memory=%d,vcores=%d]", mine, mine/1024))
			}
			if g.some(3) {
				set(path+".maximum-capacity", g.from("-1", "100", "50", "12.5", "[memory=4096,vcores=4]"))
			}
			if g.some(4) {
				set(path+".accessible-node-labels."+g.from("1", "true", "ssd", "ä b", "none")+".capacity",
					fmt.Sprint(parts[i]))
			}
			if g.some(4) {
				set(path+"."+g.from("user-limit-factor", "state", "ordering-policy", "priority", "odd"), g.number())
			}
			if depth < 3 && g.some(3) {
				below(path, depth+1, mine)
			}
		}
	}
	below("root", 1, 400_000)
	b.WriteString("</configuration>\n")
	return g.yarnNodes(g.file("capacity-scheduler.xml", b.String()))
}

// yarnNodes are the arguments of an import of YARN: the queues, and equal hosts or a list of nodes.
func (g *hostile) yarnNodes(queues string) []string {
	args := []string{"--queues", queues}
	if g.some(2) {
		return append(args, "--hosts", fmt.Sprint(1+g.IntN(9)), "--size", "memory-mb=65536,vcores=16")
	}
	var nodes []string
	g.names = map[string]bool{}
	for range 1 + g.IntN(5) {
		nodes = append(nodes, fmt.Sprintf(`{"id": "x:1", "nodeHostName": %s, "state": %s, "rack": %s, `+
			`"availMemoryMB": 65536, "availableVirtualCores": %d, "nodeLabels": [%s], `+
			`"totalResource": {"resourceInformations": {"resourceInformation": [{"name": %s, "value": %d}]}}}`, inYAML(g.name("")),
			inYAML(g.from("RUNNING", "RUNNING", "RUNNING", "UNHEALTHY", "LOST", "odd")), inYAML("/"+g.name("")),
			1+g.IntN(64), inYAML(g.from("", "", "", "1", "true", "ssd", "ä b")),
			inYAML(g.from("yarn.io/gpu", "vcores", "rack", "node_label", "host")), g.IntN(9)))
	}
	return append(args, "--nodes", g.file("nodes.json", `{"nodes": {"node": [`+strings.Join(nodes, ",\n")+"]}}\n"))
}

// hostileFair makes a fair-scheduler.xml.
func hostileFair(g *hostile) []string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<allocations>\n")
	amounts := func() string {
		if g.wild && g.some(6) {
			return g.number()
		}
		return g.from("8192 mb, 4 vcores", "memory-mb=65536, vcores=8", "25%", "10.5% memory, 20% cpu", "0 mb,0vcores",
			"memory-mb=50%, vcores=3", "999999999 mb, 9999 vcores")
	}
	var below func(depth int)
	below = func(depth int) {
		g.names = map[string]bool{}
		for range 1 + g.IntN(4) {
			fmt.Fprintf(&b, "<%[1]s name=\"%[2]s\">\n", "queue", inXML(g.name(".")))
			if g.some(2) {
				fmt.Fprintf(&b, "<weight>%s</weight>\n", g.upTo(5))
			}
			for _, key := range []string{"minResources", "maxResources"} {
				if g.some(3) {
					fmt.Fprintf(&b, "<%[1]s>%[2]s</%[1]s>\n", key, inXML(amounts()))
				}
			}
			if g.some(3) {
				fmt.Fprintf(&b, "<schedulingPolicy>%s</schedulingPolicy>\n", g.from("fair", "drf", "fifo", "x.y.Fair"))
			}
			if depth < 3 && g.some(3) {
				names := g.names
				below(depth + 1)
				g.names = names
			}
			b.WriteString("</queue>\n")
		}
	}
	if !g.some(20) {
		below(1)
	}
	if g.some(3) {
		fmt.Fprintf(&b, "<queueMaxResourcesDefault>%s</queueMaxResourcesDefault>\n", inXML(amounts()))
	}
	b.WriteString("</allocations>\n")
	return g.yarnNodes(g.file("fair-scheduler.xml", b.String()))
}

// hostileYuniKorn makes a queues.yaml.
func hostileYuniKorn(g *hostile) []string {
	var b strings.Builder
	b.WriteString("partitions:\n")
	for i := range 1 + g.IntN(2) {
		g.names = map[string]bool{}
		name := "default"
		if i > 0 {
			name = g.name("'\\")
		}
		fmt.Fprintf(&b, "- name: %s\n", inYAML(name))
		if g.some(3) {
			fmt.Fprintf(&b, "  nodesortpolicy: {type: %s}\n", g.from("fair", "binpacking"))
		}
		b.WriteString("  queues:\n  - name: root\n    queues:\n")
		g.yunikornQueues(&b, "    ", 1)
	}
	args := []string{"--queues", g.file("queues.yaml", b.String())}
	return append(args, g.kubeNodes("vcore=16,memory=64Gi", "si/node-partition")...)
}

func (g *hostile) yunikornQueues(b *strings.Builder, indent string, depth int) {
	g.names = map[string]bool{}
	for range 1 + g.IntN(4) {
		fmt.Fprintf(b, "%s- name: %s\n", indent, inYAML(g.name(".")))
		if g.some(2) {
			fmt.Fprintf(b, "%s  resources:\n", indent)
			for _, key := range []string{"guaranteed", "max"} {
				if g.some(2) {
					fmt.Fprintf(b, "%s    %s: {%s}\n", indent, key, g.resourceList())
				}
			}
		}
		if g.some(4) {
			fmt.Fprintf(b, "%s  properties: {priority.offset: %s, %s: %s}\n", indent, inYAML(g.upTo(9)),
				inYAML(g.name("")), inYAML(g.name("")))
		}
		if g.some(5) {
			fmt.Fprintf(b, "%s  maxapplications: %s\n", indent, inYAML(g.number()))
		}
		if depth < 3 && g.some(3) {
			fmt.Fprintf(b, "%s  queues:\n", indent)
			names := g.names
			g.yunikornQueues(b, indent+"  ", depth+1)
			g.names = names
		}
	}
}

// resourceList is a mapping from resources to amounts, without its brackets.
func (g *hostile) resourceList() string {
	var list []string
	seen := map[string]bool{}
	for range 1 + g.IntN(3) {
		if r := g.resource(); !seen[r] {
			seen[r] = true
			list = append(list, inYAML(r)+": "+inYAML(g.number()))
		}
	}
	return strings.Join(list, ", ")
}

// kubeNodes are the arguments that tell of nodes: equal ones, or a file of Node objects, with a label whose values are
// odd.
func (g *hostile) kubeNodes(size, label string) []string {
	if g.some(2) {
		return []string{"--hosts", fmt.Sprint(1 + g.IntN(9)), "--size", size}
	}
	return []string{"--nodes", g.file("nodes.yaml", g.nodeObjects(label))}
}

// nodeObjects is a list of Node objects.
func (g *hostile) nodeObjects(labels ...string) string {
	var b strings.Builder
	g.names = map[string]bool{}
	for range 1 + g.IntN(5) {
		fmt.Fprintf(&b, "---\nkind: Node\nmetadata:\n  name: %s\n  labels: {zz: y", inYAML(g.name("")))
		for _, label := range labels {
			if !g.some(4) {
				fmt.Fprintf(&b, ", %s: %s", inYAML(label), inYAML(g.from("default", "a", "a", "b", "ä", "r 1", "'", "1",
					"true")))
			}
		}
		fmt.Fprintf(&b, "}\nspec: {unschedulable: %s}\nstatus:\n  allocatable: {cpu: %d, memory: %dGi", g.from("false",
			"false", "true"), 1+g.IntN(64), 1+g.IntN(256))
		for r := g.resource(); r != "cpu" && r != "memory"; r = "cpu" {
			fmt.Fprintf(&b, ", %s: %s", inYAML(r), inYAML(g.number()))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// hostileVolcano makes Queue objects of Volcano.
func hostileVolcano(g *hostile) []string {
	return g.queueObjects("scheduling.volcano.sh/v1beta1", "parent", func(b *strings.Builder) {
		for _, key := range []string{"deserved", "capability", "guarantee"} {
			if !g.some(2) {
				continue
			}
			list := "{" + g.resourceList() + "}"
			if key == "guarantee" {
				list = "{resource: " + list + "}"
			}
			fmt.Fprintf(b, ", %s: %s", key, list)
		}
		if g.some(2) {
			fmt.Fprintf(b, ", weight: %s", inYAML(g.upTo(9)))
		}
		if g.some(3) {
			fmt.Fprintf(b, ", priority: %s, reclaimable: %s", inYAML(g.upTo(100)), g.from("true", "false"))
		}
	})
}

// hostileKAI makes Queue objects of KAI.
func hostileKAI(g *hostile) []string {
	return g.queueObjects("scheduling.run.ai/v2", "parentQueue", func(b *strings.Builder) {
		b.WriteString(", resources: {x: 1")
		for _, r := range []string{"cpu", "memory", "gpu"} {
			if !g.some(3) {
				fmt.Fprintf(b, ", %s: {quota: %s, limit: %s, overQuotaWeight: %s}", r,
					inYAML(g.from("-1", "0", "4", "0.5", "12000", g.number())),
					inYAML(g.from("-1", "-1", "8", g.number())), inYAML(g.upTo(4)))
			}
		}
		b.WriteString("}")
		if g.some(4) {
			fmt.Fprintf(b, ", reclaimMinRuntime: %s", inYAML(g.from("10m", "0s", "1h30m", "1ms", "9999h")))
		}
		if g.some(3) {
			fmt.Fprintf(b, ", priority: %s, displayName: %s", inYAML(g.upTo(100)), inYAML(g.name("")))
		}
	})
}

// queueObjects makes Queue objects with some parents, and nodes.
func (g *hostile) queueObjects(group, parent string, spec func(b *strings.Builder)) []string {
	var b strings.Builder
	var names []string
	for i := range 1 + g.IntN(6) {
		name := g.name("")
		fmt.Fprintf(&b, "---\napiVersion: %s\nkind: Queue\nmetadata: {name: %s}\nspec: {a: 1", group, inYAML(name))
		if i > 0 && g.some(2) {
			fmt.Fprintf(&b, ", %s: %s", parent, inYAML(names[g.IntN(len(names))]))
		}
		spec(&b)
		b.WriteString("}\n")
		names = append(names, name)
	}
	args := []string{"--manifests", g.file("queues.yaml", b.String())}
	return append(args, g.kubeNodes("cpu=16,memory=64Gi,nvidia.com/gpu=2", "x")...)
}
