package deadline

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestItEndsAtItsTime(t *testing.T) {
	c := Until(context.Background(), time.Now().Add(20*time.Millisecond))
	defer c.End()
	require.NoError(t, c.Err())
	assert.Nil(t, c.timed, "it has no timer")
	<-c.Done()
	require.ErrorIs(t, c.Err(), context.DeadlineExceeded)
	at, limited := c.Deadline()
	assert.True(t, limited)
	assert.False(t, time.Now().Before(at))

	over := Until(context.Background(), time.Now())
	require.ErrorIs(t, over.Err(), context.DeadlineExceeded)
	over.End()
	assert.Nil(t, over.timed)
	assert.Nil(t, over.Done(), "its parent's")
}

func TestItEndsWithItsParent(t *testing.T) {
	parent, cancel := context.WithCancel(context.Background())
	c := Until(parent, time.Now().Add(time.Hour))
	defer c.End()
	done := c.Done()
	cancel()
	<-done
	require.ErrorIs(t, c.Err(), context.Canceled)

	soon := Until(context.Background(), time.Now())
	later := Until(soon, time.Now().Add(time.Hour))
	at, _ := later.Deadline()
	until, _ := soon.Deadline()
	assert.Equal(t, until, at)
	require.ErrorIs(t, later.Err(), context.DeadlineExceeded)
}
