package server

import (
	"strings"

	"github.com/stintd/stint/ingest/console"
)

// pagePath tells whether a path is of the console's files, which anybody may have: they are the same for all.
func pagePath(path string) bool { return path == "/" || strings.HasPrefix(path, console.Prefix) }

// getPage gives a file of the console.
func (s *Server) getPage(q *request) error {
	path := string(q.URI().PathOriginal())
	a := console.Find(path)
	if a == nil {
		return problem{Status: 404, Type: "not-found", Detail: "no file " + path}
	}
	h := &q.Response.Header
	h.Set("Content-Security-Policy", console.Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", a.Tag)
	h.Set("Vary", "Accept-Encoding")
	if string(q.Request.Header.Peek("If-None-Match")) == a.Tag {
		q.SetStatusCode(304)
		return nil
	}
	q.SetContentType(a.Type)
	if q.Request.Header.HasAcceptEncoding("gzip") {
		h.Set("Content-Encoding", "gzip")
		q.Response.SetBodyRaw(a.Packed)
		return nil
	}
	q.Response.SetBodyRaw(a.Body)
	return nil
}
