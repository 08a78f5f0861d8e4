package gobuffer

import (
	"context"

	"hamr/arrayiface"
	"hamr/backends"
)

// The methods that a Buffer has of its Array, and a Slice of its Handle. Were they those of
// the embedded pointer alone, a nil Buffer's would end the program before they are entered.

// array is nil where b is.
func (b *Buffer[T]) array() *Array {
	if b == nil {
		return nil
	}
	return b.Array
}

// Access is [Array.Access].
func (b *Buffer[T]) Access(s backends.Space, device int) (*Handle, error) {
	return b.array().Access(s, device)
}

// AccessMode is [Array.AccessMode].
func (b *Buffer[T]) AccessMode(s backends.Space, device int, mode Mode) (*Handle, error) {
	return b.array().AccessMode(s, device, mode)
}

// Accessible is [Array.Accessible].
func (b *Buffer[T]) Accessible(s backends.Space) bool { return b.array().Accessible(s) }

// Address is [Array.Address].
func (b *Buffer[T]) Address() backends.Address { return b.array().Address() }

// Allocator is [Array.Allocator].
func (b *Buffer[T]) Allocator() backends.Allocator { return b.array().Allocator() }

// Append is [Array.Append].
func (b *Buffer[T]) Append(other *Array) error { return b.array().Append(other) }

// Assign is [Array.Assign].
func (b *Buffer[T]) Assign(other *Array) error { return b.array().Assign(other) }

// Before is [Array.Before].
func (b *Buffer[T]) Before(s backends.Stream) error { return b.array().Before(s) }

// Cached is [Array.Cached].
func (b *Buffer[T]) Cached(on bool) error { return b.array().Cached(on) }

// Capacity is [Array.Capacity].
func (b *Buffer[T]) Capacity() int { return b.array().Capacity() }

// Changed is [Array.Changed].
func (b *Buffer[T]) Changed() error { return b.array().Changed() }

// Close is [Array.Close].
func (b *Buffer[T]) Close() error { return b.array().Close() }

// Copy is [Array.Copy].
func (b *Buffer[T]) Copy(o Options, t arrayiface.ElementType) (*Array, error) {
	return b.array().Copy(o, t)
}

// Covering is [Array.Covering].
func (b *Buffer[T]) Covering() (s backends.Stream, busy bool, err error) { return b.array().Covering() }

// Fill is [Array.Fill].
func (b *Buffer[T]) Fill(value *Array) error { return b.array().Fill(value) }

// Free is [Array.Free].
func (b *Buffer[T]) Free() error { return b.array().Free() }

// Growing is [Array.Growing].
func (b *Buffer[T]) Growing(is, sole bool) *Array { return b.array().Growing(is, sole) }

// Grows is [Array.Grows].
func (b *Buffer[T]) Grows() bool { return b.array().Grows() }

// HeldBy is [Array.HeldBy].
func (b *Buffer[T]) HeldBy(holder uint32) *Array { return b.array().HeldBy(holder) }

// InOrder is [Array.InOrder].
func (b *Buffer[T]) InOrder() *Array { return b.array().InOrder() }

// Holder is [Array.Holder].
func (b *Buffer[T]) Holder() uint32 { return b.array().Holder() }

// Index is [Array.Index].
func (b *Buffer[T]) Index(dim, i int) (*Array, error) { return b.array().Index(dim, i) }

// IsCached is [Array.IsCached].
func (b *Buffer[T]) IsCached() bool { return b.array().IsCached() }

// Layout is [Array.Layout].
func (b *Buffer[T]) Layout() arrayiface.Layout { return b.array().Layout() }

// Lent is [Array.Lent].
func (b *Buffer[T]) Lent() *Array { return b.array().Lent() }

// Memory is [Array.Memory].
func (b *Buffer[T]) Memory() *Memory { return b.array().Memory() }

// Move is [Array.Move].
func (b *Buffer[T]) Move(to backends.Allocator, device int) error { return b.array().Move(to, device) }

// On is [Array.On].
func (b *Buffer[T]) On(ctx context.Context, s backends.Space, device int, mode Mode, f func(*Handle) error) error {
	return b.array().On(ctx, s, device, mode, f)
}

// Options is [Array.Options].
func (b *Buffer[T]) Options() Options { return b.array().Options() }

// Owner is [Array.Owner].
func (b *Buffer[T]) Owner() int { return b.array().Owner() }

// Pending is [Array.Pending].
func (b *Buffer[T]) Pending() (bool, error) { return b.array().Pending() }

