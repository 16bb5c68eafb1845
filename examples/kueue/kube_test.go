package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	stint "github.com/stintd/stint/ingest/client"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocks "k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	kueueworkload "sigs.k8s.io/kueue/pkg/workload"
)

// controllerName is that of the check `stint` of the tests.
const controllerName = "stintd.github.io/stint"

// program is the stint binary that tests serve.
var program string

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "kueue")
	if err != nil {
		panic(err)
	}
	program = os.Getenv("STINT")
	if program == "" {
		program = filepath.Join(dir, "stint")
		build := exec.Command("go", "build", "-o", program, "./cmd/stint")
		build.Dir, build.Stderr = "../..", os.Stderr
		if err := build.Run(); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// service is a stint that runs as a process of its own.
type service struct {
	t       *testing.T
	dir     string
	address string
	process *exec.Cmd
	*stint.Client
}

// serve starts a service with a policy and hosts, whose cycles are run by tests alone.
func serve(t *testing.T, policy, hosts string) *service {
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
	s.set(policy, hosts)
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

// forget is a service that comes back with nothing.
func (s *service) forget() {
	s.kill()
	s.dir = s.t.TempDir()
	s.start()
}

func (s *service) set(policy, hosts string) {
	s.t.Helper()
	s.must(s.PutPlan(s.t.Context(), stint.Bytes([]byte(policy), ""), stint.Options{}))
	s.must(s.PutHosts(s.t.Context(), stint.Bytes([]byte(hosts), "text/csv"), stint.Options{}))
}

// gangs tells whether the service grants all units of a row or none where it is asked to.
func (s *service) gangs() bool {
	s.t.Helper()
	text, err := s.Get(s.t.Context(), "/openapi.json", nil, "application/json")
	s.must(nil, err)
	return strings.Contains(string(text), `"min_units"`)
}

func (s *service) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) cycle() {
	s.t.Helper()
	s.must(s.Cycle(s.t.Context()))
}

// held is how many units the controller's source holds, by allocation and sub.
func (s *service) held() map[string]int64 {
	s.t.Helper()
	rows, _, err := s.Holdings(s.t.Context(), "kueue")
	s.must(nil, err)
	all := map[string]int64{}
	for _, r := range rows {
		all[r.Allocation+":"+r.Sub] += r.Units
	}
	return all
}

// kubernetes is a fake API server with a Kueue that does to workloads what Kueue does once a check has spoken: its own
// functions evict, reset the checks and give the quota back. It reserves quota when a test says so.
type kubernetes struct {
	t *testing.T
	client.WithWatch
	ctx context.Context

	mu     sync.Mutex
	spoken map[string]kueue.AdmissionCheckState // checks for which a workload was evicted, by its name
}

func newKubernetes(t *testing.T, objects ...client.Object) *kubernetes {
	scheme := runtime.NewScheme()
	if err := kueue.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, &kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "stint"},
		Spec: kueue.AdmissionCheckSpec{ControllerName: controllerName}},
		&kueue.AdmissionCheck{ObjectMeta: metav1.ObjectMeta{Name: "other"},
			Spec: kueue.AdmissionCheckSpec{ControllerName: "example.com/other"}})
	k := &kubernetes{t: t, ctx: t.Context(), spoken: map[string]kueue.AdmissionCheckState{},
		WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
			WithStatusSubresource(&kueue.Workload{}, &kueue.AdmissionCheck{}).Build()}
	k.each(k.ctx, func(_ watch.EventType, wl *kueue.Workload) { k.react(client.ObjectKeyFromObject(wl)) })
	return k
}

