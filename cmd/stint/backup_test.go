package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backupCommands are the commands that docs/operations.md documents for a copy of a service while it runs.
func backupCommands(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(page), "\n## Backup\n")
	_, rest, block := strings.Cut(rest, "```sh\n")
	commands, _, end := strings.Cut(rest, "```")
	if !ok || !block || !end || strings.Contains(rest[:len(commands)], "\n## ") {
		t.Fatal("docs/operations.md has no commands below Backup")
	}
	return commands
}

// TestBackup copies a service by the documented commands while it takes input and runs cycles. A service starts on the
// copy without a flag, has the cycles and inputs of before the copy, and takes more; its log is whole.
func TestBackup(t *testing.T) {
	data := folder(t, crashSites[2].policy, 2)
	c := startStint(t, "", "serve", "--config", quietConfig(t, data, ""))
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
	push := func(base string, units int) {
		t.Helper()
		rows := fmt.Sprintf("consumer,allocation,units,ncpus\n/A,a,%d,1\n", units)
		if status, text, _, _ := send(base, "PUT", "/v1/demand/feed?allow_shrink=true", rows, ""); status != 200 {
			t.Fatal(string(text))
		}
		if status, text, _, _ := send(base, "POST", "/v1/cycles", "", ""); status != 200 {
			t.Fatal(string(text))
		}
	}
	push(c.base, 3)
	before := folderStateOf(t, c.base)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		n := 3
		for {
			select {
			case <-stop:
				stopped <- n
				return
			default:
				n++
				_, _, _, _ = send(c.base, "PUT", "/v1/demand/feed?allow_shrink=true",
					fmt.Sprintf("consumer,allocation,units,ncpus\n/A,a,%d,1\n", 3+n%2), "")
				_, _, _, _ = send(c.base, "POST", "/v1/cycles", "", "")
			}
		}
	}()
	copied := t.TempDir()
	shell := exec.Command("sh", "-e", "-c", strings.ReplaceAll(backupCommands(t), "/var/lib/stint", data))
	shell.Dir = copied
	out, err := shell.CombinedOutput()
	close(stop)
	if n := <-stopped; err != nil || n == 3 {
		t.Fatalf("%v after %d pushes: %s", err, n, out)
	}
	kill(c)
	backup := filepath.Join(copied, "backup")
	if _, err := os.Stat(filepath.Join(backup, "acknowledged")); err == nil {
		t.Error("the copy has the file acknowledged, which may be newer than its journal")
	}
	c = startStint(t, "", "serve", "--config", quietConfig(t, backup, ""))
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
	after := folderStateOf(t, c.base)
	if after.Cycle < before.Cycle || after.Plan != before.Plan {
		t.Errorf("the copy is of cycle %d, it was begun after cycle %d", after.Cycle, before.Cycle)
	}
	push(c.base, 5)
	if _, text, _, _ := send(c.base, "GET", "/v1/holdings?by=consumer&format=csv", "", ""); !strings.Contains(
		string(text), "/A,") {
		t.Errorf("%s", text)
	}
	_ = c.cmd.Process.Signal(os.Interrupt)
	if code := c.ends(t, 30*time.Second); code != 0 {
		t.Fatal(code, c.log)
	}
	command(t, 0, "verify", "--log", filepath.Join(backup, "log"))
	command(t, 0, "replay", "--log", filepath.Join(backup, "log"))
}
