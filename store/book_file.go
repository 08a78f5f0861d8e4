package store

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"hamr/backends/host"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// bookFile is the file of a book. Entries are only appended. To make the file shorter, the oldest entries that hold are
// appended once more, a few with each new entry, and then readers begin behind the old ones. Whoever reads at any
// moment finds all that holds: an entry that is there twice says the same.
type bookFile struct {
	number  int              // -1 where there is none
	shared  *wire.Descriptor // for reading only
	written chain[kept]      // in the order of the file
	pending chain[kept]      // not written yet: the last write has failed
	bytes   int64            // of the entries that hold, as in the file
	began   int64            // where the file says that its entries begin
	end     int64
	cleaned int64 // where the end was when the file was made shorter last
	freed   int64 // what is before gave its memory back, the first page aside
	out     protocol.Encoder
	writeAt func(number int, bytes []byte, at int64) (int, error)
}

const (
	bookHeader = 16 + 8 + 8
	startAt    = 16
	expectsAt  = startAt + 8
	// spareBytes is how many bytes of the file may be of entries that do not hold, beside as many as hold.
	spareBytes   = 64 << 10
	copyAtOnce   = 16 << 10  // bytes, with each new entry, or as many as that has
	writeAtOnce  = 256 << 10 // bytes of what is pending
	freeAtOnce   = 4 << 20   // bytes
	readAtOnce   = 1000      // facts
	factsAtOnce  = 50        // that are written together
	forgetAtOnce = 200
)

var page = int64(os.Getpagesize())

func newBookFile() bookFile {
	at := func(k *kept) *neighbours[kept] { return &k.inFile }
	return bookFile{
		number: -1, written: chain[kept]{neighbours: at}, pending: chain[kept]{neighbours: at},
		began: bookHeader, end: bookHeader, freed: page, writeAt: unix.Pwrite,
	}
}

