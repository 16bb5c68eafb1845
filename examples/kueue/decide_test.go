package main

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestDecide is what a check says, by what it said and what is known: cases that a service on its own comes to rarely.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	w := &workloads{checkSettings: checkSettings{
		patience: 30 * time.Second, backoff: time.Minute, backoffMax: 10 * time.Minute, wait: time.Hour,
		notice: time.Minute,
	}}
	asked := view{known: true, decided: true, cycle: 7, wanted: 4}
	with := func(change func(*view)) view {
		v := asked
		change(&v)
		return v
	}
	full := with(func(v *view) { v.held = 4 })
	down := errors.New("connection refused")
	for _, c := range []struct {
		name    string
		was     kueue.CheckState
		since   time.Duration // that its quota is reserved
		retries *int32
		at      view
		asked   error
		is      kueue.CheckState
		message string
		again   time.Duration
		requeue int32 // seconds
	}{
		{"all are there", "Pending", 0, nil, full, nil, "Ready", "stint granted all pods: ", 0, 0},
		{"some are there", "Pending", 0, nil, with(func(v *view) { v.held = 3 }), nil, "Pending",
			"stint granted 3 of 4 pods. Why.", time.Hour, 0},
		{"one of all is taken back", "Pending", 0, nil, with(func(v *view) { v.held, v.taken = 4, 1 }), nil, "Pending",
			"stint granted 3 of 4 pods. Why.", time.Hour, 0},
		{"no cycle yet", "Pending", 0, nil, with(func(v *view) { v.decided = false }), nil, "Pending",
			"asked of stint; cycle 7 decides", time.Hour, 0},
		{"it waited too long", "Pending", time.Hour, nil, asked, nil, "Retry", "stint granted 0 of 4 pods. Why.", 0,
			60},
		{"again too long", "Pending", time.Hour, ptr.To[int32](2), asked, nil, "Retry",
			"stint granted 0 of 4 pods. Why.", 0, 240},
		{"for the tenth time", "Pending", time.Hour, ptr.To[int32](9), asked, nil, "Retry",
			"stint granted 0 of 4 pods. Why.", 0, 600},
		{"not taken", "Pending", 0, nil, view{}, errors.New("forbidden"), "Pending",
			"not asked of stint yet: forbidden", askAgain, 0},
		{"refused", "Pending", 0, nil, view{}, refused{"no such consumer"}, "Rejected",
			"stint refuses it: no such consumer", 0, 0},
		{"down for a moment", "Pending", 0, nil, with(func(v *view) { v.down, v.why = now.Add(-10*time.Second), down }),
			down, "Pending", "stint does not answer: connection refused", 20 * time.Second, 0},
		{"down", "Pending", 0, nil, with(func(v *view) { v.down, v.why = now.Add(-30*time.Second), down }), down,
			"Retry", "stint does not answer since 07:59:30 UTC: connection refused", 0, 60},
		{"it runs", "Ready", 0, nil, full, nil, "Ready", "as it was", 0, 0},
		{"it runs on while stint is down", "Ready", 0, nil,
			with(func(v *view) { v.held, v.down, v.why = 4, now.Add(-time.Hour), down }), down, "Ready", "as it was", 0,
			0},
		{"nothing was read yet", "Ready", 0, nil, view{}, down, "Ready", "as it was", 0, 0},
		{"a loss", "Ready", 0, nil, with(func(v *view) { v.held = 3 }), nil, "Retry", "stint took back 1 of 4 pods", 0,
			0},
		{"stint had forgotten it", "Ready", 0, nil, with(func(v *view) { v.held, v.again = 3, true }), nil, "Ready",
			"as it was", 0, 0},
		{"due in ten minutes", "Ready", 0, nil,
			with(func(v *view) { v.held, v.taken, v.due = 4, 1, now.Add(10*time.Minute) }), nil, "Ready", "as it was",
			9 * time.Minute, 0},
		{"due in a minute", "Ready", 0, nil,
			with(func(v *view) { v.held, v.taken, v.due = 4, 1, now.Add(time.Minute) }), nil, "Retry",
			"stint takes back 1 of 4 pods by 08:01:00 UTC", 0, 0},
		{"Kueue has not reset it", "Retry", 0, nil, full, nil, "Retry", "as it was", 0, 0},
		{"deactivated", "Rejected", 0, nil, full, nil, "Rejected", "as it was", 0, 0},
	} {
		// The check is Pending from the workload's first day on, as Kueue has it.
		check := &kueue.AdmissionCheckState{
			State: c.was, Message: "as it was", RetryCount: c.retries,
			LastTransitionTime: metav1.NewTime(now.Add(-24 * time.Hour)),
		}
		c.at.reserved = now.Add(-c.since)
		v := w.decide(check, c.at, c.asked, "Why.", now)
		if v.state != c.is || v.message != c.message || v.again != c.again || ptr.Deref(v.requeue, 0) != c.requeue {
			t.Errorf("%s: %s %q, again in %s, back after %d s", c.name, v.state, v.message, v.again,
				ptr.Deref(v.requeue, 0))
		}
	}
}
