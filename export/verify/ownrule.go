package verify

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ownRule is an entry of a consumer's `own` (MD-1); what it does not say is none.
type ownRule struct {
	group     string
	hosts     int64
	percent   int64 // thousandths
	list      []string
	amount    []int64 // by dimension
	partial   bool
	remaining bool
	perHost   []hostPart // by dimension
}

// chooses tells whether a rule chooses its hosts: it names no hosts, and does not take something of each.
func (r *ownRule) chooses() bool { return r.list == nil && r.perHost == nil && !r.remaining }

// hostPart is a part of each host in a dimension: an amount, or thousandths of a percent.
type hostPart struct{ amount, percent int64 }

// reserve is what of its own a consumer never lends (MD-5).
type reserve struct {
	hosts, percent int64
	amount         []int64 // nil: of no such form
}

// thousandths reads a percentage, 12.5 or "12.5%".
func thousandths(v any) int64 {
	f, err := strconv.ParseFloat(strings.TrimSuffix(fmt.Sprint(v), "%"), 64)
	if err != nil {
		return none
	}
	return int64(math.Round(f * 1000))
}

// amounts reads a mapping of dimensions, none where it names one not.
func (p *policy) amounts(o object) []int64 {
	v := make([]int64, len(p.dimensions))
	for d, name := range p.dimensions {
		v[d] = o.whole(name, none)
	}
	return v
}

// own reads a consumer's rules.
func (p *policy) own(o object) (rules []ownRule) {
	for _, r := range o.objects("own") {
		rule := ownRule{group: r.text("group", ""), hosts: r.whole("hosts", none), percent: none,
			partial: r.yes("partial", false), remaining: r.yes("remaining", false)}
		if v, ok := r["percent"]; ok {
			rule.percent = thousandths(v)
		}
		if _, ok := r["host_list"]; ok {
			rule.list = r.texts("host_list")
		}
		if v, ok := r["amount"]; ok {
			rule.amount = p.amounts(asObject(v))
		}
		if v, ok := r["per_host"]; ok {
			for _, name := range p.dimensions {
				part := hostPart{none, none}
				if text := asObject(v).text(name, ""); strings.HasSuffix(text, "%") {
					part.percent = thousandths(text)
				} else if text != "" {
					part.amount = asObject(v).whole(name, none)
				}
				rule.perHost = append(rule.perHost, part)
			}
		}
		rules = append(rules, rule)
	}
	return rules
}

// reserveOf reads what a consumer reserves.
func (p *policy) reserveOf(o object) reserve {
	r := asObject(o["reserve"])
	out := reserve{hosts: r.whole("hosts", none), percent: none}
	if v, ok := r["percent"]; ok {
		out.percent = thousandths(v)
	}
	if v, ok := r["amount"]; ok {
		out.amount = p.amounts(asObject(v))
	}
	return out
}

// words are rules as a text that is the same for lists that mean the same, in whatever revision.
func (p *policy) words(rules []ownRule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "%q %q %d %d %t %t", r.group, r.list, r.hosts, r.percent, r.remaining, r.partial)
		for d, n := range r.amount {
			if n != none {
				fmt.Fprintf(&b, " %s=%d", p.dimensions[d], n)
			}
		}
		for d, n := range r.perHost {
			if n != (hostPart{none, none}) {
				fmt.Fprintf(&b, " %s:%v", p.dimensions[d], n)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
