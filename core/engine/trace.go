package engine

import (
	"time"

	"github.com/stintd/stint/core/decision"
)

// tracedInputsMax is how many inputs of a cycle a Trace lists.
const tracedInputsMax = 128

// Trace tells when a cycle did what, and of what input: plain values, for who makes traces of them.
type Trace struct {
	Summary   *decision.Summary // nobody changes it; its stages follow each other from StartedUS on
	Began     time.Time
	Decided   time.Time // the digest included
	Recorded  time.Time // its record is durable
	Published time.Time

	Inputs     []TracedInput // that came in before the cycle, behind the last one: the first of them
	InputCount int           // all of them
}

// TracedInput is an input that a cycle took.
type TracedInput struct {
	Kind, Source string
	Rows, Bytes  int64
	AtUS         int64         // when it was accepted
	Decoding     time.Duration // how long decoding it took
}

// take lists the inputs, where anybody asks for traces.
func (t *Trace) take(on func(*Trace), inputs []*Input) {
	if on == nil {
		return
	}
	t.InputCount = len(inputs)
	for _, in := range inputs[:min(len(inputs), tracedInputsMax)] {
		t.Inputs = append(t.Inputs, TracedInput{in.Kind, in.Source, in.Rows, int64(len(in.Body)), in.AtUS, in.Decoding})
	}
}

// tell gives the trace to who asks for it.
func (t *Trace) tell(on func(*Trace), s *decision.Summary) {
	if on == nil {
		return
	}
	t.Summary, t.Published = s, time.Now()
	on(t)
}
