// Program events reconstructs events on whatever devices there are, and on the CPU where there are
// none: "go run ./examples/events", with HAMR_ACCELERATORS=none for the latter.
//
// It is the configuration of CMSSW's in Go: a chooser decides where an event goes, a filter selects the
// path, modules on a device hand products to each other without waiting for them, the last one awaits
// its results while others go on, and whoever needs the result takes what there is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"slices"
	"sync"

	"hamr/backends/all"
	"hamr/gobuffer"
	"hamr/hetero"
)

const hitsOfEach = 1000

// result is what a path makes of an event.
type result struct {
	sum   float64
	where string
}

func main() {
	log.SetFlags(0)
	count := flag.Int("events", 8, "how many events there are")
	flight := flag.Int("in-flight", 4, "how many of them are worked on at once")
	flag.Parse()
	if err := run(context.Background(), *count, *flight); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, count, flight int) (err error) {
	if err := gobuffer.Use(all.New()...); err != nil {
		return err
	}
	scheduler, err := hetero.Default()
	if err != nil {
		return err
	}
	chooser, err := scheduler.NewChooser(hetero.ChooserOptions{Policy: hetero.RoundRobin})
	if err != nil {
		return err
	}
	fmt.Println("devices:", len(chooser.Places()))

	events := make(chan int)
	results := make([]*result, count)
	failures := make([]error, count)
	var streams sync.WaitGroup
	for range flight {
		streams.Go(func() {
			for event := range events {
				var err error
				if results[event], err = reconstruct(ctx, scheduler, chooser, event); err != nil {
					failures[event] = fmt.Errorf("event %d: %w", event, err)
				}
			}
		})
	}
	for event := range count {
		events <- event
	}
	close(events)
	streams.Wait()

	for event, found := range results {
		if failures[event] == nil {
			fmt.Printf("event %d: %.0f on %s\n", event, found.sum, found.where)
		}
	}
	return errors.Join(append(failures, scheduler.Trim())...)
}

// reconstruct is the paths of one event: that of a device, that of the CPU, and who takes the result.
func reconstruct(ctx context.Context, s *hetero.Scheduler, chooser *hetero.Chooser, event int) (*result, error) {
	hits := read(event)
	token, err := chooser.Choose(event)
	if err != nil {
		return nil, err
	}
	defer token.Release()
	var fromDevice, fromCPU *result
	if hetero.DeviceFilter(token) {
		fromDevice, err = onDevice(ctx, s, token, hits)
	} else {
		fromCPU = onCPU(hits)
	}
	if err != nil {
		return nil, err
	}
	found, ok := hetero.FirstAvailable(fromDevice, fromCPU)
	if !ok {
		return nil, errors.New("no path has produced it")
	}
	return found, nil
}

// read stands for the detector.
func read(event int) []uint16 {
	hits := make([]uint16, hitsOfEach)
	for i := range hits {
		hits[i] = uint16((i*31 + event*17) % 1021)
	}
	return hits
}

// onCPU makes in one go what the modules of a device make one after the other.
func onCPU(hits []uint16) *result {
	var joined []float32
	for i := 0; i < len(hits); i += 2 {
		joined = append(joined, float32(hits[i]))
	}
	for _, hit := range slices.Backward(hits) {
		joined = append(joined, float32(hit))
	}
	return &result{checksum(joined), hetero.CPU}
}

func checksum(values []float32) (sum float64) {
	for i, v := range values {
		sum += float64(i+1) * float64(v)
	}
	return sum
}

// clusters is what modules on a device hand on. What is copied from stays until the copy is over.
type clusters struct {
	energies *gobuffer.Array
	from     []*gobuffer.Array
}

func (c clusters) close() (failed error) {
	for _, a := range append(c.from, c.energies) {
		failed = errors.Join(failed, a.Close())
	}
	return failed
}

type product = hetero.Product[clusters]

// chain keeps what the modules of an event make, to be given back at its end.
type chain struct {
	*hetero.Scheduler
	mutex sync.Mutex
	made  []*product
	kept  []clusters
}

