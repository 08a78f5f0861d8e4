package bridge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDrainWaitsForCallsThatHaveBegun(t *testing.T) {
	var c calls
	assert.True(t, c.drain(time.Second), "nothing is under way")
	first := c.Enter()
	assert.False(t, c.drain(time.Millisecond))
	second := c.Enter()
	assert.False(t, c.drain(time.Millisecond))
	c.Leave(second)
	assert.False(t, c.drain(time.Millisecond), "the first one goes on")
	time.AfterFunc(10*time.Millisecond, func() { c.Leave(first) })
	assert.True(t, c.drain(time.Minute))
}
