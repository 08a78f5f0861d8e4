package gobuffer

import (
	"fmt"
	"strings"

	"hamr/backends"
)

// checkShape compares the threads with what the device has.
func (k *Kernel) checkShape(shape backends.LaunchShape) error {
	f := &k.facts
	if err := checkAxes("grid", "blocks", shape.Grid, f.MostGrid); err != nil {
		return err
	}
	if err := checkAxes("block", "threads", shape.Block, f.MostBlock); err != nil {
		return err
	}
	threads := uint64(shape.Block[0]) * uint64(shape.Block[1]) * uint64(shape.Block[2])
	if f.Threads > 0 && threads > uint64(f.Threads) {
		return valueError("block", fmt.Sprintf("%s, which is %d threads", axes(shape.Block), threads),
			fmt.Sprintf("up to %d threads for %s on device %d", f.Threads, k.name, k.on.Device))
	}
	if int(shape.Shared) > f.MostShared {
		return valueError("shared", shape.Shared,
			fmt.Sprintf("0 … %d bytes for %s on device %d", f.MostShared, k.name, k.on.Device))
	}
	return nil
}

func axes(values [3]uint32) string {
	return fmt.Sprintf("(%d, %d, %d)", values[0], values[1], values[2])
}

func checkAxes(argument, of string, values, most [3]uint32) error {
	for i, n := range values {
		if n == 0 || (most[i] > 0 && n > most[i]) {
			upTo := make([]string, 3)
			for axis, m := range most {
				upTo[axis] = fmt.Sprintf("1 … %d", m)
				if m == 0 {
					upTo[axis] = "1 or more"
				}
			}
			return valueError(argument, axes(values), strings.Join(upTo, ", ")+" "+of)
		}
	}
	return nil
}

const pointerSize = 8

// checkArguments compares the arguments with the parameters, and asks whether the kernel may use them.
func (k *Kernel) checkArguments(arguments []Argument) error {
	if known := k.facts.Parameters; k.facts.KnowsParameters && len(known) != len(arguments) {
		return typeError("the number of arguments of "+k.name, len(arguments), fmt.Sprint(len(known)))
	} else if len(arguments) > unknownParameters {
		return typeError("the number of arguments of "+k.name, len(arguments), fmt.Sprintf("0 … %d", unknownParameters))
	}
	for i, argument := range arguments {
		size := argument.Size
		if argument.Array != nil {
			size = pointerSize
		}
		if k.facts.KnowsParameters && size != k.facts.Parameters[i] {
			return typeError(fmt.Sprintf("argument %d of %s", i, k.name), fmt.Sprintf("of %d bytes", size),
				fmt.Sprintf("one of %d bytes, as the parameter has", k.facts.Parameters[i]))
		}
		if argument.Array == nil {
			if argument.Value == nil {
				return valueError(fmt.Sprintf("argument %d of %s", i, k.name), "nil", "an array, or where a value is")
			}
			continue
		}
		if err := k.checkArray(argument.Array, argument.Reads, fmt.Sprintf("argument %d of %s", i, k.name)); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kernel) checkArray(a *Array, reads bool, name string) error {
	if err := a.check(); err != nil {
		return err
	}
	if a.memory == nil {
		return nil
	}
	if a.fixed && !reads {
		return valueError(name, "a read-only buffer", "a writable one, or In(buffer) where the kernel only reads it")
	}
	if err := k.module.runtime.claims.refuseUse(a.all(), a.holder, !reads); err != nil {
		return err
	}
	if err := a.memory.there(); err != nil {
		return err
	}
	reached, err := k.reaches(a)
	if err != nil || reached {
		return err
	}
	home := a.memory.region
	where := fmt.Sprintf("a buffer of %s on device %d", home.Allocator, home.Device)
	if home.Device == backends.HostDevice {
		where = fmt.Sprintf("a buffer of %s in host memory", home.Allocator)
	}
	return valueError(name, where, fmt.Sprintf("memory that %s device %d uses in place; In, Out and InOut bring it there",
		k.module.backend.Name(), k.on.Device))
}

// reaches reports whether the kernel uses the array's elements where they are.
func (k *Kernel) reaches(a *Array) (bool, error) {
	for _, s := range backends.Spaces() {
		if s.Backend() != k.module.backend.Name() {
			continue
		}
		if a.inPlace(s, k.on.Device) {
			return true, nil
		}
		if a.options.Allocator.SharedWith(s) {
			said, err := a.shares(s, k.on.Device)
			return said.Is, err
		}
	}
	return false, nil
}

// hold keeps the memory of kernels' arguments from being paused until release is called.
func (r *Runtime) hold(arguments []Argument) (release func(), err error) {
	if r.pauses.ever.Load() == 0 {
		return func() {}, nil
	}
	var releases []func()
	release = func() {
		for _, each := range releases {
			each()
		}
	}
	for _, argument := range arguments {
		a := argument.Array
		if a == nil || a.memory == nil || a.memory.pauser == nil {
			continue
		}
		each, err := a.memory.pauser.Hold(a.memory.region)
		if err != nil {
			release()
			return nil, err
		}
		releases = append(releases, each)
	}
	return release, nil
}
