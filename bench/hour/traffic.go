package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// A cluster that a third more is asked of than it has, with owners that are quiet by turns, so that units are lent,
// recalled and shared out anew all the time.
const (
	hostsCount = 200
	hostNCPUs  = 32
	feedsCount = 3
	feedRows   = 2000
	quietTicks = 20 // of a feed, of four times as many
)

// leaves are the consumers, one for each feed, then those of the source that sends changes and of the worker.
var leaves = []string{"/Markets/Rates", "/Markets/FX", "/Risk", "/Research/Ad hoc", "/Research/Batch"}

const (
	leafChanges = 3
	leafWorker  = 4
)

// policy is put every minute, with another ratio.
func policy(nth int) string {
	return fmt.Sprintf(`stint: 1
cluster: hour
dimensions: [ncpus, maxmem]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers:
  - {path: /Markets}
  - {path: /Markets/Rates}
  - {path: /Markets/FX, rank: 1}
  - {path: /Risk, rank: 1, reclaim_grace: 5s}
  - {path: /Research, rank: 2, reclaim_grace: 10s}
  - {path: /Research/Ad hoc}
  - {path: /Research/Batch, rank: 1}
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers:
      - {path: /Markets, own: [{group: All, hosts: 60}], share: {ratio: %d}}
      - {path: /Markets/Rates, own: [{group: All, hosts: 20}]}
      - {path: /Markets/FX}
      - {path: /Risk, own: [{group: All, hosts: 40}]}
      - {path: /Research}
      - {path: /Research/Ad hoc}
      - {path: /Research/Batch}
`, 2+nth%2)
}

func hosts() []byte {
	var b bytes.Buffer
	b.WriteString("host,ncpus,maxmem\n")
	for i := range hostsCount {
		fmt.Fprintf(&b, "h%03d,%d,%d\n", i, hostNCPUs, 4*hostNCPUs)
	}
	return b.Bytes()
}

// snapshot is all that a feed wants. A twentieth of its jobs are others than a second ago; a quiet feed keeps a
// quarter.
func snapshot(feed, nth int, quiet bool, random *rand.Rand) []byte {
	var b bytes.Buffer
	b.WriteString("consumer,allocation,units,ncpus,maxmem\n")
	for i := range feedRows {
		age := (nth + i) / 20 // another job in every twentieth snapshot
		units := 1 + random.IntN(2)*(i%2)
		if quiet && i%4 != 0 {
			units = 0
		}
		fmt.Fprintf(&b, "%s,job-%d-%d,%d,%d,%d\n", leaves[feed], i, age, units, 1+i%3, 1+i%8)
	}
	return b.Bytes()
}

