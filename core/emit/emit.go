// Package emit fills the tables of a cycle for MD plans from columns of decisions and figures. All rows of MD plans are
// written here; the column unit_seconds_lost is filled by core/cycle, for plans of both kinds.
package emit

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/share"
)

// Shares adds the shares of a plan.
func Shares(t *decision.Shares, s *cluster.State, p *cluster.Plan, rows *pool.Shares) {
	first := t.Extend(rows.Consumer.Len())
	for i, n := range rows.Consumer.Values() {
		at := first + i
		t.Plan.Code[at], t.Consumer.Code[at], t.Pool.Code[at] = p.Index, consumer(s, n), consumer(s, rows.Pool.At(i))
		t.Ratio[at], t.Priority[at] = rows.Ratio.At(i), rows.Priority.At(i)
		t.Usage[at], t.UsageDemand[at] = share.Float(rows.Usage.At(i)), share.Float(rows.Demand.At(i))
		t.UsageQuota[at] = share.Float(rows.Quota.At(i))
		t.UnitsHeld[at], t.UnitsWanted[at] = rows.Held.At(i), rows.Wanted.At(i)
		t.DecayedUsage[at], t.EffectiveRatio[at], t.HistoryNull[at] = 0, 0, rows.Decayed.Len() == 0
		if rows.Decayed.Len() > 0 {
			t.DecayedUsage[at] = share.Float(rows.Decayed.At(i))
			t.EffectiveRatio[at] = float64(rows.Ratio.At(i)*rows.Factor.At(i)) / cluster.FactorWhole
		}
	}
}

// Consumers adds the consumers of a plan.
func Consumers(t *decision.Consumers, s *cluster.State, p *cluster.Plan, rows *pool.Consumers) {
	first := t.ExtendMD(rows.Consumer.Len())
	for i, n := range rows.Consumer.Values() {
		at := first + i
		t.Plan.Code[at], t.Consumer.Code[at], t.Policy.Code[at] = p.Index, consumer(s, n), decision.PolicyMD
		t.Rank[at], t.Demand[at], t.Held[at] = rows.Rank.At(i), rows.Wanted.At(i), rows.Held.At(i)
		t.Short[at] = max(0, rows.Wanted.At(i)-rows.Held.At(i))
	}
}

// Amounts adds the amounts of a plan.
func Amounts(t *decision.Amounts, s *cluster.State, p *cluster.Plan, rows *pool.Amounts) {
	first := t.Extend(rows.Consumer.Len())
	for i, n := range rows.Consumer.Values() {
		at := first + i
		t.Plan.Code[at], t.Consumer.Code[at], t.Dimension.Code[at] = p.Index, consumer(s, n), rows.Dimension.At(i)
		t.Configured[at], t.Owned[at], t.Reserved[at] = rows.Configured.At(i), rows.Owned.At(i), rows.Reserved.At(i)
		t.Held[at], t.Lent[at], t.StaticQuota[at] = rows.Held.At(i), rows.Lent.At(i), rows.Static.At(i)
		t.Limit[at], t.LimitNull[at] = rows.Limit.At(i), rows.Limit.IsNull(i)
	}
}

// Shortfalls adds the shortfalls of a plan, and gives their units. Details is the table's dictionary of texts; the rows
// may have a dictionary of an earlier cycle.
func Shortfalls(t *decision.Shortfalls, s *cluster.State, p *cluster.Plan, rows *reason.Shortfalls,
	details *cluster.Names,
) (units int64) {
	first, codes := t.Extend(rows.Sub.Len()), codesOf(rows, details)
	for i, sub := range rows.Sub.Values() {
		at, blocker := first+i, decision.Null
		if n := rows.Blocker.At(i); n != plan.None {
			blocker = consumer(s, n)
		}
		t.Plan.Code[at], t.Consumer.Code[at] = p.Index, int32(s.Sub.Consumer[sub])
		t.Allocation.Code[at], t.Sub.Code[at] = s.Alloc.Name[s.Sub.Alloc[sub]], s.Sub.Name[sub]
		t.UnitsShort[at], t.Reason.Code[at] = rows.Units.At(i), rows.Reason.At(i)
		t.Dimension.Code[at] = rows.Dimension.At(i)
		t.Blocker.Code[at], t.Detail.Code[at] = blocker, decision.Null
		if text := rows.Detail.At(i); text != decision.Null {
			t.Detail.Code[at] = codes[text]
		}
		t.Until[at], t.UntilNull[at] = rows.Until.At(i), rows.Until.At(i) == 0
		t.Since[at], t.SinceNull[at] = s.Sub.ShortSince[sub], false
		units = share.Add(units, rows.Units.At(i))
	}
	return units
}

// codesOf is the code in the table's dictionary of each text of the rows' dictionary.
func codesOf(rows *reason.Shortfalls, details *cluster.Names) []int32 {
	codes := make([]int32, rows.Details.Len())
	for i := range codes {
		codes[i] = details.InternString(rows.Details.String(int32(i)))
	}
	return codes
}

// consumer is the code of a consumer in tables.
func consumer(s *cluster.State, n plan.Node) int32 { return int32(s.ConsumerOf[n]) }
