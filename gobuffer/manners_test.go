package gobuffer_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/backends/host"
	"hamr/gobuffer"
)

// receiver is a value that every exported method of its type is called on, without arguments
// or with zero ones.
type receiver struct {
	name string
	make func(*testing.T) any
	// want is what the methods' errors are, nil if each may have one of its own.
	want error
	// harmless are methods that have no error all the same.
	harmless []string
	// zero says that methods without an error return zero values.
	zero bool
}

type kelvin float64

func made(t *testing.T) *gobuffer.Buffer[kelvin] {
	b, err := gobuffer.From(backends.Malloc, []kelvin{1, 2, 3})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b
}

func accessed(t *testing.T) *gobuffer.Slice[kelvin] {
	b := made(t)
	h, err := b.HostAccessible(context.Background())
	require.NoError(t, err)
	require.NoError(t, b.Close())
	t.Cleanup(func() { assert.NoError(t, h.Release()) })
	return h
}

func lent(t *testing.T) *gobuffer.Handle {
	b := made(t)
	h, err := b.AccessMode(backends.SpaceHost, backends.HostDevice, gobuffer.ReadWrite)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	t.Cleanup(func() { assert.NoError(t, h.Release()) })
	return h
}

func fixed(v any) func(*testing.T) any { return func(*testing.T) any { return v } }

