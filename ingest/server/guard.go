package server

import (
	"bytes"
	"net"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
)

// headerTooLarge marks a request whose body is announced as larger than any may be: it is refused before a byte of it
// is read. A client that sends it itself is refused as well.
const headerTooLarge = "Stint-Body-Too-Large"

// headerReceived looks at a header before the body is read.
func (s *Server) headerReceived(h *fasthttp.RequestHeader) (c fasthttp.RequestConfig) {
	if int64(h.ContentLength()) > s.o.Limits.BodyBytesMax {
		h.SetContentLength(0)
		h.Set(headerTooLarge, "1")
	}
	return c
}

// guard refuses requests that somebody on the way might read otherwise, and such as a web page of somebody else has a
// browser send. The connection is closed where the end of the request cannot be told for sure.
func (s *Server) guard(q *request) error {
	h := &q.Request.Header
	if err := framed(h); err != nil {
		linger(q.RequestCtx)
		return err
	}
	if len(h.Peek(headerTooLarge)) > 0 {
		linger(q.RequestCtx)
		return tooLarge(s.o.Limits.BodyBytesMax)
	}
	if v := string(h.Peek("Expect")); v != "" && !strings.EqualFold(v, "100-continue") {
		linger(q.RequestCtx)
		return problem{Status: 417, Type: "bad-expectation", Detail: "Expect: " + v + ": only 100-continue is known"}
	}
	if uri := q.URI().Host(); !bytes.EqualFold(uri, h.Host()) {
		return badRequest("the request names two hosts: " + string(uri) + " and " + string(h.Host()))
	}
	return s.sameOrigin(q)
}

// framed tells whether a request has one reading alone.
func framed(h *fasthttp.RequestHeader) error {
	if v := string(h.Protocol()); v != "HTTP/1.1" && v != "HTTP/1.0" {
		return problem{Status: 505, Type: "wrong-version", Detail: v + " is not known: HTTP/1.1 and HTTP/1.0 are"}
	}
	var length, coding bool
	for line := range bytes.SplitSeq(h.RawHeaders(), []byte("\n")) {
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			return badRequest("a line of the header begins with white space")
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		length = length || bytes.EqualFold(name, []byte("Content-Length"))
		coding = coding || bytes.EqualFold(name, []byte("Transfer-Encoding"))
	}
	if length && coding {
		return badRequest("the request has both Content-Length and Transfer-Encoding")
	}
	return nil
}

// sameOrigin refuses what a web page of another origin has a browser send, and, where no tokens are configured or the
// hosts are, what comes under a name that is not the service's: a page can have a name of its own lead here.
func (s *Server) sameOrigin(q *request) error {
	h := &q.Request.Header
	foreign := func(detail string) error { return problem{Status: 403, Type: "foreign", Detail: detail} }
	host := string(h.Host())
	if !s.hostAllowed(q, host) {
		return foreign("the request is for the host " + host +
			", which is none of this service's: hosts_allowed names those besides loopback ones")
	}
	switch v := string(h.Peek("Sec-Fetch-Site")); {
	case v == "", v == "same-origin", v == "none":
	case string(h.Peek("Sec-Fetch-Mode")) == "navigate" && pagePath(string(q.URI().PathOriginal())):
		// somebody followed a link to the console; no page of another origin sees what comes of it
	default:
		return foreign("the request comes from a web page of another origin (Sec-Fetch-Site: " + v + ")")
	}
	if v := string(h.Peek("Origin")); v != "" {
		_, origin, ok := strings.Cut(v, "://")
		if !ok || !strings.EqualFold(origin, host) {
			return foreign("the request comes from a web page of another origin (Origin: " + v + ")")
		}
	}
	return nil
}

// hostAllowed tells whether a request is for this service by its header Host. None at all is allowed: browsers always
// send one.
func (s *Server) hostAllowed(q *request, host string) bool {
	hosts := *s.hosts.Load()
	if host == "" || !s.tokens.Load().none() && len(hosts) == 0 {
		return true
	}
	name := hostName(host)
	if ip := net.ParseIP(name); ip != nil && (ip.IsLoopback() || ip.Equal(q.LocalIP())) {
		return true
	}
	return name == "localhost" || slices.ContainsFunc(hosts, func(a string) bool {
		return strings.EqualFold(a, host) || hostName(a) == name && a == hostOnly(a)
	})
}

// hostName is a host without its port, brackets and last dot, in small letters.
func hostName(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(hostOnly(host), "[]"), "."))
}

// hostOnly is a host without its port.
func hostOnly(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
