//go:build !rounds

package scenario

import (
	"path/filepath"
	"testing"
)

// caseFiles are the files of the project's cases. None of their scenarios is replaced.
func caseFiles(t *testing.T) (files []string, replaced map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return files, nil
}
