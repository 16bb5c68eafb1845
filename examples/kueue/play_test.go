//go:build kube

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	stint "github.com/stintd/stint/ingest/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueworkload "sigs.k8s.io/kueue/pkg/workload"
)

// secondsAnnotation, on a workload of a test, is how long its pods run.
const secondsAnnotation = "test/seconds"

// player does to workloads what Kueue and the pods do: it reserves quota by the effective quota, admits, evicts with
// Kueue's own functions, takes a while to end pods, and finishes work.
type player struct {
	t       *testing.T
	prefix  string        // of the ClusterQueues that it plays
	ending  time.Duration // that evicted pods take to end
	specs   bool          // it goes by spec.resourceGroups, as Kueue does before 0.20
	mu      sync.Mutex
	admits  map[string]int                       // how often a workload was admitted
	said    map[string]kueue.AdmissionCheckState // the check for which it was sent back last
	sent    map[string]int                       // how often it was sent back
	freed   map[string]time.Time                 // when its quota was freed
	stopped chan struct{}
}

func play(t *testing.T, prefix string, set ...func(*player)) *player {
	p := &player{t: t, prefix: prefix, ending: 200 * time.Millisecond, admits: map[string]int{},
		said: map[string]kueue.AdmissionCheckState{}, sent: map[string]int{}, freed: map[string]time.Time{},
		stopped: make(chan struct{})}
	for _, f := range set {
		f(p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(p.stopped)
		for ctx.Err() == nil {
			p.round(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-p.stopped })
	return p
}

// round looks at all workloads once. What fails is tried again in the next round.
func (p *player) round(ctx context.Context) {
	var workloads kueue.WorkloadList
	var queues ClusterQueueList
	var local kueue.LocalQueueList
	if bed.List(ctx, &workloads) != nil || bed.List(ctx, &queues) != nil || bed.List(ctx, &local) != nil {
		return
	}
	queueOf, of := map[string]*ClusterQueue{}, map[string]string{}
	for i := range queues.Items {
		if strings.HasPrefix(queues.Items[i].Name, p.prefix) {
			queueOf[queues.Items[i].Name] = &queues.Items[i]
		}
	}
	for _, l := range local.Items {
		of[l.Namespace+"/"+l.Name] = string(l.Spec.ClusterQueue)
	}
	used := map[string]*resource.Quantity{}
	for _, wl := range workloads.Items {
		if reserved(&wl) {
			add(used, string(wl.Status.Admission.ClusterQueue), cpus(&wl))
		}
	}
	slices.SortStableFunc(workloads.Items, func(a, b kueue.Workload) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for i := range workloads.Items {
		wl := &workloads.Items[i]
		queue := queueOf[of[wl.Namespace+"/"+string(wl.Spec.QueueName)]]
		if queue == nil && (wl.Status.Admission == nil || !strings.HasPrefix(string(wl.Status.Admission.ClusterQueue),
			p.prefix)) {
			continue
		}
		if err := p.one(ctx, wl, queue, used); client.IgnoreNotFound(err) != nil && ctx.Err() == nil &&
			!strings.Contains(err.Error(), "modified") {
			p.t.Logf("player: %s: %v", wl.Name, err)
		}
	}
}

func add(used map[string]*resource.Quantity, name string, q resource.Quantity) {
	if used[name] == nil {
		used[name] = &resource.Quantity{}
	}
	used[name].Add(q)
}

func cpus(wl *kueue.Workload) resource.Quantity {
	var sum resource.Quantity
	for _, p := range podSets(wl, false) {
		sum.Add(p.takes[corev1.ResourceCPU])
	}
	return sum
}

// quotaOf is the cpu quota by which a queue is scheduled.
func (p *player) quotaOf(queue *ClusterQueue) resource.Quantity {
	groups := queue.Spec.ResourceGroups
	if e := queue.Status.EffectiveQuota; e != nil && !p.specs {
		groups = e.ResourceGroups
	}
	return groups[0].Flavors[0].Resources[0].NominalQuota
}

// patch changes the status of a workload as Kueue does.
func patch(ctx context.Context, wl *kueue.Workload, change func(*kueue.Workload)) error {
	update := func(wl *kueue.Workload) (bool, error) {
		change(wl)
		return true, nil
	}
	return kueueworkload.PatchAdmissionStatus(ctx, bed.Client, wl, clock.RealClock{}, update)
}

func (p *player) one(
	ctx context.Context, wl *kueue.Workload, queue *ClusterQueue, used map[string]*resource.Quantity,
) error {
	now := time.Now()
	evicted := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
	switch {
	case isTrue(wl, kueue.WorkloadFinished):
		return nil
	case reserved(wl) && isTrue(wl, kueue.WorkloadEvicted):
		if now.Sub(evicted.LastTransitionTime.Time) < p.ending {
			return nil
		}
		p.mu.Lock()
		p.freed[wl.Name] = now
		p.mu.Unlock()
		return patch(ctx, wl, func(wl *kueue.Workload) {
			kueueworkload.UnsetQuotaReservationWithCondition(wl, "Pending", "evicted", now)
		})
	case reserved(wl) && (kueueworkload.HasRetryChecks(wl) || kueueworkload.HasRejectedChecks(wl)):
		p.mu.Lock()
		p.said[wl.Name] = wl.Status.AdmissionChecks[0]
		p.sent[wl.Name]++
		p.mu.Unlock()
		return kueueworkload.Evict(ctx, bed.Client, noEvents{}, wl, kueue.WorkloadEvictedByAdmissionCheck,
			"a check says so", "", clock.RealClock{}, false, nil, nil)
	case isTrue(wl, kueue.WorkloadAdmitted):
		seconds, err := strconv.ParseFloat(wl.Annotations[secondsAnnotation], 64)
		since := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadAdmitted).LastTransitionTime
		if err != nil || now.Sub(since.Time).Seconds() < seconds {
			return nil
		}
		return kueueworkload.Finish(ctx, bed.Client, wl, "Succeeded", "done", clock.RealClock{})
	case reserved(wl) && kueueworkload.HasAllChecksReady(wl):
		p.mu.Lock()
		p.admits[wl.Name]++
		p.mu.Unlock()
		return patch(ctx, wl, func(wl *kueue.Workload) { kueueworkload.SyncAdmittedCondition(wl, now) })
	case reserved(wl) || queue == nil || wl.Spec.Active != nil && !*wl.Spec.Active:
		return nil
	}
	needs, quota := cpus(wl), p.quotaOf(queue)
	add(used, queue.Name, needs)
	if used[queue.Name].Cmp(quota) > 0 {
		used[queue.Name].Sub(needs)
		return nil
	}
	return patch(ctx, wl, func(wl *kueue.Workload) { reserve(wl, queue, now) })
}

// reserve reserves quota for a workload in the first flavor.
func reserve(wl *kueue.Workload, queue *ClusterQueue, now time.Time) {
	admission := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue.Name)}
	flavor := queue.Spec.ResourceGroups[0].Flavors[0].Name
	for _, s := range podSets(wl, false) {
		a := kueue.PodSetAssignment{Name: kueue.PodSetReference(s.name), Count: ptr.To(s.count), ResourceUsage: s.takes,
			Flavors: map[corev1.ResourceName]kueue.ResourceFlavorReference{}}
		for name := range s.takes {
			a.Flavors[name] = flavor
		}
		admission.PodSetAssignments = append(admission.PodSetAssignments, a)
	}
	for _, rule := range queue.Spec.AdmissionChecksStrategy.AdmissionChecks {
		if !slices.ContainsFunc(wl.Status.AdmissionChecks, func(s kueue.AdmissionCheckState) bool {
			return s.Name == rule.Name
		}) {
			wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks, kueue.AdmissionCheckState{Name: rule.Name,
				State: kueue.CheckStatePending, LastTransitionTime: metav1.NewTime(now)})
		}
	}
	kueueworkload.SetQuotaReservation(wl, admission, clock.RealClock{})
}

