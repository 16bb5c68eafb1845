package verify

import (
	"slices"
	"strconv"
	"strings"
)

// Devices of MD plans (D-185): what units take of one dimension lies on devices of their host.

// devicesMost is how many devices of a host count.
const devicesMost = 64

// untold stands for the devices of units of which no table told yet where they lie: those that ran at the start, and
// those that a resync brought.
const untold = "?"

// devicesOf reads what devices a plan's hosts have.
func (t *plan) devicesOf(o object) {
	for name, d := range asObject(o["devices"]) {
		t.device, t.per = name, asObject(d).whole("per", 1)
	}
}

// onDevices is the dimension that lies on devices.
func (m *model) onDevices(t *plan) (d int, ok bool) {
	if t == nil || t.device == "" {
		return 0, false
	}
	return m.policy.dimension(t.device)
}

// devices is how many devices a host has for a plan.
func (m *model) devices(t *plan, h *host) int64 {
	d, ok := m.onDevices(t)
	if !ok {
		return 0
	}
	return min(devicesMost, h.size[d]/t.per)
}

// takes is how many devices a unit takes.
func (m *model) takes(t *plan, size []int64) int64 {
	d, ok := m.onDevices(t)
	switch {
	case !ok || size[d] == 0:
		return 0
	case size[d] <= t.per:
		return 1
	}
	return size[d] / t.per
}

// fitOn is how many units of a size an amount of an empty host takes. Where a host counts with what is held there, what
// is beyond whole devices is a smaller one.
func (m *model) fitOn(t *plan, size, amount []int64) int64 {
	n := fitOf(size, amount)
	d, ok := m.onDevices(t)
	switch {
	case !ok || size[d] == 0:
		return n
	case size[d] <= t.per:
		return min(n, amount[d]/t.per*(t.per/size[d])+amount[d]%t.per/size[d])
	}
	return min(n, amount[d]/t.per/(size[d]/t.per))
}

