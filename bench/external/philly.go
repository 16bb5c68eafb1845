package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// Of Philly's machines its paper tells that there were 552 with 2,490 GPUs; the file has none of them. So many have 8,
// the others 4: 2,488 GPUs.
const (
	phillyHosts = 552
	phillyOf8   = 70
)

// phillyColumns are all that the file may have: another column could change what is meant.
var phillyColumns = []string{"timestamp", "duration", "num_gpus", "gpu_time", "cluster"}

// Bounds of a job.
const (
	phillyJobsMax    = 10_000_000
	phillyGPUsMax    = 1 << 20
	phillySecondsMax = 100 * 365 * 86400
)

// philly reads the file of jobs. One in part of the hosts is played: with all of them hardly a job would wait. With
// gangs all GPUs of a job begin at once. Units run for minRuntime at least before fair reclaim may take them.
func philly(path string, part int, gangs bool, minRuntime time.Duration) (*trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	demand, lives, err := phillyJobs(filepath.Base(path), f)
	if err != nil {
		return nil, err
	}
	hosts, gpus := phillyCluster(part)
	clusters := demand.Consumer.Names.Len()
	name, begins := "Philly", "the GPUs of a job are units that may start one after the other and stand on any hosts"
	if gangs {
		demand.MinUnits = slices.Clone(demand.Units)
		name = "Philly with gangs"
		begins = "the GPUs of a job are units of a gang: all start in one cycle, on any hosts, or none"
	}
	t := &trace{
		name: name, amount: "GPUs", bounds: []int64{1, 2, 4, 8, 16, 32, 64}, lives: lives, gangs: gangs,
		set: &datasets.Dataset{Dimensions: []string{"gpus"}, Hosts: hosts, Demand: demand,
			Plan: phillyPlan(demand, lives, minRuntime)},
		about: fmt.Sprintf("%s jobs of %d virtual clusters (Microsoft, 2017) on %s hosts with %s GPUs.",
			grouped(int64(demand.Rows)), clusters,
			grouped(int64(hosts.Rows)), grouped(gpus)),
		remarks: []string{
			"the file has no hosts: they are made, of 8 and of 4 GPUs",
			"virtual clusters share the pool in proportion to the GPU time of their jobs, as the file tells no quotas",
			begins,
		},
	}
	if minRuntime > 0 {
		t.remarks = append(t.remarks, fmt.Sprintf("`min_runtime` is %s: what runs for less is not taken for fairness",
			plan.Lasting(minRuntime.Microseconds())))
	}
	if part > 1 {
		t.remarks = append(t.remarks, fmt.Sprintf("one host in %d is played: with all of them hardly a job waits",
			part))
	}
	return t, nil
}

// phillyJobs reads the jobs. Faults name row, column, value and reason.
func phillyJobs(name string, r io.Reader) (*cluster.DemandTable, *datasets.Lives, error) {
	in := csv.NewReader(r)
	head, err := in.Read()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if !slices.Equal(head, phillyColumns) {
		return nil, nil, fmt.Errorf("%s: its columns are %s, and should be %s", name, strings.Join(head, ", "),
			strings.Join(phillyColumns, ", "))
	}
	d, l, faults := newDemand(1), &datasets.Lives{}, cluster.Faults{Table: name}
	for row := 1; ; row++ {
		job, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		if row > phillyJobsMax {
			return nil, nil, fmt.Errorf("%s: more than %d jobs", name, phillyJobsMax)
		}
		from, err := time.Parse(time.DateTime, job[0])
		if err != nil {
			faults.Add(row, head[0], job[0], "must be an instant such as 2017-10-09 07:01:55")
		}
		runs, err := strconv.ParseFloat(job[1], 64)
		if err != nil || !(runs > 0 && runs <= phillySecondsMax) {
			faults.Add(row, head[1], job[1], "must be seconds, more than 0")
		}
		gpus, err := strconv.ParseInt(job[2], 10, 64)
		if err != nil || gpus < 1 || gpus > phillyGPUsMax {
			faults.Add(row, head[2], job[2], fmt.Sprintf("must be a whole number from 1 to %d", phillyGPUsMax))
		}
		if job[4] == "" || strings.ContainsAny(job[4], "/:{}[]'\" ") {
			faults.Add(row, head[4], job[4], "must be a name without blanks, quotes, brackets, colons and slashes")
		}
		d.add("/"+job[4], fmt.Sprintf("job-%d", row), "", gpus, 1)
		l.From, l.Runs = append(l.From, from.Unix()), append(l.Runs, int64(max(1, runs)))
	}
	if err := faults.Err(); err != nil {
		return nil, nil, err
	}
	if d.Rows == 0 {
		return nil, nil, fmt.Errorf("%s: no job in it", name)
	}
	first := slices.Min(l.From)
	for i := range l.From {
		l.From[i] -= first
	}
	return &d.DemandTable, l, nil
}

