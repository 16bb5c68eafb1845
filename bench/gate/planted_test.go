package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// slowdown is a text of a file, and what stands in its place so that the work around it takes longer.
type slowdown struct {
	name, file, old, new string
	slower               []string // the figures that the gate must tell of
}

// planted are slowdowns of 30 %: the work spins for three tenths of the processor time that it took.
var planted = []slowdown{
	{
		"grant", "core/cycle/cycle.go",
		"	for _, m := range busy {\n		m.Grant()\n	}\n",
		"	begin := r.Clock()\n	for _, m := range busy {\n		m.Grant()\n	}\n	r.spin(begin)\n",
		[]string{"grid grant"},
	},
	{
		"reclaim", "core/cycle/cycle.go",
		"	for _, m := range busy {\n		m.Reclaim()\n	}\n",
		"	begin := r.Clock()\n	for _, m := range busy {\n		m.Reclaim()\n	}\n	r.spin(begin)\n",
		[]string{"grid reclaim"},
	},
	{
		"ingest", "ingest/table/read.go",
		"	if err := ReadDemandInto(t, r, o); err != nil {\n		return nil, err\n	}\n",
		"	begin := plantedUS()\n	if err := ReadDemandInto(t, r, o); err != nil {\n" +
			"		return nil, err\n	}\n" +
			"	for end := plantedUS() + (plantedUS()-begin)*3/10; plantedUS() < end; {\n	}\n",
		[]string{"ingest csv", "ingest ndjson", "ingest parquet"},
	},
}

// added stands at the end of a file with a slowdown.
var added = map[string]string{
	"core/cycle/cycle.go": "\nfunc (r *Runner) spin(begin int64) {\n" +
		"	for end := r.Clock() + (r.Clock()-begin)*3/10; r.Clock() < end; {\n	}\n}\n",
	"ingest/table/read.go": "\nfunc plantedUS() int64 {\n	var u syscall.Rusage\n" +
		"	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)\n" +
		"	return (int64(u.Utime.Sec)+int64(u.Stime.Sec))*1e6 + int64(u.Utime.Usec) + int64(u.Stime.Usec)\n}\n",
}

// plant is the file's path, and its text with the slowdown.
func (p *slowdown) plant(t *testing.T) (path, slow string) {
	t.Helper()
	path, err := filepath.Abs("../../" + p.file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), p.old); n != 1 {
		t.Fatalf("%s has the text to change %d times, want once:\n%s", p.file, n, p.old)
	}
	slow = strings.Replace(string(text), p.old, p.new, 1) + added[p.file]
	if strings.Contains(added[p.file], "syscall") {
		slow = strings.Replace(slow, "import (\n", "import (\n	\"syscall\"\n", 1)
	}
	return path, slow
}

// TestPlantedTexts holds the slowdowns of make gate-proof to the code of today.
func TestPlantedTexts(t *testing.T) {
	for i := range planted {
		planted[i].plant(t)
	}
}
