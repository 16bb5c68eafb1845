package explain

import (
	"strings"

	"fmt"
	"strconv"

	"github.com/stintd/stint/core/plan"
)

// explainMD tells of each figure of a consumer in a multidimensional plan where it comes from (SPEC chapter 4,
// docs/ownership.md, docs/shares.md).
func (p *part) explainMD() {
	amounts, shares := p.amountRows(), p.shareRows()
	p.amounts(amounts[p.key(p.node)])
	by := newTally[label]()
	p.hold.each(func(h holder, units int64) { by.add(h.label, units) })
	p.labels(by)
	if len(by.keys) > 0 && p.tree().Leaf(p.node) {
		p.say("a leaf uses what it owns first, then the private pools above it from the nearest up, then the "+
			"public pool", "MD-7")
	}
	p.budgeted()
	v := view(p.f.Shares)
	if len(shares[p.key(p.node)]) == 0 {
		p.say("neither uses nor wants anything of a pool", "MD-12", "MD-13")
	}
	for _, row := range shares[p.key(p.node)] {
		p.pool(v, row, shares)
	}
}

func (p *part) key(n plan.Node) key { return key{p.Plan, p.tree().Path[n]} }

// amounts tells what a consumer owns, keeps, holds, lends and may have, by dimension.
func (p *part) amounts(rows []int) {
	v := view(p.f.Amounts)
	g := Grid{Title: "by dimension", Columns: []string{}, Rows: []Row{}}
	for _, row := range rows {
		g.Columns = append(g.Columns, v.text("dimension", row))
	}
	for _, figure := range []string{"configured", "owned", "reserved", "held", "lent", "static_quota", "share_limit"} {
		r := Row{Name: strings.TrimPrefix(figure, "share_"), Values: []any{}}
		any := figure == "held" || figure == "static_quota"
		for _, row := range rows {
			if v.null(figure, row) {
				r.Values = append(r.Values, nil)
				continue
			}
			r.Values = append(r.Values, v.num(figure, row))
			any = any || v.num(figure, row) > 0 || figure == "share_limit"
		}
		if any {
			g.Rows = append(g.Rows, r)
		}
	}
	p.Tables = append(p.Tables, g)
	p.owns(v, rows)
	for _, f := range []struct {
		figure, before, after string
		rules                 []string
	}{
		{"reserved", "reserved of that and never lent: ", "", []string{"MD-5"}},
		{"lent", "others hold ", " of what it owns" + p.lentTo(), []string{"MD-8", "MD-10"}},
		{"static_quota", "its part of the pools that it may draw from is ", ", if every leaf wanted without end",
			[]string{"MD-15", "D-8"}},
		{"share_limit", "may hold up to ", " from pools (share.limit)", []string{"MD-18"}},
	} {
		if what := vector(v, rows, f.figure); what != "" {
			p.Points = append(p.Points, Point{Figure: f.figure, Text: f.before + what + f.after, Rules: f.rules})
		}
	}
}

// vector lists a figure's amounts, such as "8 ncpus and 2 gpus": the amounts above 0, of limits the amounts set.
func vector(v tableView, rows []int, figure string) string {
	var words []string
	for _, row := range rows {
		if n := v.num(figure, row); n > 0 || figure == "share_limit" && !v.null(figure, row) {
			words = append(words, grouped(n)+" "+v.text("dimension", row))
		}
	}
	return listed(words, len(words))
}

// lentTo names who holds what the consumer owns.
func (p *part) lentTo() string {
	by := newTally[string]()
	p.lend.each(func(h holder, units int64) { by.add(h.consumer, units) })
	if len(by.keys) == 0 {
		return ""
	}
	return ": " + by.words("unit")
}

// owns tells which amounts a consumer's ownership rules ask for, and which amounts were assigned.
func (p *part) owns(v tableView, rows []int) {
	if len(p.set.Own[p.node]) == 0 {
		p.say("owns nothing in this plan", "MD-1")
		return
	}
	for i := range p.set.Own[p.node] {
		r := &p.set.Own[p.node][i]
		p.say(fmt.Sprintf("is to own %s (line %d of the policy)", p.ownText(r), r.Line), "MD-1")
	}
	met, got := true, []string{}
	for _, row := range rows {
		configured, owned := v.num("configured", row), v.num("owned", row)
		switch {
		case owned < configured:
			got = append(got, fmt.Sprintf("%s of %s %s", grouped(owned), grouped(configured), v.text("dimension", row)))
			met = false
		case owned > 0:
			got = append(got, grouped(owned)+" "+v.text("dimension", row))
		}
	}
	text := "owns " + listed(got, len(got)) + ", all that its rules ask for; assigned by rank, parents first"
	rules := []string{"MD-1", "MD-3"}
	if !met {
		text, rules = "owns "+listed(got, len(got))+" that its rules ask for: hosts are assigned by rank, parents "+
			"first, and the rest was not to be had", append(rules, "MD-4")
	}
	if len(got) > 0 {
		p.Points = append(p.Points, Point{Figure: "owned", Text: text, Rules: rules})
	}
}

