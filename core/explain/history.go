package explain

import (
	"fmt"
	"strconv"

	"github.com/stintd/stint/core/plan"
)

// counted is the part of its ratio that counts in a row of shares of a plan with a half-life (D-165), else 1.
func counted(v tableView, row int) float64 {
	ratio := v.num("ratio", row)
	if v.null("effective_ratio", row) || ratio == 0 {
		return 1
	}
	return v.real("effective_ratio", row) / float64(ratio)
}

// times is a factor to hundredths: 0.71.
func times(f float64) string { return strconv.FormatFloat(f, 'f', 2, 64) }

// remembered tells what a consumer used of a pool lately, and by how much that lowers its ratio. at gives the rows of
// consumers in the pool, -1 where there is none.
func (p *part) remembered(v tableView, row int, name string, at func(n plan.Node) int) {
	used, ratios := 0.0, int64(0)
	up := p.tree().Parent[p.node]
	for n := p.tree().First[up]; n != plan.None; n = p.tree().Next[n] {
		r := at(n)
		if r >= 0 && p.set.Priority[n] == p.set.Priority[p.node] && p.set.Ratio[n] > 0 && p.row[n] >= 0 &&
			p.of(n, "demand") > 0 {
			used, ratios = used+v.real("decayed_usage", r), ratios+p.set.Ratio[n]
		}
	}
	mine, ratio := v.real("decayed_usage", row), p.set.Ratio[p.node]
	text := fmt.Sprintf("used %s of %s lately, what it held counting half after %s", percent(mine), name,
		plan.Lasting(p.md.HalfLifeUS))
	if part := used * float64(ratio) / float64(max(ratios, 1)); part > 0 && ratio > 0 && p.of(p.node, "demand") > 0 {
		text += fmt.Sprintf(": %s times its part of what it and its peers used", times(mine/part))
	}
	if c := counted(v, row); c < 1 {
		text += fmt.Sprintf("; so its ratio is lowered to %s of %d", times(c), ratio)
	} else {
		text += fmt.Sprintf("; its ratio of %d counts whole", ratio)
	}
	p.Points = append(p.Points, Point{Figure: "decayed_usage", Text: text, Rules: []string{"D-164", "D-165"}})
}
