package cluster

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Hosts are the hosts as columns, by HostID in order of first sight.
type Hosts struct {
	Names              // host names; the id in it is the HostID
	State  []HostState // Unavail too for hosts that a full table left out
	Size   [][]int64   // by dimension, then HostID: capacity before overcommit
	Attr   []AttrColumn
	Order  []HostID   // as in the last full table, hosts added since behind; those it left out are not in it
	Plan   []int32    // index into State.Plans, NoID when no group of a plan has it
	Parcel []ParcelID // in that plan

	listed []bool          // by HostID: in Order
	words  map[string]bool // values of name, type and model, for bare words of requirements; nil: to be made
}

// Column finds a dimension, attribute, `host` or `state` (plan.Hosts).
func (s *State) Column(name string) (col int, kind plan.Kind, ok bool) {
	if d, ok := s.Policy.Dimension(name); ok {
		return d, plan.Number, true
	}
	switch name {
	case "host":
		return columnHost, plan.Text, true
	case "state":
		return columnState, plan.Text, true
	}
	if i := s.Host.attribute(name); i >= 0 {
		return columnAttr + i, s.Host.Attr[i].Kind, true
	}
	return 0, 0, false
}

// Handles of columns that are no dimension; policies have at most 16 of those.
const (
	columnHost = 1<<16 + iota
	columnState
	columnAttr
)

func (h *Hosts) attribute(name string) int {
	for i := range h.Attr {
		if h.Attr[i].Name == name {
			return i
		}
	}
	return -1
}

// NumberAt gives a dimension or numeric attribute of a host (plan.Hosts).
func (s *State) NumberAt(col, host int) (v float64, ok bool) {
	if col < columnHost {
		return float64(s.Host.Size[col][host]), true
	}
	a := &s.Host.Attr[col-columnAttr]
	if !a.Valid[host] {
		return 0, false
	}
	return a.Number[host], true
}

// TextAt gives a text attribute, the name or the state of a host (plan.Hosts).
func (s *State) TextAt(col, host int) (v []byte, ok bool) {
	switch col {
	case columnHost:
		return s.Host.Bytes(int32(host)), true
	case columnState:
		return []byte(HostStates[s.Host.State[host]]), true
	}
	a := &s.Host.Attr[col-columnAttr]
	if !a.Valid[host] {
		return nil, false
	}
	return a.Text.Names.Bytes(a.Text.Code[host]), true
}

// BoolAt gives a boolean attribute of a host (plan.Hosts).
func (s *State) BoolAt(col, host int) (v, ok bool) {
	a := &s.Host.Attr[col-columnAttr]
	return a.Bool[host], a.Valid[host]
}

// wordColumns are the attributes whose texts are words of a host, as its name is.
var wordColumns = [...]string{"type", "model"}

// HasWord tells whether any host's name, type or model is the word (plan.Hosts).
func (s *State) HasWord(word string) bool {
	if s.Host.words == nil {
		s.Host.words = map[string]bool{}
		for _, name := range wordColumns {
			if i := s.Host.attribute(name); i >= 0 && s.Host.Attr[i].Kind == plan.Text {
				for v := range int32(s.Host.Attr[i].Text.Names.Len()) {
					s.Host.words[s.Host.Attr[i].Text.Names.String(v)] = true
				}
			}
		}
	}
	if s.Host.words[word] {
		return true
	}
	_, ok := s.Host.Find([]byte(word))
	return ok
}

// WordAt tells whether this host's name, type or model is the word (plan.Hosts).
func (s *State) WordAt(word string, host int) bool {
	if string(s.Host.Bytes(int32(host))) == word {
		return true
	}
	for _, name := range wordColumns {
		if i := s.Host.attribute(name); i >= 0 && s.Host.Attr[i].Kind == plan.Text {
			if v, ok := s.TextAt(columnAttr+i, host); ok && string(v) == word {
				return true
			}
		}
	}
	return false
}

// Rows is the number of hosts (plan.Hosts).
func (s *State) Rows() int { return s.Host.Len() }

// SetHosts applies a hosts table (SPEC chapter 7). With full, hosts that the
// table does not name are lost; otherwise it holds changes, where a column that
// is not given keeps its value. Refused whole, with every bad row: a host named
// twice, an attribute that changes its type, a host that would be in two plans.
func (s *State) SetHosts(t *HostTable, full bool) error {
	f := Faults{Table: t.title()}
	if len(t.Size) != len(s.Policy.Dimensions) {
		panic(fmt.Sprintf("BUG: a hosts table with %d dimensions, the policy has %d", len(t.Size),
			len(s.Policy.Dimensions)))
	}
	s.checkHosts(t, &f)
	if err := f.Err(); err != nil {
		return err
	}
	if !full && s.change(t) {
		return nil
	}
	old := s.Host
	s.Host = old.with(t, full, len(s.Policy.Dimensions))
	order, err := s.hostOrder(s.Policy)
	if err != nil {
		s.Host = old
		f.Add(0, "", "", err.Error())
		return f.Err()
	}
	s.touch(&old)
	s.lay(order)
	return nil
}

