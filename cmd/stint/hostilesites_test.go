package main

import (
	"fmt"
	"strings"
)

// hostileKueue makes cluster queues, cohorts, flavors, topologies, local queues, and in half of the cases nodes and
// workloads.
func hostileKueue(g *hostile) []string {
	var b strings.Builder
	object := func(kind, name, space, spec string) {
		fmt.Fprintf(&b, "---\nkind: %s\nmetadata: {name: %s, namespace: %s}\nspec: {%s}\n", kind, inYAML(name),
			inYAML(space), spec)
	}
	flavors, cohorts := []string{g.name("'\\")}, []string{""}
	if g.some(2) {
		flavors = append(flavors, g.name("'\\"))
	}
	for i, f := range flavors {
		spec := "x: 1"
		if g.some(2) {
			spec = fmt.Sprintf("nodeLabels: {f: %s}", g.from("a", "b", "default"))
		}
		if i == 0 && g.some(2) {
			spec += ", topologyName: t"
		}
		object("ResourceFlavor", f, "", spec)
	}
	object("Topology", "t", "", fmt.Sprintf("levels: [{nodeLabel: %s}, {nodeLabel: x/rack}, {nodeLabel: %s}]",
		inYAML(g.from("zone", "x/host", "x/state", "cpu_milli", "日本", "flavor")), "kubernetes.io/hostname"))
	for range g.IntN(3) {
		name := g.name("")
		object("Cohort", name, "", fmt.Sprintf("parentName: %s, fairSharing: {weight: %s}",
			inYAML(cohorts[g.IntN(len(cohorts))]), inYAML(g.from("0", "1", "2.5", "500m", g.upTo(9)))))
		cohorts = append(cohorts, name)
	}
	resources := []string{"cpu", "memory", g.resource()}
	var locals []string
	for range 1 + g.IntN(4) {
		name := g.name("")
		object("ClusterQueue", name, "", g.clusterQueue(flavors, resources, cohorts))
		for range g.IntN(3) {
			local := g.name("")
			object("LocalQueue", local, "ns", fmt.Sprintf("clusterQueue: %s, fairSharing: {weight: %s}", inYAML(name),
				inYAML(g.upTo(4))))
			locals = append(locals, local)
		}
	}
	if g.some(2) {
		b.WriteString(g.nodeObjects("f", "zone", "x/rack", "x/host", "x/state", "cpu_milli", "日本", "flavor"))
		for range g.IntN(4) {
			if len(locals) == 0 {
				break
			}
			object("Workload", g.name(""), "ns", fmt.Sprintf("queueName: %s, podSets: [%s]",
				inYAML(locals[g.IntN(len(locals))]), g.podSets()))
		}
	}
	return []string{"--manifests", g.file("queues.yaml", b.String())}
}

// clusterQueue is the spec of a cluster queue.
func (g *hostile) clusterQueue(flavors, resources, cohorts []string) string {
	var list []string
	for _, f := range flavors {
		var quotas []string
		seen := map[string]bool{}
		for _, r := range resources[:1+g.IntN(len(resources))] {
			if seen[r] {
				continue
			}
			seen[r] = true
			q := fmt.Sprintf("{name: %s, nominalQuota: %s", inYAML(r), inYAML(g.from("8", "64", "1000", g.number())))
			if g.some(3) {
				q += ", borrowingLimit: " + inYAML(g.number())
			}
			if g.some(4) {
				q += ", lendingLimit: " + inYAML(g.from("0", "1", "8"))
			}
			quotas = append(quotas, q+"}")
		}
		list = append(list, fmt.Sprintf("{name: %s, resources: [%s]}", inYAML(f), strings.Join(quotas, ", ")))
	}
	spec := fmt.Sprintf("cohortName: %s, resourceGroups: [{coveredResources: [cpu], flavors: [%s]}]",
		inYAML(cohorts[g.IntN(len(cohorts))]), strings.Join(list, ", "))
	if g.some(3) {
		spec += fmt.Sprintf(", fairSharing: {weight: %s}", inYAML(g.from("0", "1", "0.1", g.number())))
	}
	if g.some(3) {
		spec += ", preemption: {reclaimWithinCohort: Any, borrowWithinCohort: {policy: LowerPriority}}"
	}
	return spec
}

