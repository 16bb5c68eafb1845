package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apache/yunikorn-core/pkg/common/configs"
	"github.com/apache/yunikorn-core/pkg/entrypoint"
	"github.com/apache/yunikorn-core/pkg/log"
	"github.com/apache/yunikorn-scheduler-interface/lib/go/si"
	"go.uber.org/zap"
)

// placed is what a peer did.
type placed struct {
	Units     int64   `json:"units"`
	Seconds   float64 `json:"seconds"` // from the submission of all units to the last that was placed
	CPU       float64 `json:"cpu_seconds"`
	PeakBytes int64   `json:"peak_rss_bytes"`
	Ended     string  `json:"ended"` // all, idle or limit
}

// callback is told by YuniKorn's core of what it decides, in place of a Kubernetes shim.
type callback struct {
	apps, nodes, units, lastNS atomic.Int64
	rejected                   atomic.Pointer[string]
	begin                      time.Time
	want                       int64
	done                       chan struct{}
}

func (c *callback) UpdateAllocation(r *si.AllocationResponse) error {
	if n := int64(len(r.New)); n > 0 {
		all := c.units.Add(n)
		c.lastNS.Store(time.Since(c.begin).Nanoseconds())
		if all >= c.want && all-n < c.want {
			close(c.done)
		}
	}
	for _, x := range r.RejectedAllocations {
		c.reject("unit " + x.AllocationKey + ": " + x.Reason)
	}
	return nil
}

func (c *callback) UpdateApplication(r *si.ApplicationResponse) error {
	c.apps.Add(int64(len(r.Accepted)))
	for _, x := range r.Rejected {
		c.reject("application " + x.ApplicationID + ": " + x.Reason)
	}
	return nil
}

func (c *callback) UpdateNode(r *si.NodeResponse) error {
	c.nodes.Add(int64(len(r.Accepted)))
	for _, x := range r.Rejected {
		c.reject("node " + x.NodeID + ": " + x.Reason)
	}
	return nil
}

func (c *callback) reject(why string) { c.rejected.CompareAndSwap(nil, &why) }

func (c *callback) Predicates(*si.PredicatesArgs) error { return nil }

func (c *callback) PreemptionPredicates(*si.PreemptionPredicatesArgs) *si.PreemptionPredicatesResponse {
	return nil
}
func (c *callback) SendEvent([]*si.EventRecord)                                              {}
func (c *callback) UpdateContainerSchedulingState(*si.UpdateContainerSchedulingStateRequest) {}

// mebibyte: YuniKorn counts bytes.
const mebibyte = 1 << 20

// registered is the name under which the callback registers.
const registered = "rm:peers"

func resource(s size) *si.Resource {
	m := map[string]*si.Quantity{"vcore": {Value: s.cpu}, "memory": {Value: s.memory * mebibyte}}
	if s.gpu > 0 {
		m["nvidia.com/gpu"] = &si.Quantity{Value: s.gpu}
	}
	return &si.Resource{Resources: m}
}

// queues is YuniKorn's configuration: a maximum for each department that never binds, an equal guarantee for each team.
func (o *options) queues() string {
	want, leaves := o.wanted(), int64(o.departments*o.teams)
	var y strings.Builder
	fmt.Fprintf(&y, "partitions:\n  - name: default\n    nodesortpolicy:\n      type: %s\n"+
		"    preemption:\n      enabled: false\n"+
		"    queues:\n      - name: root\n        submitacl: \"*\"\n        queues:\n", o.nodeSort)
	for d := range o.departments {
		fmt.Fprintf(&y, "          - name: dept%d\n            resources:\n"+
			"              max: {vcore: %dm, memory: %dMi}\n            queues:\n", d, want.cpu, want.memory)
		for t := range o.teams {
			fmt.Fprintf(&y, "              - name: team%d\n                properties:\n"+
				"                  application.sort.policy: %s\n"+
				"                resources:\n                  guaranteed: {vcore: %dm, memory: %dMi}\n",
				t, o.appSort, want.cpu/leaves, want.memory/leaves)
		}
	}
	return y.String()
}

