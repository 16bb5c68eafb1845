package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// consumerAnnotation, on a ClusterQueue, names the consumer of stint that its workloads belong to.
const consumerAnnotation = "stintd.github.io/consumer"

// nameBytesMax is the longest name that stint takes.
const nameBytesMax = 256

// divided is a resource that stint divides: the dimension of the policy that it is, and how much of it counts as one.
type divided struct {
	resource  corev1.ResourceName
	dimension string
	unit      *inf.Dec
}

// parseResources reads RESOURCE=DIMENSION:UNIT,…
func parseResources(text string) (all []divided, err error) {
	for _, part := range strings.Split(text, ",") {
		name, rest, ok := strings.Cut(part, "=")
		dimension, unit, ok2 := strings.Cut(rest, ":")
		if !ok || !ok2 || name == "" || dimension == "" {
			return nil, fmt.Errorf("%q: must be RESOURCE=DIMENSION:UNIT, such as cpu=cpu_milli:1m", part)
		}
		q, err := resource.ParseQuantity(unit)
		if err != nil || q.Sign() <= 0 {
			return nil, fmt.Errorf("%q: the unit must be a quantity above 0, such as 1m, 1Mi or 1", part)
		}
		all = append(all, divided{corev1.ResourceName(name), dimension, q.AsDec()})
	}
	return all, nil
}

// rowKey is a sub-allocation of a workload's allocation: a pod set.
type rowKey struct{ consumer, sub string }

// row is how many pods of a pod set are wanted, and the size of each.
type row struct {
	units int64
	size  string // a JSON object by dimension
}

// refused is an error that asking again does not mend.
type refused struct{ why string }

func (r refused) Error() string { return r.why }

// rows is what a workload that has reserved quota wants of stint: a row for each pod set, with the amounts that Kueue
// counts of it, overheads included, divided by its pods and rounded up. Pods that are done already are left out.
func rows(wl *kueue.Workload, consumer string, resources []divided) (map[rowKey]row, error) {
	done := map[kueue.PodSetReference]int32{}
	for _, p := range wl.Status.ReclaimablePods {
		done[p.Name] = p.Count
	}
	all := map[rowKey]row{}
	for i := range wl.Status.Admission.PodSetAssignments {
		p := &wl.Status.Admission.PodSetAssignments[i]
		count := podsOf(wl, p)
		if count <= 0 {
			continue
		}
		size := map[string]int64{}
		for _, r := range resources {
			total, ok := p.ResourceUsage[r.resource]
			if !ok || total.Sign() <= 0 {
				continue
			}
			each := new(inf.Dec).Mul(r.unit, inf.NewDec(int64(count), 0))
			amount, whole := new(inf.Dec).QuoRound(total.AsDec(), each, 0, inf.RoundCeil).Unscaled()
			if !whole {
				why := "pod set %s: %s of %s is more than can be counted"
				return nil, refused{fmt.Sprintf(why, p.Name, total.String(), r.resource)}
			}
			size[r.dimension] += amount
		}
		if len(size) == 0 {
			return nil, refused{fmt.Sprintf("pod set %s asks for none of the resources that stint divides", p.Name)}
		}
		text, err := json.Marshal(size)
		if err != nil {
			return nil, err
		}
		all[rowKey{consumer, string(p.Name)}] = row{units: int64(max(0, count-done[p.Name])), size: string(text)}
	}
	return all, nil
}

// podsOf is how many pods of a pod set Kueue has reserved quota for.
func podsOf(wl *kueue.Workload, p *kueue.PodSetAssignment) int32 {
	if p.Count != nil {
		return *p.Count
	}
	for i := range wl.Spec.PodSets {
		if wl.Spec.PodSets[i].Name == p.Name {
			return wl.Spec.PodSets[i].Count
		}
	}
	return 0
}

// allocation is what stint calls a workload: workloadOf is the way back.
func allocation(name types.NamespacedName) (string, error) {
	if s := name.String(); len(s) <= nameBytesMax {
		return s, nil
	}
	return "", refused{fmt.Sprintf("namespace and name have more than %d bytes together", nameBytesMax)}
}

func workloadOf(allocation string) types.NamespacedName {
	namespace, name, _ := strings.Cut(allocation, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// cohortsMax bounds a chain of cohorts, which may be a ring.
const cohortsMax = 64

// consumer is the leaf of stint's policy that a workload belongs to: what its ClusterQueue's annotation says, else the
// path that `stint import kueue` makes of cohorts, ClusterQueue and LocalQueue.
func consumer(ctx context.Context, c client.Reader, wl *kueue.Workload) (string, error) {
	var queue kueue.ClusterQueue
	if err := c.Get(ctx, types.NamespacedName{Name: string(wl.Status.Admission.ClusterQueue)}, &queue); err != nil {
		return "", err
	}
	if path := queue.Annotations[consumerAnnotation]; path != "" {
		return path, nil
	}
	path := "/" + queue.Name + "/" + wl.Namespace + "." + string(wl.Spec.QueueName)
	name := queue.Spec.CohortName
	for range cohortsMax {
		if name == "" {
			return path, nil
		}
		path = "/" + string(name) + path
		var cohort kueue.Cohort
		if err := client.IgnoreNotFound(c.Get(ctx, types.NamespacedName{Name: string(name)}, &cohort)); err != nil {
			return "", err
		}
		name = cohort.Spec.ParentName
	}
	return "", refused{fmt.Sprintf("the cohorts above ClusterQueue %s are a ring", queue.Name)}
}
