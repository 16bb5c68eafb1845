// Command external plays workloads that others published, and prints their figures, or the ideal ones, beside stint's.
// The files are not part of the project: their folders are given on the command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/stintd/stint/bench/page"
)

const usage = `usage: external [flags] WORKLOAD FILES

  kueue DIR NAME   Kueue's performance test NAME (baseline, large-scale) in DIR, over HTTP
  philly FILE      the jobs of Philly (philly.csv)
  slurm DIR        a week of Slurm: workload_week.events, slurm.conf, sacctmgr.script
  swf FILE         a workload log in the Standard Workload Format
  fgd DIR NODES    FGD's curves in DIR on the node list NODES of openb: for each
                   pod list in DIR, and the default one beside NODES

`

// options are the flags.
type options struct {
	binary, page, log string
	every, logged     time.Duration
	part, seeds       int
	predict           int
	gangs             bool
	minRuntime        time.Duration
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("external: ")
	var o options
	flag.StringVar(&o.binary, "stint", "bin/stint", "kueue: the program that serves")
	flag.StringVar(&o.page, "page", "", "also put the result into its section of this page")
	flag.StringVar(&o.log, "log", "", "philly, slurm, swf: keep the log here")
	flag.DurationVar(&o.every, "every", time.Minute, "philly, slurm, swf: the time between two cycles")
	flag.DurationVar(&o.logged, "logged", math.MaxInt64,
		"philly, slurm, swf: how much of the trace is logged and verified")
	flag.IntVar(&o.part, "part", 1, "philly: play one host in so many")
	flag.IntVar(&o.predict, "predict", 0,
		"philly, slurm, swf: ask of one job in so many when it would run (0: of none)")
	flag.BoolVar(&o.gangs, "gangs", false, "philly: all GPUs of a job start at once, or none (min_units)")
	flag.DurationVar(&o.minRuntime, "min-runtime", 0, "philly: how long units run before fair reclaim may take them")
	flag.IntVar(&o.seeds, "seeds", 10, "fgd: how many of the published seeds")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), usage)
		flag.PrintDefaults()
	}
	flag.Parse()
	s, missed, err := o.play(flag.Args())
	if errors.Is(err, os.ErrNotExist) {
		log.Fatalf("%v: the workload is not there", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	s.Command = page.Command("go run ./bench/external", os.Args[1:])
	s.Machine = machine()
	if err := s.Print(os.Stdout); err != nil {
		log.Fatal(err)
	}
	if o.page != "" {
		if err := page.Put(o.page, sectionName(flag.Args(), &o), s.Markdown()); err != nil {
			log.Fatal(err)
		}
	}
	if missed > 0 {
		fmt.Printf("%d of the published ranges are missed\n", missed)
		os.Exit(1)
	}
}

// sectionName is the section of the page that a workload has.
func sectionName(args []string, o *options) string {
	name := args[0]
	if name == "kueue" {
		name += " " + args[2]
	}
	if o.gangs {
		name += " gangs"
	}
	if o.minRuntime > 0 {
		name += " min_runtime"
	}
	if o.part > 1 {
		name += fmt.Sprintf(" 1 in %d", o.part)
	}
	return name
}

// play plays what the arguments name. missed is how many published ranges are not kept.
func (o *options) play(args []string) (s *page.Section, missed int, err error) {
	files := map[string]int{"kueue": 2, "philly": 1, "slurm": 1, "swf": 1, "fgd": 2}
	if len(args) == 0 {
		return nil, 0, errors.New("nothing to play (--help tells what there is)")
	}
	n, known := files[args[0]]
	if !known {
		return nil, 0, fmt.Errorf("%q: no such workload (--help tells which there are)", args[0])
	}
	if len(args) != n+1 {
		return nil, 0, fmt.Errorf("%s: %d arguments follow, not %d (--help tells which)", args[0], n, len(args)-1)
	}
	if o.every < time.Second || o.every%time.Second != 0 || o.every > time.Hour {
		return nil, 0, fmt.Errorf("-every %s: must be whole seconds, at most an hour", o.every)
	}
	if o.part < 1 || o.part > phillyHosts || o.part > 1 && args[0] != "philly" {
		return nil, 0, fmt.Errorf("-part %d: must be from 1 to %d, and is for philly alone", o.part, phillyHosts)
	}
	if o.predict < 0 {
		return nil, 0, fmt.Errorf("-predict %d: must be at least 0", o.predict)
	}
	if (o.gangs || o.minRuntime != 0) && args[0] != "philly" || o.minRuntime < 0 {
		return nil, 0, errors.New("-gangs and -min-runtime, which is not negative, are for philly alone")
	}
	var t *trace
	switch args[0] {
	case "kueue":
		return playKueue(context.Background(), o.binary, args[1], args[2])
	case "fgd":
		s, err = playFGD(args[1], args[2], o.seeds)
		return s, 0, err
	case "philly":
		t, err = philly(args[1], o.part, o.gangs, o.minRuntime)
	case "slurm":
		t, err = slurm(args[1])
	case "swf":
		t, err = swf(args[1])
	}
	if err != nil {
		return nil, 0, err
	}
	s, err = playTrace(t, o)
	return s, 0, err
}