// noEvents takes no notice of events.
type noEvents struct{}

func (noEvents) Event(runtime.Object, string, string, string)                                      {}
func (noEvents) Eventf(runtime.Object, string, string, string, ...any)                             {}
func (noEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}

// create makes objects.
func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := bed.Create(t.Context(), o); err != nil {
			t.Fatalf("%T %s: %v", o, o.GetName(), err)
		}
	}
}

// node is a node that is ready, as KWOK makes them.
func node(t *testing.T, name string, cpus int64) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "kwok"}}}
	create(t, n)
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(cpus<<32, resource.BinarySI)}
	n.Status.Capacity = n.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := bed.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

// check is an admission check that a controller of a name answers.
func check(name string) *kueue.AdmissionCheck {
	return &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/" + name}}
}

// queue is a ClusterQueue with a LocalQueue of its name, both with a check, for a consumer.
func queue(name, check, consumer, cohort string) []client.Object {
	cq := &ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name,
		Annotations: map[string]string{consumerAnnotation: consumer}}}
	cq.Spec.CohortName = kueue.CohortReference(cohort)
	cq.Spec.ResourceGroups = groupsOf("8")
	rule := kueue.AdmissionCheckStrategyRule{Name: kueue.AdmissionCheckReference(check)}
	cq.Spec.AdmissionChecksStrategy = &kueue.AdmissionChecksStrategy{
		AdmissionChecks: []kueue.AdmissionCheckStrategyRule{rule}}
	lq := &kueue.LocalQueue{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	lq.Spec.ClusterQueue = kueue.ClusterQueueReference(name)
	return []client.Object{cq, lq}
}

