package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// authority makes certificates in a folder: NAME.crt and NAME.key.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", time.Hour)
	return a
}

// file is a file of the folder.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue makes a certificate that is valid for so long from now on; the first is the authority's own.
func (a *authority) issue(name string, valid time.Duration) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name, Organization: []string{"Bank"}},
		NotBefore:    time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		c.KeyUsage, c.IPAddresses = x509.KeyUsageDigitalSignature, []net.IP{net.IPv4(127, 0, 0, 1)}
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	of, err := x509.MarshalPKCS8PrivateKey(key)
	err = errors.Join(err,
		os.WriteFile(a.file(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(a.file(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: of}), 0o600))
	if err != nil {
		a.t.Fatal(err)
	}
	return made, key
}

// tlsText is the part of a configuration with the folder's files.
func (a *authority) text(own string) string {
	return fmt.Sprintf("tls: {certificate: %s, key: %s, clients: %s}\n", a.file(own+".crt"), a.file(own+".key"),
		a.file("ca.crt")) + "tokens: [{name: ops, role: admin, subject: \"CN=boss,O=Bank\"}]\n"
}

// TestServeTLS speaks TLS with a service, by flags and by variables, and tells what is wrong where it does not come
// about. Its certificate is replaced while it runs.
func TestServeTLS(t *testing.T) {
	a := newAuthority(t)
	for _, name := range []string{"stint", "boss", "stranger"} {
		a.issue(name, time.Hour)
	}
	a.issue("late", -time.Minute)
	config := quietConfig(t, filepath.Join(t.TempDir(), "data"), a.text("stint"))
	c := startStint(t, "", "serve", "--config", config)
	if !c.until(t, "msg=ready") || !strings.HasPrefix(c.base, "https://") {
		t.Fatal(c.base, c.log)
	}
	dir := "../../testdata/service"
	as := []string{"--ca", a.file("ca.crt"), "--cert", a.file("boss.crt"), "--key", a.file("boss.key"), "--server",
		c.base}
	push := append([]string{"push", "--plan", dir + "/plan.yaml", "--hosts", dir + "/hosts.csv", "--demand", dir +
		"/demand.csv", "--cycle"}, as...)
	if text := command(t, 0, push...); !strings.Contains(text, "cycle 1") {
		t.Error(text)
	}
	if text := command(t, 0, append([]string{"query", "grants"}, as...)...); !strings.Contains(text, "/Risk") {
		t.Error(text)
	}
	if text := command(t, 2, "query", "grants", "--log", "x", "--ca", "y"); !strings.Contains(text,
		"--ca is for --server") {
		t.Error(text)
	}
	t.Setenv(caVariable, a.file("ca.crt"))
	t.Setenv(certVariable, a.file("boss.crt"))
	t.Setenv(keyVariable, a.file("boss.key"))
	if text := command(t, 0, "query", "grants", "--server", c.base); !strings.Contains(text, "/Risk") {
		t.Error(text)
	}
	for _, bad := range []struct {
		ca, cert, key, server, want string
	}{
		{"stranger.crt", "boss.crt", "boss.key", c.base,
			"which is not trusted here: name its authority (--ca, STINT_CA)"},
		{"ca.crt", "stranger.crt", "stranger.key", c.base, "no token of the configuration has this subject"},
		{"ca.crt", "late.crt", "late.key", c.base, "late.crt: the certificate of CN=late,O=Bank expired at"},
		{"ca.crt", "boss.crt", "stranger.key", c.base, "stranger.key: is not the key of"},
		{"ca.key", "boss.crt", "boss.key", c.base, "ca.key: has no certificate in PEM form"},
		{"ca.crt", "boss.crt", "boss.key", "http" + strings.TrimPrefix(c.base, "https"), "ask it with https://"},
	} {
		start := time.Now()
		text := command(t, 2, "query", "grants", "--server", bad.server, "--ca", a.file(bad.ca), "--cert",
			a.file(bad.cert), "--key", a.file(bad.key))
		if !strings.Contains(text, bad.want) || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %s", bad.want, text)
		}
	}
	a.issue("stint", 30*time.Minute)
	_ = c.cmd.Process.Signal(syscall.SIGHUP)
	c.until(t, "SIGHUP: the configuration was read again")
	if text := command(t, 0, "query", "grants", "--server", c.base); !strings.Contains(text, "/Risk") {
		t.Error(text)
	}
	a.issue("stint", -time.Minute)
	_ = c.cmd.Process.Signal(syscall.SIGHUP)
	c.until(t, "SIGHUP: all stays as it was")
	if text := command(t, 0, "query", "grants", "--server", c.base); !strings.Contains(text, "/Risk") ||
		!strings.Contains(c.log.String(), "expired at") {
		t.Error(text, c.log)
	}
}

// TestServeCheck tells all faults of a configuration, and of what it names, and does nothing else.
func TestServeCheck(t *testing.T) {
	a := newAuthority(t)
	a.issue("stint", time.Hour)
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	fine := write("fine.yaml", "data: new/folder\nlisten: 0.0.0.0:7468\n"+a.text("stint"))
	text := command(t, 0, "serve", "--config", fine, "--check")
	for _, want := range []string{"no faults", "https://0.0.0.0:7468, TLS from 1.2 on", "1 by client certificates",
		"which will be made", "PUT /v1/plan"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a check made a folder")
	}
	if text := command(t, 0, "serve", "--check"); !strings.Contains(text, "the defaults: no faults") {
		t.Error(text)
	}
	a.issue("stint", -time.Minute)
	if err := os.Chmod(a.file("stint.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	write("plan.yaml", "stint: 1\nconsumers: [{path: nowhere}]\n")
	file := write("file", "")
	bad := write("bad.yaml", "data: file/below\nlisten: 0.0.0.0:7468\nplan: plan.yaml\nunknown: x\n"+a.text("stint"))
	text = command(t, 2, "serve", "--config", bad, "--check")
	for _, want := range []string{
		`bad.yaml:4: unknown: "x": must be refuse or report`, "bad.yaml:5: tls.certificate: ", "expired at",
		"bad.yaml:5: tls.key: ",
		"has the mode 0644", "bad.yaml:3: plan: ", "nowhere", "bad.yaml:1: data: ", "not a directory",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	plain := write("plain.yaml", "listen: 0.0.0.0:7468\ndata: "+file+"\n"+someTokens)
	if text := command(t, 2, "serve", "--config", plain, "--check"); !strings.Contains(text,
		"plain.yaml:1: listen: ") ||
		!strings.Contains(text, "insecure: true") || !strings.Contains(text, "plain.yaml:2: data: ") {
		t.Error(text)
	}
	newer := filepath.Join(dir, "newer")
	if err := os.Mkdir(newer, 0o700); err != nil {
		t.Fatal(err)
	}
	write("newer/folder.json", `{"format": 2, "stint": "v9.1.0"}`)
	if text := command(t, 2, "serve", "--data", newer, "--check"); !strings.Contains(text,
		"format 2, by stint v9.1.0; this stint reads up to format 1") {
		t.Error(text)
	}
}
