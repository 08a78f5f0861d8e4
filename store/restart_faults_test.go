package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"hamr/store/internal/book"
	"hamr/store/internal/protocol"
)

// Its session has let go of it and got it again.
func TestWhatIsBoundAndGotGoesWithItsSessionAfterARestart(t *testing.T) {
	for _, forgo := range []bool{false, true} {
		s := startServer(t, ServerOptions{})
		maker, other := newClient(t, s), newClient(t, s)
		what := bytesOf(70_000)
		what.Session = true
		b := beginObject(t, maker, what, 1)
		if forgo {
			b.Forgo()
		}
		o, err := b.Seal(background)
		require.NoError(t, err)
		id := o.ID()
		require.NoError(t, o.Release())
		o, err = maker.Get(background, id, GetOptions{})
		require.NoError(t, err)
		restart(t, s)
		rejoin(t, maker)
		rejoin(t, other)
		require.NoError(t, maker.Close())
		eventually(t, func() bool {
			there, _, err := other.Exists(background, id)
			return err == nil && !there
		}, func() any { return "it outlives its session" })
		_ = o.Release()
	}
}

// What was answered is written down, to the last.
func TestNamesThatAreAnsweredWhileTheServerEndsAreKept(t *testing.T) {
	lost, total := 0, 0
	for range scaled(20) {
		path := filepath.Join(folder(t), "store.sock")
		s := startServer(t, ServerOptions{Path: path})
		keeper := newClient(t, s)
		x := holdMany(t, keeper, 1, bytesOf(100))[0]
		var mu sync.Mutex
		answered := map[string]bool{}
		var group sync.WaitGroup
		for i := range 8 {
			c := newClient(t, s)
			group.Add(1)
			go func() {
				defer group.Done()
				for n := 0; ; n++ {
					name := fmt.Sprint(i, " ", n)
					if c.PutName(background, name, x.ID(), false) != nil {
						return
					}
					mu.Lock()
					answered[name] = true
					mu.Unlock()
				}
			}()
		}
		time.Sleep(10 * time.Millisecond)
		require.NoError(t, s.Close())
		group.Wait()
		startServer(t, ServerOptions{Path: path})
		rejoin(t, keeper)
		mu.Lock()
		for name := range answered {
			total++
			if nameOf(t, keeper, name) != x.ID() {
				lost++
			}
		}
		mu.Unlock()
		require.NoError(t, x.Release())
	}
	assert.Zero(t, lost, "names of %d that were answered", total)
}

// It tells the very server of its own book.
func TestAClientThatLostItsConnectionAloneHasNobodyWait(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	o := holdMany(t, c, 1, bytesOf(100))[0]
	require.NoError(t, c.take(background))
	_ = c.line.Lose(context.Canceled)
	c.give()
	_, err := c.Statistics(background)
	require.NoError(t, err)
	other := newClient(t, s)
	there, _, err := other.Exists(background, protocol.NewID())
	require.NoError(t, err)
	assert.False(t, there)
	assert.False(t, book.IsExpecting(other.book), "no server has ended")
	_ = o.Release()
}

// A server may have slabs of other sizes.
func TestASlabThatIsABreachIsNotToldAgain(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	o := holdMany(t, c, 1, bytesOf(100))[0]
	c.mu.Lock()
	c.held[o.ID()].mapping.size++ // as of a server whose slabs are others
	c.mu.Unlock()
	again := restart(t, s)
	soon, end := context.WithTimeout(background, 2*time.Second)
	defer end()
	for soon.Err() == nil {
		if _, err := c.Statistics(soon); err == nil {
			break
		}
	}
	require.NoError(t, soon.Err())
	assert.Less(t, again.Statistics().Breaches, int64(10))
	require.NoError(t, c.Close())
}

// The server had written nothing down, and who has the object is slow to tell.
func TestAnEmptyBookHasOthersWaitToo(t *testing.T) {
	s := startServer(t, ServerOptions{})
	slow, quick := newClient(t, s), newClient(t, s)
	x := holdMany(t, slow, 1, bytesOf(100))[0]
	require.NoError(t, slow.take(background)) // it is slow to tell
	restart(t, s)
	time.AfterFunc(100*time.Millisecond, slow.give)
	var there bool
	var err error
	eventually(t, func() bool { there, _, err = quick.Exists(background, x.ID()); return err == nil },
		func() any { return err })
	assert.True(t, there, "an object that a living client has")
	require.NoError(t, x.Release())
}

// Whether others may still tell is asked before the request: asked afterwards it may be over, though the answer is
// of before.
func TestANameIsFreeOnceNobodyCanTellOfIt(t *testing.T) {
	s := startServer(t, ServerOptions{})
	c := newClient(t, s)
	x := holdMany(t, c, 1, bytesOf(100))[0]
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var e protocol.Encoder
		e.Text("name")
		e.ID(protocol.NewID())
		e.Flag(false)
		s.Lock.Lock()
		s.Table.Book.Note(protocol.OpPutName, e.Bytes)
		s.Table.Book.Expects = book.Clock() + random.Uint64N(200_000)
		until := binary.LittleEndian.AppendUint64(nil, s.Table.Book.Expects)
		_, err := unix.Pwrite(s.Table.Book.Number, until, int64(len(s.Table.Book.ID))+8)
		s.Lock.Unlock()
		require.NoError(t, err)
		require.NoError(t, c.PutName(background, "name", x.ID(), false))
		require.NoError(t, c.DropName(background, "name"))
	}
	require.NoError(t, x.Release())
}
