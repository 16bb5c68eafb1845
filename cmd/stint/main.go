// Command stint decides, cycle after cycle, who may put how much work on a shared cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/heap"
)

// The exit codes (SPEC chapter 9).
const (
	exitFine  = 0
	exitFound = 1 // found something wrong, and said so
	exitUsage = 2 // bad usage or input
)

// errFound ends a command that has already printed what it found wrong.
var errFound = errors.New("found something wrong")

func main() {
	heap.Floor()
	os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs a command line. Every line of an error on stderr begins with "stint: ".
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	switch err := root.ExecuteContext(context.Background()); {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFound
	default:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "stint: %s\n", strings.TrimRight(line, "\n"))
		}
		return exitUsage
	}
}

// noArgs refuses arguments, and shows the flags by which a command is told of files and folders.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q: %s takes flags alone: %s", args[0], c.CommandPath(), c.UseLine())
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "stint",
		Short: "Decides who may put how much work on a shared cluster",
		Long: `stint decides, cycle after cycle, who may put how much work on a shared cluster.

Exit codes: 0 fine, 1 found something wrong, 2 bad usage or input.`,
		Example: `  stint init --like bank --out bank
  stint gen grid --hosts 100 --units 5000 --out demo
  stint check demo/plan.yaml --hosts demo/hosts.parquet
  stint run --plan demo/plan.yaml --hosts demo/hosts.parquet --demand demo/demand.parquet --out demo/log
  stint query --log demo/log consumers`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,

		Version:           versionText(),
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return refuseEmpty(c) },
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("{{.Version}}")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRun(), newTest(), newCheck(), newQuery(), newExplain(), newWhatif(), newVerify(),
		newReplayCommand(), newSimulate(), newCompact(), newInit(), newSchema(), newFmt(), newDiff(), newGen(),
		newImport(), newServe(), newAct(), newPush(), newOpenAPI(), newMCP(), newBench(), newVersion(), newMan())
	suggest(root)
	return root
}

// refuseEmpty refuses a path, name or instant that is an empty text: an unset variable of a shell must not read
// as "not given".
func refuseEmpty(c *cobra.Command) error {
	for _, name := range []string{"plan", "hosts", "demand", "jobs", "running", "at", "out", "log", "cycle", "from",
		"to", "scenario", "keep", "format", "nodes", "pods", "config", "data", "listen", "server", "token-file", "ca",
		"cert", "key", "source", "releases", "was", "queues", "size", "manifests", "conf", "gres",
		"accounts", "qos"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return fmt.Errorf("--%s: is empty", name)
		}
	}
	return nil
}

// warningsMax bounds the warnings of one kind that are shown.
const warningsMax = 100

// warn prints warnings on stderr.
func warn(w io.Writer, warnings []string) {
	for _, line := range warnings[:min(len(warnings), warningsMax)] {
		fmt.Fprintf(w, "stint: warning: %s\n", line)
	}
	if n := len(warnings) - warningsMax; n > 0 {
		fmt.Fprintf(w, "stint: warning: and %d more\n", n)
	}
}
