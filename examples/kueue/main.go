// Command kueue puts the decisions of a stint service in force in a cluster with Kueue: workloads become demand, what
// stint grants becomes the quota of their ClusterQueues and opens their admission checks, and what stint takes back is
// evicted within its grace.
//
//	kueue -stint https://stint:7468 -resources cpu=cpu_milli:1m,memory=memory_mib:1Mi,nvidia.com/gpu=nvidia_com_gpu:1
//
// The token of the service, where it needs one, is in STINT_TOKEN. docs/connect-kubernetes.md has the set-up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/client"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}

// settings are what the command line says.
type settings struct {
	stint          string
	tls            client.TLS
	resources      string
	quota          string
	check          checkSettings
	act            act.Options
	election       bool
	probe, metrics string
}

func flags(set *flag.FlagSet) *settings {
	s := &settings{}
	c, a := &s.check, &s.act
	set.StringVar(&s.stint, "stint", "http://127.0.0.1:7468", "address of the stint service")
	set.StringVar(&a.Source, "source", "kueue", "source of the demand; each cluster of Kubernetes has its own")
	set.StringVar(&s.tls.CA, "ca", "", "authorities of the service's certificate, a PEM file")
	set.StringVar(&s.tls.Certificate, "cert", "", "certificate by which the service knows this controller, a PEM file")
	set.StringVar(&s.tls.Key, "key", "", "key of that certificate")
	set.StringVar(&s.resources, "resources", "cpu=cpu_milli:1m,memory=memory_mib:1Mi",
		"resources that stint divides, each as RESOURCE=DIMENSION:UNIT")
	set.StringVar(&s.quota, "quota", string(quotaStatus), "where the quotas of ClusterQueues and Cohorts are written: "+
		"status (status.effectiveQuota, Kueue 0.20 and later), spec (nominalQuota, any Kueue) or none")
	set.BoolVar(&a.Hosts, "hosts", false, "push the nodes to stint as its hosts")
	set.StringVar(&a.Ledger, "ledger", "/var/lib/stint-kueue", "folder of the actor's ledger; an empty one will do")
	set.DurationVar(&a.Every, "every", 2*time.Second, "how long between two lists of the workloads")
	set.IntVar(&a.Parallel, "parallel", 4,
		"how many workloads are started, and stopped, at a time; quotas come first")
	set.DurationVar(&a.Notice, "notice", time.Minute,
		"how long before stint's deadline a workload is evicted, so that its pods end in time; 0: at once")
	set.StringVar(&c.controller, "controller-name", "stintd.github.io/stint", "controllerName of the checks to answer")
	set.DurationVar(&c.backoff, "backoff", time.Minute,
		"how long a workload that was sent back waits the first time; each further time it is twice as long")
	set.DurationVar(&c.backoffMax, "backoff-max", 30*time.Minute, "how long it waits at most")
	set.DurationVar(&c.wait, "wait", 0,
		"how long a workload waits for stint with quota reserved before it is sent back; 0: for ever")
	set.DurationVar(&c.quiet, "quiet", 10*time.Second,
		"how long at least between two messages about a workload that waits")
	set.BoolVar(&c.pin, "pin", false, "select the node for pod sets whose pods stint has put on one")
	set.BoolVar(&s.election, "leader-elect", true, "run beside others, of which one acts")
	set.StringVar(&s.probe, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	set.StringVar(&s.metrics, "metrics-bind-address", ":8080", "address of /metrics; 0: none")
	return s
}

func run() error {
	s := flags(flag.CommandLine)
	logs := zap.Options{}
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))
	over, err := s.tls.HTTP()
	if err != nil {
		return err
	}
	kubernetes, err := config.GetConfig()
	if err != nil {
		return err
	}
	kubernetes.QPS = -1 // the API server has priority and fairness of its own
	mgr, err := ctrl.NewManager(kubernetes, ctrl.Options{
		Scheme: newScheme(), Metrics: metrics.Options{BindAddress: s.metrics}, HealthProbeBindAddress: s.probe,
		LeaderElection: s.election, LeaderElectionID: "stint-" + s.act.Source,
	})
	if err != nil {
		return err
	}
	service := &client.Client{Base: s.stint, Token: os.Getenv("STINT_TOKEN"), HTTP: over, TriesMax: 3,
		WaitMax: time.Second}
	s.act.Metrics = ctrlmetrics.Registry
	w, err := newWiring(mgr, service, s)
	if err != nil {
		return err
	}
	if err := errors.Join(w.controllers(mgr), w.actor(mgr, service, s.act)); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = clientgoscheme.AddToScheme(scheme) // fails for types that are registered twice alone
	register(scheme)
	return scheme
}

