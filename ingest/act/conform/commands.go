package conform

import (
	"context"
	"fmt"

	"github.com/stintd/stint/ingest/act"
)

// Commands are hooks as programs, and two more that make work and cancel it.
type Commands struct {
	act.Commands
	SubmitCommand, CancelCommand act.Command
}

// Submit runs the program submit: {"action": "submit", "work": …} in, {"allocation": …} out.
func (c *Commands) Submit(ctx context.Context, w Work) (Work, error) {
	var answer Work
	err := c.SubmitCommand.Call(ctx, c.Dir, map[string]any{"action": "submit", "work": w}, &answer)
	if err == nil && answer.Allocation == "" {
		err = fmt.Errorf("the answer has no allocation")
	}
	w.Allocation = answer.Allocation
	return w, err
}

// Cancel runs the program cancel: {"action": "cancel", "work": …} in, {} out.
func (c *Commands) Cancel(ctx context.Context, w Work) error {
	var answer struct{}
	return c.CancelCommand.Call(ctx, c.Dir, map[string]any{"action": "cancel", "work": w}, &answer)
}
