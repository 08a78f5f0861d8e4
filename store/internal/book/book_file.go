package book

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// File is the file of a book. Entries are only appended. To make the file shorter, the oldest entries that hold are
// appended once more, a few with each new entry, and then readers begin behind the old ones. Whoever reads at any
// moment finds all that holds: an entry that is there twice says the same.
type File struct {
	Number  int                // -1 where there is none
	Shared  *wire.Descriptor   // for reading only
	written chain.Chain[Entry] // in the order of the file
	pending chain.Chain[Entry] // not written yet: the last write has failed
	Bytes   int64              // of the entries that hold, as in the file
	Began   int64              // where the file says that its entries begin
	End     int64
	cleaned int64 // where the end was when the file was made shorter last
	freed   int64 // what is before gave its memory back, the first page aside
	out     protocol.Encoder
	WriteAt func(number int, bytes []byte, at int64) (int, error)
}

const (
	Header    = 16 + 8 + 8
	startAt   = 16
	expectsAt = startAt + 8
	// SpareBytes is how many bytes of the file may be of entries that do not hold, beside as many as hold.
	SpareBytes   = 64 << 10
	copyAtOnce   = 16 << 10  // bytes, with each new entry, or as many as that has
	writeAtOnce  = 256 << 10 // bytes of what is pending
	freeAtOnce   = 4 << 20   // bytes
	readAtOnce   = 1000      // facts
	FactsAtOnce  = 50        // that are written together
	forgetAtOnce = 200
)

var page = int64(os.Getpagesize())

func newFile() File {
	at := func(k *Entry) *chain.Neighbours[Entry] { return &k.inFile }
	return File{
		Number: -1, written: chain.Chain[Entry]{Neighbours: at}, pending: chain.Chain[Entry]{Neighbours: at},
		Began: Header, End: Header, freed: page, WriteAt: unix.Pwrite,
	}
}

