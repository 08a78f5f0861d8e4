// Program heat lets heat flow along a rod and saves the temperatures for NumPy.
//
// It is a module of its own, as a user's: copy this folder, say in the copy where hamr is
// by "go mod edit -replace hamr=/where/hamr/is", and "go run . -out rod.npy".
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"hamr/backends"
	"hamr/backends/all"
	"hamr/gobuffer"
)

// Kelvin is a temperature. A buffer of it holds what one of float64 does.
type Kelvin float64

func (k Kelvin) String() string { return fmt.Sprintf("%.2f K", float64(k)) }

const room = Kelvin(293.15)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "the file to save, as rod.npy; none by default")
	steps := flag.Int("steps", 200, "how often heat flows")
	flag.Parse()
	if err := run(context.Background(), *steps, *out); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, steps int, out string) (err error) {
	if err := gobuffer.Use(all.New()...); err != nil {
		return err
	}
	runtime, err := gobuffer.Default()
	if err != nil {
		return err
	}

	// The buffer's elements are those of the slice: what hamr changes, cells has.
	cells := slices.Repeat([]Kelvin{room}, 40)
	rod, err := gobuffer.Adopt(cells)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rod.Close()) }()
	if err := rod.Put(18, []Kelvin{600, 700, 600}); err != nil {
		return err
	}
	fmt.Println("heated:", cells[17:22])

	// A longer rod needs memory of the buffer's own; cells stay what they were.
	if err := rod.ResizeValue(60, room); err != nil {
		return err
	}
	// On a machine without a device that is host memory. The code below is the same.
	if err := rod.Move(runtime.DeviceAllocator(), 0); err != nil {
		return err
	}
	if err := tell(ctx, "before:", rod); err != nil {
		return err
	}
	err = rod.OnHost(ctx, gobuffer.ReadWrite, func(rod []Kelvin) error {
		for range steps {
			flow(rod)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if err := tell(ctx, "after: ", rod); err != nil {
		return err
	}
	if out == "" {
		return nil
	}

	// The file has single precision; the rod stays as it is.
	copied, err := rod.Copy(gobuffer.Options{Allocator: backends.Malloc}, gobuffer.TypeOf[float32]())
	if err != nil {
		return err
	}
	defer copied.Close()
	single, err := gobuffer.Typed[float32](copied)
	if err != nil {
		return err
	}
	return save(ctx, out, single)
}

// flow moves heat between neighbours; none leaves the ends.
func flow(rod []Kelvin) {
	const share = 0.25
	for i, left := 0, rod[0]; i < len(rod); i++ {
		here, right := rod[i], rod[min(i+1, len(rod)-1)]
		rod[i] += share * (left - 2*here + right)
		left = here
	}
}

func tell(ctx context.Context, when string, rod *gobuffer.Buffer[Kelvin]) error {
	return rod.OnHost(ctx, gobuffer.Read, func(cells []Kelvin) error {
		sum := Kelvin(0)
		for _, cell := range cells {
			sum += cell
		}
		hottest := slices.MaxFunc(cells, cmp.Compare[Kelvin])
		fmt.Println(when, len(cells), "cells, hottest", hottest, "mean", sum/Kelvin(len(cells)))
		return nil
	})
}

// save writes a file that numpy.load reads, of elements of whatever type.
func save[T gobuffer.Element](ctx context.Context, name string, b *gobuffer.Buffer[T]) error {
	const before, align = 10, 64 // bytes in front of the header; what the elements are aligned to
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", b.Type().Typestr(), b.Size())
	header += strings.Repeat(" ", align-(before+len(header)+1)%align) + "\n"
	var file bytes.Buffer
	file.WriteString("\x93NUMPY\x01\x00")
	file.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(header))))
	file.WriteString(header)
	err := b.OnHost(ctx, gobuffer.Read, func(values []T) error {
		return binary.Write(&file, binary.LittleEndian, values)
	})
	if err != nil {
		return err
	}
	return os.WriteFile(name, file.Bytes(), 0o666)
}