// touch makes the plans of hosts whose sizes or attributes changed look at everything again, as requirements go by
// them, and notes what these hosts were. O(hosts × columns).
func (s *State) touch(old *Hosts) {
	for h := range old.Len() {
		if s.Host.Plan[h] == NoID {
			continue
		}
		p := &s.Plans[s.Host.Plan[h]]
		resized := s.Host.resized(old, h)
		p.Dirty = p.Dirty || resized || s.Host.listed[h] != old.listed[h] // gangs know the values of listed hosts alone
		if resized || s.Host.State[h] != old.State[h] {
			s.noteHost(old.figures(HostID(h)))
		}
		if (!p.Dirty || !p.Stirred || p.Turned) && s.Host.differs(old, h) {
			p.Dirty = true
			s.stir(p)
		}
	}
}

// resized tells whether a host has other sizes than in old, of which h was made by with.
func (h *Hosts) resized(old *Hosts, host int) bool {
	for d := range old.Size {
		if h.Size[d][host] != old.Size[d][host] {
			return true
		}
	}
	return false
}

// differs tells whether a host has other attributes than in old, of which h was made by with.
func (h *Hosts) differs(old *Hosts, host int) bool {
	for i := range h.Attr {
		a := &h.Attr[i]
		if i >= len(old.Attr) || a.Kind != old.Attr[i].Kind || a.Valid[host] != old.Attr[i].Valid[host] {
			return a.any()
		}
		if b := &old.Attr[i]; a.Valid[host] && (a.Kind == plan.Number && a.Number[host] != b.Number[host] ||
			a.Kind == plan.Boolean && a.Bool[host] != b.Bool[host] ||
			a.Kind == plan.Text && a.Text.Code[host] != b.Text.Code[host]) {
			return true
		}
	}
	return false
}

// checkHosts finds what is wrong with a table's rows and columns by themselves.
func (s *State) checkHosts(t *HostTable, f *Faults) {
	row := make([]int, t.Host.Names.Len())
	for i := range t.Rows {
		code := t.Host.At(i)
		if row[code] != 0 {
			f.Add(i+1, "host", t.Host.Names.String(code), fmt.Sprintf("this host stands in row %d already", row[code]))
			continue
		}
		row[code] = i + 1
	}
	for d, col := range t.Size {
		for i, v := range col {
			if v < 0 && v != NotGiven || v > NumberMax {
				f.Add(i+1, s.Policy.Dimensions[d], fmt.Sprint(v), "not a whole number from 0 to 2^53")
			}
		}
	}
	for i := range t.Attr {
		a := &t.Attr[i]
		if j := s.Host.attribute(a.Name); j >= 0 && a.any() && s.Host.Attr[j].any() && s.Host.Attr[j].Kind != a.Kind {
			f.Add(0, a.Name, "", fmt.Sprintf("holds %s, but %s up to now", kindNames[a.Kind],
				kindNames[s.Host.Attr[j].Kind]))
		}
	}
}

var kindNames = [...]string{plan.Number: "numbers", plan.Text: "text", plan.Boolean: "booleans"}

func (a *AttrColumn) any() bool {
	for _, v := range a.Valid {
		if v {
			return true
		}
	}
	return false
}

// with is the hosts after a table is applied; h itself is not changed. O(hosts).
func (h *Hosts) with(t *HostTable, full bool, dims int) Hosts {
	n := Hosts{Names: h.Names.clone(), State: slices.Clone(h.State), Plan: h.Plan, Parcel: h.Parcel}
	for d := range dims {
		var col []int64
		if d < len(h.Size) {
			col = slices.Clone(h.Size[d])
		}
		n.Size = append(n.Size, col)
	}
	for i := range h.Attr {
		n.Attr = append(n.Attr, h.Attr[i].clone())
	}
	if full {
		for i := range n.State {
			n.State[i] = Unavail
		}
	}
	at := n.adopt(&t.Host)
	n.Order, n.listed = h.ordered(at, full, n.Len())
	n.grow()
	for i := range t.Rows {
		if t.State != nil && t.State[i] != Keep {
			n.State[at[i]] = t.State[i]
		} else if full {
			n.State[at[i]] = OK
		}
	}
	for d, col := range t.Size {
		for i, row := range at {
			if col != nil && col[i] != NotGiven {
				n.Size[d][row] = col[i]
			} else if full {
				n.Size[d][row] = 0
			}
		}
	}
	n.setAttributes(t, at, full)
	return n
}

