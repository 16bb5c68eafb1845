package server

import (
	"bytes"
	"io"
	"log/slog"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/export"
)

// rows give a table part by part: the next rows, at most so many; nil: there are no more. There is at least one part,
// which may be empty.
type rows func(most int) (*decision.Table, error)

const (
	wholeRowsMax   = 2_000     // up to how many rows an answer is made at once, so that its length can be told
	partBytes      = 256 << 10 // that a part of a longer one should have
	partRowsMax    = 1 << 15
	answerMemory   = 1 << 20  // of a longer one under way
	parquetMemory  = 32 << 20 // in Parquet, which has a row group in memory
	scannedRowsMax = 1 << 16  // looked at for a part of the rows that are asked for
)

// booleans are the columns that JSON has as true and false. The log has numbers or words.
var booleans = []string{"leaf", "silent"}

// all are all rows of a table.
func all(t *decision.Table) rows {
	at, begun := 0, false
	return func(most int) (*decision.Table, error) {
		if begun && at == t.Rows {
			return nil, nil
		}
		begun = true
		from := at
		at = min(t.Rows, from+most)
		return t.Slice(from, at), nil
	}
}

// matching are the rows of a table that a function wants. They are copied part by part.
func matching(t *decision.Table, wanted func(row int) bool) rows {
	at, begun := 0, false
	return func(most int) (*decision.Table, error) {
		if begun && at == t.Rows {
			return nil, nil
		}
		begun = true
		var list []int32
		for end := min(t.Rows, at+scannedRowsMax); at < end && len(list) < most; at++ {
			if wanted(at) {
				list = append(list, int32(at))
			}
		}
		return engine.Pick(t, list), nil
	}
}

// words tells of the rows of a text column whether a function wants their words, which it is asked once each. A table
// without the column has all its rows wanted.
func words(t *decision.Table, column string, wanted func(word string) bool) func(row int) bool {
	by := t.Column(column)
	if by == nil {
		return func(int) bool { return true }
	}
	const unasked, no, yes = 0, 1, 2
	var known []uint8 // by code
	return func(row int) bool {
		code := by.Code[row]
		if code == decision.Null {
			return false
		}
		if int(code) >= len(known) {
			known = append(known, make([]uint8, int(code)+1-len(known))...)
		}
		if known[code] == unasked {
			known[code] = no
			if wanted(string(by.Dict.Bytes(code))) {
				known[code] = yes
			}
		}
		return known[code] == yes
	}
}

// changed are the rows of changes, each part out of the newest view.
func changed(e *engine.Engine, p *engine.Pages) rows {
	begun := false
	return func(most int) (*decision.Table, error) {
		if begun && !p.More() {
			return nil, nil
		}
		begun = true
		return p.Next(e.View(), most)
	}
}

// table answers with rows of a table that others may have in their answers too; key stands for it.
func (q *request) table(t *decision.Table, key any, next rows, at moment) error {
	unpin, err := q.s.pages.pin(q.caller, key, tableBytes(t))
	if err != nil {
		return err
	}
	if err := q.rows(next, at, unpin); err != nil {
		unpin()
		return err
	}
	return nil
}

// rows answers with rows, made as the client takes them; release is called in the end, unless there is an error.
func (q *request) rows(next rows, at moment, release func()) error {
	if q.gather != nil {
		*q.gather = gathered{division: q.s.o.Division, next: next, at: at, release: release, page: q.page}
		return nil
	}
	media, format, err := q.accepted()
	if err != nil {
		return err
	}
	if next, err = q.turned(q.cut(next), at); err != nil {
		return err
	}
	a := &tableBody{next: next, most: wholeRowsMax, release: release, log: q.s.o.Log}
	a.memory = q.s.answers.account(q.caller, "answers")
	var to io.Writer = &a.text
	if q.packs && format != "parquet" && q.Request.Header.HasAcceptEncoding("gzip") {
		if a.zip, err = gzip.NewWriterLevel(&a.text, gzip.BestSpeed); err != nil {
			return err
		}
		to = a.zip
		q.Response.Header.Set("Content-Encoding", "gzip")
	}
	if a.parts, err = export.NewParts(to, format, at.cycle, booleans...); err != nil {
		return err
	}
	if err := a.begin(q, format); err != nil {
		a.memory.close()
		q.Response.Header.Del("Content-Encoding")
		return err
	}
	q.Response.Header.Set("Stint-Cycle", strconv.FormatInt(at.cycle, 10))
	if len(q.Response.Header.Peek("Vary")) == 0 {
		q.Response.Header.Set("Vary", "Accept, Accept-Encoding")
	}
	q.SetContentType(media)
	size := -1
	if a.ended {
		size = a.text.Len()
	}
	q.Response.SetBodyStream(a, size)
	return nil
}

// begin makes the first part, and the whole where that is all. Few do so at once: when a cycle wakes thousands, they do
// not keep it from its work.
func (a *tableBody) begin(q *request, format string) error {
	q.s.encodes <- struct{}{}
	defer func() { <-q.s.encodes }()
	err := a.part()
	for err == nil && !a.ended && a.count < wholeRowsMax {
		err = a.part()
	}
	if err != nil {
		return err
	}
	need := int64(a.text.Cap())
	if !a.ended {
		need += answerMemory
		if format == "parquet" {
			need += parquetMemory
		}
	}
	return a.memory.take(need)
}

// tableBody is the body of an answer, encoded part by part as the client takes it.
type tableBody struct {
	next    rows
	most    int // rows of the next part
	count   int // rows so far
	parts   export.Parts
	text    bytes.Buffer // what was not taken yet
	zip     *gzip.Writer // nil: it goes as it is
	ended   bool
	memory  *account
	release func()
	log     *slog.Logger
}

// part encodes the next part.
func (a *tableBody) part() error {
	t, err := a.next(a.most)
	if err != nil {
		return err
	}
	if t == nil {
		a.ended = true
		err := a.parts.Close()
		if err == nil && a.zip != nil {
			err = a.zip.Close()
		}
		return err
	}
	had := a.text.Len()
	if err := a.parts.Write(t); err != nil {
		return err
	}
	if a.zip != nil {
		if err := a.zip.Flush(); err != nil {
			return err
		}
	}
	if a.count += t.Rows; a.count >= wholeRowsMax && t.Rows > 0 { // rows may be of very different lengths
		a.most = min(max(1, partBytes*t.Rows/max(1, a.text.Len()-had)), partRowsMax, 4*a.most)
	}
	return nil
}

// Read gives what comes next. An error of the rows breaks the connection off, so that the client does not take a part
// for all.
func (a *tableBody) Read(p []byte) (int, error) {
	for a.text.Len() == 0 && !a.ended {
		if err := a.part(); err != nil {
			a.log.Warn("an answer was not sent whole", "error", err)
			return 0, err
		}
	}
	if a.text.Len() == 0 {
		return 0, io.EOF
	}
	return a.text.Read(p)
}

// Close gives back what the answer had.
func (a *tableBody) Close() error {
	a.memory.close()
	a.release()
	return nil
}

// tableBytes is how much memory the values of a table take; dictionaries are not the table's alone.
func tableBytes(t *decision.Table) (n int64) {
	for i := range t.Columns {
		c := &t.Columns[i]
		n += int64(8*len(c.Int) + 8*len(c.Float) + 4*len(c.Code) + len(c.Null) + 24*len(c.Lists))
	}
	return n
}