// podSets are the pod sets of a workload.
func (g *hostile) podSets() string {
	var sets []string
	for i := range 1 + g.IntN(2) {
		request := ""
		if g.some(2) {
			request = fmt.Sprintf(", topologyRequest: {%s: %s}", g.from("required", "preferred"),
				inYAML(g.from("x/rack", "kubernetes.io/hostname", "zone", "x/host", "nowhere")))
		}
		if g.some(4) {
			request += ", minCount: " + g.upTo(3)
		}
		sets = append(sets, fmt.Sprintf("{name: s%d, count: %s%s, template: {spec: {containers: [{resources: "+
			"{requests: {%s}}}]}}}", i, inYAML(g.upTo(6)), request, g.resourceList()))
	}
	return strings.Join(sets, ", ")
}

// slurmWord is a name that slurm.conf can hold without quotes.
func (g *hostile) slurmWord() string {
	g.names["default"] = true // a line of this name gives what the lines after it have
	return g.name(" \t\"'#=,[]\\()\u0085\u2028:")
}

// hostileSlurm makes a slurm.conf, and in most cases a dump of accounts, qualities of service and a gres.conf.
func hostileSlurm(g *hostile) []string {
	var b strings.Builder
	fmt.Fprintf(&b, "ClusterName=%s\nSelectTypeParameters=%s\nPriorityDecayHalfLife=%s\n", g.slurmWord(),
		g.from("CR_Core", "CR_Core_Memory", "CR_CPU_Memory"), g.from("7-0", "0", "14-12:30", "60", "1-00:00:30"))
	var nodes []string
	for range 1 + g.IntN(3) {
		name := g.slurmWord()
		if g.some(2) {
			name += fmt.Sprintf("[%d-%d]", g.IntN(3), 3+g.IntN(5))
		}
		fmt.Fprintf(&b, "NodeName=%s CPUs=%d RealMemory=%d", name, 1+g.IntN(64), 1+g.IntN(200_000))
		if g.some(2) {
			fmt.Fprintf(&b, " Gres=%s:%s:%d", g.from("gpu", "gpu", "host", "cpus", g.slurmWord()), g.slurmWord(),
				g.IntN(9))
		}
		if g.some(2) {
			fmt.Fprintf(&b, " Feature=%s,%s", g.slurmWord(), g.from("gpu", "cpus", "memory_mb", "host", "weight"))
		}
		if g.some(4) {
			fmt.Fprintf(&b, " Weight = %s State=%s", g.upTo(9), g.from("DOWN", "UNKNOWN", "CLOUD", "odd"))
		}
		b.WriteString("\n")
		nodes = append(nodes, name)
	}
	for range g.IntN(4) {
		fmt.Fprintf(&b, "PartitionName=%s Nodes=%s %s=%s\n", g.slurmWord(), g.from("ALL", nodes[0],
			strings.Join(nodes, ",")), g.from("MaxTime", "PriorityTier", "Odd"), g.slurmWord())
	}
	args := []string{"--conf", g.file("slurm.conf", b.String())}
	if g.some(3) {
		args = append(args, "--gres", g.file("gres.conf", fmt.Sprintf("NodeName=%s Name=gpu File=/dev/nvidia[0-%d]\n",
			nodes[0], g.IntN(5))))
	}
	if g.some(3) {
		return args
	}
	args = append(args, "--accounts", g.file("accounts.cfg", g.accounts()))
	if g.some(2) {
		args = append(args, "--qos", g.file("qos.txt", fmt.Sprintf("Name|Priority|GrpTRES|MaxTRESPU|MaxTRESPA\n"+
			"normal|0|%s||\nhigh|5||%s|%s\n", g.tres(), g.tres(), g.tres())))
	}
	return args
}

// tres is a list of trackable resources with limits.
func (g *hostile) tres() string {
	var list []string
	for range 1 + g.IntN(3) {
		name, amount := g.from("cpu", "mem", "gres/gpu", "gres/gpu:a100", "node", "license/x"), g.from("1", "-1", "100")
		if name == "mem" {
			amount = g.from("500G", "10T", "4096")
		}
		if g.wild && g.some(4) {
			amount = g.number()
		}
		list = append(list, name+"="+amount)
	}
	return strings.Join(list, ",")
}

