package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

const (
	bodyGrace      = 10 * time.Second // that a body may be behind the least rate
	bodyFirstBytes = 64 << 10
	bodyStill      = 2 * time.Second // without a byte, after which a body gives way where memory is short
	retryMoved     = 3               // times that an input is decoded while policies change
)

// incoming is a body that is being received.
type incoming struct {
	conn net.Conn
	got  atomic.Int64 // when something came last, by the clock of nanoseconds
	cut  atomic.Bool
}

// intake is all bodies that are being received.
type intake struct {
	mu sync.Mutex
	of map[*incoming]struct{}
}

func (t *intake) begin(c net.Conn) (in *incoming, end func()) {
	in = &incoming{conn: c}
	in.got.Store(time.Now().UnixNano())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[*incoming]struct{}{}
	}
	t.of[in] = struct{}{}
	return in, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.of, in)
	}
}

// giveWay ends the bodies that stand still: there is no memory for one that moves.
func (t *intake) giveWay() {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for in := range t.of {
		if now.UnixNano()-in.got.Load() > bodyStill.Nanoseconds() {
			in.cut.Store(true)
			_ = in.conn.SetReadDeadline(now)
		}
	}
}

// readBody receives the body of a request whole, within the limits of size, memory, time and rate, and gives its
// SHA-256. Memory is taken as the body arrives.
func (q *request) readBody(memory *account, most int64) (body []byte, digest string, err error) {
	l := &q.s.o.Limits
	length := int64(q.Request.Header.ContentLength()) // -1: chunked
	if length > most {
		return nil, "", tooLarge(most)
	}
	stream, start := q.RequestBodyStream(), time.Now()
	if stream == nil {
		stream = bytes.NewReader(q.Request.Body())
	}
	in, end := q.s.intake.begin(q.Conn())
	defer end()
	hash, rate := sha256.New(), newPace(l.BodyRateMin, bodyGrace, l.BodyTimeMax)
	for n := 0; ; {
		if len(body) == cap(body) {
			if body, err = grown(body, length, most, memory); err != nil {
				q.s.intake.giveWay()
				return nil, "", err
			}
		}
		_ = q.Conn().SetReadDeadline(rate.moved(int64(n)))
		if in.cut.Load() {
			return nil, "", tooSlow("the body stands still, and its memory is needed")
		}
		n, err = stream.Read(body[len(body):cap(body)])
		hash.Write(body[len(body) : len(body)+n])
		body, q.read = body[:len(body)+n], q.read+int64(n)
		if n > 0 {
			in.got.Store(time.Now().UnixNano())
		}
		switch {
		case q.read > most:
			return nil, "", tooLarge(most)
		case err == io.EOF:
			if length >= 0 && q.read != length { // the stream does not tell
				return nil, "", badRequest("the body ends before its Content-Length")
			}
			if c, ok := q.Conn().(*conn); ok && length < 0 && c.ended.Load() { // nor here
				return nil, "", badRequest("the body ends before its last chunk")
			}
			q.ended = true
			q.s.o.Metrics.received(time.Since(start))
			return body, hex.EncodeToString(hash.Sum(nil)), nil
		case err != nil:
			return nil, "", brokenBody(err)
		}
	}
}

// grown gives a body more room: twice as much, or all that its length (-1: not known) tells once an eighth of that is
// there.
func grown(body []byte, length, most int64, memory *account) ([]byte, error) {
	had := int64(cap(body))
	size := min(max(2*had, bodyFirstBytes), most+1)
	if length >= 0 && (had >= length/8 || size > length) {
		size = length + 1
	}
	if err := memory.take(size); err != nil {
		return nil, err
	}
	body = append(make([]byte, 0, size), body...)
	return body, memory.take(-had)
}

func brokenBody(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return tooSlow("the body did not come in time")
	}
	return badRequest("the body cannot be read: " + err.Error())
}

func tooSlow(detail string) error { return problem{Type: "too-slow", Status: 408, Detail: detail} }

