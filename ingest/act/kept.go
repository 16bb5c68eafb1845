package act

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Kept are the running programs of a command that is not started for each call: each reads a line and prints one, until
// its standard input ends. As many run as calls overlap. A line has the number of the call, and so has its answer: what
// a program says late, or unasked, is no answer to another call.
type Kept struct {
	mu     sync.Mutex
	idle   []*program
	closed bool
}

// program is a running program.
type program struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	file      *os.File // of out
	calls     int64
	complaint *bounded
}

// Close ends the programs that are idle, and those that are at work with their calls.
func (k *Kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, p := range k.idle {
		p.end()
	}
	k.idle = nil
}

func (k *Kept) take() *program {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.idle) == 0 {
		return nil
	}
	p := k.idle[len(k.idle)-1]
	k.idle = k.idle[:len(k.idle)-1]
	return p
}

func (k *Kept) give(p *program) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		p.end()
		return
	}
	k.idle = append(k.idle, p)
}

// end lets a program end and kills what does not.
func (p *program) end() {
	_ = p.in.Close()
	go func() {
		late := time.AfterFunc(killWait, p.kill)
		defer late.Stop()
		_ = p.cmd.Wait() // how it ends does not matter any more
	}()
}

// Warm starts idle programs of the command, for what takes long to start is late when it is first called. One that does
// not start is told of by the first call.
func (c *Command) Warm(dir string, programs int) {
	for range programs {
		if p, err := c.start(dir); err == nil {
			c.Kept.give(p)
		}
	}
}

func (p *program) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

func (c *Command) start(dir string) (*program, error) {
	p := &program{cmd: exec.Command(c.Args[0], c.Args[1:]...), complaint: &bounded{most: errorBytesMax, last: true}}
	p.cmd.Dir, p.cmd.Env = dir, os.Environ()
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr, p.cmd.WaitDelay = p.complaint, killWait
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out, p.file = in, bufio.NewReader(out), out.(*os.File) // StdoutPipe gives one
	return p, p.cmd.Start()
}

// quiet reports whether an idle program has said nothing, and has not ended.
func (p *program) quiet() bool {
	_ = p.file.SetReadDeadline(time.Now()) // a pipe takes deadlines
	_, err := p.out.Peek(1)
	_ = p.file.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

// ask has a kept program answer a call. One that ended while it was idle is replaced, and one that failed is not used
// again.
func (c *Command) ask(ctx context.Context, dir string, input []byte) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	p := c.Kept.take()
	for p != nil && !p.quiet() {
		p.end()
		p = c.Kept.take()
	}
	if p == nil {
		var err error
		if p, err = c.start(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name(), err)
		}
	}
	text, err := p.answer(limited, input)
	if err == nil {
		c.Kept.give(p)
		return text, nil
	}
	p.kill()
	ended := p.cmd.Wait()
	switch {
	case limited.Err() != nil && ctx.Err() == nil:
		return nil, fmt.Errorf("%s: no answer within %s; it was killed", c.name(), c.Timeout)
	case errors.Is(err, io.EOF) && ended == nil:
		err = fmt.Errorf("it ended without a line: keep it only if it answers each line: %q", head(text))
	case errors.Is(err, io.EOF):
		err = ended
	case errors.Is(err, errOther):
		return nil, fmt.Errorf("%s: %w: %q", c.name(), err, head(text))
	}
	return nil, fmt.Errorf("%s: %w: %s", c.name(), err, strings.TrimSpace(string(p.complaint.text)))
}

var (
	errLong  = fmt.Errorf("an answer of more than %d bytes", answerBytesMax)
	errOther = errors.New("the line is not the answer to this call: print one JSON object for each line, with its call")
)

// answer sends a line and reads one. io.EOF: the program ended first.
func (p *program) answer(ctx context.Context, input []byte) (text []byte, err error) {
	stop := context.AfterFunc(ctx, p.kill) // ends the read
	defer stop()
	p.calls++
	line := fmt.Appendf(nil, `{"call":%d,%s`+"\n", p.calls, input[1:]) // input is an object that is not empty
	if _, err := p.in.Write(line); err != nil {
		return nil, io.EOF // the pipe is broken; what the program said of that is in its complaint
	}
	for {
		part, err := p.out.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > answerBytesMax:
			return text, errLong
		case err == nil:
			var is struct{ Call int64 }
			if json.Unmarshal(text, &is) != nil || is.Call != p.calls {
				return text, errOther
			}
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return text, io.EOF
		}
	}
}
