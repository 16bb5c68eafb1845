package act

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestKept has a program answer many calls, one after the other and side by side, and programs that do not do what they
// should: each is an error that names the program, and the next call has a new one.
func TestKept(t *testing.T) {
	kept := func(script string) *Command {
		c := &Command{Args: []string{"sh", "-c", script}, Timeout: 10 * time.Second, Kept: new(Kept)}
		t.Cleanup(c.Kept.Close)
		return c
	}
	ask := func(c *Command, n int) (string, error) {
		var answer struct{ PID string }
		err := c.Call(t.Context(), "", map[string]int{"n": n}, &answer)
		return answer.PID, err
	}
	const good = `n=0; while read line; do n=$((n+1)); echo "{\"pid\": \"$$\", \"call\": $n}"; done`
	c := kept(good)
	c.Warm("", 1)
	warm := c.Kept.idle[0].cmd.Process.Pid
	first, err := ask(c, 1)
	if first != strconv.Itoa(warm) {
		t.Error("another program than that which was warm:", first, warm)
	}
	for n := range 20 {
		if pid, err := ask(c, n); err != nil || pid != first {
			t.Fatal(pid, first, err)
		}
	}
	var beside sync.WaitGroup
	for n := range 8 {
		beside.Go(func() {
			if _, err := ask(c, n); err != nil {
				t.Error(err)
			}
		})
	}
	beside.Wait()
	if err != nil || len(c.Kept.idle) > 8 {
		t.Error(len(c.Kept.idle), err)
	}
	for _, bad := range []struct{ name, script, says string }{
		{"garbage", `while read line; do echo all is well; done`, "not the answer to this call"},
		{"no call", `while read line; do echo '{}'; done`, "not the answer to this call"},
		{"no answer", `read line`, "it ended without a line"},
		{"not a line", `read line; printf '{}'`, "it ended without a line"},
		{"an exit code", `read line; echo no such partition >&2; exit 3`, "exit status 3: no such partition"},
		{"no end", `read line; sleep 60`, "no answer within 1s; it was killed"},
		{"too much", `read line; yes | tr -d '\n' | head -c 70000000`, "more than 67108864 bytes"},
		{"nothing to start", `exit 0`, "it ended without a line"},
	} {
		c := kept(bad.script)
		if bad.name == "no end" {
			c.Timeout = time.Second
		}
		for range 2 {
			if _, err := ask(c, 1); err == nil || !strings.Contains(err.Error(), bad.says) {
				t.Errorf("%s: %v; must have %q", bad.name, err, bad.says)
			}
		}
	}
	if _, err := ask(&Command{Args: []string{"/none"}, Timeout: time.Second, Kept: new(Kept)}, 1); err == nil {
		t.Error("a program that is not there")
	}
}

// TestKeptStale has a program print two lines for one, end after its answer, or hang: no call gets another's answer.
func TestKeptStale(t *testing.T) {
	c := &Command{Timeout: 10 * time.Second, Kept: new(Kept), Args: []string{"sh", "-c", `while read line; do
echo "$line"; case $line in *7}) echo "$line";; *8}) exit 1;; *9}) sleep 60;; esac; done`}}
	defer c.Kept.Close()
	right := 0
	for n := 1; n < 60; n++ {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		var answer struct{ N int }
		err := c.Call(ctx, "", map[string]int{"n": n}, &answer)
		cancel()
		switch {
		case err == nil && answer.N == n:
			right++
		case err == nil:
			t.Errorf("call %d has the answer %d", n, answer.N)
		}
	}
	if right < 40 {
		t.Errorf("%d calls of 59 were answered", right)
	}
}
