package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// TLS names the files with which a client speaks to a service that has certificates, all of them PEM.
type TLS struct {
	CA          string // the authorities whose certificates the service may have; "": those of the machine
	Certificate string // the client's own, by which the service knows it; "": none
	Key         string // of it
}

// HTTP is a client that uses the files. The client's own certificate is read again for each connection, so that one
// that was renewed is used. Errors: files that cannot be read, or are not good.
func (t TLS) HTTP() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: has no certificate in PEM form", t.CA)
		}
	}
	switch {
	case t.Certificate == "" && t.Key == "":
	case t.Certificate == "":
		return nil, fmt.Errorf("%s: a key takes the certificate that it belongs to", t.Key)
	case t.Key == "":
		return nil, fmt.Errorf("%s: a certificate takes its key", t.Certificate)
	default:
		if _, err := t.pair(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.pair() }
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.ForceAttemptHTTP2 = config, false
	return &http.Client{Transport: transport}, nil
}

// pair reads the client's own certificate with its key.
func (t TLS) pair() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	var missing *os.PathError
	switch {
	case errors.As(err, &missing):
		return nil, err
	case err != nil && strings.Contains(err.Error(), "does not match"):
		return nil, fmt.Errorf("%s: is not the key of %s", t.Key, t.Certificate)
	case err != nil:
		return nil, fmt.Errorf("%s and %s: %s", t.Certificate, t.Key, strings.TrimPrefix(err.Error(), "tls: "))
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("%s: the certificate of %s expired at %s", t.Certificate, pair.Leaf.Subject,
			pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return &pair, nil
}

// untrusted says of an error of a call that another try will not mend, what to do about it; nil when it is none.
func untrusted(err error) error {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &unknown) && unknown.Cert != nil:
		return fmt.Errorf("the certificate of the service, of %s, was signed by %s, which is not trusted here: "+
			"name its authority (--ca, STINT_CA): %w", unknown.Cert.Subject, unknown.Cert.Issuer, err)
	case errors.As(err, &unknown):
		return fmt.Errorf("the certificate of the service was signed by nobody who is trusted here: "+
			"name its authority (--ca, STINT_CA): %w", err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate of the service, of %s, has expired or is not valid yet: %w",
			invalid.Cert.Subject, err)
	case errors.As(err, &host) && host.Certificate != nil:
		return fmt.Errorf("the certificate of the service, of %s, is not for %s: ask it by a name that the "+
			"certificate has%s: %w",
			host.Certificate.Subject, host.Host, namesOf(host.Certificate), err)
	case errors.As(err, &invalid), errors.As(err, &host):
		return fmt.Errorf("the certificate of the service is not good: %w", err)
	case errors.As(err, &record):
		return fmt.Errorf("what answers does not speak TLS; http:// in place of https://? %w", err)
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls: "):
		return fmt.Errorf("the service takes no connection without a client certificate that it knows "+
			"(--cert and --key, STINT_CERT and STINT_KEY): %w", err)
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fmt.Errorf("the service does not speak TLS; ask it with http:// in place of https://: %w", err)
	}
	return nil
}

// namesOf lists the first names and addresses that a certificate is for, as ", such as …"; "" when it has none.
func namesOf(c *x509.Certificate) string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return ""
	}
	return ", such as " + strings.Join(names[:min(len(names), 3)], ", ")
}
