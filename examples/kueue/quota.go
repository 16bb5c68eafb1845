package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// fieldOwner is the field manager of all that the controller writes.
const fieldOwner = "stint"

// grantedCondition, of a ClusterQueue, says what stint granted; deploy/columns.json shows it in kubectl get.
const grantedCondition = "stintd.github.io/Granted"

// quotaMode is where quotas are written.
type quotaMode string

const (
	quotaNone   quotaMode = "none"   // nowhere: Kueue's own quotas hold
	quotaStatus quotaMode = "status" // status.effectiveQuota, Kueue 0.20 and later
	quotaSpec   quotaMode = "spec"   // spec.resourceGroups, any Kueue
)

// quotas writes what stint granted to each ClusterQueue as its quota.
type quotas struct {
	client.Client
	controller string
	source     string
	mode       quotaMode
	resources  []divided
	decisions  *decisions
}

func (q *quotas) ref() ManagerRef {
	return ManagerRef{APIGroup: "stintd.github.io", Kind: "Stint", Name: q.source}
}

// Reconcile writes the quota of one ClusterQueue where it differs.
func (q *quotas) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	defer q.decisions.tried(req.Name)
	queue := &ClusterQueue{}
	if err := q.Get(ctx, req.NamespacedName, queue); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	checks, err := readChecks(ctx, q.Client, q.controller)
	if err != nil {
		return ctrl.Result{}, err
	}
	t, at, known := q.decisions.of(queue.Name)
	switch {
	case !checks.asks(queue):
		return ctrl.Result{}, q.leave(ctx, queue)
	case !known:
		return ctrl.Result{}, nil
	}
	groups := grantedGroups(queue.Spec.ResourceGroups, q.resources, t.amounts, queue.Spec.CohortName != "")
	condition := t.condition(queue, at)
	return ctrl.Result{}, q.apply(ctx, "ClusterQueue", queue, groups, condition, at)
}

// apply writes groups as the quota of an object, and a condition where there is one. It writes nothing that is there.
func (q *quotas) apply(
	ctx context.Context, kind string, to *ClusterQueue, groups []kueue.ResourceGroup, condition *metav1.Condition,
	at time.Time,
) error {
	status := map[string]any{}
	same := true
	if condition != nil {
		was := meta.FindStatusCondition(to.Status.Conditions, grantedCondition)
		if same = was != nil && was.Message == condition.Message && was.Status == condition.Status; same {
			condition = was
		}
		status["conditions"] = []any{condition}
	}
	switch e := to.Status.EffectiveQuota; {
	case q.mode == quotaSpec && !sameGroups(to.Spec.ResourceGroups, groups):
		spec := map[string]any{"spec": map[string]any{"resourceGroups": groups}}
		if err := q.send(ctx, kind, to, "", spec); err != nil {
			return err
		}
	case q.mode == quotaSpec:
	case e != nil && e.ManagerRef != q.ref():
		return fmt.Errorf("%s %s: status.effectiveQuota belongs to %s %s: take the queue out of its subtree, or its "+
			"admission check away", kind, to.Name, e.ManagerRef.Kind, e.ManagerRef.Name)
	default:
		next := &EffectiveQuota{LastUpdateTime: metav1.NewTime(at), ManagerRef: q.ref(), ResourceGroups: groups}
		if e != nil && sameGroups(e.ResourceGroups, groups) {
			next.LastUpdateTime = e.LastUpdateTime
		} else {
			same = false
		}
		status["effectiveQuota"] = next
	}
	if same {
		return nil
	}
	err := q.send(ctx, kind, to, "status", map[string]any{"status": status})
	if err != nil && strings.Contains(err.Error(), "field not declared in schema") {
		err = fmt.Errorf("this Kueue has no status.effectiveQuota, which comes with 0.20: run with -quota spec: %w",
			err)
	}
	return err
}

// send applies a part of an object. The UID keeps an object that was deleted meanwhile from being made anew.
func (q *quotas) send(
	ctx context.Context, kind string, to client.Object, subresource string, part map[string]any,
) error {
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&part)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: body}
	u.SetGroupVersionKind(kueue.GroupVersion.WithKind(kind))
	u.SetName(to.GetName())
	u.SetUID(to.GetUID())
	object := client.ApplyConfigurationFromUnstructured(u)
	if subresource == "" {
		err = q.Apply(ctx, object, client.FieldOwner(fieldOwner), client.ForceOwnership)
	} else {
		err = q.SubResource(subresource).Apply(ctx, object, client.FieldOwner(fieldOwner), client.ForceOwnership)
	}
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("%s %s: %w", kind, to.GetName(), err)
	}
	return nil
}

// leave takes back what the controller wrote into the status of a queue that does not ask stint any more.
func (q *quotas) leave(ctx context.Context, queue *ClusterQueue) error {
	e := queue.Status.EffectiveQuota
	ours := meta.FindStatusCondition(queue.Status.Conditions, grantedCondition) != nil ||
		e != nil && e.ManagerRef == q.ref()
	if !ours {
		return nil
	}
	return q.send(ctx, "ClusterQueue", queue, "status", map[string]any{"status": map[string]any{}})
}

