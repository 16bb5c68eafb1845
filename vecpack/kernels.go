package vecpack

// Kernels names the kernels in use on this processor: avx2, or portable where it has none of those that there are, or
// the build leaves them out (purego).
func Kernels() string {
	if hasAVX2 {
		return "avx2"
	}
	return "portable"
}
