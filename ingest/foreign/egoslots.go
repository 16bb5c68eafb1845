package foreign

import (
	"fmt"
	"slices"
	"strings"
)

// slotPlan is a slot plan of a policy on its way.
type slotPlan struct {
	group     string
	placement string      // "": as by default
	entries   []slotEntry // by path, parents before children
	windows   []slotWindow
}

// slotEntry is what a consumer has in a slot plan, as keys and their values in YAML.
type slotEntry struct {
	path string
	keys []slotKey
}

type slotKey struct {
	name, value string
	quiet       bool // the value is that of a key that is left out
}

type slotWindow struct {
	window  egoWindow
	entries []slotEntry // keys that differ from the plan's own
}

// text writes the plan.
func (s *slotPlan) text(b *strings.Builder) {
	fmt.Fprintf(b, "  - resource_group: %s\n", quoted(s.group))
	if s.placement != "" {
		fmt.Fprintf(b, "    placement: %s\n", s.placement)
	}
	b.WriteString("    consumers:\n")
	for i := range s.entries {
		s.entries[i].text(b, "      ")
	}
	if len(s.windows) > 0 {
		b.WriteString("    windows:\n")
	}
	for i := range s.windows {
		w := &s.windows[i]
		days := ""
		if w.window.days != 1<<7-1 {
			days = ", days: [" + strings.Join(w.window.dayList(), ", ") + "]"
		}
		head := fmt.Sprintf("name: %s, hours: %s%s", quoted(w.window.name), quoted(w.window.hours()), days)
		if len(w.entries) == 0 {
			fmt.Fprintf(b, "      - {%s}\n", head)
			continue
		}
		fmt.Fprintf(b, "      - name: %s\n        hours: %s\n", quoted(w.window.name), quoted(w.window.hours()))
		if days != "" {
			fmt.Fprintf(b, "        %s\n", strings.TrimPrefix(days, ", "))
		}
		b.WriteString("        consumers:\n")
		for k := range w.entries {
			w.entries[k].text(b, "          ")
		}
	}
}

