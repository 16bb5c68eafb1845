package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// slow is a service with a slot plan whose next cycle takes seconds where much is asked for: the body of a simulation.
func slow(t *testing.T) (s *service, body string) {
	t.Helper()
	s = start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{{Name: "ops", Role: RoleAdmin, SHA256: HashToken("ops")},
			{Name: "one", Role: RoleReader, SHA256: HashToken("one")},
			{Name: "two", Role: RoleReader, SHA256: HashToken("two")}}
	})
	s.token = "ops"
	const n = 4000
	var hosts, rows strings.Builder
	hosts.WriteString("host,slots\n")
	for i := range n {
		fmt.Fprintf(&hosts, "h%d,10\n", i)
	}
	for i := range 5000 {
		fmt.Fprintf(&rows, `,{"consumer":"/B","allocation":"b%d","units":3,"slots":%d}`, i, 1+i%9)
	}
	s.must(200, "PUT", "/v1/plan", "stint: 1\ndimensions: [slots]\nresource_groups:\n  - {name: All, select: "+
		"\"select(slots > 0)\"}\nconsumers: [{path: /A}, {path: /B}]\nslot_plans:\n  - resource_group: All\n    "+
		"placement: exclusive\n    consumers:\n      - {path: /A, policy: share_ratio}\n      "+
		"- {path: /B, policy: share_ratio}\n")
	s.must(200, "PUT", "/v1/hosts", hosts.String(), "Content-Type", "text/csv")
	s.must(200, "PUT", "/v1/demand/a", fmt.Sprintf("consumer,allocation,units\n/A,a,%d\n", n*10-1000))
	s.cycle()
	return s, `{"demand":[` + rows.String()[1:] + `]}`
}

// TestSimulateWithin has a simulation whose one cycle takes longer than it may: it is given up, also where the service
// ends.
func TestSimulateWithin(t *testing.T) {
	s, body := slow(t)
	s.token = "one"
	began := time.Now()
	a := s.do("POST", "/v1/simulate?within=300ms&plays=1", body, "Content-Type", "application/json")
	if a.status != 413 || !strings.Contains(a.body, "longer than 300ms") {
		t.Error(a)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("within=300ms took %v", took)
	}
	asked := make(chan answer, 1)
	go func() {
		asked <- s.do("POST", "/v1/simulate?within=20s&plays=1", body, "Content-Type", "application/json")
	}()
	time.Sleep(300 * time.Millisecond) // it is under way by then, or is refused
	began = time.Now()
	s.stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the service took %v to end", took)
	}
	if a := <-asked; a.status != 503 || !strings.Contains(a.body, ":stopping") {
		t.Error(a)
	}
}

// TestWhatifTurns has two callers ask, one of them much: each gets its turn.
func TestWhatifTurns(t *testing.T) {
	p := newPlace(8, time.Minute)
	leave, err := p.enter("greedy", nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	ask := func(caller string) {
		waits := p.waits()
		all.Go(func() {
			leave, err := p.enter(caller, nil)
			if err != nil {
				t.Error(caller, err)
				return
			}
			mu.Lock()
			order = append(order, caller)
			mu.Unlock()
			leave()
		})
		for p.waits() == waits {
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		ask("greedy")
	}
	ask("other")
	leave()
	all.Wait()
	if got := strings.Join(order, " "); got != "greedy other greedy greedy" && got != "other greedy greedy greedy" {
		t.Error(got)
	}
	full := newPlace(1, time.Millisecond)
	if _, err := full.enter("a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := full.enter("b", nil); err == nil || asProblem(err).Status != 429 ||
		!strings.Contains(err.Error(), "what-ifs and simulations") {
		t.Error(err)
	}
}

// TestAnswerWindow pages the rows of a simulation and of a what-if.
func TestAnswerWindow(t *testing.T) {
	s := start(t, nil)
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText, "Content-Type", "text/csv")
	var rows strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&rows, `,{"consumer":"/Risk/Day","allocation":"a%04d","units":1,"ncpus":1}`, i)
	}
	body := `{"demand":[` + rows.String()[1:] + `]}`
	for query, want := range map[string][3]any{
		"": {"a0000", 1000, 500}, "&limit=2": {"a0000", 2, 1498}, "&after=1000": {"a1000", 500, 0},
		"&limit=10&after=1499": {"a1499", 1, 0}, "&after=9999": {"", 0, 0},
	} {
		var a struct {
			Rows     []struct{ Allocation string }
			RowsMore int `json:"rows_more"`
		}
		text := s.must(200, "POST", "/v1/simulate?horizon=0s"+query, body, "Content-Type", "application/json").body
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			t.Fatal(err)
		}
		first := ""
		if len(a.Rows) > 0 {
			first = a.Rows[0].Allocation
		}
		if got := [3]any{first, len(a.Rows), a.RowsMore}; got != want {
			t.Errorf("%q: %v, expected %v", query, got, want)
		}
	}
	s.refused(400, "bad-request", "POST", "/v1/simulate?limit=10001", body, "Content-Type", "application/json")
	s.refused(400, "bad-request", "POST", "/v1/whatif?limit=0", policyText)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,20,1\n/Research,b,20,1\n")
	s.cycle()
	other := strings.Replace(policyText, "{path: /Research}]", "{path: /Research, share: {ratio: 3}}]", 1)
	if a := s.must(200, "POST", "/v1/whatif?limit=1", other); !strings.Contains(a.body, `"changes_more":`) {
		t.Error(a.body)
	}
}
