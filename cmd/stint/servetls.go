package main

import (
	"crypto/tls"
	"errors"

	"github.com/stintd/stint/ingest/server"
)

// tlsConfig is the part of a configuration that has a service speak TLS.
type tlsConfig struct {
	Certificate   string `yaml:"certificate"`
	Key           string `yaml:"key"`
	Clients       string `yaml:"clients"`
	RequireClient bool   `yaml:"require_client"`
	MinVersion    string `yaml:"min_version"`
}

// tlsVersions are the versions that can be asked for at least.
var tlsVersions = map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}

func (c *tlsConfig) on() bool {
	return c.Certificate != "" || c.Key != "" || c.Clients != "" || c.RequireClient
}

// files are the files as the server takes them.
func (c *tlsConfig) files() server.TLSFiles {
	return server.TLSFiles{
		Certificate: c.Certificate, Key: c.Key, Clients: c.Clients, Required: c.RequireClient,
		MinVersion: tlsVersions[c.MinVersion],
	}
}

// validate tells all faults of the values, and of the files that these name.
func (c *tlsConfig) validate(s *settings) {
	if tlsVersions[c.MinVersion] == 0 {
		s.fault("tls.min_version", c.MinVersion, "must be 1.2 or 1.3, in quotes")
	}
	if c.RequireClient && c.Clients == "" {
		s.fault("tls.require_client", "true", "takes tls.clients, the authorities of these certificates")
	}
	whole := true
	for key, v := range map[string]string{"certificate": c.Certificate, "key": c.Key, "clients": c.Clients} {
		switch full := "tls." + key; {
		case v == "" && s.line[full] > 0:
			s.fault(full, v, "must not be empty")
			whole = false
		case v == "" && key != "clients" && c.on():
			s.faults = append(s.faults, settingFault{s.line["tls"], full + ": must be given"})
			whole = false
		}
	}
	if !c.on() || !whole {
		return
	}
	var faults server.TLSFaults
	if _, err := server.NewTLS(c.files()); errors.As(err, &faults) {
		for _, f := range faults {
			s.fault("tls."+f.Setting, f.File, f.Text)
		}
	}
}