// adopt gives the ids of a column's hosts, each of which stands in one row, adding
// those that are new. The first table's dictionary is taken over as it is when its
// codes are its rows, as a decoder gives them.
func (h *Hosts) adopt(names *TextColumn) []int32 {
	if h.Len() == 0 && names.Names.Len() == len(names.Code) && ascending(names.Code) {
		h.Names = names.Names.clone()
		return names.Code
	}
	at := make([]int32, len(names.Code))
	h.Reserve(len(at))
	for i, code := range names.Code {
		at[i] = h.Intern(names.Names.Bytes(code))
	}
	return at
}

// ascending tells whether every code is its row.
func ascending(code []int32) bool {
	for i, c := range code {
		if int(c) != i {
			return false
		}
	}
	return true
}

// ordered is the order of hosts after a table whose rows are at: a full table's own,
// without the hosts that it leaves out; for changes, new hosts last.
func (h *Hosts) ordered(at []int32, full bool, hosts int) (order []HostID, placed []bool) {
	order, placed = make([]HostID, 0, hosts), make([]bool, hosts)
	add := func(id HostID) {
		if !placed[id] {
			order, placed[id] = append(order, id), true
		}
	}
	if !full {
		for _, id := range h.Order {
			add(id)
		}
	}
	for _, id := range at {
		add(HostID(id))
	}
	return order, placed
}

// grow gives every column rows for the hosts that Intern has added.
func (h *Hosts) grow() {
	more := h.Len() - len(h.State)
	h.State = append(h.State, make([]HostState, more)...)
	for d := range h.Size {
		h.Size[d] = append(h.Size[d], make([]int64, more)...)
	}
	for i := range h.Attr {
		h.Attr[i].grow(h.Len())
	}
}

// setAttributes writes a table's attributes to the rows at; a full table also
// clears those of its hosts that it does not give.
func (h *Hosts) setAttributes(t *HostTable, at []int32, full bool) {
	if full {
		for i := range h.Attr {
			for _, row := range at {
				h.Attr[i].Valid[row] = false
			}
		}
	}
	for i := range t.Attr {
		from := &t.Attr[i]
		j := h.attribute(from.Name)
		if j < 0 {
			j = len(h.Attr)
			h.Attr = append(h.Attr, AttrColumn{Name: from.Name, Kind: from.Kind})
			h.Attr[j].Text.Names = &Names{}
			h.Attr[j].grow(h.Len())
		} else if !h.Attr[j].any() {
			h.Attr[j].Kind = from.Kind
			h.Attr[j].grow(h.Len())
		}
		to := &h.Attr[j]
		var code []int32 // by the table's code: this column's code + 1
		if from.Kind == plan.Text {
			code = make([]int32, from.Text.Names.Len())
		}
		for row, id := range at {
			if from.Keep != nil && from.Keep[row] {
				continue
			}
			if to.Valid[id] = from.Valid[row]; !from.Valid[row] {
				continue
			}
			switch from.Kind {
			case plan.Number:
				to.Number[id] = from.Number[row]
			case plan.Boolean:
				to.Bool[id] = from.Bool[row]
			default:
				c := from.Text.Code[row]
				if code[c] == 0 {
					code[c] = to.Text.Names.Intern(from.Text.Names.Bytes(c)) + 1
				}
				to.Text.Code[id] = code[c] - 1
			}
		}
	}
}

// grow makes room for n rows in the slices that the attribute's kind uses.
func (a *AttrColumn) grow(n int) {
	a.Valid = append(a.Valid, make([]bool, n-len(a.Valid))...)
	switch a.Kind {
	case plan.Number:
		a.Number = append(a.Number, make([]float64, n-len(a.Number))...)
	case plan.Boolean:
		a.Bool = append(a.Bool, make([]bool, n-len(a.Bool))...)
	default:
		a.Text.Code = append(a.Text.Code, make([]int32, n-len(a.Text.Code))...)
	}
}

func (a *AttrColumn) clone() AttrColumn {
	names := a.Text.Names.clone()
	return AttrColumn{
		Name: a.Name, Kind: a.Kind, Valid: slices.Clone(a.Valid), Number: slices.Clone(a.Number),
		Bool: slices.Clone(a.Bool), Text: TextColumn{Names: &names, Code: slices.Clone(a.Text.Code)},
	}
}

func (n *Names) clone() Names {
	return Names{bytes: slices.Clone(n.bytes), end: slices.Clone(n.end), slot: slices.Clone(n.slot)}
}
