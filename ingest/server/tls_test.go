package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/ingest/bucket"
)

// issuer signs certificates in a test.
type issuer struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // its own certificate
}

// issued is a certificate, in files and as a client has it.
type issued struct {
	cert, key string
	pair      tls.Certificate
}

func newIssuer(t testing.TB, name string) *issuer {
	t.Helper()
	i := &issuer{t: t, dir: t.TempDir()}
	made := i.issue(name, func(c *x509.Certificate) {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		c.ExtKeyUsage, c.DNSNames, c.IPAddresses = nil, nil, nil
	})
	i.cert, i.file = made.pair.Leaf, made.cert
	i.key = made.pair.PrivateKey.(*ecdsa.PrivateKey)
	return i
}

// issue makes a certificate; the first of an issuer is its own, and signs itself.
func (i *issuer) issue(name string, edit func(*x509.Certificate)) issued {
	i.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		i.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: []string{"Bank"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(100 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if edit != nil {
		edit(c)
	}
	parent, signer := i.cert, i.key
	if parent == nil || c.Subject.CommonName == "self" {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		i.t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		i.t.Fatal(err)
	}
	at := filepath.Join(i.dir, strings.ReplaceAll(name, " ", "-")+serial.String())
	made := issued{cert: at + ".crt", key: at + ".key"}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	if err := errors.Join(os.WriteFile(made.cert, certPEM, 0o644), os.WriteFile(made.key, keyPEM, 0o600)); err != nil {
		i.t.Fatal(err)
	}
	if made.pair, err = tls.X509KeyPair(certPEM, keyPEM); err != nil {
		i.t.Fatal(err)
	}
	return made
}

// trusting is a client that trusts an issuer, and has certificates of its own or not.
func (i *issuer) trusting(own ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(i.cert)
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	if len(own) > 0 { // also where the service names other authorities
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &own[0], nil
		}
	}
	i.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// secured is a service that speaks TLS.
func secured(t testing.TB, files TLSFiles, tokens ...Token) (*service, *TLS) {
	t.Helper()
	own, err := NewTLS(files)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *ServiceOptions) { o.Server.TLS, o.Server.Tokens = own, tokens })
	s.base = "https" + strings.TrimPrefix(s.base, "http")
	return s, own
}

// as sends a request with a client.
func (s *service) as(c *http.Client, method, path, body string, headers ...string) answer {
	s.t.Helper()
	was := s.client
	s.client = c
	defer func() { s.client = was }()
	return s.do(method, path, body, headers...)
}

