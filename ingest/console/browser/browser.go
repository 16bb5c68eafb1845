// Package browser runs a Chromium without a window, for the tests and the pictures of the console.
package browser

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/proto"
)

// ErrNone is the error where there is no Chromium.
var ErrNone = errors.New("there is no Chromium: make test-console installs Debian's; STINT_CHROMIUM names another")

// names are what a Chromium is called.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Find gives the path of the Chromium that there is: the one that STINT_CHROMIUM names, or one on the PATH.
func Find() (string, error) {
	if path := os.Getenv("STINT_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNone
}

// Browser is a Chromium that runs.
type Browser struct {
	*rod.Browser
	cmd *exec.Cmd
	dir string
}

// startMax is how long a Chromium may take to start.
const startMax = 30 * time.Second

// Start starts a Chromium. Nothing is downloaded, nothing of an earlier run is known to it, and it ends with this
// process.
func Start(path string) (b *Browser, err error) {
	b = &Browser{}
	if b.dir, err = os.MkdirTemp("", "chromium"); err != nil {
		return nil, err
	}
	args := []string{
		"--headless", "--remote-debugging-port=0", "--user-data-dir=" + b.dir, "--no-first-run", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
		"--disable-component-update", "--no-proxy-server", "--mute-audio", "--force-color-profile=srgb", "--lang=en-US",
		"--hide-scrollbars=false", "about:blank",
	}
	if os.Geteuid() == 0 {
		args = append([]string{"--no-sandbox"}, args...)
	}
	b.cmd = exec.Command(path, args...)
	endWithParent(b.cmd)
	if err := b.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.dir))
	}
	at, err := b.address()
	if err == nil {
		b.Browser = rod.New().ControlURL(at)
		err = b.Connect()
	}
	if err != nil {
		b.Stop()
		return nil, err
	}
	return b, nil
}

// address waits for the file in which the Chromium says where it listens.
func (b *Browser) address() (string, error) {
	for end := time.Now().Add(startMax); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(filepath.Join(b.dir, "DevToolsActivePort"))
		if port, path, ok := strings.Cut(strings.TrimSpace(string(text)), "\n"); err == nil && ok {
			return "ws://127.0.0.1:" + port + path, nil
		}
	}
	return "", errors.New("the Chromium did not start")
}

// Stop ends the Chromium.
func (b *Browser) Stop() {
	if b.Browser != nil {
		_ = b.Close()
	}
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	_ = os.RemoveAll(b.dir)
}

// Look is how a page is looked at.
type Look struct {
	Width, Height int
	Dark          bool
	Print         bool
}

// As has a page be looked at in another way.
func As(p *rod.Page, look Look) error {
	size := &proto.EmulationSetDeviceMetricsOverride{Width: look.Width, Height: look.Height, DeviceScaleFactor: 1}
	if err := p.SetViewport(size); err != nil {
		return err
	}
	media := proto.EmulationSetEmulatedMedia{Features: []*proto.EmulationMediaFeature{{Name: "prefers-color-scheme",
		Value: "light"}}}
	if look.Dark {
		media.Features[0].Value = "dark"
	}
	if look.Print {
		media.Media = "print"
	}
	return media.Call(p)
}

// Settle waits until a page has nothing under way any more, or for at most so long.
func Settle(p *rod.Page, most time.Duration) {
	_ = p.Timeout(most).WaitDOMStable(200*time.Millisecond, 0)
}
