package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/stintd/stint/bench/page"
)

// generator is a file of Kueue's performance tests: cohorts of queues, and the workloads that are created in each
// queue.
type generator struct {
	Cohorts []cohortSet `yaml:"cohorts"`
}

type cohortSet struct {
	Class  string     `yaml:"className"`
	Count  int        `yaml:"count"`
	Queues []queueSet `yaml:"queuesSets"`
}

type queueSet struct {
	Class              string        `yaml:"className"`
	Count              int           `yaml:"count"`
	Quota              int64         `yaml:"nominalQuota"`
	Borrowing          int64         `yaml:"borrowingLimit"`
	ReclaimInCohort    string        `yaml:"reclaimWithinCohort"` // Any: an owner takes its quota back from all
	WithinClusterQueue string        `yaml:"withinClusterQueue"`  // LowerPriority: the higher takes from the lower
	Workloads          []workloadSet `yaml:"workloadsSets"`
}

type workloadSet struct {
	Count    int        `yaml:"count"`
	EveryMS  int64      `yaml:"creationIntervalMs"`
	Workload []workload `yaml:"workloads"` // of one creation
}

type workload struct {
	Class     string `yaml:"className"`
	RuntimeMS int64  `yaml:"runtimeMs"`
	Priority  int64  `yaml:"priority"`
	Request   int64  `yaml:"request"`
}

// ranges is what Kueue's own test expects of itself.
type ranges struct {
	Cmd struct {
		MaxWallMS int64 `yaml:"maxWallMs"`
	} `yaml:"cmd"`
	MinUsage     map[string]float64 `yaml:"clusterQueueClassesMinUsage"` // percent of the nominal quota
	MaxAdmission map[string]int64   `yaml:"wlClassesMaxAvgTimeToAdmissionMs"`
}

// readKueue reads both files. A field that is not known is an error: it would change what is measured.
func readKueue(dir, name string) (g generator, r ranges, err error) {
	for _, f := range []struct {
		path string
		into any
	}{{name + "-generator.yaml", &g}, {name + "-rangespec.yaml", &r}} {
		path := filepath.Join(dir, f.path)
		text, err := os.ReadFile(path)
		if err != nil {
			return g, r, err
		}
		if err := yaml.UnmarshalWithOptions(text, f.into, yaml.Strict()); err != nil {
			return g, r, fmt.Errorf("%s: %w", path, err)
		}
	}
	return g, r, g.check(filepath.Join(dir, name+"-generator.yaml"))
}

// check refuses what a policy cannot say.
func (g *generator) check(path string) error {
	for _, c := range g.Cohorts {
		for _, q := range c.Queues {
			if q.ReclaimInCohort != "Any" || q.WithinClusterQueue != "LowerPriority" {
				return fmt.Errorf("%s: queues %s: reclaimWithinCohort %q, withinClusterQueue %q: "+
					"must be Any and LowerPriority",
					path, q.Class, q.ReclaimInCohort, q.WithinClusterQueue)
			}
			for _, set := range q.Workloads {
				if set.Count < 1 || set.EveryMS < 1 || len(set.Workload) == 0 {
					return fmt.Errorf("%s: queues %s: workloads need a count, an interval and a class", path, q.Class)
				}
			}
		}
	}
	if len(g.Cohorts) == 0 {
		return fmt.Errorf("%s: no cohort in it", path)
	}
	return nil
}

// job is one workload: a unit of its size that comes at a time and is done when it has run.
type job struct {
	source, consumer, allocation string
	class                        string
	size                         int64
	from, runs                   time.Duration

	admitted time.Duration // first time; 0: not yet
	attempt  int           // grants so far: a timer of an earlier one counts for nothing
	running  bool
	since    time.Duration
	done     bool
}

