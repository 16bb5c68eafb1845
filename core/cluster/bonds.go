package cluster

import (
	"math"
	"strconv"

	"github.com/stintd/stint/core/plan"
)

// Bonds is which gangs of a plan are held to hosts with one value of an attribute (D-108), and what they require then:
// their own requirement, and that value. The zero value holds none.
type Bonds struct {
	s      *State
	p      *Plan
	tables int64 // State.HostTables that all but now was made at
	places map[string]*Places
	id     map[bond]NeedID
	made   []*plan.Requirement // by what an id is beyond boundNeeds
	now    map[SubID]bound
}

// Places are the values of an attribute by number, in the order in which the plan's hosts have them.
type Places struct {
	Of   []int32  // by HostID, NoID: it has none
	Text []string // by number
	Own  int      // of the plan's own hosts are those below

	name   string
	kind   plan.Kind
	number []float64 // by number, of an attribute of numbers
}

// bond is what a bound requirement is made of.
type bond struct {
	need  *plan.Requirement
	name  string
	value int32
}

// bound is a value that a gang is held to, and what it requires then.
type bound struct {
	value int32
	need  NeedID
}

const (
	boundNeeds = NeedID(1 << 30) // ids of bound requirements begin here
	bondsMost  = 1 << 12         // so many bound requirements are kept from cycle to cycle
)

// Begin holds the gangs that must be together and are formed, or promised room, to the value of what they have: of the
// first host, in host order, on which any of it stays, else of the target of the first set for them; hosts without a
// value are passed over. O(gangs, what they hold, and sets), and once for a hosts table O(hosts).
func (b *Bonds) Begin(s *State, p *Plan, gangs []SubID) {
	if b.s != s || b.p != p || b.tables != s.HostTables || len(b.made) > bondsMost {
		*b = Bonds{s: s, p: p, tables: s.HostTables, places: map[string]*Places{}, id: map[bond]NeedID{}}
	}
	b.now = nil
	var first map[SubID]SetID
	for _, sub := range gangs {
		name, prefers := b.asks(sub)
		if name == "" || prefers {
			continue
		}
		if first == nil {
			first = s.firstSets(p)
		}
		if value, held := b.valueOf(sub, b.Places(name), first); held {
			b.Hold(sub, value)
		}
	}
}

// firstSets are the first sets of takers in a plan. O(sets).
func (s *State) firstSets(p *Plan) map[SubID]SetID {
	first := map[SubID]SetID{}
	for id := range s.Set.Of(p) {
		if s.Set.Taker[id] == NoID || s.Set.Units[id] == 0 {
			continue
		}
		if was, ok := first[s.Set.Taker[id]]; !ok || s.Set.Number[id] < s.Set.Number[was] {
			first[s.Set.Taker[id]] = id
		}
	}
	return first
}

// valueOf is the value that a gang is held to, NoID: it has something, and no host of that has a value; held is false
// where it has nothing.
func (b *Bonds) valueOf(sub SubID, places *Places, first map[SubID]SetID) (value int32, held bool) {
	h, at := &b.s.Holding, ParcelID(math.MaxInt32)
	value = NoID
	for q := b.s.Sub.First[sub]; q != NoID; q = h.NextOfSub[q] {
		if h.Set[q] != NoID {
			continue
		}
		held = true
		if k := h.Parcel[q]; k < at && places.Of[b.p.Parcels.Host[k]] != NoID {
			at, value = k, places.Of[b.p.Parcels.Host[k]]
		}
	}
	if id, promised := first[sub]; promised && !held {
		return places.Of[b.s.Set.Target[id]], true
	}
	return value, held
}

// asks is the attribute by which a gang is to be together, "" where the gang may be anywhere, or sub is no gang.
func (b *Bonds) asks(sub SubID) (name string, prefers bool) {
	label := b.s.Sub.Together[sub]
	if label == 0 || b.s.Sub.MinUnits[sub] <= 1 {
		return "", false
	}
	return Together(b.s.Label.String(label))
}

// Seeks is the values that a gang which is held to none may be together in, nil where it may be anywhere. With prefers
// the gang may do without one.
func (b *Bonds) Seeks(sub SubID) (places *Places, prefers bool) {
	if b.s == nil {
		return nil, false
	}
	name, prefers := b.asks(sub)
	if _, held := b.now[sub]; held || name == "" {
		return nil, false
	}
	return b.Places(name), prefers
}

// Must is the values of the attribute by which a gang must be together, nil where it may be anywhere.
func (b *Bonds) Must(sub SubID) *Places {
	if b.s == nil {
		return nil
	}
	name, prefers := b.asks(sub)
	if name == "" || prefers {
		return nil
	}
	return b.Places(name)
}

