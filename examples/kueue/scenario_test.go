//go:build kube

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	stint "github.com/stintd/stint/ingest/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// tutorial is the policy of docs/tutorial.md, with a grace for a test.
const tutorial = `
stint: 1
interval: 1h
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Trading}, {path: /Risk, rank: 1, reclaim_grace: 8s}, {path: /Research, rank: 2, reclaim_grace: 8s}]
md_plans:
  - name: grid
    release: confirmed
    resource_groups: [{name: All}]
    consumers:
      - {path: /Trading, own: [{group: All, hosts: 1}]}
      - {path: /Risk, own: [{group: All, hosts: 1}]}
      - {path: /Research}
`

// set makes the cluster of the tutorial: three nodes and three queues in a cohort.
func set(t *testing.T, cohort string) {
	t.Helper()
	clean(t)
	for _, name := range []string{"h1", "h2", "h3"} {
		node(t, name, 8)
	}
	create(t, check("stint"))
	for name, consumer := range map[string]string{"trading": "/Trading", "risk": "/Risk", "research": "/Research"} {
		create(t, queue(name, "stint", consumer, cohort)...)
	}
	if cohort != "" {
		c := &Cohort{ObjectMeta: metav1.ObjectMeta{Name: cohort}}
		c.Spec.ResourceGroups = groupsOf("24")
		create(t, c)
	}
}

// submit makes so many workloads of one pod in a queue.
func submit(t *testing.T, queue, name string, n int, seconds float64) {
	t.Helper()
	for i := range n {
		create(t, workload(fmt.Sprintf("%s-%d", name, i), queue, 1, seconds))
	}
}

// quotaIs is the effective cpu quota of a ClusterQueue, "": none is written.
func quotaIs(t *testing.T, name string) string {
	t.Helper()
	queue := &ClusterQueue{}
	if err := bed.Get(t.Context(), types.NamespacedName{Name: name}, queue); err != nil {
		t.Fatal(err)
	}
	if queue.Status.EffectiveQuota == nil {
		return ""
	}
	r := queue.Status.EffectiveQuota.ResourceGroups[0].Flavors[0].Resources[0]
	return r.NominalQuota.String()
}

// printed is the table that kubectl get clusterqueue prints, by name of the queue.
func printed(t *testing.T) map[string]string {
	t.Helper()
	over, err := rest.HTTPClientFor(bed.config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), "GET", bed.config.Host+
		"/apis/kueue.x-k8s.io/v1beta2/clusterqueues", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := over.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var table metav1.Table
	if err := json.NewDecoder(answer.Body).Decode(&table); err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for i, c := range table.ColumnDefinitions {
		if c.Name != "Stint" {
			continue
		}
		for _, row := range table.Rows {
			rows[fmt.Sprint(row.Cells[0])] = fmt.Sprint(row.Cells[i])
		}
	}
	return rows
}

