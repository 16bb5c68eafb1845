package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	stint "github.com/stintd/stint/ingest/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueworkload "sigs.k8s.io/kueue/pkg/workload"
)

const policy = `
stint: 1
interval: 1h
dimensions: [ncpus, maxmem]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Risk, reclaim_grace: 1h}, {path: /Desk}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers: [{path: /Risk}, {path: /Desk, own: [{group: All, hosts: 1}]}]
`

const hosts = "host,ncpus,maxmem\nh1,8,32\nh2,8,32\n"

// cq is a cluster queue whose annotation names a consumer.
func cq(name, consumer string) *kueue.ClusterQueue {
	return &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations: map[string]string{consumerAnnotation: consumer}}}
}

// pods is a pod set of so many pods, of so many processors and GiB each.
func pods(name string, count int32, ncpus, gib int64) podSet {
	return podSet{name, count, corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(ncpus*int64(count), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(gib*int64(count)<<30, resource.BinarySI),
	}}
}

// decides runs cycles of a service until something is so.
func (k *kubernetes) decides(s *service, what string, so func() (string, bool)) {
	k.t.Helper()
	k.eventually(what, func() (string, bool) {
		s.cycle()
		return so()
	})
}

// asked waits until stint knows of so many units of the controller's source, and runs a cycle.
func (k *kubernetes) asked(s *service, units int64) {
	k.t.Helper()
	k.decides(s, "demand", func() (string, bool) {
		text, err := s.Get(k.ctx, "/v1/demand/kueue", nil, "text/csv")
		if stint.Is(err, "no-source") {
			return err.Error(), units == 0
		}
		s.must(nil, err)
		return string(text), wantedIn(k.t, text) == units
	})
}

func TestGrant(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	defer stop()
	k.reserve("var", "risk", pods("driver", 1, 1, 4), pods("worker", 3, 2, 4))
	k.says("var", kueue.CheckStatePending, "cycle 1 decides")
	k.asked(s, 4)
	check := k.says("var", kueue.CheckStateReady, "granted all pods: driver on h2=1; worker on h2=3")
	if u := check.PodSetUpdates; len(u) != 2 || u[1].Name != "worker" || u[1].Annotations[hostsAnnotation] != "h2=3" ||
		u[1].NodeSelector != nil {
		t.Errorf("pods get %+v", u)
	}
	k.eventually("admitted by Kueue", func() (string, bool) {
		wl, _ := k.get("var")
		return "not", kueueworkload.IsAdmitted(wl)
	})
	if held := s.held(); held["risk/var:driver"] != 1 || held["risk/var:worker"] != 3 {
		t.Errorf("held %v", held)
	}
	var ac kueue.AdmissionCheck
	for _, name := range []string{"stint", "other"} {
		if err := k.Get(k.ctx, types.NamespacedName{Name: name}, &ac); err != nil {
			t.Fatal(err)
		}
		if active := meta.IsStatusConditionTrue(ac.Status.Conditions,
			kueue.AdmissionCheckActive); active != (name == "stint") {
			t.Errorf("check %s is active: %v", name, active)
		}
	}

	// A pod that is done gives its room back, and a workload that is finished all of it.
	k.change("var", func(wl *kueue.Workload) {
		wl.Status.ReclaimablePods = []kueue.ReclaimablePod{{Name: "worker", Count: 1}}
	})
	k.decides(s, "a pod is done", func() (string, bool) {
		n := s.held()["risk/var:worker"]
		return "not given back", n == 2
	})
	k.says("var", kueue.CheckStateReady, "")
	k.finish("var")
	k.decides(s, "finished", func() (string, bool) { return "held", len(s.held()) == 0 })
}

func TestPin(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	set := quick()
	set.pin = true
	stop, _ := k.control(s, set)
	defer stop()
	k.reserve("var", "risk", pods("one", 2, 1, 1), pods("two", 10, 1, 1))
	k.asked(s, 12)
	check := k.says("var", kueue.CheckStateReady, "")
	if u := check.PodSetUpdates; u[0].NodeSelector[corev1.LabelHostname] != "h2" || u[1].NodeSelector != nil ||
		u[1].Annotations[hostsAnnotation] != "h1=4,h2=6" {
		t.Errorf("pods get %+v", u)
	}
}

