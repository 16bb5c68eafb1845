// Package scenario plays scenario files (SPEC 9.1): a policy, hosts and demand, steps in simulated time, and
// what the decisions of each step must look like.
package scenario

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// Scenario is one document of a scenario file, with all its inputs decoded. It may be played any number of times.
type Scenario struct {
	File string
	Line int
	Name string
	Rule string // "" when not given

	policy  *plan.Policy
	text    []byte // of the policy
	hosts   *feed[*cluster.HostTable]
	running []*feed[*cluster.HoldingTable]
	steps   []step

	reportUnknown bool // `unknown: report`
}

// step is what happens before its first cycle, how many cycles there are, and what they must decide.
type step struct {
	line     int
	atUS     int64 // of the first cycle; -1: an interval after the last one
	policy   *plan.Policy
	text     []byte // of the policy
	force    bool   // the policy may leave out consumers that hold something (PLAN-4)
	hosts    *feed[*cluster.HostTable]
	releases *feed[*cluster.HoldingTable]
	demand   []*feed[*cluster.DemandTable]
	cycles   int // 0: until stable
	expect   expect
}

// cyclesMax bounds the cycles of a step; a step that is not stable by then never will be.
const cyclesMax = 10_000

// sourceDefault is whose demand a plain list of rows is.
const sourceDefault = "default"

// firstUS is the now of a scenario's first cycle when it names none: 2026-01-05T00:00:00Z, a Monday.
var firstUS = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).UnixMicro()

// Load reads a scenario file and all files that it names. An error says file, line and column.
func Load(name string) ([]*Scenario, error) {
	text, err := readFile(name)
	if err != nil {
		return nil, err
	}
	return Parse(name, text)
}

// readFile reads no more than one byte beyond the limit, which whoever parses the text refuses.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, fileBytesMax+1))
}

// Parse is Load for a text; the files that it names are found beside name.
func Parse(name string, text []byte) ([]*Scenario, error) {
	f := &file{name: name}
	docs, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	var scenarios []*Scenario
	for _, d := range docs {
		if d.Body == nil {
			continue // only comments, or nothing after the last ---
		}
		s, err := f.scenario(d.Body)
		if err != nil {
			return nil, err
		}
		scenarios = append(scenarios, s)
	}
	if len(scenarios) == 0 {
		return nil, fmt.Errorf("%s: no scenario in it", name)
	}
	return scenarios, nil
}

// Matches tells whether a scenario's name or rule matches.
func (s *Scenario) Matches(re *regexp.Regexp) bool {
	return re.MatchString(s.Name) || s.Rule != "" && re.MatchString(s.Rule)
}

func (f *file) scenario(n ast.Node) (*Scenario, error) {
	v, err := f.object(n, "a scenario", "name", "rule", "plan", "plan_file", "hosts", "hosts_file", "running",
		"running_file", "unknown", "steps")
	if err != nil {
		return nil, err
	}
	s := &Scenario{File: f.name}
	s.Line, _ = start(n)
	if v["name"] == nil || v["steps"] == nil {
		return nil, f.fail(n, "a scenario needs a name and steps")
	}
	if s.Name, err = f.text(v["name"], "name"); err != nil {
		return nil, err
	}
	if v["rule"] != nil {
		if s.Rule, err = f.text(v["rule"], "rule"); err != nil {
			return nil, err
		}
	}
	if v["unknown"] != nil {
		word, err := f.text(v["unknown"], "unknown")
		if err != nil {
			return nil, err
		}
		if word != "report" && word != "refuse" {
			return nil, f.fail(v["unknown"], "unknown is report or refuse")
		}
		s.reportUnknown = word == "report"
	}
	if s.policy, s.text, err = f.policy(v); err != nil {
		return nil, err
	}
	if s.policy == nil {
		return nil, f.fail(n, "a scenario needs a plan or a plan_file")
	}
	if s.hosts, err = f.hosts(v, s.policy.Dimensions); err != nil {
		return nil, err
	}
	if s.hosts == nil {
		return nil, f.fail(n, "a scenario needs hosts or a hosts_file")
	}
	if s.running, err = feeds(f, v, "running", s.policy.Dimensions, readHoldings(false)); err != nil {
		return nil, err
	}
	steps, err := f.list(v["steps"], "steps")
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, f.fail(v["steps"], "a scenario needs at least one step")
	}
	policy := s.policy // in force at the step
	for _, node := range steps {
		st, err := f.step(node, policy)
		if err != nil {
			return nil, err
		}
		if st.policy != nil {
			policy = st.policy
		}
		s.steps = append(s.steps, *st)
	}
	return s, nil
}

