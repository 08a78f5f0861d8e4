package backendtest

import (
	"fmt"

	"hamr/backends"
)

// Describe returns the facts "name" and "uuid".
func (f *fakeMemory) Describe(device int) ([][2]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Describe", "%d", device); err != nil {
		return nil, err
	}
	if err := f.checkDevice("Describe", device); err != nil {
		return nil, err
	}
	return [][2]string{
		{"name", fmt.Sprintf("Fake %s device %d", f.Name(), device)},
		{"uuid", f.identity(device).String()},
	}, nil
}

// Identity returns what FakeOptions.Identities says.
func (f *fakeMemory) Identity(device int) (backends.UUID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Identity", "%d", device); err != nil {
		return backends.UUID{}, err
	}
	if err := f.checkDevice("Identity", device); err != nil {
		return backends.UUID{}, err
	}
	return f.identity(device), nil
}

func (f *fakeMemory) identity(device int) (id backends.UUID) {
	if device < len(f.options.Identities) {
		return f.options.Identities[device]
	}
	copy(id[:], fmt.Sprintf("fake %s %d", f.Name(), device))
	return id
}

// Context returns a number for each device.
func (f *fakeMemory) Context(device int) (uintptr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("Context", "%d", device); err != nil {
		return 0, err
	}
	return f.context(device), f.checkDevice("Context", device)
}

func (f *fakeMemory) context(device int) uintptr { return firstContext + uintptr(device)*16 }

const firstContext = 0xC0000

// MoveToAnotherContext makes memory one of a context that is not the Fake's own.
func (f *fakeMemory) MoveToAnotherContext(base backends.Address) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.elsewhere[base] = true
}

// SynchronizeContext finishes the work of the device that the context stands for, and of
// the one that memory has been moved to.
func (f *fakeMemory) SynchronizeContext(context uintptr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.enter("SynchronizeContext", "%#x", context); err != nil {
		return err
	}
	for device := range f.options.Devices {
		if f.context(device) == context || f.context(device)+1 == context {
			f.finishDevice(device)
			f.settled++
		}
	}
	return nil
}

// Settled returns how often SynchronizeContext found work of a device to wait for.
func (f *fakeMemory) Settled() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.settled
}
