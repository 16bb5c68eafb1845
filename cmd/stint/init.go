package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/plan"
)

//go:embed init
var examples embed.FS

// exampleKinds are the examples that init can begin with.
var exampleKinds = []string{"bank", "gpu", "slots"}

func newInit() *cobra.Command {
	var like, out string
	c := &cobra.Command{
		Use:   "init",
		Short: "Begins a policy: a commented file, with hosts and demand that fit it",
		Long: `Writes plan.yaml, hosts.csv and demand.csv to begin with, and policy.schema.json, by which an editor
that knows JSON Schema (a YAML language server) completes keys and marks faults.

  bank   a compute grid by day and night: owners lend and borrow slots, services keep theirs
  gpu    hosts with GPUs: units are vectors, teams own hosts, the rest is shared by priority and ratio
  slots  three teams share one group of hosts by ratio: the smallest useful plan

Files that are there already are left alone, and nothing is written.`,
		Example: `  stint init --like bank --out bank
  stint init --out shared`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir := "init/" + like
			if _, err := fs.Stat(examples, dir); err != nil || strings.ContainsAny(like, "/.") {
				return fmt.Errorf("--like %q: must be one of %s", like, strings.Join(exampleKinds, ", "))
			}
			files := map[string][]byte{plan.SchemaFile: plan.Schema()}
			for _, name := range []string{"plan.yaml", "hosts.csv", "demand.csv"} {
				text, err := examples.ReadFile(dir + "/" + name)
				if err != nil {
					return err
				}
				files[name] = text
			}
			files["plan.yaml"] = append([]byte(plan.SchemaLine), files["plan.yaml"]...)
			if err := writeNew(out, files); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(),
				"%[1]s: plan.yaml, hosts.csv, demand.csv and %[2]s, a %[3]s to begin with\n"+
					"next: stint check %[1]s/plan.yaml --hosts %[1]s/hosts.csv\n"+
					"      stint run --plan %[1]s/plan.yaml --hosts %[1]s/hosts.csv --demand %[1]s/demand.csv --out "+
					"%[1]s/log\n"+
					"or:   stint serve --data %[1]s/service     # a service, on http://127.0.0.1:7468; in "+
					"another shell:\n"+
					"      stint push --plan %[1]s/plan.yaml --hosts %[1]s/hosts.csv --demand %[1]s/demand.csv "+
					"--cycle\n",
				out, plan.SchemaFile, like)
			return err
		},
	}
	c.Flags().StringVar(&like, "like", "slots", strings.Join(exampleKinds, ", "))
	c.Flags().StringVar(&out, "out", "", "folder for the files (made when missing)")
	required(c, "out")
	return c
}

// writeNew writes files into a folder, none of which may be there.
func writeNew(dir string, files map[string][]byte) error {
	for name := range files {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return fmt.Errorf("%s is there already; nothing was written", filepath.Join(dir, name))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

func newSchema() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Prints the JSON Schema of the policy file",
		Long: `Prints the JSON Schema (draft 2020-12) of the policy file. An editor with a YAML language server
completes keys and marks faults by it, when the first line of the policy file is

  ` + plan.SchemaLine + `
What needs the file as a whole, such as sums and paths that exist, is told by stint check.`,
		Example: `  stint schema > policy.schema.json`,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(plan.Schema())
			return err
		},
	}
}