// each calls a function for each event of a workload, until ctx is done.
func (k *kubernetes) each(ctx context.Context, do func(watch.EventType, *kueue.Workload)) {
	w, err := k.Watch(ctx, &kueue.WorkloadList{})
	if err != nil {
		k.t.Fatal(err)
	}
	go func() {
		defer w.Stop()
		for {
			select {
			case e := <-w.ResultChan():
				if wl, ok := e.Object.(*kueue.Workload); ok {
					do(e.Type, wl)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
}

// react does what Kueue's controllers do of the state of a workload's checks.
func (k *kubernetes) react(name types.NamespacedName) {
	for {
		var wl kueue.Workload
		if k.Get(k.ctx, name, &wl) != nil {
			return
		}
		before := wl.DeepCopy()
		evicted := meta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadEvicted)
		switch {
		case evicted && kueueworkload.HasQuotaReservation(&wl): // the job has stopped
			kueueworkload.UnsetQuotaReservationWithCondition(&wl, "Pending", "evicted", time.Now())
		case kueueworkload.HasQuotaReservation(&wl) && (kueueworkload.HasRetryChecks(&wl) ||
			kueueworkload.HasRejectedChecks(&wl)):
			k.mu.Lock()
			k.spoken[wl.Name] = wl.Status.AdmissionChecks[1]
			k.mu.Unlock()
			err := kueueworkload.Evict(k.ctx, k, noEvents{}, &wl, kueue.WorkloadEvictedByAdmissionCheck,
				"a check says so", "", clocks.RealClock{}, false, nil, nil)
			if err != nil && k.ctx.Err() == nil {
				k.t.Errorf("evict: %v", err)
			}
			return
		}
		kueueworkload.SyncAdmittedCondition(&wl, time.Now())
		if sameStatus(before, &wl) || k.Status().Update(k.ctx, &wl) == nil {
			return
		}
	}
}

func sameStatus(a, b *kueue.Workload) bool {
	return len(a.Status.Conditions) == len(b.Status.Conditions) &&
		(a.Status.Admission == nil) == (b.Status.Admission == nil) &&
		kueueworkload.IsAdmitted(a) == kueueworkload.IsAdmitted(b)
}

// noEvents takes no notice of events.
type noEvents struct{}

func (noEvents) Event(runtime.Object, string, string, string)                                      {}
func (noEvents) Eventf(runtime.Object, string, string, string, ...any)                             {}
func (noEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {}

// podSet is a pod set with quota: pods, and what all of them take.
type podSet struct {
	name  string
	pods  int32
	takes corev1.ResourceList
}

// reserve makes a workload of a cluster queue with quota reserved, or reserves it again.
func (k *kubernetes) reserve(name, queue string, sets ...podSet) {
	k.t.Helper()
	key := types.NamespacedName{Namespace: "risk", Name: name}
	wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	wl.Spec.QueueName = "intraday"
	admission := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue)}
	for _, s := range sets {
		wl.Spec.PodSets = append(wl.Spec.PodSets, kueue.PodSet{Name: kueue.PodSetReference(s.name), Count: s.pods})
		admission.PodSetAssignments = append(admission.PodSetAssignments,
			kueue.PodSetAssignment{Name: kueue.PodSetReference(s.name), Count: ptr.To(s.pods), ResourceUsage: s.takes})
	}
	if err := k.Get(k.ctx, key, wl); err != nil {
		if err := k.Create(k.ctx, wl); err != nil {
			k.t.Fatal(err)
		}
	}
	k.change(name, func(wl *kueue.Workload) {
		if len(wl.Status.AdmissionChecks) == 0 {
			for _, check := range []kueue.AdmissionCheckReference{"other", "stint"} {
				wl.Status.AdmissionChecks = append(wl.Status.AdmissionChecks,
					kueue.AdmissionCheckState{Name: check, State: kueue.CheckStatePending,
						LastTransitionTime: metav1.Now()})
			}
		}
		wl.Status.AdmissionChecks[0].State = kueue.CheckStateReady
		kueueworkload.SetQuotaReservation(wl, admission, clocks.RealClock{})
	})
}

// change updates the status of a workload, against whoever else does.
func (k *kubernetes) change(name string, do func(*kueue.Workload)) {
	k.t.Helper()
	for {
		var wl kueue.Workload
		if err := k.Get(k.ctx, types.NamespacedName{Namespace: "risk", Name: name}, &wl); err != nil {
			k.t.Fatal(err)
		}
		do(&wl)
		if k.Status().Update(k.ctx, &wl) == nil {
			return
		}
	}
}

func (k *kubernetes) finish(name string) {
	k.t.Helper()
	k.change(name, func(wl *kueue.Workload) { kueueworkload.SetFinishedCondition(wl, time.Now(), "Succeeded", "done") })
}

func (k *kubernetes) remove(name string) {
	k.t.Helper()
	if err := k.Delete(k.ctx,
		&kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "risk", Name: name}}); err != nil {
		k.t.Fatal(err)
	}
}

// get is a workload and the check of this controller.
func (k *kubernetes) get(name string) (*kueue.Workload, kueue.AdmissionCheckState) {
	k.t.Helper()
	wl := &kueue.Workload{}
	if err := k.Get(k.ctx, types.NamespacedName{Namespace: "risk", Name: name}, wl); err != nil {
		k.t.Fatal(err)
	}
	return wl, wl.Status.AdmissionChecks[1]
}

