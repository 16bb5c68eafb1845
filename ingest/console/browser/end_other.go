//go:build !linux

package browser

import "os/exec"

// endWithParent does nothing: a process that ends in an orderly way ends its Chromium (Stop).
func endWithParent(*exec.Cmd) {}
