//go:build kube

package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/act/conform"
	stint "github.com/stintd/stint/ingest/client"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// subject are the hands with work that is submitted to a queue, and a planted error.
type subject struct {
	*hands
	queue string
	fault conform.Fault
	first map[string]string // the first unit of an allocation
	ended map[string]act.Unit
}

func (s *subject) Submit(ctx context.Context, w conform.Work) (conform.Work, error) {
	wl := workload("", s.queue, int32(w.Units), w.Seconds)
	wl.GenerateName = s.queue + "-"
	err := s.write.Create(ctx, wl)
	w.Allocation = "default/" + wl.Name
	return w, err
}

func (s *subject) Cancel(ctx context.Context, w conform.Work) error {
	wl := &kueue.Workload{}
	wl.Namespace, wl.Name = "default", workloadOf(w.Allocation).Name
	return client.IgnoreNotFound(s.write.Delete(ctx, wl))
}

// Start plants a double start: each call puts its units beside those that are there.
func (s *subject) Start(ctx context.Context, units []act.Unit) (act.Failed, error) {
	if s.first[units[0].Allocation] == "" {
		s.first[units[0].Allocation] = units[0].ID
	}
	if s.fault != conform.DoubleStart {
		return s.hands.Start(ctx, units)
	}
	wl := &kueue.Workload{}
	if err := s.live.Get(ctx, workloadOf(units[0].Allocation), wl); err != nil {
		return nil, err
	}
	g, err := readGrant(wl)
	if g == nil {
		g = &grant{Consumer: units[0].Consumer}
	}
	g.add(&units[0])
	return nil, errors.Join(err, g.put(wl), s.write.Update(ctx, wl))
}

// Stop plants a stop that is lost, and one that comes late.
func (s *subject) Stop(ctx context.Context, units []act.Stopping) (act.Failed, error) {
	switch s.fault {
	case conform.LostStop:
		return nil, nil
	case conform.LateStop:
		time.AfterFunc(time.Duration(units[0].SecondsLeft*float64(time.Second))+time.Second, func() {
			_, _ = s.hands.Stop(context.WithoutCancel(ctx), units) // the suite sees that it comes late
		})
		return nil, nil
	}
	return s.hands.Stop(ctx, units)
}

// List plants names of old units, and units that have ended.
func (s *subject) List(ctx context.Context) (*act.Listing, error) {
	l, err := s.hands.List(ctx)
	if err != nil {
		return nil, err
	}
	runs := map[string]bool{}
	for i := range l.Running {
		if u := &l.Running[i]; s.fault == conform.StaleLedger {
			u.ID = s.first[u.Allocation]
		}
		s.ended[l.Running[i].ID] = l.Running[i]
		runs[l.Running[i].ID] = true
	}
	for id, u := range s.ended {
		if s.fault == conform.ForgottenRelease && !runs[id] {
			l.Running = append(l.Running, u)
		}
	}
	return l, nil
}

// TestConformance has the hands pass the suite of faults, against a service whose clock is ten minutes ahead, and fail
// it with each planted error.
func TestConformance(t *testing.T) {
	clean(t)
	node(t, "n1", 8)
	node(t, "n2", 8)
	for _, c := range []struct {
		name  string
		fault conform.Fault
		check string // the first that fails
	}{
		{"good", conform.None, ""},
		{"double-start", conform.DoubleStart, "start, repeated and cut off, makes no second copy"},
		{"lost-stop", conform.LostStop, "a reclaimed unit is gone before its deadline"},
		{"late-stop", conform.LateStop, "a reclaimed unit is gone before its deadline"},
		{"forgotten-release", conform.ForgottenRelease, "a reclaimed unit is gone before its deadline"},
		{"stale-ledger", conform.StaleLedger, "work that was stopped runs again under a new name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			create(t, check(c.name))
			create(t, queue(c.name, c.name, "/A", "")...)
			play(t, c.name)
			controller := controlled{check: c.name, quota: quotaNone, service: &stint.Client{Base: "http://127.0.0.1:1",
				TriesMax: 1}}.run(t)
			s := &subject{hands: controller.hands, queue: c.name, fault: c.fault, first: map[string]string{},
				ended: map[string]act.Unit{}}
			checks, err := conform.Run(t.Context(), s, conform.Options{Consumer: "/A", Grace: 8 * time.Second,
				Within: 20 * time.Second, Folder: filepath.Join(t.TempDir(), "ledgers"), Settle: time.Second})
			if err != nil {
				t.Error(err)
			}
			failed := ""
			for _, check := range checks {
				t.Logf("%s: %v", check.Name, check.Err)
				if check.Err != nil && failed == "" {
					failed = check.Name
				}
			}
			if failed != c.check || len(checks) == 0 {
				t.Errorf("the first failure is %q, not %q", failed, c.check)
			}
			var list kueue.WorkloadList
			if err := bed.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				if text, err := yaml.Marshal(&list.Items[i]); t.Failed() && err == nil {
					t.Logf("%s", text)
				}
				_ = client.IgnoreNotFound(bed.Delete(t.Context(), &list.Items[i]))
			}
		})
	}
}