func TestTLS(t *testing.T) {
	ca := newIssuer(t, "Authority")
	own := ca.issue("stint", nil)
	s, _ := secured(t, TLSFiles{Certificate: own.cert, Key: own.key},
		Token{Name: "ops", Role: RoleAdmin, SHA256: HashToken("x")})
	client := ca.trusting()
	if a := s.as(client, "GET", "/v1/cycles", ""); a.status != 401 {
		t.Error("without a token:", a)
	}
	s.token = "x"
	if a := s.as(client, "PUT", "/v1/plan", policyText); a.status != 200 {
		t.Error(a)
	}
	// What a body's end tells, and connections that linger, work as they do without TLS.
	for _, body := range []string{strings.Repeat("x", 1<<20), "host,ncpus\nh1,4\n"} {
		a := s.as(client, "PUT", "/v1/hosts", body, "Content-Type", "text/csv")
		if len(body) < 100 && a.status != 200 || len(body) > 100 && a.status/100 != 4 {
			t.Error(a)
		}
	}
	if a := s.as(client, "GET", "/metrics", ""); !strings.Contains(a.body,
		"stint_tls_certificate_expiry_timestamp_seconds") {
		t.Error(a)
	}

	t.Run("plain HTTP is told of HTTPS", func(t *testing.T) {
		resp, err := http.Get("http" + strings.TrimPrefix(s.base, "https") + "/v1/cycles")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 400 || !strings.Contains(string(text), "https://") {
			t.Error(resp.StatusCode, string(text))
		}
	})
	t.Run("old versions are refused", func(t *testing.T) {
		old := client.Transport.(*http.Transport).Clone()
		old.TLSClientConfig.MinVersion, old.TLSClientConfig.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		_, err := (&http.Client{Transport: old}).Get(s.base + "/healthz")
		if err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Error(err)
		}
	})
	t.Run("the least version", func(t *testing.T) {
		s, _ := secured(t, TLSFiles{Certificate: own.cert, Key: own.key, MinVersion: tls.VersionTLS13})
		old := client.Transport.(*http.Transport).Clone()
		old.TLSClientConfig.MaxVersion = tls.VersionTLS12
		if _, err := (&http.Client{Transport: old}).Get(s.base + "/healthz"); err == nil {
			t.Error("1.2 was taken where 1.3 is the least")
		}
		if a := s.as(client, "GET", "/healthz", ""); a.status != 200 {
			t.Error(a)
		}
	})
	t.Run("without TLS nobody else is listened to", func(t *testing.T) {
		for _, c := range []struct {
			o    Options
			want error
		}{
			{Options{}, ErrOpen}, {Options{Insecure: true}, ErrOpen},
			{Options{Tokens: []Token{{Name: "a", Role: RoleAdmin, SHA256: HashToken("a")}}}, ErrPlain},
			{Options{Tokens: []Token{{Name: "a", Role: RoleAdmin, SHA256: HashToken("a")}}, Insecure: true}, nil},
		} {
			if err := c.o.MayListen(net.IPv4zero); err != c.want {
				t.Error(c.o, err)
			}
			if err := c.o.MayListen(net.IPv6loopback); err != nil {
				t.Error(c.o, err)
			}
		}
	})
}

// TestTLSStill has connections that never finish their handshake, and that are more than are taken.
func TestTLSStill(t *testing.T) {
	ca := newIssuer(t, "Authority")
	own := ca.issue("stint", nil)
	files, err := NewTLS(TLSFiles{Certificate: own.cert, Key: own.key})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, func(o *ServiceOptions) {
		o.Server.TLS = files
		o.Server.Limits = Limits{HeaderTimeMax: 200 * time.Millisecond, ConnsMax: 2}
	})
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("a connection that says nothing stays open")
		}
	}
}

