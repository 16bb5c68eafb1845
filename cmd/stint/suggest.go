package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintd/stint/core/plan"
)

// suggest makes the root command and all below it name what was meant by a misspelt command or flag.
func suggest(root *cobra.Command) {
	root.Args = subcommand
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			c.Args = subcommand
		}
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if !errors.As(err, &unknown) {
			return err
		}
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := plan.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("%w: did you mean --%s?", err, near)
		}
		return fmt.Errorf("%w: %s --help lists them", err, c.CommandPath())
	})
}

// takes refuses more or fewer arguments than there are things to name, such as "a policy file".
func takes(things ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(things):
			return fmt.Errorf("%s needs %s: %s", c.CommandPath(), things[len(args)], c.UseLine())
		case len(args) > len(things):
			return fmt.Errorf("%q is one argument too many: %s", args[len(things)], c.UseLine())
		}
		return nil
	}
}

// takesSome refuses a command line that names none of the things that a command takes any number of.
func takesSome(thing string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s needs %s: %s", c.CommandPath(), thing, c.UseLine())
		}
		return nil
	}
}

// subcommand refuses the name of a command that there is not, and names what was meant.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := plan.Nearest(args[0], names); near != "" {
		return fmt.Errorf("unknown command %q: did you mean %s %s?", args[0], c.CommandPath(), near)
	}
	return fmt.Errorf("unknown command %q: %s has %s", args[0], c.CommandPath(), strings.Join(names, ", "))
}
