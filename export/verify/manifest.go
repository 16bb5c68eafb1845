package verify

import (
	"fmt"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// stray takes note of files that no reader looks at.
func (v *verifier) stray() {
	if n := len(v.log.Leftovers()); n > 0 {
		v.report.cannot("%d files that no published cycle names: leftovers of a crash or of a compaction, which the "+
			"next one removes", n)
	}
}

// sets are the state tables that are written together, and have a digest of their content together.
var sets = [][]string{{"consumers", "amounts"}, {"shares"}, {"shortfalls"}}

// manifest checks the files of the cycle: each is named, in the folder of its day, and says of itself what the cycle
// says; state tables are written when they differ, and keyframes when they are due.
func (v *verifier) manifest(tables map[string]*decision.Table) {
	files, err := v.log.Manifest(v.cycle)
	if err != nil {
		v.fault(Fault{Rule: "seal", Table: "cycles", What: err.Error()})
		return
	}
	there := map[string]export.File{}
	head := v.table["cycles"]
	day := time.UnixMicro(head.number["now"].at(0)).UTC().Format(time.DateOnly)
	for _, f := range files {
		there[f.Table] = f
		say := func(ok bool, expected, got, format string, args ...any) {
			v.is(Fault{Rule: "manifest", Table: f.Table, What: fmt.Sprintf(format, args...), Expected: expected,
				Got: got}, ok)
		}
		if f.Table != "cycles" {
			say(f.Named != "", "", "", "a file that the cycle does not name")
		}
		say(f.Date == day, day, f.Date, "the folder is of another day than the cycle's now")
		if f.First != f.Last || f.Named == "" && f.Table != "cycles" {
			continue // compacted files say nothing of single cycles
		}
		digest := head.words["decisions_digest"].text(0)
		say(f.Decisions == digest, digest, f.Decisions, "stint.decisions is not the cycle's decisions_digest")
		revision := grouped(head.number["revision"].at(0))
		say(f.Revision == revision, revision, f.Revision, "stint.revision is not the cycle's")
		say(f.Rules == head.words["rules_version"].text(0), head.words["rules_version"].text(0), f.Rules,
			"stint.rules is not the cycle's rules_version")
	}
	single := there["cycles"].First == there["cycles"].Last
	if single {
		v.events(there)
	}
	v.contents(there, tables, single)
	v.savedState()
	v.frames(head, single && there["holdings"].Path != "" && there["hosts"].Path != "" || !single && v.frame)
}

// savedState checks that the state after the cycle, where the cycle names one, is there as it was written. What it says
// only replay can tell.
func (v *verifier) savedState() {
	if there, err := v.log.HasState(v.cycle); there || err != nil {
		what := ""
		if err != nil {
			what = err.Error()
		}
		v.is(Fault{Rule: "seal", Table: "states", What: what}, err == nil)
	}
}

// events checks that tables of events have a file exactly when something happened, or when all tables have one: the
// first cycle of a log and of each day writes them with rows or without.
func (v *verifier) events(there map[string]export.File) {
	names := []string{"grants", "reclaims", "releases", "plans", "inputs"}
	all := there["ownership"].Path != ""
	for _, name := range names {
		all = all && there[name].Path != ""
	}
	for _, name := range names {
		if t := v.table[name]; t != nil {
			v.is(Fault{Rule: "manifest", Table: name, What: "a file without rows, or rows without a file"},
				all || (there[name].Path != "") == (t.n > 0))
		}
	}
}

// contents checks the digests of state tables, and that they are written exactly when they differ from what was
// written last; in the first cycle of a UTC day always.
func (v *verifier) contents(there map[string]export.File, tables map[string]*decision.Table, single bool) {
	if v.content == nil {
		v.content = make([]string, len(sets))
	}
	for i, names := range sets {
		here := v.fresh(names[0])
		if !here {
			continue
		}
		var members []*decision.Table
		for _, name := range names {
			v.is(Fault{Rule: "manifest", Table: name, What: "it is not written together with " + names[0]},
				v.fresh(name))
			if tables[name] != nil {
				members = append(members, tables[name])
			}
		}
		if len(members) != len(names) {
			continue
		}
		got := contentOf(members)
		first := v.cycle == v.report.First || v.lastCycle == 0 ||
			dayOf(v.table["cycles"].number["now"].at(0)) != dayOf(v.last)
		v.is(Fault{Rule: "manifest", Table: names[0], What: "it is written, and says what it said before"},
			first || got != v.content[i])
		for _, name := range names {
			v.is(Fault{Rule: "manifest", Table: name, What: "stint.content is not the digest of the tables",
				Expected: got, Got: there[name].Content},
				!single || there[name].Content == got)
		}
		v.content[i] = got
	}
}

// frames checks that there is a keyframe where one is due: in the first cycle of a UTC day, and in every 60th.
func (v *verifier) frames(head *rows, is bool) {
	now := head.number["now"].at(0)
	due := (v.cycle-1)%60 == 0 || v.lastCycle > 0 && dayOf(now) != dayOf(v.last)
	v.is(Fault{Rule: "manifest", Table: "holdings", What: "no keyframe, and one is due"}, !due || is)
}
