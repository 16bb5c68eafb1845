package explain

import (
	"fmt"

	"github.com/stintd/stint/core/decision"
)

// gangFits tells how many units of a gang would fit (REQ-3).
func gangFits(_ *part, s *Shortfall) string {
	fit, least, _, _, ok := decision.ReadGangDetail(s.Detail)
	if !ok {
		return with("fewer units fit than must start together", s.Detail)
	}
	text := grouped(fit) + " fit now"
	switch fit {
	case 0:
		text = "none fits now"
	case 1:
		text = "1 fits now"
	}
	return fmt.Sprintf("%s must start together, and %s", count(least, "unit"), text)
}

// nextOfGang puts into words what stands in the way of a gang's next unit.
func (p *part) nextOfGang(s *Shortfall) {
	_, _, reason, detail, ok := decision.ReadGangDetail(s.Detail)
	if !ok || s.Reason != decision.Reasons[decision.ReasonGang] || reason == s.Reason {
		return
	}
	next := *s
	next.Reason, next.Detail = reason, detail
	p.why(&next)
	s.Text += "; of the next one: " + next.Text
	s.Because = append(s.Because, next.Because...)
}
