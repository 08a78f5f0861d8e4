package backends

// Property is a number that says what code on a device can count on.
type Property struct {
	Name  string
	Value int
}

// PropertyReporter is implemented by backends that know the limits of code on their devices.
type PropertyReporter interface {
	// Properties returns them in a stable order, without those that the runtime does not know. The names are those of
	// CUDA's attributes of devices in lower case, such as "warp_size". Clock rates are in kHz.
	Properties(device int) ([]Property, error)
}
