package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/act"
	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestDecide is what a check says, by what it said, the grant of its workload and the time.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	resources, err := parseResources("cpu=ncpus:1")
	if err != nil {
		t.Fatal(err)
	}
	w := &workloads{checkSettings: checkSettings{backoff: time.Minute, backoffMax: 10 * time.Minute, wait: time.Hour},
		resources: resources, decisions: &decisions{cache: fake.NewClientBuilder().WithScheme(newScheme()).Build()}}
	all := &grant{Consumer: "/Risk", Pods: map[string]map[string][]string{"main": {"h1": {"a", "b"}, "h2": {"c"}}}}
	some := &grant{Consumer: "/Risk", Pods: map[string]map[string][]string{"main": {"h1": {"a", "b"}}}}
	taken := &grant{Consumer: "/Risk", Pods: all.Pods, Stop: &stopping{Units: 1, Deadline: now}}
	for _, c := range []struct {
		name    string
		was     kueue.CheckState
		g       *grant
		since   time.Duration // that its quota is reserved; -1: it is not
		retries *int32
		is      kueue.CheckState
		message string
		requeue int32 // seconds
	}{
		{"all are granted", "Pending", all, 0, nil, "Ready", "stint granted all pods: main on h1=2, h2=1", 0},
		{"all are granted, no quota yet", "Pending", all, -1, nil, "Pending", "stint granted 3 of 3 pods.", 0},
		{"some are granted", "Pending", some, 0, nil, "Pending", "stint granted 2 of 3 pods.", 0},
		{"nothing is granted", "Pending", nil, 0, nil, "Pending", "stint granted 0 of 3 pods.", 0},
		{"it waited too long", "Pending", some, time.Hour, nil, "Retry", "stint granted 2 of 3 pods.", 60},
		{"again too long", "Pending", nil, time.Hour, ptr.To[int32](2), "Retry", "stint granted 0 of 3", 240},
		{"for the tenth time", "Pending", nil, time.Hour, ptr.To[int32](9), "Retry", "stint granted 0 of 3", 600},
		{"it runs", "Ready", all, time.Hour, nil, "Ready", "was", 0},
		{"it runs without a grant", "Ready", nil, time.Hour, nil, "Ready", "was", 0},
		{"stint takes back", "Ready", taken, 0, nil, "Retry", "stint takes back 1 of 3 pods by 08:00:00 UTC", 0},
		{"Kueue has not evicted yet", "Retry", taken, 0, nil, "Retry", "was", 0},
		{"somebody rejected it", "Rejected", all, 0, nil, "Rejected", "was", 0},
	} {
		wl := &kueue.Workload{}
		set := kueue.PodSet{Name: "main", Count: 3}
		set.Template.Spec = pod(corev1.ResourceList{"cpu": resource.MustParse("1")})
		wl.Spec.PodSets = []kueue.PodSet{set}
		if c.since >= 0 {
			wl.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "main",
				Count: ptr.To[int32](3), ResourceUsage: corev1.ResourceList{"cpu": resource.MustParse("3")}}}}
			wl.Status.Conditions = []metav1.Condition{{Type: kueue.WorkloadQuotaReserved, Status: metav1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(now.Add(-c.since))}}
		}
		check := &kueue.AdmissionCheckState{State: c.was, Message: "was", RetryCount: c.retries}
		v := w.decide(t.Context(), wl, c.g, check, now)
		if v.state != c.is || !strings.HasPrefix(v.message, c.message) || ptr.Deref(v.requeue, 0) != c.requeue {
			t.Errorf("%s: %s %q, again after %v s", c.name, v.state, v.message, ptr.Deref(v.requeue, 0))
		}
	}
}

