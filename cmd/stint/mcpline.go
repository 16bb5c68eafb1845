package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// lineTransport carries messages as lines over two streams, as mcp.IOTransport does. Unlike it, it answers a line that
// is no message with an error and reads on: a client's debugging output must not end the session.
type lineTransport struct {
	in  io.Reader
	out io.Writer
}

// Connect begins to read lines.
func (t lineTransport) Connect(context.Context) (mcp.Connection, error) {
	c := &lineConn{out: t.out, messages: make(chan jsonrpc.Message), closed: make(chan struct{})}
	go c.receive(bufio.NewReaderSize(t.in, 64<<10))
	return c, nil
}

// lineConn is a connection of a lineTransport.
type lineConn struct {
	mu  sync.Mutex // of out
	out io.Writer

	messages chan jsonrpc.Message // closed after the last line, when ended is set
	ended    error
	close    sync.Once
	closed   chan struct{}
}

// receive passes the messages of all lines on, until the input ends or the connection is closed.
func (c *lineConn) receive(in *bufio.Reader) {
	defer close(c.messages)
	for {
		line, size, err := readLine(in)
		if size > 0 {
			for _, m := range c.decode(line, size) {
				select {
				case c.messages <- m:
				case <-c.closed:
					return
				}
			}
		}
		if err != nil {
			c.ended = err
			return
		}
	}
}

// readLine reads a line without its end. Of a line over mcpLineBytesMax it gives nothing but the size.
func readLine(in *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size <= mcpLineBytesMax {
			line = append(line, part...)
		} else {
			line = nil
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = bytes.TrimSpace(line); size <= mcpLineBytesMax {
			size = len(line)
		}
		return line, size, err
	}
}

// decode gives the messages of a line: one, or those of a batch. It answers what is no message.
func (c *lineConn) decode(line []byte, size int) (list []jsonrpc.Message) {
	if size > mcpLineBytesMax {
		c.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a line of %d bytes: a message has at most %d; send less at "+
			"once", size, mcpLineBytesMax))
		return nil
	}
	parts := []json.RawMessage{line}
	if line[0] == '[' {
		parts = nil
		if err := json.Unmarshal(line, &parts); err != nil || len(parts) == 0 {
			c.refuse(jsonrpc.CodeParseError, "a line is no batch of messages: send a JSON object on each line")
			return nil
		}
	}
	for _, part := range parts {
		m, err := jsonrpc.DecodeMessage(part)
		switch {
		case err == nil:
			list = append(list, m)
		case json.Valid(part):
			c.refuse(jsonrpc.CodeInvalidRequest, "a line is no JSON-RPC message ("+err.Error()+
				"): it needs \"jsonrpc\": \"2.0\" and \"method\"")
		default:
			c.refuse(jsonrpc.CodeParseError, "a line is no JSON ("+err.Error()+"): send a JSON object on each line")
		}
	}
	return list
}

// refuse answers a line of which no id is known.
func (c *lineConn) refuse(code int64, message string) {
	text, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil,
		"error": &jsonrpc.Error{Code: code, Message: message}})
	if err == nil {
		_ = c.write(text) // a client that is gone is noticed by the next answer
	}
}

// write writes a line.
func (c *lineConn) write(line []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.out.Write(append(line, '\n'))
	return err
}

// Read gives the next message, and the error of the input after the last.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-c.messages:
		if !ok {
			return nil, c.ended
		}
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message.
func (c *lineConn) Write(_ context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.write(line)
}

// Close ends Read. The goroutine that reads a stream ends with the stream.
func (c *lineConn) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// SessionID is empty: there is one session.
func (c *lineConn) SessionID() string { return "" }
