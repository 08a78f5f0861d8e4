package store

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// books has servers' books, one after the other, each cut off at any byte of what its server writes, beside plain maps.
type books struct {
	t        *testing.T
	random   *rand.Rand
	tight    bool // facts are forgotten
	facts    map[string]book.Fact
	before   map[string]book.Fact // what held until the call that was cut off
	names    map[string]ID
	there    map[ID]bool
	told     map[ID]bool // to the server that there is
	objects  []ID
	book     *book.Book
	untold   []int // descriptors of the books of servers that have ended
	late     []int // of some that are told again later
	left     int   // bytes that are written until the server ends
	failures bool
	cuts     int
	pair     []book.Fact // what the call that was cut off noted together
}

type cutOff struct{}

func TestTheBookAlone(t *testing.T) {
	for seed := range scaled(60) {
		for _, tight := range []bool{false, true} {
			ok := t.Run(fmt.Sprintf("%d/%t", seed, tight), func(t *testing.T) {
				w := &books{
					t: t, random: rand.New(rand.NewPCG(uint64(seed), 5)), tight: tight, failures: seed%3 == 0,
					facts: map[string]book.Fact{}, before: map[string]book.Fact{}, names: map[string]ID{}, there: map[ID]bool{},
				}
				for range 6 {
					w.come()
				}
				w.start()
				for range 3000 {
					w.step()
				}
				require.Positive(t, w.cuts)
				w.check()
				w.book.Close()
			})
			if !ok {
				return
			}
		}
	}
}

// write is what the book writes by. Eight bytes in one page are written as a whole.
func (w *books) write(number int, bytes []byte, at int64) (int, error) {
	part := len(bytes)
	if part > 8 && w.failures && w.random.IntN(30) == 0 {
		part = w.random.IntN(part)
		n, _ := unix.Pwrite(number, bytes[:part], at)
		return n, unix.ENOSPC
	}
	if w.left -= part; w.left < 0 {
		if part = max(0, part+w.left); len(bytes) > 8 {
			_, _ = unix.Pwrite(number, bytes[:part], at)
		}
		panic(cutOff{})
	}
	return unix.Pwrite(number, bytes, at)
}

// cut calls f, and reports whether the server ended in it.
func (w *books) cut(f func()) (ended bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ended = r.(cutOff); !ended {
				panic(r)
			}
		}
	}()
	f()
	return false
}

func (w *books) end() {
	number, err := unix.FcntlInt(uintptr(w.book.Number), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = unix.Close(number) })
	w.untold = append(w.untold, number)
	if !w.tight && w.random.IntN(3) == 0 { // where nothing is forgotten
		w.late = append(w.late, number)
	}
	w.book.Close()
	w.cuts++
}

// start has servers be started until one is told of all books, in any order.
func (w *books) start() {
	for {
		w.told = map[ID]bool{}
		w.book = book.New(1<<30, func(id ID) bool { return w.told[id] })
		if w.tight {
			w.book.Limit, w.book.MostOrphans = 48<<10, 40
		}
		require.NoError(w.t, w.book.Open())
		w.book.WriteAt = w.write
		w.left = w.random.IntN([]int{10_000, 400_000}[w.random.IntN(2)])
		w.book.Learning++
		w.random.Shuffle(len(w.untold), func(i, j int) { w.untold[i], w.untold[j] = w.untold[j], w.untold[i] })
		told := 0
		for ; told < len(w.untold); told++ {
			if w.cut(func() { w.learn(w.untold[told]) }) {
				break
			}
		}
		if w.untold = w.untold[told:]; len(w.untold) > 0 {
			w.end()
			continue
		}
		for id := range w.there {
			w.told[id] = true
			w.book.Came(id)
		}
		w.book.Learning--
		w.check()
		return
	}
}

