package hetero

import (
	"fmt"

	"hamr/backends"
	"hamr/gobuffer"
)

var errTokenReleased = fmt.Errorf("a token: %w", ErrReleased)

var errElsewhere error = &gobuffer.ArgumentError{
	Argument: "source", Value: "of another Scheduler", Accepted: "a token or a product of this one",
}

// Token says where a chain of modules runs: CMSSW's CUDAToken. It is safe for concurrent use.
type Token struct {
	line  *line
	usage usage
}

// Place returns the device.
func (t *Token) Place() Place {
	if t == nil || t.line == nil {
		return Place{}
	}
	return t.line.cache.place
}

// Stream returns the stream of the chain. Contexts that are begun from the token have it.
func (t *Token) Stream() backends.Stream {
	if t == nil || t.line == nil {
		return 0
	}
	return t.line.stream
}

// Release gives the stream back when no context and no product has it any more. All calls but the
// first do nothing.
func (t *Token) Release() error {
	if t == nil || t.line == nil || !t.usage.close() {
		return nil
	}
	return t.line.release()
}

func (t *Token) begin(s *Scheduler) (*Context, error) {
	if t == nil || t.line == nil {
		return nil, zeroError("token", "what Choose returns where there is a device")
	}
	if !s.has(t.line.cache) {
		return nil, errElsewhere
	}
	if !t.usage.begin() {
		return nil, errTokenReleased
	}
	//mutate:remove a stream is given back while a context has it
	t.line.retain()
	made := newContext(t.line, t.line.tenant.Add(1))
	return made, t.endUse()
}

func (t *Token) endUse() error {
	if t.usage.end() {
		return t.line.release()
	}
	return nil
}
