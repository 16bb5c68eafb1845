package main

import (
	"encoding/csv"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objects are those of Kueue in a file of manifests.
func objects(t *testing.T, file string) (all []client.Object) {
	t.Helper()
	for _, part := range strings.Split(read(t, file), "\n---\n") {
		var o client.Object
		switch {
		case strings.Contains(part, "kind: ClusterQueue\n"):
			o = &kueue.ClusterQueue{}
		case strings.Contains(part, "kind: Cohort\n"):
			o = &kueue.Cohort{}
		default:
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(part), o); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, o)
	}
	return all
}

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
		for _, part := range strings.Split(read(t, file), "\n---\n") {
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
	for _, need := range []string{"workloads get", "workloads/status patch", "admissionchecks watch",
		"admissionchecks/status update", "clusterqueues list", "cohorts list"} {
		resource, verb, _ := strings.Cut(need, " ")
		if !slices.ContainsFunc(kinds["ClusterRole"].(*rbacv1.ClusterRole).Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, "kueue.x-k8s.io") && slices.Contains(r.Resources, resource) &&
				slices.Contains(r.Verbs, verb)
		}) {
			t.Errorf("the controller may not %s", need)
		}
	}
}

// wantedIn is how many units a table of demand asks for.
func wantedIn(t *testing.T, table []byte) (sum int64) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(string(table))).ReadAll()
	if err != nil || len(lines) == 0 {
		t.Fatalf("%v: %s", err, table)
	}
	at := slices.Index(lines[0], "wanted")
	for _, line := range lines[1:] {
		n, err := strconv.ParseInt(line[at], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
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

func TestRows(t *testing.T) {
	resources, err := parseResources("cpu=cpu_milli:1m,memory=memory_mib:1Mi,nvidia.com/gpu=gpus:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		takes corev1.ResourceList
		done  int32
		want  row
		fault string
	}{
		{"whole", corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("3Gi")}, 0,
			row{3, `{"cpu_milli":1000,"memory_mib":1024}`}, ""},
		{"rounded up", corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1")}, 0,
			row{3, `{"cpu_milli":334,"memory_mib":1}`}, ""},
		{"of others", corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("6"), "pods": resource.MustParse("3")},
			0, row{3, `{"gpus":2}`}, ""},
		{"some done", corev1.ResourceList{"cpu": resource.MustParse("3")}, 2, row{1, `{"cpu_milli":1000}`}, ""},
		{"all done", corev1.ResourceList{"cpu": resource.MustParse("3")}, 4, row{0, `{"cpu_milli":1000}`}, ""},
		{"large", corev1.ResourceList{"memory": resource.MustParse("3Ei")}, 0, row{3, `{"memory_mib":1099511627776}`},
			""},
		{"nothing", corev1.ResourceList{"pods": resource.MustParse("3")}, 0, row{}, "none of the resources"},
		{"too much", corev1.ResourceList{"cpu": resource.MustParse("60000000e18")}, 0, row{},
			"more than can be counted"},
	} {
		wl := &kueue.Workload{}
		wl.Status.Admission = &kueue.Admission{PodSetAssignments: []kueue.PodSetAssignment{{Name: "main",
			Count: ptr.To[int32](3), ResourceUsage: c.takes}}}
		wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "main", Count: c.done}}
		all, err := rows(wl, "/Risk", resources)
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v, %v", c.name, all, err)
			}
			continue
		}
		if err != nil || all[rowKey{"/Risk", "main"}] != c.want {
			t.Errorf("%s: %v, %v", c.name, all, err)
		}
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

// TestGangs holds what is sent to a service that knows gangs, and to one that does not.
func TestGangs(t *testing.T) {
	want := map[rowKey]row{{"/Risk", "main"}: {3, `{"ncpus":2}`}}
	if change := difference("risk/var", nil, want, true); change[0]["min_units"] != int64(3) {
		t.Errorf("%v", change)
	}
	if change := difference("risk/var", nil, want, false); change[0]["min_units"] != nil ||
		change[0]["ncpus"] != int64(2) {
		t.Errorf("%v", change)
	}
	change := difference("risk/var", map[rowKey]row{{"/Risk", "main"}: want[rowKey{"/Risk", "main"}],
		{"/Risk", "old"}: {1, "{}"}}, want, true)
	if len(change) != 1 || change[0]["sub"] != "old" || change[0]["units"] != int64(0) {
		t.Errorf("%v", change)
	}
}
