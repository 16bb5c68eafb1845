//go:build !mutant

package ownership

// mutant is the wrong behaviour that assigners show: none, but in builds with the tag mutant.
// What asks for it is not compiled otherwise.
const mutant = 0
