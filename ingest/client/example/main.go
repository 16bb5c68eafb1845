// Command example is a client of a stint service in its smallest form: it pushes what it wants, starts what it is
// granted, stops what is reclaimed, and gives back what is done. Work is only pretended: it takes a second.
//
//	go run ./ingest/client/example -server http://127.0.0.1:7468 -consumer /Research -units 20
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/stintd/stint/ingest/client"
)

func main() {
	server := flag.String("server", "http://127.0.0.1:7468", "address of the service")
	source := flag.String("source", "example", "source of the demand")
	consumer := flag.String("consumer", "/Research", "consumer that wants it")
	units := flag.Int64("units", 20, "how many units, of one ncpus each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	w := &worker{c: &client.Client{Base: *server, Token: os.Getenv("STINT_TOKEN")}, source: *source, wanted: *units}
	if err := w.run(ctx, *consumer); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// worker runs units of one allocation.
type worker struct {
	c      *client.Client
	source string
	wanted int64
	done   int64
}

func (w *worker) run(ctx context.Context, consumer string) error {
	demand, err := json.Marshal([]map[string]any{{"consumer": consumer, "allocation": "work", "units": w.wanted,
		"ncpus": 1}})
	if err != nil {
		return err
	}
	// Where to begin to read is asked before the demand is given: nothing can happen to it earlier.
	_, since, err := w.c.Holdings(ctx, w.source)
	if client.Is(err, "no-cycle") {
		since, err = 0, nil
	}
	if err != nil {
		return err
	}
	if _, err := w.c.PutDemand(ctx, w.source, client.Bytes(demand, "application/json"), client.Options{}); err != nil {
		return err
	}
	for w.done < w.wanted {
		changes, next, err := w.c.Changes(ctx, w.source, since, 30*time.Second)
		if err != nil { // "compacted" would mean to start again from Holdings
			return err
		}
		since = next
		if err := w.follow(ctx, changes); err != nil {
			return err
		}
	}
	return nil
}

// follow does what the service says.
func (w *worker) follow(ctx context.Context, changes []client.Change) error {
	var over []client.Unit
	for _, c := range changes {
		fmt.Printf("cycle %d: %s of %d on %s\n", c.Cycle, c.Change, c.Units, c.Host)
		unit := client.Unit{Consumer: c.Consumer, Allocation: c.Allocation, Sub: c.Sub, Host: c.Host, Units: c.Units}
		switch c.Change {
		case "grant": // here the work would be started
			unit.Done = true
			over = append(over, unit)
			w.done += c.Units
		case "reclaim": // here it would be stopped, by c.Deadline at the latest
			over = append(over, unit)
		}
	}
	if len(over) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second):
	}
	r, err := w.c.ReleaseUnits(ctx, over)
	if err == nil {
		fmt.Printf("%d units given back, %d of %d done\n", r.Released, w.done, w.wanted)
	}
	return err
}
