package cluster

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Lists tells what is wrong with the hosts that consumers of MD plans list as their own, now that hosts are
// known: faults are hosts that no group of the plan has, or of which the consumer's parent can own nothing;
// suspect are those that the hosts table does not name, as they may come yet. O(hosts listed × groups).
func (s *State) Lists() (faults, suspect []plan.Warning) {
	if s.Host.Len() == 0 {
		return nil, nil
	}
	say := func(to *[]plan.Warning, line int32, format string, args ...any) {
		if w := (plan.Warning{File: s.Policy.File, Line: line,
			Text: fmt.Sprintf(format, args...)}); !slices.Contains(*to, w) {
			*to = append(*to, w)
		}
	}
	for i := range s.Plans {
		p := &s.Plans[i]
		for w := 0; p.MD != nil && w < len(p.MD.Windows); w++ {
			own := p.MD.Windows[w].Own
			for n, rules := range own {
				path, up := s.Policy.Path[n], s.Policy.Parent[n]
				for _, rule := range rules {
					for _, name := range rule.HostList {
						h, ok := s.Host.Find([]byte(name))
						switch {
						case !ok || !s.Host.listed[h]:
							say(&suspect, rule.Line,
								"plan %s: %s lists host %s, which the table of hosts does not name", p.Name, path, name)
						case s.Host.Plan[h] != p.Index:
							say(&faults, rule.Line,
								"plan %s: %s lists host %s, which no resource group of the plan has", p.Name, path,
								name)
						case up != plan.Root && !s.mayOwn(p, own[up], HostID(h), name):
							say(&faults, rule.Line, "plan %s: %s lists host %s, of which its parent %s can own nothing",
								p.Name, path, name, s.Policy.Path[up])
						}
					}
				}
			}
		}
	}
	return faults, suspect
}

// mayOwn tells whether any of some rules can give something of a host.
func (s *State) mayOwn(p *Plan, rules []plan.OwnRule, h HostID, name string) bool {
	return slices.ContainsFunc(rules, func(r plan.OwnRule) bool {
		return slices.Contains(r.HostList, name) ||
			r.Group >= 0 && slices.Contains(s.Members(p.MD.Groups[r.Group].Group), h)
	})
}

// Unmet lists the rules of what consumers own that the last pass could not meet, of each consumer the first, and where
// there are any whether ranks say who comes first; and slot plans in which more is owned than there is.
func (s *State) Unmet() (unmet []plan.Warning) {
	for i := range s.Plans {
		p := &s.Plans[i]
		before := len(unmet)
		for n, rule := range p.Deeds.Unmet {
			if rule != NoID {
				unmet = append(unmet, plan.Warning{File: s.Policy.File, Line: p.MD.Windows[p.Window].Own[n][rule].Line,
					Text: fmt.Sprintf("plan %s: %s does not get all of what this rule says", p.Name, s.Policy.Path[n])})
			}
		}
		switch {
		case p.Slots != nil:
			unmet = append(unmet, s.overowned(p)...)
		case len(unmet) > before:
			unmet = append(unmet, s.Policy.EqualRanks(p.MD)...)
		}
	}
	return unmet
}

// overowned tells of the windows of a slot plan in which first-level consumers under the ownership policy own more
// slots than its ok hosts have. Hybrid consumers own parts of what there is.
func (s *State) overowned(p *Plan) (over []plan.Warning) {
	there := int64(0)
	for k := range ParcelID(p.Parcels.Len()) {
		if p.Parcels.IsOpen(k) {
			there += p.Parcels.Cap[0][k]
		}
	}
	for i := range p.Slots.Windows {
		w, owned := &p.Slots.Windows[i], int64(0)
		for n := s.Policy.First[plan.Root]; n != plan.None; n = s.Policy.Next[n] {
			if p.Slots.Member[n] && w.Policy[n] == plan.Ownership {
				owned += w.Owns[n]
			}
		}
		if owned > there {
			where := "plan " + p.Name
			if w.Name != "" {
				where += ", window " + w.Name
			}
			over = append(over, plan.Warning{File: s.Policy.File, Line: p.Slots.Line,
				Text: fmt.Sprintf("%s: %d slots are owned, there are %d; owners get theirs by rank", where, owned,
					there)})
		}
	}
	return over
}