func (f *file) step(n ast.Node, policy *plan.Policy) (*step, error) {
	v, err := f.object(n, "a step", "at", "demand", "demand_file", "hosts", "hosts_file", "plan", "plan_file",
		"force", "releases", "releases_file", "cycles", "until_stable", "expect")
	if err != nil {
		return nil, err
	}
	s := &step{atUS: -1}
	s.line, _ = start(n)
	if at := v["at"]; at != nil {
		t, err := time.Parse(time.RFC3339Nano, at.GetToken().Value)
		if err != nil || t.Year() < 1970 || t.Year() > 9999 {
			return nil, f.fail(at, "at, value %q: must be an instant such as 2026-01-05T08:00:00Z", at.GetToken().Value)
		}
		s.atUS = t.UnixMicro()
	}
	if s.policy, s.text, err = f.policy(v); err != nil {
		return nil, err
	}
	if s.policy != nil {
		policy = s.policy
	}
	if s.force, err = f.boolean(v["force"], "force"); err != nil {
		return nil, err
	}
	if s.hosts, err = f.hosts(v, policy.Dimensions); err != nil {
		return nil, err
	}
	if s.demand, err = feeds(f, v, "demand", policy.Dimensions, table.ReadDemand); err != nil {
		return nil, err
	}
	releases, ok, err := f.find(v, "releases")
	if err == nil && ok {
		s.releases, err = decode(f, releases, policy.Dimensions, readHoldings(true))
	}
	if err != nil {
		return nil, err
	}
	if err := f.length(s, v); err != nil {
		return nil, err
	}
	if v["expect"] != nil {
		s.expect, err = f.expect(v["expect"], policy)
	}
	return s, err
}

// length reads how many cycles a step has.
func (f *file) length(s *step, v map[string]ast.Node) (err error) {
	s.cycles = 1
	if n := v["cycles"]; n != nil {
		if s.cycles, err = f.count(n, "cycles", cyclesMax); err != nil {
			return err
		}
	}
	stable, err := f.boolean(v["until_stable"], "until_stable")
	switch {
	case err != nil:
		return err
	case stable && v["cycles"] != nil:
		return f.fail(v["until_stable"], "cycles and until_stable exclude each other")
	case stable:
		s.cycles = 0
	}
	return nil
}

// boolean reads a key that is true or false; nil is false.
func (f *file) boolean(n ast.Node, name string) (bool, error) {
	if n == nil {
		return false, nil
	}
	b, ok := n.(*ast.BoolNode)
	if !ok {
		return false, f.fail(n, "%s must be true or false", name)
	}
	return b.Value, nil
}

// policy compiles `plan` or `plan_file` and gives its text; nil when neither is given.
func (f *file) policy(v map[string]ast.Node) (p *plan.Policy, text []byte, err error) {
	in, ok, err := f.find(v, "plan")
	if err != nil || !ok {
		return nil, nil, err
	}
	name := f.name
	if in.path != "" {
		name = in.path
		if text, err = readFile(name); err != nil {
			return nil, nil, f.fail(in.node, "%v", err)
		}
	} else if text, err = f.source(in.node, "plan"); err != nil {
		return nil, nil, err
	}
	p, err = plan.Parse(name, text)
	return p, text, err
}

// hosts decodes `hosts` or `hosts_file`; nil when neither is given.
func (f *file) hosts(v map[string]ast.Node, dimensions []string) (*feed[*cluster.HostTable], error) {
	in, ok, err := f.find(v, "hosts")
	if err != nil || !ok {
		return nil, err
	}
	return decode(f, in, dimensions, table.ReadHosts)
}

func readHoldings(releases bool) func(io.Reader, table.Options) (*cluster.HoldingTable, error) {
	return func(r io.Reader, o table.Options) (*cluster.HoldingTable, error) {
		return table.ReadHoldings(r, o, releases)
	}
}

// feeds decodes demand or running rows: a list or a file is of the source `default`, a mapping is by source.
func feeds[T any](
	f *file, v map[string]ast.Node, what string, dimensions []string, read func(io.Reader, table.Options) (T, error),
) ([]*feed[T], error) {
	in, ok, err := f.find(v, what)
	if err != nil || !ok {
		return nil, err
	}
	by := []pair{{key: sourceDefault, value: in.node}}
	if _, mapping := in.node.(*ast.MappingNode); mapping {
		if by, err = f.pairs(in.node, what); err != nil {
			return nil, err
		}
	}
	var all []*feed[T]
	for _, p := range by {
		in.node = p.value
		fd, err := decode(f, in, dimensions, read)
		if err != nil {
			return nil, err
		}
		fd.source = p.key
		all = append(all, fd)
	}
	return all, nil
}
