package server

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// gone reports whether the client has closed a connection, or its sending half. It reads nothing.
func gone(c net.Conn) (is bool) {
	if own, ok := c.(*conn); ok {
		if c = own.Conn; own.tls != nil {
			c = own.tls.NetConn()
		}
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true // closed here
	}
	err = raw.Control(func(fd uintptr) {
		asked := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		_, _ = unix.Poll(asked, 0) // a call that a signal interrupts reports nothing: the next one will
		is = asked[0].Revents != 0
	})
	return is || err != nil
}
