package gobuffer_test

import (
	"context"
	"fmt"
	"log"
	"unsafe"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/all"
	"hamr/gobuffer"
)

func init() {
	if err := gobuffer.Use(all.New()...); err != nil {
		log.Fatal(err)
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// The backends are named by gobuffer.Use(all.New()...), before.
func Example() {
	b, err := gobuffer.New[float64](backends.Malloc, 5)
	must(err)
	defer b.Close()
	ctx := context.Background()
	must(b.OnHost(ctx, gobuffer.Write, func(values []float64) error {
		for i := range values {
			values[i] = float64(i * i)
		}
		return nil
	}))
	must(b.Resize(7))
	must(b.OnHost(ctx, gobuffer.Read, func(values []float64) error {
		fmt.Println(values)
		return nil
	}))
	// Output: [0 1 4 9 16 0 0]
}

func ExampleNew() {
	b, err := gobuffer.New[float32](backends.Malloc, 4)
	must(err)
	defer b.Close()
	must(b.FillValue(1.5))
	text, err := b.Text(0)
	must(err)
	fmt.Println(text)
	// Output: {1.5, 1.5, 1.5, 1.5}
}

func ExampleFrom() {
	b, err := gobuffer.From(backends.CPP, []int64{1, 2, 3})
	must(err)
	defer b.Close()
	fmt.Println(b)
	// Output: buffer of 3 int64 (allocator cpp, owner -1)
}

func ExampleAdopt() {
	type Kelvin float64
	values := []Kelvin{273.15, 293.15}
	b, err := gobuffer.Adopt(values)
	must(err)
	defer b.Close()
	must(b.Put(0, []Kelvin{300}))
	fmt.Println(values, b.Type())
	// Output: [300 293.15] float64
}

func ExampleBuffer_ResizeValue() {
	b, err := gobuffer.From(backends.Malloc, []int32{1, 2})
	must(err)
	defer b.Close()
	must(b.ResizeValue(4, -1))
	must(b.Resize(5))
	text, err := b.Text(0)
	must(err)
	fmt.Println(text)
	// Output: {1, 2, -1, -1, 0}
}

func ExampleBuffer_Put() {
	b, err := gobuffer.From(backends.Malloc, []int32{0, 0, 0, 0})
	must(err)
	defer b.Close()
	must(b.Put(1, []int32{7, 8}))
	values := make([]int32, 3)
	must(b.Get(0, values))
	fmt.Println(values)
	// Output: [0 7 8]
}

func ExampleBuffer_OnHost() {
	b, err := gobuffer.From(backends.Malloc, []float64{1, 2, 3})
	must(err)
	defer b.Close()
	must(b.OnHost(context.Background(), gobuffer.ReadWrite, func(values []float64) error {
		for i := range values {
			values[i] *= 2
		}
		return nil
	}))
	text, err := b.Text(0)
	must(err)
	fmt.Println(text)
	// Output: {2, 4, 6}
}

func ExampleBuffer_HostAccessible() {
	b, err := gobuffer.From(backends.Malloc, []float64{1, 2, 3})
	must(err)
	h, err := b.HostAccessible(context.Background())
	must(err)
	defer h.Release()
	must(b.Close()) // the handle keeps the memory
	sum := 0.0
	for _, v := range h.Slice() {
		sum += v
	}
	fmt.Println(sum, h.Temporary())
	// Output: 6 false
}

func ExampleArray_Append() {
	b, err := gobuffer.From(backends.Malloc, []int32{1, 2})
	must(err)
	defer b.Close()
	c, err := gobuffer.From(backends.Malloc, []float64{3.9, 4.1})
	must(err)
	defer c.Close()
	must(b.Append(c.Array))
	text, err := b.Text(0)
	must(err)
	fmt.Println(text, b.Capacity())
	// Output: {1, 2, 3, 4} 8
}

func ExampleArray_Move() {
	b, err := gobuffer.From(backends.Malloc, []uint8{1, 2, 3})
	must(err)
	defer b.Close()
	must(b.Move(backends.CPP, backends.HostDevice))
	fmt.Println(b.Allocator(), b.Size())
	// Output: cpp 3
}

// Memory that a C library owns becomes an Array without a copy; the library
// hears of it when nobody uses the memory any more.
func ExampleRuntime_Adopt() {
	r, err := gobuffer.Default()
	must(err)
	foreign, err := r.Allocate(backends.Malloc, backends.HostDevice, 12, 0, true) // stands for the library's
	must(err)
	defer foreign.Release()

	m, err := r.Adopt(foreign.Region(), 12, 0, func() { fmt.Println("the owner may have it back") })
	must(err)
	layout, err := arrayiface.NewLayout(arrayiface.Int32, []int{3}, nil)
	must(err)
	o := gobuffer.Options{Allocator: backends.Malloc, Device: backends.HostDevice, Transfer: gobuffer.SyncHost}
	a := gobuffer.View(m, m.Region().Address, layout, 3, false, o)
	one := int8(1)
	value, err := r.NewFilledArray(arrayiface.Int8, []int{}, o,
		gobuffer.Value{Type: arrayiface.Int8, Pointer: unsafe.Pointer(&one)})
	must(err)
	defer value.Close()
	must(a.Fill(value))
	text, err := a.Text(0)
	must(err)
	fmt.Println(text)
	must(a.Close())
	// Output:
	// {1, 1, 1}
	// the owner may have it back
}
