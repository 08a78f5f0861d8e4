package cuda

import (
	"cmp"

	"hamr/backends"
	"hamr/backends/internal/setting"
)

// GridSetting is how many blocks of 256 threads copy blocks of memory between page-locked memory and a device. The
// default fills the bus.
const GridSetting = "HAMR_COPY_GRID"

const (
	mostGrid = 1 << 16
	// downGrid and upGrid fill the bus. More blocks of threads would slow down other kernels: see
	// docs/rationale/movement.md.
	downGrid, upGrid = 4, 16
	// downGridOfRuns fills the bus where each word's run is searched for.
	downGridOfRuns = 8
	// ofCopyEngine is the size of the smallest blocks that the copy engines move as fast as a kernel does.
	ofCopyEngine = 1 << 20
)

func (b *copyFloor) readGrid() error {
	grid, _, err := setting.Number(b.lookup, GridSetting, "a number of blocks of threads", 1, mostGrid)
	b.grid = int(grid)
	return err
}

// gridAcrossBus is how many blocks of threads copy blocks from a device to page-locked memory, or the other way.
func (b *copyFloor) gridAcrossBus(down bool) int { return b.gridOr(down, downGrid) }

// gridOr is the setting, else toHost down and upGrid up.
func (b *copyFloor) gridOr(down bool, toHost int) int {
	if down {
		return cmp.Or(b.grid, toHost)
	}
	return cmp.Or(b.grid, upGrid)
}

// copyAcrossBus copies between page-locked memory and a device: by a kernel, but the largest by the copy engines. It
// enqueues nothing and returns errors.ErrUnsupported where kernels do not run, or not reach all of the host's ends.
func (b *copyFloor) copyAcrossBus(v *visit, d *device, runs []run, down bool, stream backends.Stream) error {
	var known mappedHost
	small, large := make([]run, 0, len(runs)), []run(nil)
	for _, r := range runs {
		if r.size >= ofCopyEngine {
			large = append(large, r)
			continue
		}
		host := r.source
		if down {
			host = r.target
		}
		//mutate:skip a kernel copies memory of the host's that its device does not reach
		if err := known.reach(v, host, r.size); err != nil {
			return err
		}
		small = append(small, r)
	}
	if len(small) > 0 {
		if err := b.copyByKernel(v, d, small, stream, b.driver.MemcpyAsync, b.gridOr(down, downGridOfRuns)); err != nil {
			return err
		}
	}
	if len(large) == 0 {
		return nil
	}
	return v.copyBeside(d, byBatch, stream, func(s backends.Stream) error {
		return b.copyRuns(v, d, large, s, b.driver.MemcpyAsync, byBatch)
	})
}