// eventually waits for something to become so; the text that is not so yet is told when it never does.
func (k *kubernetes) eventually(what string, so func() (string, bool)) {
	k.t.Helper()
	last := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if last, ok = so(); ok {
			return
		}
	}
	k.t.Fatalf("%s: not within a minute; it is %s", what, last)
}

// says waits for a state of a check whose message has a text.
func (k *kubernetes) says(name string, state kueue.CheckState, text string) kueue.AdmissionCheckState {
	k.t.Helper()
	var check kueue.AdmissionCheckState
	k.eventually(name, func() (string, bool) {
		_, check = k.get(name)
		return string(check.State) + ": " + check.Message, check.State == state && strings.Contains(check.Message, text)
	})
	return check
}

// said waits until Kueue has seen a state of a check that it acts on, and gives the check as it was then.
func (k *kubernetes) said(name string, state kueue.CheckState, text string) (check kueue.AdmissionCheckState) {
	k.t.Helper()
	k.eventually(name, func() (string, bool) {
		_, now := k.get(name)
		k.mu.Lock()
		defer k.mu.Unlock()
		check = k.spoken[name]
		delete(k.spoken, name)
		return fmt.Sprintf("%s: %s; before %s: %s", now.State, now.Message, check.State, check.Message),
			check.State == state && strings.Contains(check.Message, text)
	})
	return check
}

// counted counts the inputs that a controller sends.
type counted struct {
	http.RoundTripper
	inputs atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.inputs.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// quick are the settings of tests.
func quick() checkSettings {
	return checkSettings{controller: controllerName, patience: 300 * time.Millisecond, backoff: 60 * time.Second,
		backoffMax: 3 * time.Minute, notice: time.Second}
}

// control runs the controller as main does, with a cache that is fed by the fake API server, until it is stopped.
func (k *kubernetes) control(s *service, set checkSettings) (stop func(), sent *counted) {
	k.t.Helper()
	return k.controlWith(s, set, "cpu=ncpus:1,memory=maxmem:1Gi")
}

// controlWith is control with other resources.
func (k *kubernetes) controlWith(s *service, set checkSettings, divided string) (stop func(), sent *counted) {
	k.t.Helper()
	ctx, cancel := context.WithCancel(k.ctx)
	informers := &informertest.FakeInformers{Scheme: k.Scheme()}
	mgr, err := ctrl.NewManager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{
		Scheme: k.Scheme(), Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:     config.Controller{SkipNameValidation: ptr.To(true)},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return k.RESTMapper(), nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return informers, nil },
		NewClient:      func(*rest.Config, client.Options) (client.Client, error) { return k.WithWatch, nil },
	})
	if err != nil {
		k.t.Fatal(err)
	}
	sent = &counted{RoundTripper: &http.Transport{}}
	resources, err := parseResources(divided)
	if err != nil {
		k.t.Fatal(err)
	}
	f := newFeed(&stint.Client{Base: s.Base, HTTP: &http.Client{Transport: sent}, TriesMax: 2,
		WaitMax: 50 * time.Millisecond}, "kueue", resources)
	f.pause, f.look = 50*time.Millisecond, 100*time.Millisecond
	if err := wire(mgr, f, set); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	<-mgr.Elected()
	k.inform(ctx, informers)
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			k.t.Error(err)
		}
		sent.RoundTripper.(*http.Transport).CloseIdleConnections()
	}
	return stop, sent
}

// inform has a cache learn of all workloads and checks, and of what becomes of workloads.
func (k *kubernetes) inform(ctx context.Context, informers *informertest.FakeInformers) {
	k.t.Helper()
	informer := func(of client.Object) *controllertest.FakeInformer {
		i, err := informers.FakeInformerFor(ctx, of)
		if err != nil {
			k.t.Fatal(err)
		}
		return i
	}
	ofWorkloads, ofChecks := informer(&kueue.Workload{}), informer(&kueue.AdmissionCheck{})
	k.each(ctx, func(e watch.EventType, wl *kueue.Workload) {
		switch e {
		case watch.Added:
			ofWorkloads.Add(wl)
		case watch.Modified:
			ofWorkloads.Update(wl, wl)
		case watch.Deleted:
			ofWorkloads.Delete(wl)
		}
	})
	var workloads kueue.WorkloadList
	var checks kueue.AdmissionCheckList
	if err := k.List(ctx, &workloads); err != nil {
		k.t.Fatal(err)
	}
	if err := k.List(ctx, &checks); err != nil {
		k.t.Fatal(err)
	}
	for i := range workloads.Items {
		ofWorkloads.Add(&workloads.Items[i])
	}
	for i := range checks.Items {
		ofChecks.Add(&checks.Items[i])
	}
}
