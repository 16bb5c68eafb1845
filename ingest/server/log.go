package server

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/table"
)

// decisionLog is the engine's way to the decision log.
type decisionLog struct{ w *export.Writer }

// Last is the last cycle in the log.
func (l decisionLog) Last() int64 { return l.w.Last() }

// Cycle writes a cycle and its inputs, these as they were given, unpacked (docs/decisions.md, D-13).
func (l decisionLog) Cycle(c *decision.Cycle, inputs []*engine.Input) error {
	logged := make([]export.Input, len(inputs))
	for i, in := range inputs {
		content, format := in.Body, in.Format
		if len(content) > 0 && in.Kind != engine.InputPlan {
			text, found, err := table.Unpack(bytes.NewReader(in.Body), tableOptions(in, decodeLimits))
			if err != nil {
				return fmt.Errorf("an input that was accepted cannot be unpacked: %w", err)
			}
			content, format = text, found.String()
		}
		row, err := l.w.Input(in.Kind, in.Source, format, content)
		if err != nil {
			return err
		}
		row.Rows, row.Author, row.Message = in.Rows, in.Author, in.Message
		logged[i] = row
	}
	return l.w.Cycle(c, logged)
}

// tend keeps the log small while it is written; what it returns ends that.
func (s *Server) tend(w *export.Writer, o export.TendOptions) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	o.Done = func(c export.Compacted, took time.Duration, err error) {
		switch {
		case err != nil:
			s.o.Log.Error("the decision log could not be compacted; it is tried again", "error", err)
		case c != (export.Compacted{}):
			s.o.Log.Info("the decision log was compacted", "took", took, "cycles", c.Cycles, "files", c.Before, "into",
				c.After,
				"dropped_cycles", c.Dropped, "removed", c.Removed)
		}
	}
	go func() {
		defer close(ended)
		w.Tend(ctx, o)
	}()
	return func() {
		cancel()
		<-ended
	}
}