// produce runs a module: in a context of source's device and, if it is the first, stream. It enqueues
// its work and returns.
func (c *chain) produce(source hetero.Source, module func(*hetero.Context) (clusters, error)) (_ *product, err error) {
	scope, err := c.Begin(source)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scope.End()) }()
	value, err := module(scope)
	if err != nil {
		return nil, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.kept = append(c.kept, value)
	p, err := hetero.Wrap(scope, value)
	if err == nil {
		c.made = append(c.made, p)
	}
	return p, err
}

func (c *chain) release() (failed error) {
	for _, p := range c.made {
		failed = errors.Join(failed, p.Release())
	}
	for _, value := range c.kept {
		failed = errors.Join(failed, value.close())
	}
	return failed
}

// onDevice is a small graph: calibrate → (thin, mirror) → join → the host.
func onDevice(ctx context.Context, s *hetero.Scheduler, token *hetero.Token, hits []uint16) (_ *result, err error) {
	modules := &chain{Scheduler: s}
	defer func() { err = errors.Join(err, modules.release()) }()

	calibrated, err := modules.produce(token, func(scope *hetero.Context) (clusters, error) {
		raw, err := gobuffer.NewWith[uint16](scope.HostOptions(), len(hits))
		if err != nil {
			return clusters{}, err
		}
		if err := raw.Put(0, hits); err != nil {
			return clusters{}, errors.Join(err, raw.Close())
		}
		energies, err := raw.Copy(scope.Options(), gobuffer.TypeOf[float32]())
		return clusters{energies, []*gobuffer.Array{raw.Array}}, err
	})
	if err != nil {
		return nil, err
	}

	// Two consumers at the same time: one goes on on the stream, the other has one of its own.
	steps := []struct{ start, stop, step int }{{0, hitsOfEach, 2}, {hitsOfEach - 1, -1, -1}}
	parts := make([]*product, len(steps))
	failures := make([]error, len(steps))
	var consumers sync.WaitGroup
	for i, each := range steps {
		consumers.Go(func() {
			parts[i], failures[i] = modules.produce(calibrated, func(scope *hetero.Context) (clusters, error) {
				in, err := hetero.Get(scope, calibrated)
				if err != nil {
					return clusters{}, err
				}
				view, err := in.energies.Slice(0, each.start, each.stop, each.step)
				if err != nil {
					return clusters{}, err
				}
				out, err := view.Copy(scope.Options(), gobuffer.TypeOf[float32]())
				return clusters{out, []*gobuffer.Array{view}}, err
			})
		})
	}
	consumers.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}

	joined, err := modules.produce(parts[0], func(scope *hetero.Context) (clusters, error) {
		out, err := gobuffer.NewWith[float32](scope.Options(), hitsOfEach*3/2)
		if err != nil {
			return clusters{}, err
		}
		at := 0
		for _, part := range parts {
			in, err := hetero.Get(scope, part)
			if err == nil {
				err = out.Set(at, in.energies, 0, in.energies.Size())
				at += in.energies.Size()
			}
			if err != nil {
				return clusters{}, errors.Join(err, out.Close())
			}
		}
		return clusters{energies: out.Array}, nil
	})
	if err != nil {
		return nil, err
	}
	return transfer(ctx, modules, joined)
}

// transfer is external work: acquire enqueues the copy, and when that is over produce reads it. Until
// then the goroutine waits for the channel, and no thread for the device.
func transfer(ctx context.Context, modules *chain, p *product) (_ *result, err error) {
	scope, err := modules.Begin(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, scope.End()) }()
	in, err := hetero.Get(scope, p)
	if err != nil {
		return nil, err
	}
	copied, err := in.energies.Copy(scope.HostOptions(), gobuffer.TypeOf[float32]())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	if err := <-scope.Done(ctx); err != nil {
		return nil, err
	}

	energies, err := gobuffer.Typed[float32](copied)
	if err != nil {
		return nil, err
	}
	found := &result{where: scope.Place().String()}
	err = energies.OnHost(ctx, gobuffer.Read, func(values []float32) error {
		found.sum = checksum(values)
		return nil
	})
	return found, err
}