// Reaches is [Array.Reaches].
func (b *Buffer[T]) Reaches(s backends.Space, device int) (bool, error) {
	return b.array().Reaches(s, device)
}

// ReadOnly is [Array.ReadOnly].
func (b *Buffer[T]) ReadOnly() bool { return b.array().ReadOnly() }

// Reserve is [Array.Reserve].
func (b *Buffer[T]) Reserve(n int, value *Array) error { return b.array().Reserve(n, value) }

// Reshape is [Array.Reshape].
func (b *Buffer[T]) Reshape(shape []int, c Copying) (reshaped *Array, view bool, err error) {
	return b.array().Reshape(shape, c)
}

// ResizeShape is [Array.ResizeShape].
func (b *Buffer[T]) ResizeShape(shape []int, value *Array) error {
	return b.array().ResizeShape(shape, value)
}

// Set is [Array.Set].
func (b *Buffer[T]) Set(at int, other *Array, start, n int) error {
	return b.array().Set(at, other, start, n)
}

// SetStream is [Array.SetStream].
func (b *Buffer[T]) SetStream(s backends.Stream, t Transfer) error { return b.array().SetStream(s, t) }

// SetTransfer is [Array.SetTransfer].
func (b *Buffer[T]) SetTransfer(t Transfer) { b.array().SetTransfer(t) }

// Size is [Array.Size].
func (b *Buffer[T]) Size() int { return b.array().Size() }

// Slice is [Array.Slice].
func (b *Buffer[T]) Slice(dim, start, stop, step int) (*Array, error) {
	return b.array().Slice(dim, start, stop, step)
}

// Stream is [Array.Stream].
func (b *Buffer[T]) Stream() backends.Stream { return b.array().Stream() }

// String is [Array.String].
func (b *Buffer[T]) String() string { return b.array().String() }

// Swap is [Array.Swap].
func (b *Buffer[T]) Swap(other *Array) error { return b.array().Swap(other) }

// Synchronize is [Array.Synchronize].
func (b *Buffer[T]) Synchronize() error { return b.array().Synchronize() }

// Text is [Array.Text].
func (b *Buffer[T]) Text(limit int) (string, error) { return b.array().Text(limit) }

// Transfer is [Array.Transfer].
func (b *Buffer[T]) Transfer() Transfer { return b.array().Transfer() }

// Type is [Array.Type].
func (b *Buffer[T]) Type() arrayiface.ElementType { return b.array().Type() }

// Write is [Array.Write].
func (b *Buffer[T]) Write(other *Array) error { return b.array().Write(other) }

// Until is [Array.Until].
func (b *Buffer[T]) Until(stop *backends.Stop) *Array { return b.array().Until(stop) }

// handle is nil where s is.
func (s *Slice[T]) handle() *Handle {
	if s == nil {
		return nil
	}
	return s.Handle
}

// Address is [Handle.Address].
func (s *Slice[T]) Address() backends.Address { return s.handle().Address() }

// Array is [Handle.Array].
func (s *Slice[T]) Array() (*Array, error) { return s.handle().Array() }

// Commit is [Handle.Commit].
func (s *Slice[T]) Commit() error { return s.handle().Commit() }

// CommitUntil is [Handle.CommitUntil].
func (s *Slice[T]) CommitUntil(stop *backends.Stop) error { return s.handle().CommitUntil(stop) }

// Detach is [Handle.Detach].
func (s *Slice[T]) Detach() *Memory { return s.handle().Detach() }

// Holder is [Handle.Holder].
func (s *Slice[T]) Holder() uint32 { return s.handle().Holder() }

// Layout is [Handle.Layout].
func (s *Slice[T]) Layout() arrayiface.Layout { return s.handle().Layout() }

// LeaveStream is [Handle.LeaveStream].
func (s *Slice[T]) LeaveStream() { s.handle().LeaveStream() }

// Memory is [Handle.Memory].
func (s *Slice[T]) Memory() *Memory { return s.handle().Memory() }

// ReadOnly is [Handle.ReadOnly].
func (s *Slice[T]) ReadOnly() bool { return s.handle().ReadOnly() }

// Release is [Handle.Release].
func (s *Slice[T]) Release() error { return s.handle().Release() }

// Stream is [Handle.Stream].
func (s *Slice[T]) Stream() backends.Stream { return s.handle().Stream() }

// String is [Handle.String].
func (s *Slice[T]) String() string { return s.handle().String() }

// Kept is [Handle.Kept].
func (s *Slice[T]) Kept() bool { return s.handle().Kept() }

// Temporary is [Handle.Temporary].
func (s *Slice[T]) Temporary() bool { return s.handle().Temporary() }
