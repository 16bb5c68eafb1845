// Command peers has other schedulers place the same units on the same cluster as stint, in one run, and prints the
// ratios with what each does and does not do. It is a module of its own, so that stint depends on none of them.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/bench/page"
)

// child is the argument by which the program runs itself, so that the peer has a process of its own: memory and
// collector are not shared.
const child = "yunikorn"

func main() {
	log.SetFlags(0)
	log.SetPrefix("peers: ")
	var o options
	var onPage, apps string
	flag.IntVar(&o.hosts, "hosts", 5000, "hosts")
	flag.IntVar(&o.units, "units", 50_000, "units, in six sizes")
	flag.IntVar(&o.departments, "departments", 4, "queues of the first level")
	flag.IntVar(&o.teams, "teams", 5, "leaf queues in each")
	flag.StringVar(&apps, "apps", "20,2", "applications in each leaf queue, several runs with commas")
	flag.Float64Var(&o.fit, "fit", 1.25, "what the hosts have ÷ what is wanted, in each dimension")
	flag.IntVar(&o.cycles, "cycles", 9, "cold cycles of stint, of which the median counts")
	flag.StringVar(&o.nodeSort, "nodesort", "binpacking", "YuniKorn: node sort policy, binpacking or fair")
	flag.StringVar(&o.appSort, "appsort", "fifo", "YuniKorn: order of applications, fifo or fair")
	flag.Float64Var(&o.idleSeconds, "idle", 5, "YuniKorn: give up when nothing was placed for so many seconds")
	flag.Float64Var(&o.limitSecs, "limit", 120,
		"YuniKorn: give up after so many seconds; what was placed by then counts")
	flag.StringVar(&onPage, "page", "", "also put the result into its section of this page")
	flag.Parse()
	if err := run(&o, apps, onPage); err != nil {
		log.Fatal(err)
	}
}

func run(o *options, apps, onPage string) error {
	var runs []int
	for text := range strings.SplitSeq(apps, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-apps %q: must be whole numbers with commas", apps)
		}
		o.apps = n
		if err := o.check(); err != nil {
			return err
		}
		runs = append(runs, n)
	}
	if flag.Arg(0) == child {
		p, err := yunikorn(o)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(p); err != nil {
			return err
		}
		os.Exit(0) // its goroutines do not end
	}
	s := o.section()
	for _, n := range runs {
		o.apps = n
		if err := o.compare(&s.Tables[0]); err != nil {
			return err
		}
	}
	s.Machine = measure.Here().String() + ", load average at the end " + measure.Here().Load1 + "."
	s.Command = page.Command("cd bench/peers && go run .", os.Args[1:])
	if err := s.Print(os.Stdout); err != nil || onPage == "" {
		return err
	}
	return page.Put(onPage, "peers", s.Markdown())
}

// section is what is said of the figures.
func (o *options) section() *page.Section {
	return &page.Section{
		Title: "Apache YuniKorn",
		About: fmt.Sprintf("%d units of six sizes on %d hosts of four kinds with %g times what they take; %d leaf "+
			"queues in %d departments. YuniKorn's core 1.9.0 runs in a process of its own, without Kubernetes and "+
			"without its web application; its node sort policy is %s, its order of applications %s. The clock runs "+
			"from all units in hand to the last one placed; of stint it is the median of %d cold cycles, which begin "+
			"with hosts and demand as columns and end with decision columns. The ratios are of time, and of CPU "+
			"time, a unit placed.", o.units, o.hosts, o.fit, o.departments*o.teams, o.departments, o.nodeSort,
			o.appSort, o.cycles),
		Tables: []page.Table{{Head: []string{"apps", "", "placed", "seconds", "CPU s", "peak MB", "by time",
			"by CPU"}}},
		After: "What each does: both check room in every dimension, maximums of departments and fairness between " +
			"queues for each unit. YuniKorn besides decides ask by ask as they come, tells its client of each at " +
			"once, keeps user limits, events and metrics, and would ask a shim for predicates (here there are " +
			"none) before a pod is bound. stint decides a whole cycle at once and its client learns of it at the " +
			"cycle's end; besides it computes ownership, quotas and usage of every consumer, chooses what is to be " +
			"reclaimed, gives each unit that is short its reason, and fills the tables of the log. Neither writes " +
			"anything to disk here; preemption is off in YuniKorn, and stint finds nothing to reclaim. Where " +
			"others are at work on the machine, CPU time is the steadier figure.",
	}
}

// compare measures both, one after the other.
func (o *options) compare(t *page.Table) error {
	ours, err := stint(o)
	if err != nil {
		return err
	}
	theirs, err := o.inChild()
	if err != nil {
		return err
	}
	if theirs.Units == 0 || theirs.Seconds <= 0 || ours.Units == 0 {
		return fmt.Errorf("stint placed %d units, YuniKorn %d (%s)", ours.Units, theirs.Units, theirs.Ended)
	}
	per := func(p *placed, v float64) float64 { return v / float64(p.Units) }
	line := func(name string, p *placed, time, cpu string) {
		t.Add(strconv.Itoa(o.appsInAll()), name, strconv.FormatInt(p.Units, 10), fmt.Sprintf("%.3f", p.Seconds),
			fmt.Sprintf("%.3f", p.CPU),
			strconv.FormatInt(p.PeakBytes/1_000_000, 10), time, cpu)
	}
	line("stint", ours, fmt.Sprintf("× %.0f", per(theirs, theirs.Seconds)/per(ours, ours.Seconds)),
		fmt.Sprintf("× %.0f", per(theirs, theirs.CPU)/per(ours, ours.CPU)))
	name := "YuniKorn"
	if theirs.Ended == "limit" {
		name += ", at the limit"
	}
	line(name, theirs, "1", "1")
	return nil
}

// inChild runs the peer in a process of its own.
func (o *options) inChild() (*placed, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	number := func(name string, v int) string { return fmt.Sprintf("-%s=%d", name, v) }
	c := exec.Command(self, number("hosts", o.hosts), number("units", o.units), number("departments", o.departments),
		number("teams", o.teams),
		number("apps", o.apps), fmt.Sprintf("-fit=%g", o.fit), "-nodesort="+o.nodeSort, "-appsort="+o.appSort,
		fmt.Sprintf("-idle=%g", o.idleSeconds),
		fmt.Sprintf("-limit=%g", o.limitSecs), child)
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("YuniKorn: %w\n%s", err, &problems)
	}
	p := &placed{}
	if err := json.Unmarshal(out.Bytes(), p); err != nil {
		return nil, fmt.Errorf("YuniKorn: %w in %q", err, out.String())
	}
	return p, nil
}