// Held is the value that a gang is held to, NoID: to none, so that no host is left; ok is false where it is not held.
func (b *Bonds) Held(sub SubID) (value int32, ok bool) {
	one, ok := b.now[sub]
	return one.value, ok
}

// Places is the values of an attribute. O(1), and once for a hosts table O(hosts).
func (b *Bonds) Places(name string) *Places {
	if places := b.places[name]; places != nil {
		return places
	}
	places := &Places{name: name, Of: make([]int32, b.s.Host.Len())}
	for h := range places.Of {
		places.Of[h] = NoID
	}
	b.places[name] = places
	col, kind, ok := b.s.Column(name)
	if places.kind = kind; !ok || kind == plan.Boolean {
		return places
	}
	number := map[string]int32{}
	for k, h := range b.p.Parcels.Host {
		text, has := b.text(col, kind, h)
		if !has || places.Of[h] != NoID || !b.s.Host.listed[h] {
			continue // none, or known from another parcel, or the host is gone
		}
		value, known := number[text]
		if !known {
			value = int32(len(places.Text))
			number[text] = value
			if places.Text = append(places.Text, text); k < b.p.Parcels.Len()-b.p.Parcels.Left {
				places.Own = len(places.Text)
			}
			if kind == plan.Number {
				n, _ := b.s.NumberAt(col, int(h))
				places.number = append(places.number, n)
			}
		}
		places.Of[h] = value
	}
	return places
}

// text is a host's value as text.
func (b *Bonds) text(col int, kind plan.Kind, h HostID) (string, bool) {
	if kind == plan.Number {
		n, ok := b.s.NumberAt(col, int(h))
		return strconv.FormatFloat(n, 'f', -1, 64), ok && !math.IsNaN(n)
	}
	text, ok := b.s.TextAt(col, int(h))
	return string(text), ok
}

// Hold holds a gang to a value of its attribute, NoID: to none, so that no host is left.
func (b *Bonds) Hold(sub SubID, value int32) {
	if b.now == nil {
		b.now = map[SubID]bound{}
	}
	b.now[sub] = bound{value, b.With(sub, value)}
}

// With is what a gang requires that is held to a value.
func (b *Bonds) With(sub SubID, value int32) NeedID {
	name, _ := b.asks(sub)
	var need *plan.Requirement
	if id := b.s.Sub.Need[sub]; id != NoID {
		need = b.s.Need.Parsed[id]
	}
	key := bond{need, name, value}
	id, ok := b.id[key]
	if !ok {
		places := b.Places(name)
		id = boundNeeds + NeedID(len(b.made))
		b.id[key] = id
		switch {
		case value == NoID:
			b.made = append(b.made, need.Nowhere("any "+name))
		case places.kind == plan.Number:
			b.made = append(b.made, need.At(name, plan.Number, places.Text[value], places.number[value]))
		default:
			b.made = append(b.made, need.At(name, plan.Text, places.Text[value], 0))
		}
	}
	return id
}

// Free lets a gang be anywhere again.
func (b *Bonds) Free(sub SubID) { delete(b.now, sub) }

// Need is what a sub-allocation requires, the value that it is held to included; NoID: nothing.
func (b *Bonds) Need(s *State, sub SubID) NeedID {
	if len(b.now) > 0 {
		if one, held := b.now[sub]; held {
			return one.need
		}
	}
	return s.Sub.Need[sub]
}

// Where tells in words which value a gang is held to, such as "in rack r7"; "" where to none.
func (b *Bonds) Where(sub SubID) string {
	one, held := b.now[sub]
	if !held || one.value == NoID {
		return ""
	}
	name, _ := b.asks(sub)
	if name == "host" {
		return "on host " + b.Places(name).Text[one.value]
	}
	return "in " + name + " " + b.Places(name).Text[one.value]
}

// Bound is the place of a bound requirement among all bound ones; ok is false for any other requirement.
func Bound(need NeedID) (at int, ok bool) { return int(need - boundNeeds), need >= boundNeeds }

// Requirement is that of an id, nil for NoID.
func (b *Bonds) Requirement(s *State, need NeedID) *plan.Requirement {
	if need == NoID {
		return nil
	}
	if at, ok := Bound(need); ok {
		return b.made[at]
	}
	return s.Need.Parsed[need]
}

// Place returns the values of the attribute by which a gang must be together, nil where it may be anywhere; and the
// value that it is held to, held false where that is none.
func (b *Bonds) Place(sub SubID) (places *Places, value int32, held bool) {
	if b.s == nil {
		return nil, NoID, false
	}
	one, held := b.now[sub]
	name, prefers := b.asks(sub)
	if name == "" || prefers && !held {
		return nil, NoID, false
	}
	return b.Places(name), one.value, held
}
