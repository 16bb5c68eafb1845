package foreign

import (
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The dimensions of Slurm; generic resources such as gpu follow under their names. slurmPartition stands before the
// names of the attributes that tell which partitions a host is in.
const (
	slurmPlan      = "slurm"
	slurmCPUs      = "cpus"
	slurmMemory    = "memory_mb"
	slurmPartition = "partition_"
	slurmWeight    = "weight" // attribute of hosts
)

// Bounds of Slurm's files.
const (
	slurmIncludesMax  = 100
	slurmLineBytesMax = 1 << 20
)

// SlurmOptions are the files beside slurm.conf; each may be nil.
type SlurmOptions struct {
	Gres     *File                                    // gres.conf
	Accounts *File                                    // sacctmgr dump
	QOS      *File                                    // sacctmgr --parsable2 show qos
	Open     func(name string) (io.ReadCloser, error) // of files that slurm.conf includes
}

// slurm is a cluster's files while they are read.
type slurm struct {
	o        SlurmOptions
	faults   faults
	result   *Result
	p        policy
	includes int
	open     []string // files being read, for circles
	conf     string   // slurm.conf

	nodes      []hostRow
	at         map[string]int // node by name
	defaults   map[string]slurmLine
	partitions []slurmLine
	sets       map[string]string // NodeSet: its nodes
	quiet      []Note            // settings that concern nobody's part, told last
	selects    slurmLine         // the line with SelectTypeParameters
	decay      string            // PriorityDecayHalfLife as a duration of stint, "": not given
	root       *slurmAccount
	qos        []slurmQOS
}

// slurmLine is a line of keys and values, keys in small letters.
type slurmLine struct {
	file  string
	line  int
	keys  []string // in order, as written
	value map[string]string
}

// Slurm reads slurm.conf and what belongs to it. Faults name file, line, value and reason.
func Slurm(conf File, o SlurmOptions) (*Result, error) {
	s := &slurm{o: o, result: &Result{Name: "slurm"}, conf: conf.Name, at: map[string]int{},
		defaults: map[string]slurmLine{}, sets: map[string]string{}}
	s.p.cluster = "slurm"
	s.p.names.fix(slurmWeight)
	s.p.dim(slurmCPUs)
	s.p.dim(slurmMemory)
	s.lines(conf, s.confLine)
	s.dimensions()
	s.place()
	if o.Gres != nil {
		s.lines(*o.Gres, s.gresLine)
	}
	s.root = &slurmAccount{name: "root"}
	if o.QOS != nil {
		s.readQOS(*o.QOS)
	}
	if o.Accounts != nil {
		s.accounts(*o.Accounts)
	}
	if len(s.nodes) == 0 {
		s.faults.add(conf.Name, 0, "no NodeName in it")
	}
	if err := s.faults.err(); err != nil {
		return nil, err
	}
	s.plan()
	s.result.Report.notes = append(s.result.Report.notes, s.quiet[:min(len(s.quiet), notesMax)]...)
	s.attributes()
	s.p.heading = []string{"A cluster of Slurm: accounts share all nodes by their fair shares of what is held now."}
	return s.p.finish(s.result, s.nodes, s.p.everything(func(string) []hostRow { return s.nodes }),
		demandMade)
}

// lines reads a file of lines `Key=Value Key=Value`, in which # begins a comment and \ at the end continues a line.
func (s *slurm) lines(f File, take func(slurmLine)) {
	text, err := readWhole(f.Name, f.R)
	if err != nil {
		s.faults.count++
		s.faults.lines = append(s.faults.lines, err.Error())
		return
	}
	s.open = append(s.open, f.Name)
	held, first := "", 0
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		if held == "" {
			first = n
		}
		line, more := strings.CutSuffix(held+line, "\\")
		if held = ""; more {
			held = line
		}
		if len(line) > slurmLineBytesMax {
			s.faults.add(f.Name, first, "a line is longer than %d bytes", slurmLineBytesMax)
			break
		}
		if !more {
			s.split(f.Name, first, line, take)
		}
	}
	if held != "" {
		s.faults.add(f.Name, first, "the file ends within a line that \\ continues")
	}
	s.open = s.open[:len(s.open)-1]
}

