package cuda

// CurrentDevice returns the device of the calling thread's current context; 0 if
// it has none.
func (b *contextFloor) CurrentDevice() (int, error) {
	if len(b.devices) == 1 {
		return 0, nil // whatever context is current
	}
	v := scratch()
	defer visits.Put(v)
	code := b.try(b.driver.CtxGetDevice, v.slot(0))
	if code == invalidContext {
		return 0, nil
	}
	return b.numberOf(int32(v.out[0])), b.finish(b.driver.CtxGetDevice, code)
}

func (b *contextFloor) numberOf(handle int32) int {
	for _, d := range b.devices {
		if d.handle == handle {
			return d.number
		}
	}
	return 0
}

// Activate makes the device's primary context current on the calling thread, as
// the CUDA runtime's cudaSetDevice does, and returns the CUcontext that was, or
// zero.
func (b *contextFloor) Activate(device int) (before uintptr, err error) {
	context, err := b.primaryContext(device)
	if err != nil {
		return 0, err
	}
	v := scratch()
	if err := b.finish(b.getCurrent(v)); err != nil {
		return 0, err
	}
	return uintptr(v.out[0]), b.setCurrent(context)
}

// Context returns the device's primary context, a CUcontext.
func (b *contextFloor) Context(device int) (uintptr, error) { return b.primaryContext(device) }

// Restore makes a CUcontext current again; zero is none.
func (b *contextFloor) Restore(before uintptr) error { return b.setCurrent(before) }
