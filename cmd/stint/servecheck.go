package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sys/unix"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/server"
)

// checkServe tells all faults of a configuration, or the settings of a service that would run by it. read is the fault
// of reading; without a configuration nothing else is known. Nothing is written and no socket is opened.
func checkServe(w io.Writer, c *serveConfig, read error, logAlone bool) error {
	if c == nil {
		return read
	}
	name := c.file
	if name == "" {
		name = "the defaults"
	}
	faults := []error{read}
	fault := func(key string, err error) {
		if err == nil {
			return
		}
		for line := range strings.Lines(err.Error()) {
			at := name
			if n := c.line[key]; n > 0 {
				at += fmt.Sprintf(":%d", n)
			}
			faults = append(faults, fmt.Errorf("%s: %s: %s", at, key, strings.TrimSpace(line)))
		}
	}
	listens, err := c.listens()
	fault("listen", err)
	policy, err := c.checkPlan()
	fault("plan", err)
	data := "not used: a log is shown alone"
	if !logAlone {
		data, err = c.checkFolder()
		fault("data", err)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s: no faults\n", name)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  listens\t%s\n  callers\t%s\n  data\t%s\n  policy\t%s\n", listens, c.callers(), data, policy)
	if warning := server.CertificateWarning(c.TLS.Certificate); warning != "" {
		fmt.Fprintf(t, "  warning\t%s\n", warning)
	}
	return t.Flush()
}

// listens tells where a service would listen. Errors: no address, or one on which it may not.
func (c *serveConfig) listens() (string, error) {
	if c.Listen == "" {
		return "", nil // told already
	}
	addr, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return "", err
	}
	o := server.Options{Tokens: c.tokens(), Insecure: c.Insecure}
	text := "http://" + addr.String()
	if c.TLS.on() {
		o.TLS = &server.TLS{} // whether its files are good is told already
		text = fmt.Sprintf("https://%s, TLS from %s on", addr, c.TLS.MinVersion)
	}
	if err := o.MayListen(addr.IP); err != nil {
		return "", fmt.Errorf("%q: %w", c.Listen, err)
	}
	if !c.TLS.on() && c.Insecure && !addr.IP.IsLoopback() {
		text += ", without TLS (insecure: true)"
	}
	return text, nil
}

// callers tells the callers that the service knows.
func (c *serveConfig) callers() string {
	if len(c.Tokens) == 0 {
		return "whoever reaches this loopback address may do everything: there are no tokens"
	}
	secrets, subjects := 0, 0
	for _, t := range c.Tokens {
		if t.SHA256 != "" {
			secrets++
		}
		if t.Subject != "" {
			subjects++
		}
	}
	tokens := count(int64(len(c.Tokens)), "token")
	text := fmt.Sprintf("%s: %d by secret, %d by client certificates", tokens, secrets, subjects)
	if c.TLS.RequireClient {
		text += ", which are required"
	}
	return text
}

// checkPlan reads the policy to begin with.
func (c *serveConfig) checkPlan() (string, error) {
	if c.Plan == "" {
		return "none to begin with: PUT /v1/plan comes first", nil
	}
	g, err := readInput(kindPlan, c.Plan)
	if err != nil {
		return "", err
	}
	p, err := plan.Parse(c.Plan, g.content)
	if err != nil {
		return "", err
	}
	if !slices.Equal(slices.Sorted(slices.Values(p.DivisionNames())), slices.Sorted(slices.Values(c.Divisions.Names))) {
		return "", fmt.Errorf("%s: its divisions are [%s], those of the configuration [%s] (divisions.names)",
			c.Plan, strings.Join(p.DivisionNames(), ", "), strings.Join(c.Divisions.Names, ", "))
	}
	return fmt.Sprintf("%s, with %d consumers, while the service has none", c.Plan, len(p.Path)-1), nil
}

// checkFolder looks at the folder of a service: whether there is one, of what version, and whether it can be written.
func (c *serveConfig) checkFolder() (string, error) {
	if c.Data == "" {
		return "", nil // told already
	}
	info, err := os.Stat(c.Data)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		above := c.Data
		for errors.Is(err, fs.ErrNotExist) {
			above = filepath.Dir(above)
			info, err = os.Stat(above)
		}
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s: not a directory", above)
		}
		if err == nil && unix.Access(above, unix.W_OK|unix.X_OK) != nil {
			err = fmt.Errorf("%s: this user may make no folder in it", above)
		}
		return c.Data + ", which will be made", err
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s: not a directory", c.Data)
	case unix.Access(c.Data, unix.R_OK|unix.W_OK|unix.X_OK) != nil:
		return "", fmt.Errorf("%s: this user may not write to it", c.Data)
	}
	if err := server.CheckFolder(c.Data); err != nil {
		return "", err
	}
	if !c.Cluster.on() {
		if err := server.CheckDivisions(c.Data, c.Divisions.Names); err != nil {
			return "", err
		}
	}
	if _, err := os.Stat(filepath.Join(c.Data, "journal")); err != nil {
		return c.Data + ", which has no journal yet", nil
	}
	return c.Data + ", which has a journal", nil
}
