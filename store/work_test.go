package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/store/internal/protocol"
)

// expected reports whether an error is one that others may cause at any time.
func expected(err error) bool {
	return errors.As(err, new(*NotFoundError)) || errors.As(err, new(*NotSealedError)) ||
		errors.As(err, new(*DeletedError)) ||
		errors.As(err, new(*FullError)) || errors.As(err, new(*NameTakenError)) || errors.As(err, new(*LostError)) ||
		errors.As(err, new(*SealedError))
}

// whole returns an error unless an object holds what its maker meant it to before it was sealed.
func whole(o *Object) error {
	var value byte
	if _, err := fmt.Sscan(string(o.Info().Metadata), &value); err != nil {
		return fmt.Errorf("metadata %q: %w", o.Info().Metadata, err)
	}
	buffer, err := gobuffer.Typed[uint8](o.Array())
	if err != nil {
		return err
	}
	values := make([]byte, buffer.Size())
	if err := buffer.Get(0, values); err != nil {
		return err
	}
	for i, got := range values {
		if got != value {
			return fmt.Errorf("%v is torn: element %d of %d is %d, not %d", o, i, len(values), got, value)
		}
	}
	return nil
}

// workHelper uses a store at random, while other processes do and die.
func workHelper(arguments []string) error {
	seed, _ := strconv.ParseUint(arguments[1], 10, 64)
	steps, _ := strconv.Atoi(arguments[2])
	random := rand.New(rand.NewPCG(seed, 2))
	var c *Client
	var err error
	for range 2000 {
		if c, err = helperClient(arguments[0]); err == nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	var kept []*Object
	lost := 0
	for i := 0; i < steps; i++ {
		err := work(c, random, &kept)
		if errors.As(err, new(*LostError)) {
			if lost++; lost > 4000 {
				return err
			}
			time.Sleep(2 * time.Millisecond)
			i--
		} else if err != nil && !expected(err) {
			return err
		}
	}
	for _, o := range kept {
		if err := errors.Join(whole(o), o.Release()); err != nil {
			return err
		}
	}
	return c.Close()
}

func work(c *Client, random *rand.Rand, kept *[]*Object) error {
	some := func() (ID, error) {
		list, _, err := c.List(background, ListOptions{})
		if err != nil || len(list) == 0 {
			return protocol.NewID(), err
		}
		return list[random.IntN(len(list))].ID, nil
	}
	keep := func(o *Object) error {
		if err := whole(o); err != nil {
			return err
		}
		*kept = append(*kept, o)
		if len(*kept) > 8 {
			i := random.IntN(len(*kept))
			o = (*kept)[i]
			*kept = append((*kept)[:i], (*kept)[i+1:]...)
			return errors.Join(whole(o), o.Release())
		}
		return nil
	}
	switch random.IntN(7) {
	case 0, 1:
		value := byte(random.IntN(256))
		what := bytesOf([]int{10, 1000, 30_000, 100_000, 400_000}[random.IntN(5)])
		what.Metadata = []byte(strconv.Itoa(int(value)))
		what.Evictable = random.IntN(2) == 0
		if random.IntN(3) == 0 {
			what.Allocator = backends.CUDA
		}
		b, err := c.Create(background, what)
		if err != nil {
			return err
		}
		buffer, err := gobuffer.Typed[uint8](b.Array())
		if err != nil {
			return err
		}
		if err := buffer.FillValue(value); err != nil {
			return err
		}
		if random.IntN(6) == 0 {
			return b.Abort(background)
		}
		o, err := b.Seal(background)
		if err != nil {
			return err
		}
		if random.IntN(4) == 0 {
			if err := c.PutName(background, strconv.Itoa(random.IntN(5)), o.ID(), true); err != nil && !expected(err) {
				return err
			}
		}
		return keep(o)
	case 2:
		id, err := some()
		if err != nil {
			return err
		}
		o, err := c.Get(background, id, GetOptions{})
		if err != nil {
			return err
		}
		return keep(o)
	case 3, 4, 5:
		return workMany(c, random, some, keep)
	}
	id, err := some()
	if err != nil {
		return err
	}
	return c.Delete(background, id, random.IntN(3) == 0)
}
