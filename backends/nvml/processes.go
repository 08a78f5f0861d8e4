package nvml

import (
	"encoding/binary"
	"strings"
	"unsafe"
)

var (
	computeProcesses = function{
		"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses",
	}
	graphicsProcesses = function{
		"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
		"nvmlDeviceGetGraphicsRunningProcesses",
	}
)

// Absent is what Process has for a number that the library does not tell.
const Absent = -1

// Process is one that uses a device. Of one with both kinds of context there are two.
type Process struct {
	PID                          int
	Graphics                     bool  // else it computes
	Used                         int64 // bytes; Absent where the driver does not tell, as in a container or by MIG
	GPUInstance, ComputeInstance int   // of MIG; Absent where there is none
}

// Processes returns the processes that compute on the device, then those that draw.
func (d Device) Processes() ([]Process, error) {
	list, err := d.processes(computeProcesses, false)
	if err != nil {
		return nil, err
	}
	drawing, err := d.processes(graphicsProcesses, true)
	if status := StatusOf(err); status == NotSupported || status == FunctionNotFound {
		err = nil
	}
	return append(list, drawing...), err
}

const (
	fewProcesses  = 32
	mostProcesses = 1 << 20
	// largestRecord is room for each version's: 16 bytes, 24 with the instances and, in one series of
	// drivers alone, 32.
	largestRecord = 32
)

func (d Device) processes(f function, graphics bool) ([]Process, error) {
	for room := fewProcesses; ; {
		records := make([]byte, room*largestRecord)
		count := new(uint32)
		*count = uint32(room)
		err := d.call(f, d.handle, uintptr(unsafe.Pointer(count)), uintptr(unsafe.Pointer(unsafe.SliceData(records))))
		if StatusOf(err) == InsufficientSize && room < mostProcesses {
			room = max(room*2, min(int(*count)+fewProcesses, mostProcesses)) // more may start meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		size := d.library.recordSize(f)
		list := make([]Process, min(int(*count), room))
		for i := range list {
			list[i] = processOf(records[i*size:(i+1)*size], graphics)
		}
		return list, nil
	}
}

// recordSize is how many bytes the library's version of a function writes for each process. The
// drivers of series 530 have a field more behind _v3, by the header of CUDA 12.1 alone.
func (l *Library) recordSize(f function) int {
	_, name := l.find(f)
	switch {
	case !strings.HasSuffix(name, "_v2") && !strings.HasSuffix(name, "_v3"):
		return 16
	case strings.HasSuffix(name, "_v3"):
		if version, err := l.DriverVersion(); err == nil && strings.HasPrefix(version, "530.") {
			return largestRecord
		}
	}
	return 24
}

func processOf(record []byte, graphics bool) Process {
	p := Process{
		PID: int(binary.NativeEndian.Uint32(record)), Graphics: graphics,
		Used: int64(binary.NativeEndian.Uint64(record[8:])), GPUInstance: Absent, ComputeInstance: Absent,
	}
	if len(record) >= 24 {
		p.GPUInstance = int(int32(binary.NativeEndian.Uint32(record[16:])))
		p.ComputeInstance = int(int32(binary.NativeEndian.Uint32(record[20:])))
	}
	return p
}
