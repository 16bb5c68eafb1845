package emit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/emit"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/ingest/table"
)

// newState is a state of two leaves, of which one has a share limit, on two hosts of 4.
func newState(t *testing.T) *cluster.State {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(`
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A, share: {limit: {ncpus: 3}}}, {path: /B}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	o := table.Options{Format: table.CSV, Dimensions: p.Dimensions}
	h, err := table.ReadHosts(strings.NewReader("host,ncpus\nh1,4\nh2,4\n"), o)
	if err == nil {
		err = s.SetHosts(h, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.ReadDemand(strings.NewReader("consumer,allocation,units,ncpus\n/A,a,5,1\n/B,b,2,3\n"), o)
	if err == nil {
		err = s.SetDemand("s", d)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(60e6)
	return s
}

// TestRows holds what rows of the tables say, of units that were given in two bookings.
func TestRows(t *testing.T) {
	s := newState(t)
	p, a, b := &s.Plans[0], cluster.SubID(0), cluster.SubID(1)
	hold := func(sub cluster.SubID, cycle int64, parcels ...cluster.ParcelID) []cluster.HoldingID {
		row := cluster.Holding{Sub: sub, Granted: cycle}
		row.Origin, row.Pool, row.Lender = s.CountsAs(s.Node(sub), cluster.NoID)
		return s.Hold(nil, row, parcels)
	}
	given := append(hold(b, 1, 1), hold(a, 1, 0, 0)...)
	given = append(given, hold(a, 1, 0)...)
	given = append(given, hold(a, 0, 1)...) // of another cycle
	given = append(given, given[0])
	var v view.Views
	v.Follow(s, p)
	e := pool.New(s, p, &v)
	var book pool.Book
	book.Sum(&e, new(pool.Promises))
	var consumers pool.Consumers
	var amounts pool.Amounts
	var shares pool.Shares
	consumers.Add(&e)
	amounts.Add(&e, &book)
	shares.Add(&e, &book)
	details := new(cluster.Names)
	short := reason.Shortfalls{Details: details}
	short.Sub.Add(a)
	short.Units.Add(1)
	short.Reason.Add(decision.ReasonShareLimit)
	short.Dimension.Add(0)
	short.Blocker.Add(s.Node(a))
	short.Until.Add(0)
	short.Detail.Add(details.InternString("holds 4 of at most 3"))
	var out decision.Cycle
	dicts := decision.Dicts{
		Plan: decision.Words{"p"}, Source: &s.Source, Consumer: &s.Consumer, Label: &s.Label, Host: &s.Host.Names,
		Dimension: decision.Words(s.Policy.Dimensions), Detail: details,
	}
	out.ResetEvents(&dicts)
	out.ResetStates(&dicts)
	emit.Consumers(&out.Consumers, s, p, &consumers)
	emit.Amounts(&out.Amounts, s, p, &amounts)
	emit.Shares(&out.Shares, s, p, &shares)
	if units := emit.Grants(&out.Grants, s, p, emit.Given(s, p, 1, given), new(cluster.Names)); units != 4 {
		t.Errorf("%d units were given, want 4", units)
	}
	if units := emit.Shortfalls(&out.Shortfalls, s, p, &short, details); units != 1 {
		t.Errorf("%d units are short, want 1", units)
	}
	var got []string
	for i, n := range out.Grants.Units {
		g := &out.Grants
		got = append(got, fmt.Sprint("grant ", g.Consumer.At(i), " ", g.Allocation.At(i), " ", g.Host.At(i), " ", n))
	}
	for i, n := range out.Consumers.Held {
		c := &out.Consumers
		got = append(got, fmt.Sprint("consumer ", c.Consumer.At(i), " ", c.Demand[i], " ", n, " ", c.Short[i]))
	}
	for i, n := range out.Amounts.Held {
		c := &out.Amounts
		got = append(got, fmt.Sprint("amount ", c.Consumer.At(i), " ", n, " ", c.StaticQuota[i], " ", c.Limit[i], " ",
			c.LimitNull[i]))
	}
	for i, usage := range out.Shares.Usage {
		c := &out.Shares
		got = append(got, fmt.Sprint("share ", c.Consumer.At(i), " of ", c.Pool.At(i), " ", usage, " ", c.UnitsHeld[i],
			" ", c.UnitsWanted[i]))
	}
	for i, n := range out.Shortfalls.UnitsShort {
		c := &out.Shortfalls
		got = append(got, fmt.Sprint("short ", c.Consumer.At(i), " ", n, " ", c.Reason.At(i), " ", c.Dimension.At(i),
			" ", c.Blocker.At(i),
			" ", c.Detail.At(i), " ", c.UntilNull[i]))
	}
	want := `grant /A a h1 3
grant /B b h2 1
consumer /A 5 4 1
consumer /B 2 1 1
amount /A 4 4 3 false
amount /B 3 4 0 true
share /A of / 0.5 4 5
share /B of / 0.5 1 2
short /A 1 share_limit ncpus /A holds 4 of at most 3 true`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}
