// Command results measures clusters of growing size with `stint bench`, and writes the first section of
// docs/results.md: a table, a curve and the command lines of each.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/bench/page"
)

// series is clusters of which one size grows.
type series struct {
	name, about string
	sizes       []int
	flags       func(size int) string
}

var all = []series{
	{"hosts", "More hosts, for the same demand of 50,000 units of 20 consumers.", []int{1_000, 5_000, 25_000, 125_000},
		func(n int) string { return fmt.Sprintf("--hosts %d --consumers 20 --units 50000", n) }},
	{"consumers", "More consumers on 5,000 hosts, for 50,000 units in all.", []int{10, 50, 250, 1_250},
		func(n int) string { return fmt.Sprintf("--hosts 5000 --consumers %d --units 50000", n) }},
	{"units", "More units, on a cluster that grows with them: ten units a host.",
		[]int{4_000, 20_000, 100_000, 500_000},
		func(n int) string { return fmt.Sprintf("--hosts %d --consumers 20 --units %d", n/10, n) }},
}

// point is what is used of the JSON of `stint bench`.
type point struct {
	Machine measure.Machine `json:"machine"`
	measure.Result
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("results: ")
	binary := flag.String("stint", "bin/stint", "the program to measure")
	dir := flag.String("out", "docs", "folder with results.md, and results/*.svg")
	cycles := flag.Int("cycles", 9, "values of each figure")
	flag.Parse()
	if err := results(*binary, *dir, *cycles); err != nil {
		log.Fatal(err)
	}
}

// results measures all series, then writes all files.
func results(binary, dir string, cycles int) error {
	pictures := filepath.Join(dir, "results")
	if err := os.MkdirAll(pictures, 0o777); err != nil {
		return err
	}
	var text, tables bytes.Buffer
	var machine measure.Machine
	for _, s := range all {
		points, err := s.measure(binary, cycles)
		if err != nil {
			return err
		}
		machine = points[len(points)-1].Machine
		s.table(&tables, points, cycles)
		f, err := os.Create(filepath.Join(pictures, s.name+".svg"))
		if err != nil {
			return err
		}
		if err := s.chart(points).write(f); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	commit := ""
	if machine.Commit != "unknown" {
		commit = fmt.Sprintf(", commit %.12s", machine.Commit)
	}
	fmt.Fprintf(&text, `Made by `+"`make results`"+` on one machine in one run:
%s%s.
The load average at the end was %s: above the number of processors others were at work, and times are longer than the
machine's own. `+"`make results`"+` on another machine writes this page for that.

A cold cycle starts from a state that knows nothing; a warm one is at rest and finds a row in a hundred changed. Times
run from input columns in hand to decision columns done, without files; they are medians of %d. *÷ floor* is the cold
time ÷ that of a plain loop that reads and writes as many bytes. *Of the bound* is what is held of the most that any
placement could hold (`+"`stint bench --help`"+`); the rest is idle room, units that were worth more and are not placed, and
what the bound itself has too much because it cuts units. From run to run only times and memory differ.
`, machine, commit, machine.Load1, cycles)
	text.Write(tables.Bytes())
	return page.Put(filepath.Join(dir, "results.md"), "curves", text.Bytes())
}

// command is the command line of a point.
func (s *series) command(size string, cycles int) string {
	return fmt.Sprintf("bench --profile grid %s --cycles %d --bound --output json", size, cycles)
}

func (s *series) measure(binary string, cycles int) (points []point, err error) {
	for _, size := range s.sizes {
		line := s.command(s.flags(size), cycles)
		log.Println(line)
		var problems bytes.Buffer
		run := exec.Command(binary, strings.Fields(line)...)
		run.Stderr = &problems
		out, err := run.Output()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w\n%s", binary, line, err, &problems)
		}
		var p point
		if err := json.Unmarshal(out, &p); err != nil {
			return nil, fmt.Errorf("%s %s: %w", binary, line, err)
		}
		if !(p.ColdMS.P50 > 0 && p.WarmMS.P50 > 0 && p.FloorMS.P50 > 0 && len(p.Bounds) == 1) {
			return nil, fmt.Errorf("%s %s: times or the bound are missing", binary, line)
		}
		points = append(points, p)
	}
	return points, nil
}

// table writes a section: the picture, the figures, how to have them.
func (s *series) table(w *bytes.Buffer, points []point, cycles int) {
	fmt.Fprintf(w, "\n### By %s\n\n%s\n\n![time against %s](results/%s.svg)\n\n", s.name, s.about, s.name, s.name)
	fmt.Fprintf(w, "| %s | cold ms | warm ms | ÷ floor | units decided a second | placed | of the bound | peak MB |\n",
		s.name)
	fmt.Fprintln(w, "|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i, p := range points {
		placed := float64(p.UnitsPlaced) / float64(p.UnitsWanted)
		fmt.Fprintf(w, "| %d | %.1f | %.2f | %.1f | %.2f M | %.1f %% | %.1f %% | %d |\n", s.sizes[i],
			p.ColdMS.P50, p.WarmMS.P50, p.ColdOverFloor, p.DecisionsPerSecond/1e6, 100*placed, 100*p.Bounds[0].Ratio,
			p.PeakRSSBytes/1_000_000)
	}
	fmt.Fprintf(w, "\n```sh\n")
	for _, size := range s.sizes {
		fmt.Fprintf(w, "stint %s\n", s.command(s.flags(size), cycles))
	}
	fmt.Fprintf(w, "```\n")
}

// chart is the curves of a series.
func (s *series) chart(points []point) *chart {
	c := &chart{title: "Time of a cycle by " + s.name, xName: s.name, yName: "milliseconds (median)"}
	cold, warm, floor := line{"cold", "#1f5fa8", nil}, line{"warm", "#c05a00", nil}, line{"floor", "#888888", nil}
	for i, p := range points {
		c.x = append(c.x, float64(s.sizes[i]))
		cold.y, warm.y, floor.y = append(cold.y, p.ColdMS.P50), append(warm.y, p.WarmMS.P50),
			append(floor.y, p.FloorMS.P50)
	}
	c.lines = []line{cold, warm, floor}
	return c
}
