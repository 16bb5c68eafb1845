//go:build !mutant

package md

// mutant is the wrong behaviour that the planner shows: none, but in builds with the tag mutant.
// What asks for it is not compiled otherwise.
const mutant = 0
