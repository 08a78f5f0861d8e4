package waiting

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// steadyClock is a clock whose sleeps and yields take the time that they are given, and no more.
type steadyClock struct {
	now            time.Duration
	yields, sleeps int
	ended          bool
}

func (c *steadyClock) start()                    {}
func (c *steadyClock) waited() time.Duration     { return c.now }
func (c *steadyClock) yield()                    { c.yields++; c.now += time.Microsecond }
func (c *steadyClock) sleep(pause time.Duration) { c.sleeps++; c.now += pause }
func (c *steadyClock) end()                      { c.ended = true }

func TestAWaitEndsSoonAfterItsWork(t *testing.T) {
	for work := 20 * time.Microsecond; work < 50*time.Millisecond; work += work / 7 {
		c := &steadyClock{}
		over, err := poll(&Pauses{clock: c}, 50*time.Millisecond, func() (bool, error) { return c.now >= work, nil })
		require.NoError(t, err)
		require.True(t, over)
		assert.True(t, c.ended)
		late := c.now - work
		assert.LessOrEqual(t, late, max(10*time.Microsecond, work/100), "after %v", work)
	}
}

func TestALongWaitAsksSeldom(t *testing.T) {
	c := &steadyClock{}
	over, err := poll(&Pauses{clock: c}, 50*time.Millisecond, func() (bool, error) { return false, nil })
	require.NoError(t, err)
	assert.False(t, over)
	assert.LessOrEqual(t, c.yields, 250)
	assert.LessOrEqual(t, c.sleeps, 700)
	assert.Equal(t, 50*time.Millisecond, c.now, "it ends when patience does")
}

func TestAnErrorEndsAWait(t *testing.T) {
	wrong := errors.New("wrong")
	c := &steadyClock{}
	looks := 0
	_, err := poll(&Pauses{clock: c}, time.Second, func() (bool, error) {
		if looks++; looks < 3 {
			return false, nil
		}
		return false, wrong
	})
	assert.ErrorIs(t, err, wrong)
	assert.True(t, c.ended)
}

func TestTheThreadKeepsItsTimerSlack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := timerSlack()
	defer setTimerSlack(before)
	setTimerSlack(12_345)
	meanwhile := uintptr(12_345)
	// Not for so short a time that a busy machine lets the first look be the only one.
	over, err := Poll(10*time.Second, func() (bool, error) {
		meanwhile = min(timerSlack(), meanwhile)
		return meanwhile == 1, nil
	})
	require.NoError(t, err)
	assert.True(t, over)
	assert.Equal(t, uintptr(1), meanwhile)
	assert.Equal(t, uintptr(12_345), timerSlack())
}

func TestASleepIsOfTheLengthThatIsAsked(t *testing.T) {
	c := &steadyClock{}
	pauses := Pauses{clock: c}
	for range 3 {
		pauses.Sleep(time.Second)
	}
	pauses.End()
	assert.Equal(t, 3*time.Second, c.now)
	assert.True(t, c.ended)
}