// accounts is what sacctmgr dump writes.
func (g *hostile) accounts() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Cluster - '%s':Fairshare=1:QOS='normal'\nParent - 'root'\n", g.slurmWord())
	g.names = map[string]bool{"root": true}
	account := func(kind string) string {
		name := g.name("':")
		fmt.Fprintf(&b, "%s - '%s':Fairshare=%s", kind, name, g.from("parent", "2147483647", "0", "1", g.upTo(100)))
		if g.some(3) {
			fmt.Fprintf(&b, ":GrpTRES=%s", g.tres())
		}
		if g.some(4) {
			fmt.Fprintf(&b, ":QOS='%s'", g.from("normal", "high", "normal,high"))
		}
		if g.some(5) {
			fmt.Fprintf(&b, ":Description='%s':%s=%s", g.name("'"), g.from("MaxJobs", "Odd"), g.upTo(9))
		}
		b.WriteString("\n")
		return name
	}
	var all []string
	for range 1 + g.IntN(4) {
		all = append(all, account("Account"))
	}
	for _, name := range all {
		if g.some(2) {
			fmt.Fprintf(&b, "Parent - '%s'\n", name)
			for range 1 + g.IntN(3) {
				account(g.from("User", "User", "Account"))
			}
		}
	}
	return b.String()
}

// hostileSWF makes a workload log of a few jobs.
func hostileSWF(g *hostile) []string {
	var b strings.Builder
	fmt.Fprintf(&b, "; Version: 2.2\n; Computer: %s\n; MaxNodes: %d\n; MaxProcs: %d\n", strings.Join(strings.Fields(
		g.name("\n\r")), " "), 1+g.IntN(8), 1+g.IntN(64))
	for job := range 1 + g.IntN(12) {
		field := func(n int) string { return g.from("-1", g.upTo(n), g.upTo(n)) }
		fmt.Fprintf(&b, "%d %s %s %d %s %s -1 %s %s -1 1 %s %s 1 %s %s -1 -1\n", job+1, g.upTo(7200), field(100),
			1+g.IntN(4000), field(16), field(9), field(16), field(9999), field(9), field(9), field(4), field(4))
	}
	args := []string{"--jobs", g.file("jobs.swf", b.String())}
	if g.some(2) {
		args = append(args, "--by", g.from("user", "group", "queue", "partition"))
	}
	return args
}

// egoHosts are the arguments for resource groups and the hosts of them.
func (g *hostile) egoHosts(groups []string) []string {
	var list, hosts strings.Builder
	hosts.WriteString(`"NAME","status","ncpus","maxmem","model","ut"` + "\n")
	g.names = map[string]bool{}
	list.WriteString("<ResourceGroupConfiguration>\n")
	for _, name := range groups {
		fmt.Fprintf(&list, "<ResourceGroup ResourceGroupName=\"%s\" availableSlots=\"%s\"><ResourceList>", inXML(name),
			g.from("", "4", "16", "(ncpus*1)", g.upTo(9)))
		for range 1 + g.IntN(3) {
			host := g.name("\",\n\r")
			fmt.Fprintf(&list, "<ResourceEntry ResourceID=\"%s\"/>", inXML(host))
			fmt.Fprintf(&hosts, "\"%s\",\"%s\",\"%d\",\"%dG\",\"%s\",\"3%%\"\n", strings.ReplaceAll(host, `"`, `""`),
				g.from("ok", "ok", "closed_Admin", "unavail"), 1+g.IntN(32), 1+g.IntN(99),
				g.from("Intel", "host", "ä b"))
		}
		list.WriteString("</ResourceList></ResourceGroup>\n")
	}
	list.WriteString("</ResourceGroupConfiguration>\n")
	return []string{"--groups", g.file("ResourceGroups.xml", list.String()), "--resources", g.file("resources.csv",
		hosts.String())}
}