// split cuts a line into its keys and values.
func (s *slurm) split(file string, n int, text string, take func(slurmLine)) {
	text, _, _ = strings.Cut(text, "#")
	text = spacedEquals.ReplaceAllString(text, "=")
	l := slurmLine{file: file, line: n, value: map[string]string{}}
	words := quotedFields(text)
	if len(words) == 0 {
		return
	}
	if strings.EqualFold(words[0], "include") && len(words) == 2 {
		s.include(file, n, words[1], take)
		return
	}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" {
			s.faults.add(file, n, "%q: must be Key=Value", w)
			return
		}
		low := strings.ToLower(key)
		if _, twice := l.value[low]; twice {
			s.faults.add(file, n, "%s is there twice", key)
			return
		}
		l.keys, l.value[low] = append(l.keys, key), strings.Trim(value, `"`)
	}
	take(l)
}

// spacedEquals are the blanks that Slurm allows around the first = of a setting.
var spacedEquals = regexp.MustCompile(`[ \t]+=[ \t]*|=[ \t]+`)

// quotedFields cuts a text at blanks that stand outside of double quotes.
func quotedFields(text string) (words []string) {
	in := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			in = !in
		}
		return !in && (r == ' ' || r == '\t')
	})
}

// include reads a file that a line includes: as it is named, or beside the file that names it.
func (s *slurm) include(file string, n int, name string, take func(slurmLine)) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), name)
	}
	switch s.includes++; {
	case s.includes > slurmIncludesMax:
		s.faults.add(file, n, "Include %s: more than %d files are included", name, slurmIncludesMax)
		return
	case slices.Contains(s.open, path):
		s.faults.add(file, n, "Include %s: the file includes itself", name)
		return
	case s.o.Open == nil:
		s.faults.add(file, n, "Include %s: there are no other files", name)
		return
	}
	r, err := s.o.Open(path)
	if err != nil && filepath.IsAbs(name) {
		path = filepath.Join(filepath.Dir(file), filepath.Base(name))
		r, err = s.o.Open(path)
	}
	if err != nil {
		s.faults.add(file, n, "Include %s: %v", name, err)
		return
	}
	defer r.Close()
	s.lines(File{path, r}, take)
}

// confLine takes a line of slurm.conf.
func (s *slurm) confLine(l slurmLine) {
	switch first := strings.ToLower(l.keys[0]); first {
	case "nodename":
		if !s.setDefault(first, l) {
			s.nodeLine(s.withDefault(first, l))
		}
	case "partitionname":
		if !s.setDefault(first, l) {
			s.partitions = append(s.partitions, s.withDefault(first, l))
		}
	case "nodeset":
		s.sets[l.value[first]] = l.value["nodes"]
		s.rest(l, []string{first, "nodes"}, "node sets by features or names are not known: give Nodes")
	case "downnodes":
		s.rest(l, nil, "a host's state is a column of the hosts: closed, draining or unavail")
	default:
		for _, key := range l.keys {
			s.setting(l, key)
		}
	}
}

// setDefault notes what a line with the name DEFAULT gives the lines after it.
func (s *slurm) setDefault(kind string, l slurmLine) bool {
	if !strings.EqualFold(l.value[kind], "DEFAULT") {
		return false
	}
	s.defaults[kind] = s.withDefault(kind, l)
	return true
}

// withDefault is a line with what the last line of the name DEFAULT gives beside.
func (s *slurm) withDefault(kind string, l slurmLine) slurmLine {
	d, ok := s.defaults[kind]
	if !ok {
		return l
	}
	l.value = maps.Clone(l.value)
	for _, key := range d.keys {
		low := strings.ToLower(key)
		if _, given := l.value[low]; !given {
			l.keys, l.value[low] = append(slices.Clone(l.keys), key), d.value[low]
		}
	}
	return l
}

// rest lists the keys of a line that are not among those that are used.
func (s *slurm) rest(l slurmLine, used []string, why string) {
	for _, key := range l.keys {
		if !slices.Contains(used, strings.ToLower(key)) {
			s.result.Report.Add(l.file, l.line, key, why)
		}
	}
}