// open makes the file.
func (b *File) open(id protocol.ID) error {
	number, err := unix.MemfdCreate("hamr-book", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	readable, err := host.ReadOnlyDescriptor(number)
	if err != nil {
		_ = unix.Close(number)
		return err
	}
	b.Number, b.Shared = number, wire.NewDescriptor(readable)
	wire.Record(number)
	head := binary.LittleEndian.AppendUint64(id[:], Header)
	return b.writeAll(binary.LittleEndian.AppendUint64(head, 0), 0)
}

func (b *File) Close() {
	if b.Number >= 0 {
		_ = wire.CloseRecorded(b.Number)
		b.Shared.Release()
	}
	b.Number, b.Shared = -1, nil
}

// IsBroken reports whether something could not be written.
func (b *File) IsBroken() bool { return b.pending.Oldest != nil }

func (b *File) add(k *Entry) {
	k.at = -1
	b.pending.Push(k)
	b.Bytes += k.Bytes()
}

func (b *File) remove(k *Entry) {
	b.Bytes -= k.Bytes()
	if k.at < 0 {
		b.pending.Remove(k)
	} else {
		b.written.Remove(k)
	}
}

func (b *File) writeAll(bytes []byte, at int64) error {
	for len(bytes) > 0 {
		n, err := b.WriteAt(b.Number, bytes, at)
		if err != nil {
			return err
		}
		bytes, at = bytes[n:], at+int64(n)
	}
	return nil
}

// Flush writes what is pending, some of it where it is much.
func (b *File) Flush() error {
	if b.Number < 0 {
		b.settle()
		return nil
	}
	return b.move(&b.pending, writeAtOnce)
}

// move appends the oldest entries of a chain, of some bytes or a little more, to the file.
func (b *File) move(from *chain.Chain[Entry], bytes int) error {
	b.out.Bytes = b.out.Bytes[:0]
	n := 0
	for k := from.Oldest; k != nil && len(b.out.Bytes) < bytes; k = k.inFile.Newer {
		at := len(b.out.Bytes)
		k.Encode(&b.out)
		n++
		if k.with != nil && k.with == k.inFile.Newer { // else that was forgotten
			k = k.with
			k.Encode(&b.out)
			n++
			b.out.End(at)
		}
	}
	if n == 0 {
		return nil
	}
	if err := b.writeAll(b.out.Bytes, b.End); err != nil {
		_ = unix.Ftruncate(b.Number, b.End) // what is left of it is no entry
		return err
	}
	for range n {
		k := from.Oldest
		from.Remove(k)
		k.at, k.with = b.End, nil
		b.End += k.Bytes()
		b.written.Push(k)
	}
	return nil
}

// settle takes all as written where there is no file.
func (b *File) settle() {
	for k := b.pending.Oldest; k != nil; k = b.pending.Oldest {
		b.pending.Remove(k)
		k.at = b.End
		b.End += k.Bytes()
		b.written.Push(k)
	}
}

// Start returns where the oldest entry is that holds.
func (b *File) Start() int64 {
	if b.written.Oldest != nil {
		return b.written.Oldest.at
	}
	return b.End
}

// clean makes the file shorter, a little at a time, where less than half of it holds. It reports whether there is more
// to do.
func (b *File) clean() (more bool) {
	if b.Number < 0 || b.IsBroken() {
		return false
	}
	tooLong := func() bool { return b.End-b.Start() > 2*b.Bytes+SpareBytes }
	grown := int(min(b.End-b.cleaned, writeAtOnce))
	//mutate:replace a book never gets shorter
	//mutate:with tooLong() => false
	//mutate:replace as much is copied with a long entry as with a short one
	//mutate:with max(grown, copyAtOnce) => max(0*grown, copyAtOnce)
	if tooLong() && b.move(&b.written, max(grown, copyAtOnce)) != nil {
		return false
	}
	b.cleaned = b.End
	wire.Crash("server-cleaning")
	if start := b.Start(); start-b.Began >= SpareBytes/2 {
		//mutate:replace a book's readers begin behind entries that hold
		//mutate:with uint64(start) => uint64(b.End)
		if b.writeAll(binary.LittleEndian.AppendUint64(nil, uint64(start)), startAt) != nil {
			return false
		}
		b.Began = start
	}
	//mutate:replace a book gives back memory of entries that hold
	//mutate:with b.Began/page*page => (b.Began+page-1)/page*page
	if size := min(b.Began/page*page-b.freed, freeAtOnce); size > 0 {
		_ = unix.Fallocate(b.Number, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, b.freed, size)
		b.freed += size
	}
	return tooLong() || b.Began/page*page > b.freed
}

// Open returns which book a descriptor is of, and where it begins.
func Open(number int) (id protocol.ID, at int64, err error) {
	refused := func(value string) error {
		return &protocol.ArgumentError{Argument: "book", Value: value, Accepted: "what a server has sent"}
	}
	if _, err := unix.FcntlInt(uintptr(number), unix.F_GET_SEALS, 0); err != nil {
		return id, 0, refused("a descriptor of something else")
	}
	var head [Header]byte
	if n, err := unix.Pread(number, head[:], 0); err != nil || n < len(head) {
		return id, 0, refused(fmt.Sprintf("a file of %d bytes", n))
	}
	return protocol.ID(head[:startAt]), int64(binary.LittleEndian.Uint64(head[startAt:])), nil
}

// Read returns some facts of another server's book, and where the next ones begin. There are none at the end.
func Read(number int, at int64, buffer []byte) (list []Told, next int64, err error) {
	if at < 0 {
		return nil, at, nil
	}
	n, err := unix.Pread(number, buffer, at)
	if err != nil {
		return nil, at, &protocol.SystemError{Problem: "the book: " + err.Error()}
	}
	for rest := buffer[:n]; len(list) < readAtOnce; {
		f, after, err := protocol.NextFrame(rest)
		if err != nil { // of the last one the writer may have written a part
			break
		}
		if second, ok := second(f); ok {
			f.Payload = f.Payload[:len(f.Payload)-protocol.HeaderBytes-len(second.Payload)]
			list = append(list, told(f), told(second))
		} else {
			list = append(list, told(f))
		}
		at += int64(len(rest) - len(after))
		rest = after
	}
	return list, at, nil
}

func told(f protocol.Frame) Told {
	key, id, ok := SubjectOf(f.Operation, f.Payload)
	t := Told{id: id}
	if ok {
		t.Entry = &Entry{Fact: Fact{f.Request, f.Operation, slices.Clone(f.Payload)}, Key: key}
	}
	return t
}

// second returns the entry that is a part of another one, if there is one: of a name, behind the fields.
func second(f protocol.Frame) (other protocol.Frame, ok bool) {
	if f.Operation != protocol.OpPutName {
		return other, false
	}
	d := protocol.Decoder{Rest: f.Payload}
	readNaming(&d)
	if d.Broken != "" || len(d.Rest) == 0 {
		return other, false
	}
	other, rest, err := protocol.NextFrame(d.Rest)
	return other, err == nil && len(rest) == 0
}
