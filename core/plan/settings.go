package plan

import "strings"

// Settings are what the consumers of a plan have set, in each of its time windows, in the words of the policy file.
// Keys that have their defaults everywhere are left out.
type Settings struct {
	Plan      string        `json:"plan"`
	Kind      string        `json:"kind"`    // slots or md
	Windows   []WindowText  `json:"windows"` // one without a name where the plan has none
	Keys      []string      `json:"keys"`
	Consumers []SettingsRow `json:"consumers"`
}

// WindowText is a time window in words.
type WindowText struct {
	Name string `json:"name"`
	When string `json:"when"` // "" for the whole day
}

// SettingsRow is a consumer: for each window a value for each key, "" where the key has its default.
type SettingsRow struct {
	Path   string     `json:"path"`
	Values [][]string `json:"values"`
}

// Settings lists what is set in each plan, slot plans first. Time: consumers × plans × windows × keys.
func (p *Policy) Settings() []Settings {
	all := []Settings{}
	for i := range p.SlotPlans {
		s := &p.SlotPlans[i]
		windows := make([]*Window, len(s.Windows))
		for w := range s.Windows {
			windows[w] = &s.Windows[w].Window
		}
		all = append(all, p.settings(p.Groups[s.Group].Name, "slots", windows, s.Member, func(w int, n Node) []fact {
			return p.slotFacts(s, &s.Windows[w], n, same, nil)
		}))
	}
	for i := range p.MDPlans {
		m := &p.MDPlans[i]
		windows := make([]*Window, len(m.Windows))
		for w := range m.Windows {
			windows[w] = &m.Windows[w].Window
		}
		all = append(all, p.settings(m.Name, "md", windows, m.Member, func(w int, n Node) []fact {
			return p.mdFacts(m, &m.Windows[w], n, nil)
		}))
	}
	return all
}

// settings are those of a plan.
func (p *Policy) settings(name, kind string, windows []*Window, member []bool, of func(w int, n Node) []fact) Settings {
	s := Settings{Plan: name, Kind: kind, Windows: []WindowText{}, Keys: []string{}, Consumers: []SettingsRow{}}
	for _, w := range windows {
		var when []string
		p.windowItems("", "", []*Window{w}, func(it item) {
			for _, f := range it.facts(0, nil) {
				if f.value != "" {
					when = append(when, f.value)
				}
			}
		})
		s.Windows = append(s.Windows, WindowText{w.Name, strings.Join(when, " ")})
	}
	var used []bool // by key: somebody has set it
	var keys []string
	for n := Root + 1; int(n) < p.Len(); n++ {
		if !member[n] {
			continue
		}
		row := SettingsRow{Path: p.Path[n], Values: make([][]string, len(windows))}
		for w := range windows {
			facts := of(w, n)
			if used == nil {
				used = make([]bool, len(facts))
				for _, f := range facts {
					keys = append(keys, f.key)
				}
			}
			row.Values[w] = make([]string, len(facts))
			for k, f := range facts {
				if !f.usual {
					row.Values[w][k], used[k] = f.value, true
				}
			}
		}
		s.Consumers = append(s.Consumers, row)
	}
	s.keep(keys, used)
	return s
}

// keep leaves out the keys that nobody has set.
func (s *Settings) keep(keys []string, used []bool) {
	for k, key := range keys {
		if used[k] {
			s.Keys = append(s.Keys, key)
		}
	}
	for i := range s.Consumers {
		for w, values := range s.Consumers[i].Values {
			kept := values[:0]
			for k, value := range values {
				if used[k] {
					kept = append(kept, value)
				}
			}
			s.Consumers[i].Values[w] = kept
		}
	}
}