// TestLending plays the tutorial: by night Risk borrows the hosts of others, in the morning Trading takes its own back.
func TestLending(t *testing.T) {
	set(t, "grid")
	s, p := serve(t, tutorial), play(t, "")
	controlled{check: "stint", quota: quotaStatus, service: s.Client, ledger: t.TempDir()}.run(t)
	submit(t, "risk", "eod", 20, 0)
	s.decides("the night", func() (string, bool) {
		text := fmt.Sprintf("%d run, quotas %q %q", admitted(t, "risk"), quotaIs(t, "risk"), quotaIs(t, "trading"))
		return text, admitted(t, "risk") == 20 && quotaIs(t, "risk") == "20" && quotaIs(t, "trading") == "0"
	})
	t.Logf("by night: %v", printed(t))
	if text := printed(t)["risk"]; text != "cpu 20 for 20 pods" {
		t.Errorf("kubectl shows %q", text)
	}
	var grid Cohort
	if err := bed.Get(t.Context(), types.NamespacedName{Name: "grid"}, &grid); err != nil {
		t.Fatal(err)
	}
	if e := grid.Status.EffectiveQuota; e == nil || !e.ResourceGroups[0].Flavors[0].Resources[0].NominalQuota.IsZero() {
		t.Errorf("the cohort's effective quota is %v", e)
	}

	submit(t, "trading", "pricing", 8, 0)
	seen := ""
	s.decides("the morning", func() (string, bool) {
		if text := printed(t)["risk"]; strings.Contains(text, "recall") {
			seen = text
		}
		text := fmt.Sprintf("%d and %d run", admitted(t, "trading"), admitted(t, "risk"))
		return text, admitted(t, "trading") == 8 && admitted(t, "risk") == 16 && quotaIs(t, "trading") == "8" &&
			quotaIs(t, "risk") == "16"
	})
	t.Logf("in the morning: %v; meanwhile: %s", printed(t), seen)
	changes, _, err := s.Changes(t.Context(), "kueue", 0, 0)
	s.must(nil, err)
	recalled := 0
	for _, c := range changes {
		if c.Change != "reclaim" {
			continue
		}
		recalled++
		p.mu.Lock()
		freed, said := p.freed[workloadOf(c.Allocation).Name], p.said[workloadOf(c.Allocation).Name]
		p.mu.Unlock()
		if freed.IsZero() || freed.After(*c.Deadline) ||
			!strings.HasPrefix(said.Message, "stint takes back 1 of 1 pods") {
			t.Errorf("%s: ended at %s, its deadline is %s; its check said %q", c.Allocation, freed, c.Deadline,
				said.Message)
		}
	}
	if recalled != 4 {
		t.Errorf("%d units were recalled, not 4", recalled)
	}

	for i := range 8 {
		if err := bed.Delete(t.Context(), get(t, fmt.Sprintf("pricing-%d", i))); err != nil {
			t.Fatal(err)
		}
	}
	s.decides("the evening", func() (string, bool) {
		return fmt.Sprintf("%d run", admitted(t, "risk")), admitted(t, "risk") == 20 && quotaIs(t, "trading") == "0"
	})
}

// TestThousand has the quotas of 1,000 queues written within two seconds of a cycle.
func TestThousand(t *testing.T) {
	clean(t)
	n := 1000
	if text := os.Getenv("STINT_QUEUES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	policy := &strings.Builder{}
	policy.WriteString("stint: 1\ninterval: 1h\ndimensions: [ncpus]\n" +
		"resource_groups: [{name: All, select: \"select(ncpus > 0)\"}]\nconsumers:\n")
	plan := "md_plans:\n  - name: grid\n    resource_groups: [{name: All}]\n    consumers:\n"
	for i := range n {
		fmt.Fprintf(policy, "  - {path: /q%04d, reclaim_grace: 1h}\n", i)
		plan += fmt.Sprintf("      - {path: /q%04d}\n", i)
	}
	s := serve(t, policy.String()+plan)
	for i := range 100 {
		node(t, fmt.Sprintf("n%02d", i), 64)
	}
	create(t, check("stint"))
	for i := range n {
		name := fmt.Sprintf("q%04d", i)
		create(t, queue(name, "stint", "/"+name, "")...)
		create(t, workload(name, name, int32(1+i%4), 0))
	}
	pushed := &pushes{RoundTripper: &http.Transport{}}
	service := &stint.Client{Base: s.Base, HTTP: &http.Client{Transport: pushed}, TriesMax: 3,
		WaitMax: time.Second}
	c := controlled{check: "stint", quota: quotaStatus, service: service, ledger: t.TempDir(),
		every: 2 * time.Second, parallel: 4}.run(t)
	eventually(t, "the demand", func() (string, bool) {
		bytes := pushed.bytes.Load()
		return fmt.Sprint(bytes), bytes > int64(50*n)
	})
	s.until(t, c.mgr.GetClient(), "granted", n)
	for i := range n {
		if err := bed.Delete(t.Context(), get(t, fmt.Sprintf("q%04d", i))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "no demand", func() (string, bool) {
		bytes := pushed.bytes.Load()
		return fmt.Sprint(bytes), bytes < 10
	})
	s.until(t, c.mgr.GetClient(), "ended", n)
}

// pushes notes how large the last demand is that the service took.
type pushes struct {
	http.RoundTripper
	bytes atomic.Int64
}

func (p *pushes) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := p.RoundTripper.RoundTrip(r)
	if err == nil && r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/demand/") &&
		answer.StatusCode < http.StatusMultipleChoices {
		p.bytes.Store(r.ContentLength)
	}
	return answer, err
}

// until runs a cycle and reports how long after it the cache of the controller has the last of n new quotas.
func (s *service) until(t *testing.T, cache client.Reader, round string, n int) {
	t.Helper()
	began := time.Now()
	s.must(s.Cycle(t.Context()))
	decided, used, written := time.Now(), cpuSeconds(), 0
	for end := decided.Add(2 * time.Minute); written < n && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var list ClusterQueueList
		if err := cache.List(t.Context(), &list, client.UnsafeDisableDeepCopy); err != nil {
			t.Fatal(err)
		}
		written = 0
		for i := range list.Items {
			e := list.Items[i].Status.EffectiveQuota
			if e == nil {
				continue
			}
			r := e.ResourceGroups[0].Flavors[0].Resources[0]
			if r.NominalQuota.IsZero() == (round == "ended") {
				written++
			}
		}
	}
	lag := time.Since(decided)
	t.Logf("%s: a cycle of %s, then %d quotas within %s; processor time of controller and test, etcd, API server: %v",
		round, decided.Sub(began).Round(time.Millisecond), written, lag.Round(time.Millisecond), since(used))
	if written < n {
		free, taken := s.held()
		t.Logf("stint holds %d units, and takes %d back", free, taken)
	}
	if written < n || lag > 2*time.Second {
		t.Errorf("%s: %d of %d quotas are written %s after the cycle; 2 s are allowed", round, written, n, lag)
	}
}

