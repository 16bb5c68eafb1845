package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/stintd/stint/ingest/client"
	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubernetes "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// decisions follows the cycles of stint for the quotas of queues and the reasons why workloads wait.
type decisions struct {
	stint      *client.Client
	source     string
	controller string
	resources  []divided
	cache      kubernetes.Reader
	news       chan event.TypedGenericEvent[*ClusterQueue] // queues whose quota may be another; nil: none is written
	look       time.Duration                               // how long a call waits for changes

	mu      sync.Mutex
	at      time.Time         // stint's time of the last answer; zero: none
	heard   time.Time         // when that was, by the clock of this machine
	granted map[string]*total // by ClusterQueue
	short   map[string]string // rows of shortfalls by consumer and allocation, as text
	answers map[types.NamespacedName]answer
	due     map[string]bool // ClusterQueues whose quota is still to be written
	written chan struct{}   // closed once none is due
	dueTill time.Time       // how long others wait for that
}

// total is what stint granted to the workloads of a ClusterQueue.
type total struct {
	units    int64
	recalled int64             // units under reclaim, which are not in units
	amounts  map[pair]*inf.Dec // of units
}

// pair is a resource of a flavor.
type pair struct {
	flavor   kueue.ResourceFlavorReference
	resource corev1.ResourceName
}

// answer is why a workload waits, and of which rows of shortfalls and of which moment that is.
type answer struct {
	short, text string
	failed      bool
	asked       time.Time
}

// newsMax is how many queues may wait in news.
const newsMax = 1024

