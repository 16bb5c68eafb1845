package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/scenario"
	"github.com/stintd/stint/export"
)

func newSimulate() *cobra.Command {
	var file, run, out, output string
	c := &cobra.Command{
		Use:   "simulate --scenario S --out LOG",
		Short: "Plays a scenario on a simulated clock and writes a log",
		Long: `Plays a scenario on a simulated clock, as fast as the machine can, and writes a decision log like any
other: query, explain, verify and replay read it. The log has all inputs of the scenario; what ends
because of a runtime is in it as releases, which a client would have sent.

What the scenario expects is checked too. A file with several scenarios needs --run, which must match one.

Exit codes: 0 fine, 1 an expectation was missed (the log is whole), 2 bad input.`,
		Example: `  stint simulate --scenario week.yaml --out log
  stint simulate --scenario cases/md.yaml --run 'two to one' --out log
  stint import openb --nodes nodes.csv --pods pods.csv --scenario --out openb && stint simulate --scenario openb/scenario.yaml --out openb/log`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			scenarios, err := loadScenarios([]string{file}, run)
			if err != nil {
				return err
			}
			if len(scenarios) > 1 {
				return fmt.Errorf("%s has %d scenarios that match; --run must select one", file, len(scenarios))
			}
			return simulate(scenarios[0], out, output == "json", c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&file, "scenario", "", "scenario file")
	f.StringVar(&run, "run", "", "the scenario whose name or rule matches this regular expression")
	f.StringVar(&out, "out", "", "folder of the log: empty, or made")
	f.StringVar(&output, "output", "table", "table or json")
	required(c, "scenario", "out")
	return c
}

// recorder writes the decisions of a scenario to a log.
type recorder struct {
	log    *export.Writer
	inputs []export.Input
	nowUS  int64
	status func(string)
	always bool // every cycle has a keyframe and a saved state: for tests

	cycles                        int64
	granted, released, held       int64
	tookUS, firstNowUS, lastNowUS int64
}

// Input keeps an input for the next cycle.
func (r *recorder) Input(in scenario.Input) error {
	logged, err := r.log.Input(in.Kind, in.Source, in.Format, in.Content)
	logged.Rows = in.Rows
	r.inputs = append(r.inputs, logged)
	return err
}

// Cycle publishes a cycle.
func (r *recorder) Cycle(out *decision.Cycle, keyframe func(state bool), last bool) error {
	s := &out.Summary
	if s.Digest = decision.Digest(out.Tables()); last || r.always || s.KeyframeDue(r.nowUS) {
		keyframe(r.always || s.StateDue(r.nowUS))
	}
	if err := r.log.Cycle(out, r.inputs); err != nil {
		return err
	}
	if r.cycles == 0 {
		r.firstNowUS = s.NowUS
	}
	r.inputs, r.nowUS, r.lastNowUS = r.inputs[:0], s.NowUS, s.NowUS
	r.cycles++
	r.granted, r.released, r.held = r.granted+s.UnitsGranted, r.released+s.UnitsReleased, s.UnitsHeld
	r.tookUS += s.FinishedUS - s.StartedUS
	r.status(fmt.Sprintf("cycle %d, %s: %s units held, %s short", s.Cycle, instant(s.NowUS), grouped(s.UnitsHeld),
		grouped(s.UnitsShort)))
	return nil
}

func instant(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }

// simulate plays a scenario into a log and prints how it went.
func simulate(s *scenario.Scenario, out string, asJSON bool, stdout, stderr io.Writer) error {
	w, err := export.Open(out, export.Options{Lazy: true})
	if err != nil {
		return err
	}
	r := &recorder{log: w, status: progress(stderr)}
	start := time.Now()
	result, err := s.Record(r)
	r.status("")
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	warn(stderr, result.Warnings)
	if asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = e.Encode(struct {
			*scenario.Result
			Log      string `json:"log"`
			Granted  int64  `json:"units_granted"`
			Released int64  `json:"units_released"`
			Held     int64  `json:"units_held"`
		}{result, out, r.granted, r.released, r.held})
	} else {
		err = r.print(stdout, s, result, out, time.Since(start))
	}
	if err == nil && !result.OK() {
		return errFound
	}
	return err
}

// print tells how a simulation went, for people.
func (r *recorder) print(w io.Writer, s *scenario.Scenario, result *scenario.Result, out string,
	took time.Duration) error {
	if err := result.Print(w); err != nil {
		return err
	}
	if r.cycles == 0 {
		_, err := fmt.Fprintf(w, "%s: not played\n", s.Name)
		return err
	}
	if _, err := fmt.Fprintf(w, "%s: %s, %s to %s\n%s units granted  ·  %s released  ·  %s held at the end\n", s.Name,
		count(r.cycles, "cycle"), instant(r.firstNowUS), instant(r.lastNowUS), grouped(r.granted), grouped(r.released),
		grouped(r.held)); err != nil {
		return err
	}
	rate := float64(r.cycles) / took.Minutes()
	_, err := fmt.Fprintf(w, "%s in all, %s deciding: %s cycles a minute\nnext: stint verify --log %s\n",
		took.Round(time.Millisecond),
		(time.Duration(r.tookUS) * time.Microsecond).Round(time.Millisecond), grouped(int64(rate)), out)
	return err
}
