package main

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
)

// ownersSuite is the suite in which consumers own hosts: it measures the stage own besides.
const ownersSuite = "owners"

var stageOwn = slices.Index(decision.Stages[:], "own")

// lostHosts is how many hosts are lost, one after the other, in a run.
const lostHosts = 8

// owners is what the stage own takes: with nothing assigned yet, and after one owned host is lost in a cluster that
// has come to rest.
type owners struct {
	Rows      int64    `json:"rows"` // looked at from nothing
	FreshMS   quantile `json:"fresh_ms"`
	LostRows  int64    `json:"lost_rows"`
	LostMost  int64    `json:"lost_rows_most"`
	LostMS    quantile `json:"lost_ms"`
	CycleMS   quantile `json:"lost_cycle_ms"` // all seven stages
	lostRows  []int64
	lost, all []float64
}

// lose measures cycles in which an owned host is lost, each after one in which the last came back. The first of them is
// not counted: it is the first pass since the cycle that filled the hosts.
func (r *result) lose(s *cluster.State, runner *cycle.Runner, out *decision.Cycle) error {
	if r.Owners == nil {
		r.Owners = &owners{}
	}
	o := r.Owners
	o.Rows = runner.Touched(0)
	owned := slices.Clone(s.Plans[0].Deeds.Host)
	for i := range lostHosts + 1 {
		name := s.Host.Names.String(int32(owned[len(owned)*i/(lostHosts+1)]))
		if err := r.turn(s, runner, out, name, cluster.Unavail); err != nil {
			return err
		}
		if i > 0 {
			o.lostRows = append(o.lostRows, runner.Touched(0))
			o.lost = append(o.lost, float64(out.Summary.StageUS[stageOwn])/1e3)
			all := int64(0)
			for _, us := range out.Summary.StageUS {
				all += us
			}
			o.all = append(o.all, float64(all)/1e3)
		}
		if err := r.turn(s, runner, out, name, cluster.OK); err != nil {
			return err
		}
	}
	return nil
}

// turn is a cycle after a host got another state.
func (r *result) turn(s *cluster.State, runner *cycle.Runner, out *decision.Cycle, name string,
	state cluster.HostState) error {
	t := &cluster.HostTable{Rows: 1, Host: cluster.TextColumn{Names: new(cluster.Names), Code: make([]int32, 1)},
		State: []cluster.HostState{state}}
	t.Host.Code[0] = t.Host.Names.InternString(name)
	t.Size = make([][]int64, len(r.policy.Dimensions))
	if err := s.SetHosts(t, false); err != nil {
		return err
	}
	runner.Run(s, s.NowUS+60e6, out)
	return nil
}

func (o *owners) summarise(fresh []int64) {
	ms := make([]float64, len(fresh))
	for i, us := range fresh {
		ms[i] = float64(us) / 1e3
	}
	o.FreshMS, o.LostMS, o.CycleMS = quantiles(ms), quantiles(o.lost), quantiles(o.all)
	o.LostRows, o.LostMost = median(o.lostRows), slices.Max(o.lostRows)
}

func (o *owners) show() {
	fmt.Printf("\nowners: assigning from nothing %.0f ms (%.0f … %.0f, %d runs), %d rows touched\n", o.FreshMS.P50,
		o.FreshMS.Min, o.FreshMS.Max, o.FreshMS.N, o.Rows)
	fmt.Printf("owners: one host lost: %d rows touched (at most %d), stage own %.1f ms (%.1f … %.1f, %d hosts), the "+
		"cycle %.1f ms\n", o.LostRows, o.LostMost, o.LostMS.P50, o.LostMS.Min, o.LostMS.Max, o.LostMS.N, o.CycleMS.P50)
}