// Start follows stint until ctx is done.
func (d *decisions) Start(ctx context.Context) error {
	by := backoff.NewExponentialBackOff()
	by.MaxInterval = 30 * time.Second
	for {
		err := d.follow(ctx, by)
		if ctx.Err() != nil {
			return nil
		}
		pause := by.NextBackOff()
		log.FromContext(ctx).Error(err, "stint does not answer; quotas stay as they are", "again_in", pause.String())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// follow reads what is held at once, and then after each cycle that changed it.
func (d *decisions) follow(ctx context.Context, by *backoff.ExponentialBackOff) error {
	known := int64(-1)
	for {
		held, cycle, err := d.stint.Holdings(ctx, d.source)
		if err != nil && !client.Is(err, "no-cycle") {
			return err
		}
		by.Reset()
		if cycle != known {
			if err := d.take(ctx, held); err != nil {
				return err
			}
			known = cycle
		}
		d.mu.Lock()
		d.heard = time.Now()
		d.mu.Unlock()
		_, _, err = d.stint.Changes(ctx, d.source, cycle, d.look)
		if err != nil && !client.Is(err, "compacted") && !client.Is(err, "future") {
			return err
		}
	}
}

// of is what stint granted to a ClusterQueue, and stint's time; known is false before stint was heard.
func (d *decisions) of(queue string) (t total, at time.Time, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if g := d.granted[queue]; g != nil {
		t = *g
	}
	return t, d.at, d.granted != nil
}

// hear notes stint's time.
func (d *decisions) hear(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = now
}

// take sums up what is held by ClusterQueue, and names all of them to the quota controller, which writes those that
// differ.
func (d *decisions) take(ctx context.Context, held []client.Holding) error {
	short, err := d.shortfalls(ctx)
	if err != nil {
		return err
	}
	q, err := readQueues(ctx, d.cache, d.controller)
	if err != nil {
		return err
	}
	granted, err := d.sum(ctx, q, held)
	if err != nil {
		return err
	}
	for _, name := range d.put(q, granted, short) {
		select {
		case d.news <- event.TypedGenericEvent[*ClusterQueue]{Object: q.cluster[name]}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// put keeps what is granted, and names the queues whose quota is due.
func (d *decisions) put(q *queues, granted map[string]*total, short map[string]string) (due []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.granted
	d.granted, d.short = granted, short
	if d.news == nil {
		return nil
	}
	for name, managed := range q.managed {
		if managed && (before == nil || !granted[name].equal(before[name])) {
			due = append(due, name)
		}
	}
	if len(due) > 0 && len(d.due) == 0 {
		d.due, d.written = map[string]bool{}, make(chan struct{})
	}
	for _, name := range due {
		d.due[name] = true
	}
	d.dueTill = time.Now().Add(quotasFirst)
	return due
}

// tried notes that a quota was written, or could not be.
func (d *decisions) tried(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.due[queue] {
		return
	}
	if delete(d.due, queue); len(d.due) == 0 {
		close(d.written)
	}
}

// quotasFirst is how long workloads wait for the quotas of a cycle: Kueue admits none without its quota, and both write
// to the same API server.
const quotasFirst = 30 * time.Second

// afterQuotas waits until the quotas of the last cycle are written.
func (d *decisions) afterQuotas(ctx context.Context) {
	d.mu.Lock()
	n, written, most := len(d.due), d.written, time.Until(d.dueTill)
	d.mu.Unlock()
	if n == 0 {
		return
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-written:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (t *total) equal(u *total) bool {
	if t == nil || u == nil {
		return t == u
	}
	if t.units != u.units || t.recalled != u.recalled || len(t.amounts) != len(u.amounts) {
		return false
	}
	for p, amount := range t.amounts {
		if u.amounts[p] == nil || u.amounts[p].Cmp(amount) != 0 {
			return false
		}
	}
	return true
}

// sum adds up units by ClusterQueue, flavor and resource. A unit counts in a flavor of its host that the queue has,
// else in the first flavor of the queue with the resource.
func (d *decisions) sum(ctx context.Context, q *queues, held []client.Holding) (map[string]*total, error) {
	n, err := readNodes(ctx, d.cache)
	if err != nil {
		return nil, err
	}
	flavors, works, all := n.byFlavor(), map[string]*work{}, map[string]*total{}
	for i := range held {
		r := &held[i]
		w := works[r.Allocation]
		if w == nil {
			if w, err = d.work(ctx, q, r.Allocation); err != nil {
				return nil, err
			}
			works[r.Allocation] = w
		}
		queue, set := w.queue, w.sets[r.Sub]
		if queue == nil || set == nil {
			continue
		}
		t := all[queue.Name]
		if t == nil {
			t = &total{amounts: map[pair]*inf.Dec{}}
			all[queue.Name] = t
		}
		if r.Reclaim != 0 {
			t.recalled += r.Units
			continue
		}
		t.units += r.Units
		for _, by := range d.resources {
			if flavor := flavorFor(queue, by.resource, flavors[r.Host]); flavor != "" {
				t.add(pair{flavor: flavor, resource: by.resource}, set.share(by.resource, r.Units))
			}
		}
	}
	return all, nil
}

// work is a workload that holds units.
type work struct {
	queue *ClusterQueue // nil: the workload is gone, or its queue does not ask stint
	sets  map[string]*podSet
}

func (d *decisions) work(ctx context.Context, q *queues, allocation string) (*work, error) {
	var wl kueue.Workload
	err := d.cache.Get(ctx, workloadOf(allocation), &wl)
	if kubernetes.IgnoreNotFound(err) != nil {
		return nil, err
	}
	w := &work{queue: q.of(&wl), sets: map[string]*podSet{}}
	sets := podSets(&wl, false)
	for i := range sets {
		w.sets[sets[i].name] = &sets[i]
	}
	return w, nil
}

func (t *total) add(p pair, amount *inf.Dec) {
	if t.amounts[p] == nil {
		t.amounts[p] = new(inf.Dec)
	}
	t.amounts[p].Add(t.amounts[p], amount)
}

// flavorFor is the flavor in which a queue counts a resource of a host with flavors, "": it does not count it.
func flavorFor(
	queue *ClusterQueue, resource corev1.ResourceName, flavors []string,
) (first kueue.ResourceFlavorReference) {
	for i := range queue.Spec.ResourceGroups {
		for j := range queue.Spec.ResourceGroups[i].Flavors {
			f := &queue.Spec.ResourceGroups[i].Flavors[j]
			for k := range f.Resources {
				if f.Resources[k].Name != resource {
					continue
				}
				for _, name := range flavors {
					if string(f.Name) == name {
						return f.Name
					}
				}
				if first == "" {
					first = f.Name
				}
			}
		}
	}
	return first
}

// shortfalls reads which allocations wait, by name.
func (d *decisions) shortfalls(ctx context.Context) (map[string]string, error) {
	text, err := d.stint.Get(ctx, "/v1/cycles/latest/shortfalls", nil, "application/json")
	if client.Is(err, "no-cycle") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var table []struct {
		Consumer   string `json:"consumer"`
		Allocation string `json:"allocation"`
		Sub        string `json:"sub"`
		Units      int64  `json:"units_short"`
		Reason     string `json:"reason"`
		Dimension  string `json:"dimension"`
		Blocker    string `json:"blocker"`
	}
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, fmt.Errorf("/v1/cycles/latest/shortfalls: %w", err)
	}
	short := map[string]string{}
	for _, s := range table {
		short[s.Consumer+" "+s.Allocation] += fmt.Sprintf("%s %d %s %s %s\n", s.Sub, s.Units, s.Reason, s.Dimension,
			s.Blocker)
	}
	return short, nil
}

// why is what stint says of a workload that waits, and when to ask again. stint is asked when the shortfall of the
// workload changed, and at most once in a time.
func (d *decisions) why(
	ctx context.Context, wl *kueue.Workload, now time.Time, quiet time.Duration,
) (text string, again time.Duration) {
	q, err := readQueues(ctx, d.cache, d.controller)
	if err != nil {
		return "", quiet
	}
	queue := q.of(wl)
	if queue == nil {
		return "", 0
	}
	consumer, err := consumerOf(queue, q.cohort, wl)
	if err != nil {
		return err.Error() + ".", 0
	}
	name := kubernetes.ObjectKeyFromObject(wl)
	d.mu.Lock()
	short := d.short[consumer+" "+name.String()]
	known, asked := d.answers[name]
	down := !d.heard.IsZero() && now.Sub(d.heard) > d.look+unheardMax
	d.mu.Unlock()
	switch {
	case down:
		return "stint does not answer; it waits.", quiet
	case asked && (known.short == short && !known.failed || now.Sub(known.asked) < quiet):
		return known.text, quiet
	}
	text, err = d.explain(ctx, consumer, name.String())
	if err != nil {
		text = "Why is not known: " + err.Error()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.answers == nil || len(d.answers) > answersMax {
		d.answers = map[types.NamespacedName]answer{}
	}
	d.answers[name] = answer{short: short, text: text, failed: err != nil, asked: now}
	return text, quiet
}

// answersMax bounds the answers that are kept.
const answersMax = 10000

func (d *decisions) explain(ctx context.Context, consumer, allocation string) (string, error) {
	e, err := d.stint.Explain(ctx, consumer, allocation, 0)
	if err != nil {
		return "", err
	}
	var answers []string
	for _, p := range e.Plans {
		answers = append(answers, p.Answer)
	}
	return strings.Join(answers, " "), nil
}

// unheardMax is how long stint may not answer before the controller is not ready.
const unheardMax = time.Minute

// ready is an error when the controller acts and stint was not heard for a minute.
func (d *decisions) ready(now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.heard.IsZero() || now.Sub(d.heard) <= d.look+unheardMax {
		return nil
	}
	return errors.New("stint was not heard since " + clockTime(d.heard))
}
