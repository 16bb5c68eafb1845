package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	patience            time.Duration
	backoff, backoffMax time.Duration
	wait                time.Duration // with quota reserved; 0: for ever
	notice              time.Duration // before a deadline
	quiet               time.Duration // between two messages of the same state
	pin                 bool
}

// workloads answers the admission checks of workloads: what a workload with reserved quota wants is asked of stint, and
// taken back when the quota is no longer reserved, or the workload is finished or gone.
type workloads struct {
	client.Client
	checkSettings
	feed *feed
}

// Reconcile brings one workload up to what stint says of it.
func (w *workloads) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var wl kueue.Workload
	if err := w.Get(ctx, req.NamespacedName, &wl); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, w.feed.ask(ctx, req.NamespacedName, nil, false)
	}
	ours, err := w.ours(ctx, &wl)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(ours) == 0 || !reserved(&wl) {
		return ctrl.Result{}, w.feed.ask(ctx, req.NamespacedName, nil, false)
	}
	if meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted) {
		return ctrl.Result{}, nil // its pods are ending; what they hold is given back when Kueue gives the quota back
	}
	asked := w.ask(ctx, &wl, slices.ContainsFunc(ours, func(i int) bool {
		return wl.Status.AdmissionChecks[i].State == kueue.CheckStateReady
	}))
	at := w.feed.view(req.NamespacedName)
	at.reserved = meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadQuotaReserved).LastTransitionTime.Time
	var answer string
	if at.shortfall && asked == nil {
		answer = w.feed.explain(ctx, req.NamespacedName)
	}
	var next time.Duration
	changed := wl.DeepCopy()
	now := time.Now()
	for _, i := range ours {
		v := w.decide(&changed.Status.AdmissionChecks[i], at, asked, answer, now)
		next = soonest(next, v.again)
		next = soonest(next, w.put(&changed.Status.AdmissionChecks[i], v, &wl, at, now))
	}
	if !slices.EqualFunc(wl.Status.AdmissionChecks, changed.Status.AdmissionChecks, sameCheck) {
		// Other checks stand in the same list: a list that has changed in between must not be written over.
		whole := client.MergeFromWithOptions(&wl, client.MergeFromWithOptimisticLock{})
		if err := w.Status().Patch(ctx, changed, whole); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// ours are the places of the checks that this controller answers.
func (w *workloads) ours(ctx context.Context, wl *kueue.Workload) (at []int, err error) {
	for i := range wl.Status.AdmissionChecks {
		var check kueue.AdmissionCheck
		name := types.NamespacedName{Name: string(wl.Status.AdmissionChecks[i].Name)}
		if err := w.Get(ctx, name, &check); client.IgnoreNotFound(err) != nil {
			return nil, err
		}
		if check.Spec.ControllerName == w.controller {
			at = append(at, i)
		}
	}
	return at, nil
}

// reserved tells whether pods of a workload may run, or wait for checks alone.
func reserved(wl *kueue.Workload) bool {
	return wl.Status.Admission != nil && meta.IsStatusConditionTrue(wl.Status.Conditions,
		kueue.WorkloadQuotaReserved) &&
		!meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadFinished)
}

// ask tells stint what a workload wants. A workload keeps the consumer that it began with.
func (w *workloads) ask(ctx context.Context, wl *kueue.Workload, ready bool) error {
	name := client.ObjectKeyFromObject(wl)
	path := w.feed.consumer(name)
	if path == "" {
		var err error
		if path, err = consumer(ctx, w.Client, wl); err != nil {
			return err
		}
	}
	want, err := rows(wl, path, w.feed.resources)
	if err != nil {
		return err
	}
	return w.feed.ask(ctx, name, want, ready)
}

// askAgain is how long after an error stint is asked again, where it answers others.
const askAgain = 5 * time.Second

// verdict is what a check shall say, and when to look at it again.
type verdict struct {
	state   kueue.CheckState
	message string
	requeue *int32 // seconds
	again   time.Duration
}

