package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// TestManifests holds the manifests to Kubernetes' own types, and to what the controller takes and does.
func TestManifests(t *testing.T) {
	kinds := map[string]any{
		"AdmissionCheck": &kueue.AdmissionCheck{}, "Deployment": &appsv1.Deployment{},
		"ServiceAccount": &corev1.ServiceAccount{}, "ClusterRole": &rbacv1.ClusterRole{},
		"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}, "Role": &rbacv1.Role{},
		"RoleBinding": &rbacv1.RoleBinding{},
	}
	files, err := filepath.Glob("deploy/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n---\n") {
			var o struct{ Kind string }
			if err := yaml.Unmarshal([]byte(part), &o); err != nil || kinds[o.Kind] == nil {
				t.Fatalf("%s: %q, %v", file, o.Kind, err)
			}
			if err := yaml.UnmarshalStrict([]byte(part), kinds[o.Kind]); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	set := flag.NewFlagSet("kueue", flag.ContinueOnError)
	s := flags(set)
	container := kinds["Deployment"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
	if err := set.Parse(container.Args); err != nil {
		t.Error(err)
	}
	if _, err := parseResources(s.resources); err != nil {
		t.Error(err)
	}
	if name := kinds["AdmissionCheck"].(*kueue.AdmissionCheck).Spec.ControllerName; name != s.check.controller {
		t.Errorf("the check is of %s, the controller answers %s", name, s.check.controller)
	}
	for _, need := range []string{"workloads get", "workloads patch", "workloads/status patch", "admissionchecks watch",
		"admissionchecks/status update", "clusterqueues list", "clusterqueues patch", "clusterqueues/status patch",
		"cohorts list", "cohorts patch", "cohorts/status patch", "localqueues list", "resourceflavors list"} {
		resource, verb, _ := strings.Cut(need, " ")
		if !slices.ContainsFunc(kinds["ClusterRole"].(*rbacv1.ClusterRole).Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, "kueue.x-k8s.io") && slices.Contains(r.Resources, resource) &&
				slices.Contains(r.Verbs, verb)
		}) {
			t.Errorf("the controller may not %s", need)
		}
	}
}

func TestResources(t *testing.T) {
	all, err := parseResources("cpu=ncpus:1,nvidia.com/gpu=gpus:1,memory=maxmem:1Gi")
	if err != nil || len(all) != 3 || all[1].resource != "nvidia.com/gpu" || all[1].dimension != "gpus" {
		t.Errorf("%v: %v", all, err)
	}
	for _, text := range []string{"", "cpu", "cpu=", "cpu=ncpus", "=ncpus:1", "cpu=:1", "cpu=ncpus:0", "cpu=ncpus:-1",
		"cpu=ncpus:x"} {
		if _, err := parseResources(text); err == nil || !strings.Contains(err.Error(), strconv.Quote(text)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// pod is a specification of pods with requests.
func pod(requests corev1.ResourceList) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}
}

func TestRows(t *testing.T) {
	resources, err := parseResources("cpu=cpu_milli:1m,memory=memory_mib:1Mi,nvidia.com/gpu=gpus:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		takes corev1.ResourceList // all pods
		done  int32
		units string
		size  map[string]int64
		fault string
	}{
		{"whole", corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("3Gi")}, 0,
			"3", map[string]int64{"cpu_milli": 1000, "memory_mib": 1024}, ""},
		{"rounded up", corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1")}, 0,
			"3", map[string]int64{"cpu_milli": 334, "memory_mib": 1}, ""},
		{"of others", corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("6"), "pods": resource.MustParse("3")},
			0, "3", map[string]int64{"gpus": 2}, ""},
		{"some done", corev1.ResourceList{"cpu": resource.MustParse("3")}, 2, "1",
			map[string]int64{"cpu_milli": 1000}, ""},
		{"all done", corev1.ResourceList{"cpu": resource.MustParse("3")}, 4, "", nil, ""},
		{"large", corev1.ResourceList{"memory": resource.MustParse("3Ei")}, 0, "3",
			map[string]int64{"memory_mib": 1099511627776}, ""},
		{"nothing", corev1.ResourceList{"pods": resource.MustParse("3")}, 0, "", nil, "none of the resources"},
		{"too much", corev1.ResourceList{"cpu": resource.MustParse("60000000e18")}, 0, "", nil,
			"more than can be counted"},
	} {
		wl := &kueue.Workload{}
		wl.Spec.PodSets = []kueue.PodSet{{Name: "main", Count: 4}} // one fewer is admitted
		wl.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "main",
			Count: ptr.To[int32](3), ResourceUsage: c.takes}}}
		wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: c.done}}
		rows, err := demandRows("ns/wl", "/Risk", podSets(wl, true), resources)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v, %v", c.name, rows, err)
			}
			continue
		}
		if err != nil || len(rows) != min(1, len(c.units)) {
			t.Errorf("%s: %v, %v", c.name, rows, err)
			continue
		}
		for _, row := range rows {
			if row["units"] != json.Number(c.units) || row["consumer"] != "/Risk" || row["sub"] != "main" {
				t.Errorf("%s: %v", c.name, row)
			}
			for dimension, amount := range c.size {
				if row[dimension] != amount {
					t.Errorf("%s: %v", c.name, row)
				}
			}
		}
	}
}

