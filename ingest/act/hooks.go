package act

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Unit is one granted unit. Its ID is made by the actor, never used twice, and the only name by which hooks know it.
type Unit struct {
	ID         string `json:"id"`
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Sub        string `json:"sub,omitempty"`
	Host       string `json:"host"`
	Device     string `json:"device,omitempty"` // devices of the host, such as 4+5
	Cycle      int64  `json:"cycle,omitempty"`  // that granted it
}

// Stopping is a unit that has to stop.
type Stopping struct {
	Unit
	Deadline    time.Time `json:"deadline"` // by the service's clock
	SecondsLeft float64   `json:"seconds_left"`
	Force       bool      `json:"force"` // no time is left: kill
}

// Listing is what a cluster reports about the work of one source.
type Listing struct {
	// Demand are rows of the table of demand, all that is wanted, running units included. Columns that the actor does
	// not know pass through to the service.
	Demand []map[string]any `json:"demand"`
	// Running are all units that occupy a host: a row for each piece of work, even if two carry one ID.
	Running []Unit `json:"running"`
	// Hosts is the table of hosts; it is pushed where the actor is configured to.
	Hosts []map[string]any `json:"hosts,omitempty"`
}

// Failed are the units for which a hook did not do its work, by ID, with the reason.
type Failed map[string]string

// Hooks put decisions in force in one kind of cluster. Every call may be repeated, may be cut off at any moment, and
// must then lead to the same result: Start of a unit that runs and Stop of a unit that does not run do nothing and
// succeed.
type Hooks interface {
	// List reports what is wanted and what runs. It reads the cluster, not a memory of earlier calls.
	List(ctx context.Context) (*Listing, error)
	// Start starts units of one allocation on their hosts.
	Start(ctx context.Context, units []Unit) (Failed, error)
	// Stop begins to stop units of one allocation, so that they are gone before their deadlines. The actor takes a unit
	// for stopped once List does not report it.
	Stop(ctx context.Context, units []Stopping) (Failed, error)
}

// Command is a program that does the work of one hook.
type Command struct {
	Args    []string
	Timeout time.Duration
	Kept    *Kept // nil: it is started for each call
}

// Commands are hooks as programs: JSON on standard input, one JSON object on standard output, exit code 0. Programs
// that are kept do the same line by line.
type Commands struct {
	ListCommand, StartCommand, StopCommand Command
	Dir                                    string // where they run
}

// Warm starts kept programs before they are called.
func (c *Commands) Warm(programs int) {
	done := map[*Kept]bool{nil: true} // hooks may share their programs
	for _, one := range []*Command{&c.ListCommand, &c.StartCommand, &c.StopCommand} {
		if !done[one.Kept] {
			one.Warm(c.Dir, programs)
		}
		done[one.Kept] = true
	}
}

// Close ends kept programs.
func (c *Commands) Close() {
	for _, one := range []*Command{&c.ListCommand, &c.StartCommand, &c.StopCommand} {
		if one.Kept != nil {
			one.Kept.Close()
		}
	}
}

// request is what a program reads on standard input.
type request struct {
	Action string `json:"action"`
	Units  any    `json:"units,omitempty"`
}

type reply struct {
	Failed Failed `json:"failed"`
}

// List runs the program list. It must print both keys, demand and running: an empty object is taken for a failure, not
// for an empty cluster.
func (c *Commands) List(ctx context.Context) (*Listing, error) {
	l := &Listing{}
	if err := c.ListCommand.Call(ctx, c.Dir, request{Action: "list"}, l); err != nil {
		return nil, err
	}
	if l.Demand == nil || l.Running == nil {
		return nil, fmt.Errorf("%s: the answer lacks demand or running: print both, [] where there is nothing",
			c.ListCommand.name())
	}
	return l, nil
}

// Start runs the program start.
func (c *Commands) Start(ctx context.Context, units []Unit) (Failed, error) {
	return c.StartCommand.units(ctx, c.Dir, request{Action: "start", Units: units})
}

// Stop runs the program stop.
func (c *Commands) Stop(ctx context.Context, units []Stopping) (Failed, error) {
	return c.StopCommand.units(ctx, c.Dir, request{Action: "stop", Units: units})
}

func (c *Command) name() string { return strings.Join(c.Args, " ") }

func (c *Command) units(ctx context.Context, dir string, r request) (Failed, error) {
	var answer reply
	err := c.Call(ctx, dir, r, &answer)
	return answer.Failed, err
}

// Call runs the program in a folder with a value as JSON on standard input and reads its answer.
func (c *Command) Call(ctx context.Context, dir string, value, answer any) error {
	input, err := json.Marshal(value)
	if err != nil {
		return err
	}
	run := c.run
	if c.Kept != nil {
		run = c.ask
	}
	text, err := run(ctx, dir, input)
	if err != nil {
		return err
	}
	if err := decode(text, answer); err != nil {
		return fmt.Errorf("%s: %w", c.name(), err)
	}
	return nil
}

// decode reads the one JSON object of an answer.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("the answer is no JSON object (%w): %q", err, head(text))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("text follows the JSON object of the answer: print one object: %q", head(text))
	}
	return nil
}

func head(text []byte) string { return strings.TrimSpace(string(text[:min(len(text), 200)])) }

const (
	answerBytesMax = 64 << 20
	errorBytesMax  = 4 << 10
	killWait       = 2 * time.Second
)

// run executes the program in a process group of its own, so that a timeout ends its children too. Errors carry the end
// of what the program wrote on standard error.
func (c *Command) run(ctx context.Context, dir string, input []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(limited, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = dir, os.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killWait
	cmd.Stdin = bytes.NewReader(input)
	out, complaint := &bounded{most: answerBytesMax}, &bounded{most: errorBytesMax, last: true}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%s: no answer within %s; it was killed", c.name(), c.Timeout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", c.name(), err, strings.TrimSpace(string(complaint.text)))
	case out.over:
		return nil, fmt.Errorf("%s: an answer of more than %d bytes", c.name(), answerBytesMax)
	}
	return out.text, nil
}

// bounded keeps the first bytes that are written to it, or the last ones.
type bounded struct {
	text []byte
	most int
	last bool
	over bool
}

func (b *bounded) Write(p []byte) (int, error) {
	b.text = append(b.text, p...)
	if n := len(b.text) - b.most; n > 0 {
		b.over = true
		if b.last {
			b.text = append(b.text[:0], b.text[n:]...)
		} else {
			b.text = b.text[:b.most]
		}
	}
	return len(p), nil
}
