package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
)

// TestTraceOfManyInputs lists the first inputs and counts all; where nobody asks for traces it does nothing.
func TestTraceOfManyInputs(t *testing.T) {
	var inputs []*Input
	for i := range tracedInputsMax + 7 {
		inputs = append(inputs, &Input{Kind: InputDemand, Source: fmt.Sprint("s", i), Rows: int64(i),
			Body: make([]byte, i), Decoding: time.Second})
	}
	var got []*Trace
	on := func(t *Trace) { got = append(got, t) }
	var asked, not Trace
	asked.take(on, inputs)
	asked.tell(on, &decision.Summary{Cycle: 3})
	not.take(nil, inputs)
	not.tell(nil, &decision.Summary{})
	if len(got) != 1 || len(not.Inputs) != 0 || not.Summary != nil {
		t.Fatal(got, not)
	}
	if c := got[0]; c.InputCount != tracedInputsMax+7 || len(c.Inputs) != tracedInputsMax || c.Summary.Cycle != 3 ||
		c.Published.IsZero() ||
		c.Inputs[5] != (TracedInput{InputDemand, "s5", 5, 5, 0, time.Second}) {
		t.Error(c)
	}
}
