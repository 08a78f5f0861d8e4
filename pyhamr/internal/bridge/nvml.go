package bridge

import (
	"encoding/json"
	"fmt"
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

// NVMLSystem returns "driver", "nvml" or "cuda", which are versions, "count" of devices, or "library",
// its file.
func NVMLSystem(what string) (text string, err error) {
	defer Guard(&err)
	if err := ready(false); err != nil {
		return "", err
	}
	number := func(n int, err error) (string, error) { return strconv.Itoa(n), err }
	switch what {
	case "driver":
		return management.DriverVersion()
	case "nvml":
		return management.Version()
	case "cuda":
		return number(management.CUDAVersion())
	case "count":
		return number(management.DeviceCount())
	case "library":
		return management.Path(), nil
	}
	return "", refused("what", what, "driver, nvml, cuda, count or library")
}

// NVMLStatus returns the name of a status and what it means.
func NVMLStatus(code int) string {
	status := nvml.Status(code)
	return status.String() + "\n" + management.Text(status)
}

// nvmlDevice finds a device: "index:0", "uuid:GPU-…", "bus:0000:01:00.0", or one of a backend's, as
// "cuda:0".
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
	id, err := with(kind, number, func(of backends.Identified, device int) (backends.UUID, error) { return of.Identity(device) })
	if err != nil {
		return nvml.Device{}, err
	}
	return management.DeviceByIdentity(id)
}

// asked is what NVMLDevice can be asked for.
var asked = map[string]func(d nvml.Device) (any, error){
	"handle":      func(d nvml.Device) (any, error) { return d.Handle(), nil },
	"name":        func(d nvml.Device) (any, error) { return d.Name() },
	"uuid":        func(d nvml.Device) (any, error) { return d.UUID() },
	"serial":      func(d nvml.Device) (any, error) { return d.Serial() },
	"index":       func(d nvml.Device) (any, error) { return d.Index() },
	"temperature": func(d nvml.Device) (any, error) { return d.Temperature() },
	"power":       func(d nvml.Device) (any, error) { return d.Power() },
	"power_limit": func(d nvml.Device) (any, error) { return d.PowerLimit() },
	"persistence": func(d nvml.Device) (any, error) { return d.Persistence() },
	"is_instance": func(d nvml.Device) (any, error) { return d.IsInstance() },
	"clocks":      func(d nvml.Device) (any, error) { return clocks(d.Clock) },
	"max_clocks":  func(d nvml.Device) (any, error) { return clocks(d.MaxClock) },
	"ecc":         func(d nvml.Device) (any, error) { return both(d.ECC()) },
	"mig":         func(d nvml.Device) (any, error) { return both(d.InstanceMode()) },
	"pci": func(d nvml.Device) (any, error) {
		at, err := d.PCI()
		return []any{at.BusID, at.Domain, at.Bus, at.Device}, err
	},
	"utilization": func(d nvml.Device) (any, error) {
		busy, err := d.Utilization()
		return []int{busy.GPU, busy.Memory}, err
	},
	"memory": func(d nvml.Device) (any, error) {
		m, err := d.Memory()
		if !m.KnowsReserved {
			return []any{m.Free, m.Total, m.Used, nil}, err
		}
		return []any{m.Free, m.Total, m.Used, m.Reserved}, err
	},
	"processes": func(d nvml.Device) (any, error) {
		list, err := d.Processes()
		rows := make([][]any, len(list))
		for i, p := range list {
			rows[i] = []any{p.PID, p.Graphics, p.Used, p.GPUInstance, p.ComputeInstance}
		}
		return rows, err
	},
	"instances": func(d nvml.Device) (any, error) {
		parts, err := d.Instances()
		ids := make([]string, len(parts))
		for i := 0; i < len(parts) && err == nil; i++ {
			ids[i], err = parts[i].UUID()
		}
		return ids, err
	},
	"whole": func(d nvml.Device) (any, error) {
		whole, err := d.Whole()
		if err != nil {
			return nil, err
		}
		return whole.UUID()
	},
	"instance_ids": func(d nvml.Device) (any, error) {
		gpu, compute, err := d.InstanceIDs()
		return []int{gpu, compute}, err
	},
}

func clocks(of func(nvml.Clock) (int, error)) (any, error) {
	list := make([]int, 3)
	for i, clock := range []nvml.Clock{nvml.GraphicsClock, nvml.SMClock, nvml.MemoryClock} {
		var err error
		if list[i], err = of(clock); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func both(now, later bool, err error) (any, error) { return []bool{now, later}, err }

// NVMLDevice returns as JSON what a device is asked for.
func NVMLDevice(counted bool, device, what string) (text string, err error) {
	defer Guard(&err)
	ask, ok := asked[what]
	if !ok {
		return "", refused("what", what, "one of the names of facts")
	}
	if err := ready(counted); err != nil {
		return "", err
	}
	d, err := nvmlDevice(device)
	if err != nil {
		return "", err
	}
	answer, err := ask(d)
	if err != nil {
		return "", err
	}
	made, err := json.Marshal(answer)
	return string(made), err
}

// DeviceProperties returns the numbers that say what code on a device can count on.
func DeviceProperties(backend string, device int) (string, error) {
	return with(backend, device, func(of backends.PropertyReporter, device int) (string, error) {
		list, err := of.Properties(device)
		var text strings.Builder
		for _, p := range list {
			fmt.Fprintln(&text, p.Name, p.Value)
		}
		return text.String(), err
	})
}
