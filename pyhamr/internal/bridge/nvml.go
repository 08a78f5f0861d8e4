package bridge

import (
	"strconv"
	"strings"
	"sync"

	"hamr/backends"
	"hamr/backends/nvml"
)

// management is NVIDIA's management library: Python's calls of nvmlInit and nvmlShutdown are counted
// apart from hamr's own use of it, which lasts.
var management = struct {
	*nvml.Library
	sync.Mutex
	users int
	own   bool
}{Library: nvml.New(Settings.Get)}

// NVMLInit initialises the library for its user.
func NVMLInit() (err error) {
	defer Guard(&err)
	if err := management.Init(); err != nil {
		return err
	}
	management.Lock()
	defer management.Unlock()
	management.users++
	return nil
}

// NVMLShutdown ends one NVMLInit. The status is nvml.Uninitialized where there is none.
func NVMLShutdown() (err error) {
	defer Guard(&err)
	m := &management
	m.Lock()
	defer m.Unlock()
	if m.users == 0 {
		return m.Without("nvmlShutdown")
	}
	if err := m.Library.Shutdown(); err != nil {
		return err
	}
	m.users--
	return nil
}

// ready sees to it that the library is initialised: by its user, or for hamr's own use.
func ready(counted bool) error {
	m := &management
	m.Lock()
	defer m.Unlock()
	switch {
	case counted && m.users == 0:
		return m.Without("nvmlInit_v2")
	case counted || m.own:
		return nil
	}
	if err := m.Init(); err != nil {
		return err
	}
	m.own = true
	return nil
}

// NVMLSystem returns "driver", "nvml" or "cuda", which are versions, "count" of devices, or "library", its file.
func NVMLSystem(what string) (_ Rows, err error) {
	defer Guard(&err)
	if err := ready(false); err != nil {
		return nil, err
	}
	switch what {
	case "driver":
		return fact(management.DriverVersion())
	case "nvml":
		return fact(management.Version())
	case "cuda":
		return fact(management.CUDAVersion())
	case "count":
		return fact(management.DeviceCount())
	case "library":
		return one(management.Path()), nil
	}
	return nil, refused("what", what, "driver, nvml, cuda, count or library")
}

// NVMLStatus returns the name of a status and what it means.
func NVMLStatus(code int) (_ Rows, err error) {
	defer Guard(&err)
	status := nvml.Status(code)
	return one(status.String(), management.Text(status)), nil
}

// fact is a reply of one value.
func fact[T any](value T, err error) (Rows, error) { return one(value), err }

// nvmlDevice finds a device: "index:0", "uuid:GPU-…", "bus:0000:01:00.0", or one of a backend's, as "cuda:0".
func nvmlDevice(device string) (nvml.Device, error) {
	kind, value, _ := strings.Cut(device, ":")
	switch kind {
	case "uuid":
		return management.DeviceByUUID(value)
	case "bus":
		return management.DeviceByBusID(value)
	}
	number, err := strconv.Atoi(value)
	if err != nil {
		return nvml.Device{}, refused("device", device, "a kind and a number")
	}
	if kind == "index" {
		return management.DeviceByIndex(number)
	}
	id, err := with(kind, number, func(of backends.Identified, device int) (backends.UUID, error) {
		return of.Identity(device)
	})
	if err != nil {
		return nvml.Device{}, err
	}
	return management.DeviceByIdentity(id)
}

