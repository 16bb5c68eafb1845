package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestConnect plays the commands of docs/connect.md, with ports that are free.
func TestConnect(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the hooks of the page need python3")
	}
	text, err := os.ReadFile("../../docs/connect.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	var commands []string
	for _, b := range pageBlocks(section(t, lines, "## Ten commands")) {
		commands = lines[b.first:b.last]
	}
	if len(commands) != 10 {
		t.Fatalf("the page has %d commands", len(commands))
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	service, figures := freePort(t), freePort(t)
	script := "set -u\ntrap 'kill $(jobs -p); wait' EXIT\n" + strings.Join(commands, "\necho ----\n")
	script = strings.ReplaceAll(script, "serve --data", "serve --listen 127.0.0.1:"+service+" --data")
	script = strings.ReplaceAll(script, "\necho ----\nstint serve", fmt.Sprintf("\nsed -i 's/7468/%s/' cluster/act.y"+
		"aml; echo 'listen: 127.0.0.1:%s' >>cluster/act.yaml\necho ----\nstint serve", service, figures))
	script = strings.NewReplacer("127.0.0.1:7468", "127.0.0.1:"+service, "127.0.0.1:7469",
		"127.0.0.1:"+figures).Replace(script)
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), serverVariable+"=http://127.0.0.1:"+service)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	parts := strings.Split(string(out), "----\n")
	if len(parts) != 10 {
		t.Fatalf("%d commands printed: %s", len(parts), out)
	}
	for i, must := range []string{3: "cluster/act.yaml: no errors", 6: ",first,",
		7: `stint_act_drift_units{kind="held_not_running"} 0`, 9: "consumer,"} {
		if !strings.Contains(parts[i], must) {
			t.Errorf("%s printed %q, without %q", commands[i], parts[i], must)
		}
	}
	if strings.Contains(parts[9], ",first,") {
		t.Errorf("cancelled work is still held: %s", parts[9])
	}
	if t.Failed() {
		for _, name := range []string{"serve.log", "act.log"} {
			log, _ := os.ReadFile(filepath.Join(dir, "cluster", name)) // what there is of it helps
			t.Logf("%s:\n%s", name, log)
		}
	}
}

// freePort is a port of loopback that nobody has at the moment.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
