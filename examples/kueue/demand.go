package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
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

// floor is how many units an amount has.
func (r *divided) floor(q resource.Quantity) (amount int64, whole bool) {
	return new(inf.Dec).QuoRound(q.AsDec(), r.unit, 0, inf.RoundFloor).Unscaled()
}

// refused is an error of the workload itself: asking again does not mend it.
type refused struct{ why string }

func (r refused) Error() string { return r.why }

// podSet is a pod set with the pods that stint decides about.
type podSet struct {
	name  string
	count int32               // pods in all
	done  int32               // of them
	min   int32               // fewer are of no use
	takes corev1.ResourceList // all pods together
}

// podSets are the pod sets of a workload. With quota reserved their amounts are those that Kueue counts, if counted
// asks for them; else they are the requests of the pods, overhead included, so that they do not change when quota is
// reserved.
func podSets(wl *kueue.Workload, counted bool) (all []podSet) {
	done := donePods(wl)
	assigned := map[kueue.PodSetReference]*kueue.PodSetAssignment{}
	if wl.Status.Admission != nil {
		for i := range wl.Status.Admission.PodSetAssignments {
			p := &wl.Status.Admission.PodSetAssignments[i]
			assigned[p.Name] = p
		}
	}
	for i := range wl.Spec.PodSets {
		spec := &wl.Spec.PodSets[i]
		p := podSet{name: string(spec.Name), count: spec.Count, done: done[spec.Name]}
		a := assigned[spec.Name]
		if a != nil {
			p.count = podsOf(wl, a)
		}
		p.min = p.count
		if a == nil && spec.MinCount != nil {
			p.min = *spec.MinCount
		}
		if p.takes = nil; a != nil && counted {
			p.takes = a.ResourceUsage
		} else {
			p.takes = requests(&spec.Template.Spec, p.count)
		}
		all = append(all, p)
	}
	return all
}

// requests are what pods of a specification take together.
func requests(spec *corev1.PodSpec, count int32) corev1.ResourceList {
	each := podresource.PodRequests(&corev1.Pod{Spec: *spec}, podresource.PodResourcesOptions{})
	for name, q := range each {
		q.Mul(int64(count))
		each[name] = q
	}
	return each
}

// share is what so many pods of the set take of a resource.
func (p *podSet) share(name corev1.ResourceName, pods int64) *inf.Dec {
	total := p.takes[name]
	if p.count <= 0 {
		return new(inf.Dec)
	}
	amount := new(inf.Dec).Mul(total.AsDec(), inf.NewDec(pods, 0))
	return amount.QuoRound(amount, inf.NewDec(int64(p.count), 0), 3, inf.RoundCeil)
}

// size is what one pod takes, by dimension, rounded up. An error is of type refused.
func (p *podSet) size(resources []divided) (map[string]int64, error) {
	size := map[string]int64{}
	for _, r := range resources {
		total, ok := p.takes[r.resource]
		if !ok || total.Sign() <= 0 {
			continue
		}
		each := new(inf.Dec).Mul(r.unit, inf.NewDec(int64(p.count), 0))
		amount, whole := new(inf.Dec).QuoRound(total.AsDec(), each, 0, inf.RoundCeil).Unscaled()
		if !whole {
			why := "pod set %s: %s of %s is more than can be counted"
			return nil, refused{fmt.Sprintf(why, p.name, total.String(), r.resource)}
		}
		size[r.dimension] += amount
	}
	if len(size) == 0 {
		var names []string
		for _, r := range resources {
			names = append(names, string(r.resource))
		}
		return nil, refused{fmt.Sprintf(
			"pod set %s requests none of the resources that stint divides (%s); set requests", p.name,
			strings.Join(names, ", "))}
	}
	return size, nil
}

// demandRows is what a workload wants of stint: a row for each pod set, without the pods that are done.
func demandRows(allocation, consumer string, sets []podSet, resources []divided) (rows []map[string]any, err error) {
	for i := range sets {
		p := &sets[i]
		if p.count <= 0 {
			continue
		}
		size, err := p.size(resources)
		if err != nil {
			return nil, err
		}
		units := p.count - p.done
		if units <= 0 {
			continue
		}
		row := map[string]any{"consumer": consumer, "allocation": allocation, "sub": p.name,
			"units": json.Number(strconv.Itoa(int(units)))}
		for dimension, amount := range size {
			row[dimension] = amount
		}
		if least := min(p.min, units); least > 1 {
			row["min_units"] = least
		}
		rows = append(rows, row)
	}
	return rows, nil
}

func donePods(wl *kueue.Workload) map[kueue.PodSetReference]int32 {
	done := map[kueue.PodSetReference]int32{}
	for _, p := range wl.Status.ReclaimablePods {
		done[p.Name] = p.Count
	}
	return done
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

// consumerOf is the leaf of stint's policy that a workload belongs to: the annotation of its ClusterQueue, else the
// path that `stint import kueue` makes of cohorts, ClusterQueue and LocalQueue.
func consumerOf(queue *ClusterQueue, cohorts map[string]*Cohort, wl *kueue.Workload) (string, error) {
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
		cohort := cohorts[string(name)]
		if cohort == nil {
			return path, nil
		}
		name = cohort.Spec.ParentName
	}
	return "", refused{fmt.Sprintf(
		"the cohorts above ClusterQueue %s are a ring; name its consumer in the annotation %s", queue.Name,
		consumerAnnotation)}
}
