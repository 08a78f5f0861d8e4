package cuda

import "hamr/backends"

// Collect makes one stream for each device, on which only waits are enqueued.
func (b *poolFloor) Collect(number int, others ...backends.Stream) (backends.Stream, error) {
	d, err := b.device(number)
	if err != nil {
		return 0, err
	}
	memory := &plainMemory{b, d}
	for _, s := range others {
		if err := memory.captured(s); err != nil {
			return 0, err
		}
	}
	own, err := b.collecting(d)
	if err != nil {
		return 0, err
	}
	for _, s := range others {
		e, err := memory.Record(s)
		if err != nil {
			return 0, err
		}
		err = b.Wait(number, own, e)
		memory.Destroy(e)
		if err != nil {
			return 0, err
		}
	}
	return own, nil
}

func (b *poolFloor) collecting(d *device) (backends.Stream, error) {
	d.mu.Lock()
	own := d.collecting
	d.mu.Unlock()
	if own != 0 {
		return own, nil
	}
	made, err := b.NewStream(d.number)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	if own = d.collecting; own == 0 {
		own, d.collecting = made, made
	}
	d.mu.Unlock()
	if own != made {
		return own, b.DestroyStream(d.number, made)
	}
	return own, nil
}
