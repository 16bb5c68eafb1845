package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes what packages carry besides the binary. It is hidden, as nobody else needs it.
func newMan() *cobra.Command {
	var out, date string
	c := &cobra.Command{
		Use:    "man --out DIR --date DATE",
		Short:  "Writes man pages and shell completions",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			day, err := time.Parse(time.DateOnly, date)
			if err != nil {
				return fmt.Errorf("--date: %q: must be a day such as 2026-01-31", date)
			}
			return writeMan(c.Root(), out, day)
		},
	}
	c.Flags().StringVar(&out, "out", "", "folder to write to")
	c.Flags().StringVar(&date, "date", "", "the day that man pages name")
	mustMark(c.MarkFlagRequired("out"))
	mustMark(c.MarkFlagRequired("date"))
	return c
}

// mustMark panics where a flag is marked that a command does not have.
func mustMark(err error) {
	if err != nil {
		panic("BUG: " + err.Error())
	}
}

// writeMan writes a man page for each command to man/, and completions for bash, zsh and fish to completion/.
func writeMan(root *cobra.Command, out string, day time.Time) error {
	root.DisableAutoGenTag = true
	man, completion := filepath.Join(out, "man"), filepath.Join(out, "completion")
	for _, dir := range []string{man, completion} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	head := &doc.GenManHeader{Section: "1", Date: &day, Source: "stint", Manual: "stint"}
	if err := doc.GenManTree(root, head, man); err != nil {
		return err
	}
	for name, write := range map[string]func(name string) error{
		"stint.bash": func(name string) error { return root.GenBashCompletionFileV2(name, true) },
		"_stint":     root.GenZshCompletionFile,
		"stint.fish": func(name string) error { return root.GenFishCompletionFile(name, true) },
	} {
		if err := write(filepath.Join(completion, name)); err != nil {
			return err
		}
	}
	return nil
}
