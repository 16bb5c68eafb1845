package server

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TLSFiles are the files from which a service has its certificate.
type TLSFiles struct {
	Certificate string // PEM: the service's own certificate, then those that lead from it to an authority
	Key         string // PEM: its private key, which others must not be able to read
	Clients     string // PEM: the authorities whose client certificates are taken; "": none are
	Required    bool   // a connection without a client certificate ends in its handshake
	MinVersion  uint16 // of TLS; 0: 1.2
}

// TLSFault is what is wrong with one of the files.
type TLSFault struct {
	Setting string // certificate, key or clients
	File    string
	Text    string
}

// Error names the file and says what is wrong.
func (f *TLSFault) Error() string { return f.File + ": " + f.Text }

// TLSFaults are all that is wrong with the files.
type TLSFaults []*TLSFault

// Error has a line for each fault.
func (f TLSFaults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

func (f *TLSFaults) add(setting, file, format string, args ...any) {
	*f = append(*f, &TLSFault{setting, file, fmt.Sprintf(format, args...)})
}

const (
	pemBytesMax    = 1 << 20
	authoritiesMax = 1000
	chainMax       = 16
	expiryWarning  = 14 * 24 * time.Hour
	expiryRepeat   = 24 * time.Hour
	watchEvery     = 5 * time.Second
	keyModeBad     = 0o027 // what the mode of a key file must not have: more than its owner's, and reading by a group
)

// TLS is what a service needs to speak TLS. Connections that are open go on with what they began with when the files
// change.
type TLS struct {
	mu    sync.Mutex // of files and loaded while they are read again
	files TLSFiles
	state atomic.Pointer[tlsState]
}

// tlsState is the content of the files at one time.
type tlsState struct {
	config  *tls.Config
	leaf    *x509.Certificate
	subject string         // of leaf; "": it has none
	clients *x509.CertPool // nil: no client certificates are taken
	digest  [sha256.Size]byte
}

// NewTLS reads the files. Errors: TLSFaults, with all that is wrong with them.
func NewTLS(files TLSFiles) (*TLS, error) {
	state, faults := loadTLS(files, time.Now())
	if len(faults) > 0 {
		return nil, faults
	}
	t := &TLS{files: files}
	t.state.Store(state)
	return t, nil
}

// Reload reads the files again, which may be others than before. Connections that come from then on go by them. Errors,
// after which all stays as it was: TLSFaults.
func (t *TLS) Reload(files TLSFiles) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state, faults := loadTLS(files, time.Now())
	if len(faults) > 0 {
		return false, faults
	}
	changed = files != t.files || state.digest != t.state.Load().digest
	t.files = files
	if changed {
		t.state.Store(state)
	}
	return changed, nil
}

// Files are those that were read last.
func (t *TLS) Files() TLSFiles {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.files
}

// TakesClients tells whether client certificates are taken.
func (t *TLS) TakesClients() bool { return t.state.Load().clients != nil }

// config is for a listener: each connection goes by the files as they were read last.
func (t *TLS) config() *tls.Config {
	return &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.state.Load().config, nil },
	}
}

