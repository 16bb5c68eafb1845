package server

import (
	"net"
	"testing"
)

// from is a connection from an address.
type from struct {
	net.Conn
	addr net.IP
}

func (c from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.addr, Port: 1} }

// TestConnectionsShared has an address that takes all it gets leave half of the connections to others, each of these
// get some, and this machine get all.
func TestConnectionsShared(t *testing.T) {
	s, err := New(Options{Limits: Limits{ConnsMax: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{s: s, perIP: map[string]int{}}
	open := map[string][]*conn{}
	take := func(ip string) (got int) {
		for {
			c := &conn{Conn: from{addr: net.ParseIP(ip)}, l: l}
			if c.entered = l.enter(c); !c.entered {
				return got
			}
			got++
			open[ip] = append(open[ip], c)
		}
	}
	for _, want := range []struct {
		ip  string
		got int
	}{{"10.0.0.1", 500}, {"10.0.0.2", 250}, {"10.0.0.1", 0}, {"2001:db8::1", 125}, {"127.0.0.1", 125},
		{"10.0.0.3", 0}} {
		if got := take(want.ip); got != want.got {
			t.Errorf("%s got %d connections, expected %d", want.ip, got, want.got)
		}
	}
	for _, c := range open["10.0.0.1"] {
		l.leave(c)
	}
	if got := take("10.0.0.3"); got != 250 || l.perIP["10.0.0.1"] != 0 || len(l.perIP) != 3 {
		t.Error(got, l.perIP)
	}
}
