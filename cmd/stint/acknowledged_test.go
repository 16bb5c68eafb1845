package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAcknowledged takes the last record, which was acknowledged, off the journal of a service that was killed. The
// next start is refused with both numbers in one line; --accept-loss with the number starts it, and from then on it
// starts without.
func TestAcknowledged(t *testing.T) {
	data := folder(t, crashSites[2].policy, 0)
	args := []string{"serve", "--config", quietConfig(t, data, "")}
	c := startStint(t, "", args...)
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
	segments, err := filepath.Glob(data + "/journal/records-*")
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	written := func() string {
		b, err := os.ReadFile(segments[0])
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimRight(string(b), "\x00")
	}
	before := written()
	rows := "consumer,allocation,units,ncpus\n/A,a,3,1\n"
	if status, text, _, _ := send(c.base, "PUT", "/v1/demand/feed", rows, ""); status != 200 {
		t.Fatal(string(text))
	}
	kill(c)
	whole := written()
	spoiled := []byte(whole)
	spoiled[len(spoiled)-1] ^= 1
	for what, b := range map[string][]byte{"damaged": spoiled, "cut": []byte(whole[:len(before)])} {
		if err := os.WriteFile(segments[0], b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, more := range [][]string{nil, {"--accept-loss", "1"}} {
			c = startStint(t, "", append(args, more...)...)
			code := c.ends(t, 30*time.Second)
			_, line, _ := strings.Cut(c.log.String(), "stint: ")
			if code != 2 || strings.Count(line, "\n") != 1 || !strings.Contains(line, "it ends with record 2") ||
				!strings.Contains(line, "record 3 was acknowledged") || !strings.Contains(line, "--accept-loss 2") {
				t.Fatalf("%s %v: exit %d, %s", what, more, code, c.log)
			}
		}
	}
	for _, more := range [][]string{{"--accept-loss", "2"}, nil} {
		c = startStint(t, "", append(args, more...)...)
		if !c.until(t, "msg=ready") {
			t.Fatal(c.log)
		}
		if lost := strings.Contains(c.log.String(), "acknowledged=3"); lost != (more != nil) {
			t.Errorf("%v: %s", more, c.log)
		}
		_ = c.cmd.Process.Signal(syscall.SIGTERM)
		if code := c.ends(t, 30*time.Second); code != 0 {
			t.Fatal(code, c.log)
		}
	}
}
