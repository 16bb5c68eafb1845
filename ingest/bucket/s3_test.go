package bucket

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// startS3 starts a real S3 server, of the program that STINT_S3 names (make test-cluster builds it), and gives its
// address.
func startS3(t *testing.T) string {
	t.Helper()
	program := os.Getenv("STINT_S3")
	if program == "" {
		t.Skip("no S3 server: make test-cluster builds one")
	}
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "root", "alloc"), 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "meta"), 0o755))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	at := l.Addr().String()
	must(t, l.Close())
	c := exec.Command(program, "--port", at, "--quiet", "posix", "--sidecar", filepath.Join(dir, "meta"),
		filepath.Join(dir, "root"))
	c.Env = append(os.Environ(), "ROOT_ACCESS_KEY=stint", "ROOT_SECRET_KEY=stintsecret")
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			must(t, conn.Close())
			return "http://" + at
		}
		if time.Now().After(end) {
			t.Fatal("the S3 server does not start")
		}
	}
}

func client(t *testing.T, at, url, secret string) *S3 {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "stint")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	s, err := NewS3(S3Options{URL: url, Endpoint: at, Region: "us-east-1"})
	must(t, err)
	return s
}

// TestS3 holds the client against a real server.
func TestS3(t *testing.T) {
	at, ctx := startS3(t), context.Background()
	s := client(t, at, "s3://alloc/a/b", "stintsecret")
	if s.Name() != "s3://alloc/a/b" {
		t.Error(s.Name())
	}
	if _, err := s.Get(ctx, "none"); !errors.Is(err, ErrMissing) {
		t.Error("an object that is not there:", err)
	}
	must(t, s.Create(ctx, "records/1", []byte("one")))
	if err := s.Create(ctx, "records/1", []byte("two")); !errors.Is(err, ErrExists) {
		t.Error("an object that is there:", err)
	}
	if got, err := s.Get(ctx, "records/1"); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 40<<20/16)
	must(t, s.Put(ctx, "bodies/large", large))
	// of no known length
	n, err := s.Upload(ctx, "checkpoints/large", io.MultiReader(bytes.NewReader(large), strings.NewReader("end")))
	if err != nil || n != int64(len(large))+3 {
		t.Error(n, err)
	}
	if got, err := s.Get(ctx, "bodies/large"); err != nil || !bytes.Equal(got, large) {
		t.Error("a large body comes back otherwise:", err)
	}
	r, n, err := s.Open(ctx, "checkpoints/large")
	must(t, err)
	got, err := io.ReadAll(r)
	if must(t, errors.Join(err, r.Close())); n != int64(len(got)) || !bytes.Equal(got, append(large, "end"...)) {
		t.Error("an upload comes back otherwise")
	}
	if _, err := s.Upload(ctx, "checkpoints/broken", io.MultiReader(bytes.NewReader(large), failing{})); err == nil {
		t.Error("an upload that breaks off is taken")
	}
	must(t, s.Put(ctx, "records/2", []byte("two")))
	var keys []string
	list := func(key string) error {
		keys = append(keys, key)
		return nil
	}
	must(t, s.List(ctx, "records/", list))
	must(t, s.List(ctx, "checkpoints/", list))
	if !slices.Equal(keys, []string{"records/1", "records/2", "checkpoints/large"}) {
		t.Error(keys)
	}
	must(t, s.Delete(ctx, "records/2"))
	must(t, s.Delete(ctx, "records/2"))
	if _, err := s.Get(ctx, "records/2"); !errors.Is(err, ErrMissing) {
		t.Error("an object that was deleted:", err)
	}
}

type failing struct{}

// Read fails.
func (failing) Read([]byte) (int, error) { return 0, errors.New("broken off") }

// TestS3Refused has what is wrong with a real bucket be said, without the secret.
func TestS3Refused(t *testing.T) {
	at := startS3(t)
	for _, c := range []struct{ at, url, secret, want string }{
		{at, "s3://alloc/x", "wrongsecret", "the store refuses these credentials"},
		{at, "s3://none/x", "stintsecret", "there is no such bucket"},
		{"http://127.0.0.1:9", "s3://alloc/x", "stintsecret", "connection refused"},
	} {
		b, _, err := join(client(t, c.at, c.url, c.secret), "x")
		if err == nil {
			b.die()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), c.secret) {
			t.Errorf("%s: %v, expected %q", c.url, err, c.want)
		}
	}
}

// TestS3Journal keeps a journal in a real bucket.
func TestS3Journal(t *testing.T) {
	at := startS3(t)
	var want []string
	for round := range 4 {
		b := lead(t, client(t, at, "s3://alloc/prod", "stintsecret"), "one")
		if !slices.Equal(b.lines, want) {
			t.Fatalf("round %d: %q, want %q", round, b.lines, want)
		}
		must(t, b.add("a", "b"))
		must(t, b.checkpoint())
		must(t, b.add("c"))
		want = b.lines
		must(t, b.Close())
	}
}
