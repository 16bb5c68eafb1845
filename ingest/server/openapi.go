package server

import _ "embed"

//go:embed openapi.json
var openAPI []byte

// getOpenAPI gives the description of all calls.
func (s *Server) getOpenAPI(q *request) error {
	q.SetContentType("application/json")
	q.Response.SetBodyRaw(openAPI)
	return nil
}
