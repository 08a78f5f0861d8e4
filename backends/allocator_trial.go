//go:build trial

package backends

// The allocators of backends/trial, which stands for runtimes to come.
const (
	// Trial is memory behind handles, which the host maps to some place.
	Trial Allocator = Allocator(len(table)) + iota
	// TrialSVM is memory with one address for host and devices, which the host maps there.
	TrialSVM
)

func init() {
	known = added(known, Trial, Facts{Name: "trial", Backend: "trial", Kind: DeviceOnly, Mapped: true, Opaque: true})
	known = added(known, TrialSVM, Facts{Name: "trial_svm", Backend: "trial", Kind: DeviceOnly, Mapped: true})
}
