//go:build !amd64 || purego

package vecpack

// hasAVX2 is false, so that no kernel of four lanes is called.
const hasAVX2 = false

func blockCovers(*uint64, uint64) (set, most uint64) { panic("no AVX2") }

// capacityOfFours is not known to this machine.
func capacityOfFours(_ [][]int64, _, _ []int64) (int64, bool) { return 0, false }

// keysOfFours is not known to this machine.
func keysOfFours([]uint32, []uint64, uint64) int { return 0 }
