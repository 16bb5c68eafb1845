package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/stintd/stint/bench/bound"
)

// solver is GLPK's command (Debian: glpk-utils).
const solver = "glpsol"

// errSolver is that there is no solver.
var errSolver = errors.New(solver + " is not there: make bound-exact installs it (Debian: glpk-utils)")

// patternsMax bounds the patterns of all classes, and so the solver's time.
const patternsMax = 20_000

// errTime is that the solver did not find the optimum in time.
var errTime = errors.New("not solved in time")

// solve has the solver find the most that any placement holds, in mean hosts. Errors, among others: errPatterns,
// errTime, errSolver.
func solve(p *bound.Problem, seconds int) (float64, error) {
	if _, err := exec.LookPath(solver); err != nil {
		return 0, errSolver
	}
	weights, err := p.Weights()
	if err != nil {
		return 0, err
	}
	ways, left := make([][]pattern, len(p.Hosts)), patternsMax
	for c := range ways {
		if ways[c], err = patterns(p, c, left); err != nil {
			return 0, err
		}
		left -= len(ways[c])
	}
	dir, err := os.MkdirTemp("", "stint-exact-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "program.lp")
	f, err := os.Create(program)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(writeProgram(f, p, weights, ways), f.Close()); err != nil {
		return 0, err
	}
	return glpsol(program, filepath.Join(dir, "report"), "--tmlim", strconv.Itoa(seconds), "--cuts")
}

var (
	objective = regexp.MustCompile(`(?m)^Objective:\s+held = (\S+) \(MAXimum\)$`)
	optimal   = regexp.MustCompile(`(?m)^Status:\s+INTEGER OPTIMAL$`)
)

// glpsol runs the solver and reads the optimum from its report.
func glpsol(program, report string, args ...string) (float64, error) {
	out, err := exec.Command(solver, append(args, "--lp", program, "--output", report)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", solver, err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return 0, fmt.Errorf("%s left no report: %w\n%s", solver, err, out)
	}
	if !optimal.Match(text) {
		return 0, errTime
	}
	m := objective.FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%s: no objective in its report\n%.500s", solver, text)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}
