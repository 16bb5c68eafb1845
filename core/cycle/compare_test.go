package cycle_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// expected is the oracle's result as lines by table; tabled is the engine's. The lines of consumers, amounts and
// shortfalls are in the order of D-14, and those of grants where they differ in more than what units count as.
func expected(r oracle.Result) map[string][]string {
	m := map[string][]string{}
	// two sizes of one name are one line
	labels, releases, held, reclaims, lost := counter{}, counter{}, counter{}, counter{}, counter{}
	for _, u := range r.Grants {
		at := fmt.Sprint(u.Key, u.Host)
		labels[at+label(u.Origin, u.Lender, u.Pool)+u.Device] += u.Units
		if list := m["grants"]; len(list) == 0 || list[len(list)-1] != at {
			m["grants"] = append(list, at)
		}
	}
	for _, u := range r.Releases {
		at := fmt.Sprint(u.Key, u.Host, " ", u.Cause, label(u.Origin, u.Lender, ""), u.Device)
		releases[at] += u.Units
		lost[at] += u.LostMS
	}
	for _, u := range r.Held {
		held[fmt.Sprint(u.Key, u.Host, label(u.Origin, u.Lender, u.Pool), u.Device)] += u.Units
	}
	for _, u := range r.Reclaims {
		u.For.Plan = "" // the table has none
		reclaims[fmt.Sprint(u.Key, u.Host, " ", u.Action, " ", u.Reason, u.For, u.DeadlineUS, " ", u.Device)] += u.Units
	}
	m["labels"], m["releases"], m["held"], m["reclaims"] = lines(labels), lines(releases), lines(held), lines(reclaims)
	m["lost"] = lines(lost)
	for _, o := range r.Owned {
		m["ownership"] = append(m["ownership"], fmt.Sprint(o))
	}
	for _, c := range r.Consumers {
		if c.Slots != nil {
			m["consumers"] = append(m["consumers"],
				fmt.Sprintf("%s %s %d %d %d %+v", c.Plan, c.Path, c.Demand, c.Held, c.Short, *c.Slots))
			continue
		}
		m["consumers"] = append(m["consumers"],
			fmt.Sprintf("%s %s %d %d %d -", c.Plan, c.Path, c.Demand, c.Held, c.Short))
		m["amounts"] = append(m["amounts"],
			fmt.Sprint(c.Plan, " ", c.Path, " ", c.Configured, c.Owned, c.Reserved, c.Amount, c.StaticPart))
	}
	for _, s := range r.Shortfalls {
		m["shortfalls"] = append(m["shortfalls"],
			fmt.Sprintf("%v %d %s %q %q %d %d%s", s.Key, s.Units, s.Reason, s.Dimension, s.Blocker, s.UntilUS, s.Fits,
				s.Where))
	}
	return m
}

// label is what units count as.
func label(origin, lender, pool string) string {
	return fmt.Sprintf(" %s %q %q ", origin, lender, pool)
}