// loadTLS reads the files, and finds all that is wrong with them.
func loadTLS(files TLSFiles, now time.Time) (*tlsState, TLSFaults) {
	var faults TLSFaults
	hash := sha256.New()
	read := func(setting, file string) []byte {
		text, err := readPEM(file)
		if err != nil {
			faults.add(setting, file, "%v", err)
		}
		fmt.Fprintf(hash, "%s %d\n", setting, len(text))
		hash.Write(text)
		return text
	}
	certificate, key := read("certificate", files.Certificate), read("key", files.Key)
	state := &tlsState{}
	var chain []*x509.Certificate
	if certificate != nil {
		chain = checkChain(certificate, files.Certificate, now, &faults)
	}
	if key != nil {
		checkKeyFile(key, files.Key, &faults)
	}
	if files.Clients != "" {
		if text := read("clients", files.Clients); text != nil {
			state.clients = authorities("clients", text, files.Clients, now, &faults)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	pair, err := tls.X509KeyPair(certificate, key)
	switch {
	case err != nil && strings.Contains(err.Error(), "does not match"):
		faults.add("key", files.Key, "is not the key of %s, which is for %s", files.Certificate, subjectOf(chain[0]))
	case err != nil:
		faults.add("key", files.Key, "%s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	if len(faults) > 0 {
		return nil, faults
	}
	state.leaf = chain[0]
	if n, err := nameOf(chain[0].RawSubject); err == nil {
		state.subject = n.String()
	}
	hash.Sum(state.digest[:0])
	state.config = &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: max(files.MinVersion, tls.VersionTLS12),
		NextProtos: []string{"http/1.1"},
	}
	if state.clients != nil {
		// Unless they are required, certificates are judged with the request, which can be told what is wrong with
		// them.
		state.config.ClientAuth, state.config.ClientCAs = tls.RequestClientCert, state.clients
		if files.Required {
			state.config.ClientAuth = tls.RequireAndVerifyClientCert
		}
	}
	return state, nil
}

// readPEM reads a file.
func readPEM(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, plainPathError(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, pemBytesMax+1))
	switch {
	case err != nil:
		return nil, plainPathError(err)
	case len(text) > pemBytesMax:
		return nil, fmt.Errorf("has more than %d bytes", pemBytesMax)
	}
	return text, nil
}

// plainPathError leaves the operation and the name out, which are told already.
func plainPathError(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// certificatesOf are the certificates of a PEM text.
func certificatesOf(text []byte) (list []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			if strings.Contains(block.Type, "PRIVATE KEY") {
				return nil, errors.New("has a private key; only certificates belong here")
			}
			return nil, fmt.Errorf("has a PEM block %q; only certificates belong here", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d cannot be read: %s", len(list)+1,
				strings.TrimPrefix(err.Error(), "x509: "))
		}
		if list = append(list, c); len(list) > authoritiesMax {
			return nil, fmt.Errorf("has more than %d certificates", authoritiesMax)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("has no certificate in PEM form")
	}
	return list, nil
}

// checkChain reads the service's own certificates, and finds what is wrong with them.
func checkChain(text []byte, file string, now time.Time, faults *TLSFaults) []*x509.Certificate {
	chain, err := certificatesOf(text)
	if err != nil {
		faults.add("certificate", file, "%v", err)
		return nil
	}
	if len(chain) > chainMax {
		faults.add("certificate", file, "has %d certificates; a chain has at most %d", len(chain), chainMax)
	}
	for i, c := range chain {
		if why := validAt(c, now); why != "" {
			faults.add("certificate", file, "certificate %d, of %s, %s", i+1, subjectOf(c), why)
		}
		if i > 0 && chain[i-1].CheckSignatureFrom(c) != nil {
			faults.add("certificate", file, "certificate %d, of %s, did not sign the one before it", i+1, subjectOf(c))
		}
	}
	if len(chain[0].DNSNames)+len(chain[0].IPAddresses) == 0 {
		faults.add("certificate", file, "the certificate of %s is for no host: it has no DNS name and no address "+
			"(subject alternative names)", subjectOf(chain[0]))
	}
	return chain
}

// checkKeyFile finds out who may read a private key.
func checkKeyFile(text []byte, file string, faults *TLSFaults) {
	block, _ := pem.Decode(text)
	switch {
	case block == nil:
		faults.add("key", file, "has no private key in PEM form")
		return
	case block.Type == "CERTIFICATE" && !bytes.Contains(text, []byte("PRIVATE KEY")):
		faults.add("key", file, "has a certificate and no private key")
		return
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		faults.add("key", file, "is encrypted; a key without a passphrase is needed")
	}
	info, err := os.Stat(file)
	if err != nil {
		faults.add("key", file, "%v", plainPathError(err))
		return
	}
	if mode := info.Mode().Perm(); mode&keyModeBad != 0 {
		faults.add("key", file,
			"has the mode %04o: others may read or change the private key; chmod 0600, or 0640 for a group",
			mode)
	}
}

// authorities reads the authorities that sign the certificates of others.
func authorities(setting string, text []byte, file string, now time.Time, faults *TLSFaults) *x509.CertPool {
	list, err := certificatesOf(text)
	if err != nil {
		faults.add(setting, file, "%v", err)
		return nil
	}
	pool := x509.NewCertPool()
	for i, c := range list {
		switch why := validAt(c, now); {
		case !c.BasicConstraintsValid || !c.IsCA:
			self := ""
			if selfSigned(c) {
				self = " self-signed,"
			}
			faults.add(setting, file, "certificate %d, of %s,%s is no authority's (CA:TRUE is missing): "+
				"certificates that signed others belong here", i+1, subjectOf(c), self)
		case why != "":
			faults.add(setting, file, "certificate %d, of %s, %s", i+1, subjectOf(c), why)
		default:
			pool.AddCert(c)
		}
	}
	return pool
}

// CertificateWarning returns a warning about a certificate file that is legal and will surprise its owner, or "".
func CertificateWarning(file string) string {
	if file == "" {
		return ""
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "" // an error of the settings
	}
	list, err := certificatesOf(text)
	if err != nil || len(list) == 0 || list[0].PublicKeyAlgorithm != x509.Ed25519 {
		return ""
	}
	return file + ": has an Ed25519 key, which no browser accepts: the console cannot be opened; use a P-256 key"
}

// validAt tells why a certificate is not valid at a time, "" when it is.
func validAt(c *x509.Certificate, now time.Time) string {
	switch {
	case now.After(c.NotAfter):
		return "expired at " + c.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(c.NotBefore):
		return "is valid only from " + c.NotBefore.UTC().Format(time.RFC3339) + " on"
	}
	return ""
}

// watch reads the files again every so often, and takes them when they have changed, until done is closed. It says when
// the certificate is about to expire.
func (t *TLS) watch(done <-chan struct{}, log *slog.Logger) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var failed string
	var warned time.Time
	for {
		leaf := t.state.Load().leaf
		if left := time.Until(leaf.NotAfter); left < expiryWarning && time.Since(warned) > expiryRepeat {
			warned = time.Now()
			log.Warn("the TLS certificate of the service expires soon, or has",
				"subject", subjectOf(leaf), "expires", leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
		switch changed, err := t.Reload(t.Files()); {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			log.Error("the TLS files have changed and are not good: those that were read before stay", "error", err)
		case err == nil:
			if failed = ""; changed {
				log.Info("the TLS files have changed: new connections go by them", "expires",
					t.expires().UTC().Format(time.RFC3339))
			}
		}
	}
}

// toOthers is how a process of a cluster speaks to another one: with its own certificate, as long as the service has
// one.
func (t *TLS) toOthers(authorities *x509.CertPool) *tls.Config {
	c := &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	if t != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &t.state.Load().config.Certificates[0], nil
		}
	}
	return c
}

