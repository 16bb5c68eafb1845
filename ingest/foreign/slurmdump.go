package foreign

import "strings"

// fairShareParent is what sacctmgr writes for Fairshare=parent.
const fairShareParent = "2147483647"

// joinTypes puts words together that the colon of a typed resource cut apart: gres/gpu and a100=2.
func joinTypes(words []string) (joined []string) {
	for i, w := range words {
		key, _, setting := strings.Cut(w, "=")
		last := len(joined) - 1
		if i > 1 && (!setting || !settingName(key)) && takesTypes(joined[last]) {
			joined[last] += ":" + w
			continue
		}
		joined = append(joined, w)
	}
	return joined
}

// takesTypes tells whether a setting is a list of trackable resources, which may have types.
func takesTypes(word string) bool {
	key, _, _ := strings.Cut(strings.ToLower(word), "=")
	return strings.Contains(key, "tres")
}

// settingName tells whether a word is the name of a setting: sacctmgr's begin with a capital letter and have no digit.
func settingName(word string) bool {
	return word != "" && word[0] >= 'A' && word[0] <= 'Z' && !strings.ContainsAny(word, "0123456789_-/")
}

// clusterLimit lists limits of the line Cluster: they hold for all accounts together, and no consumer is above all of
// them.
func (s *slurm) clusterLimit(file string, line int) {
	if len(s.root.limit) > 0 {
		s.result.Report.Add(file, line, "limits of the cluster",
			"a limit is of a consumer, and the root has none: all accounts together may use all nodes")
	}
	s.root.limit = nil
}

// dumpedQOS takes a line QOS of a dump.
func (s *slurm) dumpedQOS(file string, line int, name string, words []string) {
	q := slurmQOS{name: name, file: file, line: line}
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		value = strings.Trim(value, "'")
		switch strings.ToLower(key) {
		case "grptres":
			q.group = value
		case "maxtresperaccount", "maxtrespa":
			q.perAccount = value
		case "maxtresperuser", "maxtrespu":
			q.perUser = value
		case "description":
		default:
			if !ok {
				s.faults.add(file, line, "%q: must be Key=Value", shorten(w))
				continue
			}
			s.result.Report.Add(file, line, "QOS "+key, "a QOS is known by its limits on amounts only")
		}
	}
	s.qos = append(s.qos, q)
}
