package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// fullest names the consumer on a leaf's path to the root that has its share of the pool in an MD plan: the consumer
// nearest to the leaf whose usage reaches its quota, else the consumer whose usage comes closest to its quota.
func (p *part) fullest(s *Shortfall) string {
	leaf, ok := p.tree().Find(s.Consumer)
	if !ok || p.member == nil {
		return s.Consumer
	}
	v, rows := view(p.f.Shares), p.shareRows()
	way := p.way(leaf)
	who, most := leaf, -2.0 // by how much it is above its quota
	for i := len(way) - 1; i >= 0; i-- {
		row := p.pooled(v, rows, way[i])
		if row < 0 {
			continue
		}
		above := v.real("usage", row) - v.real("usage_quota", row)
		if above >= 0 {
			who = way[i]
			break
		}
		if above > most {
			who, most = way[i], above
		}
	}
	if who == leaf {
		return p.tree().Path[who]
	}
	return p.tree().Path[who] + ", above it,"
}

// exhausted says why no room is found for a unit in an MD plan though nothing else stops it.
func (p *part) exhausted(s *Shortfall) string {
	text := "the hosts that it may use have no room for a unit"
	if r := s.Requirement; r != nil {
		text = r.those() + " " + verb(int(r.Open), "has", "have") + " no room for a unit"
	}
	leaf, ok := p.tree().Find(s.Consumer)
	row := -1
	if ok && p.member != nil {
		row = p.pooled(view(p.f.Shares), p.shareRows(), leaf)
	}
	switch v := view(p.f.Shares); {
	case !p.takesBack(s.Consumer):
		text += ", and it takes nothing back, as share_reclaim is false"
	case row >= 0 && v.real("usage", row) > 0 && v.real("usage", row) >= v.real("usage_quota", row):
		text += fmt.Sprintf(", and it has its share of the pool: it uses %s, and deserves %s",
			percent(v.real("usage", row)), percent(v.real("usage_quota", row)))
	default:
		text += ", and nobody there has to give way"
	}
	return p.crowded(text, s)
}

// noSlot says why no slot is found though nothing else stops a unit.
func (p *part) noSlot(s *Shortfall) string {
	text := "nothing is free that it may have"
	if r := s.Requirement; r != nil {
		text += " on " + r.those()
	}
	if n, ok := p.tree().Find(s.Consumer); ok && p.slots != nil && p.member[n] && !p.slots.ShareReclaim &&
		p.slot.Policy[n] != plan.Hybrid && p.of(n, "held") < p.of(n, "quota") {
		text += fmt.Sprintf(", and it takes nothing back up to its quota of %s, as share_reclaim is false",
			grouped(p.of(n, "quota")))
	}
	return p.crowded(text, s)
}

// crowded adds the consumer that keeps idle room, or else the consumer that holds most.
func (p *part) crowded(text string, s *Shortfall) string {
	if kept := p.kept(s); kept != "" {
		text += "; " + kept
	} else if most := p.most(s); most != "" {
		text += "; " + most
	}
	return with(text, s.Detail)
}

// those are the open hosts that meet a requirement, in words.
func (r *Requirement) those() string {
	if r.Open == 1 {
		return "the only open host that meets " + r.Text
	}
	return fmt.Sprintf("the %s that meet %s", count(r.Open, "open host"), r.Text)
}

// takesBack tells whether a consumer takes back what others hold above their share.
func (p *part) takesBack(consumer string) bool {
	n, ok := p.tree().Find(consumer)
	return !ok || p.set == nil || p.set.ShareReclaim[n]
}

// inUse is what of a dimension is in use on the plan's open hosts and what they have, all hosts, and those that are not
// open, as a keyframe of the cycle tells it.
func (p *part) inUse(dimension string) (used, there int64, hosts, shut map[string]bool) {
	hosts, shut = map[string]bool{}, map[string]bool{}
	if p.f.Hosts == nil {
		return used, there, hosts, shut
	}
	v := view(p.f.Hosts)
	for row := range v.Rows {
		if v.text("plan", row) != p.Plan {
			continue
		}
		hosts[v.text("host", row)] = true
		if v.text("state", row) != "ok" {
			shut[v.text("host", row)] = true
		} else if v.text("dimension", row) == dimension {
			used, there = used+v.num("used", row), there+v.num("capacity", row)
		}
	}
	return used, there, hosts, shut
}

// room is what of the plan's hosts is in use and open, where a keyframe of the cycle tells it, besides what each level
// uses and deserves.
func (p *part) room(s *Shortfall, leaf plan.Node) (points []Point) {
	points = p.quotas(s, leaf)
	if p.f.Hosts == nil || p.md == nil {
		return points
	}
	used, there, hosts, shut := p.inUse(s.Dimension)
	if len(shut) > 0 && p.f.asked().fleet == nil {
		points = append(points,
			because(fmt.Sprintf("%s of the plan's %s %s not ok, and %s nothing new", grouped(int64(len(shut))),
				count(int64(len(hosts)), "host"),
				verb(len(shut), "is", "are"), verb(len(shut), "takes", "take")), "INV-1"))
	}
	if s.Dimension != "" {
		text := fmt.Sprintf("of the plan's hosts that are ok %s of %s %s are in use", grouped(used), grouped(there),
			s.Dimension)
		if used < there {
			if s.Reason == "gang" {
				text += "; the rest is too little for the units that must start together, or in pieces too " +
					"small for one"
			} else {
				text += "; the rest is in pieces too small for a unit"
			}
			if s.Requirement != nil || p.f.asked().fleet == nil {
				text += ", or on hosts that do not meet its requirement"
			}
		}
		points = append(points, because(text, "MD-16", "REQ-1"))
	}
	return points
}

func verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// recalled says who wants back what is recalled: the owner, by name where that is not the taker itself.
func (p *part) recalled(r *Reclaim) string {
	owners := p.lendersOf(r)
	switch {
	case r.For == nil || len(owners) == 0:
		return "it is lent, and those who own it, or come before others there, want it back"
	case slices.Equal(owners, []string{r.For.Consumer}):
		return "the owner wants it back"
	case len(owners) == 1 && within(r.For.Consumer, owners[0]):
		return owners[0] + ", the owner, wants it back for those below it"
	}
	up := r.For.Consumer // of the taker and an owner
	for up != "" && !within(owners[0], up) {
		up = up[:strings.LastIndexByte(up, '/')]
	}
	if up == "" {
		return listed(owners, 3) + " lends it, and wants it back"
	}
	return "it is owned by " + listed(owners, 3) + ", and those below " + up + " come before others"
}

// lendersOf are the owners of what a reclaim takes, as the holdings tell them.
func (p *part) lendersOf(r *Reclaim) (owners []string) {
	for _, host := range r.Hosts {
		at := where{plan: p.Plan, consumer: r.Consumer, allocation: r.Allocation, sub: r.Sub, host: host}
		for _, owner := range p.f.lentAt(at) {
			if !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
		}
	}
	return owners
}
