package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// TestUnknownNode has stint grant a node that Slurm does not know: an error with the unit's name, tried again after
// growing pauses, and once stint knows better hosts the job runs there, once.
func TestUnknownNode(t *testing.T) {
	b := newBed(t)
	config := filepath.Join(b.dir, "act.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "hosts: true", "hosts: false", 1))
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	hosts := func(table string) {
		t.Helper()
		if _, err := b.c.PutHosts(t.Context(), client.Bytes([]byte(table), "text/csv"),
			client.Options{AllowShrink: true}); err != nil {
			t.Fatal(err)
		}
	}
	hosts("host,cpus,gpus\nzz1,16,0\n")
	b.start("actor")
	log := filepath.Join(b.dir, "runs.log")
	b.command("sbatch", "--hold", "--requeue", "-A", "risk", "-N", "1", "-c", "4", "-t", "5", "-o", "/dev/null", "-J",
		"lost", "--wrap", "echo begin lost $SLURM_JOB_ID $SLURM_JOB_NODELIST >>"+log+"; sleep 5; "+
			"echo end lost $SLURM_JOB_ID $SLURM_JOB_NODELIST >>"+log)
	says := func(file, what string) int {
		text, _ := os.ReadFile(file) // it is not there before
		return strings.Count(string(text), what)
	}
	until := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !so(); time.Sleep(200 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal(what)
			}
		}
	}
	errors := filepath.Join(b.dir, "actor.err")
	began := time.Now()
	until("no three errors", func() bool { return says(errors, "Invalid node name specified") >= 3 })
	t.Logf("three tries took %s", time.Since(began))
	if says(errors, " on zz1\" error=") < 3 {
		t.Error("an error does not name the unit and its host")
	}
	hosts("host,cpus,gpus\nn1,16,0\n")
	until("the job did not run on n1", func() bool { return says(log, "end lost") > 0 })
	time.Sleep(5 * time.Second)
	if n := len(b.runs(log)); n != 1 || b.runs(log)[0].nodes != "n1" {
		t.Errorf("%d runs: %+v", n, b.runs(log)[0])
	}
	figures, err := scraped(t.Context())
	for _, kind := range []string{"held_not_running", "running_not_held"} {
		if n := figures[`stint_act_drift_units{kind="`+kind+`"}`]; n != 0 || err != nil {
			t.Errorf("drift %s: %v %v", kind, n, err)
		}
	}
}
