package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/plan"
)

func newFmt() *cobra.Command {
	var check, write bool
	c := &cobra.Command{
		Use:   "fmt P…",
		Short: "Formats policy files",
		Long: `Gives policy files their canonical form: keys in the order of the documentation, two spaces for each level,
an entry in one line where it fits, no quotes where none are needed. Comments stay with the key or entry
that they are about, and single blank lines stay. What the file says does not change.

The formatted text goes to stdout; with --write into the file, where it is another. With --check nothing is
written, and the files that are not formatted are listed. The name - is stdin.

Exit codes: 0 fine, 1 --check found a file that is not formatted, 2 bad usage or input.`,
		Example: `  stint fmt plan.yaml
  stint fmt --write plan.yaml
  stint fmt --check policies/*.yaml`,
		Args: takesSome("a policy file"),
		RunE: func(c *cobra.Command, files []string) error {
			if check && write {
				return errors.New("give --check or --write, not both")
			}
			return formatFiles(files, check, write, c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&check, "check", false, "list the files that are not formatted")
	c.Flags().BoolVar(&write, "write", false, "write the result into the file")
	return c
}

// formatFiles formats files, all of which are read before any is written.
func formatFiles(files []string, check, write bool, stdin io.Reader, stdout io.Writer) error {
	was, is := make([][]byte, len(files)), make([][]byte, len(files))
	var errs []error
	for i, name := range files {
		if name == "-" && write {
			return errors.New("-: stdin cannot be written to")
		}
		var err error
		if was[i], is[i], err = formatted(name, stdin); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	found := false
	for i, name := range files {
		same := bytes.Equal(was[i], is[i])
		var err error
		switch {
		case check && !same:
			found = true
			_, err = fmt.Fprintln(stdout, name)
		case check || write && same:
		case write:
			err = replaceFile(name, is[i])
		default:
			_, err = stdout.Write(is[i])
		}
		if err != nil {
			return err
		}
	}
	if found {
		return errFound
	}
	return nil
}

// formatted reads a file and formats it.
func formatted(name string, stdin io.Reader) (was, is []byte, err error) {
	if name == "-" {
		was, err = readAtMost(stdin, "stdin", policyBytesMax)
		if err != nil {
			return nil, nil, err
		}
		is, err = plan.Format("stdin", was)
		return was, is, err
	}
	g, err := readInput(kindPlan, name)
	if err != nil {
		return nil, nil, err
	}
	is, err = plan.Format(name, g.content)
	return g.content, is, err
}

// replaceFile writes a file anew, whole or not at all.
func replaceFile(name string, text []byte) error {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".stint-fmt-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
