package export

import (
	"errors"
	"fmt"
	"sort"
)

// Policy is the policy file in force in a cycle, as it was given. It reads the files of cycles that a binary search
// for the cycle of its revision takes, the inputs of that one, and the file. Errors: no such cycle, an input that is
// missing or damaged.
func (r *Reader) Policy(cycle int64) (text []byte, digest string, err error) {
	if err := r.known(cyclesTable, cycle); err != nil {
		return nil, "", err
	}
	revision := func(cycle int64) int64 {
		h, e := again(r, func() (head, error) { return r.head(cycle) })
		err = errors.Join(err, e)
		return h.revision
	}
	want := revision(cycle)
	i := sort.Search(len(r.cycles), func(i int) bool { return r.cycles[i] >= cycle || revision(r.cycles[i]) >= want })
	if err != nil {
		return nil, "", err
	}
	inputs, err := r.Inputs(r.cycles[i])
	if err != nil {
		return nil, "", err
	}
	if i == 0 {
		before, err := r.Before()
		if err != nil {
			return nil, "", err
		}
		inputs = append(before, inputs...)
	}
	for i := len(inputs) - 1; i >= 0; i-- {
		if in := inputs[i]; in.Kind == "plan" {
			text, err := r.InputContent(in.Kind, in.Digest)
			return text, in.Digest, err
		}
	}
	return nil, "", fmt.Errorf("log %s: cycle %d names no policy among its inputs", r.dir, r.cycles[i])
}
