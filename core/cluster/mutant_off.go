//go:build !mutant

package cluster

// mutant is the wrong behaviour that states show: none, but in builds with the tag mutant.
// What asks for it is not compiled otherwise.
const mutant = 0