// Authorities reads a file of authorities. Errors: TLSFaults.
func Authorities(file string) (*x509.CertPool, error) {
	var faults TLSFaults
	text, err := readPEM(file)
	if err != nil {
		faults.add("authorities", file, "%v", err)
		return nil, faults
	}
	pool := authorities("authorities", text, file, time.Now(), &faults)
	if len(faults) > 0 {
		return nil, faults
	}
	return pool, nil
}

// attachTLS adds when the service's certificate expires.
func (m *Metrics) attachTLS(t *TLS) {
	if t == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "stint_tls_certificate_expiry_timestamp_seconds",
		Help: "When the service's TLS certificate expires, since 1970.",
	}, func() float64 { return float64(t.expires().Unix()) }))
}

// subject is that of the service's own certificate, "" when it has none.
func (t *TLS) subject() string { return t.state.Load().subject }

// expires is when the service's certificate does.
func (t *TLS) expires() time.Time { return t.state.Load().leaf.NotAfter }

// handshakeTimeMax is how long an answer of a handshake may take to be sent; how long it waits for the client is told
// by the deadline of reading, as for a header.
const handshakeTimeMax = 10 * time.Second

// handshake does the handshake of a connection, and tells a client that speaks plain HTTP what it does wrong.
func (c *conn) handshake() error {
	_ = c.Conn.SetWriteDeadline(time.Now().Add(handshakeTimeMax))
	err := c.tls.Handshake()
	if err == nil {
		return c.Conn.SetWriteDeadline(time.Time{})
	}
	c.l.s.o.Metrics.refused("handshake")
	c.l.s.o.Log.Debug("a TLS handshake failed", "address", c.RemoteAddr().String(), "error", err)
	var record tls.RecordHeaderError
	if errors.As(err, &record) && record.Conn != nil && looksLikeHTTP(record.RecordHeader) {
		const detail = "This service speaks HTTPS: ask it with https:// in place of http://.\n"
		_ = record.Conn.SetWriteDeadline(time.Now().Add(lingerTimeMax))
		_, _ = fmt.Fprintf(record.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"+
			"Content-Length: %d\r\n\r\n%s", len(detail), detail)
	}
	return err
}

