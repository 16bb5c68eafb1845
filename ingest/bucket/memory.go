package bucket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory are objects in memory, for tests: a store whose requests a test may fail, before or after they take effect.
type Memory struct {
	mu sync.Mutex
	of map[string][]byte
}

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{of: map[string][]byte{}} }

// Client is a client of the memory. fault is called before each request and after it took effect (done); its error is
// what the client gets. nil: none.
func (m *Memory) Client(fault func(ctx context.Context, op, key string, done bool) error) Objects {
	if fault == nil {
		fault = func(context.Context, string, string, bool) error { return nil }
	}
	return &memoryClient{m, fault}
}

// Change replaces an object as a damaged store would; change gives nil to remove it.
func (m *Memory) Change(key string, change func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b := change(slices.Clone(m.of[key])); b != nil {
		m.of[key] = b
	} else {
		delete(m.of, key)
	}
}

// Keys are the keys that begin with a prefix, in order.
func (m *Memory) Keys(prefix string) (keys []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(m.of)) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	return keys
}

type memoryClient struct {
	m     *Memory
	fault func(ctx context.Context, op, key string, done bool) error
}

// do makes a request.
func (c *memoryClient) do(ctx context.Context, op, key string, effect func() error) error {
	err := c.fault(ctx, op, key, false)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	c.m.mu.Lock()
	err = effect()
	c.m.mu.Unlock()
	return errors.Join(err, c.fault(ctx, op, key, true))
}

// Name is for messages.
func (c *memoryClient) Name() string { return "memory" }

// Create writes an object where none is.
func (c *memoryClient) Create(ctx context.Context, key string, content []byte) error {
	return c.do(ctx, "create", key, func() error {
		if c.m.of[key] != nil {
			return ErrExists
		}
		c.m.of[key] = bytes.Clone(content)
		return nil
	})
}

// Put writes an object.
func (c *memoryClient) Put(ctx context.Context, key string, content []byte) error {
	return c.do(ctx, "put", key, func() error {
		c.m.of[key] = bytes.Clone(content)
		return nil
	})
}

// Upload writes an object.
func (c *memoryClient) Upload(ctx context.Context, key string, content io.Reader) (int64, error) {
	b, err := io.ReadAll(content)
	if err != nil {
		return 0, err
	}
	return int64(len(b)), c.Put(ctx, key, b)
}

// Get reads an object.
func (c *memoryClient) Get(ctx context.Context, key string) (content []byte, err error) {
	err = c.do(ctx, "get", key, func() error {
		if content = bytes.Clone(c.m.of[key]); content == nil {
			return ErrMissing
		}
		return nil
	})
	return content, err
}

// Open reads an object.
func (c *memoryClient) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	content, err := c.Get(ctx, key)
	return io.NopCloser(bytes.NewReader(content)), int64(len(content)), err
}

// Delete removes an object.
func (c *memoryClient) Delete(ctx context.Context, key string) error {
	return c.do(ctx, "delete", key, func() error {
		delete(c.m.of, key)
		return nil
	})
}

// List visits keys.
func (c *memoryClient) List(ctx context.Context, prefix string, visit func(key string) error) error {
	if err := c.do(ctx, "list", prefix, func() error { return nil }); err != nil {
		return err
	}
	for _, key := range c.m.Keys(prefix) {
		if err := visit(key); err != nil {
			return err
		}
	}
	return nil
}
