package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/stintd/stint/ingest/act"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// hands are the hooks of the actor for Kueue. A started unit is one that stands in the annotation of its workload: from
// then on Kueue may run its pod. Workloads are read from the API server itself, queues and nodes from the cache.
type hands struct {
	live, cache client.Reader
	write       client.Client
	controller  string
	resources   []divided
	early       bool // workloads without reserved quota want units, too
	hosts       bool // nodes are reported
	decisions   *decisions
	log         *slog.Logger

	mu     sync.Mutex
	warned map[string]string // the errors of workloads in the last list
}

// listPage is how many workloads are read at a time.
const listPage = 500

// List reports the demand and the units of all workloads whose ClusterQueues ask stint.
func (h *hands) List(ctx context.Context) (*act.Listing, error) {
	q, err := readQueues(ctx, h.cache, h.controller)
	if err != nil {
		return nil, err
	}
	l := &act.Listing{Demand: []map[string]any{}, Running: []act.Unit{}}
	faults := map[string]string{}
	var page kueue.WorkloadList
	for {
		if err := h.live.List(ctx, &page, client.Limit(listPage), client.Continue(page.Continue)); err != nil {
			return nil, fmt.Errorf("list workloads: %w", err)
		}
		for i := range page.Items {
			if err := h.add(l, q, &page.Items[i]); err != nil {
				faults[page.Items[i].Namespace+"/"+page.Items[i].Name] = err.Error()
			}
		}
		if page.Continue == "" {
			break
		}
	}
	h.warn(faults)
	if !h.hosts {
		return l, nil
	}
	n, err := readNodes(ctx, h.cache)
	if err == nil {
		l.Hosts, err = n.hosts(h.resources)
	}
	return l, err
}

// warn logs the errors of workloads that were not there in the list before.
func (h *hands) warn(faults map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, text := range faults {
		if h.warned[name] != text {
			h.log.Error("a workload is not asked for; the others are", "workload", name, "error", text)
		}
	}
	h.warned = faults
}

// add reports one workload. What runs is reported whatever is wrong with its demand.
func (h *hands) add(l *act.Listing, q *queues, wl *kueue.Workload) error {
	queue := q.of(wl)
	if queue == nil && q.checks.stateOf(wl) == "" {
		return nil // it does not ask this controller
	}
	g, err := readGrant(wl)
	if err != nil {
		return err
	}
	name, err := allocation(client.ObjectKeyFromObject(wl))
	if err != nil {
		return err
	}
	running := h.running(q, queue, wl, g, name)
	l.Running = append(l.Running, running...)
	ended := isTrue(wl, kueue.WorkloadFinished) || wl.DeletionTimestamp != nil ||
		wl.Spec.Active != nil && !*wl.Spec.Active
	if ended || queue == nil || !h.early && !reserved(wl) {
		return nil
	}
	var consumer string
	if len(running) > 0 {
		consumer = g.Consumer // a workload keeps the consumer that it began with
	} else if consumer, err = consumerOf(queue, q.cohort, wl); err != nil {
		return err
	}
	rows, err := demandRows(name, consumer, podSets(wl, !h.early), h.resources)
	l.Demand = append(l.Demand, rows...)
	return err
}

// running are the units of a workload, without those of pods that are done. A grant ends when the workload is finished,
// when its quota was freed after a stop, and when nobody could use it any more.
func (h *hands) running(q *queues, queue *ClusterQueue, wl *kueue.Workload, g *grant, name string) (all []act.Unit) {
	if g == nil || isTrue(wl, kueue.WorkloadFinished) {
		return nil
	}
	useless := g.Stop != nil || queue == nil || wl.DeletionTimestamp != nil
	if useless && !mayRun(wl, q.checks.stateOf(wl)) {
		return nil
	}
	done := donePods(wl)
	for _, sub := range g.subs() {
		units := g.units(name, sub)
		left := max(0, len(units)-int(done[kueue.PodSetReference(sub)]))
		all = append(all, units[:left]...)
	}
	return all
}

var errEvicting = errors.New("the workload is being evicted; it starts again when Kueue has freed its quota")

// Start writes units into the annotation of their workload, once the quotas of the cycle are written.
func (h *hands) Start(ctx context.Context, units []act.Unit) (act.Failed, error) {
	h.decisions.afterQuotas(ctx)
	return nil, h.change(ctx, units[0].Allocation, func(c checkNames, wl *kueue.Workload) error {
		if wl == nil || isTrue(wl, kueue.WorkloadFinished) {
			return errors.New("the workload is gone or finished; stint takes its units back with the next list")
		}
		g, err := readGrant(wl)
		switch {
		case err != nil:
			return err
		case g != nil && g.Stop != nil && mayRun(wl, c.stateOf(wl)):
			return errEvicting
		case g == nil || g.Stop != nil || g.Consumer != units[0].Consumer:
			g = &grant{Consumer: units[0].Consumer}
		}
		for i := range units {
			if !g.has(&units[i]) {
				g.add(&units[i])
			}
		}
		return g.put(wl)
	})
}

// Stop notes that units are taken back: the check of the workload has Kueue evict it. Units that Kueue does not use yet
// are taken out at once.
func (h *hands) Stop(ctx context.Context, units []act.Stopping) (act.Failed, error) {
	return nil, h.change(ctx, units[0].Allocation, func(c checkNames, wl *kueue.Workload) error {
		if wl == nil {
			return nil
		}
		g, err := readGrant(wl)
		if err != nil || g == nil {
			return err
		}
		taken, deadline := 0, time.Time{}
		for i := range units {
			u := &units[i]
			if !g.has(&u.Unit) {
				continue
			}
			taken++
			if deadline.IsZero() || u.Deadline.Before(deadline) {
				deadline = u.Deadline
			}
			if !mayRun(wl, c.stateOf(wl)) {
				g.remove(&u.Unit)
			}
		}
		if taken > 0 && mayRun(wl, c.stateOf(wl)) && g.Stop == nil {
			g.Stop = &stopping{Units: taken, Deadline: deadline}
		}
		return g.put(wl)
	})
}

// change reads a workload and writes its annotation, against others who write at the same time. A workload that does
// not exist is nil. The state of the cache will do for a write, which the API server refuses where that state is old;
// all other answers go by the state that the API server has.
func (h *hands) change(ctx context.Context, allocation string, do func(checkNames, *kueue.Workload) error) error {
	c, err := readChecks(ctx, h.cache, h.controller)
	if err != nil {
		return err
	}
	name := workloadOf(allocation)
	wrote, _ := h.try(ctx, h.cache, name, func(wl *kueue.Workload) error { return do(c, wl) })
	if wrote {
		return nil
	}
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		_, err := h.try(ctx, h.live, name, func(wl *kueue.Workload) error { return do(c, wl) })
		return err
	})
	if err != nil {
		return fmt.Errorf("workload %s: %w", name, err)
	}
	return nil
}

// try makes one attempt at a change, and reports whether it was written.
func (h *hands) try(
	ctx context.Context, from client.Reader, name types.NamespacedName, do func(*kueue.Workload) error,
) (wrote bool, err error) {
	wl := &kueue.Workload{}
	err = from.Get(ctx, name, wl)
	if apierrors.IsNotFound(err) {
		return false, do(nil)
	}
	if err != nil {
		return false, err
	}
	before := wl.DeepCopy()
	if err := do(wl); err != nil || before.Annotations[unitsAnnotation] == wl.Annotations[unitsAnnotation] {
		return false, err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = h.write.Patch(ctx, wl, patch, client.FieldOwner(fieldOwner))
	return err == nil, client.IgnoreNotFound(err)
}
