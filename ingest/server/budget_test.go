package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// take takes so many in steps, as long as there are some, and gives how many it got.
func takeAll(b *budget, caller string, step int64) (got int64) {
	for b.take(caller, step) {
		got += step
	}
	return got
}

func TestBudget(t *testing.T) {
	b := newBudget(1000)
	var got []int64
	for _, caller := range []string{"a", "b", "c", "d"} { // each takes all that it can
		got = append(got, takeAll(b, caller, 1))
	}
	if want := []int64{500, 250, 125, 63}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !b.take("late", 30) || b.take("late", 1000) || b.take("late", 1<<62) {
		t.Error("one who comes late gets nothing, or too much")
	}
	if b.take("a", 1) {
		t.Error("the greedy one gets more")
	}
	b.give("a", 500)
	if n := takeAll(b, "b", 1); n == 0 {
		t.Error("what was given back is not to be had")
	}
	for caller, n := range map[string]int64{"b": b.of["b"], "c": 125, "d": 63, "late": 30} {
		b.give(caller, n)
	}
	if b.inUse() != 0 || len(b.of) != 0 {
		t.Error(b.inUse(), b.of)
	}
	for max, want := range map[int64]int64{1: 1, 2: 1, 3: 2, 1000: 500} {
		if got := takeAll(newBudget(max), "a", 1); got != want || newBudget(max).alone() != want {
			t.Errorf("of %d one gets %d, not %d", max, got, want)
		}
	}
}

func TestAccount(t *testing.T) {
	b := newBudget(1000)
	status := func(err error) int {
		var p problem
		if errors.As(err, &p) {
			return p.Status
		}
		return 0
	}
	one, two, other := b.account("a", "x"), b.account("a", "x"), b.account("b", "x")
	if err := one.take(501); status(err) != 413 {
		t.Error("more than a caller can ever have:", err)
	}
	if err := one.take(400); err != nil {
		t.Error(err)
	}
	if err := one.take(101); status(err) != 413 {
		t.Error("more than a caller can ever have, in two steps:", err)
	}
	if err := two.take(101); status(err) != 429 {
		t.Error("more than the caller has left:", err)
	}
	if err := other.take(300); err != nil {
		t.Error("another caller is refused:", err)
	}
	if err := one.take(-100); err != nil {
		t.Error(err)
	}
	if err := two.take(50); err != nil {
		t.Error(err)
	}
	for _, a := range []*account{one, two, other} {
		a.close()
		a.close()
	}
	if b.inUse() != 0 {
		t.Error(b.inUse())
	}
}

func TestPagesShared(t *testing.T) {
	b := newBudget(1000)
	p := pages{b: b, of: map[any]*page{}}
	pin := func(caller, key string, bytes int64) func() {
		unpin, err := p.pin(caller, key, bytes)
		if err != nil {
			t.Fatal(caller, key, err)
		}
		return unpin
	}
	a1, a2, b1 := pin("a", "t", 400), pin("a", "t", 400), pin("b", "t", 400)
	if b.inUse() != 400 || b.of["a"] != 400 {
		t.Error("a table counts more than once:", b.of)
	}
	if _, err := p.pin("a", "u", 400); err == nil {
		t.Error("a caller has more tables than its share")
	}
	a1()
	a1() // once more changes nothing
	if b.of["a"] != 400 {
		t.Error(b.of)
	}
	a2()
	if b.of["a"] != 0 || b.of["b"] != 400 {
		t.Error("it does not count for who still has it:", b.of)
	}
	b1()
	if b.inUse() != 0 || len(p.of) != 0 {
		t.Error(b.of, p.of)
	}
}

