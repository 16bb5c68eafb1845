package server

import (
	"cmp"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
)

// sourcesShownMax is of how many sources there are figures: those that were heard longest ago.
const sourcesShownMax = 1000

// figures are the gauges of what the last cycle decided, made of the engine's view when they are asked for. Labels name
// consumers of one level and leaves above it, so that sums over consumers count no unit twice.
type figures struct {
	s     *Server
	level int

	mu   sync.Mutex
	view *engine.View // of which made is
	made []prometheus.Metric
}

func newFigures(s *Server, level int) *figures { return &figures{s: s, level: level} }

// desc is what is said of a figure.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	cycleNumber   = desc("stint_cycle_number", "Number of the last cycle.")
	cycleNow      = desc("stint_cycle_timestamp_seconds", "The last cycle's now, since 1970.")
	cycleFinished = desc("stint_cycle_finished_timestamp_seconds",
		"When the last cycle was decided, by the clock, since 1970.")
	revisionKnown = desc("stint_policy_revision", "Revision of the policy of the last cycle.")

	unitsWanted  = desc("stint_wanted_units", "Units wanted, in all plans (slots in slot plans).")
	unitsHeld    = desc("stint_held_units", "Units held, in all plans.")
	unitsShort   = desc("stint_short_units", "Units short, by plan and reason.", "plan", "reason")
	unitsLeaving = desc("stint_reclaiming_units", "Units under reclaim.")
	unitsOverdue = desc("stint_overdue_units", "Units under reclaim past their deadline, not released yet.")

	consumerWanted = desc("stint_consumer_wanted_units",
		"Units that a consumer and those below it want.", "plan", "consumer")
	consumerHeld = desc("stint_consumer_held_units",
		"Units that a consumer and those below it hold.", "plan", "consumer")
	consumerShort = desc("stint_consumer_short_units",
		"Units that a consumer and those below it are short of.", "plan", "consumer")
	oldestShortfall = desc("stint_oldest_shortfall_seconds", "How long the sub-allocation of a consumer and those "+
		"below it that has been short for longest has been so; 0 where none is short.", "plan", "consumer")
	consumerLent = desc("stint_consumer_lent_units",
		"Units of others on what a consumer and those below it own.", "plan", "consumer")
	consumerRecalled = desc("stint_consumer_recalled_units",
		"Units of these that are being taken back.", "plan", "consumer")
	consumerBorrowed = desc("stint_consumer_borrowed_units",
		"Units of a consumer and those below it on what others own.", "plan", "consumer")
	amountOwned = desc("stint_consumer_owned_amount",
		"What a consumer and those below it own.", "plan", "consumer", "dimension")
	amountHeld = desc("stint_consumer_held_amount",
		"What a consumer and those below it hold.", "plan", "consumer", "dimension")
	amountLent = desc("stint_consumer_lent_amount",
		"What others hold of what a consumer and those below it own.", "plan", "consumer", "dimension")

	hosts = desc("stint_hosts", "Hosts, by plan and state; those of no plan have an empty plan.", "plan",
		"state")
	capacityAmount = desc("stint_capacity_amount", "What hosts have, overcommit included.", "plan", "state",
		"dimension")
	usedAmount = desc("stint_used_amount", "What of it is used.", "plan", "state", "dimension")

	sources      = desc("stint_sources", "Sources that push demand.")
	sourceHeard  = desc("stint_source_heard_timestamp_seconds", "When a source pushed last, since 1970.", "source")
	sourceSilent = desc("stint_source_silent", "Whether a source was silent for longer than source_ttl.", "source")
)

// Describe names all figures.
func (f *figures) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		cycleNumber, cycleNow, cycleFinished, revisionKnown, unitsWanted, unitsHeld, unitsShort, unitsLeaving,
		unitsOverdue, consumerWanted, consumerHeld, consumerShort, oldestShortfall, consumerLent, consumerRecalled,
		consumerBorrowed,
		amountOwned, amountHeld, amountLent, hosts, capacityAmount, usedAmount, sources, sourceHeard, sourceSilent,
	} {
		ch <- d
	}
}

// Collect gives all figures of the engine's view. Before the first cycle there are none.
func (f *figures) Collect(ch chan<- prometheus.Metric) {
	e := f.s.engine.Load()
	if e == nil {
		return
	}
	for _, m := range f.of(e.View()) {
		ch <- m
	}
}

// of gives the figures of a view, and keeps them until there is another.
func (f *figures) of(v *engine.View) []prometheus.Metric {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v != f.view {
		f.view, f.made = v, nil
		f.sums(v)
		f.consumers(v)
		f.shortfalls(v)
		f.standing(v)
	}
	return f.made
}

func (f *figures) add(d *prometheus.Desc, v float64, labels ...string) {
	f.made = append(f.made, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...))
}

// sums are the figures of the whole cycle.
func (f *figures) sums(v *engine.View) {
	if v.Last == nil {
		return
	}
	s := &v.Last.Summary
	f.add(cycleNumber, float64(s.Cycle))
	f.add(cycleNow, float64(s.NowUS)/1e6)
	f.add(cycleFinished, float64(s.FinishedUS)/1e6)
	f.add(revisionKnown, float64(s.Revision))
	f.add(unitsWanted, float64(s.UnitsWanted))
	f.add(unitsHeld, float64(s.UnitsHeld))
	f.add(unitsLeaving, float64(s.UnitsLeaving))
	f.add(unitsOverdue, float64(s.UnitsOverdue))
}

// planConsumer names a consumer of a plan.
type planConsumer struct{ plan, consumer string }

