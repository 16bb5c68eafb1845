// Command kueue is a controller of Kueue's admission checks that asks a stint service: a workload that has reserved
// quota is admitted when stint has granted all of its pods, and is sent back to its queue when stint takes them back.
//
//	kueue -stint https://stint:7468 -resources cpu=cpu_milli:1m,memory=memory_mib:1Mi,nvidia.com/gpu=nvidia_com_gpu:1
//
// The token of the service, where it wants one, is in STINT_TOKEN. README.md tells how it is set up.
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/stintd/stint/ingest/client"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
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
	stint, source  string
	tls            client.TLS
	resources      string
	check          checkSettings
	election       bool
	probe, metrics string
}

func flags(set *flag.FlagSet) *settings {
	s := &settings{}
	c := &s.check
	set.StringVar(&s.stint, "stint", "http://127.0.0.1:7468", "address of the stint service")
	set.StringVar(&s.source, "source", "kueue", "source of the demand; each cluster of Kubernetes has one of its own")
	set.StringVar(&s.tls.CA, "ca", "", "authorities of the service's certificate, a PEM file")
	set.StringVar(&s.tls.Certificate, "cert", "", "certificate by which the service knows this controller, a PEM file")
	set.StringVar(&s.tls.Key, "key", "", "key of that certificate")
	set.StringVar(&s.resources, "resources", "cpu=cpu_milli:1m,memory=memory_mib:1Mi",
		"resources that stint divides, each as RESOURCE=DIMENSION:UNIT")
	set.StringVar(&c.controller, "controller-name", "stintd.github.io/stint", "controllerName of the checks to answer")
	set.DurationVar(&c.patience, "patience", 30*time.Second,
		"how long stint may not answer before workloads that wait for it are sent back")
	set.DurationVar(&c.backoff, "backoff", time.Minute,
		"how long a workload that was sent back waits the first time; each further time it is twice as long")
	set.DurationVar(&c.backoffMax, "backoff-max", 30*time.Minute, "how long it waits at most")
	set.DurationVar(&c.wait, "wait", 0,
		"how long a workload waits for stint with quota reserved before it is sent back; 0: for ever")
	set.DurationVar(&c.notice, "notice", time.Minute,
		"how long before stint's deadline a workload is evicted, so that its pods end in time")
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
	resources, err := parseResources(s.resources)
	if err != nil {
		return fmt.Errorf("-resources: %w", err)
	}
	over, err := s.tls.HTTP()
	if err != nil {
		return err
	}
	kubernetes, err := config.GetConfig()
	if err != nil {
		return err
	}
	scheme := clientgoscheme.Scheme
	if err := kueue.AddToScheme(scheme); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(kubernetes, ctrl.Options{
		Scheme: scheme, Metrics: metrics.Options{BindAddress: s.metrics}, HealthProbeBindAddress: s.probe,
		LeaderElection: s.election, LeaderElectionID: "stint-" + s.source,
	})
	if err != nil {
		return err
	}
	service := &client.Client{Base: s.stint, Token: os.Getenv("STINT_TOKEN"), HTTP: over, TriesMax: 3,
		WaitMax: time.Second}
	if err := wire(mgr, newFeed(service, s.source, resources), s.check); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// wire has a manager run the feed and the two controllers.
func wire(mgr manager.Manager, f *feed, s checkSettings) error {
	w := &workloads{Client: mgr.GetClient(), feed: f, checkSettings: s}
	workloadsRun := ctrl.NewControllerManagedBy(mgr).Named("workloads").For(&kueue.Workload{}).
		WatchesRawSource(source.Channel(f.news, &handler.TypedEnqueueRequestForObject[*kueue.Workload]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8})
	c := &checks{Client: mgr.GetClient(), controller: s.controller}
	checksRun := ctrl.NewControllerManagedBy(mgr).Named("admissionchecks").For(&kueue.AdmissionCheck{})
	answers := func(*http.Request) error { return f.answers(time.Now(), s.patience) }
	return errors.Join(mgr.Add(f), workloadsRun.Complete(w), checksRun.Complete(c),
		mgr.AddHealthzCheck("healthz", healthz.Ping), mgr.AddReadyzCheck("stint", answers))
}