// formats are the media types of tables.
var formats = map[string]table.Format{
	"text/csv": table.CSV, "application/csv": table.CSV,
	"application/x-ndjson": table.NDJSON, "application/ndjson": table.NDJSON, "application/jsonl": table.NDJSON,
	"application/json":                    table.JSON,
	"application/vnd.apache.arrow.stream": table.Arrow, "application/vnd.apache.parquet": table.Parquet,
	// Of these the content tells. What a form of a web page can send is not among them (docs/decisions.md, D-48).
	"": table.Auto, "application/octet-stream": table.Auto,
}

// planTypes are the media types of policy files; the last three are those of clients that say nothing of it.
var planTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain",
	"application/json", "", "application/octet-stream", "application/x-www-form-urlencoded"}

func unsupported(detail string) error {
	return problem{Type: "wrong-type", Status: 415, Detail: detail}
}

// packing finds out how the body is packed: the content encoding, else the content tells.
func (q *request) packing() (table.Compression, error) {
	switch v := strings.ToLower(string(q.Request.Header.ContentEncoding())); v {
	case "":
		return table.AutoCompression, nil
	case "identity":
		return table.Plain, nil
	case "gzip", "x-gzip":
		return table.Gzip, nil
	case "zstd":
		return table.Zstd, nil
	default:
		return 0, unsupported("content encoding " + v + ": gzip and zstd are taken")
	}
}

// media is the content type without its parameters, "" where there is none.
func (q *request) media() (string, error) {
	text := string(q.Request.Header.ContentType())
	media, _, err := mime.ParseMediaType(text)
	if err != nil && text != "" {
		return "", unsupported("content type " + text + ": " + err.Error())
	}
	return media, nil
}

// format finds out how a table is written down: the parameter `format`, else the content type.
func (q *request) format() (f table.Format, c table.Compression, err error) {
	if c, err = q.packing(); err != nil {
		return f, c, err
	}
	if v := q.query("format"); v != "" {
		if f, err = table.ParseFormat(v); err != nil {
			err = unsupported("parameter format: " + err.Error())
		}
		return f, c, err
	}
	media, err := q.media()
	if err != nil {
		return f, c, err
	}
	f, ok := formats[media]
	if !ok {
		return f, c, unsupported("content type " + media + " is no table: " +
			"CSV, NDJSON, JSON, Arrow streams and Parquet are (with curl: -H 'Content-Type:', and the content tells)")
	}
	return f, c, nil
}

// key is the idempotency key, "" where there is none.
func (q *request) key() (string, error) {
	key := string(q.Request.Header.Peek("Idempotency-Key"))
	if len(key) > cluster.NameBytesMax {
		return "", badRequest("the Idempotency-Key has more than 256 bytes")
	}
	return key, nil
}

// submit receives the body of a request as an input of a kind, decodes it and gives it to the engine.
func (q *request) submit(in *engine.Input) error {
	format, packing, err := q.format()
	if err != nil {
		return err
	}
	if in.Key, err = q.key(); err != nil {
		return err
	}
	memory := q.s.bodies.account(q.caller, "bodies")
	defer memory.close()
	body, digest, err := q.readBody(memory, q.s.o.Limits.BodyBytesMax)
	if err != nil {
		return err
	}
	in.Body, in.Digest, in.Author = body, digest, q.who.Name
	in.Format, in.Packing, in.ReportUnknown = format.String(), packing.String(), q.s.o.ReportUnknown
	if q.who.Role != RoleAdmin {
		in.Principal = principal{q.who}
	}
	for try := 1; ; try++ {
		receipt, err := q.decodeAndSubmit(in)
		var e *engine.Error
		if errors.As(err, &e) && e.Kind == engine.Moved && try < retryMoved {
			continue
		}
		if err != nil {
			return err
		}
		return q.acknowledge(in, receipt)
	}
}

// decodeAndSubmit decodes a body for the newest policy.
func (q *request) decodeAndSubmit(in *engine.Input) (engine.Receipt, error) {
	s := q.s
	v := q.engine.View().Policy
	if v == nil {
		return engine.Receipt{}, problem{Type: "no-plan", Status: 409,
			Detail: "there is no policy yet: PUT /v1/plan comes first"}
	}
	var reuse *cluster.DemandTable
	if in.Kind == engine.InputDemand || in.Kind == engine.InputDemandChanges {
		if reuse, _ = s.tables.Get().(*cluster.DemandTable); reuse == nil {
			reuse = new(cluster.DemandTable)
		}
		defer s.tables.Put(reuse)
	}
	in.Policy = v.Policy
	memory := s.decoded.account(q.caller, "decoded tables")
	defer memory.close()
	if err := s.decode(q, in, v.Policy.Dimensions, reuse, memory); err != nil {
		return engine.Receipt{}, err
	}
	if q.checks() {
		return engine.Receipt{}, q.engine.Check(in)
	}
	return q.engine.Submit(in)
}