func TestShortfall(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	defer stop()
	k.reserve("first", "risk", pods("main", 12, 1, 1))
	k.asked(s, 12)
	k.says("first", kueue.CheckStateReady, "")
	k.reserve("second", "risk", pods("main", 6, 1, 1))
	k.asked(s, 18)
	check := k.says("second", kueue.CheckStatePending, "/Risk:risk/second is short of ")
	why := "pool"
	if s.gangs() {
		why = "must start together"
	}
	if !strings.HasPrefix(check.Message, "stint granted ") || !strings.Contains(check.Message, why) {
		t.Errorf("the message does not tell why: %s", check.Message)
	}
	// Nobody can ever have this one, and the message says so; it may be that hosts come.
	k.reserve("huge", "risk", pods("main", 1, 100, 1))
	k.asked(s, 19)
	k.says("huge", kueue.CheckStatePending, "larger than any host")
	k.remove("huge")
	k.finish("first")
	k.asked(s, 6)
	k.says("second", kueue.CheckStateReady, "granted all pods: main on")
}

func TestWait(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	set := quick()
	set.wait = 2 * time.Second
	stop, _ := k.control(s, set)
	defer stop()
	k.reserve("huge", "risk", pods("main", 1, 100, 1))
	k.said("huge", kueue.CheckStateRetry, "stint")
	k.asked(s, 0)
}

func TestDown(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	defer stop()
	k.reserve("runs", "risk", pods("main", 2, 1, 1))
	k.asked(s, 2)
	k.says("runs", kueue.CheckStateReady, "")
	s.kill()
	for n, wait := range []int32{60, 120, 180, 180} { // twice as long each time, three minutes at most
		k.reserve("waits", "risk", pods("main", 2, 1, 1))
		check := k.said("waits", kueue.CheckStateRetry, "stint does not answer since")
		if check.RequeueAfterSeconds == nil || *check.RequeueAfterSeconds != wait {
			t.Fatalf("time %d: it waits for %v seconds, not %d", n+1, ptr.Deref(check.RequeueAfterSeconds, -1), wait)
		}
		k.eventually("evicted", func() (string, bool) {
			wl, check := k.get("waits")
			return "reserved", !kueueworkload.HasQuotaReservation(wl) && ptr.Deref(check.RetryCount, 0) == int32(n+1)
		})
	}
	k.says("runs", kueue.CheckStateReady, "granted all pods") // what runs goes on
	s.start()
	k.decides(s, "admitted", func() (string, bool) {
		wl, check := k.get("waits")
		// also when it was sent back once more, before the service was found
		if !kueueworkload.HasQuotaReservation(wl) {
			k.reserve("waits", "risk", pods("main", 2, 1, 1))
		}
		return check.Message, check.State == kueue.CheckStateReady
	})
	k.says("runs", kueue.CheckStateReady, "")
}

func TestGone(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	for _, name := range []string{"a", "b", "c"} {
		k.reserve(name, "risk", pods("main", 2, 1, 1))
	}
	k.asked(s, 6)
	k.says("a", kueue.CheckStateReady, "")
	k.remove("a")
	k.asked(s, 4)
	stop()
	k.remove("b") // while nobody looks
	stop, _ = k.control(s, quick())
	defer stop()
	k.asked(s, 2)
	if held := s.held(); len(held) != 1 || held["risk/c:main"] != 2 {
		t.Errorf("held %v", held)
	}
}

