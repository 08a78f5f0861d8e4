package store

import (
	"hamr/gobuffer"
)

// Descriptor returns by which descriptor, which stays the object's, its memory is mapped, for
// [gobuffer.Sharing]; nil where it has none of its own, as small objects, or was released.
func (o *Object) Descriptor() *gobuffer.Descriptor {
	c := o.client
	c.mu.Lock()
	defer c.mu.Unlock()
	m := o.held.mapping
	if m == nil || m.slab || m.descriptor < 0 {
		return nil
	}
	return &gobuffer.Descriptor{Number: m.descriptor, Start: m.memory.Region().Address, Size: m.memory.Size(), ReadOnly: true}
}
