// Package client speaks to a stint service: it pushes tables, reads changes, gives units back and asks why. Calls that
// the service is too busy for are made again after the time it asks for; input carries an idempotency key, so
// that a call that was made twice counts once.
package client

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client is a service and who speaks to it. Its fields must not change once it is used; it may be used by many
// goroutines.
type Client struct {
	Base  string       // such as http://127.0.0.1:7468
	Token string       // bearer token; "": none
	HTTP  *http.Client // nil: http.DefaultClient; TLS makes one that has certificates

	TriesMax int           // of one call (10)
	WaitMax  time.Duration // between two of them (30 s)

	// Clock, when set, is called with the service's time of each table that is read, before its rows are. Deadlines are
	// compared with that time, since the clock of this machine may differ.
	Clock func(now time.Time)
}

// Body is the content of a call, opened anew for each try.
type Body struct {
	Open            func() (io.ReadCloser, error)
	Bytes           int64  // -1: not known
	ContentType     string // "": the service tells by the content
	ContentEncoding string // gzip, zstd or ""
}

// Bytes is content in memory.
func Bytes(b []byte, contentType string) Body {
	return Body{Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil },
		Bytes: int64(len(b)), ContentType: contentType}
}

// Receipt is the service's word that an input is durable.
type Receipt struct {
	Snapshot string `json:"snapshot"`
	Rows     int64  `json:"rows"`
	Cycle    int64  `json:"cycle"` // the first that goes by it
	Revision int64  `json:"revision"`
	Released int64  `json:"released"`
	Added    int64  `json:"added"`
	Beyond   int64  `json:"beyond"`
	Repeated bool   `json:"repeated"`
}

// Problem is a refusal by the service.
type Problem struct {
	Type   string `json:"type"` // stable, urn:stint:error:…
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Count  int    `json:"count"` // of bad rows or faults
	Rows   []Bad  `json:"rows"`  // the first bad rows of a table
}

