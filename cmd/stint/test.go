package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/scenario"
)

func newTest() *cobra.Command {
	var run, output string
	var list bool
	c := &cobra.Command{
		Use:   "test FILE…",
		Short: "Plays scenarios and checks what they expect",
		Long: `Plays the scenarios of the files on a simulated clock and compares what was decided with what
they expect. Prints each miss as expected / got.

Exit codes: 0 all as expected, 1 any miss, 2 bad input.`,
		Example: `  stint test cases/*.yaml
  stint test --run MD-14 cases/md.yaml
  stint test --list cases/*.yaml`,
		Args: takesSome("a file of tests"),
		RunE: func(c *cobra.Command, files []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			scenarios, err := loadScenarios(files, run)
			if err != nil {
				return err
			}
			if list {
				return listScenarios(c.OutOrStdout(), scenarios)
			}
			return playScenarios(c.OutOrStdout(), scenarios, output == "json")
		},
	}
	f := c.Flags()
	f.StringVar(&run, "run", "", "only scenarios whose name or rule matches this regular expression")
	f.BoolVar(&list, "list", false, "lists the scenarios and plays none")
	f.StringVar(&output, "output", "table", "table or json")
	return c
}

// loadScenarios reads all files, or tells the faults of each.
func loadScenarios(files []string, run string) ([]*scenario.Scenario, error) {
	re, err := regexp.Compile(run)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	var all []*scenario.Scenario
	var faults []error
	for _, name := range files {
		scenarios, err := scenario.Load(name)
		faults = append(faults, err)
		for _, s := range scenarios {
			if s.Matches(re) {
				all = append(all, s)
			}
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--run %q selects no scenario", run)
	}
	return all, nil
}

func listScenarios(w io.Writer, scenarios []*scenario.Scenario) error {
	for _, s := range scenarios {
		if _, err := fmt.Fprintf(w, "%-9s %s (%s:%d)\n", s.Rule, s.Name, s.File, s.Line); err != nil {
			return err
		}
	}
	return nil
}

// playScenarios plays all and prints a line for each. A scenario whose input is refused does not keep the
// others from being played.
func playScenarios(w io.Writer, scenarios []*scenario.Scenario, asJSON bool) error {
	paint := painter(w)
	results := []*scenario.Result{}
	var refused []error
	failed := 0
	begin := time.Now()
	for _, s := range scenarios {
		start := time.Now()
		result, err := s.Play()
		took := time.Since(start)
		if err != nil {
			refused = append(refused, err)
		} else {
			results = append(results, result)
		}
		ok := err == nil && result.OK()
		if !ok {
			failed++
		}
		if asJSON {
			continue
		}
		word := paint.good("ok  ")
		if !ok {
			word = paint.bad("FAIL")
		}
		fmt.Fprintf(w, "%s %-9s %s %s\n", word, s.Rule, s.Name,
			paint.faint("("+took.Round(10*time.Microsecond).String()+")"))
		if err == nil {
			err = result.Print(w)
		} else {
			_, err = fmt.Fprintf(w, "    %s:%d: its input is refused\n", s.File, s.Line)
		}
		if err != nil {
			return err
		}
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(results); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(w, "%s, %d ok, %d failed (%s)\n", count(int64(len(scenarios)), "scenario"),
		len(scenarios)-failed, failed, time.Since(begin).Round(time.Millisecond)); err != nil {
		return err
	}
	if err := errors.Join(refused...); err != nil {
		return err
	}
	if failed > 0 {
		return errFound
	}
	return nil
}