// yunikorn has YuniKorn's core place the units, in this process, without Kubernetes. It may run once in a process.
// Errors: what it refuses; it does not take the cluster within a minute.
func yunikorn(o *options) (*placed, error) {
	quiet := zap.NewProductionConfig()
	quiet.Level = zap.NewAtomicLevelAt(zap.ErrorLevel)
	logger, err := quiet.Build()
	if err != nil {
		return nil, err
	}
	log.InitializeLogger(logger, &quiet)
	extra := map[string]string{"log.level": "ERROR", configs.CMEventTrackingEnabled: "true"} // as by default
	log.UpdateLoggingConfig(extra)
	configs.SetConfigMap(extra)
	services := entrypoint.StartAllServicesWithParams(false, false)
	defer services.StopAll()
	proxy, c := services.RMProxy, &callback{want: int64(o.units), done: make(chan struct{}), begin: time.Now()}
	_, err = proxy.RegisterResourceManager(&si.RegisterResourceManagerRequest{
		RmID: registered, PolicyGroup: "g", Version: "1", BuildInfo: map[string]string{},
		Config: o.queues(), ExtraConfig: extra}, c)
	if err != nil {
		return nil, err
	}
	apps := make([]*si.AddApplicationRequest, o.appsInAll())
	for i := range apps {
		d, t := o.team(i)
		apps[i] = &si.AddApplicationRequest{ApplicationID: fmt.Sprintf("app-%d", i),
			QueueName: fmt.Sprintf("root.dept%d.team%d", d, t),
			Ugi:       &si.UserGroupInformation{User: fmt.Sprintf("u%d", t), Groups: []string{"g"}}}
	}
	var nodes []*si.NodeInfo
	for i, s := range o.hostSizes() {
		nodes = append(nodes, &si.NodeInfo{NodeID: fmt.Sprintf("node-%05d", i), Action: si.NodeInfo_CREATE,
			Attributes: map[string]string{}, SchedulableResource: resource(s)})
	}
	if err := proxy.UpdateApplication(&si.ApplicationRequest{New: apps, RmID: registered}); err != nil {
		return nil, err
	}
	if err := c.await("applications", &c.apps, len(apps)); err != nil {
		return nil, err
	}
	if err := proxy.UpdateNode(&si.NodeRequest{RmID: registered, Nodes: nodes}); err != nil {
		return nil, err
	}
	if err := c.await("nodes", &c.nodes, len(nodes)); err != nil {
		return nil, err
	}
	asks := make([]*si.Allocation, o.units)
	for i := range asks {
		asks[i] = &si.Allocation{AllocationKey: fmt.Sprintf("unit-%07d", i),
			ApplicationID: apps[o.appOf(i)].ApplicationID, ResourcePerAlloc: resource(unitSize(i))}
	}
	runtime.GC()
	debug.FreeOSMemory()
	before := usage()
	c.begin = time.Now()
	if err := proxy.UpdateAllocation(&si.AllocationRequest{Allocations: asks, RmID: registered}); err != nil {
		return nil, err
	}
	p := &placed{Ended: c.until(o)}
	after := usage()
	if why := c.rejected.Load(); why != nil {
		return nil, errors.New("YuniKorn refused " + *why)
	}
	p.Units, p.Seconds = c.units.Load(), time.Duration(c.lastNS.Load()).Seconds()
	p.CPU, p.PeakBytes = after.seconds-before.seconds, after.peak
	return p, nil
}

// await waits until so many are accepted.
func (c *callback) await(what string, n *atomic.Int64, want int) error {
	for end := time.Now().Add(time.Minute); n.Load() < int64(want); time.Sleep(time.Millisecond) {
		if why := c.rejected.Load(); why != nil {
			return errors.New("YuniKorn refused " + *why)
		}
		if time.Now().After(end) {
			return fmt.Errorf("YuniKorn took %d of %d %s within a minute", n.Load(), want, what)
		}
	}
	return nil
}

// until waits until all units are placed, none has been for a while, or time is up.
func (c *callback) until(o *options) (why string) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return "all"
		case <-tick.C:
			passed := time.Since(c.begin).Seconds()
			if passed > o.limitSecs {
				return "limit"
			}
			if passed-time.Duration(c.lastNS.Load()).Seconds() > o.idleSeconds {
				return "idle"
			}
		}
	}
}

// used is what the process has used so far.
type used struct {
	seconds float64
	peak    int64
}

func usage() used {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // it cannot fail for this process
	return used{time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds(), r.Maxrss * 1024}
}