func tabled(c *decision.Cycle, dims int) map[string][]string {
	m := map[string][]string{}
	labels, releases, held, reclaims, lost := counter{}, counter{}, counter{}, counter{}, counter{}
	for i, n := range c.Grants.Units {
		g := &c.Grants
		at := fmt.Sprint(keyAt(g.Key, i), g.Host.At(i))
		labels[at+label(g.Origin.At(i), g.Lender.At(i), g.Pool.At(i))+g.Device.At(i)] += n
		if list := m["grants"]; len(list) == 0 || list[len(list)-1] != at {
			m["grants"] = append(list, at)
		}
	}
	for i, n := range c.Releases.Units {
		r := &c.Releases
		at := fmt.Sprint(keyAt(r.Key, i), r.Host.At(i), " ", r.Cause.At(i), label(r.Origin.At(i), r.Lender.At(i), ""),
			r.Device.At(i))
		releases[at] += n
		lost[at] += int64(math.Round(1e3 * r.UnitSecondsLost[i]))
	}
	for i, n := range c.Holdings.Units {
		h := &c.Holdings
		held[fmt.Sprint(keyAt(h.Key, i), h.Host.At(i), label(h.Origin.At(i), h.Lender.At(i), h.Pool.At(i)),
			h.Device.At(i))] += n
	}
	for i, n := range c.Reclaims.Units {
		r := &c.Reclaims
		taker := oracle.Key{Consumer: r.ForConsumer.At(i), Allocation: r.ForAllocation.At(i), Sub: r.ForSub.At(i)}
		reclaims[fmt.Sprint(keyAt(r.Key, i), r.Host.At(i), " ", r.Action.At(i), " ", r.Reason.At(i), taker,
			r.Deadline[i]-startUS, " ", r.Device.At(i))] += n
	}
	m["labels"], m["releases"], m["held"], m["reclaims"] = lines(labels), lines(releases), lines(held), lines(reclaims)
	m["lost"] = lines(lost)
	for i, n := range c.Ownership.Amount {
		o := &c.Ownership
		m["ownership"] = append(m["ownership"],
			fmt.Sprint(oracle.Owned{Plan: o.Plan.At(i), Consumer: o.Consumer.At(i), Host: o.Host.At(i),
				Action: o.Action.At(i), Dimension: o.Dimension.At(i), Amount: n}))
	}
	for i := range c.Consumers.Held {
		m["consumers"] = append(m["consumers"], consumerLine(&c.Consumers, i))
	}
	for i := 0; i < len(c.Amounts.Held); i += dims {
		m["amounts"] = append(m["amounts"], fmt.Sprint(c.Amounts.Plan.At(i), " ", c.Amounts.Consumer.At(i), " ",
			c.Amounts.Configured[i:i+dims], c.Amounts.Owned[i:i+dims], c.Amounts.Reserved[i:i+dims],
			c.Amounts.Held[i:i+dims], c.Amounts.StaticQuota[i:i+dims]))
	}
	for i, n := range c.Shortfalls.UnitsShort {
		s, until := &c.Shortfalls, int64(0)
		if !s.UntilNull[i] {
			until = s.Until[i] - startUS
		}
		var gang decision.Gang
		if s.Reason.At(i) == "gang" {
			gang, _ = decision.ReadGangDetail(s.Detail.At(i))
		}
		m["shortfalls"] = append(m["shortfalls"], fmt.Sprintf("%v %d %s %q %q %d %d%s", keyAt(s.Key, i), n,
			s.Reason.At(i), s.Dimension.At(i), s.Blocker.At(i), until, gang.Fit, gang.Where))
	}
	return m
}

// consumerLine is a row of the table consumers.
func consumerLine(t *decision.Consumers, i int) string {
	line := fmt.Sprintf("%s %s %d %d %d ", t.Plan.At(i), t.Consumer.At(i), t.Demand[i], t.Held[i], t.Short[i])
	if f := slotFigures(t, i); f != nil {
		return line + fmt.Sprintf("%+v", *f)
	}
	return line + "-"
}

// slotFigures are the slot columns of a row, nil in an MD plan.
func slotFigures(t *decision.Consumers, i int) *oracle.SlotFigures {
	if t.SlotNull[i] {
		return nil
	}
	v := func(k int) int64 { return t.Slot[k][i] }
	f := &oracle.SlotFigures{OwnedConfigured: v(0), Owned: v(1), Reserved: v(2), Limit: v(3), StaticQuota: v(4),
		Quota:     v(5),
		HeldOwned: v(6), HeldShared: v(7), HeldBorrowed: v(8), Lent: v(9), Free: v(10)}
	if t.LimitNull[i] {
		f.Limit = plan.Unlimited
	}
	return f
}

func keyAt(k decision.Key, i int) oracle.Key {
	return oracle.Key{Plan: k.Plan.At(i), Consumer: k.Consumer.At(i), Allocation: k.Allocation.At(i), Sub: k.Sub.At(i)}
}

// counter counts units by what a line says of them.
type counter map[string]int64

// lines are a counter's lines in order.
func lines(m counter) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] != 0 {
			list = append(list, fmt.Sprint(k, " ", m[k]))
		}
	}
	return list
}