func TestClientCertificates(t *testing.T) {
	ca, other := newIssuer(t, "Clients"), newIssuer(t, "Others")
	own, feed, boss := ca.issue("stint", nil), ca.issue("feed", nil), ca.issue("boss", nil)
	tokens := []Token{
		{Name: "ops", Role: RoleAdmin, SHA256: HashToken("x"), Subject: "CN=boss, O=Bank"},
		{Name: "feed", Role: RoleReader, Subject: "CN=feed,O=Bank"},
	}
	s, files := secured(t, TLSFiles{Certificate: own.cert, Key: own.key, Clients: ca.file}, tokens...)
	if a := s.as(ca.trusting(boss.pair), "PUT", "/v1/plan", policyText); a.status != 200 ||
		a.header.Get("Stint-Name") != "ops" {
		t.Error(a)
	}
	reader := ca.trusting(feed.pair)
	if a := s.as(reader, "GET", "/v1/cycles", ""); a.status != 200 || a.header.Get("Stint-Role") != RoleReader {
		t.Error(a)
	}
	if a := s.as(reader, "PUT", "/v1/plan", policyText); a.status != 403 {
		t.Error(a)
	}
	s.token = "x" // a bearer token goes before the certificate
	if a := s.as(reader, "PUT", "/v1/plan", policyText); a.status != 200 {
		t.Error(a)
	}
	s.token = ""
	for why, pair := range map[string]tls.Certificate{
		"expired at": ca.issue("feed", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }).pair,
		"is valid only from": ca.issue("feed", func(c *x509.Certificate) {
			c.NotBefore = time.Now().Add(time.Hour)
		}).pair,
		"is self-signed":                ca.issue("self", nil).pair,
		"which is no authority of this": other.issue("feed", nil).pair,
		"no token of the configuration": ca.issue("stranger", nil).pair,
		"is not for clients": ca.issue("feed",
			func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }).pair,
		"has no subject":                 ca.issue("feed", func(c *x509.Certificate) { c.Subject = pkix.Name{} }).pair,
		"or a client certificate is nee": {},
	} {
		if a := s.as(ca.trusting(pair), "GET", "/v1/cycles", ""); a.status != 401 || !strings.Contains(a.body, why) {
			t.Errorf("%s: %v", why, a)
		}
		if a := s.as(ca.trusting(pair), "GET", "/healthz", ""); a.status != 200 { // needs nobody to be known
			t.Errorf("%s: %v", why, a)
		}
	}
	// Nobody speaks for others but a process of the same cluster.
	forged := s.as(ca.trusting(own.pair), "PUT", "/v1/plan", policyText, passedOn, "1", passedFor, "CN=boss%2CO=Bank")
	if forged.status != 401 {
		t.Error(forged)
	}
	// The authorities change: a connection that is open is judged anew.
	if _, err := files.Reload(TLSFiles{Certificate: own.cert, Key: own.key, Clients: other.file}); err != nil {
		t.Fatal(err)
	}
	if a := s.as(reader, "GET", "/v1/cycles", ""); a.status != 401 {
		t.Error(a)
	}

	t.Run("required", func(t *testing.T) {
		s, _ := secured(t, TLSFiles{Certificate: own.cert, Key: own.key, Clients: ca.file, Required: true}, tokens...)
		if a := s.as(reader, "GET", "/v1/cycles", ""); a.status != 200 {
			t.Error(a)
		}
		for _, pair := range []tls.Certificate{{}, other.issue("feed", nil).pair} {
			if resp, err := ca.trusting(pair).Get(s.base + "/healthz"); err == nil {
				t.Error("a connection without a certificate that is taken:", resp.Status)
			}
		}
	})
}