func groupsOf(cpu string) []kueue.ResourceGroup {
	return []kueue.ResourceGroup{{CoveredResources: []corev1.ResourceName{corev1.ResourceCPU},
		Flavors: []kueue.FlavorQuotas{{Name: "default", Resources: []kueue.ResourceQuota{
			{Name: corev1.ResourceCPU, NominalQuota: resource.MustParse(cpu)}}}}}}
}

// workload is one of so many pods of one processor; seconds: how long it runs, 0: for ever.
func workload(name, queue string, pods int32, seconds float64) *kueue.Workload {
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if seconds > 0 {
		wl.Annotations = map[string]string{secondsAnnotation: fmt.Sprint(seconds)}
	}
	wl.Spec.QueueName = kueue.LocalQueueName(queue)
	set := kueue.PodSet{Name: "main", Count: pods}
	set.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	set.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	wl.Spec.PodSets = []kueue.PodSet{set}
	return wl
}

// control is a controller that runs until stop is called.
type control struct {
	*wiring
	mgr  ctrl.Manager
	stop func()
}

// controlled are the settings of a controller in tests.
type controlled struct {
	check    string // of example.com/
	service  *stint.Client
	quota    quotaMode
	ledger   string // "": no actor
	election bool
	wait     time.Duration
	every    time.Duration // between two lists; 0: 500 ms
	parallel int           // 0: 16
	wrap     func(http.RoundTripper) http.RoundTripper
}

