package measure

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// Machine describes the machine and the program that figures were measured with.
type Machine struct {
	CPU        string `json:"cpu"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	Platform   string `json:"platform"`
	Go         string `json:"go"`
	Commit     string `json:"commit"` // of this program; "unknown" where its build does not tell
	Modified   bool   `json:"modified"`
	Load1      string `json:"load1"` // the machine's load average of the last minute: the work of others
}

// Here describes this machine and program.
func Here() Machine {
	m := Machine{
		CPU: "unknown", GOMAXPROCS: runtime.GOMAXPROCS(0), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Go: runtime.Version(), Commit: "unknown", Load1: "unknown",
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load1, _, _ = strings.Cut(string(text), " ")
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				m.Commit = s.Value
			case "vcs.modified":
				m.Modified = s.Value == "true"
			}
		}
	}
	return m
}

// String is the machine on one line, without commit and load.
func (m Machine) String() string {
	return fmt.Sprintf("%s, GOMAXPROCS %d, %s, %s", m.CPU, m.GOMAXPROCS, m.Platform, m.Go)
}
