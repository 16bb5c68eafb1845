package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/vecpack"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Prints version, commit and the kernels in use",
		Example: "  stint version",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := io.WriteString(c.OutOrStdout(), versionText())
			return err
		},
	}
}

// versionText is what stint version prints.
func versionText() string {
	var b strings.Builder
	info, _ := debug.ReadBuildInfo()
	if err := printVersion(&b, info); err != nil {
		panic("BUG: " + err.Error()) // a builder takes everything
	}
	return b.String()
}

// printVersion prints the version and facts of the build; info is nil where the build carries none.
func printVersion(w io.Writer, info *debug.BuildInfo) error {
	version, commit, level := "(unknown)", "(unknown)", ""
	if info != nil {
		version = info.Main.Version
		modified := ""
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.modified":
				if s.Value == "true" {
					modified = " (modified)"
				}
			case "GOAMD64", "GOARM64":
				level = " " + s.Key + "=" + s.Value
			}
		}
		commit += modified
	}
	_, err := fmt.Fprintf(w, "stint    %s\ncommit   %s\nrules    %s\ngo       %s %s/%s%s\nkernels  %s\n",
		version, commit, decision.RulesVersion, runtime.Version(), runtime.GOOS, runtime.GOARCH, level,
		vecpack.Kernels())
	return err
}
