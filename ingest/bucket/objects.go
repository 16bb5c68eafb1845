// Package bucket keeps a service's journal in a bucket of an object store, for several processes of which one leads
// (SPEC HA-1 to HA-3). It is a journal.Shared.
//
// Truth is a row of numbered objects, batches. Each is written only where none is (If-None-Match: *), has the records
// that became durable together, and says who wrote it. A process leads from the batch on with which it claims to, until
// another claims: who writes a number first has it, so that append, election and fencing are one. The leader writes a
// batch without records where it has none, before half a lease is over; who sees no batch for two leases claims the
// next number. No clocks are compared.
//
// docs/cluster.md has the layout, and why nothing is lost when answers are.
package bucket

import (
	"context"
	"errors"
	"io"
)

// Objects are the objects of a store below a prefix. Keys are of small letters, digits, - and /, those of the
// decision log of = _ and . too. A call may take effect though it gives an error, later too. Listings may lag; all
// other calls see what was written before.
type Objects interface {
	// Create writes an object where none is. Error: ErrExists.
	Create(ctx context.Context, key string, content []byte) error
	// Put writes an object, whatever there is.
	Put(ctx context.Context, key string, content []byte) error
	// Upload writes an object of a length that is not known before, in parts, and tells the length.
	Upload(ctx context.Context, key string, content io.Reader) (bytes int64, err error)
	// Get reads an object. Error: ErrMissing.
	Get(ctx context.Context, key string) ([]byte, error)
	// Open begins to read a large object. Error: ErrMissing.
	Open(ctx context.Context, key string) (r io.ReadCloser, bytes int64, err error)
	// Delete removes an object; that there is none is no error.
	Delete(ctx context.Context, key string) error
	// List visits the keys that begin with a prefix, in order.
	List(ctx context.Context, prefix string, visit func(key string) error) error
	// Name is what messages call the place, such as s3://bucket/prefix.
	Name() string
}

// What calls of Objects may give, in the chain of an error. After any other it is not known what took effect.
var (
	ErrExists  = errors.New("there is an object already")
	ErrMissing = errors.New("there is no such object")
	ErrDenied  = errors.New("the store refuses these credentials")
)
