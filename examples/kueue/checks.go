package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// checks says of the admission checks of this controller that they are answered: until then Kueue does not use the
// cluster queues that name them.
type checks struct {
	client.Client
	controller string
}

// Reconcile marks one admission check as active.
func (c *checks) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var check kueue.AdmissionCheck
	if err := c.Get(ctx, req.NamespacedName, &check); err != nil || check.Spec.ControllerName != c.controller {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	active := meta.SetStatusCondition(&check.Status.Conditions, metav1.Condition{
		Type: kueue.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active",
		Message: "stint is asked", ObservedGeneration: check.Generation,
	})
	if !active {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, &check))
}