// TestTLSReload changes the files while a connection is open: it goes on, and those that come later see the new
// certificate. Files that are not good change nothing.
func TestTLSReload(t *testing.T) {
	ca := newIssuer(t, "Authority")
	first, second := ca.issue("first", nil), ca.issue("second", nil)
	at := TLSFiles{Certificate: filepath.Join(ca.dir, "own.crt"), Key: filepath.Join(ca.dir, "own.key")}
	put := func(from issued) {
		t.Helper()
		for to, name := range map[string]string{at.Certificate: from.cert, at.Key: from.key} {
			text, err := os.ReadFile(name)
			if err == nil {
				err = errors.Join(os.WriteFile(to+".new", text, 0o600), os.Rename(to+".new", to))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	put(first)
	s, files := secured(t, at)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	open := func() *tls.Conn {
		t.Helper()
		c, err := tls.Dial("tcp", strings.TrimPrefix(s.base, "https://"),
			&tls.Config{RootCAs: pool, ServerName: "localhost"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c *tls.Conn) {
		t.Helper()
		_, _ = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	}
	name := func(c *tls.Conn) string { return c.ConnectionState().PeerCertificates[0].Subject.CommonName }
	old := open()
	ask(old)
	put(second)
	if changed, err := files.Reload(at); err != nil || !changed {
		t.Fatal(changed, err)
	}
	ask(old)
	if c := open(); name(old) != "first" || name(c) != "second" {
		t.Error(name(old), name(c))
	}
	if changed, err := files.Reload(at); err != nil || changed {
		t.Error("nothing changed", changed, err)
	}
	if err := os.Remove(at.Key); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Reload(at); err == nil || !strings.Contains(err.Error(), "own.key: no such file") {
		t.Error(err)
	}
	if c := open(); name(c) != "second" {
		t.Error(name(c))
	}
}

// TestTLSFaults has all that is wrong with the files told at once, each with the file.
func TestTLSFaults(t *testing.T) {
	ca, other := newIssuer(t, "Authority"), newIssuer(t, "Other")
	good, twin := ca.issue("stint", nil), ca.issue("twin", nil)
	past := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }
	expired, future := ca.issue("old", past), ca.issue("new", func(c *x509.Certificate) {
		c.NotBefore = time.Now().Add(time.Hour)
	})
	nameless := ca.issue("nameless", func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = nil, nil })
	self := ca.issue("self", nil)
	file := func(name string, mode os.FileMode, parts ...string) string {
		t.Helper()
		var all []byte
		for _, p := range parts {
			text, err := os.ReadFile(p)
			if err != nil {
				text = []byte(p)
			}
			all = append(all, text...)
		}
		name = filepath.Join(t.TempDir(), name)
		if err := errors.Join(os.WriteFile(name, all, mode), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	readable := file("key", 0o644, good.key)
	for _, c := range []struct {
		name  string
		files TLSFiles
		want  []string
	}{
		{"expired", TLSFiles{Certificate: expired.cert, Key: expired.key},
			[]string{"certificate 1, of CN=old,O=Bank, expired at 20"}},
		{"not yet", TLSFiles{Certificate: future.cert, Key: future.key}, []string{"is valid only from 20"}},
		{"of another key", TLSFiles{Certificate: good.cert, Key: twin.key},
			[]string{"is not the key of " + good.cert + ", which is for CN=stint,O=Bank"}},
		{"readable by others", TLSFiles{Certificate: good.cert, Key: readable},
			[]string{"has the mode 0644: others may read"}},
		{"writable by the group", TLSFiles{Certificate: good.cert, Key: file("key", 0o660, good.key)},
			[]string{"has the mode 0660"}},
		{"readable by the group", TLSFiles{Certificate: good.cert, Key: file("key", 0o640, good.key)}, nil},
		{"no files", TLSFiles{Certificate: "/no/crt", Key: "/no/key", Clients: "/no/ca"},
			[]string{"/no/crt: no such file", "/no/key: no such file", "/no/ca: no such file"}},
		{"files in turn", TLSFiles{Certificate: good.key, Key: good.cert},
			[]string{"has a private key; only certificates belong here", "has a certificate and no private key"}},
		{"no PEM", TLSFiles{Certificate: file("c", 0o644, "x"), Key: file("k", 0o600, "x")},
			[]string{"no certificate in PEM form", "no private key in PEM form"}},
		{"damaged", TLSFiles{Certificate: file("c", 0o644, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END "+
			"CERTIFICATE-----\n"), Key: good.key}, []string{"certificate 1 cannot be read"}},
		{"encrypted", TLSFiles{Certificate: good.cert, Key: file("k", 0o600, "-----BEGIN ENCRYPTED PRIVATE "+
			"KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")}, []string{"is encrypted"}},
		{"no host", TLSFiles{Certificate: nameless.cert, Key: nameless.key}, []string{"is for no host"}},
		{"a chain", TLSFiles{Certificate: file("c", 0o644, good.cert, ca.file), Key: good.key}, nil},
		{"another's chain", TLSFiles{Certificate: file("c", 0o644, good.cert, other.file), Key: good.key},
			[]string{"certificate 2, of CN=Other,O=Bank, did not sign"}},
		{"self-signed clients", TLSFiles{Certificate: good.cert, Key: good.key,
			Clients: file("ca", 0o644, ca.file, self.cert)},
			[]string{"certificate 2, of CN=self,O=Bank, self-signed, is no authority's"}},
		{"a client for its authority", TLSFiles{Certificate: good.cert, Key: good.key, Clients: good.cert},
			[]string{"of CN=stint,O=Bank, is no authority's"}},
		{"all at once", TLSFiles{Certificate: expired.cert, Key: readable, Clients: self.cert},
			[]string{"expired at", "has the mode 0644", "is no authority's"}},
		{"a large file", TLSFiles{Certificate: file("c", 0o644, strings.Repeat("x", pemBytesMax+1)), Key: good.key},
			[]string{"has more than"}},
	} {
		_, err := NewTLS(c.files)
		var faults TLSFaults
		if (err != nil) != (c.want != nil) || err != nil && (!errors.As(err, &faults) || len(faults) != len(c.want)) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in %v", c.name, want, err)
			}
		}
	}
}

// TestTLSWarns has a certificate that soon expires be told of.
func TestTLSWarns(t *testing.T) {
	ca := newIssuer(t, "Authority")
	own := ca.issue("stint", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(24 * time.Hour) })
	files, err := NewTLS(TLSFiles{Certificate: own.cert, Key: own.key})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	done := make(chan struct{})
	close(done)
	files.watch(done, slog.New(slog.NewTextHandler(&said, nil)))
	if !strings.Contains(said.String(), "expires soon") || !strings.Contains(said.String(), "CN=stint,O=Bank") {
		t.Error(said.String())
	}
}

// TestPassedFor has a process of a cluster that follows speak for a client whose certificate it has seen. The one that
// leads takes that of a process with its own subject alone.
func TestPassedFor(t *testing.T) {
	ca := newIssuer(t, "Authority")
	own, boss, feed := ca.issue("stint", nil), ca.issue("boss", nil), ca.issue("feed", nil)
	objects := bucket.NewMemory().Client(nil)
	member := func(name string) *service {
		files, err := NewTLS(TLSFiles{Certificate: own.cert, Key: own.key, Clients: ca.file})
		if err != nil {
			t.Fatal(err)
		}
		s := &service{t: t, dir: t.TempDir(), check: theChecker()}
		s.o = ServiceOptions{
			Dir: s.dir, NoLog: true, Engine: engine.Options{ManualOnly: true},
			Server: Options{TLS: files, Tokens: []Token{
				{Name: "ops", Role: RoleAdmin, Subject: "CN=boss,O=Bank"},
				{Name: "feed", Role: RoleReader, Subject: "CN=feed,O=Bank"},
			}},
			Cluster: &Cluster{
				Open: func(ctx context.Context) (journal.Shared, error) {
					return bucket.Open(ctx, objects, bucket.Options{
						Cluster: "c", Name: name, Address: "https" + strings.TrimPrefix(s.base, "http"),
						Lease: time.Second,
					})
				},
				OpenLog: func(ctx context.Context) (SharedLog, error) {
					l, err := bucket.OpenLog(ctx, objects)
					return memoryLog{l}, err
				},
			},
		}
		s.o.Server.Others = x509.NewCertPool()
		s.o.Server.Others.AddCert(ca.cert)
		s.client = ca.trusting(boss.pair)
		s.run()
		t.Cleanup(s.stop)
		return s
	}
	one := member("one")
	two := member("two")
	for _, s := range []*service{one, two} {
		s.base = "https" + strings.TrimPrefix(s.base, "http")
	}
	put := func(s *service, by issued, headers ...string) (status int) {
		t.Helper()
		headers = append(headers, "Content-Type", "text/csv")
		s.eventually("somebody leads", func() bool { // a lease may end on a busy machine
			status = s.as(ca.trusting(by.pair), "PUT", "/v1/hosts", hostsText, headers...).status
			return status != 503
		})
		return status
	}
	two.eventually("there is a plan", func() bool { return two.do("PUT", "/v1/plan", policyText).status == 200 })
	for _, s := range []*service{one, two} {
		if status := put(s, boss); status != 200 {
			t.Error(status)
		}
		// A reader stays one, whoever it says that it is.
		if status := put(s, feed, passedFor, "CN=boss%2CO=Bank"); status != 403 {
			t.Error(status)
		}
		if status := put(s, feed, passedOn, "1", passedFor, "CN=boss%2CO=Bank"); status != 403 {
			t.Error(status)
		}
	}
}
