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
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

const (
	bodyGrace      = 10 * time.Second // before BodyRateMin counts
	bodyFirstBytes = 64 << 10
	retryMoved     = 3 // times that an input is decoded while policies change
)

// readBody receives the body of a request whole, within the limits of size, memory, time and rate, and gives its SHA-256. The caller
// calls done when nothing of it is under way any more.
func (q *request) readBody() (body []byte, digest string, done func(), err error) {
	l := &q.s.o.Limits
	length := int64(q.Request.Header.ContentLength()) // -1: chunked
	if length > l.BodyBytesMax {
		return nil, "", nil, q.s.tooLarge()
	}
	var reserved int64
	release := func() { q.s.inflight.Add(-reserved) }
	grow := func(to int64) bool {
		if q.s.inflight.Add(to-reserved) > l.InflightBytesMax {
			q.s.inflight.Add(reserved - to)
			return false
		}
		reserved = to
		return true
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	stream, start := q.RequestBodyStream(), time.Now()
	if stream == nil {
		stream = bytes.NewReader(q.Request.Body())
	}
	hash, size := sha256.New(), int64(bodyFirstBytes)
	if length >= 0 {
		size = min(size, length+1)
	}
	if !grow(size) {
		return nil, "", nil, busyBodies()
	}
	body = make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			size = min(2*int64(cap(body)), l.BodyBytesMax+1)
			if length >= 0 {
				size = min(size, length+1)
			}
			if !grow(size) {
				return nil, "", nil, busyBodies()
			}
			body = append(make([]byte, 0, size), body...)
		}
		allowed := min(bodyGrace+time.Duration(q.read/l.BodyRateMin)*time.Second, l.BodyTimeMax)
		_ = q.Conn().SetReadDeadline(start.Add(allowed))
		n, err := stream.Read(body[len(body):cap(body)])
		hash.Write(body[len(body) : len(body)+n])
		body, q.read = body[:len(body)+n], q.read+int64(n)
		switch {
		case q.read > l.BodyBytesMax:
			return nil, "", nil, q.s.tooLarge()
		case err == io.EOF:
			if length >= 0 && q.read != length { // the stream does not tell
				return nil, "", nil, badRequest("the body ends before its Content-Length")
			}
			if c, ok := q.Conn().(*conn); ok && length < 0 && c.ended.Load() { // nor here
				return nil, "", nil, badRequest("the body ends before its last chunk")
			}
			q.ended = true
			q.s.o.Metrics.received(time.Since(start))
			return body, hex.EncodeToString(hash.Sum(nil)), release, nil
		case err != nil:
			return nil, "", nil, brokenBody(err)
		}
	}
}

func busyBodies() error {
	return problem{Type: "busy", Status: 429, Detail: "too many bodies are being received", RetryAfter: 1}
}

func brokenBody(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return problem{Type: "too-slow", Status: 408, Detail: "the body did not come in time"}
	}
	return badRequest("the body cannot be read: " + err.Error())
}

// formats are the media types of tables.
var formats = map[string]table.Format{
	"text/csv": table.CSV, "application/csv": table.CSV,
	"application/x-ndjson": table.NDJSON, "application/ndjson": table.NDJSON, "application/jsonl": table.NDJSON,
	"application/json":                    table.JSON,
	"application/vnd.apache.arrow.stream": table.Arrow, "application/vnd.apache.parquet": table.Parquet,
	// Of these, and without any, the content tells. The last is what curl says when it is not told otherwise.
	"": table.Auto, "application/octet-stream": table.Auto, "application/x-www-form-urlencoded": table.Auto,
}

// planTypes are the media types of policy files; the last three are those of clients that say nothing of it.
var planTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain", "application/json", "", "application/octet-stream", "application/x-www-form-urlencoded"}

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
		return f, c, unsupported("content type " + media + " is no table: CSV, NDJSON, JSON, Arrow streams and Parquet are")
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
	body, digest, done, err := q.readBody()
	if err != nil {
		return err
	}
	defer done()
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
		return engine.Receipt{}, problem{Type: "no-plan", Status: 409, Detail: "there is no policy yet: PUT /v1/plan comes first"}
	}
	var reuse *cluster.DemandTable
	if in.Kind == engine.InputDemand || in.Kind == engine.InputDemandChanges {
		if reuse, _ = s.tables.Get().(*cluster.DemandTable); reuse == nil {
			reuse = new(cluster.DemandTable)
		}
		defer s.tables.Put(reuse)
	}
	in.Policy = v.Policy
	if err := s.decode(in, v.Policy.Dimensions, reuse); err != nil {
		return engine.Receipt{}, err
	}
	return q.engine.Submit(in)
}

// decode decodes a body. Few are decoded at once: that keeps memory and processors for those who read.
func (s *Server) decode(in *engine.Input, dimensions []string, reuse *cluster.DemandTable) error {
	defer s.decoding.Add(-1)
	if s.decoding.Add(1) > int64(s.o.Limits.DecodesMax+s.o.Limits.DecodesWaitMax) {
		return problem{Type: "busy", Status: 429, Detail: "too many tables wait to be decoded", RetryAfter: 1}
	}
	s.decodes <- struct{}{}
	defer func() { <-s.decodes }()
	start := time.Now()
	err := decodeTable(in, dimensions, &s.o.Limits, reuse)
	s.o.Metrics.decoded(time.Since(start))
	switch {
	case errors.Is(err, table.ErrLimit):
		return problem{Type: "too-large", Status: 413, Detail: err.Error()}
	case err != nil:
		return badTable(err)
	}
	return nil
}

// decodeTable decodes the body of an input that is a table.
func decodeTable(in *engine.Input, dimensions []string, l *Limits, reuse *cluster.DemandTable) error {
	o := tableOptions(in, l)
	o.Dimensions = dimensions
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
	BodyBytesMax: table.DefaultLimits.BytesMax, DecodedBytesMax: table.DefaultLimits.DecodedBytesMax, RowsMax: table.DefaultLimits.RowsMax,
}

// Decode decodes an accepted input again, for the engine's recovery.
func Decode(in *engine.Input, dimensions []string) (err error) {
	if in.Kind == engine.InputPlan {
		in.Policy, err = plan.Parse(planName, in.Body)
		return err
	}
	return decodeTable(in, dimensions, decodeLimits, nil)
}
