package foreign

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// slurmAccount is an account, or a user of one.
type slurmAccount struct {
	name, path string
	file       string
	line       int
	user       bool
	share      int64 // fair share
	limit      map[string]int64
	qos        []string // nil: as above it
	up         *slurmAccount
	children   []*slurmAccount
}

// slurmQOS is a quality of service.
type slurmQOS struct {
	name                       string
	file                       string
	line                       int
	group, perAccount, perUser string // GrpTRES, MaxTRESPA, MaxTRESPU
}

const (
	lostUsage = "`budget` of a consumer is for a day, a week or a month, not for all time"
	lostLife  = "the life of work is the client's affair"
)

// accountLost tells why what sacctmgr says of an account or user has no counterpart.
var accountLost = map[string]string{
	"description":           "is for people",
	"organization":          "is for people",
	"defaultaccount":        "a row of demand names its consumer itself",
	"defaultqos":            "qualities of service are not known",
	"defaultwckey":          "is for accounting",
	"wckeys":                "is for accounting",
	"adminlevel":            "roles are `admins` and `users` of a consumer, by the names that tokens have there",
	"coordinator":           "roles are `admins` and `users` of a consumer, by the names that tokens have there",
	"grpjobs":               jobCounts.lack(),
	"grpsubmitjobs":         jobCounts.lack(),
	"maxjobs":               jobCounts.lack(),
	"maxsubmitjobs":         jobCounts.lack(),
	"grptresmins":           lostUsage,
	"grpcpumins":            lostUsage,
	"grptresrunmins":        "how long work will still run is not known",
	"maxtresmins":           jobLimits.lack(),
	"maxcpumins":            jobLimits.lack(),
	"grpwall":               lostUsage,
	"maxwall":               lostLife,
	"maxwalldurationperjob": lostLife,
	"maxtres":               jobLimits.lack(),
	"maxtresperjob":         jobLimits.lack(),
	"maxnodes":              jobLimits.lack(),
	"maxnodesperjob":        jobLimits.lack(),
	"maxcpus":               jobLimits.lack(),
	"maxtrespernode":        jobLimits.lack(),
	"priority":              jobPriority.lack(),
	"grpnodes":              "nodes are not counted",
	"minprioritythreshold":  jobPriority.lack(),
}

// accounts reads what `sacctmgr dump` wrote.
func (s *slurm) accounts(f File) {
	text, err := readWhole(f.Name, f.R)
	if err != nil {
		s.faults.count++
		s.faults.lines = append(s.faults.lines, err.Error())
		return
	}
	by := map[string]*slurmAccount{"root": s.root}
	var parent *slurmAccount
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		kind, rest, ok := strings.Cut(line, " - ")
		words := joinTypes(splitQuoted(rest))
		if !ok || len(words) == 0 {
			s.faults.add(f.Name, n, "%q: must be such as Account - 'name':Fairshare=1", shorten(line))
			continue
		}
		a := &slurmAccount{name: strings.Trim(words[0], "'"), file: f.Name, line: n, share: 1, up: parent}
		switch strings.TrimSpace(kind) {
		case "Cluster":
			s.root.line, s.root.file = n, f.Name
			s.association(s.root, words[1:])
			s.clusterLimit(f.Name, n)
		case "QOS":
			s.dumpedQOS(f.Name, n, a.name, words[1:])
		case "Parent":
			if parent = by[a.name]; parent == nil {
				s.faults.add(f.Name, n, "Parent - '%s': no line before is of an account of that name", a.name)
			}
		case "Account", "User":
			a.user = strings.TrimSpace(kind) == "User"
			if s.adopt(a, words[1:]) && !a.user {
				if by[a.name] != nil {
					s.faults.add(f.Name, n, "account %s is there twice", a.name)
				}
				by[a.name] = a
			}
		default:
			s.result.Report.Add(f.Name, n, kind, "is none of Cluster, Parent, Account, User")
		}
	}
	if len(s.root.children) == 0 {
		s.faults.add(f.Name, 0, "no account in it")
	}
}

// adopt puts an account or user below its parent.
func (s *slurm) adopt(a *slurmAccount, words []string) bool {
	if a.up == nil {
		s.faults.add(a.file, a.line, "%s has no line Parent before it", a.name)
		return false
	}
	partition := s.association(a, words)
	name := a.name
	if partition != "" {
		name += "@" + partition
	}
	if slices.ContainsFunc(a.up.children, func(o *slurmAccount) bool { return o.path == a.up.path+"/"+name }) {
		name = map[bool]string{true: "user ", false: "account "}[a.user] + name
	}
	a.path = a.up.path + "/" + name
	depth := strings.Count(a.path, "/")
	switch why := nameFault(name); {
	case why != "":
		s.faults.add(a.file, a.line, "name %q %s", name, why)
		return false
	case len(s.p.consumers) >= consumersMax:
		s.faults.add(a.file, a.line, "there are more than %d accounts and users", consumersMax)
		return false
	case depth > 16 || len(a.path) > 256:
		s.faults.add(a.file, a.line, "%s lies too deep: more than 16 levels or 256 bytes", a.path)
		return false
	case slices.ContainsFunc(a.up.children, func(o *slurmAccount) bool { return o.path == a.path }):
		s.faults.add(a.file, a.line, "%s is there twice", a.path)
		return false
	}
	a.up.children = append(a.up.children, a)
	s.p.consumers = append(s.p.consumers, a.path)
	s.result.Report.Carry(map[bool]string{true: "user", false: "account"}[a.user], 1)
	return true
}

