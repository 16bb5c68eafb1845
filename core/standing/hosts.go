package standing

import (
	"slices"
	"strconv"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// end is the parcel behind those of the host that parcel i is the first of.
func (p *planColumns) end(i int) int {
	h := p.host[i]
	for i++; i < len(p.host) && p.host[i] == h; i++ {
	}
	return i
}

// Hosts is the table of hosts, a row for each: those of plans in the plans' order, then those of none. A host that left
// its plan is in the row of its new plan; without a new one it stays in the old plan's while units are held there.
// Capacity is what the plan counts, overcommit included; of a host in no plan it is its own. The resource group
// follows, of several the first of the plan's, then attributes as texts. O(hosts).
func (k *Columns) Hosts() *decision.Table {
	var hosts []cluster.HostID
	var plans []int32
	var first []int
	listed := make([]bool, k.hosts.Len())
	for i := range k.plans {
		p := &k.plans[i]
		for at := 0; at < len(p.host); at = p.end(at) {
			h := p.host[at]
			if now := k.planOf[h]; listed[h] || now != int32(i) && now != cluster.NoID {
				continue
			}
			listed[h] = true
			hosts, plans, first = append(hosts, h), append(plans, int32(i)), append(first, at)
		}
	}
	for _, h := range k.order {
		if !listed[h] {
			hosts, plans, first = append(hosts, h), append(plans, cluster.NoID), append(first, 0)
		}
	}
	capacity, used := k.figures(), k.figures()
	names, states := make([]int32, len(hosts)), make([]int32, len(hosts))
	has, uses := make([]int64, len(k.policy.Dimensions)+1), make([]int64, len(k.policy.Dimensions)+1)
	for row, h := range hosts {
		names[row], states[row] = int32(h), int32(k.state[h])
		if plans[row] == cluster.NoID {
			for d := range k.size {
				has[d] = k.size[d][h]
			}
			capacity.Add(false, has)
			used.AddNull()
			continue
		}
		p, at := &k.plans[plans[row]], first[row]
		end := p.end(at)
		for d := range p.cap {
			has[d], uses[d] = 0, 0
			for i := at; i < end; i++ {
				has[d], uses[d] = has[d]+p.cap[d][i], uses[d]+p.cap[d][i]-p.free[d][i]
			}
		}
		capacity.Add(p.slots, has)
		used.Add(p.slots, uses)
	}
	columns := []decision.Column{
		coded("plan", plans, k.planNames()), coded("host", names, k.hosts), coded("state", states, decision.States),
	}
	columns = used.Columns("used_", capacity.Columns("capacity_", columns))
	return &decision.Table{Name: "hosts", Rows: len(hosts),
		Columns: slices.Concat(columns, []decision.Column{k.groupColumn(hosts, plans)}, k.attributeColumns(hosts))}
}

// groupColumn is the resource group of each host, of several the first of its plan's; Null where none has it.
func (k *Columns) groupColumn(hosts []cluster.HostID, plans []int32) decision.Column {
	var words decision.Words
	for i := range k.policy.Groups {
		words = append(words, k.policy.Groups[i].Name)
	}
	of := slices.Repeat([]int32{decision.Null}, k.hosts.Len())
	for plan := range k.plans {
		for _, g := range k.groupsOf(plan) {
			for _, h := range k.members[g] {
				if of[h] == decision.Null && k.planOf[h] == int32(plan) {
					of[h] = int32(g)
				}
			}
		}
	}
	codes := make([]int32, len(hosts))
	for row, h := range hosts {
		if codes[row] = of[h]; plans[row] == cluster.NoID {
			codes[row] = decision.Null
		}
	}
	return coded("group", codes, words)
}

// groupsOf are the resource groups of a plan, in its order.
func (k *Columns) groupsOf(plan int) (groups []int) {
	if plan >= len(k.policy.MDPlans) {
		return []int{k.policy.SlotPlans[plan-len(k.policy.MDPlans)].Group}
	}
	for _, g := range k.policy.MDPlans[plan].Groups {
		groups = append(groups, g.Group)
	}
	return groups
}

// attributeColumns are the attributes of hosts as columns of texts, named `attribute_` and the attribute.
func (k *Columns) attributeColumns(hosts []cluster.HostID) (columns []decision.Column) {
	for i := range k.attr {
		made := &cluster.Names{}
		codes := make([]int32, len(hosts))
		value := k.values(i, made)
		for row, h := range hosts {
			codes[row] = value(h)
		}
		columns = append(columns, coded("attribute_"+k.attr[i].Name, codes, made))
	}
	return columns
}

// values gives a function that gives a host's value of an attribute as a text's code in a dictionary, Null where it has
// none.
func (k *Columns) values(i int, words *cluster.Names) func(h cluster.HostID) int32 {
	a, numbers, texts := &k.attr[i], map[float64]int32{}, map[int32]int32{}
	return func(h cluster.HostID) int32 {
		if int(h) >= len(a.Valid) || !a.Valid[h] {
			return decision.Null
		}
		switch a.Kind {
		case plan.Number:
			code, known := numbers[a.Number[h]]
			if !known {
				code = words.InternString(strconv.FormatFloat(a.Number[h], 'f', -1, 64))
				numbers[a.Number[h]] = code
			}
			return code
		case plan.Boolean:
			return words.InternString(strconv.FormatBool(a.Bool[h]))
		}
		code, known := texts[a.Text.Code[h]]
		if !known {
			code = words.Intern(k.words[i].Bytes(a.Text.Code[h]))
			texts[a.Text.Code[h]] = code
		}
		return code
	}
}