// setting takes a setting of the cluster as a whole.
func (s *slurm) setting(l slurmLine, key string) {
	low := strings.ToLower(key)
	switch low {
	case "clustername":
		s.p.cluster = l.value[low]
		return
	case "selecttypeparameters":
		s.selects = slurmLine{file: l.file, line: l.line, value: l.value}
	case "prioritydecayhalflife":
		s.halfLife(l, key, l.value[low])
		return
	}
	if why := slurmSettings[low]; why != "" {
		s.result.Report.Add(l.file, l.line, key, why)
		return
	}
	for _, prefix := range []string{"priority", "preempt", "sched", "select"} {
		if strings.HasPrefix(low, prefix) {
			s.result.Report.Add(l.file, l.line, key, slurmSettings[prefix])
			return
		}
	}
	s.quiet = append(s.quiet, Note{File: l.file, Line: l.line, What: key,
		Reason: "concerns daemons, paths, times or accounting, not who gets what", Count: 1})
}

// slurmSettings tells why settings that concern who gets what have no counterpart.
var slurmSettings = map[string]string{
	"priority": "who comes next goes by what is held now ÷ fair share; age, size, QOS and usage of " +
		"the past do not count",
	"preempt": "what is above its part is taken back by fair reclaim, with the `reclaim_grace` of " +
		"who has it",
	"sched": "stint decides in cycles, `interval` apart; nothing is planned ahead",
	"select": "a unit takes the amounts it asks for, of every dimension; sockets and cores are " +
		"not known",
	"grestypes":                "a generic resource is what nodes have of it",
	"accountingstoragetres":    "every dimension of the hosts counts",
	"accountingstorageenforce": "limits of consumers always hold",
	"enforcepartlimits":        "limits of partitions are not supported",
	"overtimelimit":            "the life of work is the client's affair",
	"defmempercpu":             "a unit asks for its memory itself",
	"defmempernode":            "a unit asks for its memory itself",
	"defmempergpu":             "a unit asks for its memory itself",
	"defcpupergpu":             "a unit asks for its CPUs itself",
	"maxmempergpu":             "units may be as large as a host",
	"jobrequeue":               "work whose units were taken back is asked for again by its client",
	"maxmempercpu":             "units may be as large as a host",
	"maxmempernode":            "units may be as large as a host",
	"maxjobcount":              jobCounts.lack(),
	"maxarraysize":             jobCounts.lack(),
	"licenses":                 countables.lack(),
	"resumeprogram":            "hosts are those of the table of hosts; none is started or stopped",
	"suspendprogram":           "hosts are those of the table of hosts; none is started or stopped",
	"topologyplugin":           togetherInstead,
}

// nodeLine makes hosts of a line NodeName=….
func (s *slurm) nodeLine(l slurmLine) {
	names, err := hostList(l.value["nodename"], hostsMax-len(s.nodes))
	if err != nil {
		s.faults.add(l.file, l.line, "NodeName: %v", err)
		return
	}
	size := map[string]int64{slurmCPUs: s.cpus(l), slurmMemory: s.number(l, "realmemory", 1)}
	text, kinds := map[string]string{}, map[string]string{}
	s.gres(l, l.value["gres"], size, kinds)
	closed, there := s.nodeState(l)
	if !there {
		return
	}
	var features []string
	for f := range strings.SplitSeq(l.value["feature"]+","+l.value["features"], ",") {
		if f != "" {
			features = append(features, f)
		}
	}
	if w := l.value["weight"]; w != "" {
		text[slurmWeight] = w
	}
	for _, name := range names {
		if why := nameFault(name); why != "" {
			s.faults.add(l.file, l.line, "NodeName %q %s", name, why)
			return
		}
		if _, twice := s.at[name]; twice {
			s.faults.add(l.file, l.line, "node %s is there twice, first on line %d", name, s.nodes[s.at[name]].line)
			return
		}
		s.at[name] = len(s.nodes)
		s.nodes = append(s.nodes, hostRow{name: name, size: maps.Clone(size), text: maps.Clone(text),
			feature: features, kinds: kinds, closed: closed, line: l.line})
	}
	s.result.Report.Carry("node", len(names))
	s.rest(l, []string{"nodename", "cpus", "procs", "boards", "sockets", "socketsperboard", "corespersocket",
		"threadspercore", "realmemory", "gres", "state", "feature", "features", "weight", "nodeaddr", "nodehostname",
		"port"}, "has no counterpart for a host")
}

