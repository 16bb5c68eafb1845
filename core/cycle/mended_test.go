package cycle_test

// mended tells that the engine decides MD plans by docs/spec/md.md: the reference plays that page too.
const mended = true
