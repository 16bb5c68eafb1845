package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
)

// shared is a service with tokens of two submitters, a reader and an administrator.
func shared(t testing.TB, l Limits) *service {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Limits = l
		for name, role := range map[string]string{"root": RoleAdmin, "greedy": RoleSubmitter, "other": RoleSubmitter,
			"ro": RoleReader} {
			o.Server.Tokens = append(o.Server.Tokens,
				Token{Name: name, SHA256: HashToken(name), Role: role, Groups: []string{"risk-users", "res"}})
		}
	})
	s.token = "root"
	s.must(200, "PUT", "/v1/plan", policyText)
	return s
}

// gauge is a figure of /metrics.
func (s *service) gauge(name string) int64 {
	s.t.Helper()
	_, rest, found := strings.Cut(s.must(200, "GET", "/metrics", "").body, "\n"+name+" ")
	line, _, _ := strings.Cut(rest, "\n")
	v, err := strconv.ParseFloat(line, 64)
	if !found || err != nil {
		s.t.Fatalf("%s is %q, %v", name, line, err)
	}
	return int64(v)
}

// eventually waits for something that comes soon.
func (s *service) eventually(what string, is func() bool) {
	s.t.Helper()
	for until := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatal("not after 20 s:", what)
		}
	}
}

// send begins a request of a token that is not read on.
func (s *service) send(token, head, body string) *raw {
	c := dial(s)
	c.say(head + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\n" + body)
	return c
}

const good = "consumer,allocation,units,ncpus\n/Risk/Day,a,1,1\n"

// TestStalledBodies has one token take all memory that it can with bodies that come so far and no further. Others push
// on, and what a reader may not do takes none.
func TestStalledBodies(t *testing.T) {
	s := shared(t, Limits{InflightBytesMax: 8 << 20, ChecksMemoryMax: 1 << 20})
	half := "Content-Length: 2000000\r\n\r\n" + strings.Repeat("x", 1<<20)
	for range 8 {
		s.send("greedy", "PUT /v1/demand/feed", half)
	}
	s.eventually("bodies take memory", func() bool { return s.gauge("stint_body_memory_bytes") > 1_900_000 })
	// a reader's, and more than it may check
	for _, call := range []string{"PUT /v1/demand/feed", "PUT /v1/hosts", "PUT /v1/plan"} {
		s.send("ro", call, half).expect(403, "forbidden")
	}
	for range 3 {
		s.send("ro", "POST /v1/plan/check", half)
	}
	before := s.gauge("stint_body_memory_bytes")
	for _, who := range []string{"other", "root"} {
		s.token = who
		rows := strings.Replace(good, ",a,", ","+who+",", 1)
		s.must(200, "PUT", "/v1/demand/of-"+who, rows)
		s.must(200, "PUT", "/v1/demand/of-"+who, strings.Replace(rows, ",1,1", ",2,1", 1)+strings.Repeat("\n", 1<<20))
	}
	s.token = "root"
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "POST", "/v1/plan/check", policyText)
	if now := s.gauge("stint_body_memory_bytes"); now > before || now > 4<<20 {
		t.Errorf("bodies take %d bytes, before the reader's came %d", now, before)
	}
	s.send("greedy", "PUT /v1/demand/feed", half).expect(429, "busy")
}

// TestStillBodyGivesWay has a body stand still, and its caller come with one that moves: it gives way.
func TestStillBodyGivesWay(t *testing.T) {
	s := shared(t, Limits{InflightBytesMax: 4 << 20})
	still := s.send("greedy", "PUT /v1/demand/feed", "Content-Length: 1300000\r\n\r\n"+strings.Repeat("x", 1<<20))
	s.eventually("the body takes memory", func() bool { return s.gauge("stint_body_memory_bytes") == 1_300_001 })
	time.Sleep(bodyStill + 100*time.Millisecond)
	s.token = "greedy"
	whole := good + strings.Repeat("\n", 1<<20)
	s.refused(429, "busy", "PUT", "/v1/demand/feed", whole)
	still.expect(408, "too-slow")
	s.must(200, "PUT", "/v1/demand/feed", whole)
}