// asked is what NVMLDevice can be asked for.
var asked = map[string]func(d nvml.Device) (Rows, error){
	"handle":      func(d nvml.Device) (Rows, error) { return one(d.Handle()), nil },
	"name":        func(d nvml.Device) (Rows, error) { return fact(d.Name()) },
	"uuid":        func(d nvml.Device) (Rows, error) { return fact(d.UUID()) },
	"serial":      func(d nvml.Device) (Rows, error) { return fact(d.Serial()) },
	"index":       func(d nvml.Device) (Rows, error) { return fact(d.Index()) },
	"temperature": func(d nvml.Device) (Rows, error) { return fact(d.Temperature()) },
	"power":       func(d nvml.Device) (Rows, error) { return fact(d.Power()) },
	"power_limit": func(d nvml.Device) (Rows, error) { return fact(d.PowerLimit()) },
	"persistence": func(d nvml.Device) (Rows, error) { return fact(d.Persistence()) },
	"is_instance": func(d nvml.Device) (Rows, error) { return fact(d.IsInstance()) },
	"clocks":      func(d nvml.Device) (Rows, error) { return clocks(d.Clock) },
	"max_clocks":  func(d nvml.Device) (Rows, error) { return clocks(d.MaxClock) },
	"ecc":         func(d nvml.Device) (Rows, error) { return both(d.ECC()) },
	"mig":         func(d nvml.Device) (Rows, error) { return both(d.InstanceMode()) },
	"pci": func(d nvml.Device) (Rows, error) {
		at, err := d.PCI()
		return one(at.BusID, at.Domain, at.Bus, at.Device), err
	},
	"utilization": func(d nvml.Device) (Rows, error) {
		busy, err := d.Utilization()
		return one(busy.GPU, busy.Memory), err
	},
	"memory": func(d nvml.Device) (Rows, error) {
		m, err := d.Memory()
		if !m.KnowsReserved {
			return one(m.Free, m.Total, m.Used, nil), err
		}
		return one(m.Free, m.Total, m.Used, m.Reserved), err
	},
	"processes": func(d nvml.Device) (Rows, error) {
		list, err := d.Processes()
		rows := make(Rows, len(list))
		for i, p := range list {
			rows[i] = []any{p.PID, p.Graphics, p.Used, p.GPUInstance, p.ComputeInstance}
		}
		return rows, err
	},
	"instances": func(d nvml.Device) (Rows, error) {
		parts, err := d.Instances()
		ids := make([]any, len(parts))
		for i := 0; i < len(parts) && err == nil; i++ {
			ids[i], err = parts[i].UUID()
		}
		return Rows{ids}, err
	},
	"whole": func(d nvml.Device) (Rows, error) {
		whole, err := d.Whole()
		if err != nil {
			return nil, err
		}
		return fact(whole.UUID())
	},
	"instance_ids": func(d nvml.Device) (Rows, error) {
		gpu, compute, err := d.InstanceIDs()
		return one(gpu, compute), err
	},
}

func clocks(of func(nvml.Clock) (int, error)) (Rows, error) {
	var list []any
	for _, clock := range []nvml.Clock{nvml.GraphicsClock, nvml.SMClock, nvml.MemoryClock} {
		rate, err := of(clock)
		if err != nil {
			return nil, err
		}
		list = append(list, rate)
	}
	return Rows{list}, nil
}

func both(now, later bool, err error) (Rows, error) { return one(now, later), err }

// NVMLDevice returns what a device is asked for, by a name of asked. counted asks only between NVMLInit and
// NVMLShutdown; else the library is initialised for hamr itself.
func NVMLDevice(counted bool, device, what string) (_ Rows, err error) {
	defer Guard(&err)
	ask, ok := asked[what]
	if !ok {
		return nil, refused("what", what, "one of the names of facts")
	}
	if err := ready(counted); err != nil {
		return nil, err
	}
	d, err := nvmlDevice(device)
	if err != nil {
		return nil, err
	}
	return ask(d)
}

// DeviceProperties returns the numbers that say what code on a device can count on, each behind its name.
func DeviceProperties(backend string, device int) (Rows, error) {
	return with(backend, device, func(of backends.PropertyReporter, device int) (rows Rows, err error) {
		list, err := of.Properties(device)
		for _, p := range list {
			rows = append(rows, []any{p.Name, p.Value})
		}
		return rows, err
	})
}