// hostileMD makes an MDPlan.xml with its resource groups and hosts.
func hostileMD(g *hostile) []string {
	groups := []string{g.name("'\\"), g.name("'\\")}[:1+g.IntN(2)]
	var b strings.Builder
	b.WriteString("<MDPlan>\n<DistributionTree DistributionTreeName=\"t\">\n")
	for _, name := range groups {
		fmt.Fprintf(&b, "<ResourceGroupName>%s</ResourceGroupName>\n", inXML(name))
	}
	b.WriteString("<ConsumableResources><ConsumableResource OverCommitRatio=\"" + g.from("1", "1.5", "2") +
		"\">ncpus</ConsumableResource><ConsumableResource>maxmem</ConsumableResource></ConsumableResources>\n")
	var below func(depth int)
	below = func(depth int) {
		g.names = map[string]bool{}
		for range 1 + g.IntN(3) {
			fmt.Fprintf(&b, "<Consumer ConsumerName=\"%s\"><DistributionPolicies><Rank>%s</Rank>", inXML(g.name("")),
				g.upTo(5))
			if g.some(2) {
				fmt.Fprintf(&b, "<Sharing priority=\"%s\"><Shares type=\"ratio\">%s</Shares><Limit type=\"ncpus\">%s"+
					"</Limit></Sharing>", g.upTo(3), g.upTo(9), g.upTo(99))
			}
			if depth == 1 && g.some(2) {
				fmt.Fprintf(&b, "<OwnershipPolicy><ResourceGroup name=\"%s\"><HostSelection><NumHosts "+
					"type=\"percent\">%d"+
					"</NumHosts></HostSelection></ResourceGroup></OwnershipPolicy>", inXML(groups[0]), g.IntN(30))
			}
			b.WriteString("</DistributionPolicies>\n")
			if depth < 3 && g.some(3) {
				names := g.names
				below(depth + 1)
				g.names = names
			}
			b.WriteString("</Consumer>\n")
		}
	}
	below(1)
	b.WriteString("</DistributionTree>\n</MDPlan>\n")
	return append([]string{"--mdplan", g.file("MDPlan.xml", b.String())}, g.egoHosts(groups)...)
}

// hostileReporting makes a reporting table of some quarters of an hour, with or without the hosts.
func hostileReporting(g *hostile) []string {
	var b strings.Builder
	b.WriteString("CLUSTER_NAME,CONSUMER_NAME,RESOURCE_GROUP,TIME_STAMP,TIME_STAMP_GMT,ALLOCATED_OWN,ALLOCATED_SHARE," +
		"ALLOCATED_BORROW,PLANNED_OWN,SHARE_RATIO,PLANNED_HOWN,TOTAL_DEMAND,UNSATISFIED_DEMAND\n")
	groups := []string{g.name("'\\\",")}
	var consumers []string
	for range 1 + g.IntN(4) {
		consumers = append(consumers, "/"+g.name(`",`))
	}
	quoted := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	for at := range 1 + g.IntN(6) {
		for i, c := range consumers {
			held, asked := g.IntN(9), g.IntN(30)
			fmt.Fprintf(&b, "%s,%s,%s,2026-01-05 %02d:%02d:00.0,%d,%d,%d,0,%s,%s,0,%d,%d\n", quoted("c"), quoted(c),
				quoted(groups[0]), at/4, at%4*15, 1767571200000+int64(at)*900_000, held, g.IntN(4), g.upTo(9),
				g.from("1", "2", "1.5", "0"), asked+held, asked+i*0)
		}
	}
	args := []string{"--allocation", g.file("allocation.csv", b.String())}
	if g.some(2) {
		args = append(args, g.egoHosts(groups)...)
	}
	return args
}

// hostileOpenB makes the two tables of Alibaba's trace.
func hostileOpenB(g *hostile) []string {
	var nodes, pods strings.Builder
	nodes.WriteString("sn,cpu_milli,memory_mib,gpu,model\n")
	for range 1 + g.IntN(5) {
		fmt.Fprintf(&nodes, "%s,%d,%d,%s,%s\n", g.name("\",\n\r"), 1000*(1+g.IntN(96)), 1024*(1+g.IntN(300)), g.upTo(8),
			g.from("", "P100", "T4", "G2"))
	}
	pods.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time," +
		"scheduled_time\n")
	for range 1 + g.IntN(8) {
		fmt.Fprintf(&pods, "%s,%s,%s,%d,%s,%s,%s,Running,0,1,0\n", g.name("\",\n\r"), g.upTo(9000), g.upTo(9000),
			g.IntN(3), g.upTo(1000), g.from("", "T4", "P100|T4", "A10"), g.from("LS", "BE", "Burstable"))
	}
	args := []string{"--nodes", g.file("nodes.csv", nodes.String()), "--pods", g.file("pods.csv", pods.String())}
	if g.some(3) {
		args = append(args, "--devices")
	}
	return args
}
