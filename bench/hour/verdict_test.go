package main

import (
	"strings"
	"testing"
	"time"
)

// steadyHour is an hour in which nothing goes on growing, but for what fills up in its first third.
func steadyHour() []part {
	parts := make([]part, partsCount)
	for i := range parts {
		parts[i] = part{cycles: int64(300 * (i + 1)), resident: 900, heap: 300, routines: 40, open: 30, logFiles: 400,
			logMB: 10 * float64(i+1), journalMB: 60, push: 100, read: 10, back: 200}
		if i < partsCount/3 {
			parts[i].heap, parts[i].journalMB = 50, 10
		}
	}
	return parts
}

// TestGrowing has one figure after the other grow in the last third: each is found, and none else.
func TestGrowing(t *testing.T) {
	if faults := growing(steadyHour()); faults != nil {
		t.Error("of a steady hour:", faults)
	}
	for name, grow := range map[string]func(*part){
		"resident memory":               func(p *part) { p.resident *= 1.3 },
		"heap":                          func(p *part) { p.heap *= 1.3 },
		"goroutines":                    func(p *part) { p.routines *= 2 },
		"open files":                    func(p *part) { p.open *= 2 },
		"files of the log":              func(p *part) { p.logFiles *= 1.5 },
		"journal":                       func(p *part) { p.journalMB += 300 },
		"p99 of pushes":                 func(p *part) { p.push *= 4 },
		"p99 of reads, ms":              func(p *part) { p.read *= 10 },
		"p99 of reads from the log":     func(p *part) { p.back *= 3 },
		"the log after compaction: 33.": func(p *part) { p.logMB += float64(p.cycles-2400) / 50 },
	} {
		parts := steadyHour()
		for i := 2 * partsCount / 3; i < partsCount; i++ {
			grow(&parts[i])
		}
		if faults := growing(parts); len(faults) != 1 || !strings.HasPrefix(faults[0], name) {
			t.Errorf("%s grows: %q", name, faults)
		}
	}
}

// TestVerdict fails a run in which calls failed, however short it was.
func TestVerdict(t *testing.T) {
	h := &hour{part: time.Minute, failed: 12, why: []string{"cycle 3: GET /v1/loans: 500"}}
	if err := h.verdict(); err == nil || err.Error() != "12 calls failed, the first of them:\ncycle 3: GET "+
		"/v1/loans: 500" {
		t.Error(err)
	}
	h.failed = 0
	if err := h.verdict(); err != nil {
		t.Error(err)
	}
}

// TestPart sums samples up, and fits the heading.
func TestPart(t *testing.T) {
	p := part{minutes: 60, cycles: 3600, push: 101.4, read: 9.6, back: 203}
	p.of([]sample{
		{resident: 800, heap: 700, routines: 40, open: 30, logFiles: 900, logMB: 12, journalMB: 70},
		{resident: 900, heap: 300, routines: 35, open: 31, logFiles: 400, logMB: 11, journalMB: 60},
	})
	want := "  60.0   3600    900   300     40     31    400   11.0     70.0    101   10 203"
	if got := p.String(); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	for line := range strings.Lines(heading + p.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
