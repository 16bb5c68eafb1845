package conform_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/act/conform"
)

// TestConformance has a good cluster pass, and clusters with planted errors fail where each shows.
func TestConformance(t *testing.T) {
	cases := []struct {
		fault conform.Fault
		check string // the first that fails
	}{
		{conform.None, ""},
		{conform.DoubleStart, "start, repeated and cut off, makes no second copy"},
		{conform.LostStop, "a reclaimed unit is gone before its deadline"},
		{conform.LateStop, "a reclaimed unit is gone before its deadline"},
		{conform.ForgottenRelease, "a reclaimed unit is gone before its deadline"},
		{conform.StaleLedger, "work that was stopped runs again under a new name"},
	}
	clusters, results := make([]*conform.Cluster, len(cases)), make([][]conform.Check, len(cases))
	var beside sync.WaitGroup // they wait for most of their time
	for i, c := range cases {
		clusters[i] = &conform.Cluster{Fault: c.fault, Slow: 500 * time.Millisecond}
		folder := filepath.Join(t.TempDir(), "ledgers")
		beside.Add(1)
		go func() {
			defer beside.Done()
			var err error
			results[i], err = conform.Run(t.Context(), clusters[i], conform.Options{
				Consumer: "/A", Folder: folder, Within: 5 * time.Second, Grace: 3 * time.Second,
				Every: 200 * time.Millisecond, Settle: 600 * time.Millisecond,
			})
			if err != nil {
				t.Error(c.fault, err)
			}
		}()
	}
	beside.Wait()
	for i, c := range cases {
		t.Run(string(c.fault), func(t *testing.T) {
			failed := ""
			for _, check := range results[i] {
				t.Logf("%s: %v", check.Name, check.Err)
				if check.Err != nil && failed == "" {
					failed = check.Name
				}
			}
			if failed != c.check || len(results[i]) == 0 {
				t.Errorf("the first failure is %q, not %q", failed, c.check)
			}
			if problems := clusters[i].Problems(); c.fault == conform.None && len(problems) > 0 {
				t.Error(strings.Join(problems, "; "))
			}
		})
	}
}