func (w *books) learn(number int) {
	_, at, err := book.Open(number)
	require.NoError(w.t, err)
	buffer := make([]byte, 2*protocol.MostPacket)
	for latest := w.book.Now(); ; {
		list, next, err := book.Read(number, at, buffer)
		require.NoError(w.t, err)
		if len(list) == 0 {
			return
		}
		w.book.Learn(list, latest)
		w.written()
		at = next
	}
}

// written has what could not be written be written.
func (w *books) written() {
	for w.book.IsBroken() {
		_ = w.book.Flush()
	}
}

func (w *books) come() {
	id := protocol.NewID()
	w.objects = append(w.objects, id)
	w.there[id] = true
}

func (w *books) step() {
	id := w.objects[len(w.objects)-1-w.random.IntN(6)]
	name := fmt.Sprint("name ", w.random.IntN(20))
	var e protocol.Encoder
	switch kind := w.random.IntN(20); {
	case kind < 6 && w.there[id] && w.random.IntN(3) == 0:
		w.replace(name, id)
	case kind < 6:
		if !w.there[id] {
			return
		}
		e.Text(name)
		e.ID(id)
		e.Flag(false)
		w.names[name] = id
		w.note(protocol.OpPutName, e.Bytes)
	case kind < 8:
		e.Text(name)
		delete(w.names, name)
		w.note(protocol.OpDropName, e.Bytes)
	case kind < 12 && w.there[id]:
		e.ID(id)
		e.U8(uint8(w.random.IntN(2)))
		e.Flag(w.random.IntN(2) == 0)
		w.note(protocol.OpMark, e.Bytes)
	case kind < 14 && w.there[id]:
		e.ID(id)
		w.note(protocol.OpSeal, e.Bytes)
	case kind < 17 && w.there[id]:
		e.ID(id)
		e.Blob(make([]byte, w.random.IntN(2000)))
		w.note(protocol.OpSetMetadata, e.Bytes)
	case kind < 18 && w.there[id]:
		w.remove(id)
	case kind == 19:
		switch n := len(w.late); {
		case w.random.IntN(20) == 0:
			w.end()
			w.start()
		case n > 0 && w.cut(func() { w.learn(w.late[n-1]) }):
			w.end()
			w.start()
		case n > 0:
			w.late = w.late[:n-1]
		}
	}
}

// remove has an object be deleted or evicted: with it go its names.
func (w *books) remove(id ID) {
	for name, its := range w.names {
		if its == id {
			delete(w.names, name)
		}
	}
	delete(w.there, id)
	delete(w.told, id)
	w.book.Went(id)
	w.come()
	w.told[w.objects[len(w.objects)-1]] = true
	var e protocol.Encoder
	if w.random.IntN(2) == 0 {
		e.ID(id)
		e.Flag(true)
		w.note(protocol.OpDelete, e.Bytes)
		return
	}
	e.Text("")
	e.ID(id)
	w.note(protocol.OpDropName, e.Bytes)
}

// replace has an object take a name from another one, which goes in the same step.
func (w *books) replace(name string, id ID) {
	old := w.names[name]
	for other, its := range w.names {
		if its == old && other != name {
			return
		}
	}
	if old == id || old == (ID{}) {
		return
	}
	if w.random.IntN(4) == 0 { // the server ends in one of the two
		w.left = w.random.IntN(150)
	}
	w.names[name] = id
	delete(w.there, old)
	delete(w.told, old)
	w.come()
	w.told[w.objects[len(w.objects)-1]] = true
	var named, deleted protocol.Encoder
	named.Text(name)
	named.ID(id)
	named.U8(0)
	deleted.ID(old)
	deleted.Flag(false)
	first := book.Fact{Operation: protocol.OpPutName, Payload: named.Bytes}
	second := book.Fact{Operation: protocol.OpDelete, Payload: deleted.Bytes}
	w.noted([]book.Fact{first, second}, func() {
		w.book.NoteBoth(first, second)
		w.book.Went(old)
	})
}

func (w *books) note(operation uint16, payload []byte) {
	f := book.Fact{When: 0, Operation: operation, Payload: payload}
	w.noted([]book.Fact{f}, func() { w.book.Note(operation, payload) })
}