// wiring has the parts of the controller.
type wiring struct {
	hands     *hands
	workloads *workloads
	decisions *decisions
	quotas    *quotas
}

func newWiring(mgr manager.Manager, service *client.Client, s *settings) (*wiring, error) {
	resources, err := parseResources(s.resources)
	if err != nil {
		return nil, fmt.Errorf("-resources: %w", err)
	}
	mode := quotaMode(s.quota)
	if mode != quotaNone && mode != quotaStatus && mode != quotaSpec {
		return nil, fmt.Errorf("-quota: %q: must be status, spec or none", s.quota)
	}
	s.check.early = mode != quotaNone
	d := &decisions{source: s.act.Source, controller: s.check.controller, resources: resources, cache: mgr.GetClient(),
		look: 10 * time.Second}
	if mode != quotaNone {
		d.news = make(chan event.TypedGenericEvent[*ClusterQueue], newsMax)
	}
	own := *service // with its own clock; it is tried again from the start
	own.Clock, own.TriesMax = d.hear, 1
	d.stint = &own
	return &wiring{
		decisions: d,
		hands: &hands{live: mgr.GetAPIReader(), cache: mgr.GetClient(), write: mgr.GetClient(),
			controller: s.check.controller, resources: resources, early: s.check.early, hosts: s.act.Hosts,
			decisions: d, log: slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("hands")))},
		workloads: &workloads{Client: mgr.GetClient(), checkSettings: s.check, resources: resources, decisions: d},
		quotas: &quotas{Client: mgr.GetClient(), controller: s.check.controller, source: s.act.Source, mode: mode,
			resources: resources, decisions: d},
	}, nil
}

// quotaWorkers is how many quotas are written at a time.
const quotaWorkers = 16

// controllers has a manager run all but the actor.
func (w *wiring) controllers(mgr manager.Manager) error {
	ready := func(*http.Request) error { return w.decisions.ready(time.Now()) }
	err := errors.Join(
		mgr.Add(manager.RunnableFunc(w.decisions.Start)),
		ctrl.NewControllerManagedBy(mgr).Named("workloads").For(&kueue.Workload{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: 8}).Complete(w.workloads),
		ctrl.NewControllerManagedBy(mgr).Named("admissionchecks").For(&kueue.AdmissionCheck{}).
			Complete(&checks{Client: mgr.GetClient(), controller: w.workloads.controller}),
		mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("stint", ready))
	if w.quotas.mode == quotaNone || err != nil {
		return err
	}
	c := &cohorts{quotas: *w.quotas}
	return errors.Join(
		ctrl.NewControllerManagedBy(mgr).Named("quotas").For(&ClusterQueue{}).
			WatchesRawSource(source.Channel(w.decisions.news, &handler.TypedEnqueueRequestForObject[*ClusterQueue]{})).
			WithOptions(controller.Options{MaxConcurrentReconciles: quotaWorkers}).Complete(w.quotas),
		ctrl.NewControllerManagedBy(mgr).Named("cohorts").For(&Cohort{}).
			Watches(&ClusterQueue{}, handler.EnqueueRequestsFromMapFunc(c.requests)).Complete(c))
}

// actor has a manager run the actor while it leads.
func (w *wiring) actor(mgr manager.Manager, service *client.Client, o act.Options) error {
	o.Log = slog.New(logr.ToSlogHandler(mgr.GetLogger().WithName("actor")))
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return act.Run(ctx, service, w.hands, o)
	}))
}