func TestRestart(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	k.reserve("runs", "risk", pods("main", 12, 1, 1))
	k.asked(s, 12)
	k.says("runs", kueue.CheckStateReady, "")
	k.reserve("waits", "risk", pods("main", 8, 1, 1))
	k.asked(s, 20)
	short, part := "is short of 4 units", int64(4)
	if s.gangs() { // all or none
		short, part = "is short of 8 units", 0
	}
	before := k.says("waits", kueue.CheckStatePending, short)
	stop()
	stop, sent := k.control(s, quick())
	defer stop()
	k.reserve("third", "risk", pods("main", 1, 1, 1)) // once this is asked for, the others have been looked at
	k.asked(s, 21)
	if n := sent.inputs.Load(); n != 1 {
		t.Errorf("%d inputs after a restart, of which 1 is new", n)
	}
	k.says("runs", kueue.CheckStateReady, "")
	if after := k.says("waits", kueue.CheckStatePending,
		short); !after.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("its state changed: %v, %v", before, after)
	}
	if held := s.held(); held["risk/runs:main"] != 12 || held["risk/waits:main"] != part {
		t.Errorf("held %v", held)
	}
}

func TestReclaim(t *testing.T) {
	s := serve(t, strings.Replace(policy, "1h}, {path: /Desk}", "2s}, {path: /Desk}", 1), hosts)
	k := newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	defer stop()
	k.reserve("batch", "risk", pods("main", 16, 1, 1))
	k.asked(s, 16)
	k.says("batch", kueue.CheckStateReady, "")
	_, err := s.PutDemandRows(k.ctx, "desk",
		[]stint.Demand{{Consumer: "/Desk", Allocation: "now", Units: 8, Size: map[string]int64{"ncpus": 1}}},
		stint.Options{})
	s.must(nil, err)
	s.cycle()
	k.said("batch", kueue.CheckStateRetry, "stint takes back ") // 8 of 16, of a gang all
	k.asked(s, 0)
	k.decides(s, "the owner", func() (string, bool) {
		rows, _, err := s.Holdings(k.ctx, "desk")
		s.must(nil, err)
		n := int64(0)
		for _, r := range rows {
			n += r.Units
		}
		return "waits", n == 8
	})
}

func TestForgotten(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Risk"))
	stop, _ := k.control(s, quick())
	defer stop()
	k.reserve("runs", "risk", pods("main", 4, 1, 1))
	k.asked(s, 4)
	k.says("runs", kueue.CheckStateReady, "")
	s.cycle()
	s.forget()
	s.set(policy, hosts)
	k.asked(s, 4)
	k.decides(s, "held again", func() (string, bool) { return "not", s.held()["risk/runs:main"] == 4 })
	if wl, check := k.get("runs"); check.State != kueue.CheckStateReady || kueueworkload.IsEvicted(wl) {
		t.Errorf("a workload that runs was sent back: %v", check)
	}
}

func TestRejected(t *testing.T) {
	s, k := serve(t, policy, hosts), newKubernetes(t, cq("risk", "/Riks"), cq("nothing", "/Risk"))
	stop, _ := k.control(s, quick())
	defer stop()
	k.reserve("lost", "risk", pods("main", 1, 1, 1))
	k.said("lost", kueue.CheckStateRejected, `value "/Riks": no such consumer`)
	k.reserve("free", "nothing", podSet{"main", 1, corev1.ResourceList{"example.com/thing": resource.MustParse("1")}})
	k.said("free", kueue.CheckStateRejected, "pod set main asks for none of the resources that stint divides")
}

// TestImported is a plan that stint makes of the queues themselves, which name no consumer.
func TestImported(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(program, "import", "kueue", "--manifests", "testdata/queues.yaml", "--out",
		dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := serve(t, read(t, filepath.Join(dir, "plan.yaml")), "host,cpu_milli,memory_mib,flavor\nn1,8000,65536,default\n")
	k := newKubernetes(t, objects(t, "testdata/queues.yaml")...)
	stop, _ := k.controlWith(s, quick(), "cpu=cpu_milli:1m,memory=memory_mib:1Mi")
	defer stop()
	k.reserve("var", "risk", pods("main", 2, 1, 1))
	k.asked(s, 2)
	k.says("var", kueue.CheckStateReady, "main on n1=2")
	rows, _, err := s.Holdings(k.ctx, "kueue")
	s.must(nil, err)
	if rows[0].Consumer != "/bank/trading/risk/risk.intraday" {
		t.Errorf("consumer %s", rows[0].Consumer)
	}
}