// run starts a controller as main does.
func (c controlled) run(t *testing.T) *control {
	t.Helper()
	kube := rest.CopyConfig(bed.config)
	kube.WrapTransport = c.wrap
	mgr, err := ctrl.NewManager(kube, ctrl.Options{
		Scheme: newScheme(), Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
		LeaderElection: c.election, LeaderElectionID: "stint-kueue", LeaderElectionNamespace: "default",
		LeaseDuration: ptr.To(3 * time.Second), RenewDeadline: ptr.To(2 * time.Second),
		RetryPeriod: ptr.To(500 * time.Millisecond),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{resources: "cpu=ncpus:1", quota: string(c.quota)}
	s.check = checkSettings{controller: "example.com/" + c.check, backoff: time.Second, backoffMax: time.Second,
		wait: c.wait, quiet: 500 * time.Millisecond}
	s.act.Source, s.act.Hosts, s.act.Every, s.act.Parallel = "kueue", true, cmp.Or(c.every,
		500*time.Millisecond), cmp.Or(c.parallel, 16)
	s.act.Metrics, s.act.Ledger, s.act.AllowShrink = prometheus.NewRegistry(), c.ledger, true
	w, err := newWiring(mgr, c.service, s)
	if err != nil {
		t.Fatal(err)
	}
	w.decisions.look = time.Second
	if err := w.controllers(mgr); err != nil {
		t.Fatal(err)
	}
	if c.ledger != "" {
		if err := w.actor(mgr, c.service, s.act); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	if !mgr.GetCache().WaitForCacheSync(t.Context()) {
		t.Fatal("the cache is not filled")
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil && !c.election {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return &control{wiring: w, mgr: mgr, stop: stop}
}

// service is a stint that runs as a process.
type service struct {
	t       *testing.T
	dir     string
	address string
	process *exec.Cmd
	*stint.Client
}

// serve starts a service with a policy, whose cycles tests run.
func serve(t *testing.T, policy string) *service {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	s := &service{t: t, dir: t.TempDir(), address: l.Addr().String()}
	s.Client = &stint.Client{Base: "http://" + s.address, WaitMax: 100 * time.Millisecond, TriesMax: 300}
	t.Cleanup(s.kill)
	s.start()
	s.must(s.PutPlan(t.Context(), stint.Bytes([]byte(policy), ""), stint.Options{}))
	return s
}

func (s *service) start() {
	s.process = exec.Command(program, "serve", "--data", s.dir, "--listen", s.address)
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.must(s.Get(s.t.Context(), "/healthz", nil, "application/json"))
}

// kill is what a crash does.
func (s *service) kill() {
	if s.process != nil {
		s.process.Process.Kill()
		s.process.Wait()
	}
	s.process = nil
}

func (s *service) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// held is how many units the controller's source holds, by allocation, without those under reclaim.
func (s *service) held() (free, taken int64) {
	s.t.Helper()
	rows, _, err := s.Holdings(s.t.Context(), "kueue")
	if err != nil && !stint.Is(err, "no-cycle") {
		s.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Reclaim != 0 {
			taken += r.Units
		} else {
			free += r.Units
		}
	}
	return free, taken
}

// eventually waits for something to become so; the text that is not so yet is told when it never does.
func eventually(t *testing.T, what string, so func() (string, bool)) {
	t.Helper()
	last := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var ok bool
		if last, ok = so(); ok {
			return
		}
	}
	t.Fatalf("%s: not within two minutes; it is %s", what, last)
}

// decides runs cycles until something is so.
func (s *service) decides(what string, so func() (string, bool)) {
	s.t.Helper()
	eventually(s.t, what, func() (string, bool) {
		s.must(s.Cycle(s.t.Context()))
		return so()
	})
}

// get reads a workload.
func get(t *testing.T, name string) *kueue.Workload {
	t.Helper()
	wl := &kueue.Workload{}
	if err := bed.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, wl); err != nil {
		t.Fatal(err)
	}
	return wl
}

// admitted counts the workloads of a queue that run.
func admitted(t *testing.T, queue string) (n int) {
	t.Helper()
	var list kueue.WorkloadList
	if err := bed.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		wl := &list.Items[i]
		if string(wl.Spec.QueueName) == queue && isTrue(wl, kueue.WorkloadAdmitted) &&
			!isTrue(wl, kueue.WorkloadFinished) {
			n++
		}
	}
	return n
}