// demand is a table of demand while it is filled.
type demand struct{ cluster.DemandTable }

func newDemand(dimensions int) *demand {
	d := &demand{}
	for _, c := range []*cluster.TextColumn{&d.Consumer, &d.Allocation, &d.Sub, &d.Plan, &d.Requirement} {
		c.Names = new(cluster.Names)
	}
	d.Size = make([][]int64, dimensions)
	return d
}

func (d *demand) add(consumer, allocation, requirement string, units int64, size ...int64) {
	d.Rows++
	d.Consumer.Code = append(d.Consumer.Code, d.Consumer.Names.InternString(consumer))
	d.Allocation.Code = append(d.Allocation.Code, d.Allocation.Names.InternString(allocation))
	need := cluster.Null
	if requirement != "" {
		need = d.Requirement.Names.InternString(requirement)
	}
	d.Requirement.Code = append(d.Requirement.Code, need)
	d.Units = append(d.Units, units)
	for i, v := range size {
		d.Size[i] = append(d.Size[i], v)
	}
}

// phillyCluster makes one in part of the hosts.
func phillyCluster(part int) (h *cluster.HostTable, gpus int64) {
	h = &cluster.HostTable{Host: cluster.TextColumn{Names: new(cluster.Names)}, Size: make([][]int64, 1)}
	for i := range phillyHosts {
		size := int64(4)
		if i < phillyOf8 {
			size = 8
		}
		if i%part != 0 {
			continue
		}
		h.Rows++
		h.Host.Code = append(h.Host.Code, h.Host.Names.InternString(fmt.Sprintf("h%03d", i)))
		h.Size[0] = append(h.Size[0], size)
		gpus += size
	}
	return h, gpus
}

// phillyPlan divides the pool among the virtual clusters by their jobs' GPU time, in thousandths.
func phillyPlan(d *cluster.DemandTable, l *datasets.Lives, minRuntime time.Duration) []byte {
	work := make([]float64, d.Consumer.Names.Len())
	var all float64
	for row, units := range d.Units {
		w := float64(units) * float64(l.Runs[row])
		work[d.Consumer.Code[row]] += w
		all += w
	}
	var paths, entries []string
	for c, w := range work {
		path := d.Consumer.Names.String(int32(c))
		runs := ""
		if minRuntime > 0 {
			runs = ", min_runtime: " + plan.Lasting(minRuntime.Microseconds())
		}
		paths = append(paths, fmt.Sprintf("  - {path: %s%s}\n", path, runs))
		entries = append(entries, fmt.Sprintf("      - {path: %s, share: {ratio: %d}}\n", path,
			max(1, int64(1000*w/all))))
	}
	slices.Sort(paths)
	slices.Sort(entries)
	return []byte("stint: 1\ncluster: philly\ndimensions: [gpus]\nresource_groups:\n" +
		"  - {name: all, select: \"select(gpus > 0)\"}\nconsumers:\n" + strings.Join(paths, "") +
		"md_plans:\n  - name: philly\n    resource_groups: [{name: all}]\n    consumers:\n" +
		strings.Join(entries, ""))
}