// open makes the file.
func (b *bookFile) open(id ID) error {
	number, err := unix.MemfdCreate("hamr-book", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	readable, err := host.ReadOnlyDescriptor(number)
	if err != nil {
		_ = unix.Close(number)
		return err
	}
	b.number, b.shared = number, wire.NewDescriptor(readable)
	wire.Record(number)
	head := binary.LittleEndian.AppendUint64(id[:], bookHeader)
	return b.writeAll(binary.LittleEndian.AppendUint64(head, 0), 0)
}

func (b *bookFile) close() {
	if b.number >= 0 {
		_ = wire.CloseRecorded(b.number)
		b.shared.Release()
	}
	b.number, b.shared = -1, nil
}

// isBroken reports whether something could not be written.
func (b *bookFile) isBroken() bool { return b.pending.oldest != nil }

func (b *bookFile) add(k *kept) {
	k.at = -1
	b.pending.push(k)
	b.bytes += k.bytes()
}

func (b *bookFile) remove(k *kept) {
	b.bytes -= k.bytes()
	if k.at < 0 {
		b.pending.remove(k)
	} else {
		b.written.remove(k)
	}
}

func (b *bookFile) writeAll(bytes []byte, at int64) error {
	for len(bytes) > 0 {
		n, err := b.writeAt(b.number, bytes, at)
		if err != nil {
			return err
		}
		bytes, at = bytes[n:], at+int64(n)
	}
	return nil
}

// flush writes what is pending, some of it where it is much.
func (b *bookFile) flush() error {
	if b.number < 0 {
		b.settle()
		return nil
	}
	return b.move(&b.pending, writeAtOnce)
}

// move appends the oldest entries of a chain, of some bytes or a little more, to the file.
func (b *bookFile) move(from *chain[kept], bytes int) error {
	b.out.Bytes = b.out.Bytes[:0]
	n := 0
	for k := from.oldest; k != nil && len(b.out.Bytes) < bytes; k = k.inFile.newer {
		k.encode(&b.out)
		n++
	}
	if n == 0 {
		return nil
	}
	if err := b.writeAll(b.out.Bytes, b.end); err != nil {
		_ = unix.Ftruncate(b.number, b.end) // what is left of it is no entry
		return err
	}
	for range n {
		k := from.oldest
		from.remove(k)
		k.at = b.end
		b.end += k.bytes()
		b.written.push(k)
	}
	return nil
}

// settle takes all as written where there is no file.
func (b *bookFile) settle() {
	for k := b.pending.oldest; k != nil; k = b.pending.oldest {
		b.pending.remove(k)
		k.at = b.end
		b.end += k.bytes()
		b.written.push(k)
	}
}

// start returns where the oldest entry is that holds.
func (b *bookFile) start() int64 {
	if b.written.oldest != nil {
		return b.written.oldest.at
	}
	return b.end
}

// clean makes the file shorter, a little at a time, where less than half of it holds. It reports whether there is more
// to do.
func (b *bookFile) clean() (more bool) {
	if b.number < 0 || b.isBroken() {
		return false
	}
	tooLong := func() bool { return b.end-b.start() > 2*b.bytes+spareBytes }
	grown := int(min(b.end-b.cleaned, writeAtOnce))
	//mutate:replace a book never gets shorter
	//mutate:with tooLong() => false
	//mutate:replace as much is copied with a long entry as with a short one
	//mutate:with max(grown, copyAtOnce) => max(0*grown, copyAtOnce)
	if tooLong() && b.move(&b.written, max(grown, copyAtOnce)) != nil {
		return false
	}
	b.cleaned = b.end
	wire.Crash("server-cleaning")
	if start := b.start(); start-b.began >= spareBytes/2 {
		//mutate:replace a book's readers begin behind entries that hold
		//mutate:with uint64(start) => uint64(b.end)
		if b.writeAll(binary.LittleEndian.AppendUint64(nil, uint64(start)), startAt) != nil {
			return false
		}
		b.began = start
	}
	//mutate:replace a book gives back memory of entries that hold
	//mutate:with b.began/page*page => (b.began+page-1)/page*page
	if size := min(b.began/page*page-b.freed, freeAtOnce); size > 0 {
		_ = unix.Fallocate(b.number, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, b.freed, size)
		b.freed += size
	}
	return tooLong() || b.began/page*page > b.freed
}

// openBook returns which book a descriptor is of, and where it begins.
func openBook(number int) (id ID, at int64, err error) {
	if _, err := unix.FcntlInt(uintptr(number), unix.F_GET_SEALS, 0); err != nil {
		return id, 0, &ArgumentError{Argument: "book", Value: "a descriptor of something else", Accepted: "what a server has sent"}
	}
	var head [bookHeader]byte
	if n, err := unix.Pread(number, head[:], 0); err != nil || n < len(head) {
		return id, 0, &ArgumentError{Argument: "book", Value: fmt.Sprintf("a file of %d bytes", n), Accepted: "what a server has sent"}
	}
	return ID(head[:startAt]), int64(binary.LittleEndian.Uint64(head[startAt:])), nil
}

// readBook returns some facts of another server's book, and where the next ones begin. There are none at the end.
func readBook(number int, at int64, buffer []byte) (list []told, next int64, err error) {
	if at < 0 {
		return nil, at, nil
	}
	n, err := unix.Pread(number, buffer, at)
	if err != nil {
		return nil, at, &SystemError{Problem: "the book: " + err.Error()}
	}
	for rest := buffer[:n]; len(list) < readAtOnce; {
		f, after, err := protocol.NextFrame(rest)
		if err != nil { // of the last one the writer may have written a part
			break
		}
		key, id, ok := subjectOf(f.Operation, f.Payload)
		t := told{id: id}
		if ok {
			t.kept = &kept{fact: fact{f.Request, f.Operation, slices.Clone(f.Payload)}, key: key}
		}
		list = append(list, t)
		at += int64(len(rest) - len(after))
		rest = after
	}
	return list, at, nil
}