// association reads the settings of a line of sacctmgr, and gives the partition that it is for.
func (s *slurm) association(a *slurmAccount, words []string) (partition string) {
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		value = strings.Trim(value, "'")
		switch low := strings.ToLower(key); {
		case !ok:
			s.faults.add(a.file, a.line, "%q: must be Key=Value", shorten(w))
		case low == "fairshare" || low == "shares":
			s.fairShare(a, value)
		case low == "grptres" || low == "grpcpus":
			if low == "grpcpus" {
				value = "cpu=" + value
			}
			a.limit = s.tres(a.file, a.line, key, value, a.limit)
		case low == "qos":
			a.qos = strings.Split(value, ",")
		case low == "partition":
			partition = value
			s.result.Report.Add(a.file, a.line, "Partition",
				"where an allocation may run is its requirement: select("+s.partitionName(value)+")")
		default:
			why := accountLost[low]
			if why == "" {
				why = "has no counterpart"
			}
			s.result.Report.Add(a.file, a.line, key, why)
		}
	}
	return partition
}

func (s *slurm) fairShare(a *slurmAccount, value string) {
	if strings.EqualFold(value, "parent") || value == fairShareParent {
		s.result.Report.Add(a.file, a.line, "Fairshare="+value,
			"users below an account have ratios among each other; this one has 1")
		return
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > 1<<31 {
		s.faults.add(a.file, a.line, "Fairshare %q: must be a whole number from 0 on, or parent", value)
		return
	}
	a.share = n
	s.result.Report.Carry("fair share", 1)
}

// tres reads limits such as cpu=100,mem=500G,gres/gpu=8, and adds them to those that are there; the lower one counts.
func (s *slurm) tres(file string, line int, key, text string, limit map[string]int64) map[string]int64 {
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || value == "-1" || value == "" {
			continue // no limit
		}
		n, good := tresAmount(name, value)
		if !good {
			s.faults.add(file, line, "%s %q: %q must be such as cpu=100 or mem=500G", key, text, part)
			continue
		}
		d := s.limitDimension(name)
		if d < 0 {
			why := "is no dimension of the hosts"
			if strings.Contains(name, ":") {
				why = "a type of a generic resource is an attribute of its hosts, not a dimension"
			}
			s.result.Report.Add(file, line, key+" of "+name, why)
			continue
		}
		dim := s.p.dims[d]
		if limit == nil {
			limit = map[string]int64{}
		}
		if old, has := limit[dim]; !has || n < old {
			limit[dim] = n
		}
	}
	return limit
}

// limitDimension returns the dimension that a limit such as cpu, mem or gres/gpu is of, or -1.
func (s *slurm) limitDimension(name string) int {
	gres, generic := strings.CutPrefix(name, "gres/")
	switch {
	case name == "cpu":
		return slices.Index(s.p.dims, slurmCPUs)
	case name == "mem":
		return slices.Index(s.p.dims, slurmMemory)
	case generic && !strings.Contains(gres, ":"):
		return s.p.dimKnown(gres)
	}
	return -1
}

// tresAmount reads an amount; memory is in MiB, and may end in K, M, G, T.
func tresAmount(name, value string) (int64, bool) {
	times, divide := int64(1), int64(1)
	if name == "mem" {
		for suffix, factor := range map[string]int64{"M": 1, "G": 1 << 10, "T": 1 << 20} {
			if cut, has := strings.CutSuffix(strings.ToUpper(value), suffix); has {
				value, times = cut, factor
			}
		}
		if cut, has := strings.CutSuffix(strings.ToUpper(value), "K"); has {
			value, divide = cut, 1<<10
		}
	}
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v >= 0 && v <= 1<<40) {
		return 0, false
	}
	return int64(v * float64(times) / float64(divide)), true
}