// number is a whole number of a line, at most 2^40 as no node has more of anything.
func (s *slurm) number(l slurmLine, key string, missing int64) int64 {
	text := l.value[key]
	if text == "" {
		return missing
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<40 {
		s.faults.add(l.file, l.line, "%s %q: must be a whole number", key, text)
		return missing
	}
	return n
}

// nodeState tells whether hosts of a line are closed, or not there.
func (s *slurm) nodeState(l slurmLine) (closed, there bool) {
	switch state := strings.ToUpper(l.value["state"]); state {
	case "", "UNKNOWN", "IDLE", "CLOUD":
		return false, true
	case "FUTURE":
		s.result.Report.Add(l.file, l.line, "nodes in state FUTURE", "they are not there yet: they are no hosts")
		return false, false
	case "DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING":
		return true, true
	default:
		s.result.Report.Add(l.file, l.line, "State="+state, "is no state of a node that is known: the host is ok")
		return false, true
	}
}

// gres adds generic resources such as gpu:a100:4(S:0-1),nvme:2 to a size, and their types by resource.
func (s *slurm) gres(l slurmLine, text string, size map[string]int64, types map[string]string) {
	for _, one := range splitOutside(text, ',') {
		one, _, _ = strings.Cut(strings.TrimSpace(one), "(")
		if one == "" || strings.EqualFold(one, "none") {
			continue
		}
		name, kind, n, ok := gresOf(one)
		if !ok {
			s.faults.add(l.file, l.line, "Gres %q: must be such as gpu:4 or gpu:a100:4", one)
			continue
		}
		dim := s.p.dims[s.p.dim(name)]
		size[dim] += n
		switch {
		case kind == "":
		case types[name] != "" && types[name] != kind:
			s.result.Report.Add(l.file, l.line, "types of "+name+" on one node",
				"a host has one amount of "+dim+", and its attribute names the first type only")
		default:
			types[name] = kind
		}
	}
}

// gresOf reads gpu, gpu:4 or gpu:a100:4; counts may end in K, M or G.
func gresOf(text string) (name, kind string, n int64, ok bool) {
	parts := strings.Split(strings.TrimSuffix(text, ":no_consume"), ":")
	name, n = parts[0], 1
	last := parts[len(parts)-1]
	times := int64(1)
	for suffix, factor := range map[string]int64{"K": 1 << 10, "M": 1 << 20, "G": 1 << 30} {
		if cut, has := strings.CutSuffix(last, suffix); has && cut != "" && strings.Trim(cut, "0123456789") == "" {
			last, times = cut, factor
		}
	}
	number, err := strconv.ParseInt(last, 10, 64)
	switch {
	case len(parts) > 3 || name == "":
		return "", "", 0, false
	case len(parts) > 1 && err == nil && number >= 0 && number <= 1<<20:
		n, parts = number*times, parts[:len(parts)-1]
	case len(parts) == 3:
		return "", "", 0, false
	}
	if len(parts) == 2 {
		kind = parts[1]
	}
	return name, kind, n, true
}

// partitionLost tells why keys of a partition have no counterpart.
var partitionLost = map[string]string{
	"default": "a row of demand has the requirement select(partition_NAME), or runs on any host",
	"state":   "a partition that is not UP takes demand here; leave it out of the demand",
	"maxtime": "the life of work is the client's affair", "defaulttime": "the life of work is the client's affair",
	"prioritytier": "partitions have no priorities", "priorityjobfactor": "partitions have no priorities",
	"priority":      "partitions have no priorities",
	"preemptmode":   "what is above its part is taken back by fair reclaim",
	"gracetime":     "`reclaim_grace` is of a consumer",
	"allowaccounts": "who may use a partition is not limited", "denyaccounts": "who may use a partition is not limited",
	"allowgroups": "who may use a partition is not limited", "allowqos": "who may use a partition is not limited",
	"denyqos": "who may use a partition is not limited", "qos": "limits of a partition's QOS are not supported",
	"maxnodes": jobLimits.lack(), "minnodes": jobLimits.lack(),
	"maxcpuspernode":     jobLimits.lack(),
	"oversubscribe":      "a unit's amounts are its own; `overcommit` is of a plan",
	"exclusiveuser":      "hosts are shared by units of all consumers",
	"tresbillingweights": "a unit counts by the dimension it needs most of",
	"defmempercpu":       "a unit asks for its memory itself",
}

// place gives hosts the attributes of their partitions; hosts in none are closed, as Slurm gives nobody their nodes.
func (s *slurm) place() {
	in := make([]bool, len(s.nodes))
	seen := map[string]bool{}
	for _, l := range s.partitions {
		name := l.value["partitionname"]
		if seen[name] || name == "" {
			s.faults.add(l.file, l.line, "partition %q is without a name or there twice", name)
			continue
		}
		seen[name] = true
		s.result.Report.Carry("partition", 1)
		for _, n := range s.members(l) {
			in[n] = true
			s.nodes[n].partition = append(s.nodes[n].partition, name)
		}
		for _, key := range l.keys {
			low := strings.ToLower(key)
			if low == "partitionname" || low == "nodes" || low == "state" && strings.EqualFold(l.value[low], "UP") {
				continue
			}
			why := partitionLost[low]
			if why == "" {
				why = "has no counterpart: a partition is an attribute of its hosts"
			}
			s.result.Report.Add(l.file, l.line, "PartitionName "+key, why)
		}
	}
	if len(s.partitions) == 0 {
		return
	}
	for i := range s.nodes {
		if !in[i] && !s.nodes[i].closed {
			s.nodes[i].closed = true
			s.result.Report.Add(s.conf, s.nodes[i].line, "nodes in no partition",
				"nobody can use them: their hosts are closed")
		}
	}
}

// members are the nodes of a partition.
func (s *slurm) members(l slurmLine) (rows []int) {
	text := l.value["nodes"]
	if strings.EqualFold(text, "ALL") {
		for i := range s.nodes {
			rows = append(rows, i)
		}
		return rows
	}
	for _, part := range splitOutside(text, ',') {
		if set, ok := s.sets[strings.TrimSpace(part)]; ok {
			part = set
		}
		names, err := hostList(part, hostsMax)
		if err != nil {
			s.faults.add(l.file, l.line, "Nodes of partition %s: %v", l.value["partitionname"], err)
			return nil
		}
		for _, name := range names {
			i, ok := s.at[name]
			if !ok {
				s.faults.add(l.file, l.line, "partition %s has node %s, and no NodeName is of it",
					l.value["partitionname"], name)
				return nil
			}
			rows = append(rows, i)
		}
	}
	return rows
}

// gresLine compares a line of gres.conf with what slurm.conf says of its nodes.
func (s *slurm) gresLine(l slurmLine) {
	name := l.value["name"]
	if name == "" {
		s.rest(l, []string{"nodename"}, "what nodes have is what slurm.conf says of them")
		return
	}
	rows := slices.Collect(maps.Values(s.at))
	if text, ok := l.value["nodename"]; ok {
		names, err := hostList(text, hostsMax)
		if err != nil {
			s.faults.add(l.file, l.line, "NodeName: %v", err)
			return
		}
		rows = rows[:0]
		for _, n := range names {
			if i, ok := s.at[n]; ok {
				rows = append(rows, i)
			} else {
				s.result.Report.Add(l.file, l.line, "node "+n, "slurm.conf has no such node")
			}
		}
	}
	count := s.number(l, "count", 1)
	if files := l.value["file"]; files != "" && l.value["count"] == "" {
		list, err := hostList(files, 1<<16)
		if err != nil {
			s.faults.add(l.file, l.line, "File: %v", err)
			return
		}
		count = int64(len(list))
	}
	s.result.Report.Carry("gres line", 1)
	dim := ""
	if d := s.p.dimKnown(name); d >= 0 {
		dim = s.p.dims[d]
	}
	if i := slices.IndexFunc(rows,
		func(i int) bool { return l.value["nodename"] != "" && s.nodes[i].size[dim] < count }); i >= 0 {
		s.result.Report.Add(l.file, l.line, fmt.Sprintf("%d %s of node %s", count, name, s.nodes[rows[i]].name),
			fmt.Sprintf("slurm.conf says %d (line %d), which counts", s.nodes[rows[i]].size[dim],
				s.nodes[rows[i]].line))
	}
	s.rest(l, []string{"name", "nodename", "file", "count", "type"}, "which device or core a unit gets is not decided")
}