// kueueCluster is the generator's cluster as a policy, hosts and jobs. Each cohort is a plan of its own. A queue owns
// one host of as much as its nominal quota, and each of its classes is a leaf with the class's priority.
type kueueCluster struct {
	plan, hosts string
	sources     []string // a cohort each
	jobs        []*job   // in order of their time
	quota       int64    // of all queues
	ideal       time.Duration
}

func (g *generator) cluster(interval time.Duration) *kueueCluster {
	c := &kueueCluster{}
	var groups, consumers, plans, hosts strings.Builder
	hosts.WriteString("host,cpu,cohort\n")
	for _, cs := range g.Cohorts {
		for i := range cs.Count {
			cohort := fmt.Sprintf("%s-%d", cs.Class, i)
			c.sources = append(c.sources, cohort)
			fmt.Fprintf(&groups, "  - {name: %s, select: \"select(cohort == '%s')\"}\n", cohort, cohort)
			fmt.Fprintf(&consumers, "  - {path: /%s}\n", cohort)
			fmt.Fprintf(&plans, "  - name: %s\n    resource_groups: [{name: %s}]\n    consumers:\n"+
				"      - {path: /%s, own: [{group: %s, percent: 100}]}\n",
				cohort, cohort, cohort, cohort)
			for _, qs := range cs.Queues {
				for k := range qs.Count {
					queue := fmt.Sprintf("%s-%d", qs.Class, k)
					host := cohort + "-" + queue
					path := "/" + cohort + "/" + queue
					fmt.Fprintf(&hosts, "%s,%d,%s\n", host, qs.Quota, cohort)
					fmt.Fprintf(&consumers, "  - {path: %s}\n", path)
					fmt.Fprintf(&plans, "      - {path: %s, own: [{host_list: [%s]}], share: {limit: {cpu: %d}}}\n",
						path, host, qs.Borrowing)
					c.quota += qs.Quota
					c.addJobs(&consumers, &plans, cohort, path, &qs)
				}
			}
		}
	}
	c.hosts = hosts.String()
	c.plan = fmt.Sprintf("stint: 1\ninterval: %s\ndimensions: [cpu]\nresource_groups:\n%sconsumers:\n%smd_plans:\n%s",
		interval, groups.String(), consumers.String(), plans.String())
	slices.SortStableFunc(c.jobs, func(a, b *job) int { return int(a.from - b.from) })
	return c
}

// addJobs adds the leaves of a queue and the jobs that come in each.
func (c *kueueCluster) addJobs(consumers, entries *strings.Builder, cohort, path string, qs *queueSet) {
	seen := map[string]bool{}
	var work time.Duration
	for s, set := range qs.Workloads {
		for _, w := range set.Workload {
			leaf := path + "/" + w.Class
			if !seen[leaf] {
				seen[leaf] = true
				fmt.Fprintf(consumers, "  - {path: %s}\n", leaf)
				fmt.Fprintf(entries, "      - {path: %s, share: {priority: %d}}\n", leaf, w.Priority)
			}
			for n := range set.Count {
				j := &job{
					source: cohort, consumer: leaf, allocation: fmt.Sprintf("%s-%d-%d", w.Class, s, n), class: w.Class,
					size: w.Request,
					from: time.Duration(int64(n)*set.EveryMS) * time.Millisecond,
					runs: time.Duration(w.RuntimeMS) * time.Millisecond,
				}
				work += j.runs * time.Duration(j.size)
				c.jobs = append(c.jobs, j)
			}
		}
	}
	c.ideal = max(c.ideal, work/time.Duration(qs.Quota))
}

// means are what Kueue's own runs came to, as the comments of its range specifications tell (kubernetes-sigs/kueue
// ff69552).
type means struct {
	wall      time.Duration
	usage     float64
	admission map[string]time.Duration
}

var published = map[string]means{
	"baseline": {351116 * time.Millisecond, 55.9, map[string]time.Duration{
		"large": 16501 * time.Millisecond, "medium": 76768 * time.Millisecond, "small": 215468 * time.Millisecond}},
	"large-scale": {1179411 * time.Millisecond, 38.64, map[string]time.Duration{
		"large": 105604 * time.Millisecond, "medium": 256413 * time.Millisecond, "small": 700379 * time.Millisecond}},
}