func TestGrant(t *testing.T) {
	wl := &kueue.Workload{}
	g := &grant{Consumer: "/Risk"}
	units := []act.Unit{{ID: "u1", Consumer: "/Risk", Allocation: "ns/wl", Sub: "main", Host: "h1", Device: "4+5"},
		{ID: "u2", Consumer: "/Risk", Allocation: "ns/wl", Sub: "main", Host: "h1"}}
	for i := range units {
		g.add(&units[i])
	}
	if err := g.put(wl); err != nil {
		t.Fatal(err)
	}
	back, err := readGrant(wl)
	if err != nil || len(back.units("ns/wl", "main")) != 2 || !back.has(&units[0]) || !back.has(&units[1]) ||
		strings.Join(back.hosts("main"), ",") != "h1=1,h1:4+5=1" {
		t.Errorf("%v: %v", back, err)
	}
	for i := range units {
		back.remove(&units[i])
	}
	if err := back.put(wl); err != nil || len(wl.Annotations) > 0 {
		t.Errorf("%v: %v", wl.Annotations, err)
	}
	for i := range 20000 {
		units[1].ID = "u" + strings.Repeat("0", 12) + string(rune('a'+i%26))
		g.add(&units[1])
	}
	if err := g.put(wl); err == nil || !strings.Contains(err.Error(), "bytes of annotation") {
		t.Errorf("a grant of any size: %v", err)
	}
	wl.Namespace, wl.Name, wl.Annotations = "ns", "wl", map[string]string{unitsAnnotation: "{"}
	if _, err := readGrant(wl); err == nil || !strings.Contains(err.Error(), "workload ns/wl: annotation ") {
		t.Errorf("a damaged annotation: %v", err)
	}
}

// TestGroups holds a quota to what was granted by flavor, and to neither lending nor borrowing in a cohort.
func TestGroups(t *testing.T) {
	resources, err := parseResources("cpu=ncpus:1,memory=mem:1Mi")
	if err != nil {
		t.Fatal(err)
	}
	quota := func(name corev1.ResourceName, nominal string) kueue.ResourceQuota {
		return kueue.ResourceQuota{Name: name, NominalQuota: resource.MustParse(nominal),
			BorrowingLimit: ptr.To(resource.MustParse("5"))}
	}
	groups := []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{"cpu", "memory", "pods"},
		Flavors: []kueue.FlavorQuotas{
			{Name: "own", Resources: []kueue.ResourceQuota{quota("cpu", "8"), quota("memory", "64Gi"),
				quota("pods", "9")}},
			{Name: "spot", Resources: []kueue.ResourceQuota{quota("cpu", "8"), quota("memory", "64Gi"),
				quota("pods", "9")}},
		}}}
	queue := &ClusterQueue{}
	queue.Spec.ResourceGroups = groups
	for flavors, want := range map[string]kueue.ResourceFlavorReference{"spot": "spot", "own": "own", "gpu": "own"} {
		if f := flavorFor(queue, "cpu", []string{flavors}); f != want {
			t.Errorf("a host of %s counts in %s", flavors, f)
		}
	}
	got := grantedGroups(groups, resources, map[pair]*inf.Dec{{flavor: "spot", resource: "cpu"}: inf.NewDec(25, 1),
		{flavor: "own", resource: "memory"}: inf.NewDec(3<<30, 0)}, true)
	text := ""
	for _, f := range got[0].Flavors {
		for _, r := range f.Resources {
			text += fmt.Sprintf("%s %s %s %s,", f.Name, r.Name, r.NominalQuota.String(), r.BorrowingLimit.String())
		}
	}
	want := "own cpu 0 0,own memory 3Gi 0,own pods 9 5,spot cpu 2500m 0,spot memory 0 0,spot pods 9 5,"
	if text != want {
		t.Errorf("%s", text)
	}
	if sameGroups(groups, got) || !sameGroups(got, copyGroups(got)) ||
		groups[0].Flavors[0].Resources[0].NominalQuota.IsZero() {
		t.Error("groups are compared wrongly, or the specification was changed")
	}
}

// TestQuotasFirst holds that workloads wait until the quotas of a cycle were written, or could not be, and that nothing
// waits where no quotas are written.
func TestQuotasFirst(t *testing.T) {
	q := &queues{managed: map[string]bool{"a": true, "b": true, "other": false}}
	d := &decisions{news: make(chan event.TypedGenericEvent[*ClusterQueue], 2)}
	due := d.put(q, map[string]*total{}, nil)
	slices.Sort(due)
	if !slices.Equal(due, []string{"a", "b"}) {
		t.Fatal(due)
	}
	done := make(chan struct{})
	go func() {
		d.afterQuotas(t.Context())
		close(done)
	}()
	d.tried("a")
	d.tried("a")
	select {
	case <-done:
		t.Fatal("a workload starts before the quota of b is written")
	case <-time.After(50 * time.Millisecond):
	}
	d.tried("b")
	<-done
	d.afterQuotas(t.Context())
	if due := d.put(q, map[string]*total{"b": {units: 1}}, nil); !slices.Equal(due, []string{"b"}) {
		t.Error(due)
	}
	none := &decisions{}
	if due := none.put(q, map[string]*total{"a": {units: 1}}, nil); due != nil {
		t.Error(due)
	}
	none.afterQuotas(t.Context())
}
