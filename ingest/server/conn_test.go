package server

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
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

// TestGone has clients close their connections, or the half that sends, with bytes that nobody has read before.
func TestGone(t *testing.T) {
	ca := newIssuer(t, "Authority")
	pair, pool := ca.issue("server", nil).pair, x509.NewCertPool()
	pool.AddCert(ca.cert)
	for _, how := range []string{"plain", "half", "tls"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		own := &conn{Conn: server}
		if how == "tls" {
			own.tls = tls.Server(server, &tls.Config{Certificates: []tls.Certificate{pair}})
			own.Conn = own.tls
			client = tls.Client(client, &tls.Config{RootCAs: pool, ServerName: "localhost"})
			go func() { _, _ = client.Write([]byte("x")) }()
			if err := own.tls.Handshake(); err != nil {
				t.Fatal(err)
			}
		} else if _, err := client.Write([]byte("unread")); err != nil {
			t.Fatal(err)
		}
		if gone(own) {
			t.Errorf("%s: an open connection is gone", how)
		}
		if how == "half" {
			err = client.(*net.TCPConn).CloseWrite()
		} else {
			err = client.Close()
		}
		for end := time.Now().Add(10 * time.Second); !gone(own) && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if err != nil || !gone(own) {
			t.Errorf("%s: a closed connection is not gone: %v", how, err)
		}
		_, _ = server.Close(), ln.Close()
		if !gone(own) {
			t.Errorf("%s: a connection that was closed here is not gone", how)
		}
	}
}
