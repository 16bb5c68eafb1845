package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestInstall plays the commands by which docs/operations.md gets from a package to a service that is scraped, in a
// clean Debian root with a network of its own, and holds what the page shows against what they print. STINT_ROOT names
// the root, which dist/root.sh makes: make test-install.
func TestInstall(t *testing.T) {
	root := os.Getenv("STINT_ROOT")
	if root == "" {
		t.Skip("STINT_ROOT names no root: make test-install makes one")
	}
	page := "../../docs/operations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	sh := newRootShell(t, root)
	commands, outputs := 0, 0
	var printed []string
	for _, b := range pageBlocks(section(t, lines, "## From package to service")) {
		body := lines[b.first:b.last]
		switch {
		case b.lang == "sh" && commands == 10: // what comes behind the ten
		case b.lang == "sh":
			printed = sh.run(strings.Join(body, "\n"))
			t.Logf("%s\n%s\n", strings.Join(body, "\n"), strings.Join(printed, "\n"))
			commands++
		case b.lang == "":
			now, err := compared(body, printed)
			if now == nil || err != nil && os.Getenv("STINT_README") != "write" {
				t.Errorf("%s:%d: %v", filepath.Base(page), b.first, err)
				continue
			}
			copy(body, now)
			outputs++
		}
	}
	if (commands != 10 || outputs < 9) && !t.Failed() {
		t.Errorf("the page has %d commands and %d outputs, not ten", commands, outputs)
	}
	if os.Getenv("STINT_README") == "write" && !t.Failed() {
		if err := os.WriteFile(page, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// section gives the lines of a page up to the end of a section, those before it empty, so that they keep their numbers.
func section(t *testing.T, lines []string, heading string) []string {
	first := -1
	for i, line := range lines {
		switch {
		case line == heading:
			first = i
		case first >= 0 && strings.HasPrefix(line, "## "):
			return append(make([]string, first), lines[first:i]...)
		}
	}
	t.Fatalf("there is no section %q with one behind it", heading)
	return nil
}

// rootShell is a shell in a root with processes and a network of its own, which end with it.
type rootShell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// rootMark is a line behind what a command prints, with its exit status.
const rootMark = "-- over, status "

func newRootShell(t *testing.T, root string) *rootShell {
	c := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
		"--mount-proc="+filepath.Join(root, "proc"),
		"sh", "-c",
		`ip link set lo up && exec chroot "$1" env -i HOME=/root COLUMNS=80 LC_ALL=C DEBIAN_FRONTEND=noninteractive \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh`, "sh", root)
	ours, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdin, c.Stdout, c.Stderr = ours, theirs, theirs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	theirs.Close()
	late := time.AfterFunc(20*time.Minute, func() { _ = c.Process.Kill() })
	t.Cleanup(func() {
		in.Close()
		late.Stop()
		_ = c.Process.Kill()
		_ = c.Wait()
		out.Close()
	})
	s := &rootShell{t, in, bufio.NewScanner(out)}
	s.run("cd /root")
	return s
}

// run has the shell run a command, which must succeed, and gives the lines that it prints.
func (s *rootShell) run(command string) (printed []string) {
	if _, err := fmt.Fprintf(s.in, "%s\necho '%s'$?\n", command, rootMark); err != nil {
		s.t.Fatal(err)
	}
	for s.out.Scan() {
		line := s.out.Text()
		before, status, over := strings.Cut(line, rootMark)
		if !over {
			printed = append(printed, line)
			continue
		}
		if before != "" { // output without a line's end
			printed = append(printed, before)
		}
		if status != "0" {
			s.t.Fatalf("%s\n%s\nexit status %s", command, strings.Join(printed, "\n"), status)
		}
		return printed
	}
	s.t.Fatalf("%s\n%s\nthe shell has ended: %v", command, strings.Join(printed, "\n"), s.out.Err())
	return nil
}
