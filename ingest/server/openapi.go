package server

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// examples are requests and answers of a service as it runs, by operation. A test makes them, and holds them true.
//
//go:embed examples.json
var examplesText []byte

// example is a call that was made, and its answer.
type example struct {
	Body   json.RawMessage `json:"body,omitempty"` // of the request: JSON, or a text of its media type
	Answer json.RawMessage `json:"answer,omitempty"`
}

// getOpenAPI gives the description of all calls.
func (s *Server) getOpenAPI(q *request) error {
	q.SetContentType("application/json")
	q.Response.SetBodyRaw(s.described())
	return nil
}

// OpenAPI is the description of all calls (OpenAPI 3.0), made of the routes and of the types that they answer with.
var OpenAPI = sync.OnceValue(func() []byte {
	text, err := json.MarshalIndent(document(), "", " ")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append(text, '\n')
})

// document describes all calls.
func document() object {
	b := &shapes{named: object{}, origin: map[string]any{}, tables: layouts()}
	d := describing{b: b, paths: object{}, examples: map[string]example{}}
	if err := json.Unmarshal(examplesText, &d.examples); err != nil {
		panic("BUG: examples.json: " + err.Error())
	}
	for _, r := range routes {
		d.route(r)
	}
	b.ref(reflect.TypeFor[problemBody]())
	responses := object{}
	for status, about := range refusals {
		is := object{"description": about,
			"content": object{"application/problem+json": object{"schema": ref("Problem")}}}
		if status == 429 || status == 503 || status == 507 {
			is["headers"] = object{"Retry-After": object{"description": "seconds", "schema": object{"type": "integer"}}}
		}
		responses[refusalName(status)] = is
	}
	var kinds []object
	for _, t := range tags {
		kinds = append(kinds, object{"name": t.name, "description": t.about})
	}
	return object{
		"openapi": "3.0.3",
		"info": object{
			"title": "stint", "version": "1",
			"license": object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
			"description": "Decides, cycle after cycle, who may put how much work on a shared cluster. Errors are " +
				"application/problem+json; their `type` is stable. Where plans are divided each call takes " +
				"`?division=`; without it answers of several divisions are put together (docs/cluster.md).",
		},
		"servers": []object{{"url": "http://127.0.0.1:7468",
			"description": "where stint serve listens without a configuration"}},
		"tags":     kinds,
		"security": []object{{"bearer": []string{}}, {}},
		"paths":    d.paths,
		"components": object{
			"schemas": b.named, "responses": responses,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

func ref(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func refusalName(status int) string { return fmt.Sprintf("Refused%d", status) }

// describing makes the paths of the document.
type describing struct {
	b        *shapes
	paths    object
	examples map[string]example
}

// route describes a route, one that gives decision tables once for each of them.
func (d *describing) route(r *route) {
	c, ok := calls[r.method+" "+r.name]
	if !ok {
		panic("BUG: nothing describes " + r.method + " " + r.name)
	}
	if !slices.Contains(c.gives.rows, "*") {
		d.operation(r, r.name, c)
		return
	}
	for _, table := range decisionTables {
		one := c
		one.id += rowNames[table] + "Table"
		one.about = "The table " + table + " of a cycle"
		one.gives.rows = []string{table}
		d.operation(r, strings.Replace(r.name, "{table}", table, 1), one)
	}
}

func (d *describing) operation(r *route, path string, c call) {
	op := object{"operationId": c.id, "summary": c.about, "tags": []string{c.tag}}
	params := []object{}
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			p := pathParams[name]
			params = append(params, object{"name": name, "in": "path", "required": true, "description": p.about,
				"schema": p.schema})
		}
	}
	if c.gives.paged {
		c.params = slices.Concat(c.params, pageParams)
	}
	for _, p := range c.params {
		is := object{"name": p.name, "in": p.in, "description": p.about, "schema": p.schema}
		if p.must {
			is["required"] = true
		}
		params = append(params, is)
	}
	op["parameters"] = params
	example := d.examples[c.id]
	if c.body != "" {
		op["requestBody"] = object{"required": true, "content": d.body(c.body, example.Body)}
	}
	responses := object{"200": d.answer(c.gives, example.Answer)}
	if c.gives.kept {
		responses["304"] = object{"description": "the client has it: If-None-Match names its version"}
	}
	refuses := slices.Concat([]int{400, 403, 417, 503, 505}, c.refuses)
	if r.is(noToken) {
		op["security"] = []object{}
	} else {
		refuses = append(refuses, 401)
		op["description"] = "The least role is " + r.needs + "."
	}
	for _, status := range refuses {
		responses[fmt.Sprint(status)] = object{"$ref": "#/components/responses/" + refusalName(status)}
	}
	op["responses"] = responses
	if d.paths[path] == nil {
		d.paths[path] = object{}
	}
	d.paths[path].(object)[strings.ToLower(r.method)] = op
}

var binary = object{"type": "string", "format": "binary"}

// body describes what a call takes.
func (d *describing) body(kind string, example json.RawMessage) object {
	if kind == "plan" {
		is := object{"schema": text}
		if example != nil {
			is["example"] = example
		}
		return object{"application/yaml": is, "application/octet-stream": object{"schema": text},
			"text/plain": object{"schema": text}}
	}
	if kind == "simulation" {
		is := object{"schema": object{"type": "object", "required": []string{"demand"}, "additionalProperties": false,
			"properties": object{
				"demand": object{"type": "array", "items": d.inputRow("asked"),
					"description": "wanted beside what is wanted already"},
				"hosts": object{"type": "array", "items": d.inputRow("hosts"),
					"description": "added, or with other figures"},
				"runtimes": object{"type": "array", "items": d.inputRow("runtimes"),
					"description": "of consumers and all below them"},
			}}}
		if example != nil {
			is["example"] = example
		}
		return object{"application/json": is}
	}
	if kind == "actor" {
		is := object{"schema": d.b.of(reflect.TypeFor[actorReport]())}
		if example != nil {
			is["example"] = example
		}
		return object{"application/json": is}
	}
	columns := object{"type": "object", "additionalProperties": object{"type": "array", "items": object{}},
		"description": "columns"}
	rows := object{"type": "array", "items": d.inputRow(kind), "description": "rows"}
	is := object{"schema": object{"oneOf": []object{rows, columns}}}
	if example != nil {
		is["example"] = example
	}
	return object{
		"text/csv": object{"schema": text}, "application/x-ndjson": object{"schema": text}, "application/json": is,
		"application/vnd.apache.arrow.stream": object{"schema": binary},
		"application/vnd.apache.parquet":      object{"schema": binary},
		"application/octet-stream":            object{"schema": binary},
	}
}

// inputRow is a reference to the schema of the rows of a table that clients send.
func (d *describing) inputRow(table string) object {
	name := strings.ToUpper(table[:1]) + table[1:] + "Row"
	if d.b.begin(name, "input "+table) {
		d.b.named[name] = inputRow(table)
	}
	return ref(name)
}

// answer describes what a call gives.
func (d *describing) answer(g gives, example json.RawMessage) object {
	content, headers := object{}, object{}
	for _, media := range g.text {
		is := object{"schema": text}
		if media == "text/event-stream" { // OpenAPI 3.0 has no word for what the events of a stream have
			is = object{"schema": object{"type": "string", "description": "server-sent events",
				"x-event-data": d.b.ref(reflect.TypeFor[event]())}}
		}
		content[media] = is
	}
	var value object
	if g.value != nil {
		value = object{"schema": d.b.of(reflect.TypeOf(g.value))}
	}
	if len(g.rows) > 0 {
		items := d.b.row(g.rows[0])
		if len(g.rows) > 1 {
			var any []object
			for _, table := range g.rows {
				any = append(any, d.b.row(table))
			}
			items = object{"anyOf": any}
		}
		value = object{"schema": object{"type": "array", "items": items}}
		content["text/csv"], content["application/x-ndjson"] = object{"schema": text}, object{"schema": text}
		for _, columnar := range []string{"application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"} {
			content[columnar] = object{"schema": binary}
		}
		headers["Stint-Cycle"] = object{"description": "the cycle at which it is true",
			"schema": object{"type": "integer", "format": "int64"}}
	}
	if value != nil {
		if example != nil {
			value["example"] = example
		}
		content["application/json"] = value
	}
	if g.paged {
		headers[nextHeader] = object{"description": "the cursor of the next page; the last has none", "schema": text}
	}
	for _, name := range g.head {
		headers[name] = object{"schema": object{"type": "string"}}
	}
	is := object{"description": g.about, "content": content}
	if len(headers) > 0 {
		is["headers"] = headers
	}
	return is
}
