package server

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A connection that is closed while its client still sends would be reset, and the client might never see the answer. So what it
// sends is read for a while, within these bounds.
const (
	lingerBytesMax = 16 << 20
	lingerTimeMax  = 2 * time.Second
	lingersMax     = 256
)

// listener gives connections that can linger, and so many to an address.
type listener struct {
	net.Listener
	lingers  *atomic.Int64
	perIPMax int // 0: any number
	mu       sync.Mutex
	perIP    map[string]int
}

// Accept waits for a connection. Those above perIPMax are closed at once.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		ip := ""
		if l.perIPMax > 0 {
			ip, _, _ = net.SplitHostPort(c.RemoteAddr().String())
		}
		if l.enter(ip) {
			return &conn{Conn: c, l: l, ip: ip}, nil
		}
		_ = c.Close()
	}
}

func (l *listener) enter(ip string) bool {
	if ip == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.perIP[ip] >= l.perIPMax {
		return false
	}
	l.perIP[ip]++
	return true
}

func (l *listener) leave(ip string) {
	if ip == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.perIP[ip]--; l.perIP[ip] <= 0 {
		delete(l.perIP, ip)
	}
}

// conn is a connection of a client.
type conn struct {
	net.Conn
	linger atomic.Bool
	ended  atomic.Bool // the client sends nothing more
	closed atomic.Bool
	l      *listener
	ip     string
}

// Read reads, and notes the end. That tells a body in chunks that was cut off from one that is whole, which fasthttp does not.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == io.EOF {
		c.ended.Store(true)
	}
	return n, err
}

// Close closes the connection, after reading on if it is to linger.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	defer c.l.leave(c.ip)
	if c.linger.Load() {
		if half, ok := c.Conn.(interface{ CloseWrite() error }); ok && c.l.lingers.Add(1) <= lingersMax {
			_ = half.CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(lingerTimeMax))
			_, _ = io.CopyN(io.Discard, c.Conn, lingerBytesMax)
			c.l.lingers.Add(-1)
		} else if ok {
			c.l.lingers.Add(-1)
		}
	}
	return c.Conn.Close()
}
