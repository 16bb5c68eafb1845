package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// reading is who reads a policy file slowly: each comparison is announced, and ends with what comes back.
type reading struct {
	begun chan string // the text of the file in force
	end   chan error
}

func (r reading) MayDemand(*plan.Policy, string) bool { return false }

func (r reading) MayPlan(_ *plan.Policy, old, _ []byte) error {
	r.begun <- string(old)
	return <-r.end
}

// Comparing two policy files keeps nobody from their work, and is made again when the policy changed meanwhile.
func TestPlansAreComparedBeside(t *testing.T) {
	r := ready(t, nil)
	who := reading{make(chan string), make(chan error)}
	answer := make(chan error, 1)
	submit := func(text string) {
		go func() {
			_, err := r.give(InputPlan, "", text, func(in *Input) { in.Principal = who })
			answer <- err
		}()
	}
	submit(policyText + "# mine\n")
	if old := <-who.begun; old != policyText {
		t.Error("compared with", old)
	}
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,5,1\n") // while it is being compared
	r.cycle()
	r.must(InputPlan, "", policyText+"# another's\n")
	who.end <- nil
	if old := <-who.begun; old != policyText+"# another's\n" {
		t.Error("compared again with", old)
	}
	who.end <- nil
	if err := <-answer; err != nil || r.View().Policy.Revision != 3 ||
		string(r.View().Policy.Text) != policyText+"# mine\n" {
		t.Error(err, r.View().Policy.Revision)
	}
	submit(policyText + "# again\n")
	<-who.begun
	r.must(InputPlan, "", policyText+"# yet another's\n")
	who.end <- errors.New("of an old revision: not asked for")
	<-who.begun
	who.end <- errors.New("not yours")
	var refused *Error
	if err := <-answer; !errors.As(err, &refused) || refused.Kind != Forbidden || refused.Detail != "not yours" {
		t.Error(err)
	}
}

// System consumers may be renamed, but not go, also where all others are renamed too.
func TestSystemConsumersStay(t *testing.T) {
	r := ready(t, nil)
	renamed := strings.ReplaceAll(policyText, "/Sys", "/Core")
	r.refused(BadPlan, InputPlan, "", renamed)
	r.must(InputPlan, "", strings.Replace(renamed, "system: true", "system: true, renamed_from: /Sys", 1))
}
