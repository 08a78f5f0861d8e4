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