// ownText says what a rule asks for (MD-1).
func (p *part) ownText(r *plan.OwnRule) string {
	of := ""
	if r.Group >= 0 {
		of = p.tree().Groups[p.md.Groups[r.Group].Group].Name
	}
	milli := func(n int64) string { return strconv.FormatFloat(float64(n)/1000, 'f', -1, 64) + " %" }
	switch {
	case r.HostList != nil:
		return "the hosts " + listed(r.HostList, 5)
	case r.Hosts != plan.Unlimited:
		return count(r.Hosts, "host") + " of " + of
	case r.Percent != plan.Unlimited:
		return milli(r.Percent) + " of the hosts of " + of
	case r.Remaining:
		return "what remains of " + of
	}
	var words []string
	for d, part := range r.PerHost {
		if part.Amount != plan.Unlimited {
			words = append(words, grouped(part.Amount)+" "+p.tree().Dimensions[d])
		} else if part.Percent != plan.Unlimited {
			words = append(words, milli(part.Percent)+" "+p.tree().Dimensions[d])
		}
	}
	if r.PerHost != nil {
		return listed(words, len(words)) + " of each host of " + of
	}
	for d, n := range r.Amount {
		if n != plan.Unlimited {
			words = append(words, grouped(n)+" "+p.tree().Dimensions[d])
		}
	}
	text := listed(words, len(words)) + " of " + of + ", in whole hosts"
	if r.Partial {
		text = listed(words, len(words)) + " of " + of + ", the last host in part"
	}
	return text
}

// pool tells of a consumer's share of one pool, along the way up and beside its siblings.
func (p *part) pool(v tableView, row int, shares map[key][]int) {
	pool, name := v.text("pool", row), "the public pool"
	if pool != "/" {
		name = "the private pool of " + pool
	}
	at := func(n plan.Node) int {
		for _, r := range shares[p.key(n)] {
			if v.text("pool", r) == pool {
				return r
			}
		}
		return -1
	}
	whole := func(title, figure string) column {
		return column{title, func(n plan.Node) any {
			if r := at(n); r >= 0 {
				return v.num(figure, r)
			}
			return nil
		}}
	}
	share := func(title, figure string) column {
		return column{title, func(n plan.Node) any {
			if r := at(n); r >= 0 {
				return v.real(figure, r)
			}
			return nil
		}}
	}
	columns := []column{
		{"priority", func(n plan.Node) any { return int64(p.set.Priority[n]) }}, {"ratio", func(n plan.Node) any {
			return p.set.Ratio[n]
		}},
		whole("wanted", "units_wanted"), whole("held", "units_held"), share("usage", "usage"),
		share("demand", "usage_demand"), share("quota", "usage_quota"),
	}
	remembers := !v.null("effective_ratio", row)
	if remembers {
		columns = append(columns, share("used lately", "decayed_usage"), column{"of ratio", func(n plan.Node) any {
			if r := at(n); r >= 0 {
				return counted(v, r)
			}
			return nil
		}})
	}
	var way []plan.Node // below the pool's consumer
	for _, n := range p.way(p.node) {
		if within(p.tree().Path[n], pool) && p.tree().Path[n] != pool {
			way = append(way, n)
		}
	}
	if len(way) > 1 {
		p.grid("in "+name+", up the tree", way, columns)
	}
	up := p.tree().Parent[p.node]
	if s := p.siblings(up); len(s) > 1 {
		p.grid("in "+name+", among the children of "+p.tree().Path[up], s, columns)
	}
	if below := p.siblings(p.node); len(below) > 0 {
		p.grid("in "+name+", below it", below, columns)
	}
	p.shared(v, row, name)
	if remembers {
		p.remembered(v, row, name, at)
	}
}

// shared tells what a row of shares means.
func (p *part) shared(v tableView, row int, name string) {
	usage, demand, quota := v.real("usage", row), v.real("usage_demand", row), v.real("usage_quota", row)
	held, wanted := v.num("units_held", row), v.num("units_wanted", row)
	p.point("usage", held, fmt.Sprintf("uses %s of %s: %s, each counted as its part of all that fit there when "+
		"it is empty", percent(usage), name, count(held, "unit")), "MD-11", "MD-12")
	p.point("usage_demand", wanted, fmt.Sprintf("its demand there is %s: of %s held or wanted those that it "+
		"may use, by requirements, limits and what fits", percent(demand), count(wanted, "unit")), "MD-13")
	n := p.node
	switch zero := p.barred(n); {
	case zero != plan.None:
		p.say(fmt.Sprintf("deserves nothing of pools: the share ratio of %s is 0", p.tree().Path[zero]), "MD-18", "D-6")
	default:
		rivals, ratios := 0, int64(0)
		for _, c := range p.besides(p.tree().Parent[n]) {
			if p.set.Priority[c] == p.set.Priority[n] {
				ratios += p.set.Ratio[c]
			}
			if p.set.Priority[c] > p.set.Priority[n] {
				rivals++
			}
		}
		text := fmt.Sprintf("deserves %s of it: what is used is divided from the root down, higher share priority "+
			"first; its priority is %d, its ratio %d of %d among siblings of that priority",
			percent(quota), p.set.Priority[n], p.set.Ratio[n], ratios)
		if rivals > 0 {
			text += fmt.Sprintf(", and %s %s before it", count(int64(rivals), "sibling"),
				map[bool]string{true: "comes", false: "come"}[rivals == 1])
		}
		p.say(text, "MD-14")
	}
}