// TestLeader ends the leader of two controllers, and then the other one, whose place the first takes with a ledger
// that is old by then.
func TestLeader(t *testing.T) {
	set(t, "")
	s, p := serve(t, tutorial), play(t, "")
	first := controlled{check: "stint", quota: quotaStatus, service: s.Client, ledger: t.TempDir(), election: true}
	second := first
	second.ledger = t.TempDir()
	leads := first.run(t)
	<-leads.mgr.Elected()
	waits := second.run(t)
	submit(t, "risk", "a", 10, 0)
	runs := func(n int) func() (string, bool) {
		return func() (string, bool) {
			free, taken := s.held()
			text := fmt.Sprintf("%d run, %d held, %d taken", admitted(t, "risk"), free, taken)
			return text, admitted(t, "risk") == n && free == int64(n) && taken == 0 &&
				quotaIs(t, "risk") == fmt.Sprint(n)
		}
	}
	s.decides("the first leads", runs(10))
	leads.stop()
	submit(t, "risk", "b", 5, 0)
	<-waits.mgr.Elected()
	s.decides("the second leads", runs(15))
	leads = first.run(t)
	waits.stop()
	submit(t, "risk", "c", 5, 0)
	<-leads.mgr.Elected()
	s.decides("the first leads again", runs(20))
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, n := range p.admits {
		if n != 1 {
			t.Errorf("%s was admitted %d times", name, n)
		}
	}
	if len(p.said) > 0 {
		t.Errorf("workloads were sent back: %v", p.said)
	}
}

// faults has one request of four answered by an API server in trouble.
type faults struct {
	http.RoundTripper
	on     *atomic.Bool
	counts *[5]atomic.Int64
}

