package hetero_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/backendtest"
	"hamr/gobuffer"
	"hamr/hetero"
)

// once tells an error of its work to who asks first, as SYCL does, and takes its time over it.
type once struct {
	*backendtest.Fake
	asked chan struct{}
	told  atomic.Bool
}

func (o *once) Done(int, backends.Event) (bool, error) {
	if o.told.Swap(true) {
		return true, nil
	}
	close(o.asked)
	time.Sleep(20 * time.Millisecond)
	return false, errInjected
}

// Who asks while somebody else is being told that the work has failed must not take it for done.
func TestAFailureThatIsToldOnceIsEverybodys(t *testing.T) {
	t.Setenv(hetero.AcceleratorsSetting, "")
	for name, first := range map[string]func(p *hetero.Product[int]) <-chan error{
		"Pending": func(p *hetero.Product[int]) <-chan error {
			told := make(chan error, 1)
			go func() { _, err := p.Pending(); told <- err }()
			return told
		},
		"Done": func(p *hetero.Product[int]) <-chan error { return p.Done(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			device := &once{Fake: backendtest.NewFake(late), asked: make(chan struct{})}
			r, err := gobuffer.NewRuntime(device)
			require.NoError(t, err)
			s := hetero.New(r)
			chooser, err := s.NewChooser(hetero.ChooserOptions{})
			require.NoError(t, err)
			var contexts []*hetero.Context
			for range 2 {
				token, err := chooser.Choose(0)
				require.NoError(t, err)
				ctx, err := s.Begin(token)
				require.NoError(t, err)
				contexts = append(contexts, ctx)
			}
			p, err := hetero.Wrap(contexts[0], 7)
			require.NoError(t, err)
			told := first(p)
			<-device.asked
			_, err = hetero.Get(contexts[1], p)
			require.ErrorIs(t, err, errInjected)
			require.ErrorIs(t, receive(t, told), errInjected)
			require.NoError(t, p.Release())
		})
	}
}

// The stream is the context's until what a migration enqueues is there, whoever ends the context.
func TestAContextEndsAfterAMigration(t *testing.T) {
	w := newWorld(t, 2, late)
	from, to := w.begin(cuda0), w.begin(hetero.Place{Backend: "cuda", Device: 1})
	p, err := hetero.Wrap(from, 1)
	require.NoError(t, err)
	w.finish()
	_, err = hetero.Migrate(to, p, func(value int, _ hetero.Place) (int, error) {
		require.NoError(t, to.End())
		other, err := w.scheduler.TakeStream(to.Place())
		require.NoError(t, err)
		assert.NotEqual(t, to.Stream(), other)
		return value, w.scheduler.GiveStream(to.Place(), other)
	})
	require.NoError(t, errors.Join(err, p.Release(), from.End()))
}
