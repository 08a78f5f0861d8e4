package bridge

import (
	"context"
	"errors"

	"hamr/store"
)

// storeAnswersWithin is how many milliseconds a server that stands still may have a wait take longer than it was to.
const storeAnswersWithin = 100

// getWithin gets an object, and waits for it for so long: 0 is not at all, below 0 for ever. The error is
// context.DeadlineExceeded where there is none by then.
func getWithin(ctx context.Context, c *store.Client, id store.ID, unsealed bool, milliseconds int) (*store.Object, error) {
	return waitingFor(ctx, milliseconds, func(ctx context.Context, wait bool) (*store.Object, error) {
		return c.Get(ctx, id, store.GetOptions{Unsafe: unsealed, Wait: wait})
	})
}

// getNameWithin gets what has a name likewise.
func getNameWithin(ctx context.Context, c *store.Client, name string, milliseconds int) (store.ID, error) {
	return waitingFor(ctx, milliseconds, func(ctx context.Context, wait bool) (store.ID, error) {
		return c.GetName(ctx, name, wait)
	})
}

// waitingFor asks for what is waited for so long. Where the time is over it asks once more what there is now: on a busy
// machine the answer to a short wait may come later than the wait's end.
func waitingFor[T any](ctx context.Context, milliseconds int, ask func(ctx context.Context, wait bool) (T, error)) (T, error) {
	if milliseconds == 0 {
		return ask(ctx, false)
	}
	soon, end := within(ctx, milliseconds)
	defer end()
	found, err := ask(soon, true)
	if !errors.Is(err, context.DeadlineExceeded) {
		return found, err
	}
	last, end := within(ctx, storeAnswersWithin)
	defer end()
	found, err = ask(last, false)
	if errors.As(err, new(*store.NotFoundError)) || errors.As(err, new(*store.NotSealedError)) {
		err = context.DeadlineExceeded
	}
	return found, err
}
