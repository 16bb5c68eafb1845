// Package foreign reads the files of other systems: what their administrators wrote becomes a policy file and hosts,
// what their logs tell becomes demand with times. A setting or a line that has no counterpart here is listed in a
// report with its file, line and reason; nothing is dropped in silence.
package foreign

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stintd/stint/datasets"
)

// Result is what an import made.
type Result struct {
	Name    string            // of the scenario and the report
	Dataset *datasets.Dataset // Hosts and Demand may be nil: the files tell nothing of them
	Lives   *datasets.Lives   // when the rows of Demand came and how long they ran; nil: the files do not tell
	Report  Report

	History *History       // what was asked and what was given, by time; nil: the files do not tell
	Zone    *time.Location // of the history's policy
	Play    *Playable      // what the history can be played with; nil without one
}

// Note is something that is not carried over.
type Note struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"` // the first such line; 0: the file as a whole
	What   string `json:"what"`           // the setting, or the kind of line
	Reason string `json:"reason"`
	Count  int    `json:"count"` // how often
}

// Place is the file, and the line where there is one.
func (n Note) Place() string {
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	return n.File
}

// Title is the thing with how often it is there.
func (n Note) Title() string {
	if n.Count > 1 {
		return fmt.Sprintf("%s (%d times)", n.What, n.Count)
	}
	return n.What
}

// notesMax bounds the notes of a report: files with more kinds of faults than that are not what they seem to be.
const notesMax = 10_000

// Report lists what is not carried over. Notes that differ in nothing but their line are counted together. The zero
// value is ready.
type Report struct {
	notes   []Note
	at      map[Note]int // of a note without line and count
	more    int          // notes beyond notesMax
	carried []Carried

	Renamed []Renaming // dimensions and attributes whose names differ from those in the files
}

// Carried is a kind of things that are carried over.
type Carried struct {
	What  string `json:"what"` // of one of them
	Count int    `json:"count"`
}

// Carry counts things that are carried over; the kinds are told in the order in which they were first met.
func (r *Report) Carry(what string, n int) {
	if n == 0 {
		return
	}
	i := slices.IndexFunc(r.carried, func(c Carried) bool { return c.What == what })
	if i < 0 {
		i, r.carried = len(r.carried), append(r.carried, Carried{What: what})
	}
	r.carried[i].Count += n
}

// Carried are the kinds of things that are carried over.
func (r *Report) Carried() []Carried { return r.carried }

// Add notes that something is not carried over.
func (r *Report) Add(file string, line int, what, reason string) {
	key := Note{File: file, What: what, Reason: reason}
	if i, ok := r.at[key]; ok {
		r.notes[i].Count++
		return
	}
	if len(r.notes) >= notesMax {
		r.more++
		return
	}
	if r.at == nil {
		r.at = map[Note]int{}
	}
	r.at[key] = len(r.notes)
	key.Line, key.Count = line, 1
	r.notes = append(r.notes, key)
}

// Notes are in the order in which they were first met.
func (r *Report) Notes() []Note { return r.notes }

// Len is how many kinds of things are not carried over.
func (r *Report) Len() int { return len(r.notes) + r.more }

// Write writes a line a note: file:line: what (how often): reason.
func (r *Report) Write(w io.Writer) error {
	var errs []error
	line := func(format string, values ...any) {
		_, err := fmt.Fprintf(w, format, values...)
		errs = append(errs, err)
	}
	if r.Len() == 0 {
		line("all is carried over\n")
	}
	for _, n := range r.notes {
		line("%s: %s: %s\n", n.Place(), n.Title(), n.Reason)
	}
	if r.more > 0 {
		line("and %d more\n", r.more)
	}
	for _, renamed := range r.Renamed {
		line("renamed: %s is %s here\n", renamed.What, renamed.Name)
	}
	return errors.Join(errs...)
}

// ReportFile is the name of the report in the folder that Write fills.
const ReportFile = "not-carried-over.txt"

// Write makes plan.yaml, hosts and demand (where the import has any) in dir, scenario.yaml where it has times, and the
// report. It overwrites nothing.
func (r *Result) Write(dir, format string, o datasets.ScenarioOptions) error {
	scenario, report := filepath.Join(dir, "scenario.yaml"), filepath.Join(dir, ReportFile)
	for _, path := range []string{scenario, report} {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s: is already there", path)
		}
	}
	if err := r.Dataset.Write(dir, format); err != nil {
		return err
	}
	if r.Lives != nil {
		if _, _, err := r.Dataset.WriteScenario(scenario, r.Name, format, r.Lives, o); err != nil {
			return err
		}
	}
	if r.History != nil {
		if err := r.History.writeScenario(scenario, r.Name, format, o); err != nil {
			return err
		}
	}
	var text strings.Builder
	if err := r.Report.Write(&text); err != nil {
		return err
	}
	return os.WriteFile(report, []byte(text.String()), 0o666)
}
