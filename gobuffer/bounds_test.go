package gobuffer

// SetStageBytes makes the pieces of copies between runtimes so large, for tests, and returns how
// large they were.
func SetStageBytes(n int) (before int) {
	before, stageBytes = stageBytes, n
	return before
}