// grantedGroups are resource groups with amounts in place of the nominal quotas of resources that stint divides. In a
// cohort nothing of them is lent or borrowed: stint has done so already.
func grantedGroups(
	groups []kueue.ResourceGroup, resources []divided, amounts map[pair]*inf.Dec, inCohort bool,
) (all []kueue.ResourceGroup) {
	all = copyGroups(groups)
	for i := range all {
		for j := range all[i].Flavors {
			f := &all[i].Flavors[j]
			for k := range f.Resources {
				r := &f.Resources[k]
				if !slices.ContainsFunc(resources, func(d divided) bool { return d.resource == r.Name }) {
					continue
				}
				amount := amounts[pair{flavor: f.Name, resource: r.Name}]
				if amount == nil {
					amount = new(inf.Dec)
				}
				r.NominalQuota = quantity(amount, r.NominalQuota.Format)
				if inCohort {
					r.BorrowingLimit, r.LendingLimit = &resource.Quantity{}, &resource.Quantity{}
				}
			}
		}
	}
	return all
}

func quantity(amount *inf.Dec, format resource.Format) resource.Quantity {
	if format == "" {
		format = resource.DecimalSI
	}
	return *resource.NewDecimalQuantity(*new(inf.Dec).Set(amount), format)
}

// sameGroups reports whether two quotas are alike, however their amounts are written.
func sameGroups(a, b []kueue.ResourceGroup) bool {
	return slices.EqualFunc(a, b, func(a, b kueue.ResourceGroup) bool {
		return slices.Equal(a.CoveredResources, b.CoveredResources) &&
			slices.EqualFunc(a.Flavors, b.Flavors, sameFlavor)
	})
}

func sameFlavor(a, b kueue.FlavorQuotas) bool {
	return a.Name == b.Name && slices.EqualFunc(a.Resources, b.Resources, func(a, b kueue.ResourceQuota) bool {
		return a.Name == b.Name && a.NominalQuota.Cmp(b.NominalQuota) == 0 &&
			sameLimit(a.BorrowingLimit, b.BorrowingLimit) && sameLimit(a.LendingLimit, b.LendingLimit)
	})
}

func sameLimit(a, b *resource.Quantity) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Cmp(*b) == 0
}

// condition says in words what a queue has, such as "cpu 16 for 16 pods; 4 more pods are under recall".
func (t *total) condition(queue *ClusterQueue, at time.Time) *metav1.Condition {
	sums := map[corev1.ResourceName]*inf.Dec{}
	for p, amount := range t.amounts {
		if sums[p.resource] == nil {
			sums[p.resource] = new(inf.Dec)
		}
		sums[p.resource].Add(sums[p.resource], amount)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		format := resource.DecimalSI
		if name == corev1.ResourceMemory {
			format = resource.BinarySI
		}
		q := quantity(sums[name], format)
		parts = append(parts, fmt.Sprintf("%s %s", name, q.String()))
	}
	c := &metav1.Condition{Type: grantedCondition, Status: metav1.ConditionTrue, Reason: "Granted",
		ObservedGeneration: queue.Generation, LastTransitionTime: metav1.NewTime(at)}
	c.Message = fmt.Sprintf("%s for %d pods", strings.Join(parts, ", "), t.units)
	if t.units == 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Nothing", "nothing"
	}
	if t.recalled > 0 {
		c.Reason = "Recalled"
		c.Message += fmt.Sprintf("; %d more pods are under recall", t.recalled)
	}
	return c
}

// cohorts writes the quotas of Cohorts whose queues all ask stint: nothing, since stint grants to queues alone.
type cohorts struct{ quotas }

// Reconcile writes the quota of one Cohort where it differs.
func (c *cohorts) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cohort := &Cohort{}
	if err := c.Get(ctx, req.NamespacedName, cohort); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	_, at, known := c.decisions.of("")
	if !known || len(cohort.Spec.ResourceGroups) == 0 {
		return ctrl.Result{}, nil
	}
	q, err := readQueues(ctx, c.Client, c.controller)
	if err != nil {
		return ctrl.Result{}, err
	}
	managed, others := q.below(cohort.Name)
	if managed == 0 {
		return ctrl.Result{}, nil
	}
	if others > 0 {
		return ctrl.Result{}, errors.New("Cohort " + cohort.Name + ": it has quota, and ClusterQueues below it that " +
			"do not ask stint: its quota stays; give them the admission check, or move the quota into queues")
	}
	groups := grantedGroups(cohort.Spec.ResourceGroups, c.resources, nil, cohort.Spec.ParentName != "")
	return ctrl.Result{}, c.apply(ctx, "Cohort", (*ClusterQueue)(cohort), groups, nil, at)
}

// below counts the ClusterQueues of a cohort and of those below it that ask stint, and all others.
func (q *queues) below(cohort string) (managed, others int) {
	for name, queue := range q.cluster {
		if !slices.Contains(q.above(queue), cohort) {
			continue
		}
		if q.managed[name] {
			managed++
		} else {
			others++
		}
	}
	return managed, others
}

// above are the cohorts of a queue, from the nearest on.
func (q *queues) above(queue *ClusterQueue) (names []string) {
	name := string(queue.Spec.CohortName)
	for name != "" && len(names) < cohortsMax {
		names = append(names, name)
		cohort := q.cohort[name]
		if cohort == nil {
			break
		}
		name = string(cohort.Spec.ParentName)
	}
	return names
}

// requests names the cohorts of a queue that changed.
func (c *cohorts) requests(ctx context.Context, o client.Object) (all []ctrl.Request) {
	queue, ok := o.(*ClusterQueue)
	if !ok || queue.Spec.CohortName == "" {
		return nil
	}
	q, err := readQueues(ctx, c.Client, c.controller)
	if err != nil {
		return nil // the cache of this process does not fail once it is filled
	}
	for _, name := range q.above(queue) {
		all = append(all, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	}
	return all
}
