//go:build !amd64 || purego

package vecpack

// capacityOfFours is not known to this machine.
func capacityOfFours(_ [][]int64, _, _ []int64) (int64, bool) { return 0, false }