// kueueInterval is the time between two cycles of the service.
const kueueInterval = 20 * time.Millisecond

// playKueue plays a workload end to end over HTTP, with durable pushes, and tells what came of it beside the ranges.
// missed is how many of those are not kept.
func playKueue(ctx context.Context, binary, dir, name string) (sec *page.Section, missed int, err error) {
	g, r, err := readKueue(dir, name)
	if err != nil {
		return nil, 0, err
	}
	c := g.cluster(kueueInterval)
	s, err := startService(ctx, binary)
	if err != nil {
		return nil, 0, err
	}
	defer s.stop()
	p := &player{service: s, cluster: c, byKey: map[string]*job{}}
	if err := p.play(ctx, time.Duration(r.Cmd.MaxWallMS)*time.Millisecond); err != nil {
		return nil, 0, err
	}
	sec, missed = p.section(name, &r)
	return sec, missed, nil
}

// section tells what came of a workload. missed is how many ranges are not kept.
func (p *player) section(name string, r *ranges) (s *page.Section, missed int) {
	c, own := p.cluster, published[name]
	t := page.Table{Head: []string{"", "stint", "Kueue", "allowed", "kept"}}
	theirs := func(known bool, text string) string {
		if known {
			return text
		}
		return "–"
	}
	line := func(what, got, mean, limit string, ok bool) {
		verdict := "yes"
		if !ok {
			verdict, missed = "NO", missed+1
		}
		t.Add(what, got, mean, limit, verdict)
	}
	wall, most := p.ended, time.Duration(r.Cmd.MaxWallMS)*time.Millisecond
	line("makespan", short(wall), theirs(own.wall > 0, short(own.wall)), short(most), wall <= most)
	usage := 100 * float64(p.used) / float64(wall) / float64(c.quota)
	for _, class := range sortedKeys(r.MinUsage) {
		least := r.MinUsage[class]
		line("use of the quota, "+class, fmt.Sprintf("%.1f %%", usage),
			theirs(own.usage > 0, fmt.Sprintf("%.1f %%", own.usage)),
			fmt.Sprintf("%g %%", least), usage >= least)
	}
	admission := p.admission()
	for _, class := range sortedKeys(r.MaxAdmission) {
		got, limit := admission[class], time.Duration(r.MaxAdmission[class])*time.Millisecond
		mean, known := own.admission[class]
		line("mean time to admission, "+class, short(got), theirs(known, short(mean)), short(limit), got <= limit)
	}
	t.Add("ideal makespan (work ÷ quota)", fmt.Sprintf("%s: × %.2f", short(c.ideal), float64(wall)/float64(c.ideal)),
		"", "", "")
	t.Add("stopped before their end", grouped(int64(p.stopped)), "", "", "")
	t.Add("slot-seconds lost", fmt.Sprintf("%.1f %%", 100*p.lost.Seconds()/(p.used+p.lost).Seconds()), "", "", "")
	return &page.Section{
		Title: "Kueue, " + name,
		About: fmt.Sprintf("%s workloads of %d classes in %s queues with a quota of %s in all "+
			"(kubernetes-sigs/kueue, test/performance/scheduler). They come and end on the real clock, over HTTP to a "+
			"`stint serve` of its own with a cycle every %s; each push is on disk before it is acknowledged.",
			grouped(int64(len(c.jobs))), len(admission),
			grouped(int64(strings.Count(c.hosts, "\n")-1)), grouped(c.quota), kueueInterval),
		Tables: []page.Table{t},
		After: "Kueue's figures are the means of its own CI. They pay for writes to a Kubernetes API server and " +
			"for its controllers, which stint does not have; its machine is another one. A workload that is " +
			"stopped begins anew.",
	}, missed
}

// short is a time in three or four digits.
func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