// each calls f once a period until the context ends; a call that takes longer than that is followed by the next at
// once.
func (h *hour) each(ctx context.Context, period time.Duration, f func(nth int) error) {
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for nth := 0; ; nth++ {
		err := f(nth)
		if ctx.Err() != nil {
			return
		}
		h.count(err)
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

func csv(b []byte) client.Body { return client.Bytes(b, "text/csv") }

// prepare puts policy and hosts.
func (h *hour) prepare(ctx context.Context) error {
	if _, err := h.c.PutPlan(ctx, client.Bytes([]byte(policy(0)), "application/yaml"), client.Options{}); err != nil {
		return err
	}
	_, err := h.c.PutHosts(ctx, csv(hosts()), client.Options{})
	return err
}

// feed pushes snapshots, one a second.
func (h *hour) feed(ctx context.Context, feed int) {
	random := rand.New(rand.NewPCG(1, uint64(feed)))
	h.each(ctx, time.Second, func(nth int) error {
		quiet := (nth/quietTicks+feed)%4 == 0
		begin := time.Now()
		_, err := h.c.PutDemand(ctx, fmt.Sprintf("feed-%d", feed), csv(snapshot(feed, nth, quiet, random)),
			client.Options{AllowShrink: true})
		h.took(&h.now.push, begin, err)
		return err
	})
}

// changes adds jobs of a source and takes those of a minute ago away.
func (h *hour) changes(ctx context.Context) {
	h.each(ctx, time.Second, func(nth int) error {
		var b bytes.Buffer
		b.WriteString("consumer,allocation,units,ncpus,maxmem\n")
		for i := range 20 {
			fmt.Fprintf(&b, "%s,query-%d-%d,2,1,2\n", leaves[leafChanges], nth, i)
			if nth >= 60 {
				fmt.Fprintf(&b, "%s,query-%d-%d,0,1,2\n", leaves[leafChanges], nth-60, i)
			}
		}
		_, err := h.c.ChangeDemand(ctx, "changes", csv(b.Bytes()), client.Options{AllowShrink: true})
		return err
	})
}

// work is a client's loop: it wants, is granted, and gives back what is done.
func (h *hour) work(ctx context.Context) {
	since := int64(0)
	h.each(ctx, time.Second, func(nth int) error {
		rows := []client.Demand{{Consumer: leaves[leafWorker], Allocation: fmt.Sprintf("batch-%d", nth), Units: 50,
			Size: map[string]int64{"ncpus": 1, "maxmem": 1}}}
		if _, err := h.c.ChangeDemandRows(ctx, "worker", rows, client.Options{AllowShrink: true}); err != nil {
			return err
		}
		changes, next, err := h.c.Changes(ctx, "worker", since, 2*time.Second)
		if client.Is(err, "no-cycle") {
			return nil
		}
		if err != nil {
			return err
		}
		since = next
		var done []client.Unit
		for _, c := range changes {
			if c.Change == "grant" {
				done = append(done, client.Unit{Consumer: c.Consumer, Allocation: c.Allocation, Sub: c.Sub,
					Host:  c.Host,
					Units: c.Units, Done: true})
			}
		}
		if len(done) > 0 {
			if _, err = h.c.ReleaseUnits(ctx, done); err != nil {
				return err
			}
		}
		if nth < 60 {
			return nil
		}
		rows[0].Allocation, rows[0].Units = fmt.Sprintf("batch-%d", nth-60), 0
		_, err = h.c.ChangeDemandRows(ctx, "worker", rows, client.Options{AllowShrink: true})
		return err
	})
}

// operate closes a host and opens the one before, and puts a policy every minute.
func (h *hour) operate(ctx context.Context) {
	h.each(ctx, 5*time.Second, func(nth int) error {
		change := fmt.Sprintf("host,state\nh%03d,closed\nh%03d,ok\n", (nth+1)%hostsCount, nth%hostsCount)
		if _, err := h.c.ChangeHosts(ctx, csv([]byte(change)), client.Options{}); err != nil || nth%12 != 0 {
			return err
		}
		_, err := h.c.PutPlan(ctx, client.Bytes([]byte(policy(nth/12)), "application/yaml"), client.Options{})
		return err
	})
}

// whatif asks what another policy would do, every two minutes.
func (h *hour) whatif(ctx context.Context) {
	h.each(ctx, 2*time.Minute, func(nth int) error {
		if nth == 0 {
			return nil
		}
		_, err := h.c.Whatif(ctx, client.Bytes([]byte(policy(nth+1)), "application/yaml"), 5, client.Options{})
		return err
	})
}

// listen reads events, each stream until the service ends it.
func (h *hour) listen(ctx context.Context) {
	err := h.c.Events(ctx, 0, func(client.Event) error { return nil })
	if ctx.Err() == nil {
		h.count(err)
	}
}

// reads are asked ten times a second each; %d is the cycle before the last.
var reads = []string{
	"/v1/changes?source=feed-1&since=%d",
	"/v1/holdings?source=feed-0&format=csv",
	"/v1/consumers/Markets",
	"/v1/cycles/latest/shortfalls?format=csv",
	"/v1/hosts?by=group",
	"/v1/loans",
	"/v1/explain/Risk",
}

// read asks for one of reads.
func (h *hour) read(ctx context.Context, path string) {
	h.each(ctx, 100*time.Millisecond, func(nth int) error {
		ask := path
		if strings.Contains(path, "%") {
			ask = fmt.Sprintf(path, max(0, h.cycle.Load()-1))
		}
		begin := time.Now()
		err := h.get(ctx, ask, nth%10 == 0)
		h.took(&h.now.read, begin, err)
		return err
	})
}

// readBack reads the decision log once a second: by turns what was held after some cycle between the first and the
// last, and a consumer's figures of the last hundred.
func (h *hour) readBack(ctx context.Context) {
	random := rand.New(rand.NewPCG(2, 2))
	h.each(ctx, time.Second, func(nth int) error {
		last := h.cycle.Load()
		if last < 60 {
			return nil
		}
		ask := "/v1/consumers/Markets/Rates?last=100"
		if nth%2 == 0 {
			ask = fmt.Sprintf("/v1/holdings?source=worker&cycle=%d", 1+random.Int64N(last-30))
		}
		begin := time.Now()
		err := h.get(ctx, ask, false)
		h.took(&h.now.back, begin, err)
		return err
	})
}

// get reads an answer to its end; alone does so over a connection of its own.
func (h *hour) get(ctx context.Context, path string, alone bool) error {
	u, err := url.Parse(h.s.base + path)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, "GET", u.String(), nil)
	if err != nil {
		return err
	}
	r.Close = alone
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err = io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	return nil
}
