package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/stintd/stint/core/journal"
)

// S3Options say where an S3-compatible store is.
type S3Options struct {
	URL      string // s3://bucket/prefix
	Endpoint string // https://host:port; "": AWS_ENDPOINT_URL, or that of Amazon
	Region   string // "": AWS_REGION, or what the store says
	Style    string // path or host: how requests name the bucket; "": as the endpoint usually has it

	Transport http.RoundTripper // nil: one of its own
}

// S3 are objects of an S3-compatible store. Credentials come from the environment (AWS_ACCESS_KEY_ID or
// MINIO_ROOT_USER, …), from ~/.aws/credentials, or from the machine's role; they are in no message.
type S3 struct {
	client         *minio.Core
	endpoint       string
	bucket, prefix string
}

const (
	partBytes    = 16 << 20
	objectBytes  = 1 << 30 // that Get reads at most
	defaultStore = "https://s3.amazonaws.com"
)

// ParseURL reads s3://bucket/prefix.
func ParseURL(text string) (bucket, prefix string, err error) {
	rest, ok := strings.CutPrefix(text, "s3://")
	bucket, prefix, _ = strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if strings.Contains(text, "@") { // what stands before it may be a password
		return "", "", errors.New("must be s3://bucket or s3://bucket/prefix, without a user")
	}
	if !ok || bucket == "" || strings.ContainsAny(rest, "?# ") {
		return "", "", fmt.Errorf("%q: must be s3://bucket or s3://bucket/prefix", text)
	}
	if prefix != "" {
		prefix += "/"
	}
	return bucket, prefix, nil
}

// NewS3 makes a client. It asks nothing yet. Errors: an address that cannot be read.
func NewS3(o S3Options) (*S3, error) {
	bucket, prefix, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	at := firstOf(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL"), defaultStore)
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" ||
		u.User != nil { // it may have a password, and is not repeated
		return nil, errors.New("endpoint: must be http://host:port or https://host:port")
	}
	lookup := minio.BucketLookupAuto
	switch o.Style {
	case "path":
		lookup = minio.BucketLookupPath
	case "host":
		lookup = minio.BucketLookupDNS
	}
	transport := o.Transport
	if transport == nil {
		own, err := minio.DefaultTransport(u.Scheme == "https")
		if err != nil {
			return nil, err
		}
		transport = own
	}
	client, err := minio.NewCore(u.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.EnvMinio{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}},
		}),
		Secure: u.Scheme == "https", Region: firstOf(o.Region, os.Getenv("AWS_REGION")), BucketLookup: lookup,
		Transport:  transport,
		MaxRetries: 1, // who asks knows for how long to try
	})
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	return &S3{client: client, endpoint: u.Scheme + "://" + u.Host, bucket: bucket, prefix: prefix}, nil
}

func firstOf(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// Name is s3://bucket/prefix.
func (s *S3) Name() string { return "s3://" + s.bucket + "/" + strings.TrimSuffix(s.prefix, "/") }

// Endpoint is the address of the store.
func (s *S3) Endpoint() string { return s.endpoint }

// fullCodes are how stores call that there is no room.
var fullCodes = []string{"QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"}

// failed puts an error of the client into the words of Objects.
func failed(err error) error {
	var r minio.ErrorResponse
	if err == nil || !errors.As(err, &r) {
		return err
	}
	switch {
	case r.StatusCode == http.StatusPreconditionFailed, r.Code == "PreconditionFailed":
		return ErrExists
	case r.Code == "NoSuchKey":
		return ErrMissing
	case r.Code == "NoSuchBucket":
		return errors.New("there is no such bucket")
	case r.StatusCode == http.StatusInsufficientStorage, slices.Contains(fullCodes, r.Code):
		return fmt.Errorf("%w: %s", journal.ErrFull, r.Code)
	case r.StatusCode == http.StatusForbidden, r.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%w: %s", ErrDenied, r.Code)
	}
	return fmt.Errorf("%s (%s, status %d)", r.Message, r.Code, r.StatusCode)
}

// Create writes an object where none is.
func (s *S3) Create(ctx context.Context, key string, content []byte) error {
	o := minio.PutObjectOptions{DisableMultipart: true, SendContentMd5: true}
	o.SetMatchETagExcept("*")
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(content), int64(len(content)), o)
	return failed(err)
}

// Put writes an object, a long one in parts.
func (s *S3) Put(ctx context.Context, key string, content []byte) error {
	o := minio.PutObjectOptions{PartSize: partBytes, SendContentMd5: true}
	_, err := s.client.Client.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(content), int64(len(content)), o)
	return failed(err)
}

// Upload writes an object in parts, each with a checksum.
func (s *S3) Upload(ctx context.Context, key string, content io.Reader) (int64, error) {
	o := minio.PutObjectOptions{PartSize: partBytes, SendContentMd5: true}
	info, err := s.client.Client.PutObject(ctx, s.bucket, s.prefix+key, content, -1, o)
	return info.Size, failed(err)
}

// Get reads an object.
func (s *S3) Get(ctx context.Context, key string) ([]byte, error) {
	r, n, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	if n > objectBytes {
		return nil, errors.Join(fmt.Errorf("it has %d bytes, at most %d are read", n, int64(objectBytes)), r.Close())
	}
	content := make([]byte, n)
	_, err = io.ReadFull(r, content)
	return content, errors.Join(err, r.Close())
}

// Open begins to read an object.
func (s *S3) Open(ctx context.Context, key string) (io.ReadCloser, int64, error) {
	r, info, _, err := s.client.GetObject(ctx, s.bucket, s.prefix+key, minio.GetObjectOptions{})
	if err != nil {
		return nil, 0, failed(err)
	}
	if info.Size < 0 {
		return nil, 0, errors.Join(errors.New("the store does not tell its length"), r.Close())
	}
	return r, info.Size, nil
}

// Delete removes an object.
func (s *S3) Delete(ctx context.Context, key string) error {
	return failed(s.client.RemoveObject(ctx, s.bucket, s.prefix+key, minio.RemoveObjectOptions{}))
}

// List visits keys.
func (s *S3) List(ctx context.Context, prefix string, visit func(key string) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing where visit gives an error
	options := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true}
	for o := range s.client.Client.ListObjects(ctx, s.bucket, options) {
		if o.Err != nil {
			return failed(o.Err)
		}
		if err := visit(strings.TrimPrefix(o.Key, s.prefix)); err != nil {
			return err
		}
	}
	return ctx.Err()
}
