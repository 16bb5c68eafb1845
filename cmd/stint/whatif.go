package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/export"
)

// settleMax bounds --settle.
const settleMax = 10_000

type whatifOptions struct {
	place
	askedOptions
	plan, cycle, output string
	settle              int
	force               bool
}

func newWhatif() *cobra.Command {
	var o whatifOptions
	c := &cobra.Command{
		Use:   "whatif --log LOG|--server URL --plan P2|--demand FILE",
		Short: "Tells what another policy would change, or what more demand would get and when; commits nothing",
		Long: `Decides a cycle of a log again, once under the policy that was in force and once under another one: who
gains, who loses, what would be reclaimed. Nothing is committed, and LOG is not written to.
With --server a running service tells it of its next cycle, with all input that it has by then.

The state before the cycle is rebuilt as replay does it, from the last one that was saved before it. The
cycle grants at once what is free; what others hold it puts under reclaim, which takes their graces to come
back. So --settle goes on, under both policies, with no new input, until nothing changes any more: that is
what is held in the end.

With --demand it is told what demand that is not there would get: at once, from whom, what would stop for
it, and when it would have all of it; with --hosts also on hosts that are not there. Cycles are decided on a
copy, as far ahead as --horizon. A column runtime of the demand says how long a unit runs, --runtime how
long those of a consumer do that run now: one time, or percentiles. Of what nobody says how long it runs it
is taken that it goes on. Where run times are spread, futures are drawn, and times are percentiles of these.

A bad policy is refused with the same errors as by check. One that leaves out consumers that hold something is
refused as run does, unless --force is given.

Exit codes: 0 fine, 2 bad usage or input.`,
		Example: `  stint whatif --log demo/log --plan new.yaml
  stint whatif --log demo/log --plan new.yaml --cycle 3 --settle 0
  stint whatif --log demo/log --plan new.yaml --output json
  stint whatif --server http://grid:7468 --token-file token --plan new.yaml
  stint whatif --log demo/log --demand more.csv --hosts new-hosts.csv
  stint whatif --server http://grid:7468 --demand more.csv --runtime /Risk=p50:10m,p90:1h --runtime /Research=4h`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return whatif(c.Context(), &o, c.Flags(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	o.flags(f)
	f.StringVar(&o.plan, "plan", "", "the other policy file")
	f.StringVar(&o.cycle, "cycle", "last", "a cycle's number, or last")
	f.IntVar(&o.settle, "settle", 100, "how many cycles to look ahead at most; 0: none")
	f.BoolVar(&o.force, "force", false, "the policy may leave out consumers that hold something; that is reclaimed "+
		"with their grace")
	f.StringVar(&o.output, "output", "table", "table or json")
	f.StringVar(&o.demand, "demand", "", "table of demand that is not there, with a column runtime if you like")
	f.StringVar(&o.hosts, "hosts", "", "with --demand, table of hosts that are not there, or have other figures")
	f.StringArrayVar(&o.runtimes, "runtime", nil, "with --demand, how long units of a consumer run: /A=10m or "+
		"/A=p50:10m,p90:1h")
	f.DurationVar(&o.horizon, "horizon", 24*time.Hour, "with --demand, how far to look ahead; 0: the next cycle alone")
	f.IntVar(&o.plays, "plays", 20, "with --demand, how many futures are drawn where run times are spread")
	f.DurationVar(&o.within, "within", 10*time.Second, "with --demand, how long the answer may take")
	return c
}

// checkAsked tells whether one thing is asked for, and nothing is given that is not of it.
func (o *whatifOptions) checkAsked(f *pflag.FlagSet) error {
	switch {
	case o.plan == "" && o.demand == "":
		return errors.New("give --plan FILE, or --demand FILE")
	case o.plan != "" && o.demand != "":
		return errors.New("give --plan or --demand, not both: what another policy would change, or what more demand " +
			"would get")
	}
	of, others := "--demand", []string{"hosts", "runtime", "horizon", "plays", "within"}
	if o.demand != "" {
		of, others = "--plan", []string{"settle", "force"}
	}
	for _, name := range others {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for %s", name, of)
		}
	}
	return nil
}

func whatif(ctx context.Context, o *whatifOptions, f *pflag.FlagSet, stdout, stderr io.Writer) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: must be table or json", o.output)
	}
	if o.settle < 0 || o.settle > settleMax {
		return fmt.Errorf("--settle %d: must be from 0 to %d", o.settle, settleMax)
	}
	if err := o.check(); err != nil {
		return err
	}
	if err := o.checkAsked(f); err != nil {
		return err
	}
	if o.demand != "" {
		if o.server != "" && o.cycle != "last" {
			return errEarlier(o.cycle)
		}
		return whatifDemand(ctx, o, stdout, stderr)
	}
	g, err := readInput(kindPlan, o.plan)
	if err != nil {
		return err
	}
	policy, err := plan.Parse(g.name, g.content) // before the replay, which may take long
	if err != nil {
		return err
	}
	c, err := o.comparison(ctx, g.content, policy, stderr)
	if err != nil {
		return err
	}
	if o.output == "json" {
		return encode(stdout, c)
	}
	return c.Write(stdout, o.plan, styleOf(stdout))
}

