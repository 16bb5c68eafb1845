package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInputsThatAreNoFiles reads inputs from pipes and devices: a table through a pipe counts, and what never ends is
// refused at the limit of its format.
func TestInputsThatAreNoFiles(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "demand.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no named pipe here: %v", err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte("consumer,units\n"), 0o600) }()
	b, err := fileBody(pipe, &bars{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	for range 2 { // a call that fails is sent again
		r, err := b.Open()
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "consumer,units\n" || b.ContentType != "text/csv" {
			t.Errorf("%q of %s: %v", text, b.ContentType, err)
		}
	}
	if _, err := fileBody(t.TempDir(), &bars{}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("NOT TESTED: this system has no file /dev/zero, which never ends; a Linux has it")
	}
	if text := command(t, 2, "check", "/dev/zero"); !strings.Contains(text, "/dev/zero: more than 16777216 bytes") {
		t.Error(text)
	}
	if _, err := readInput(kindHosts, "/dev/zero"); err == nil || !strings.Contains(err.Error(), "byte of 0") {
		t.Errorf("hosts: %v", err)
	}
	if _, err := readAtMost(bytes.NewReader(make([]byte, 11)), "x", 10); err == nil {
		t.Error("11 bytes where 10 are the most")
	}
}

// TestEd25519Warning holds that serve --check warns of a certificate that no browser accepts.
func TestEd25519Warning(t *testing.T) {
	dir := t.TempDir()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, public, private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"server.crt": {Type: "CERTIFICATE", Bytes: der},
		"server.key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := filepath.Join(dir, "stint.yaml")
	text := "data: data\ntls: {certificate: server.crt, key: server.key}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := command(t, 0, "serve", "--config", config, "--check"); !strings.Contains(text, "no faults") ||
		!strings.Contains(text, "has an Ed25519 key, which no browser accepts") {
		t.Error(text)
	}
}