// blank is a table of so many empty lines, packed.
func blank(t testing.TB, lines int) string {
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(z, good)
	for ; lines > 0; lines -= 1 << 20 {
		_, _ = z.Write(bytes.Repeat([]byte("\n"), 1<<20))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDecodeInTurn has one token bring many small bodies that take long to decode. A push of another waits for none of
// them.
func TestDecodeInTurn(t *testing.T) {
	s := shared(t, Limits{DecodesMax: 1, DecodesWaitMax: 8, DecodeTimeMax: 300 * time.Millisecond, MemoryMax: 1 << 40})
	bomb := blank(t, 1<<30)
	head := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(bomb))
	var conns []*raw
	for range 12 {
		conns = append(conns, s.send("greedy", "PUT /v1/demand/feed", head+bomb))
	}
	s.eventually("bodies wait", func() bool { return s.gauge("stint_queue_decodes") > 2 })
	begin := time.Now()
	s.token = "other"
	s.must(200, "PUT", "/v1/demand/other", good)
	if s.token = "root"; s.gauge("stint_queue_decodes") == 0 {
		t.Errorf("after %v nobody waits any more: this shows nothing", time.Since(begin))
	}
	var wg sync.WaitGroup
	statuses := make([]int, len(conns))
	for i, c := range conns {
		wg.Go(func() { statuses[i], _ = c.answer() })
	}
	wg.Wait()
	got := map[int]int{}
	for _, status := range statuses {
		got[status]++
	}
	if got[413] == 0 || got[429] == 0 || got[413]+got[429] != len(conns) {
		t.Error("bodies that take too long, and too many of them:", got)
	}
}

// TestDecodedMemory has a body be decoded that takes more memory than its caller may have, and one of another caller
// that does not.
func TestDecodedMemory(t *testing.T) {
	s := shared(t, Limits{DecodedMemoryMax: 1 << 20})
	s.token = "greedy"
	rows := "consumer,allocation,units,ncpus\n" + strings.Repeat("/Risk/Day,a,1,1\n", 50_000)
	if detail := s.refused(413, "too-large", "PUT", "/v1/demand/feed", rows); !strings.Contains(detail, "memory_max") {
		t.Error("what is to be done is not said:", detail)
	}
	s.token = "other"
	s.must(200, "PUT", "/v1/demand/feed", good)
	s.token = "root"
	if n := s.gauge("stint_decode_memory_bytes"); n != 0 {
		t.Error(n, "bytes are not given back")
	}
}

// grants has a service with so many rows of changes and of holdings.
func grants(t testing.TB, s *service, n int) {
	s.must(200, "PUT", "/v1/hosts", fmt.Sprintf("host,ncpus\nh1,%d\n", n), "Content-Type", "text/csv")
	var b strings.Builder
	b.WriteString("consumer,allocation,units,ncpus\n")
	for i := range n {
		fmt.Fprintf(&b, "/Risk/Day,an-allocation-of-some-length-%d,1,1\n", i)
	}
	s.must(200, "PUT", "/v1/demand/feed", b.String())
	s.cycle()
}

// TestAnswersInParts reads answers that are made in parts, in each format: they are whole.
func TestAnswersInParts(t *testing.T) {
	const n = 6_000
	s := shared(t, Limits{})
	grants(t, s, n)
	s.logged()
	s.cycle()
	for _, path := range []string{"/v1/changes?since=0", "/v1/changes?source=feed&since=0", "/v1/holdings?",
		"/v1/holdings?source=feed", "/v1/cycles/1/grants?", "/v1/cycles/1/grants?consumer=/Risk"} {
		for _, format := range []string{"json", "csv", "ndjson", "arrow", "parquet"} {
			body := s.must(200, "GET", path+"&format="+format, "").body
			rows := strings.Count(body, "\n")
			switch format {
			case "csv":
				rows--
			case "json":
				var list []map[string]any
				if err := json.Unmarshal([]byte(body), &list); err != nil {
					t.Error(path, err)
				}
				rows = len(list)
			case "arrow":
				rows = 0
				z, err := ipc.NewReader(strings.NewReader(body))
				if err != nil {
					t.Fatal(path, err)
				}
				for z.Next() {
					rows += int(z.RecordBatch().NumRows())
				}
				if z.Err() != nil {
					t.Error(path, z.Err())
				}
				z.Release()
			case "parquet":
				f, err := parquet.OpenFile(strings.NewReader(body), int64(len(body)))
				if err != nil {
					t.Fatal(path, err)
				}
				rows = int(f.NumRows())
			}
			if rows != n {
				t.Errorf("%s as %s: %d rows", path, format, rows)
			}
		}
	}
	if n := s.gauge("stint_answer_memory_bytes"); n != 0 {
		t.Error(n, "bytes are not given back")
	}
}

// TestUnreadAnswers has a reader ask for much and read nothing. What that takes is bounded, others are answered, and
// who does not read is cut off.
func TestUnreadAnswers(t *testing.T) {
	const n = 30_000
	for _, path := range []string{"/v1/changes?since=0", "/v1/changes?source=feed&since=0", "/v1/holdings",
		"/v1/holdings?source=feed", "/v1/cycles/latest/grants"} {
		s := shared(t, Limits{AnswersMemoryMax: 32 << 20, WriteTimeMax: 3 * time.Second})
		grants(t, s, n)
		var conns []*raw
		for range 40 {
			c := s.send("ro", "GET "+path, "\r\n")
			_ = c.Conn.(*net.TCPConn).SetReadBuffer(4096)
			conns = append(conns, c)
		}
		s.eventually("answers are under way", func() bool { return s.gauge("stint_answer_memory_bytes") > 8<<20 })
		if got := s.gauge("stint_answer_memory_bytes"); got > 16<<20 {
			t.Errorf("%s: answers of one caller take %d of %d bytes", path, got, 32<<20)
		}
		s.token = "other"
		if a := s.must(200, "GET", path, ""); strings.Count(a.body, "\n") != n {
			t.Errorf("%s: another caller gets %d rows", path, strings.Count(a.body, "\n"))
		}
		s.token = "root"
		s.eventually("who does not read is cut off", func() bool { return s.gauge("stint_answer_memory_bytes") == 0 })
		busy := 0
		for _, c := range conns {
			line, _ := c.r.ReadString('\n')
			if strings.Contains(line, "429") {
				busy++
			}
			_ = c.Close()
		}
		if busy == 0 || busy == len(conns) {
			t.Errorf("%s: %d of %d are told that the service is busy", path, busy, len(conns))
		}
	}
}

// TestLongPollsOfOthers has many wait for sources that a cycle has nothing for, and one for which it has.
func TestLongPollsOfOthers(t *testing.T) {
	s := shared(t, Limits{WaitersMax: 20})
	s.must(200, "PUT", "/v1/hosts", hostsText, "Content-Type", "text/csv")
	s.cycle()
	var none []*raw
	for i := range 10 {
		none = append(none, s.send("ro", fmt.Sprintf("GET /v1/changes?source=none%d&since=1&wait=60s", i), "\r\n"))
	}
	s.eventually("ten wait", func() bool { return s.gauge("stint_queue_waiters") == 10 })
	s.send("ro", "GET /v1/changes?source=more&since=1&wait=60s", "\r\n").expect(429, "busy")
	feed := s.send("other", "GET /v1/changes?source=feed&since=1&wait=60s", "\r\n")
	short := s.send("root", "GET /v1/changes?source=none&since=1&wait=1s", "\r\n")
	s.eventually("twelve wait", func() bool { return s.gauge("stint_queue_waiters") == 12 })
	s.must(200, "PUT", "/v1/demand/feed", good)
	s.cycle()
	if status, body := feed.answer(); status != 200 || !strings.Contains(body, `"allocation":"a"`) {
		t.Error(status, body)
	}
	if n := s.gauge("stint_queue_waiters"); n < 10 {
		t.Error("a cycle with nothing for them ends the waiting of", 10-n)
	}
	if status, body := short.answer(); status != 200 || body != "[]\n" {
		t.Error(status, body)
	}
	none = append(none, s.send("other", "GET /v1/events", "\r\n"))
	s.eventually("eleven wait", func() bool { return s.gauge("stint_queue_waiters") == 11 })
	for _, c := range none {
		_ = c.Close()
	}
	s.eventually("none waits", func() bool { return s.gauge("stint_queue_waiters") == 0 })
}
