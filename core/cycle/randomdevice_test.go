package cycle_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// This file makes random cases of MD plans with devices (D-185), and holds what must be true of devices by the tables
// and what the generator meant.

var deviceKind = kind{name: "devices", draw: drawDevices, situations: deviceSituations}

var deviceSituations = []string{
	"a unit of a part of a device", "a unit of a whole device", "a unit of several devices", "a unit of no devices",
	"several units on a device", "units of one row on several devices", "lost with a device", "short of devices alone",
	"leftover of a host", "host without devices", "host of 64 devices", "released by device", "devices by a policy",
	"no devices by a policy", "devices of another size by a policy", "devices of another dimension by a policy",
	"a policy refused for its devices",
	"plan without devices beside", "md release: confirmed", "md overdue_after: 90s", "md reclaim_budget: 1",
	"md public_pool: {grace: 60s}", "window switch", "overcommit", "short lower_priority", "short grace_filter",
	"placement best_fit", "equal priority and ratio", "equal priority, other ratio", "other priority",
	"reclaim cancelled drain",
}

// device is a plan's dimension of devices.
type device struct {
	dim string // "": none
	per int64
}

// drawDevices draws a policy with an MD plan with devices on few hosts, at times with another plan beside it.
func drawDevices(t *rapid.T) site {
	s := site{dims: slices.Clone(dimensions[:choose(t, "dimensions", 1, 1, 2, 2, 2, 3, 5, 9)]), tight: true,
		devices: true}
	plans := choose(t, "plans", 1, 1, 1, 2)
	s.drawGroups(t, plans+choose(t, "groups", 0, 0, 1))
	s.drawConsumers(t, between(t, "consumers", 1, 9))
	for i := range s.consumers {
		s.consumers[i].grace = choose(t, "grace", 0, 0, 60, 90, 180, 300)
	}
	s.drawRuntimes(t)
	for i := range plans {
		m := mdPlan{name: fmt.Sprint("p", i),
			placement:  choose(t, "placement", "best_fit", "best_fit", "stacked", "balanced"),
			overcommit: map[string]int{},
			takes:      once(t, "takes without devices", 2)}
		for z := range s.groups {
			if z%plans == i {
				m.zones = append(m.zones, z)
			}
		}
		if i == 0 || once(t, "devices too", 2) {
			m.device = device{choose(t, "device", s.dims...), choose[int64](t, "per", 1, 2, 4, 4, 10, 12)}
		}
		for _, d := range s.dims {
			if d != m.device.dim && once(t, "overcommit", 6) {
				m.overcommit[d] = choose(t, "milli", 500, 1500, 2000, 1333)
			}
		}
		if once(t, "budget", 4) {
			m.settings = append(m.settings, fmt.Sprint("reclaim_budget: ", choose(t, "reclaim_budget", 1, 1, 2, 3)))
		}
		if once(t, "graceful", 6) {
			m.settings = append(m.settings, "public_pool: {grace: 60s}")
		}
		if m.confirms = once(t, "confirms", 6); m.confirms {
			m.settings = append(m.settings, "release: confirmed")
			if once(t, "overdue", 2) {
				m.settings = append(m.settings, "overdue_after: 90s")
			}
		}
		for k, in := range s.drawMembers(t) {
			if in {
				m.members = append(m.members, member{consumer: k, rank: -1, share: s.drawShare(t)})
			}
		}
		s.drawBudgets(t, &m)
		m.drawHistory(t)
		s.drawShareWindow(t, &m)
		s.plans = append(s.plans, m)
	}
	return s
}

// drawDeviceShare draws what decides between consumers of plans with devices: a limit may be of several devices.
func (s *site) drawDeviceShare(t *rapid.T) share {
	e := share{priority: choose(t, "priority", 0, 0, 0, 0, 1), ratio: choose(t, "ratio", 1, 1, 1, 2, 2, 3)}
	if once(t, "ratio 0", 14) {
		e.ratio = 0
	}
	if once(t, "limit", 6) {
		e.limit = map[string]int{choose(t, "limited", s.dims...): between(t, "most", 0, 8) * choose(t, "times", 1, 1,
			4)}
	}
	return e
}

// drawShareWindow gives a plan a second window of other shares, in one case of five.
func (s *site) drawShareWindow(t *rapid.T, m *mdPlan) {
	if !once(t, "windows", 5) {
		return
	}
	m.cut = between(t, "cut", 2, cutMax)
	m.deeds = []map[int]*deed{{}, {}}
	for _, e := range m.members {
		m.deeds[0][e.consumer] = &deed{rank: -1}
		other := &deed{rank: -1}
		if once(t, "other share", 2) {
			share := s.drawShare(t)
			other.share = &share
		}
		m.deeds[1][e.consumer] = other
	}
}

