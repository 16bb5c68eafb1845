package explain

import (
	"fmt"
	"strings"

	"github.com/stintd/stint/core/decision"
)

// gangFits tells how many units of a gang would fit (REQ-3).
func gangFits(_ *part, s *Shortfall) string {
	g, ok := decision.ReadGangDetail(s.Detail)
	if !ok {
		return with("fewer units fit than must start together", s.Detail)
	}
	text := grouped(g.Fit) + " fit now"
	switch g.Fit {
	case 0:
		text = "none fits now"
	case g.Least:
		text = "all of them fit now, as room came free after its turn in this cycle"
	case 1:
		text = "1 fits now"
	}
	switch attribute, in := strings.CutPrefix(g.Where, "in "); {
	case in:
		attribute, _, _ = strings.Cut(attribute, " ")
		return fmt.Sprintf("%s must start together on hosts of one %s, and %s %s, where the most do",
			count(g.Least, "unit"), attribute, text, g.Where)
	case g.Where != "":
		return fmt.Sprintf("%s must start together on one host, and %s %s, where the most do", count(g.Least, "unit"),
			text, g.Where)
	}
	return fmt.Sprintf("%s must start together, and %s", count(g.Least, "unit"), text)
}

// nextOfGang puts into words what stands in the way of a gang's next unit.
func (p *part) nextOfGang(s *Shortfall) {
	g, ok := decision.ReadGangDetail(s.Detail)
	if !ok || s.Reason != decision.Reasons[decision.ReasonGang] || g.Reason == s.Reason || g.Fit == g.Least {
		return
	}
	next := *s
	next.Reason, next.Detail = g.Reason, g.Detail
	p.why(&next)
	s.Text += "; of the next one: " + next.Text
	s.Because = append(s.Because, next.Because...)
}
