package foreign

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// The fields of a job's line in the Standard Workload Format, version 2 (Feitelson's Parallel Workloads Archive). -1
// is: not known.
const (
	swfJob = iota
	swfSubmitted
	swfWaited
	swfRan
	swfProcsGot
	swfCPUTime
	swfMemoryGot
	swfProcsAsked
	swfTimeAsked
	swfMemoryAsked
	swfStatus
	swfUser
	swfGroup
	swfProgram
	swfQueue
	swfPartition
	swfAfter
	swfThinkTime
	swfFields
)

// swfBy are the fields by which jobs can be given to consumers.
var swfBy = map[string]int{"user": swfUser, "group": swfGroup, "queue": swfQueue, "partition": swfPartition}

// Bounds of a workload log.
const (
	swfLineBytesMax = 64 << 10
	swfJobsMax      = 20_000_000
	swfHostsMax     = 10_000_000
	swfNumberMax    = 1 << 53
)

// SWFOptions say what a workload log does not tell.
type SWFOptions struct {
	By        string // user, group, queue or partition: whose name jobs' consumers get; "": one consumer has all
	Nodes     int64  // hosts; 0: MaxNodes of the log's header
	NodeProcs int64  // processors of each; 0: MaxProcs ÷ MaxNodes of the header, or 1
}

// swf is a workload log while it is read.
type swf struct {
	o      SWFOptions
	file   string
	line   int
	faults cluster.Faults
	result *Result

	maxNodes, maxProcs int64 // of the header
	demand             *cluster.DemandTable
	lives              *datasets.Lives
	seen               map[int64]bool // numbers of jobs
}

