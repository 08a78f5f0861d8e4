// Program objects shares an array between processes by the store: "go run ./examples/objects".
//
// It starts a server, and itself again as a producer that makes an object, seals it and ends. What
// the producer has made is mapped then, by its name, and read in place; nobody can write to it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"hamr/arrayiface"
	"hamr/backends"
	"hamr/backends/all"
	"hamr/gobuffer"
	"hamr/store"
)

const rows, columns = 4, 250_000

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := gobuffer.Use(all.New()...)
	switch {
	case err != nil:
	case len(os.Args) == 3 && os.Args[1] == "produce":
		err = produce(ctx, os.Args[2])
	default:
		err = run(ctx)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// produce makes the field in the store at a path.
func produce(ctx context.Context, path string) error {
	c, err := store.Connect(ctx, path, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	b, err := c.Create(ctx, store.Description{
		Type: arrayiface.Float32, Shape: []int{rows, columns}, Allocator: backends.Malloc, Metadata: []byte(`{"step": 7}`),
	})
	if err != nil {
		return err
	}
	field, err := gobuffer.Typed[float32](b.Array())
	if err != nil {
		return errors.Join(err, b.Abort(ctx))
	}
	err = field.OnHost(ctx, gobuffer.Write, func(values []float32) error {
		for i := range values {
			values[i] = float32(i / columns)
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, b.Abort(ctx))
	}
	o, err := b.Seal(ctx)
	if err != nil {
		return err
	}
	defer o.Release()
	return c.PutName(ctx, "field", o.ID(), false)
}

func run(ctx context.Context) (err error) {
	folder, err := os.MkdirTemp("", "hamr-objects-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	s, err := store.Listen(store.ServerOptions{Path: filepath.Join(folder, "store", "socket"), HostLimit: 64 << 20})
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	defer func() { err = errors.Join(err, s.Close(), <-served) }()

	producer := exec.CommandContext(ctx, os.Args[0], "produce", s.Path())
	producer.Stdout, producer.Stderr = os.Stdout, os.Stderr
	if err := producer.Run(); err != nil {
		return err
	}
	return consume(ctx, s.Path())
}

// consume reads the field where it is.
func consume(ctx context.Context, path string) error {
	c, err := store.Connect(ctx, path, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := c.GetName(ctx, "field", true)
	if err != nil {
		return err
	}
	o, err := c.Get(ctx, id, store.GetOptions{})
	if err != nil {
		return err
	}
	defer o.Release()
	field, err := gobuffer.Typed[float32](o.Array())
	if err != nil {
		return err
	}
	err = field.OnHost(ctx, gobuffer.Read, func(values []float32) error {
		for row := range rows {
			fmt.Println("row", row, "begins with", values[row*columns])
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println("metadata:", string(o.Info().Metadata))
	fmt.Println("writing to it:", field.FillValue(1))
	return c.Delete(ctx, id, false)
}
