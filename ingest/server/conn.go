package server

import (
	"io"
	"net"
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

// listener gives connections that can linger.
type listener struct {
	net.Listener
	lingers *atomic.Int64
}

// Accept waits for a connection.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok && err == nil {
		return &conn{TCPConn: tcp, lingers: l.lingers}, nil
	}
	return c, err
}

// conn is a connection of a client.
type conn struct {
	*net.TCPConn
	linger  atomic.Bool
	lingers *atomic.Int64
}

// Close closes the connection, after reading on if it is to linger.
func (c *conn) Close() error {
	if c.linger.Load() {
		if c.lingers.Add(1) <= lingersMax {
			_ = c.CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(lingerTimeMax))
			_, _ = io.CopyN(io.Discard, c.TCPConn, lingerBytesMax)
		}
		c.lingers.Add(-1)
	}
	return c.TCPConn.Close()
}