// SWF reads a workload log: each job becomes an allocation of as many units of one processor as it asked for, which
// comes when the job was submitted and ends when it has run as long as in the log. Faults name line, column, value and
// reason.
func SWF(name string, r io.Reader, o SWFOptions) (*Result, error) {
	if o.By != "" {
		if _, ok := swfBy[o.By]; !ok {
			return nil, fmt.Errorf("by %q: must be user, group, queue or partition", o.By)
		}
	}
	s := &swf{
		o: o, file: name, faults: cluster.Faults{Table: name}, lives: &datasets.Lives{}, seen: map[int64]bool{},
		demand: &cluster.DemandTable{Consumer: column(), Allocation: column(), Sub: column(), Plan: column(),
			Requirement: column()},
		result: &Result{Name: "swf"},
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, swfLineBytesMax)
	for scan.Scan() {
		s.line++
		text := strings.TrimSpace(scan.Text())
		if comment, ok := strings.CutPrefix(text, ";"); ok {
			s.header(comment)
		} else if text != "" {
			s.job(strings.Fields(text))
		}
		if s.demand.Rows > swfJobsMax {
			return nil, fmt.Errorf("%s, line %d: there are more than %d jobs", name, s.line, swfJobsMax)
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("%s, line %d: is longer than %d bytes", name, s.line+1, swfLineBytesMax)
	}
	if err := cmp.Or(scan.Err(), s.faults.Err()); err != nil {
		return nil, err
	}
	if s.demand.Rows == 0 {
		return nil, fmt.Errorf("%s: no job in it that ran", name)
	}
	hosts, err := s.hosts()
	if err != nil {
		return nil, err
	}
	s.result.Dataset = &datasets.Dataset{Dimensions: []string{"ncpus"}, Hosts: hosts, Demand: s.demand, Plan: s.plan()}
	s.result.Lives = s.lives
	read, err := plan.Parse("plan.yaml", s.result.Dataset.Plan)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := prove(read, s.result.Dataset, true); err != nil {
		return nil, err
	}
	return s.result, nil
}

func column() cluster.TextColumn { return cluster.TextColumn{Names: &cluster.Names{}} }

// header reads a line "; Key: value".
func (s *swf) header(comment string) {
	key, value, ok := strings.Cut(comment, ":")
	if !ok {
		return // prose
	}
	into := map[string]*int64{"MaxNodes": &s.maxNodes, "MaxProcs": &s.maxProcs}[strings.TrimSpace(key)]
	if into == nil {
		return // facts about the log, such as who made it
	}
	first, _, _ := strings.Cut(strings.TrimSpace(value), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil || n < 1 || n > swfHostsMax {
		s.faults.Add(s.line, strings.TrimSpace(key), strings.TrimSpace(value),
			fmt.Sprintf("must be a whole number from 1 to %d", swfHostsMax))
		return
	}
	*into = n
}

// job reads a job's line.
func (s *swf) job(fields []string) {
	if len(fields) != swfFields {
		s.faults.Add(s.line, "line", strings.Join(fields, " "),
			fmt.Sprintf("has %d fields, a job has %d", len(fields), swfFields))
		return
	}
	var v [swfFields]int64
	for i, field := range fields {
		f, err := strconv.ParseFloat(field, 64) // some logs have averages with a point
		if err != nil || f != f || f < -1 || f > swfNumberMax {
			s.faults.Add(s.line, fmt.Sprintf("field %d", i+1), field, "must be a number from -1 to 2^53")
			return
		}
		v[i] = int64(f)
	}
	units := v[swfProcsAsked]
	if units <= 0 {
		units = v[swfProcsGot]
	}
	name := fmt.Sprintf("job %d", v[swfJob])
	switch {
	case v[swfSubmitted] < 0:
		s.faults.Add(s.line, "field 2", fields[swfSubmitted], "a job without the time of its submission")
		return
	case s.seen[v[swfJob]]:
		s.faults.Add(s.line, "field 1", fields[swfJob], name+" is there twice")
		return
	case units <= 0:
		s.result.Report.Add(s.file, s.line, "a job", "the log does not tell how many processors it asked for")
		return
	case v[swfRan] <= 0:
		s.result.Report.Add(s.file, s.line, "a job", "it never ran (run time of 0, or not known)")
		return
	}
	s.seen[v[swfJob]] = true
	s.lose(&v)
	d := s.demand
	d.Rows++
	d.Consumer.Code = append(d.Consumer.Code, d.Consumer.Names.InternString(s.consumer(&v)))
	d.Allocation.Code = append(d.Allocation.Code, d.Allocation.Names.InternString(fmt.Sprintf("job-%d", v[swfJob])))
	d.Units = append(d.Units, units)
	d.MinUnits = append(d.MinUnits, units) // a job starts with all its processors
	if d.Size == nil {
		d.Size = make([][]int64, 1)
	}
	d.Size[0] = append(d.Size[0], 1)
	s.lives.From, s.lives.Runs = append(s.lives.From, v[swfSubmitted]), append(s.lives.Runs, v[swfRan])
}

// lose notes what a job's line tells and nothing here is made of.
func (s *swf) lose(v *[swfFields]int64) {
	for _, f := range []struct {
		field  int
		what   string
		reason string
	}{
		{swfMemoryAsked, "requested memory", "the log does not tell what memory hosts have"},
		{swfTimeAsked, "requested time", "a unit runs as long as it did; estimates are not used"},
		{swfAfter, "preceding job", "a job comes when it was submitted, whatever ran before it"},
	} {
		if v[f.field] > 0 {
			s.result.Report.Add(s.file, s.line, f.what, f.reason)
		}
	}
	if status := v[swfStatus]; status == 2 || status == 3 || status == 4 {
		s.result.Report.Add(s.file, s.line, "a part of a job (checkpoint)", "each part counts as a job of its own")
	}
}

// consumer is the path of a job's consumer.
func (s *swf) consumer(v *[swfFields]int64) string {
	if s.o.By == "" {
		return "/jobs"
	}
	if n := v[swfBy[s.o.By]]; n >= 0 {
		return fmt.Sprintf("/%s-%d", s.o.By, n)
	}
	return "/" + s.o.By + "-unknown"
}

// hosts are as many as the header or the options tell; processors that do not divide evenly go to the first.
func (s *swf) hosts() (*cluster.HostTable, error) {
	nodes := cmp.Or(s.o.Nodes, s.maxNodes, s.maxProcs)
	if nodes < 1 || nodes > swfHostsMax {
		return nil, fmt.Errorf("%s: its header has no MaxNodes: how many hosts there are must be given, from 1 to %d",
			s.file, swfHostsMax)
	}
	procs := s.o.NodeProcs * nodes
	if s.o.NodeProcs == 0 {
		procs = max(nodes, s.maxProcs)
	}
	h := &cluster.HostTable{Rows: int(nodes), Host: column(), Size: make([][]int64, 1)}
	for i := range nodes {
		h.Host.Code = append(h.Host.Code,
			h.Host.Names.InternString(fmt.Sprintf("n%0*d", len(strconv.FormatInt(nodes, 10)), i+1)))
		each := procs / nodes
		if i < procs%nodes {
			each++
		}
		h.Size[0] = append(h.Size[0], each)
	}
	return h, nil
}

// plan is a policy in which all consumers share all hosts equally.
func (s *swf) plan() []byte {
	var paths []string
	for c := range int32(s.demand.Consumer.Names.Len()) {
		paths = append(paths, s.demand.Consumer.Names.String(c))
	}
	slices.Sort(paths)
	var b strings.Builder
	b.WriteString("# A workload log in the Standard Workload Format: all consumers share one pool.\n" +
		"stint: 1\ncluster: swf\ndimensions: [ncpus]\nresource_groups:\n  - {name: all, select: \"select(ncpus > " +
		"0)\"}\nconsumers:\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "  - {path: %s}\n", p)
	}
	b.WriteString("md_plans:\n  - name: swf\n    resource_groups: [{name: all}]\n    consumers:\n")
	for _, p := range paths {
		fmt.Fprintf(&b, "      - {path: %s}\n", p)
	}
	return []byte(b.String())
}
