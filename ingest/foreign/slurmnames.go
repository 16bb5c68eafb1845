package foreign

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// dimensions drops memory where Slurm does not count it: its nodes then have RealMemory=1, in which no unit would fit.
func (s *slurm) dimensions() {
	given, ok := s.selects.value["selecttypeparameters"]
	if !ok || strings.Contains(strings.ToLower(given), "memory") {
		return
	}
	s.result.Report.Add(s.selects.file, s.selects.line, "memory of nodes",
		"SelectTypeParameters="+given+" does not count memory: it is no dimension")
	s.p.dims = slices.DeleteFunc(s.p.dims, func(name string) bool { return name == slurmMemory })
	for i := range s.nodes {
		delete(s.nodes[i].size, slurmMemory)
	}
}

// partitionName returns the attribute of the hosts of a partition.
func (s *slurm) partitionName(name string) string {
	return s.p.names.as("partition", name, slurmPartition+name)
}

// attributes names the attributes of hosts: partitions, types of generic resources, and features. Nodes have them under
// Slurm's names until now, because a resource of a later line may have the name of a feature.
func (s *slurm) attributes() {
	for i := range s.nodes {
		h := &s.nodes[i]
		for _, name := range h.partition {
			h.flag = append(h.flag, s.partitionName(name))
		}
		for _, resource := range slices.Sorted(maps.Keys(h.kinds)) {
			h.text[s.p.names.as("type of", resource, resource+"_type")] = h.kinds[resource]
		}
		for _, name := range h.feature {
			attribute := s.p.names.of("feature", name)
			if !slices.Contains(h.flag, attribute) {
				h.flag = append(h.flag, attribute)
			}
		}
	}
}

// halfLife takes PriorityDecayHalfLife, in minutes or as days-hours:minutes:seconds.
func (s *slurm) halfLife(l slurmLine, key, text string) {
	minutes, ok := slurmMinutes(text)
	switch {
	case !ok:
		s.faults.add(l.file, l.line, "%s %q: must be minutes, hours:minutes:seconds or days-hours", key, text)
	case minutes == 0:
		s.result.Report.Add(l.file, l.line, key+"=0",
			"usage of the past never fades in Slurm; here shares are of what is held now")
	case minutes > 8760*60:
		s.result.Report.Add(l.file, l.line, key, "a half-life is at most 8760h")
	default:
		s.decay = strconv.FormatInt(minutes, 10) + "m"
		s.result.Report.Carry("half-life", 1)
	}
}

// slurmMinutes reads a time of Slurm: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes
// or days-hours:minutes:seconds. It rounds seconds up to a minute.
func slurmMinutes(text string) (minutes int64, ok bool) {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	parts := strings.Split(clock, ":")
	weights := []int64{60}
	switch {
	case hasDays && len(parts) <= 3:
		weights = []int64{3600, 60, 1}[:len(parts)]
	case len(parts) == 2:
		weights = []int64{60, 1}
	case len(parts) == 3:
		weights = []int64{3600, 60, 1}
	case len(parts) != 1:
		return 0, false
	}
	n, err := strconv.ParseUint(days, 10, 20)
	seconds := int64(n) * 86400
	for i, part := range parts {
		v, bad := strconv.ParseUint(part, 10, 30)
		if err != nil || bad != nil {
			return 0, false
		}
		seconds += int64(v) * weights[i]
	}
	return (seconds + 59) / 60, true
}

// cpus is how many a node of a line has.
func (s *slurm) cpus(l slurmLine) int64 {
	for _, key := range []string{"cpus", "procs"} { // Procs is what Slurm called CPUs before 2.1, and still takes
		if l.value[key] != "" {
			return s.number(l, key, 1)
		}
	}
	sockets := s.number(l, "sockets", 0)
	if sockets == 0 {
		sockets = s.number(l, "boards", 1) * s.number(l, "socketsperboard", 1)
	}
	n := sockets
	for _, key := range []string{"corespersocket", "threadspercore"} {
		if n *= s.number(l, key, 1); n > 1<<20 {
			s.faults.add(l.file, l.line, "a node has more than %d CPUs", 1<<20)
			return 1
		}
	}
	return max(1, n)
}