func errEarlier(cycle string) error {
	return fmt.Errorf("--cycle %s: a service decides its next cycle; an earlier one is decided by the log (--log)",
		cycle)
}

// comparison compares by the log or the service.
func (o *whatifOptions) comparison(ctx context.Context, text []byte, policy *plan.Policy,
	stderr io.Writer) (*explain.Comparison, error) {
	if o.server != "" {
		if o.cycle != "last" {
			return nil, errEarlier(o.cycle)
		}
		warn(stderr, policyWarnings(policy))
		return o.whatif(ctx, text, o.settle, o.force)
	}
	r, err := openLog(o.log)
	if err != nil {
		return nil, err
	}
	n, err := oneCycle(r, o.log, o.cycle)
	if err != nil {
		return nil, err
	}
	return compareUnder(r, o, n, policy, stderr)
}

// compareUnder decides cycle n of a log under the policy in force and under another one.
func compareUnder(r *export.Reader, o *whatifOptions, n int64, policy *plan.Policy,
	stderr io.Writer) (*explain.Comparison, error) {
	damaged := func(at *otherwise, _ int64) error { return acceptable(at, o.log, stderr) }
	before := newReplay()
	if err := before.restore(r, o.log, n); err != nil {
		return nil, err
	}
	if err := before.run(r, o.log, n-1, stderr, damaged); err != nil {
		return nil, err
	}
	if err := before.inputs(r, o.log, n); err != nil {
		return nil, err
	}
	t, err := r.Table("cycles", n)
	if err != nil {
		return nil, err
	}
	after := &batch{state: before.state.Clone()}
	if err := policy.Follows(before.state.Policy, o.force); err != nil {
		return nil, err
	}
	if err := after.state.SetPolicy(policy, o.force); err != nil {
		return nil, err // names the file
	}
	warn(stderr, policyWarnings(policy))
	suspect, err := after.warnings()
	if warn(stderr, suspect); err != nil {
		return nil, err
	}
	nowUS, digest := t.Column("now").Int[0], t.Column("decisions_digest")
	was := before.ahead(nowUS, o.settle)
	if logged := string(digest.Dict.Bytes(digest.Code[0])); was.Digest() != logged {
		files, err := r.Digest(n)
		if err == nil {
			err = damaged(&otherwise{Cycle: n, What: "it decides otherwise" + byRules(t), Logged: logged,
				Decided: was.Digest(), misnamed: files == was.Digest()}, n)
		}
		if err != nil {
			return nil, err
		}
	}
	return explain.Compare(was, after.ahead(nowUS, o.settle)), nil
}

// ahead decides a cycle, and those that follow from it with no new input, up to a number or until nothing changes.
func (b *batch) ahead(nowUS int64, settle int) (a explain.Ahead) {
	engine.Ahead(context.Background(), b.state, nowUS, settle, func(c *decision.Cycle, last bool) {
		a.See(c, b.state.Policy, last && settle > 0)
	})
	return a
}
