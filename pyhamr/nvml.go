package pyhamr

import "hamr/pyhamr/internal/bridge"

// NVMLInit loads NVIDIA's management library and initialises it, as often as NVMLShutdown ends it.
//
//hamr:blocking
func NVMLInit() (int, error) { return 0, bridge.NVMLInit() }

// NVMLShutdown ends one NVMLInit.
//
//hamr:blocking
func NVMLShutdown() (int, error) { return 0, bridge.NVMLShutdown() }

// NVMLSystem returns what the management library says of itself, by a name of bridge's.
//
//hamr:blocking
func NVMLSystem(what string) (string, error) { return bridge.NVMLSystem(what) }

// NVMLDevice returns what the management library says of a device, as JSON, by a name of bridge's.
// counted asks only between NVMLInit and NVMLShutdown; else the library is initialised for hamr itself.
//
//hamr:blocking
func NVMLDevice(counted bool, device, what string) (string, error) {
	return bridge.NVMLDevice(counted, device, what)
}

// NVMLStatus returns the name of a status and what it means, with a newline between.
func NVMLStatus(code int) string { return bridge.NVMLStatus(code) }

// DeviceProperties returns a line for each property of a device: its name and its value.
//
//hamr:blocking
func DeviceProperties(backend string, device int) (string, error) {
	return bridge.DeviceProperties(backend, device)
}
