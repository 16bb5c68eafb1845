package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// passedBody is the body of a request that is passed on, within the limits of bodies: it is in memory by parts only.
type passedBody struct {
	q      *request
	from   io.Reader
	pace   pace
	bytes  int64
	last   int64         // that Read gave last
	closed chan struct{} // when nobody reads it any more
}

func newPassedBody(q *request) *passedBody {
	b := &passedBody{q: q, from: q.RequestBodyStream(), closed: make(chan struct{})}
	if b.from == nil {
		b.from = bytes.NewReader(q.Request.Body())
	}
	l := &q.s.o.Limits
	b.pace = newPace(l.BodyRateMin, bodyGrace, l.BodyTimeMax)
	return b
}

// Close ends the reading: the request is the handler's alone again.
func (b *passedBody) Close() error {
	close(b.closed)
	return nil
}

// errPassedLarge ends the passing on of a body.
var errPassedLarge = errors.New("the body is too large")

// Read reads what comes of the body next.
func (b *passedBody) Read(p []byte) (n int, err error) {
	q := b.q
	_ = q.Conn().SetReadDeadline(b.pace.moved(b.last))
	n, err = b.from.Read(p)
	b.last = int64(n)
	b.bytes += int64(n)
	q.read += int64(n)
	if b.bytes > q.s.o.Limits.BodyBytesMax {
		return n, errPassedLarge
	}
	if err == io.EOF {
		q.ended = true
		_ = q.Conn().SetReadDeadline(time.Time{})
	}
	return n, err
}

// passedBytesMax bounds an answer that is passed back: those to writes are short.
const passedBytesMax = 16 << 20

// passedBack are the headers of an answer that are passed back.
var passedBack = []string{
	"Content-Type", "ETag", "Retry-After", "Stint-Cycle", "Stint-Now", "Stint-Role", "Stint-Name", "Cache-Control",
	"WWW-Authenticate",
}

// passBack answers with what the process that leads has answered.
func (q *request) passBack(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, passedBytesMax+1))
	if err = errors.Join(err, resp.Body.Close()); err != nil || len(body) > passedBytesMax {
		return noLeader("the answer of the process that leads broke off; " + sendAgain)
	}
	for _, name := range passedBack {
		if v := resp.Header.Get(name); v != "" {
			q.Response.Header.Set(name, v)
		}
	}
	q.SetStatusCode(resp.StatusCode)
	q.SetBody(body)
	return nil
}