// consumers are the figures of the consumers of f.level, and of leaves above it.
func (f *figures) consumers(v *engine.View) {
	if v.Last == nil {
		return
	}
	c := &v.Last.Consumers
	table := c.Schema().Table()
	table = decision.Tree(&table)
	depth, leaf := table.Column("depth").Int, table.Column("leaf").Int
	slot := func(name string) []int64 { return table.Column(name).Int }
	owned, lent := slot("owned"), slot("lent")
	heldOwned, heldShared, heldBorrowed := slot("held_owned"), slot("held_shared"), slot("held_borrowed")
	shown, waits := map[planConsumer]bool{}, f.waits(v)
	for i := range c.Held {
		path := c.Consumer.At(i)
		if path == "/" || depth[i] > int64(f.level) || depth[i] < int64(f.level) && leaf[i] == 0 {
			continue
		}
		plan := c.Plan.At(i)
		shown[planConsumer{plan, path}] = true
		f.add(consumerWanted, float64(c.Demand[i]), plan, path)
		f.add(consumerHeld, float64(c.Held[i]), plan, path)
		f.add(consumerShort, float64(c.Short[i]), plan, path)
		f.add(oldestShortfall, waits[planConsumer{plan, path}], plan, path)
		if !c.SlotNull[i] {
			f.add(amountOwned, float64(owned[i]), plan, path, "slots")
			f.add(amountHeld, float64(heldOwned[i]+heldShared[i]+heldBorrowed[i]), plan, path, "slots")
			f.add(amountLent, float64(lent[i]), plan, path, "slots")
		}
	}
	a := &v.Last.Amounts
	for i := range a.Held {
		plan, path := a.Plan.At(i), a.Consumer.At(i)
		if shown[planConsumer{plan, path}] {
			dimension := a.Dimension.At(i)
			f.add(amountOwned, float64(a.Owned[i]), plan, path, dimension)
			f.add(amountHeld, float64(a.Held[i]), plan, path, dimension)
			f.add(amountLent, float64(a.Lent[i]), plan, path, dimension)
		}
	}
}

// waits is for how many seconds somebody has been short, by the consumers of f.level and the leaves above it.
func (f *figures) waits(v *engine.View) map[planConsumer]float64 {
	waits, t := map[planConsumer]float64{}, &v.Last.Shortfalls
	for i, since := range t.Since {
		key := planConsumer{t.Plan.At(i), cutPath(t.Consumer.At(i), f.level)}
		if !t.SinceNull[i] {
			waits[key] = max(waits[key], float64(v.Last.Summary.NowUS-since)/1e6)
		}
	}
	return waits
}

// shortfalls are the units short, of each plan for every reason that there is. O(shortfalls).
func (f *figures) shortfalls(v *engine.View) {
	if v.Last == nil {
		return
	}
	units := map[[2]int32]int64{} // by the codes of plan and reason
	plans := map[int32]string{}
	c, t := &v.Last.Consumers, &v.Last.Shortfalls
	for i, plan := range c.Plan.Code {
		if _, known := plans[plan]; !known {
			plans[plan] = c.Plan.At(i)
		}
	}
	for i, short := range t.UnitsShort {
		plan := t.Plan.Code[i]
		units[[2]int32{plan, t.Reason.Code[i]}] += short
		if _, known := plans[plan]; !known {
			plans[plan] = t.Plan.At(i) // of what is in no plan: ""
		}
	}
	for plan, name := range plans {
		for reason, word := range decision.Reasons {
			f.add(unitsShort, float64(units[[2]int32{plan, int32(reason)}]), name, word)
		}
	}
}

// standing are the figures of hosts, loans and sources.
func (f *figures) standing(v *engine.View) {
	if v.Standing == nil {
		return
	}
	for _, sum := range v.Standing.HostSums() {
		if sum.Plan == "" && sum.Hosts == 0 {
			continue
		}
		f.add(hosts, float64(sum.Hosts), sum.Plan, sum.State)
		for d, dimension := range sum.Dimensions {
			f.add(capacityAmount, float64(sum.Capacity[d]), sum.Plan, sum.State, dimension)
			f.add(usedAmount, float64(sum.Used[d]), sum.Plan, sum.State, dimension)
		}
	}
	f.loans(v.Standing.Loans())
	f.add(sources, float64(len(v.Standing.Sources())))
	for _, source := range shownSources(v.Standing.Sources(), sourcesShownMax) {
		f.add(sourceHeard, float64(source.HeardUS)/1e6, source.Name)
		f.add(sourceSilent, oneIf(source.Silent), source.Name)
	}
}

// shownSources are those of a list of which there are figures.
func shownSources(list []engine.SourceView, most int) []engine.SourceView {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b engine.SourceView) int { return cmp.Compare(a.HeardUS, b.HeardUS) })
	return list[:min(len(list), most)]
}

// loans are what consumers lend and borrow, added up on f.level. Who does neither has no figure.
func (f *figures) loans(t *decision.Table) {
	lent, recalled, borrowed := map[planConsumer]int64{}, map[planConsumer]int64{}, map[planConsumer]int64{}
	text := func(name string, row int) string {
		c := t.Column(name)
		return string(c.Dict.Bytes(c.Code[row]))
	}
	units, leaving := t.Column("units").Int, t.Column("under_recall").Int
	for row := range t.Rows {
		plan := text("plan", row)
		lender := planConsumer{plan, cutPath(text("lender", row), f.level)}
		lent[lender] += units[row]
		recalled[lender] += leaving[row]
		borrowed[planConsumer{plan, cutPath(text("borrower", row), f.level)}] += units[row]
	}
	for d, of := range map[*prometheus.Desc]map[planConsumer]int64{
		consumerLent: lent, consumerRecalled: recalled, consumerBorrowed: borrowed,
	} {
		for key, units := range of {
			f.add(d, float64(units), key.plan, key.consumer)
		}
	}
}