// text is the devices as keys of a plan; takes says whether without any it would take back for shares.
func (d device) text(takes bool) string {
	switch {
	case d.dim == "" && takes:
		return ""
	case d.dim == "":
		return "    share_reclaim: false\n"
	}
	return fmt.Sprintf("    share_reclaim: false\n    devices: {%s: {per: %d}}\n", d.dim, d.per)
}

// takes tells whether a unit may have so much of the dimension.
func (d device) takes(size map[string]int64) bool {
	return d.dim == "" || size[d.dim] <= d.per || size[d.dim]%d.per == 0
}

// count is how many devices an amount has.
func (d device) count(amount int64) int64 { return min(64, amount/d.per) }

// seat puts a unit on devices that have so much free, and tells which; ok is false where it finds none.
func (d device) seat(free []int64, size int64) (on []int, ok bool) {
	if size > d.per {
		for i, n := range free {
			if n == d.per && int64(len(on)) < size/d.per {
				on = append(on, i)
			}
		}
		if int64(len(on)) < size/d.per {
			return nil, false
		}
		for _, i := range on {
			free[i] = 0
		}
		return on, true
	}
	best := -1
	for i, n := range free {
		if n >= size && (best < 0 || n < free[best]) {
			best = i
		}
	}
	if best < 0 {
		return nil, false
	}
	free[best] -= size
	return []int{best}, true
}

// drawDeviceSizes draws what a host has of the devices' dimension: some devices, and at times a little more.
func (w *world) drawDeviceSizes(t *rapid.T, size map[string]int64) {
	for _, d := range w.dims {
		size[d] = choose[int64](t, "ample", 2, 4, 6, 8, 12)
	}
	d := w.plans[0].device
	if d.dim == "" {
		return
	}
	size[d.dim] = choose[int64](t, "devices", 0, 1, 2, 2, 3, 4, 4, 8)*d.per +
		choose[int64](t, "leftover", 0, 0, 0, d.per-1, 1)
	if once(t, "many", 16) && once(t, "all of them", 6) {
		size[d.dim] = 66 * d.per
	}
}

// devicesOf is what each device of a host has for a plan.
func (w *world) devicesOf(plan string, h oracle.Host) []int64 {
	m := w.mdPlan(plan)
	if m == nil || m.device.dim == "" {
		return nil
	}
	return slices.Repeat([]int64{m.device.per}, int(m.device.count(h.Size[m.device.dim])))
}

// seatRunning puts up to so many units of a row on devices that have so much free, and tells how many found some.
func (w *world) seatRunning(free []int64, row oracle.Demand, units int64) (n int64) {
	m := w.mdPlan(row.Plan)
	if m == nil || m.device.dim == "" || row.Size[m.device.dim] == 0 {
		return units
	}
	for ; n < units; n++ {
		if _, ok := m.device.seat(free, row.Size[m.device.dim]); !ok {
			break
		}
	}
	return n
}

// drawDeviceShapes gives unit sizes that every plan's devices can take, or that drawSize makes so.
func (w *world) drawDeviceShapes(t *rapid.T, most int) {
	per := w.plans[0].device.per
	for range between(t, "shapes", 1, most) {
		size := map[string]int64{}
		for _, d := range w.dims {
			size[d] = choose[int64](t, "unit", 0, 0, 1, 1, 2)
		}
		size[w.plans[0].device.dim] = choose(t, "of devices", 0, 1, per/2, per/2, max(1, per/3), per-1, per, per, 2*per,
			2*per, 3*per, 4*per)
		if !slices.ContainsFunc(w.dims, func(d string) bool { return size[d] > 0 }) {
			size[w.dims[0]] = per
		}
		w.shapes = append(w.shapes, size)
	}
}

// fitted is a unit size of which the devices of a plan can take one: a part of several devices becomes whole ones.
func (d device) fitted(size map[string]int64) map[string]int64 {
	if d.takes(size) {
		return size
	}
	size = maps.Clone(size)
	size[d.dim] = (size[d.dim] + d.per - 1) / d.per * d.per
	return size
}

