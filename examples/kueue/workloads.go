package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// checkSettings are those of the admission checks.
type checkSettings struct {
	controller          string // of the admission checks that are answered
	backoff, backoffMax time.Duration
	wait                time.Duration // with quota reserved; 0: for ever
	quiet               time.Duration // between two messages of the same state
	pin                 bool
	early               bool // workloads are granted before Kueue reserves quota
}

// workloads answers the admission checks of workloads. An answer follows from the workload alone: its grant, which the
// actor writes, and what Kueue says of it. So a check needs no stint that answers and no memory.
type workloads struct {
	client.Client
	checkSettings
	resources []divided
	decisions *decisions

	mu   sync.Mutex
	said map[types.NamespacedName]time.Time // when a message was changed last
}

// Reconcile brings the check of one workload up to its grant.
func (w *workloads) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	wl := &kueue.Workload{}
	if err := w.Get(ctx, req.NamespacedName, wl); err != nil {
		w.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	c, err := readChecks(ctx, w.Client, w.controller)
	if err != nil {
		return ctrl.Result{}, err
	}
	queue, err := c.queueOf(ctx, w.Client, wl)
	if err != nil {
		return ctrl.Result{}, err
	}
	if queue == nil && c.stateOf(wl) == "" {
		return ctrl.Result{}, nil // it does not ask this controller
	}
	g, err := readGrant(wl)
	if err != nil {
		return ctrl.Result{}, err
	}
	if g != nil && !mayRun(wl, c.stateOf(wl)) && (g.Stop != nil || queue == nil || isTrue(wl, kueue.WorkloadFinished)) {
		return ctrl.Result{}, w.drop(ctx, wl) // its units have ended
	}
	i := slices.IndexFunc(wl.Status.AdmissionChecks, func(s kueue.AdmissionCheckState) bool {
		return c[string(s.Name)]
	})
	if i < 0 || isTrue(wl, kueue.WorkloadFinished) || isTrue(wl, kueue.WorkloadEvicted) && reserved(wl) {
		return ctrl.Result{}, nil
	}
	now := time.Now()
	changed := wl.DeepCopy()
	check := &changed.Status.AdmissionChecks[i]
	v := w.decide(ctx, wl, g, check, now)
	again := soonest(v.again, w.put(check, v, wl, g, now))
	if !sameCheck(&wl.Status.AdmissionChecks[i], check) {
		// Other checks stand in the same list: a list that has changed in between must not be written over.
		whole := client.MergeFromWithOptions(wl, client.MergeFromWithOptimisticLock{})
		if err := w.Status().Patch(ctx, changed, whole, client.FieldOwner(fieldOwner)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// drop removes the grant of a workload.
func (w *workloads) drop(ctx context.Context, wl *kueue.Workload) error {
	changed := wl.DeepCopy()
	delete(changed.Annotations, unitsAnnotation)
	whole := client.MergeFromWithOptions(wl, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(w.Patch(ctx, changed, whole, client.FieldOwner(fieldOwner)))
}

// verdict is what a check shall say, and when to look at it again.
type verdict struct {
	state   kueue.CheckState
	message string
	requeue *int32 // seconds
	again   time.Duration
}

// decide is the state that a check shall have. Kueue itself resets checks that it evicted for to Pending, so a check
// that is neither Pending nor Ready stays.
func (w *workloads) decide(
	ctx context.Context, wl *kueue.Workload, g *grant, check *kueue.AdmissionCheckState, now time.Time,
) verdict {
	var r refused
	_, err := demandRows("", "", podSets(wl, !w.early), w.resources)
	switch {
	case check.State == kueue.CheckStateReady && g != nil && g.Stop != nil:
		return verdict{state: kueue.CheckStateRetry, message: fmt.Sprintf("stint takes back %d of %d pods by %s",
			g.Stop.Units, wanted(wl), clockTime(g.Stop.Deadline))}
	case check.State != kueue.CheckStatePending:
		return verdict{state: check.State, message: check.Message}
	case errors.As(err, &r):
		return verdict{state: kueue.CheckStateRejected, message: "stint refuses it: " + r.why}
	case reserved(wl) && g.covers(wl):
		return verdict{state: kueue.CheckStateReady, message: "stint granted all pods: " + placesOf(g)}
	}
	granted := int32(0)
	if g != nil && g.Stop == nil {
		for _, sub := range g.subs() {
			granted += g.count(sub)
		}
	}
	why, again := w.decisions.why(ctx, wl, now, w.quiet)
	stays := verdict{state: kueue.CheckStatePending, again: again, message: strings.TrimSpace(
		fmt.Sprintf("stint granted %d of %d pods. %s", granted, wanted(wl), why))}
	if c := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved); w.wait > 0 && reserved(wl) {
		rest := w.wait - now.Sub(c.LastTransitionTime.Time)
		if rest <= 0 {
			return w.retry(check, stays.message)
		}
		stays.again = soonest(stays.again, rest)
	}
	return stays
}

// wanted is how many pods of a workload are not done.
func wanted(wl *kueue.Workload) (n int32) {
	for _, p := range podSets(wl, false) {
		n += max(0, p.count-p.done)
	}
	return n
}

// retry sends a workload back to its queue, for twice as long as the time before.
func (w *workloads) retry(check *kueue.AdmissionCheckState, message string) verdict {
	wait := w.backoff
	if check.RetryCount != nil {
		for range *check.RetryCount {
			wait = min(2*wait, w.backoffMax)
		}
	}
	seconds := int32(min(wait, w.backoffMax) / time.Second)
	return verdict{state: kueue.CheckStateRetry, message: message, requeue: &seconds}
}

// messageBytesMax bounds a message, which Kueue allows 32 KiB of.
const messageBytesMax = 4 << 10

// put writes a verdict into a check. A new message of a check that stays as it is waits until quiet has passed.
func (w *workloads) put(
	check *kueue.AdmissionCheckState, v verdict, wl *kueue.Workload, g *grant, now time.Time,
) (again time.Duration) {
	if len(v.message) > messageBytesMax {
		v.message = strings.ToValidUTF8(v.message[:messageBytesMax-3], "") + "…"
	}
	if check.State == v.state {
		if check.Message == v.message {
			return 0
		}
		if rest := w.hush(client.ObjectKeyFromObject(wl), now); rest > 0 {
			return rest
		}
		check.Message = v.message
		return 0
	}
	check.State, check.Message, check.RequeueAfterSeconds = v.state, v.message, v.requeue
	check.LastTransitionTime = metav1.NewTime(now)
	check.PodSetUpdates = nil
	if v.state == kueue.CheckStateReady {
		check.PodSetUpdates = w.updates(g)
	}
	return 0
}

// hush is how long a message of a workload has to wait for the one before it; 0: it is written now.
func (w *workloads) hush(name types.NamespacedName, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if rest := w.quiet - now.Sub(w.said[name]); rest > 0 {
		return rest
	}
	if w.said == nil {
		w.said = map[types.NamespacedName]time.Time{}
	}
	w.said[name] = now
	return 0
}

func (w *workloads) forget(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.said, name)
}

// hostsAnnotation, on pods, has the hosts on which stint granted how many pods of their pod set.
const hostsAnnotation = "stintd.github.io/hosts"

// hostsBytesMax bounds that annotation.
const hostsBytesMax = 32 << 10

// updates are what the pods of a workload get with them: where stint has put them.
func (w *workloads) updates(g *grant) (all []kueue.PodSetUpdate) {
	for _, sub := range g.subs() {
		on := g.hosts(sub)
		update := kueue.PodSetUpdate{Name: kueue.PodSetReference(sub)}
		if text := strings.Join(on, ","); len(text) <= hostsBytesMax {
			update.Annotations = map[string]string{hostsAnnotation: text}
		}
		if host, _, _ := strings.Cut(on[0], "="); w.pin && len(on) == 1 {
			host, _, _ = strings.Cut(host, ":")
			update.NodeSelector = map[string]string{corev1.LabelHostname: host}
		}
		all = append(all, update)
	}
	return all
}

// hostsShown is how many places a message names.
const hostsShown = 8

// placesOf lists where the units of a grant are.
func placesOf(g *grant) string {
	var parts []string
	for _, sub := range g.subs() {
		on := g.hosts(sub)
		if more := len(on) - hostsShown; more > 0 {
			on = append(on[:hostsShown], fmt.Sprintf("%d more hosts", more))
		}
		parts = append(parts, sub+" on "+strings.Join(on, ", "))
	}
	return strings.Join(parts, "; ")
}

func sameCheck(a, b *kueue.AdmissionCheckState) bool {
	return a.State == b.State && a.Message == b.Message
}

func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(0, b)
	}
	return a
}

func clockTime(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
