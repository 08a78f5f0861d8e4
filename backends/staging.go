package backends

// Stager is implemented by backends that stage copies between devices and ordinary host memory by way of page-locked
// memory, which several threads fill or empty.
type Stager interface {
	// Staging returns what decides about such copies. Before Probe only SetTrace may be called.
	Staging() Staging
}

// Staging decides which copies are staged, and how. Its methods are safe for concurrent use.
type Staging interface {
	// Report returns the settings in force on a device, in a stable order. It reads what measuring has found, if nobody
	// has yet.
	Report(device int) []StagingFact
	// Tune replaces a file's choice for a direction, up to the device or down, until the process ends.
	Tune(device int, up bool, choice StagingChoice)
	// SetTrace makes f report what the file of measurements says. nil ends that.
	SetTrace(f func(line string))
}

// StagingFact is a setting, its value, and where that comes from.
type StagingFact struct {
	Name, Value, Source string
}

// StagingChoice is what measuring finds for a direction.
type StagingChoice struct {
	// From is the size of the smallest copy that is staged, in bytes; zero chooses, and less leaves
	// all copies to the driver.
	From int
	// Threads is how many copy beside the caller's; zero chooses.
	Threads int
}