// receivers are, for each exported type that has methods, what a program may have of it.
var receivers = []receiver{
	{name: "nil Buffer", make: fixed((*gobuffer.Buffer[kelvin])(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Buffer", make: fixed(&gobuffer.Buffer[kelvin]{}), want: gobuffer.ErrZero, zero: true},
	{name: "Buffer of zero Array", make: fixed(&gobuffer.Buffer[kelvin]{Array: new(gobuffer.Array)}),
		want: gobuffer.ErrZero, zero: true},
	{name: "closed Buffer", make: func(t *testing.T) any {
		b := made(t)
		require.NoError(t, b.Close())
		return b
	}, want: gobuffer.ErrFreed, harmless: []string{"Close"}, zero: true},
	{name: "Buffer", make: func(t *testing.T) any { return made(t) }},

	{name: "nil Array", make: fixed((*gobuffer.Array)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Array", make: fixed(new(gobuffer.Array)), want: gobuffer.ErrZero, zero: true},
	{name: "closed Array", make: func(t *testing.T) any {
		b := made(t)
		require.NoError(t, b.Close())
		return b.Array
	}, want: gobuffer.ErrFreed, harmless: []string{"Close"}, zero: true},
	{name: "Array", make: func(t *testing.T) any { return made(t).Array }},

	{name: "nil Slice", make: fixed((*gobuffer.Slice[kelvin])(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Slice", make: fixed(&gobuffer.Slice[kelvin]{}), want: gobuffer.ErrZero, zero: true},
	{name: "Slice of zero Handle", make: fixed(&gobuffer.Slice[kelvin]{Handle: new(gobuffer.Handle)}),
		want: gobuffer.ErrZero, zero: true},
	{name: "released Slice", make: func(t *testing.T) any {
		h := accessed(t)
		require.NoError(t, h.Release())
		return h
	}, want: gobuffer.ErrFreed, harmless: []string{"Release"}},
	{name: "Slice", make: func(t *testing.T) any { return accessed(t) }},

	{name: "nil Handle", make: fixed((*gobuffer.Handle)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Handle", make: fixed(new(gobuffer.Handle)), want: gobuffer.ErrZero, zero: true},
	{name: "released Handle", make: func(t *testing.T) any {
		h := lent(t)
		require.NoError(t, h.Release())
		return h
	}, want: gobuffer.ErrFreed, harmless: []string{"Release"}},
	{name: "Handle", make: func(t *testing.T) any { return lent(t) }},

	{name: "nil ImportedPool", make: fixed((*gobuffer.ImportedPool)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero ImportedPool", make: fixed(new(gobuffer.ImportedPool)), want: gobuffer.ErrZero, zero: true},
	{name: "nil Kernel", make: fixed((*gobuffer.Kernel)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Kernel", make: fixed(new(gobuffer.Kernel)), want: gobuffer.ErrZero, zero: true},
	{name: "nil Module", make: fixed((*gobuffer.Module)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Module", make: fixed(new(gobuffer.Module)), want: gobuffer.ErrZero, zero: true},
	{name: "nil Memory", make: fixed((*gobuffer.Memory)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Memory", make: fixed(new(gobuffer.Memory)), want: gobuffer.ErrZero, zero: true},
	{name: "Memory", make: func(t *testing.T) any { return accessed(t).Detach() }},

	{name: "nil Parts", make: fixed((*gobuffer.Parts)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Parts", make: fixed(new(gobuffer.Parts)), want: gobuffer.ErrZero, zero: true},
	{name: "closed Parts", make: func(t *testing.T) any {
		p, err := gobuffer.NewParts(made(t).Array, 0)
		require.NoError(t, err)
		p.Close()
		return p
	}, want: gobuffer.ErrFreed},

	{name: "nil Checker", make: fixed((*gobuffer.Checker)(nil)), zero: true},
	{name: "zero Checker", make: fixed(new(gobuffer.Checker)), zero: true},
	{name: "nil Recorder", make: fixed((*gobuffer.Recorder)(nil)), zero: true},
	{name: "zero Recorder", make: fixed(new(gobuffer.Recorder)), zero: true},
	{name: "nil Tracker", make: fixed((*gobuffer.Tracker)(nil)), zero: true},
	{name: "zero Tracker", make: fixed(new(gobuffer.Tracker)), zero: true},
	{name: "nil Runtime", make: fixed((*gobuffer.Runtime)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Runtime", make: fixed(new(gobuffer.Runtime)), want: gobuffer.ErrZero, zero: true},
	{name: "Runtime", make: func(t *testing.T) any {
		r, err := gobuffer.NewRuntime()
		require.NoError(t, err)
		return r
	}},

	{name: "nil Shared", make: fixed((*gobuffer.Shared)(nil)), want: gobuffer.ErrZero, zero: true},
	{name: "zero Shared", make: fixed(new(gobuffer.Shared)), want: gobuffer.ErrZero, zero: true},

	{name: "nil ArgumentError", make: fixed((*gobuffer.ArgumentError)(nil))},
	{name: "zero ArgumentError", make: fixed(new(gobuffer.ArgumentError))},
	{name: "Copying", make: fixed(gobuffer.CopyIfNeeded)},
	{name: "Fault", make: fixed(gobuffer.BadValue)},
	{name: "Library", make: fixed(gobuffer.LibraryHamr)},
	{name: "Mode", make: fixed(gobuffer.Read)},
	{name: "Transfer", make: fixed(gobuffer.Async)},
}

// nobody is what methods without an error return of something without memory where that is
// not the zero value of its type.
var nobody = map[string]any{
	"Allocator":       backends.None,
	"Lease":           -1,
	"DeviceAllocator": backends.None,
	"HostAllocator":   backends.None,
	"Owner":           backends.HostDevice,
	"Options":         gobuffer.Options{Allocator: backends.None, Device: backends.HostDevice},
	"Region":          backends.Region{Allocator: backends.None, Device: backends.HostDevice},
}

// receiverOrText are the methods that return what they are called on, or tell what it is.
var receiverOrText = []string{"Growing", "HeldBy", "InOrder", "Lent", "Retain", "String", "Until"}

var errorType = reflect.TypeFor[error]()

func TestNoMethodPanics(t *testing.T) {
	for _, r := range receivers {
		methods := reflect.TypeOf(r.make(t))
		for i := range methods.NumMethod() {
			m := methods.Method(i)
			t.Run(r.name+"/"+m.Name, func(t *testing.T) {
				arguments := []reflect.Value{reflect.ValueOf(r.make(t))}
				for j := 1; j < m.Type.NumIn() && !(m.Type.IsVariadic() && j == m.Type.NumIn()-1); j++ {
					arguments = append(arguments, reflect.Zero(m.Type.In(j)))
				}
				var results []reflect.Value
				require.NotPanics(t, func() { results = m.Func.Call(arguments) })
				r.judge(t, m, results)
			})
		}
	}
}

func (r receiver) judge(t *testing.T, m reflect.Method, results []reflect.Value) {
	last := len(results) - 1
	if last >= 0 && m.Type.Out(last) == errorType {
		err, _ := results[last].Interface().(error)
		switch {
		case r.want == nil:
		case slices.Contains(r.harmless, m.Name):
			assert.NoError(t, err)
		default:
			assert.ErrorIs(t, err, r.want)
		}
		return
	}
	for _, result := range results {
		got := result.Interface()
		if !r.zero || slices.Contains(receiverOrText, m.Name) {
			continue
		}
		if want, is := nobody[m.Name]; is {
			assert.Equal(t, want, got)
		} else {
			assert.True(t, result.IsZero(), "%v", got)
		}
	}
}

// A new type's methods are called as well.
func TestEveryTypeWithMethodsIsAReceiver(t *testing.T) {
	known := map[string]bool{}
	for _, r := range receivers {
		of := reflect.TypeOf(r.make(t))
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		name, _, _ := strings.Cut(of.Name(), "[")
		known[name] = true
	}
	files, err := os.ReadDir(".")
	require.NoError(t, err)
	found := 0
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Recv == nil || !f.Name.IsExported() {
				continue
			}
			of := f.Recv.List[0].Type
			if star, is := of.(*ast.StarExpr); is {
				of = star.X
			}
			if generic, is := of.(*ast.IndexExpr); is {
				of = generic.X
			}
			if name := of.(*ast.Ident); name.IsExported() {
				found++
				assert.True(t, known[name.Name], "%s.%s: receivers has no %s", name.Name, f.Name.Name, name.Name)
			}
		}
	}
	assert.Greater(t, found, 100)
}

// What a failed constructor leaves is harmless in the order that programs are written in.
func TestDeferredCloseAfterAFailedNew(t *testing.T) {
	b, err := gobuffer.New[float64](backends.Allocator(99), 3)
	require.Error(t, err)
	defer func() { assert.ErrorIs(t, b.Close(), gobuffer.ErrZero) }()
	var argument *gobuffer.ArgumentError
	require.ErrorAs(t, b.FillValue(1), &argument)
	assert.Equal(t, "buffer is nil or a zero value: accepted is what New, From, Adopt, View and Runtime.NewArray return",
		argument.Error())
	assert.ErrorIs(t, gobuffer.View(nil, 0, b.Layout(), 0, false, b.Options()).Synchronize(), gobuffer.ErrZero)
	_, err = gobuffer.Typed[float64](nil)
	assert.ErrorIs(t, err, gobuffer.ErrZero)
	living := made(t)
	defer living.Close()
	assert.ErrorIs(t, living.Append(nil), gobuffer.ErrZero)
	_, err = gobuffer.NewRuntime(nil)
	require.ErrorAs(t, err, &argument)
	var none context.Context
	_, err = living.HostAccessible(none)
	require.ErrorAs(t, err, &argument)
	assert.Equal(t, "ctx", argument.Argument)
}

// What fmt prints of things that a program has in its hands.
func TestThingsPrintWhatTheyAre(t *testing.T) {
	r, err := gobuffer.NewRuntime(host.New())
	require.NoError(t, err)
	b, h := made(t), lent(t)
	released := accessed(t)
	require.NoError(t, released.Release())
	closed := made(t)
	require.NoError(t, closed.Close())
	var none *gobuffer.Buffer[kelvin]
	for _, c := range []struct {
		want  string
		thing any
	}{
		{"runtime of host", r},
		{"runtime that was not made", new(gobuffer.Runtime)},
		{"buffer of 3 float64 (allocator malloc, owner -1)", b},
		{"closed buffer", closed},
		{"buffer that was not made", new(gobuffer.Array)},
		{"<nil>", none},
		{fmt.Sprintf("handle of 3 float64 in place at %#x", h.Address()), h},
		{"released handle", released},
		{"handle that no access gave", new(gobuffer.Handle)},
		{"memory of 24 bytes (allocator malloc, device -1)", b.Memory()},
		{"memory that was not allocated", new(gobuffer.Memory)},
		{"[if needed never always Copying(3)]",
			[]gobuffer.Copying{gobuffer.CopyIfNeeded, gobuffer.CopyNever, gobuffer.CopyAlways, 3}},
		{"[ValueError TypeError IndexError Fault(3)]",
			[]gobuffer.Fault{gobuffer.BadValue, gobuffer.BadType, gobuffer.BadIndex, 3}},
		{"[r w rw Mode(7)]", []gobuffer.Mode{gobuffer.Read, gobuffer.Write, gobuffer.ReadWrite, 7}},
		{"[async sync_host sync Transfer(7)]", []gobuffer.Transfer{gobuffer.Async, gobuffer.SyncHost, gobuffer.Sync, 7}},
		{"the buffer was freed by Close; Free leaves one that can grow again", closed.FillValue(1)},
		{"the buffer was freed: the handle was released; ask a buffer for another", released.Commit()},
	} {
		assert.Equal(t, c.want, fmt.Sprint(c.thing))
	}
}
