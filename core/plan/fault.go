package plan

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

const (
	faultsMax     = 100 // faults listed; the rest is only counted
	shownBytesMax = 64  // of a value, in a message
)

// Fault is one thing that is wrong in a policy file: where, what was there, why it cannot be.
type Fault struct {
	File   string
	Line   int    // from 1; 0: the file as a whole
	Column int    // from 1, in characters
	Path   string // key path, such as consumers[3].rank
	Value  string // as written, shortened; "" when it is no single value
	Reason string

	stack string // of a panic in the parser; "": the fault is the file's
}

// String is `file:line:col: path: "value": reason`, without the parts that the fault does not have.
func (f Fault) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File + ":")
	}
	if f.Line > 0 {
		fmt.Fprintf(&b, "%d:%d:", f.Line, f.Column)
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	if f.Value != "" {
		b.WriteString(strconv.Quote(f.Value) + ": ")
	}
	return b.String() + f.Reason
}

// Faults is why a policy file was refused, in the order of the file. When there
// are more than a hundred, an entry that tells how many follows the first hundred found.
type Faults []Fault

// Error lists the faults, a line each.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Bug returns the stack of the panic that ended the parse, "" where none did. A caller that keeps a log writes it
// there: the file may be good, and stint has to be corrected.
func (f Faults) Bug() string {
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1].stack
}

// collector gathers faults up to faultsMax and counts the rest.
type collector struct {
	file  string
	found Faults
	count int
}

// add takes a fault, but not the same one twice: what a plan says is looked at again in each of its windows.
func (c *collector) add(f Fault) {
	f.File = c.file
	f.Value = shorten(f.Value)
	if slices.Contains(c.found, f) {
		return
	}
	c.count++
	if len(c.found) < faultsMax {
		c.found = append(c.found, f)
	}
}

// faults gives what was gathered in the order of the file, nil when that is nothing.
func (c *collector) faults() Faults {
	slices.SortStableFunc(c.found, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if c.count > len(c.found) {
		return append(c.found, Fault{File: c.file,
			Reason: fmt.Sprintf("%d faults in all, %d of them are shown", c.count, len(c.found))})
	}
	return c.found
}

// bug returns the faults found before a panic, and the panic as the last. It is called by the function that recovers.
// The faults before it come first because correcting them is what most often avoids the panic.
func (c *collector) bug(panicked any) Faults {
	return append(c.faults(), Fault{File: c.file, stack: string(debug.Stack()), Reason: fmt.Sprintf(
		"stint cannot check the file because of a bug of its own (%v, at %s); correct the other errors, if there are "+
			"any, and report the file if this one stays", panicked, panicPlace())})
}

// panicPlace returns the file and line of the statement that panicked.
func panicPlace() string {
	var counters [64]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(1, counters[:])])
	panicking := false
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case panicking && !inRuntime:
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		case !more:
			return "a place that is not known"
		}
		panicking = panicking || inRuntime
	}
}

// shorten cuts a value to what a message can show.
func shorten(s string) string {
	if len(s) > shownBytesMax {
		return strings.ToValidUTF8(s[:shownBytesMax], "") + "…"
	}
	return s
}