// looksLikeHTTP tells whether what came in place of a handshake is a request.
func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

// certified is the subject of the certificate that a client gave with its connection, "" when it gave none. Errors: the
// certificate is not taken.
func (c *conn) certified(t *TLS) (subject string, err error) {
	if c == nil || c.tls == nil {
		return "", nil
	}
	peers := c.tls.ConnectionState().PeerCertificates
	state := t.state.Load()
	if len(peers) == 0 || state.clients == nil {
		return "", nil
	}
	if c.judged.by != state.clients { // the authorities are others than at the last request
		c.judged = judge(peers, state.clients)
	}
	switch why := validAt(peers[0], time.Now()); {
	case why != "": // also where the connection has outlived its certificate
		return "", fmt.Errorf("the client certificate of %s %s", subjectOf(peers[0]), why)
	case c.judged.why != nil:
		return "", c.judged.why
	}
	return c.judged.subject, nil
}

// judgment is whether a connection's certificate is taken, by the authorities there were then.
type judgment struct {
	by      *x509.CertPool
	subject string
	why     error // nil: it is
}

// judge verifies a client's certificate, and reads its subject.
func judge(peers []*x509.Certificate, clients *x509.CertPool) judgment {
	j := judgment{by: clients, why: verify(peers, clients)}
	if j.why != nil {
		return j
	}
	n, err := nameOf(peers[0].RawSubject)
	if err == nil {
		err = n.fault()
	}
	if err != nil {
		j.why = fmt.Errorf("the client certificate of %s is not taken: %w", subjectOf(peers[0]), err)
		return j
	}
	j.subject = n.String()
	return j
}

// verify tells why a client's certificate is not taken, nil when it is.
func verify(peers []*x509.Certificate, clients *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range peers[1:] {
		between.AddCert(c)
	}
	leaf := peers[0]
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots: clients, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unknown) && selfSigned(leaf):
		return fmt.Errorf("the client certificate of %s is self-signed: "+
			"one that an authority of this service has signed is needed", subjectOf(leaf))
	case errors.As(err, &unknown):
		return fmt.Errorf("the client certificate of %s was signed by %s, which is no authority of this service",
			subjectOf(leaf), issuerOf(leaf))
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return fmt.Errorf("the certificate of %s is not for clients (extended key usage)", subjectOf(leaf))
	}
	return fmt.Errorf("the client certificate of %s is not taken: %s", subjectOf(leaf),
		strings.TrimPrefix(err.Error(), "x509: "))
}