// deviceNumbers reads a text of devices: ascending, each once.
func deviceNumbers(text string) (list []int, ok bool) {
	if text == "" {
		return nil, true
	}
	for one := range strings.SplitSeq(text, "+") {
		n, err := strconv.Atoi(one)
		if err != nil || strconv.Itoa(n) != one || n < 0 || n >= devicesMost ||
			len(list) > 0 && n <= list[len(list)-1] {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// seated checks the devices that a row names: as many as a unit takes. What comes back for want of devices names none.
func (v *verifier) seated(table string, at spot, text string, none bool) {
	t, s := v.m.policy.byName[at.plan], v.m.subs[at.key]
	list, ok := deviceNumbers(text)
	f := at.about("INV-1", table, "devices")
	f.Got = text
	if !v.is(f, ok) || t == nil || s == nil || none && text == "" {
		return
	}
	f.What = "devices of a unit"
	v.equal(f, v.m.takes(t, s.size), int64(len(list)))
}

// sit notes that units of a pile lie on devices.
func (m *model) sit(p *pile, text string, n int64) {
	if _, ok := m.onDevices(m.policy.byName[p.plan]); !ok {
		return
	}
	if p.seats == nil {
		p.seats = map[string]int64{}
	}
	p.seats[text] += n
}

// rise takes released units off their devices.
func (v *verifier) rise(at spot, text string, n int64) {
	p := v.m.piles[at]
	if p == nil || p.seats == nil {
		return
	}
	for _, on := range []string{text, untold} {
		k := min(n, p.seats[on])
		if p.seats[on] -= k; p.seats[on] == 0 {
			delete(p.seats, on)
		}
		n -= k
	}
	v.equal(at.about("INV-9", "releases", "more units are released than lie on the devices %q", text), 0, n)
	for _, on := range sortedKeys(p.seats) {
		k := min(n, p.seats[on])
		if p.seats[on] -= k; p.seats[on] == 0 {
			delete(p.seats, on)
		}
		n -= k
	}
}

// equip has what is held in plans to which a policy gives other devices lie on none: such a policy is refused where any
// of it has something of their dimension.
func (m *model) equip(was *policy) {
	for _, t := range m.policy.plans {
		old := was.byName[t.name]
		if old == nil || old.device == t.device && old.per == t.per {
			continue
		}
		for at, p := range m.piles {
			if at.plan != t.name {
				continue
			}
			if p.seats, p.leavingOn = nil, nil; t.device != "" {
				p.seats, p.leavingOn = map[string]int64{"": p.units}, map[string]int64{"": p.leaving}
			}
		}
	}
}

// isUntold tells whether it is not known where some units lie on a plan's devices.
func (v *verifier) isUntold(t *plan) bool {
	if t.device == "" {
		return false
	}
	for at, p := range v.m.piles {
		if at.plan == t.name && p.seats[untold] > 0 {
			v.report.cannot("on which devices units lie that ran at the start or came by a resync, up to the " +
				"next keyframe")
			return true
		}
	}
	return false
}

// freeDevices is what each device of a host has free, as far as it is told what lies there.
func (v *verifier) freeDevices(t *plan, h *host) []int64 {
	d, _ := v.m.onDevices(t)
	free := slices.Repeat([]int64{t.per}, int(v.m.devices(t, h)))
	for at, p := range v.m.onHost[h.name] {
		if at.plan != t.name {
			continue
		}
		for text, n := range p.seats {
			list, _ := deviceNumbers(text)
			for _, k := range list {
				if k < len(free) {
					free[k] -= n * min(t.per, p.size[d])
				}
			}
		}
	}
	return free
}

// sits tells whether one unit more of a size finds devices on a host.
func (v *verifier) sits(t *plan, size []int64, h *host) bool {
	d, ok := v.m.onDevices(t)
	if !ok || size[d] == 0 {
		return true
	}
	free, most, empty := v.freeDevices(t, h), int64(0), int64(0)
	for _, n := range free {
		if most = max(most, n); n == t.per {
			empty++
		}
	}
	if size[d] <= t.per {
		return most >= size[d]
	}
	return empty >= size[d]/t.per
}

// deviceCapacities checks INV-1 of the devices of a host.
func (v *verifier) deviceCapacities(t *plan, h *host) {
	if t.device == "" {
		return
	}
	free := v.freeDevices(t, h)
	for k, n := range free {
		v.is(Fault{Rule: "INV-1", Table: "grants", Plan: t.name, Host: h.name,
			What:     "more " + t.device + " is held on device " + strconv.Itoa(k) + " than it has",
			Expected: grouped(t.per), Got: grouped(t.per - n)}, n >= 0)
	}
	for at, p := range v.m.onHost[h.name] {
		for text := range p.seats {
			list, _ := deviceNumbers(text)
			if at.plan == t.name && len(list) > 0 {
				last := list[len(list)-1]
				v.is(at.about("INV-1", "grants", "it lies on device %d, and the host has %d", last, len(free)),
					last < len(free))
			}
		}
	}
}

// deviceFrame holds where units lie against a keyframe, and goes on with what that says.
func (v *verifier) deviceFrame(stated map[spot]map[string]int64) {
	for at, p := range v.m.piles {
		if s := v.m.subs[at.key]; p.seats == nil || s != nil && s.orphan {
			continue
		}
		have, said := p.seats, stated[at]
		for _, on := range slices.Concat(sortedKeys(have), sortedKeys(said)) {
			f := at.about("INV-9", "holdings", "units on the devices %q by the grants and releases so far", on)
			if have[untold] == 0 {
				v.equal(f, have[on], said[on])
			} else if on != untold {
				v.is(f, have[on] <= said[on])
			}
		}
		p.seats = map[string]int64{}
		for on, n := range said {
			p.seats[on] = n
		}
	}
}

// same tells whether units on some devices can be those on others.
func sameDevices(a, b string) bool { return a == b || a == untold || b == untold }

// leave notes that units on devices are put under reclaim, or come off it.
func (p *pile) leave(on string, n int64) {
	if p.seats == nil {
		return
	}
	if p.leavingOn == nil {
		p.leavingOn = map[string]int64{}
	}
	p.leavingOn[on] += n
}

// askOn is how many units of a pile clients surely give back, and at most, by a row of releases that names devices, or
// none ("").
func (p *pile) askOn(device string, units int64) (least, most int64) {
	rest, slack := p.rest(), p.slack[0]+p.slack[1]
	most = min(units, rest)
	if device == "" {
		return min(units, max(0, rest-slack)), most
	}
	there := p.seats[device] - p.askedOn[device]
	least = max(0, min(units, there-p.askedAny-slack))
	if p.seats[untold] == 0 {
		most = max(0, min(most, there))
	}
	return min(least, most), most
}

// asks takes note of such a row.
func (m *model) asks(p *pile, how int, device string, units int64) (least int64) {
	least, most := p.askOn(device, units)
	if m.ask(p, how, least); most > least {
		p.slack[how] += most - least
		if m.given = append(m.given, p); how == 1 {
			m.vague[p.key] = true
		}
	}
	if device == "" {
		p.askedAny += most
		return least
	}
	if p.askedOn == nil {
		p.askedOn = map[string]int64{}
	}
	p.askedOn[device] += least
	return least
}

// cameBack holds what clients gave back of a pile against what they asked to.
func (v *verifier) cameBack(p *pile) {
	for how, what := range [2]string{"units that clients gave back", "units that clients said are done"} {
		f := p.about("INV-9", "releases", "%s", what)
		if p.slack[how] == 0 {
			v.equal(f, p.asked[how], p.back[how])
			continue
		}
		f.Expected, f.Got = grouped(p.asked[how])+" to "+grouped(p.asked[how]+p.slack[how]), grouped(p.back[how])
		v.is(f, p.back[how] >= p.asked[how] && p.back[how] <= p.asked[how]+p.slack[how])
		if s := v.m.subs[p.key]; how == 1 && s != nil && v.m.vague[p.key] {
			s.units = max(0, s.units-max(0, p.back[how]-p.asked[how]))
			s.lower()
		}
	}
	for device, n := range p.askedOn {
		back := p.backOn[device]
		v.is(p.about("INV-9", "releases", "clients gave back %d units on the devices %q, and %d came back", n, device,
			back), back >= n)
	}
	p.asked, p.back, p.slack, p.askedAny, p.askedOn, p.backOn = [2]int64{}, [2]int64{}, [2]int64{}, 0, nil, nil
}
