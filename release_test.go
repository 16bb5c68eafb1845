package stint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const changelog = `# Changelog

## [Unreleased]

- what comes later

## [1.2.3] - 2026-01-05

### Added

- this

### Fixed

- that

## [1.2.2] - 2026-01-04

Nothing.

## [1.2.1]

- a heading without a day
`

// TestRelease has a release refused where tag, tree and changelog do not agree, and else gives its section.
func TestRelease(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("dist", "release.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		tags  []string
		dirty bool
		args  []string
		notes string // "": it is refused
		says  string
	}{
		{name: "a release", tags: []string{"v1.2.3", "other"}, notes: "### Added\n\n- this\n\n### Fixed\n\n- that\n"},
		{name: "no tag", says: "no tag v… at HEAD"},
		{name: "two tags", tags: []string{"v1.2.3", "v1.2.2"}, says: "several tags at HEAD: v1.2.2 v1.2.3"},
		{name: "a tag that is no version", tags: []string{"v1.2"}, says: "tag v1.2: must be v and a semantic version"},
		{name: "a changed file", tags: []string{"v1.2.3"}, dirty: true,
			says: "files that are not as in the tag:\n M CHANGELOG.md"},
		{name: "a section that says nothing", tags: []string{"v1.2.2"}, says: "CHANGELOG.md says nothing of 1.2.2"},
		{name: "a heading without a day", tags: []string{"v1.2.1"},
			says: `CHANGELOG.md has no heading "## [1.2.1] - YYYY-MM-DD"`},
		{name: "no section", tags: []string{"v1.3.0-rc.1"},
			says: `CHANGELOG.md has no heading "## [1.3.0-rc.1] - YYYY-MM-DD"`},
		{name: "a flag that is not known", tags: []string{"v1.2.3"}, args: []string{"--chek"},
			says: "usage: dist/release.sh [--check]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range map[string][]byte{"dist/release.sh": script, "CHANGELOG.md": []byte(changelog)} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, text, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			git := func(args ...string) {
				t.Helper()
				cmd := exec.Command("git",
					append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			git("init", "-q")
			git("add", ".")
			git("commit", "-qm", "all")
			for _, tag := range c.tags {
				git("tag", tag)
			}
			if c.dirty {
				if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), nil, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			args := c.args
			if args == nil {
				args = []string{"--check"}
			}
			cmd := exec.Command(filepath.Join(dir, "dist", "release.sh"), args...)
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			err := cmd.Run()
			if c.notes != "" && (err != nil || out.String() != c.notes) {
				t.Errorf("%v\n%s%s", err, out.String(), errs.String())
			}
			if c.notes == "" && (err == nil || cmd.ProcessState.ExitCode() != 2 ||
				!strings.Contains(errs.String(), c.says)) {
				t.Errorf("%v\n%s%s\nexpected: %s", err, out.String(), errs.String(), c.says)
			}
		})
	}
}
