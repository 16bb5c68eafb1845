package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// EffectiveQuota is status.effectiveQuota of ClusterQueues and Cohorts (KEP-12382, Kueue 0.20): Kueue schedules by it
// instead of spec.resourceGroups.
type EffectiveQuota struct {
	LastUpdateTime metav1.Time           `json:"lastUpdateTime"`
	ManagerRef     ManagerRef            `json:"managerRef"`
	ResourceGroups []kueue.ResourceGroup `json:"resourceGroups"`
}

// ManagerRef names the component that writes an effective quota.
type ManagerRef struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

// queueSpec has the fields of the spec of a ClusterQueue or a Cohort that the controller reads.
type queueSpec struct {
	CohortName              kueue.CohortReference          `json:"cohortName,omitempty"`
	ParentName              kueue.CohortReference          `json:"parentName,omitempty"`
	ResourceGroups          []kueue.ResourceGroup          `json:"resourceGroups,omitempty"`
	AdmissionChecksStrategy *kueue.AdmissionChecksStrategy `json:"admissionChecksStrategy,omitempty"`
}

type queueStatus struct {
	Conditions     []metav1.Condition `json:"conditions,omitempty"`
	EffectiveQuota *EffectiveQuota    `json:"effectiveQuota,omitempty"`
}

// ClusterQueue is Kueue's, with the fields that the controller reads. The controller writes by server-side apply, which
// leaves all other fields alone.
type ClusterQueue struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              queueSpec   `json:"spec"`
	Status            queueStatus `json:"status,omitempty"`
}

// ClusterQueueList is a list of them.
type ClusterQueueList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterQueue `json:"items"`
}

// Cohort is Kueue's, with the fields that the controller reads.
type Cohort ClusterQueue

// CohortList is a list of them.
type CohortList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cohort `json:"items"`
}

// register adds the types that the controller uses to a scheme: Kueue's own, but ClusterQueue and Cohort, which know
// effectiveQuota here.
func register(s *runtime.Scheme) {
	s.AddKnownTypes(kueue.GroupVersion, &kueue.Workload{}, &kueue.WorkloadList{}, &kueue.AdmissionCheck{},
		&kueue.AdmissionCheckList{}, &kueue.LocalQueue{}, &kueue.LocalQueueList{}, &kueue.ResourceFlavor{},
		&kueue.ResourceFlavorList{}, &ClusterQueue{}, &ClusterQueueList{}, &Cohort{}, &CohortList{})
	metav1.AddToGroupVersion(s, kueue.GroupVersion)
}

func (q *ClusterQueue) deepCopyInto(to *ClusterQueue) {
	*to = *q
	q.ObjectMeta.DeepCopyInto(&to.ObjectMeta)
	to.Spec.ResourceGroups = copyGroups(q.Spec.ResourceGroups)
	to.Spec.AdmissionChecksStrategy = q.Spec.AdmissionChecksStrategy.DeepCopy()
	to.Status.Conditions = append([]metav1.Condition(nil), q.Status.Conditions...)
	if e := q.Status.EffectiveQuota; e != nil {
		copied := *e
		copied.ResourceGroups = copyGroups(e.ResourceGroups)
		to.Status.EffectiveQuota = &copied
	}
}

func copyGroups(groups []kueue.ResourceGroup) (all []kueue.ResourceGroup) {
	for i := range groups {
		all = append(all, *groups[i].DeepCopy())
	}
	return all
}

// DeepCopyObject implements runtime.Object.
func (q *ClusterQueue) DeepCopyObject() runtime.Object {
	to := &ClusterQueue{}
	q.deepCopyInto(to)
	return to
}

// DeepCopyObject implements runtime.Object.
func (c *Cohort) DeepCopyObject() runtime.Object {
	to := &Cohort{}
	(*ClusterQueue)(c).deepCopyInto((*ClusterQueue)(to))
	return to
}

// DeepCopyObject implements runtime.Object.
func (l *ClusterQueueList) DeepCopyObject() runtime.Object {
	to := &ClusterQueueList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		to.Items = append(to.Items, *l.Items[i].DeepCopyObject().(*ClusterQueue))
	}
	return to
}

// DeepCopyObject implements runtime.Object.
func (l *CohortList) DeepCopyObject() runtime.Object {
	to := &CohortList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		to.Items = append(to.Items, *l.Items[i].DeepCopyObject().(*Cohort))
	}
	return to
}