// TestPlacesInTurn has a caller that fills all places and the queue, and one that comes behind it.
func TestPlacesInTurn(t *testing.T) {
	end := make(chan struct{})
	p := newPlaces(2, 64, time.Minute)
	var mu sync.Mutex
	var order []string
	left := 0
	var wg sync.WaitGroup
	release := make(chan struct{})
	enter := func(caller string) {
		wg.Go(func() {
			leave, err := p.enter(caller, end)
			if err != nil {
				t.Error(caller, err)
				return
			}
			mu.Lock()
			order = append(order, caller)
			mu.Unlock()
			<-release
			leave()
			mu.Lock()
			left++
			mu.Unlock()
		})
	}
	waits := func(n int64) {
		t.Helper()
		for begin := time.Now(); p.waits() != n; time.Sleep(time.Millisecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatalf("%d wait, not %d", p.waits(), n)
			}
		}
	}
	for range 12 {
		enter("greedy")
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for begin := time.Now(); ; time.Sleep(100 * time.Microsecond) {
			mu.Lock()
			ok := is()
			mu.Unlock()
			if ok {
				return
			}
			if time.Since(begin) > 10*time.Second {
				t.Fatal(what, order)
			}
		}
	}
	entered := func(n int) {
		t.Helper()
		until("not all have entered who have a place", func() bool { return len(order) == n })
	}
	waits(10) // two have a place
	entered(2)
	enter("a") // the third place is for others
	entered(3)
	for _, caller := range []string{"a", "b", "a", "b"} {
		enter(caller)
	}
	waits(14)
	for n := range 17 { // one after the other, so that the order is that of the places
		release <- struct{}{}
		until("nobody leaves", func() bool { return left == n+1 })
		entered(17 - int(p.waits()))
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	// While others wait, the greedy one gets no more than every third place.
	last := slices.Index(order, "b")
	for i, caller := range order {
		if caller != "greedy" {
			last = max(last, i)
		}
	}
	if last > 11 || p.free != 3 || len(p.held)+len(p.waiting)+len(p.turn) != 0 {
		t.Errorf("order %v, left %d %v %v %v", order, p.free, p.held, p.waiting, p.turn)
	}
}

func TestPlacesEnd(t *testing.T) {
	end := make(chan struct{})
	p := newPlaces(1, 4, 20*time.Millisecond)
	leave, err := p.enter("a", end)
	if err != nil {
		t.Fatal(err)
	}
	var busy problem
	if _, err := p.enter("a", end); !errors.As(err, &busy) || busy.Status != 429 {
		t.Error("after the time is up:", err)
	}
	close(end)
	p.waitMax = time.Minute
	if _, err := p.enter("a", end); !errors.As(err, &busy) || busy.Status != 503 {
		t.Error("at the end:", err)
	}
	leave()
	if p.free != 2 || len(p.held)+len(p.waiting)+len(p.turn) != 0 || p.waits() != 0 {
		t.Error(p.free, p.held, p.waiting, p.turn, p.waits())
	}
}

// TestPace has a fast transfer stand still: it ends a grace later, whatever came before.
func TestPace(t *testing.T) {
	p := newPace(1000, time.Second, time.Minute)
	until := func(at time.Time) time.Duration { return time.Until(at).Round(100 * time.Millisecond) }
	if got := until(p.moved(0)); got != time.Second {
		t.Error(got)
	}
	if got := until(p.moved(1 << 30)); got != time.Second {
		t.Error("credit beyond the grace:", got)
	}
	p.due = p.due.Add(-600 * time.Millisecond)
	if got := until(p.moved(200)); got != 600*time.Millisecond {
		t.Error("200 bytes at 1,000 a second:", fmt.Sprint(got))
	}
	p = newPace(1000, time.Second, 300*time.Millisecond)
	if got := until(p.moved(1 << 30)); got != 300*time.Millisecond {
		t.Error("beyond the end of all:", got)
	}
}

// TestWriteDeadlines has a client take nothing, and one ask again long after it took its last answer.
func TestWriteDeadlines(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	limits := Limits{BodyRateMin: 1 << 20}
	c := &conn{Conn: ours, l: &listener{s: &Server{o: Options{Limits: limits}}}}
	_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("nobody takes what is written:", n, err)
	}
	go func() { _, _ = theirs.Write([]byte("GET")) }()
	if n, err := c.Read(make([]byte, 8)); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	if n, err := c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil { // what fasthttp sets no deadline for
		t.Error("the deadline of the answer before holds for the next request:", n, err)
	}
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	c.wrote = c.wrote.Add(-30 * time.Second) // an answer whose next part took long to make
	c.taken.due = c.taken.due.Add(-30 * time.Second)
	if n, err := c.Write(make([]byte, 1<<20)); err != nil {
		t.Error("time that is not the client's counts:", n, err)
	}
}
