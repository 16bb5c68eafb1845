package conform_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/act/conform"
)

// TestProcess holds docs/connect.md to the hooks of examples/process, and has those pass the suite.
func TestProcess(t *testing.T) {
	page, err := os.ReadFile("../../../docs/connect.md")
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := os.ReadFile("../../../examples/process/hooks.py")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```python\n"+string(hooks)+"```\n") {
		t.Error("docs/connect.md shows other hooks than examples/process/hooks.py")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("the hooks need python3")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../examples/process")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "jobs"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := func(name string) act.Command {
		return act.Command{Args: []string{"python3", name}, Timeout: 30 * time.Second}
	}
	checks, err := conform.Run(t.Context(), &conform.Commands{
		Commands: act.Commands{ListCommand: program("hooks.py"), StartCommand: program("hooks.py"),
			StopCommand: program("hooks.py"), Dir: dir},
		SubmitCommand: program("work.py"), CancelCommand: program("work.py"),
	}, conform.Options{Consumer: "/Research", Folder: filepath.Join(dir, "ledgers"), Settle: time.Second,
		Grace: 20 * time.Second}) // a Python takes seconds to start where the machine is busy
	if err != nil {
		t.Error(err)
	}
	for _, check := range checks {
		if check.Err != nil {
			t.Errorf("%s: %v", check.Name, check.Err)
		}
	}
}