// readQOS reads what `sacctmgr --parsable2 show qos` wrote: fields between bars, their names in the first line.
func (s *slurm) readQOS(f File) {
	text, err := readWhole(f.Name, f.R)
	if err != nil {
		s.faults.count++
		s.faults.lines = append(s.faults.lines, err.Error())
		return
	}
	r := csv.NewReader(strings.NewReader(string(text)))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '|', true, 0
	var head []string
	for {
		row, err := r.Read()
		if err != nil {
			if bad := (*csv.ParseError)(nil); errors.As(err, &bad) {
				s.faults.add(f.Name, bad.Line, "%v", bad.Err)
			}
			break
		}
		line, _ := r.FieldPos(0)
		if head == nil {
			if head = row; !slices.Contains(head, "Name") {
				s.faults.add(f.Name, 1, "has no column Name: it is what sacctmgr --parsable2 show qos writes")
				return
			}
			continue
		}
		q := slurmQOS{file: f.Name, line: line}
		for i, value := range row {
			switch column := head[i]; {
			case value == "" || column == "":
			case column == "Name":
				q.name = value
			case column == "GrpTRES":
				q.group = value
			case column == "MaxTRESPA" || column == "MaxTRESPerAccount":
				q.perAccount = value
			case column == "MaxTRESPU" || column == "MaxTRESPerUser":
				q.perUser = value
			case column == "UsageFactor" && value == "1.000000" || column == "PreemptMode" && value == "cluster" ||
				value == "0" || value == "00:00:00":
				// what it is where nobody sets it
			default:
				s.result.Report.Add(f.Name, line, "QOS "+column, "a QOS is known by its limits on amounts alone")
			}
		}
		s.qos = append(s.qos, q)
	}
}

// effective is the list of qualities of service that an association may use.
func (a *slurmAccount) effective() []string {
	for at := a; at != nil; at = at.up {
		if at.qos != nil {
			return at.qos
		}
	}
	return nil
}

// walk calls a function for an account and all below it, parents first.
func (a *slurmAccount) walk(f func(*slurmAccount)) {
	f(a)
	for _, c := range a.children {
		c.walk(f)
	}
}

// limitQOS gives the limits of a QOS to those who have it alone: per account and per user to each, of all together
// where one branch has it.
func (s *slurm) limitQOS(q slurmQOS) {
	alone, mixed := 0, 0
	var tops []*slurmAccount
	s.root.walk(func(a *slurmAccount) {
		list := a.effective()
		switch has := slices.Contains(list, q.name); {
		case a == s.root || !has:
			return
		case len(list) > 1:
			mixed++
			return
		}
		if alone++; a.up == s.root || !slices.Equal(a.up.effective(), []string{q.name}) {
			tops = append(tops, a)
		}
		if q.perAccount != "" && !a.user {
			a.limit = s.tres(q.file, q.line, "MaxTRESPA", q.perAccount, a.limit)
		}
		if q.perUser != "" && a.user {
			a.limit = s.tres(q.file, q.line, "MaxTRESPU", q.perUser, a.limit)
		}
	})
	why := ""
	switch {
	case mixed > 0:
		why = "some who have it have other qualities of service too, and work says nothing of which it uses"
	case alone == 0:
		why = "no account or user has it"
	}
	if why != "" && (q.perAccount != "" || q.perUser != "" || q.group != "") {
		s.result.Report.Add(q.file, q.line, "limits of QOS "+q.name, why)
	}
	switch {
	case q.group == "" || why != "":
	case len(tops) == 1:
		tops[0].limit = s.tres(q.file, q.line, "GrpTRES", q.group, tops[0].limit)
	default:
		s.result.Report.Add(q.file, q.line, "GrpTRES of QOS "+q.name,
			fmt.Sprintf("%d branches have it, and a limit is of one branch", len(tops)))
	}
}

// plan makes the plan of all nodes.
func (s *slurm) plan() {
	for _, q := range s.qos {
		s.limitQOS(q)
	}
	s.p.groups = []group{{name: "all", choose: "select(" + slurmCPUs + " > 0)"}}
	m := madePlan{name: slurmPlan, groups: []string{"all"}}
	if s.decay != "" {
		m.keys = append(m.keys, "share: {half_life: "+s.decay+"}")
	}
	if len(s.root.children) == 0 {
		s.p.consumers = []string{"/jobs"}
		s.root.children = []*slurmAccount{{path: "/jobs", share: 1, up: s.root, file: s.conf}}
	}
	s.entries(&m, s.root)
	s.p.plans = []madePlan{m}
}

func (s *slurm) entries(m *madePlan, up *slurmAccount) {
	some := slices.ContainsFunc(up.children, func(a *slurmAccount) bool { return a.share > 0 })
	weights := make([]float64, len(up.children))
	for i, a := range up.children {
		weights[i] = float64(a.share)
	}
	list := ratios(weights)
	for i, a := range up.children {
		e := &entry{path: a.path, ratio: max(1, list[i]), limit: filled(len(s.p.dims), none)}
		if a.share == 0 && some {
			e.priority = -1 // it gets what the others leave
		}
		if a.line > 0 {
			e.remark = fmt.Sprintf("line %d", a.line)
		}
		for d, dim := range s.p.dims {
			if n, ok := a.limit[dim]; ok {
				e.limit[d] = n
				s.result.Report.Carry(dim+" limit", 1)
			}
		}
		m.entries = append(m.entries, e)
		s.entries(m, a)
	}
}

// splitQuoted cuts a text at colons that stand outside of single quotes.
func splitQuoted(text string) []string {
	in := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '\'' {
			in = !in
		}
		return !in && r == ':'
	})
}

// shorten keeps the beginning of a text that messages show.
func shorten(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}