func (e *slotEntry) text(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s- {path: %s", indent, quoted(e.path))
	for _, k := range e.keys {
		if !k.quiet {
			fmt.Fprintf(b, ", %s: %s", k.name, k.value)
		}
	}
	b.WriteString("}\n")
}

// shares tells whether an entry has a share ratio.
func (e *slotEntry) shares(ratio int64) bool {
	return slices.ContainsFunc(e.keys, func(k slotKey) bool {
		rest, ok := strings.CutPrefix(k.value, fmt.Sprintf("{ratio: %d", ratio))
		return ok && k.name == "share" && (rest == "}" || strings.HasPrefix(rest, ","))
	})
}

// beyond is what of an entry differs from another of the same consumer: every such key, also one that says what a
// missing one would.
func (e *slotEntry) beyond(base *slotEntry) (d slotEntry) {
	d.path = e.path
	for _, k := range e.keys {
		i := slices.IndexFunc(base.keys, func(o slotKey) bool { return o.name == k.name })
		if i < 0 && !k.quiet || i >= 0 && base.keys[i].value != k.value {
			k.quiet = false
			d.keys = append(d.keys, k)
		}
	}
	return d
}

// The policies of a branch.
const (
	underOwnership  = "ownership"
	underShareRatio = "share_ratio"
	underHybrid     = "hybrid"
)

// egoSlots makes a slot plan of a plan of the reporting table.
type egoSlots struct {
	file   string
	faults *faults
	report *Report
	h      *History
	p      *egoPlan
	paths  []string // parents before children
	at     map[string]int
	lines  []int // by path: place among the plan's lines, -1: the table has none
}

// plan is the slot plan with its windows.
func (s *egoSlots) plan() *slotPlan {
	out := &slotPlan{group: s.p.name}
	s.at, s.lines = map[string]int{}, make([]int, len(s.paths))
	for i, path := range s.paths {
		s.at[path], s.lines[i] = i, -1
	}
	for k, n := range s.p.lines {
		s.lines[s.at[s.h.Lines[n].Consumer]] = k
	}
	out.entries = s.entries(s.p.classes[s.p.base])
	for _, w := range s.p.windows {
		one := slotWindow{window: w}
		if w.class != s.p.base {
			for i, e := range s.entries(s.p.classes[w.class]) {
				if d := e.beyond(&out.entries[i]); len(d.keys) > 0 {
					one.entries = append(one.entries, d)
				}
			}
		}
		out.windows = append(out.windows, one)
	}
	return out
}

// settings are what the table says of each path in a class; nil where it has no row of it.
func (s *egoSlots) settings(c egoClass) []*egoSetting {
	list := make([]*egoSetting, len(s.paths))
	for i, k := range s.lines {
		if k >= 0 {
			list[i] = &s.h.Lines[s.p.lines[k]].settings[c[k]]
		}
	}
	return list
}

// entries are what all consumers have in a class.
func (s *egoSlots) entries(c egoClass) []slotEntry {
	of := s.settings(c)
	kind := s.kinds(of)
	owns := s.owned(of, kind)
	ratio := s.ratios(of, kind)
	entries := make([]slotEntry, len(s.paths))
	for i, path := range s.paths {
		e := &entries[i]
		e.path = path
		add := func(name, value string, quiet bool) { e.keys = append(e.keys, slotKey{name, value, quiet}) }
		if parentOf(path) == "" {
			add("policy", kind[i], false)
		}
		set := &egoSetting{}
		if of[i] != nil {
			set = of[i]
		}
		if kind[i] != underShareRatio {
			add("owns", fmt.Sprint(owns[i]), owns[i] == 0)
		}
		if kind[i] == underHybrid {
			reserves := s.reserves(i, set, owns[i])
			add("reserves", fmt.Sprint(reserves), reserves == 0)
			limit := int64(egoSlotsMax) // how a window says that there is none
			if set.shareLimit > 0 {
				limit = set.shareLimit
			}
			add("limit", fmt.Sprint(limit), set.shareLimit == 0)
			continue
		}
		if s.leaf(i) && kind[i] == underOwnership {
			lend, lends := s.lend(i, set, owns[i])
			borrow, borrows := s.borrow(i, set)
			add("lend", lend, !lends)
			add("borrow", borrow, !borrows)
		} else {
			s.branchLends(i, set)
		}
		share := fmt.Sprintf("{ratio: %d", ratio[i])
		if set.shareLimit > 0 {
			share += fmt.Sprintf(", max: %d", set.shareLimit)
		}
		add("share", share+"}", share == "{ratio: 1")
	}
	return entries
}

func (s *egoSlots) leaf(i int) bool { return i+1 == len(s.paths) || !below(s.paths[i+1], s.paths[i]) }

// line is a path's line in the history, nil where there is none.
func (s *egoSlots) line(i int) *HistoryLine {
	if s.lines[i] < 0 {
		return nil
	}
	return &s.h.Lines[s.p.lines[s.lines[i]]]
}

// kinds are the policies of all consumers: that of their branch, by what anybody in it owns.
func (s *egoSlots) kinds(of []*egoSetting) []string {
	kind := make([]string, len(s.paths))
	branch, line := 0, [2]int{}
	some := map[string]bool{}
	end := func() {
		if line[0] > 0 && line[1] > 0 {
			s.faults.add(s.file, line[1], "%s in %s has PLANNED_HOWN (hybrid policy), and its branch PLANNED_OWN "+
				"(ownership policy) on line %d; a branch is under one policy",
				s.paths[branch], s.p.name, line[0])
		}
	}
	for i := range s.paths {
		if parentOf(s.paths[i]) == "" {
			end()
			branch, line = i, [2]int{}
		}
		switch set := of[i]; {
		case set == nil:
		case set.hybridOwn > 0 || set.hybridReserve > 0:
			kind[branch], line[1] = underHybrid, set.line
		case set.own > 0 || set.borrowFrom != "" || set.borrowLimit > 0:
			if kind[branch] == "" {
				kind[branch] = underOwnership
			}
			line[0] = set.line
		}
		some[kind[branch]] = true
	}
	end()
	rest := underShareRatio
	switch { // those of whom nobody owns anything
	case some[underHybrid]:
		rest = underHybrid
	case some[underOwnership]:
		rest = underOwnership
	}
	for i := range kind {
		if parentOf(s.paths[i]) == "" {
			branch = i
			if kind[i] == "" {
				kind[i] = rest
			}
		}
		kind[i] = kind[branch]
	}
	return kind
}

// owned are the slots that consumers own. A branch owns at least what its children do together.
func (s *egoSlots) owned(of []*egoSetting, kind []string) []int64 {
	owns, below := make([]int64, len(s.paths)), make([]int64, len(s.paths))
	for i := len(s.paths) - 1; i >= 0; i-- {
		if of[i] != nil && kind[i] == underHybrid {
			owns[i] = of[i].hybridOwn
		} else if of[i] != nil {
			owns[i] = of[i].own
		}
		switch {
		case owns[i] >= below[i]:
		case of[i] == nil:
			owns[i] = below[i]
		default:
			s.report.Add(s.file, of[i].line, fmt.Sprintf("what %s owns in %s (%d)", s.paths[i], s.p.name, owns[i]),
				fmt.Sprintf("its children own %d; the branch gets that", below[i]))
			owns[i] = below[i]
		}
		if up, ok := s.at[parentOf(s.paths[i])]; ok {
			below[up] += owns[i]
		}
	}
	return owns
}

// ratios are whole numbers in the proportions of SHARE_RATIO among siblings.
func (s *egoSlots) ratios(of []*egoSetting, kind []string) []int64 {
	list := make([]int64, len(s.paths))
	siblings := map[string][]int{}
	for i, path := range s.paths {
		siblings[parentOf(path)] = append(siblings[parentOf(path)], i)
	}
	for _, all := range siblings {
		weights := make([]float64, len(all))
		some := false
		for k, i := range all {
			weights[k] = 1
			if of[i] != nil {
				weights[k] = of[i].ratio
			}
			if l := s.line(i); weights[k] == 0 && l != nil && l.everShared && kind[i] != underHybrid {
				s.report.Add(s.file, of[i].line, "SHARE_RATIO of 0, or null, of who had slots of a share pool",
					"it is taken for 1")
				weights[k] = 1
			}
			some = some || weights[k] > 0
		}
		if !some {
			continue // nobody shares: 0 each
		}
		for k, n := range ratios(weights) {
			list[all[k]] = n
		}
	}
	return list
}

// reserves is what a hybrid consumer keeps, at most what it owns.
func (s *egoSlots) reserves(i int, set *egoSetting, owns int64) int64 {
	n := min(set.hybridReserve, owns)
	if set.shareLimit > 0 {
		n = min(n, set.shareLimit)
	}
	if n < set.hybridReserve {
		s.report.Add(s.file, set.line, fmt.Sprintf("PLANNED_HRESERVE of %s in %s (%d)", s.paths[i], s.p.name,
			set.hybridReserve),
			fmt.Sprintf("is more than it owns, or its limit; it keeps %d", n))
	}
	return n
}

// lend is what a leaf lends. A limit of 0 may be a null: who lent all the same lends all that it owns.
func (s *egoSlots) lend(i int, set *egoSetting, owns int64) (text string, some bool) {
	limit, l := set.lendLimit, s.line(i)
	if limit == 0 && l != nil && l.everLent && owns > 0 {
		s.report.Add(s.file, set.line, "LENDING_LIMIT of 0, or null, of who lent slots",
			"it is taken for no limit: all that is owned may be lent")
		limit = owns
	}
	text = fmt.Sprintf("{limit: %d", min(limit, owns))
	if limit > 0 {
		to, somebody := s.peers("to", set.lendTo, set.line, "LEND_TO")
		if !somebody {
			return "{limit: 0}", false
		}
		text += to
	}
	return text + "}", limit > 0 && owns > 0
}

// borrow is what a leaf borrows. A limit of 0 may be a null: who has a list to borrow from, or borrowed all the same,
// has no limit.
func (s *egoSlots) borrow(i int, set *egoSetting) (text string, some bool) {
	l := s.line(i)
	switch {
	case set.borrowLimit > 0:
		text = fmt.Sprintf("{limit: %d", set.borrowLimit)
	case set.borrowFrom == "" && (l == nil || !l.everBorrowed):
		return "{limit: 0}", false
	default:
		if set.borrowFrom == "" {
			s.report.Add(s.file, set.line, "BORROW_LIMIT of 0, or null, of who borrowed slots",
				"it is taken for no limit")
		}
		text = "{"
	}
	from, somebody := s.peers("from", set.borrowFrom, set.line, "BORROW_FROM")
	if !somebody {
		return "{limit: 0}", false
	}
	return strings.Replace(text+from+"}", "{, ", "{", 1), true
}

// peers is a list of consumers, such as `, to: ["/A", any]`; empty for anybody. somebody is false where none of those
// listed is there.
func (s *egoSlots) peers(key, text string, line int, column string) (peers string, somebody bool) {
	var list []string
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",;|", r) }) {
		name = strings.TrimSpace(name)
		switch path := "/" + strings.Trim(name, "/"); {
		case name == "":
		case strings.EqualFold(name, "all") || strings.EqualFold(name, "any"):
			list = append(list, "any")
		case strings.EqualFold(name, "siblings"):
			list = append(list, "siblings")
		case s.has(path):
			list = append(list, quoted(path))
		default:
			s.report.Add(s.file, line, column+" "+quoted(name), "is no consumer of the plan; separate paths by ; or |")
		}
	}
	switch {
	case text == "" || len(list) == 1 && list[0] == "any":
		return "", true
	case len(list) == 0:
		return "", false
	}
	return ", " + key + ": [" + strings.Join(list, ", ") + "]", true
}

func (s *egoSlots) has(path string) bool {
	_, ok := s.at[path]
	return ok
}

// branchLends tells of what only leaves have here.
func (s *egoSlots) branchLends(i int, set *egoSetting) {
	if set.lendLimit > 0 || set.borrowLimit > 0 || set.borrowFrom != "" {
		s.report.Add(s.file, set.line, fmt.Sprintf("what %s lends and borrows in %s", s.paths[i], s.p.name),
			"only leaves of a branch under the ownership policy lend and borrow")
	}
}