// decide is the state that a check shall have. Kueue itself has checks that it evicted go back to Pending, so what is
// neither Pending nor Ready stays.
func (w *workloads) decide(
	check *kueue.AdmissionCheckState, v view, asked error, answer string, now time.Time,
) verdict {
	var r refused
	switch {
	case check.State == kueue.CheckStateReady:
		return w.decideReady(check, v, now)
	case check.State != kueue.CheckStatePending:
		return verdict{state: check.State, message: check.Message}
	case errors.As(asked, &r):
		return verdict{state: kueue.CheckStateRejected, message: "stint refuses it: " + r.why}
	case !v.down.IsZero() && now.Sub(v.down) >= w.patience:
		return w.retry(check, fmt.Sprintf("stint does not answer since %s: %v", clock(v.down), v.why))
	case v.decided && asked == nil && v.held-v.taken >= v.wanted:
		return verdict{state: kueue.CheckStateReady, message: "stint granted all pods: " + v.hosts()}
	}
	stays := verdict{state: kueue.CheckStatePending}
	switch {
	case !v.down.IsZero():
		stays.message, stays.again = fmt.Sprintf("stint does not answer: %v", v.why), w.patience-now.Sub(v.down)
	case asked != nil:
		stays.message, stays.again = "not asked of stint yet: "+asked.Error(), askAgain
	case !v.decided:
		stays.message = fmt.Sprintf("asked of stint; cycle %d decides", v.cycle)
	default:
		stays.message = strings.TrimSpace(fmt.Sprintf("stint granted %d of %d pods. %s", v.held-v.taken, v.wanted,
			answer))
	}
	if w.wait > 0 {
		rest := w.wait - now.Sub(v.reserved)
		if rest <= 0 {
			return w.retry(check, stays.message)
		}
		stays.again = soonest(stays.again, rest)
	}
	return stays
}

// decideReady is decide of a workload that may run: it does so until stint has taken units, or is about to. That stint
// does not answer takes nothing.
func (w *workloads) decideReady(check *kueue.AdmissionCheckState, v view, now time.Time) verdict {
	stays := verdict{state: kueue.CheckStateReady, message: check.Message}
	switch {
	case !v.known || !v.decided:
		return stays
	case v.held < v.wanted && !v.again:
		message := fmt.Sprintf("stint took back %d of %d pods", v.wanted-v.held, v.wanted)
		return verdict{state: kueue.CheckStateRetry, message: message}
	case v.taken > 0 && v.due.Sub(now) <= w.notice:
		message := fmt.Sprintf("stint takes back %d of %d pods by %s", v.taken, v.wanted, clock(v.due))
		return verdict{state: kueue.CheckStateRetry, message: message}
	case v.taken > 0:
		stays.again = v.due.Sub(now) - w.notice
	}
	return stays
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

// put writes a verdict into a check. A message that is another, of a check that stays as it is, waits for its time.
func (w *workloads) put(
	check *kueue.AdmissionCheckState, v verdict, wl *kueue.Workload, at view, now time.Time,
) (again time.Duration) {
	if len(v.message) > messageBytesMax {
		v.message = strings.ToValidUTF8(v.message[:messageBytesMax-3], "") + "…"
	}
	if check.State == v.state {
		if check.Message == v.message {
			return 0
		}
		if rest := w.feed.hush(client.ObjectKeyFromObject(wl), now, w.quiet); rest > 0 {
			return rest
		}
		check.Message = v.message
		return 0
	}
	check.State, check.Message, check.RequeueAfterSeconds = v.state, v.message, v.requeue
	check.LastTransitionTime = metav1.NewTime(now)
	check.PodSetUpdates = nil
	if v.state == kueue.CheckStateReady {
		check.PodSetUpdates = w.updates(at)
	}
	return 0
}

// hostsAnnotation, on pods, tells on which hosts stint has granted how many pods of their pod set.
const hostsAnnotation = "stintd.github.io/hosts"

// hostsBytesMax bounds that annotation: Kubernetes allows an object 256 KiB of all.
const hostsBytesMax = 32 << 10

// updates are what the pods of a workload get with them: where stint has put them.
func (w *workloads) updates(v view) (all []kueue.PodSetUpdate) {
	for _, sub := range v.subs() {
		on := v.on(sub)
		update := kueue.PodSetUpdate{Name: kueue.PodSetReference(sub)}
		if text := strings.Join(on, ","); len(text) <= hostsBytesMax {
			update.Annotations = map[string]string{hostsAnnotation: text}
		}
		if host, _, _ := strings.Cut(on[0], "="); w.pin && len(on) == 1 {
			update.NodeSelector = map[string]string{corev1.LabelHostname: host}
		}
		all = append(all, update)
	}
	return all
}

func sameCheck(a, b kueue.AdmissionCheckState) bool {
	return a.State == b.State && a.Message == b.Message
}

func soonest(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(0, b)
	}
	return a
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 MST") }
