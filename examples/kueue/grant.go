package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintd/stint/ingest/act"
	"k8s.io/apimachinery/pkg/api/meta"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// unitsAnnotation, on a Workload, is the grant of stint. It is the memory of the controller: the check of the workload
// follows from it, and a controller that takes over reads it.
const unitsAnnotation = "stintd.github.io/units"

// grantBytesMax bounds the annotation: Kubernetes allows an object 256 KiB of them all.
const grantBytesMax = 192 << 10

// grant is what stint granted to a workload.
type grant struct {
	Consumer string `json:"consumer"`
	// Pods are the names of units by pod set and host; "host devices" where a unit lies on devices.
	Pods map[string]map[string][]string `json:"pods"`
	Stop *stopping                      `json:"stop,omitempty"`
}

// stopping says that stint takes units of the workload back.
type stopping struct {
	Units    int       `json:"units"`
	Deadline time.Time `json:"deadline"` // by stint's clock; it is shown, not compared
}

// readGrant reads the annotation; nil: there is none.
func readGrant(wl *kueue.Workload) (*grant, error) {
	text := wl.Annotations[unitsAnnotation]
	if text == "" {
		return nil, nil
	}
	g := &grant{}
	if err := json.Unmarshal([]byte(text), g); err != nil {
		return nil, fmt.Errorf("workload %s/%s: annotation %s: %w; remove it, and the units are given back",
			wl.Namespace, wl.Name, unitsAnnotation, err)
	}
	return g, nil
}

// put writes the annotation; an empty grant removes it.
func (g *grant) put(wl *kueue.Workload) error {
	if g == nil || len(g.Pods) == 0 {
		delete(wl.Annotations, unitsAnnotation)
		return nil
	}
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if len(text) > grantBytesMax {
		return fmt.Errorf("workload %s/%s: its units need %d bytes of annotation, %d are allowed; split it",
			wl.Namespace, wl.Name, len(text), grantBytesMax)
	}
	if wl.Annotations == nil {
		wl.Annotations = map[string]string{}
	}
	wl.Annotations[unitsAnnotation] = string(text)
	return nil
}

func placeName(u *act.Unit) string { return strings.TrimSpace(u.Host + " " + u.Device) }

func (g *grant) has(u *act.Unit) bool {
	return g != nil && slices.Contains(g.Pods[u.Sub][placeName(u)], u.ID)
}

func (g *grant) add(u *act.Unit) {
	if g.Pods == nil {
		g.Pods = map[string]map[string][]string{}
	}
	if g.Pods[u.Sub] == nil {
		g.Pods[u.Sub] = map[string][]string{}
	}
	g.Pods[u.Sub][placeName(u)] = append(g.Pods[u.Sub][placeName(u)], u.ID)
}

func (g *grant) remove(u *act.Unit) {
	at := placeName(u)
	g.Pods[u.Sub][at] = slices.DeleteFunc(g.Pods[u.Sub][at], func(id string) bool { return id == u.ID })
	if len(g.Pods[u.Sub][at]) == 0 {
		delete(g.Pods[u.Sub], at)
	}
	if len(g.Pods[u.Sub]) == 0 {
		delete(g.Pods, u.Sub)
	}
}

// units are the units of a pod set, in order of hosts.
func (g *grant) units(allocation, sub string) (all []act.Unit) {
	for _, at := range slices.Sorted(maps.Keys(g.Pods[sub])) {
		host, device, _ := strings.Cut(at, " ")
		for _, id := range g.Pods[sub][at] {
			all = append(all, act.Unit{ID: id, Consumer: g.Consumer, Allocation: allocation, Sub: sub, Host: host,
				Device: device})
		}
	}
	return all
}

func (g *grant) count(sub string) (n int32) {
	for _, ids := range g.Pods[sub] {
		n += int32(len(ids))
	}
	return n
}

// hosts is where the units of a pod set are, host=units in order.
func (g *grant) hosts(sub string) (on []string) {
	for _, at := range slices.Sorted(maps.Keys(g.Pods[sub])) {
		on = append(on, fmt.Sprintf("%s=%d", strings.ReplaceAll(at, " ", ":"), len(g.Pods[sub][at])))
	}
	return on
}

// subs are the pod sets with units, in order.
func (g *grant) subs() []string { return slices.Sorted(maps.Keys(g.Pods)) }

// covers reports whether every pod of a workload with reserved quota has its unit.
func (g *grant) covers(wl *kueue.Workload) bool {
	if g == nil || g.Stop != nil || wl.Status.Admission == nil {
		return false
	}
	done := donePods(wl)
	for i := range wl.Status.Admission.PodSetAssignments {
		p := &wl.Status.Admission.PodSetAssignments[i]
		if g.count(string(p.Name)) < podsOf(wl, p)-done[p.Name] {
			return false
		}
	}
	return true
}

func isTrue(wl *kueue.Workload, condition string) bool {
	return meta.IsStatusConditionTrue(wl.Status.Conditions, condition)
}

// reserved reports whether Kueue has quota reserved for a workload that is not finished.
func reserved(wl *kueue.Workload) bool {
	return wl.Status.Admission != nil && isTrue(wl, kueue.WorkloadQuotaReserved) && !isTrue(wl, kueue.WorkloadFinished)
}

// mayRun reports whether pods of a workload may exist: its check was Ready, and Kueue has not freed its quota since.
// Kueue resets a check to Pending when it begins to evict.
func mayRun(wl *kueue.Workload, state kueue.CheckState) bool {
	return reserved(wl) && (state == kueue.CheckStateReady || state == kueue.CheckStateRetry ||
		isTrue(wl, kueue.WorkloadEvicted) || isTrue(wl, kueue.WorkloadAdmitted))
}