// shares holds usages, demands and quotas against the oracle's: those it computes exactly to 1e-9.
func (p *player) shares(t *rapid.T) {
	type row struct{ usage, demand, quota, decayed, ratio float64 }
	got := map[string]row{}
	for i, u := range p.out.Shares.Usage {
		s := &p.out.Shares
		got[fmt.Sprint(s.Plan.At(i), " ", s.Consumer.At(i), " ", s.Pool.At(i), s.Priority[i], s.Ratio[i],
			s.UnitsHeld[i], s.UnitsWanted[i])] =
			row{u, s.UsageDemand[i], s.UsageQuota[i], s.DecayedUsage[i], s.EffectiveRatio[i]}
	}
	for _, s := range p.last.Shares {
		name := fmt.Sprint(s.Plan, " ", s.Path, " ", s.Pool, s.Priority, s.Ratio, s.UnitsHeld, s.UnitsWanted)
		g, ok := got[name]
		usage, _ := s.Usage.Float64()
		if !ok || math.Abs(g.usage-usage) > 1e-9 || math.Abs(g.demand-math.Ldexp(float64(s.Demand), -48)) > 1e-9 ||
			math.Abs(g.quota-math.Ldexp(float64(s.Quota), -48)) > 1e-9 {
			t.Fatalf("cycle %d: shares %s: engine %v (there: %v), oracle %+v", p.cycles, name, g, ok, s)
		}
		if decayed, ratio := math.Ldexp(float64(s.Decayed),
			-48), float64(s.Ratio*s.Lowered)/100; g.decayed != decayed || g.ratio != ratio {
			t.Fatalf("cycle %d: shares %s: decayed usage %v and ratio %v, the oracle has %v and %v", p.cycles, name,
				g.decayed, g.ratio, decayed, ratio)
		}
		if s.Lowered > 0 && s.Lowered < 100 {
			p.changes["ratio lowered by history"]++
		}
		if s.Lowered == 10 {
			p.changes["ratio at its floor"]++
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Fatalf("cycle %d: shares that the oracle does not have: %v", p.cycles, got)
	}
}

// everything is all tables of a cycle, the keyframes included.
func everything(c *decision.Cycle) []decision.Table {
	return append(c.Tables(), c.Holdings.Schema().Table(), c.Hosts.Schema().Table())
}

// stateOf is the digest of the state tables and keyframes.
func stateOf(c *decision.Cycle) string {
	return decision.Digest(slices.DeleteFunc(everything(c), func(t decision.Table) bool {
		return t.Name == "grants" || t.Name == "reclaims" || t.Name == "releases" || t.Name == "ownership" ||
			t.Name == "plans"
	}))
}

// dump is tables as text, a line a row.
func dump(tables []decision.Table) string {
	var b strings.Builder
	for _, t := range tables {
		for row := range t.Rows {
			b.WriteString(t.Name)
			for _, col := range t.Columns {
				switch {
				case col.Null != nil && col.Null[row]:
					b.WriteString(" -")
				case col.Type == decision.Float:
					fmt.Fprintf(&b, " %s=%x", col.Name, col.Float[row])
				case col.Type == decision.Text:
					fmt.Fprintf(&b, " %s=%q", col.Name, (&decision.Coded{Code: col.Code, Dict: col.Dict}).At(row))
				default:
					fmt.Fprintf(&b, " %s=%d", col.Name, col.Int[row])
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// difference lists the lines that only one of two texts has; without any, both in their order.
func difference(a, b string) string {
	in, left := map[string]int{}, []string{}
	for s := range strings.SplitSeq(b, "\n") {
		in[s]++
	}
	for s := range strings.SplitSeq(a, "\n") {
		if in[s]--; in[s] < 0 {
			left = append(left, "got  "+s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(in)) {
		for range max(0, in[s]) {
			left = append(left, "want "+s)
		}
	}
	return cmp.Or(strings.Join(left, "\n"), "other order, got\n"+a+"\nwant\n"+b)
}
