package engine

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/standing"
)

// Blank is the view of a service that has run one cycle under a policy, without hosts and demand: its tables have all
// their columns, and no rows but those that the policy alone makes. It is for those who describe the tables.
func Blank(p *plan.Policy) (*View, error) {
	s, err := cluster.New(p)
	if err != nil {
		return nil, err
	}
	e := &Engine{state: s}
	e.runner.Run(s, 0, &e.out)
	e.runner.Keyframe(&e.out)
	dict := standing.Frozen()
	last := e.out.Freeze(nil, dict)
	return &View{
		Last: last, Holdings: e.holdings(dict), Standing: e.standing(nil, dict),
		wide: last.Wide,
	}, nil
}

// NoChanges is the table of changes without rows.
func NoChanges() *decision.Table {
	var b changes
	b.begin(0)
	return b.table()
}
