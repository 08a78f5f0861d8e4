//go:build race

package cuda

// raceDetector makes pools forget at random.
const raceDetector = true
