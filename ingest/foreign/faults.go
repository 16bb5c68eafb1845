package foreign

import (
	"errors"
	"fmt"
	"strings"
)

// faultsMax is how many faults of a file are told.
const faultsMax = 100

// faults are what is wrong with files: a line each, with file, line, value and reason.
type faults struct {
	lines []string
	count int
}

// add notes a fault; line 0 is the file as a whole.
func (f *faults) add(file string, line int, format string, args ...any) {
	if f.count++; f.count > faultsMax {
		return
	}
	place := file
	if line > 0 {
		place = fmt.Sprintf("%s:%d", file, line)
	}
	f.lines = append(f.lines, place+": "+fmt.Sprintf(format, args...))
}

// err is nil when nothing is wrong.
func (f *faults) err() error {
	if f.count == 0 {
		return nil
	}
	lines := f.lines
	if more := f.count - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more faults", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}