// reviseDevices gives plans other devices, now and then. It is refused while anything that is held takes of the
// dimension, and where a size that is wanted or held does not suit them.
func (p *player) reviseDevices(t *rapid.T) {
	if !p.devices {
		return
	}
	for i := range p.plans {
		if once(t, "vacated", 8) {
			p.vacate(t, p.plans[i].name)
		}
	}
	for i := range p.plans {
		m := &p.plans[i]
		if m.deeds != nil && once(t, "other cut", 4) {
			m.cut = choose(t, "cut", 0, 3, 6, 9, cutMax)
		}
		if !once(t, "other devices", 4) {
			continue
		}
		was, now := m.device, m.device
		switch choose(t, "how", "per", "per", "dimension", "none") {
		case "per":
			if now.per = choose[int64](t, "per", 1, 2, 3, 4, 6, 8, 10, 12, 20); now.dim == "" {
				now.dim = choose(t, "device", p.dims...)
			}
		case "dimension":
			now = device{choose(t, "device", p.dims...), max(1, was.per)}
		default:
			now = device{}
		}
		if _, over := m.overcommit[now.dim]; over || now == was {
			continue
		}
		if m.device = now; p.inTheWay(m, was) {
			p.refuses(t, m.name)
			m.device = was
			continue
		}
		switch {
		case was.dim == "":
			p.changes["devices by a policy"]++
		case now.dim == "":
			p.changes["no devices by a policy"]++
		case now.dim == was.dim:
			p.changes["devices of another size by a policy"]++
		default:
			p.changes["devices of another dimension by a policy"]++
		}
		for _, rows := range p.rows {
			for i := range rows {
				if rows[i].Plan == m.name {
					rows[i].Size = now.fitted(rows[i].Size)
				}
			}
		}
	}
}

// inTheWay tells whether something that is held or wanted in a plan keeps its devices from being other than they were.
func (p *player) inTheWay(m *mdPlan, was device) bool {
	for k, r := range p.rules {
		held := p.heldBy(k)
		on := r.Size[was.dim] > 0 || r.Size[m.device.dim] > 0
		if k.Plan == m.name && (held > 0 && on || held+p.wanted[k] > 0 && !m.device.takes(r.Size)) {
			return true
		}
	}
	return false
}

// vacate has nobody want anything of a plan, for a cycle.
func (p *player) vacate(t *rapid.T, name string) {
	s := step{}
	for _, source := range sources {
		rows := slices.DeleteFunc(slices.Clone(p.rows[source]), func(r oracle.Demand) bool { return r.Plan == name })
		if len(rows) < len(p.rows[source]) {
			p.rows[source] = rows
			s.demand = append(s.demand, snapshot{source, slices.Clone(rows)})
		}
	}
	if len(s.demand) > 0 {
		p.play(t, s)
		p.run(t, false)
	}
}

// refuses has the engines refuse the policy as it is now, which leaves everything as it was.
func (p *player) refuses(t *rapid.T, name string) {
	text := p.yaml()
	policy, err := plan.Parse("case.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, s := range []*cluster.State{p.engine, p.twin} {
		if s.SetPolicy(policy, true) == nil {
			t.Fatalf("plan %s: its devices do not suit what is held or wanted, and it was put in force\n%s", name, text)
		}
	}
	p.changes["a policy refused for its devices"]++
}

// slow tells whether a consumer's grace keeps it from the public pool.
func (p *player) slow(k oracle.Key) bool {
	return p.devices && slices.Contains(p.mdPlan(k.Plan).settings, "public_pool: {grace: 60s}") &&
		slices.ContainsFunc(p.consumers, func(c consumer) bool { return c.path == k.Consumer && c.grace > 60 })
}

// drawDeviceRelease says on which devices something is given back, at times on others than it is on.
func (w *world) drawDeviceRelease(t *rapid.T, row *oracle.Holding, u oracle.Units) {
	if !w.devices || u.Device == "" || once(t, "any device", 3) {
		return
	}
	if row.Device = u.Device; once(t, "another device", 6) {
		row.Device = choose(t, "it", "0", "1", "0+1", "2+3", "63")
	}
}

// seated are the numbers of the devices that a row tells.
func seated(t *rapid.T, text string) (list []int) {
	for one := range strings.SplitSeq(text, "+") {
		n, err := strconv.Atoi(one)
		if err != nil || n < 0 || n > 63 || len(list) > 0 && n <= list[len(list)-1] || strconv.Itoa(n) != one {
			t.Fatalf("devices %q", text)
		}
		list = append(list, n)
	}
	return list
}

// devicesFree is what the devices of a host have free by the table of holdings.
func (p *player) devicesFree(t *rapid.T, m *mdPlan, host string) []int64 {
	free := slices.Repeat([]int64{m.device.per}, int(m.device.count(p.hosts[host].Size[m.device.dim])))
	h := &p.out.Holdings
	for i, n := range h.Units {
		if h.Key.Plan.At(i) != m.name || h.Host.At(i) != host || h.Device.At(i) == "" {
			continue
		}
		for _, k := range seated(t, h.Device.At(i)) {
			if k >= len(free) {
				t.Fatalf("INV-1: %v lies on device %d of %s, which has %d", keyAt(h.Key, i), k, host, len(free))
			}
			free[k] -= n * min(m.device.per, p.rules[keyAt(h.Key, i)].Size[m.device.dim])
		}
	}
	return free
}

