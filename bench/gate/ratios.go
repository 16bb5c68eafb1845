package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stintd/stint/bench/measure"
)

// ratios is the committed file: what each figure took, in runs of the kernel, and where.
type ratios struct {
	CPU string             `json:"cpu"`
	Go  string             `json:"go"`
	Of  map[figure]float64 `json:"ratios"`
}

func readRatios(file string) (*ratios, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &ratios{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// name tells whether the file has a ratio above 0 of each figure, and of no other.
func (r *ratios) name(figures []figure) error {
	for _, f := range figures {
		if !(r.Of[f] > 0) {
			return fmt.Errorf("no ratio of %q above 0 (make gate-write measures all anew)", f)
		}
	}
	if len(r.Of) != len(figures) {
		return fmt.Errorf("%d ratios, and %d figures are measured (make gate-write measures all anew)", len(r.Of),
			len(figures))
	}
	return nil
}

// ratios are those of this run, with four digits.
func (m *measured) ratios() *ratios {
	here := measure.Here()
	r := &ratios{CPU: here.CPU, Go: here.Go, Of: map[figure]float64{}}
	for i, f := range m.figures() {
		r.Of[f] = math.Round(m.least[i]/m.base*1e4) / 1e4
	}
	return r
}

func (r *ratios) write(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// show prints the verdict, then all figures.
func (m *measured) show(w io.Writer, held *ratios) error {
	verdicts := m.judge(held)
	count := map[verdict]int{}
	for _, v := range verdicts {
		count[v]++
	}
	said := fmt.Sprintf("nothing is slower; the limit is × %.2f\n", slower)
	if n := count[tooSlow]; n > 0 {
		said = fmt.Sprintf("SLOWER: %d of %d; the limit is × %.2f\n", n, len(verdicts), slower)
	}
	if n := count[tooFast]; n > 0 {
		said += fmt.Sprintf("FASTER: %d of %d, so that a slowdown of 30 %% would pass; "+
			"make gate-write holds them anew\n", n, len(verdicts))
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"figure", "µs", "÷ kernel", "held", "×", ""})
	var right []table.ColumnConfig
	for n := 2; n <= 5; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for i, f := range m.figures() {
		ratio := m.least[i] / m.base
		t.AppendRow(table.Row{f, fmt.Sprintf("%.0f", m.least[i]), fmt.Sprintf("%.3f", ratio),
			fmt.Sprintf("%.3f", held.Of[f]), fmt.Sprintf("%.2f", ratio/held.Of[f]), string(verdicts[i])})
	}
	here := measure.Here()
	fmt.Fprintf(w, "%s%s\n", said, t.Render())
	_, err := fmt.Fprintf(w, "the shortest of %d runs each; the kernel took %.0f µs\n%s, load %s\nheld: %s, %s\n",
		m.runs, m.base, here, here.Load1, held.CPU, held.Go)
	return err
}
