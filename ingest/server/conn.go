package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// A connection that is closed while its client still sends would be reset, and the client might never see the answer.
// So what it sends is read for a while, within these bounds.
const (
	lingerBytesMax = 16 << 20
	lingerTimeMax  = 2 * time.Second
	lingersMax     = 256
)

// filesSpare is how many file descriptors are kept from connections, for the journal, the decision log and those that
// linger.
const filesSpare = 512

// connsBearable is how many connections the limit of open files bears, at most so many.
func connsBearable(most int) int {
	var limit syscall.Rlimit // a program in Go begins by asking for all that it may have
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return most
	}
	return min(most, max(int(limit.Cur)/2, int(limit.Cur)-filesSpare))
}

// listener gives connections that can linger, and so many in all and to an address.
type listener struct {
	net.Listener
	s     *Server
	tls   *tls.Config // nil: connections are plain
	once  sync.Once
	mu    sync.Mutex
	open  int
	perIP map[string]int
}

// Close stops listening. More than once is as good as once.
func (l *listener) Close() (err error) {
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}

// acceptPause is how long nobody is let in when the system has no descriptors or memory for a connection.
const acceptPause = 50 * time.Millisecond

// Accept waits for a connection. Those above the limits are told to come again, and closed. That the system has no room
// for more is no reason to end: it passes.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if scarce(err) {
				l.s.o.Metrics.refused("busy")
				time.Sleep(acceptPause)
				continue
			}
			return nil, err
		}
		own := &conn{Conn: c, l: l}
		if l.tls != nil {
			own.tls = tls.Server(c, l.tls)
			own.Conn = own.tls
		}
		if own.entered = l.enter(own); own.entered {
			return own, nil
		}
		go own.refuse()
	}
}

// scarce tells whether an error of Accept is of those that pass.
func scarce(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refuse tells that there are too many connections, and closes this one. A handshake would cost more than it is worth.
func (c *conn) refuse() {
	if c.tls != nil {
		c.l.s.o.Metrics.refused("busy")
		_ = c.tls.NetConn().Close()
		return
	}
	var ctx fasthttp.RequestCtx
	problem{Type: "busy", Status: 429, Detail: "too many connections are open", RetryAfter: 1}.write(&ctx)
	ctx.SetConnectionClose()
	c.l.s.o.Metrics.refused("busy")
	_ = c.SetWriteDeadline(time.Now().Add(lingerTimeMax))
	_, _ = ctx.Response.WriteTo(c.Conn)
	c.linger.Store(true)
	_ = c.Close()
}

// enter counts a connection, if the limits bear it. Without a limit of its own an address may have no more connections
// than stay free for others; those of this machine, where a proxy may stand for all, may have all.
func (l *listener) enter(c *conn) bool {
	limits := &l.s.o.Limits
	if addr, ok := c.RemoteAddr().(*net.TCPAddr); ok && (limits.ConnsPerIPMax > 0 || !addr.IP.IsLoopback()) {
		c.ip = addr.IP.String()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	most := cmp.Or(limits.ConnsPerIPMax, limits.ConnsMax-l.open)
	if l.open >= limits.ConnsMax || c.ip != "" && l.perIP[c.ip] >= most {
		return false
	}
	l.open++
	if c.ip != "" {
		l.perIP[c.ip]++
	}
	return true
}

func (l *listener) leave(c *conn) {
	if !c.entered {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if c.ip != "" {
		if l.perIP[c.ip]--; l.perIP[c.ip] <= 0 {
			delete(l.perIP, c.ip)
		}
	}
}

// conn is a connection of a client.
type conn struct {
	net.Conn
	linger  atomic.Bool
	ended   atomic.Bool // the client sends nothing more
	closed  atomic.Bool
	l       *listener
	tls     *tls.Conn // nil: the connection is plain
	shaken  bool      // the handshake was tried
	judged  judgment  // of the client's certificate
	ip      string    // "" where addresses are not counted
	entered bool
	taken   pace      // of the response under way
	wrote   time.Time // when something of it was written last; zero: none is under way
}

// writeBytesMax is how much is written before the client must have taken some of it.
const writeBytesMax = 32 << 10

// SetWriteDeadline sets when a response must have been taken whole. It begins to count the least rate.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.taken, c.wrote = newPace(c.l.s.o.Limits.BodyRateMin, bodyGrace, time.Until(t)), time.Now()
	return c.Conn.SetWriteDeadline(c.taken.due)
}

// Write writes, as long as the client takes what it gets. Time between two calls is not the client's.
func (c *conn) Write(p []byte) (n int, err error) {
	timed := !c.wrote.IsZero()
	if timed {
		c.taken.due = c.taken.due.Add(time.Since(c.wrote))
		_ = c.Conn.SetWriteDeadline(c.taken.moved(0))
	}
	for err == nil && n < len(p) {
		var m int
		m, err = c.Conn.Write(p[n:min(len(p), n+writeBytesMax)])
		if n += m; timed {
			_ = c.Conn.SetWriteDeadline(c.taken.moved(int64(m)))
			c.wrote = time.Now()
		}
	}
	return n, err
}

// Read reads, and notes the end. That tells a body in chunks that was cut off from one that is whole, which fasthttp
// does not.
func (c *conn) Read(p []byte) (int, error) {
	if c.tls != nil && !c.shaken {
		c.shaken = true
		if err := c.handshake(); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		c.ended.Store(true)
	}
	if n > 0 && !c.wrote.IsZero() { // the next request: the response before it is done
		c.wrote = time.Time{}
		_ = c.Conn.SetWriteDeadline(c.wrote)
	}
	return n, err
}

// Close closes the connection, after reading on if it is to linger.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	defer c.l.leave(c)
	if c.linger.Load() {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.l.s.lingers.Add(1) <= lingersMax {
			_ = half.CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(lingerTimeMax))
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytesMax)
			c.l.s.lingers.Add(-1)
		} else if ok {
			c.l.s.lingers.Add(-1)
		}
	}
	return c.Conn.Close()
}
