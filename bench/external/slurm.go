package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/ingest/foreign"
)

// slurm reads a tutorial cluster of the Slurm simulator: slurm.conf and the accounts as `stint import slurm` does,
// and the events by which jobs are submitted.
func slurm(dir string) (*trace, error) {
	accounts, users, err := slurmAccounts(filepath.Join(dir, "sacctmgr.script"))
	if err != nil {
		return nil, err
	}
	conf, err := os.Open(filepath.Join(dir, "slurm.conf"))
	if err != nil {
		return nil, err
	}
	defer conf.Close()
	r, err := foreign.Slurm(foreign.File{Name: "slurm.conf", R: conf}, foreign.SlurmOptions{
		Accounts: &foreign.File{Name: "sacctmgr.script", R: strings.NewReader(accounts)},
		Open:     func(name string) (io.ReadCloser, error) { return os.Open(name) },
	})
	if err != nil {
		return nil, err
	}
	events, err := os.Open(filepath.Join(dir, "workload_week.events"))
	if err != nil {
		return nil, err
	}
	defer events.Close()
	dims := r.Dataset.Dimensions
	e := slurmEvents{users: users, dims: dims, demand: newDemand(len(dims)), lives: &datasets.Lives{},
		faults: cluster.Faults{Table: "workload_week.events"}}
	if err := e.read(events); err != nil {
		return nil, err
	}
	set := *r.Dataset
	set.Demand = &e.demand.DemandTable
	t := &trace{
		name: "Slurm", amount: slurmCPUs, bounds: []int64{1, 6, 16, 40, 128}, set: &set, lives: e.lives,
		about: fmt.Sprintf("%s jobs of a week of %d users in %d accounts on %s hosts of two partitions "+
			"(slurm_sim_tools, medium_cluster).",
			grouped(int64(set.Demand.Rows)), e.demand.Consumer.Names.Len(), strings.Count(accounts, "Account - "),
			grouped(int64(set.Hosts.Rows))),
		remarks: []string{
			"the part of a job on each of its nodes is a unit; the parts may start one after the other",
			"accounts and users share by Fairshare of what is held now; usage of the past, priorities of QOS and " +
				"backfill do not count",
		},
	}
	if e.exclusive > 0 {
		t.remarks = append(t.remarks, fmt.Sprintf("%d exclusive jobs take the CPUs of a %d-CPU node each", e.exclusive,
			slurmWhole))
	}
	if n := r.Report.Len(); n > 0 {
		t.remarks = append(t.remarks, fmt.Sprintf("%d kinds of settings are not carried over: `stint import slurm` "+
			"lists them", n))
	}
	return t, nil
}

// slurmAccounts makes of the script that sets up the accounts what `sacctmgr dump` would write, and tells which leaf
// each user is.
func slurmAccounts(path string) (dump string, users map[string]string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	users = map[string]string{}
	var heads, tails strings.Builder
	heads.WriteString("Cluster - 'cluster':Fairshare=1\nParent - 'root'\n")
	scan := bufio.NewScanner(f)
	for n := 1; scan.Scan(); n++ {
		words := strings.Fields(scan.Text())
		if len(words) < 2 || words[0] != "add" || words[1] != "account" && words[1] != "user" {
			continue // QOS and the cluster itself: nothing of them is played
		}
		value := map[string]string{}
		for _, w := range words[2:] {
			key, v, _ := strings.Cut(w, "=")
			value[strings.ToLower(key)] = v
		}
		name, share := value["name"], value["fairshare"]
		if name == "" {
			return "", nil, fmt.Errorf("%s:%d: %s without a name", path, n, words[1])
		}
		if share == "" {
			share = "1"
		}
		if words[1] == "account" {
			fmt.Fprintf(&heads, "Account - '%s':Fairshare=%s\n", name, share)
			continue
		}
		account := value["defaultaccount"]
		if account == "" {
			return "", nil, fmt.Errorf("%s:%d: user %s without a DefaultAccount", path, n, name)
		}
		fmt.Fprintf(&tails, "Parent - '%s'\nUser - '%s':Fairshare=%s\n", account, name, share)
		users[name] = "/" + account + "/" + name
	}
	if err := scan.Err(); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(users) == 0 {
		return "", nil, fmt.Errorf("%s: no user in it", path)
	}
	return heads.String() + tails.String(), users, nil
}

// Names of dimensions and attributes as `stint import slurm` makes them.
const (
	slurmCPUs   = "cpus"
	slurmMemory = "memory_mb"
	slurmGPU    = "gpu"
)

// slurmWhole is how many CPUs an exclusive job takes of a node: those of the smallest.
const slurmWhole = 32

// slurmPerCPU is DefMemPerCPU of both partitions, MB.
const slurmPerCPU = 2800