// TestPending holds the rows of a workload without reserved quota to the requests of its pods, overhead included, and
// to its least number of pods.
func TestPending(t *testing.T) {
	resources, err := parseResources("cpu=cpu_milli:1m")
	if err != nil {
		t.Fatal(err)
	}
	wl := &kueue.Workload{}
	spec := pod(corev1.ResourceList{"cpu": resource.MustParse("2")})
	spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("500m")}
	set := kueue.PodSet{Name: "main", Count: 4, MinCount: ptr.To[int32](2)}
	set.Template.Spec = spec
	wl.Spec.PodSets = []kueue.PodSet{set}
	rows, err := demandRows("ns/wl", "/Risk", podSets(wl, false), resources)
	if err != nil || len(rows) != 1 || rows[0]["cpu_milli"] != int64(2500) || rows[0]["min_units"] != int32(2) {
		t.Errorf("%v: %v", rows, err)
	}
}

func TestNames(t *testing.T) {
	n := types.NamespacedName{Namespace: "risk", Name: "job-var-1f2e3"}
	if a, err := allocation(n); err != nil || workloadOf(a) != n {
		t.Errorf("%q, %v", a, err)
	}
	if _, err := allocation(types.NamespacedName{Namespace: "risk", Name: strings.Repeat("x", 252)}); err == nil {
		t.Error("a name that is too long was taken")
	}
}

func TestConsumer(t *testing.T) {
	queue := &ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "risk"}}
	queue.Spec.CohortName = "trading"
	bank, trading := &Cohort{}, &Cohort{}
	trading.Spec.ParentName = "bank"
	cohorts := map[string]*Cohort{"bank": bank, "trading": trading}
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "risk"}}
	wl.Spec.QueueName = "intraday"
	if path, err := consumerOf(queue, cohorts, wl); path != "/bank/trading/risk/risk.intraday" || err != nil {
		t.Errorf("%s: %v", path, err)
	}
	bank.Spec.ParentName = "trading"
	_, err := consumerOf(queue, cohorts, wl)
	if err == nil || !strings.Contains(err.Error(), "ClusterQueue risk are a ring") {
		t.Errorf("a ring: %v", err)
	}
	queue.Annotations = map[string]string{consumerAnnotation: "/Risk"}
	if path, err := consumerOf(queue, cohorts, wl); path != "/Risk" || err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// TestHosts holds the table of hosts to the states and flavors of nodes.
func TestHosts(t *testing.T) {
	resources, err := parseResources("cpu=ncpus:1")
	if err != nil {
		t.Fatal(err)
	}
	made := func(name, cpu, label string, ready corev1.ConditionStatus, cordoned bool) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": label}}}
		n.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
		n.Spec.Unschedulable = cordoned
		return n
	}
	n := &nodes{}
	n.list.Items = []corev1.Node{made("c", "8", "own", "Unknown", true), made("b", "8", "own", "True", true),
		made("a", "7900m", "spot", "True", false)}
	n.flavors.Items = []kueue.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "spot"},
		Spec: kueue.ResourceFlavorSpec{NodeLabels: map[string]string{"type": "spot"}}}}
	rows, err := n.hosts(resources)
	text, _ := json.Marshal(rows)
	want := `[{"flavor":"spot","host":"a","ncpus":7,"state":"ok"},{"host":"b","ncpus":8,"state":"closed"},` +
		`{"host":"c","ncpus":8,"state":"unavail"}]`
	if err != nil || string(text) != want {
		t.Errorf("%s: %v", text, err)
	}
	n.list.Items[0].Status.Allocatable["cpu"] = resource.MustParse("60000000e18")
	if _, err := n.hosts(resources); err == nil || !strings.Contains(err.Error(), "node a: 60e24 of cpu") {
		t.Errorf("too much: %v", err)
	}
}