func (w *books) noted(facts []book.Fact, note func()) {
	before := map[string]book.Fact{}
	for _, f := range facts {
		key, _, ok := book.SubjectOf(f.Operation, f.Payload)
		require.True(w.t, ok)
		before[key] = w.facts[key] // or nothing
		w.facts[key] = f
	}
	ended := w.cut(func() {
		note()
		w.written()
	})
	if !ended {
		return
	}
	if w.before = before; len(facts) > 1 {
		w.pair = facts
	}
	w.end()
	w.start()
}

// checkPair has both facts hold that were noted together, or neither.
func (w *books) checkPair() {
	var holds []bool
	for _, f := range w.pair {
		key, _, _ := book.SubjectOf(f.Operation, f.Payload)
		k := w.book.Facts[key]
		holds = append(holds, k != nil && k.Operation == f.Operation && string(k.Payload) == string(f.Payload))
	}
	if w.pair = nil; len(holds) > 1 && !w.tight {
		require.Equal(w.t, holds[0], holds[1], "one of two facts was written")
	}
}

// check has the book know all that was answered, and nothing that does not hold any more.
func (w *books) check() {
	b := w.book
	w.checkPair()
	for key, had := range w.before { // of the call that was cut off either
		k := b.Facts[key]
		if k == nil && had.Operation == 0 {
			w.revive(w.facts[key])
			delete(w.facts, key)
		} else if k != nil && k.Operation == had.Operation && string(k.Payload) == string(had.Payload) {
			w.facts[key] = had
		}
	}
	if len(w.before) > 0 {
		w.before = map[string]book.Fact{}
		w.ownNames()
	}
	for key, k := range b.Facts {
		f, known := w.facts[key]
		same := known && k.Operation == f.Operation && string(k.Payload) == string(f.Payload)
		require.True(w.t, same, "%q came back: %+v for %+v", key, k.Fact, f)
	}
	for key, f := range w.facts {
		_, id, _ := book.SubjectOf(f.Operation, f.Payload)
		if !w.tight || w.there[id] {
			require.NotNil(w.t, b.Facts[key], "%q was lost", key)
		}
	}
	for i := range 20 {
		name := fmt.Sprint("name ", i)
		var id ID
		if k := b.Facts[book.NameKey(name)]; k != nil {
			if its, ok := b.ObjectOf(&k.Fact); ok && (!w.tight || w.there[its]) {
				id = its
			}
		}
		require.Equal(w.t, w.names[name], id, name)
	}
	w.checkSizes()
}

// revive has an object be there whose end was not written.
func (w *books) revive(f book.Fact) {
	if _, id, _ := book.SubjectOf(f.Operation, f.Payload); id != (ID{}) &&
		(f.Operation == protocol.OpDelete || f.Operation == protocol.OpDropName) {
		w.there[id], w.told[id] = true, true
		w.book.Came(id)
	}
}

// ownNames has names be those of the facts.
func (w *books) ownNames() {
	clear(w.names)
	for i := range 20 {
		name := fmt.Sprint("name ", i)
		f := w.facts[book.NameKey(name)]
		if _, id, _ := book.SubjectOf(f.Operation, f.Payload); f.Operation == protocol.OpPutName && w.there[id] {
			w.names[name] = id
		}
	}
}

// checkSizes has the book and its file have the bounds that they are to have.
func (w *books) checkSizes() {
	b := w.book
	for b.Tidy() {
	}
	bytes, orphans := int64(0), 0
	for _, k := range b.Facts {
		bytes += k.Bytes()
		if k.Object == nil || !k.Object.There {
			orphans++
		}
	}
	require.Equal(w.t, bytes, b.File.Bytes)
	require.Equal(w.t, orphans, b.Orphans)
	require.LessOrEqual(w.t, b.End-b.Began, 3*bytes+4*book.SpareBytes)
	if w.tight {
		require.LessOrEqual(w.t, orphans, 40)
	}
}