// slurmEvents are the submissions while they are read.
type slurmEvents struct {
	users     map[string]string
	dims      []string
	demand    *demand
	lives     *datasets.Lives
	faults    cluster.Faults
	exclusive int
	line      int
}

func (e *slurmEvents) read(r io.Reader) error {
	scan := bufio.NewScanner(r)
	for scan.Scan() {
		e.line++
		if strings.TrimSpace(scan.Text()) != "" {
			e.job(scan.Text())
		}
	}
	if err := errors.Join(scan.Err(), e.faults.Err()); err != nil {
		return err
	}
	if e.demand.Rows == 0 {
		return errors.New("workload_week.events: no job in it")
	}
	first := slices.Min(e.lives.From)
	for i := range e.lives.From {
		e.lives.From[i] -= first
	}
	return nil
}

// slurmJob is what a line asks for.
type slurmJob struct {
	from, runs                  float64
	user, name, partition       string
	nodes, tasks, memoryMB, gpu int64
	features                    []string
	whole                       bool
}

// job reads a line: options of the simulator, a bar, options of sbatch, the script.
func (e *slurmEvents) job(line string) {
	j := slurmJob{nodes: 1, tasks: 1, memoryMB: -1}
	words := strings.Fields(line)
	for i := 0; i < len(words); i++ {
		key, value, joined := strings.Cut(words[i], "=")
		if key == "|" || key == "pseudo.job" {
			continue
		}
		if !joined && key != "--exclusive" {
			if i++; i == len(words) {
				e.faults.Add(e.line, key, "", "has no value")
				return
			}
			value = words[i]
		}
		if why := j.set(key, value); why != "" {
			e.faults.Add(e.line, key, value, why)
			return
		}
	}
	leaf, known := e.users[j.user]
	if !known {
		e.faults.Add(e.line, "--uid", j.user, "no account has a user of this name")
		return
	}
	cpus := (j.tasks + j.nodes - 1) / j.nodes
	if j.whole {
		e.exclusive++
		cpus = max(cpus, slurmWhole)
	}
	if j.memoryMB < 0 {
		j.memoryMB = cpus * slurmPerCPU
	}
	size := make([]int64, len(e.dims))
	for i, name := range e.dims {
		size[i] = map[string]int64{slurmCPUs: cpus, slurmMemory: j.memoryMB, slurmGPU: j.gpu}[name]
	}
	need := append([]string{"partition_" + word(j.partition)}, j.features...)
	e.demand.add(leaf, j.name, "select("+strings.Join(need, " && ")+")", j.nodes, size...)
	limit := plan.Unlimited
	if j.nodes > 1 {
		limit = 1
	}
	e.demand.MaxPerHost = append(e.demand.MaxPerHost, limit)
	e.lives.From, e.lives.Runs = append(e.lives.From, int64(j.from)), append(e.lives.Runs, max(1, int64(j.runs)))
}

// set takes an option; it gives the reason where it cannot.
func (j *slurmJob) set(key, value string) (why string) {
	number := func(into *int64, most int64) string {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > most {
			return fmt.Sprintf("must be a whole number from 1 to %d", most)
		}
		*into = n
		return ""
	}
	seconds := func(into *float64) string {
		s, err := strconv.ParseFloat(value, 64)
		if err != nil || !(s >= 0 && s < 1e9) {
			return "must be seconds, from 0 on"
		}
		*into = s
		return ""
	}
	switch key {
	case "-dt":
		return seconds(&j.from)
	case "-sim-walltime":
		return seconds(&j.runs)
	case "-e":
		if value != "submit_batch_job" {
			return "only submit_batch_job is known"
		}
	case "--uid":
		j.user = value
	case "-J":
		j.name = value
	case "-N":
		return number(&j.nodes, 1<<20)
	case "-n":
		return number(&j.tasks, 1<<20)
	case "-p":
		j.partition = value
	case "-t", "-q": // limits of time and qualities of service: not played
	case "--exclusive":
		j.whole = true
	case "--constraint":
		j.features = append(j.features, word(value))
	case "--mem":
		return j.memory(value)
	case "--gres":
		n, ok := strings.CutPrefix(value, "gpu:")
		value = n
		if !ok {
			return "only gpu:N is known"
		}
		return number(&j.gpu, 1<<20)
	default:
		return "an option that is not known: it could change what is meant"
	}
	return ""
}

var memoryForm = regexp.MustCompile(`^([0-9]{1,9})([MG])$`)

func (j *slurmJob) memory(value string) string {
	m := memoryForm.FindStringSubmatch(value)
	if m == nil {
		return "must be such as 500M or 187G"
	}
	j.memoryMB, _ = strconv.ParseInt(m[1], 10, 64)
	if m[2] == "G" {
		j.memoryMB *= 1024
	}
	return ""
}

// word makes a name of a feature or partition as the importer does.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(s))
}