// seatsOn tells whether one unit more of a size finds devices on a host.
func (p *player) seatsOn(t *rapid.T, name, host string, size map[string]int64) bool {
	m := p.mdPlan(name)
	if m.device.dim == "" || size[m.device.dim] == 0 {
		return true
	}
	_, ok := m.device.seat(p.devicesFree(t, m, host), size[m.device.dim])
	return ok
}

// deviceLedger holds INV-1 and INV-9 by device: rows name as many devices as their units take, none holds more than it
// has, and what was granted and released adds up to what is held there.
func (p *player) deviceLedger(t *rapid.T) {
	right := func(k oracle.Key, text string) {
		m, want := p.mdPlan(k.Plan), int64(0)
		if m == nil {
			return
		}
		if size := p.rules[k].Size[m.device.dim]; m.device.dim != "" && size > 0 {
			want = max(1, size/m.device.per)
		}
		if text == "" && want > 0 || text != "" && int64(len(seated(t, text))) != want {
			t.Fatalf("a unit of %v takes %d devices, and lies on %q", k, want, text)
		}
	}
	h := &p.out.Holdings
	now := map[onUnit]int64{}
	for i, n := range h.Units {
		right(keyAt(h.Key, i), h.Device.At(i))
		now[onUnit{keyAt(h.Key, i), h.Host.At(i), h.Device.At(i)}] += n
	}
	for name := range p.hosts {
		for i := range p.plans {
			m := &p.plans[i]
			if m.device.dim == "" {
				continue
			}
			for k, n := range p.devicesFree(t, m, name) {
				if n < 0 {
					t.Fatalf("INV-1: device %d of %s holds %d too many", k, name, -n)
				}
			}
		}
	}
	for i, n := range p.out.Releases.Units {
		r := &p.out.Releases
		p.seats[onUnit{keyAt(r.Key, i), r.Host.At(i), r.Device.At(i)}] -= n
	}
	for i, n := range p.out.Grants.Units {
		g := &p.out.Grants
		k := keyAt(g.Key, i)
		right(k, g.Device.At(i))
		if m := p.mdPlan(k.Plan); m.device.dim != "" && p.rules[k].Size[m.device.dim] == m.device.per {
			p.changes["a unit of a whole device"]++
		}
		p.seats[onUnit{keyAt(g.Key, i), g.Host.At(i), g.Device.At(i)}] += n
	}
	for at, n := range p.seats {
		if n == 0 {
			delete(p.seats, at)
		} else if p.ran[at.Plan] {
			continue // no row says on which devices
		} else if now[at] != n {
			t.Fatalf("INV-9: %v: %d by grants and releases, %d are held", at, n, now[at])
		}
	}
	p.seats = now
	clear(p.ran)
}

// onUnit is units of a sub-allocation on the same devices.
type onUnit struct {
	oracle.Key
	host, device string
}

// countDevices counts situations of plans with devices.
func (p *player) countDevices(n map[string]int) {
	for i := range p.plans {
		if p.plans[i].device.dim == "" && len(p.plans) > 1 {
			n["plan without devices beside"]++
		}
	}
	for _, s := range p.steps {
		for _, h := range s.hosts {
			if d := p.drawn; h.Size != nil && p.planOf(h.Name) == "p0" && d.dim != "" {
				amount := h.Size[d.dim]
				if amount%d.per > 0 {
					n["leftover of a host"]++
				}
				if amount < d.per {
					n["host without devices"]++
				}
				if amount >= 64*d.per {
					n["host of 64 devices"]++
				}
			}
		}
		for _, r := range s.releases {
			if r.Device != "" {
				n["released by device"]++
			}
		}
	}
	for _, r := range p.seen {
		on := map[string]int64{}
		last := oracle.Units{}
		for _, u := range r.Grants {
			switch {
			case p.mdPlan(u.Plan) == nil || u.Device == "":
				n["a unit of no devices"]++
			case strings.Contains(u.Device, "+"):
				n["a unit of several devices"]++
			default:
				n["a unit of a part of a device"]++
			}
			if u.Key == last.Key && u.Host == last.Host && u.Device != last.Device {
				n["units of one row on several devices"]++
			}
			last = u
		}
		for _, u := range r.Held {
			if on[u.Plan+u.Host+u.Device] += u.Units; u.Device != "" && on[u.Plan+u.Host+u.Device] > 1 {
				n["several units on a device"]++
			}
		}
	}
}