// Bad is a value in a row of a table that the service refuses.
type Bad struct {
	Row    int    `json:"row"` // from 1
	Column string `json:"column"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
}

// Error is what the service says.
func (p *Problem) Error() string {
	if p.Type == "" { // as of who is asked in another protocol, or of what is no stint
		return fmt.Sprintf("%s (%d)", p.Detail, p.Status)
	}
	return fmt.Sprintf("%s (%d %s)", p.Detail, p.Status, strings.TrimPrefix(p.Type, "urn:stint:error:"))
}

// Is tells whether an error is a problem of a kind, such as `compacted`.
func Is(err error, kind string) bool {
	var p *Problem
	return errors.As(err, &p) && p.Type == "urn:stint:error:"+kind
}

// Options are conditions of an input.
type Options struct {
	AllowShrink bool
	Force       bool   // of a plan
	IfRevision  int64  // of a plan; 0: any
	Message     string // of a plan
}

// PutPlan puts a policy file in force.
func (c *Client) PutPlan(ctx context.Context, b Body, o Options) (Receipt, error) {
	q := url.Values{}
	set(q, "force", o.Force)
	if o.Message != "" {
		q.Set("message", o.Message)
	}
	h := http.Header{}
	if o.IfRevision > 0 {
		h.Set("If-Match", `"`+strconv.FormatInt(o.IfRevision, 10)+`"`)
	}
	return c.input(ctx, "PUT", "/v1/plan", q, h, b)
}

// PutHosts gives the full table of hosts.
func (c *Client) PutHosts(ctx context.Context, b Body, o Options) (Receipt, error) {
	return c.input(ctx, "PUT", "/v1/hosts", shrink(o), nil, b)
}

// ChangeHosts gives changes by host.
func (c *Client) ChangeHosts(ctx context.Context, b Body, o Options) (Receipt, error) {
	return c.input(ctx, "PATCH", "/v1/hosts", shrink(o), nil, b)
}

// PutDemand gives all that a source wants.
func (c *Client) PutDemand(ctx context.Context, source string, b Body, o Options) (Receipt, error) {
	return c.input(ctx, "PUT", "/v1/demand/"+url.PathEscape(source), shrink(o), nil, b)
}

// ChangeDemand gives changes to what a source wants.
func (c *Client) ChangeDemand(ctx context.Context, source string, b Body, o Options) (Receipt, error) {
	return c.input(ctx, "PATCH", "/v1/demand/"+url.PathEscape(source), shrink(o), nil, b)
}

// DeleteDemand has a source be forgotten, with all that it wants; what it holds is released.
func (c *Client) DeleteDemand(ctx context.Context, source string, o Options) (Receipt, error) {
	return c.input(ctx, "DELETE", "/v1/demand/"+url.PathEscape(source), shrink(o), nil, Bytes(nil, "text/csv"))
}

// PutRunning gives all that runs of a source, whatever the service thought.
func (c *Client) PutRunning(ctx context.Context, source string, b Body, o Options) (Receipt, error) {
	return c.input(ctx, "PUT", "/v1/running/"+url.PathEscape(source), shrink(o), nil, b)
}

// Release gives units back.
func (c *Client) Release(ctx context.Context, b Body) (Receipt, error) {
	return c.input(ctx, "POST", "/v1/releases", nil, nil, b)
}

// ReleaseOnce is ReleaseUnits under an idempotency key of the caller. A caller that keeps the key can repeat the call
// after a crash: the service counts it once and returns the same receipt.
func (c *Client) ReleaseOnce(ctx context.Context, key string, units []Unit) (Receipt, error) {
	b, err := jsonRows(units)
	if err != nil {
		return Receipt{}, err
	}
	return c.input(ctx, "POST", "/v1/releases", nil, http.Header{"Idempotency-Key": {key}}, b)
}

// Unit is units of a sub-allocation on a host, a row of releases.
type Unit struct {
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Sub        string `json:"sub"`
	Host       string `json:"host"`
	Units      int64  `json:"units"`
	Done       bool   `json:"done"`             // the work is finished: as many fewer are wanted
	Device     string `json:"device,omitempty"` // on which devices of the host each lies; "": on any
}

// ReleaseUnits is Release of rows.
func (c *Client) ReleaseUnits(ctx context.Context, units []Unit) (Receipt, error) {
	if units == nil {
		units = []Unit{}
	}
	b, err := json.Marshal(units)
	if err != nil {
		return Receipt{}, err
	}
	return c.Release(ctx, Bytes(b, "application/json"))
}

// Change is something that happened to a source's units.
type Change struct {
	Cycle      int64      `json:"cycle"`
	Change     string     `json:"change"` // release, cancel, grant, reclaim
	Plan       string     `json:"plan"`
	Consumer   string     `json:"consumer"`
	Allocation string     `json:"allocation"`
	Sub        string     `json:"sub"`
	Host       string     `json:"host"`
	Units      int64      `json:"units"`
	Device     string     `json:"device"`   // on which devices of the host each lies, such as 4+5; "": on none
	Cause      string     `json:"cause"`    // of a release
	Reclaim    int64      `json:"reclaim"`  // number of the reclaim, 0: none
	Reason     string     `json:"reason"`   // of a reclaim
	Deadline   *time.Time `json:"deadline"` // of a reclaim: the work must have stopped by then

	// For whom a reclaim takes the units; "" where a rule takes them, and where the token may not know.
	ForConsumer   string `json:"for_consumer"`
	ForAllocation string `json:"for_allocation"`
	ForSub        string `json:"for_sub"`
}

// Changes gives what happened to a source after a cycle, waiting for it up to wait, and the cycle to ask for next. When
// Is(err, "compacted"), changes so old are not kept: read Holdings, and go on from its cycle.
func (c *Client) Changes(
	ctx context.Context, source string, since int64, wait time.Duration,
) (changes []Change, next int64, err error) {
	q := url.Values{"source": {source}, "since": {strconv.FormatInt(since, 10)}}
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	next, err = c.table(ctx, "/v1/changes", q, func(d *json.Decoder) error {
		var row Change
		err := d.Decode(&row)
		if err == nil {
			changes = append(changes, row)
		}
		return err
	})
	return changes, next, err
}

// Holding is units held.
type Holding struct {
	Plan       string     `json:"plan"`
	Consumer   string     `json:"consumer"`
	Allocation string     `json:"allocation"`
	Sub        string     `json:"sub"`
	Host       string     `json:"host"`
	Units      int64      `json:"units"`
	Device     string     `json:"device"`  // on which devices of the host each lies, such as 4+5; "": on none
	Granted    int64      `json:"granted"` // cycle
	Reclaim    int64      `json:"reclaim"` // that they are under, 0: none
	Deadline   *time.Time `json:"deadline"`
}

// Holdings gives what a source holds, and the cycle at which that is true.
func (c *Client) Holdings(ctx context.Context, source string) (held []Holding, cycle int64, err error) {
	cycle, err = c.table(ctx, "/v1/holdings", url.Values{"source": {source}}, func(d *json.Decoder) error {
		var row Holding
		err := d.Decode(&row)
		if err == nil {
			held = append(held, row)
		}
		return err
	})
	return held, cycle, err
}

// answerBytesMax bounds an answer that is taken whole.
const answerBytesMax = 1 << 30

// Get makes a call that reads, and gives its answer whole, as one of the media types in accept.
func (c *Client) Get(ctx context.Context, path string, q url.Values, accept string) ([]byte, error) {
	return c.whole(ctx, "GET", path, q, accept, Body{})
}

// Pages reads a list by pages of at most limit rows, and calls page with the text of each, as one of the media types in
// accept. All pages are of one cycle: Is(err, "cursor") says that the next one has come meanwhile, and the list must be
// read from its beginning. Errors: those of the calls, and page's own, which ends the reading.
func (c *Client) Pages(
	ctx context.Context, path string, q url.Values, limit int, accept string, page func(text []byte) error,
) error {
	q = maps.Clone(q)
	if q == nil {
		q = url.Values{}
	}
	q.Set("limit", strconv.Itoa(limit))
	for {
		var text []byte
		var next string
		err := c.call(ctx, "GET", path, q, http.Header{"Accept": {accept}}, Body{}, func(r *http.Response) (err error) {
			next = r.Header.Get("Stint-Next")
			text, err = io.ReadAll(r.Body)
			return err
		})
		if err == nil {
			err = page(text)
		}
		if err != nil || next == "" {
			return err
		}
		q.Set("cursor", next)
	}
}

// whole makes a call and gives its answer whole.
func (c *Client) whole(
	ctx context.Context, method, path string, q url.Values, accept string, b Body,
) (answer []byte, err error) {
	err = c.call(ctx, method, path, q, http.Header{"Accept": {accept}}, b, func(r *http.Response) error {
		answer, err = io.ReadAll(io.LimitReader(r.Body, answerBytesMax+1))
		if err == nil && len(answer) > answerBytesMax {
			err = fmt.Errorf("%s: an answer of more than %d bytes", path, answerBytesMax)
		}
		return err
	})
	return answer, err
}

// Cycle runs a cycle now and gives its number.
func (c *Client) Cycle(ctx context.Context) (cycle int64, err error) {
	var answer struct {
		Cycle int64 `json:"cycle"`
	}
	err = c.call(ctx, "POST", "/v1/cycles", nil, nil, Body{}, func(r *http.Response) error {
		return json.NewDecoder(r.Body).Decode(&answer)
	})
	return answer.Cycle, err
}

func set(q url.Values, name string, v bool) {
	if v {
		q.Set(name, "true")
	}
}

func shrink(o Options) url.Values {
	q := url.Values{}
	set(q, "allow_shrink", o.AllowShrink)
	return q
}

// table reads rows as they come.
func (c *Client) table(
	ctx context.Context, path string, q url.Values, row func(*json.Decoder) error,
) (cycle int64, err error) {
	h := http.Header{"Accept": {"application/x-ndjson"}}
	err = c.call(ctx, "GET", path, q, h, Body{}, func(r *http.Response) error {
		if cycle, err = strconv.ParseInt(r.Header.Get("Stint-Cycle"), 10, 64); err != nil {
			return fmt.Errorf("%s: no cycle in the answer: %w", path, err)
		}
		if now, err := time.Parse(time.RFC3339Nano, r.Header.Get("Stint-Now")); err == nil && c.Clock != nil {
			c.Clock(now)
		}
		d := json.NewDecoder(r.Body)
		for {
			if err := row(d); err == io.EOF {
				return nil
			} else if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
	})
	return cycle, err
}

// input sends an input, with an idempotency key.
func (c *Client) input(
	ctx context.Context, method, path string, q url.Values, h http.Header, b Body,
) (r Receipt, err error) {
	if h == nil {
		h = http.Header{}
	}
	if h.Get("Idempotency-Key") == "" {
		var key [16]byte
		_, _ = crand.Read(key[:]) // never fails
		h.Set("Idempotency-Key", hex.EncodeToString(key[:]))
	}
	err = c.call(ctx, method, path, q, h, b, func(resp *http.Response) error {
		return json.NewDecoder(resp.Body).Decode(&r)
	})
	return r, err
}

// Defaults of Client.
const (
	triesMax = 10
	waitMax  = 30 * time.Second
)

// call makes a call until it is answered otherwise than with 429 or 503, or cannot be made that often. A call that
// broke off is made again: reading changes nothing, and input has a key.
func (c *Client) call(
	ctx context.Context, method, path string, q url.Values, h http.Header, b Body, read func(*http.Response) error,
) error {
	tries, longest := c.TriesMax, c.WaitMax
	if tries == 0 {
		tries = triesMax
	}
	if longest == 0 {
		longest = waitMax
	}
	wait := 100 * time.Millisecond
	for try := 1; ; try++ {
		retry, asked, err := c.once(ctx, method, path, q, h, b, read)
		if err == nil || !retry || try == tries || ctx.Err() != nil {
			return err
		}
		pause := min(longest, max(asked, wait/2+rand.N(wait))) // spread out: others are told the same
		wait = min(longest, 2*wait)
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// once makes a call. retry tells whether another try may help, asked how long the service wants it to wait.
func (c *Client) once(
	ctx context.Context, method, path string, q url.Values, h http.Header, b Body, read func(*http.Response) error,
) (retry bool, asked time.Duration, err error) {
	var content io.ReadCloser
	if b.Open != nil {
		if content, err = b.Open(); err != nil {
			return false, 0, err
		}
		defer content.Close()
	}
	at := strings.TrimRight(c.Base, "/") + path
	if len(q) > 0 {
		at += "?" + q.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, at, content)
	if err != nil {
		return false, 0, err
	}
	if content != nil {
		r.ContentLength = b.Bytes
		if b.Bytes == 0 {
			r.Body = http.NoBody
		}
	}
	for name, values := range h {
		r.Header[name] = values
	}
	for name, v := range map[string]string{"Content-Type": b.ContentType, "Content-Encoding": b.ContentEncoding} {
		if v != "" {
			r.Header.Set(name, v)
		}
	}
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(r)
	if err != nil {
		if why := untrusted(err); why != nil {
			return false, 0, why
		}
		return true, 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		return false, 0, read(resp)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
		asked = time.Duration(s) * time.Second
	}
	p := &Problem{Status: resp.StatusCode}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if json.Unmarshal(text, p) != nil || p.Detail == "" {
		p.Detail = strings.TrimSpace(string(text[:min(len(text), 200)]))
	}
	return resp.StatusCode == 429 || resp.StatusCode == 503, asked, p
}