// decode decodes a body, when it is the caller's turn. Few are decoded at once: that keeps memory and processors for
// those who read.
func (s *Server) decode(
	q *request, in *engine.Input, dimensions []string, reuse *cluster.DemandTable, memory *account,
) error {
	leave, err := s.decodes.enter(q.caller, s.closing)
	if err != nil {
		return err
	}
	defer leave()
	start := time.Now()
	err = decodeTable(in, dimensions, &s.o.Limits, reuse, s.spender(memory))
	in.Decoding = time.Since(start)
	s.o.Metrics.decoded(in.Decoding)
	var p problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, table.ErrLimit):
		return overLimit(err.Error())
	case err != nil:
		return badTable(err)
	}
	return nil
}

// spender has a table be decoded within an account of memory, and for so long at most.
func (s *Server) spender(memory *account) func(bytes int64) error {
	until := time.Now().Add(s.o.Limits.DecodeTimeMax)
	return func(bytes int64) error {
		select {
		case <-s.closing:
			return stopping()
		default:
		}
		if time.Now().After(until) {
			return overLimit("the body takes longer than " + s.o.Limits.DecodeTimeMax.String() +
				" to decode: send it in smaller pieces")
		}
		if bytes == 0 {
			return nil
		}
		return memory.take(bytes)
	}
}

// decodeTable decodes the body of an input that is a table.
func decodeTable(
	in *engine.Input, dimensions []string, l *Limits, reuse *cluster.DemandTable, spend func(int64) error,
) error {
	o := tableOptions(in, l)
	o.Dimensions, o.Spend = dimensions, spend
	switch r := bytes.NewReader(in.Body); in.Kind {
	case engine.InputHosts, engine.InputHostChanges:
		t, err := table.ReadHosts(r, o)
		if err != nil {
			return err
		}
		in.Table, in.Rows = t, int64(t.Rows)
	case engine.InputDemand, engine.InputDemandChanges:
		if reuse == nil {
			reuse = new(cluster.DemandTable)
		}
		if err := table.ReadDemandInto(reuse, r, o); err != nil {
			return err
		}
		in.Table, in.Rows = reuse, int64(reuse.Rows)
	case engine.InputRunning, engine.InputReleases:
		t, err := table.ReadHoldings(r, o, in.Kind == engine.InputReleases)
		if err != nil {
			return err
		}
		in.Table, in.Rows = t, int64(t.Rows)
	default:
		panic("BUG: an input of kind " + in.Kind + " is no table")
	}
	return nil
}

// tableOptions say how the body of an input is to be read.
func tableOptions(in *engine.Input, l *Limits) table.Options {
	format, err := table.ParseFormat(in.Format)
	if err != nil {
		format = table.Auto // the content tells
	}
	packing := table.AutoCompression
	for _, c := range []table.Compression{table.Plain, table.Gzip, table.Zstd} {
		if c.String() == in.Packing {
			packing = c
		}
	}
	return table.Options{
		Name: in.Kind, Format: format, Compression: packing,
		Limits: table.Limits{BytesMax: l.BodyBytesMax, DecodedBytesMax: l.DecodedBytesMax, RowsMax: l.RowsMax},
	}
}

// decodeLimits are those of an input that was accepted once: not the service's, which may be others now.
var decodeLimits = &Limits{
	BodyBytesMax: table.DefaultLimits.BytesMax, DecodedBytesMax: table.DefaultLimits.DecodedBytesMax,
	RowsMax: table.DefaultLimits.RowsMax,
}

// Decode decodes an accepted input again, for the engine's recovery.
func Decode(in *engine.Input, dimensions []string) (err error) {
	if in.Kind == engine.InputPlan {
		in.Policy, err = plan.ParseAccepted(planName, in.Body)
		return err
	}
	return decodeTable(in, dimensions, decodeLimits, nil, nil)
}