func (f faults) RoundTrip(r *http.Request) (*http.Response, error) {
	if !f.on.Load() || rand.IntN(4) > 0 {
		return f.RoundTripper.RoundTrip(r)
	}
	kind := rand.IntN(5)
	f.counts[kind].Add(1)
	status := []int{http.StatusConflict, http.StatusTooManyRequests, http.StatusInternalServerError}
	switch {
	case kind == 0 && r.Method == http.MethodGet:
		return f.RoundTripper.RoundTrip(r)
	case kind < len(status):
		text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,`+
			`"message":"planted"}`,
			[]metav1.StatusReason{metav1.StatusReasonConflict, metav1.StatusReasonTooManyRequests,
				metav1.StatusReasonInternalError}[kind], status[kind])
		return &http.Response{StatusCode: status[kind], Status: fmt.Sprint(status[kind]), Proto: "HTTP/1.1",
			ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}, "Retry-After": {"1"}},
			Body:   io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text))}, nil
	case kind == 3:
		return nil, errors.New("planted: no answer, and nothing was done")
	}
	answer, err := f.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body.Close()
	}
	return nil, errors.New("planted: no answer, and it was done")
}

// TestFaults has an API server that answers 409, 429, 500 or nothing: all work ends once, and no host has more than it
// has room for.
func TestFaults(t *testing.T) {
	set(t, "")
	s, p := serve(t, tutorial), play(t, "")
	on, counts := &atomic.Bool{}, &[5]atomic.Int64{}
	controlled{check: "stint", quota: quotaStatus, service: s.Client, ledger: t.TempDir(),
		wrap: func(next http.RoundTripper) http.RoundTripper { return faults{next, on, counts} }}.run(t)
	on.Store(true)
	submit(t, "risk", "a", 24, 3)
	submit(t, "trading", "b", 8, 3)
	most := 0
	s.decides("all work ends", func() (string, bool) {
		var list kueue.WorkloadList
		if err := bed.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		finished, names, running := 0, map[string]string{}, 0
		on := map[string]int{}
		for i := range list.Items {
			wl := &list.Items[i]
			if isTrue(wl, kueue.WorkloadFinished) {
				finished++
				continue
			}
			g, err := readGrant(wl)
			if err != nil || g == nil || g.Stop != nil && !mayRun(wl, wl.Status.AdmissionChecks[0].State) {
				continue
			}
			for _, u := range g.units(wl.Name, "main") {
				if other := names[u.ID]; other != "" {
					t.Errorf("unit %s is of %s and %s", u.ID, other, wl.Name)
				}
				names[u.ID] = wl.Name
				on[u.Host]++
			}
			if g.count("main") > 1 {
				t.Errorf("%s has %d units", wl.Name, g.count("main"))
			}
			running++
		}
		for host, n := range on {
			if n > 8 {
				t.Errorf("%d pods of one processor are granted on %s", n, host)
			}
		}
		most = max(most, running)
		free, taken := s.held()
		return fmt.Sprintf("%d of 32 finished, %d run, %d+%d held", finished, running, free, taken),
			finished == 32 && free+taken == 0
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	t.Logf("409: %d, 429: %d, 500: %d, lost: %d, answers lost: %d; at most %d pods at once; %d workloads admitted",
		counts[0].Load(), counts[1].Load(), counts[2].Load(), counts[3].Load(), counts[4].Load(), most, len(p.admits))
	for name, n := range p.admits {
		if n > 1+p.sent[name] {
			t.Errorf("%s was admitted %d times and sent back %d times", name, n, p.sent[name])
		}
	}
	if most == 0 || counts[0].Load()+counts[4].Load() == 0 {
		t.Error("the test shows nothing")
	}
}

// TestDown has stint killed, and come back with nothing: what runs goes on.
func TestDown(t *testing.T) {
	set(t, "")
	s, p := serve(t, tutorial), play(t, "")
	controlled{check: "stint", quota: quotaStatus, service: s.Client, ledger: t.TempDir()}.run(t)
	submit(t, "risk", "runs", 6, 0)
	s.decides("they run", func() (string, bool) { return "not", admitted(t, "risk") == 6 })
	s.kill()
	submit(t, "risk", "waits", 2, 0)
	time.Sleep(3 * time.Second)
	if n := admitted(t, "risk"); n != 6 || quotaIs(t, "risk") != "6" {
		t.Errorf("without stint %d run, and the quota is %s", n, quotaIs(t, "risk"))
	}
	s.start()
	s.decides("stint is back", func() (string, bool) { return "not", admitted(t, "risk") == 8 })
	s.kill()
	s.dir = t.TempDir()
	s.start()
	s.must(s.PutPlan(t.Context(), stint.Bytes([]byte(tutorial), ""), stint.Options{}))
	s.decides("stint has lost its data", func() (string, bool) {
		free, taken := s.held()
		return fmt.Sprintf("%d held, %d taken, %d run", free, taken, admitted(t, "risk")),
			free == 8 && admitted(t, "risk") == 8
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.said) > 0 {
		t.Errorf("workloads were sent back: %v", p.said)
	}
}

// TestBad has a workload without requests, a queue that is deleted meanwhile, and a quota of another manager.
func TestBad(t *testing.T) {
	set(t, "")
	s := serve(t, tutorial)
	foreign := &ClusterQueue{}
	key := types.NamespacedName{Name: "research"}
	if err := bed.Get(t.Context(), key, foreign); err != nil {
		t.Fatal(err)
	}
	foreign.Status.EffectiveQuota = &EffectiveQuota{LastUpdateTime: metav1.Now(), ResourceGroups: groupsOf("7"),
		ManagerRef: ManagerRef{APIGroup: "kueue.x-k8s.io", Kind: "DynamicQuotaOrchestrator", Name: "production"}}
	if err := bed.Status().Update(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	c := controlled{check: "stint", quota: quotaStatus, service: s.Client, ledger: t.TempDir()}.run(t)
	submit(t, "trading", "lost", 2, 0)
	s.decides("granted", func() (string, bool) {
		n, _ := s.held()
		return fmt.Sprint(n), n == 2 && quotaIs(t, "trading") == "2"
	})

	queue := &ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	if err := bed.Get(t.Context(), client.ObjectKeyFromObject(queue), queue); err != nil {
		t.Fatal(err)
	}
	if err := bed.Delete(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	s.decides("given back", func() (string, bool) { n, _ := s.held(); return fmt.Sprint(n), n == 0 })
	for _, sub := range []string{"", "status"} { // a write that was under way
		err := c.quotas.send(t.Context(), "ClusterQueue", queue, sub, map[string]any{"spec": map[string]any{},
			"status": map[string]any{}})
		t.Logf("a write to a queue that was deleted: %v", err)
		if err := bed.Get(t.Context(), client.ObjectKeyFromObject(queue), &ClusterQueue{}); !apierrors.IsNotFound(err) {
			t.Errorf("a queue that was deleted is there again: %v", err)
		}
	}

	_, err := c.quotas.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err == nil || !strings.Contains(err.Error(), "ClusterQueue research: status.effectiveQuota belongs to "+
		"DynamicQuotaOrchestrator production") || quotaIs(t, "research") != "7" {
		t.Errorf("the quota of another manager is %s: %v", quotaIs(t, "research"), err)
	}

	play(t, "")
	empty := workload("empty", "research", 1, 0)
	empty.Spec.PodSets[0].Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	create(t, empty)
	eventually(t, "rejected", func() (string, bool) {
		wl := get(t, "empty")
		evicted := meta.FindStatusCondition(wl.Status.Conditions, kueue.WorkloadEvicted)
		return fmt.Sprint(wl.Status.AdmissionChecks), evicted != nil
	})
	eventually(t, "the error", func() (string, bool) {
		c.hands.mu.Lock()
		defer c.hands.mu.Unlock()
		text := c.hands.warned["default/empty"]
		return text, strings.Contains(text, "pod set main requests none of the resources")
	})
}

// TestSpec writes nominal quotas, for a Kueue that has no effective ones.
func TestSpec(t *testing.T) {
	set(t, "grid")
	s := serve(t, tutorial)
	play(t, "", func(p *player) { p.specs = true })
	controlled{check: "stint", quota: quotaSpec, service: s.Client, ledger: t.TempDir()}.run(t)
	submit(t, "risk", "a", 12, 0)
	s.decides("they run", func() (string, bool) { return fmt.Sprint(admitted(t, "risk")), admitted(t, "risk") == 12 })
	queue := &ClusterQueue{}
	if err := bed.Get(t.Context(), types.NamespacedName{Name: "risk"}, queue); err != nil {
		t.Fatal(err)
	}
	r := queue.Spec.ResourceGroups[0].Flavors[0].Resources[0]
	if r.NominalQuota.String() != "12" || r.LendingLimit == nil || !r.LendingLimit.IsZero() ||
		queue.Status.EffectiveQuota != nil {
		t.Errorf("the quota is %v, effective: %v", r, queue.Status.EffectiveQuota)
	}
	owns := false
	for _, m := range queue.ManagedFields {
		owns = owns || m.Manager == fieldOwner && m.Operation == metav1.ManagedFieldsOperationApply &&
			m.Subresource == "" && strings.Contains(string(m.FieldsV1.Raw), "resourceGroups")
	}
	if !owns {
		t.Errorf("the field manager %s does not own resourceGroups: %v", fieldOwner, queue.ManagedFields)
	}
	if text := printed(t)["risk"]; text != "cpu 12 for 12 pods" {
		t.Errorf("kubectl shows %q", text)
	}
}

// TestImported holds the names of consumers to those of stint import.
func TestImported(t *testing.T) {
	dir := t.TempDir()
	out, err := exec.Command(program, "import", "kueue", "--manifests", "testdata/queues.yaml", "--out",
		dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "plan.yaml"))
	if err != nil || !strings.Contains(string(text), "/bank/trading/risk/risk.intraday") {
		t.Errorf("%v: %s", err, text)
	}
}
