package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hamr/backends"
	"hamr/store/internal/wire"
)

// restarted is what an object must be, whatever server there is.
type restarted struct {
	what    Description
	value   byte
	sealed  bool
	builder *Builder
	maker   int
	had     [3][]*Object // by which client
	early   [3][]*Object // the same, before it was sealed
}

func (r *restarted) isHeld() bool {
	held := r.builder != nil
	for i := range r.had {
		held = held || len(r.had[i])+len(r.early[i]) > 0
	}
	return held
}

// restarts has three clients, and a server that is killed again and again, beside plain maps.
type restarts struct {
	t       *testing.T
	random  *rand.Rand
	path    string
	server  *run
	clients [3]*Client
	objects map[ID]*restarted
	ids     []ID
	names   map[string]ID
	unsure  map[string]bool // what a call that was lost may have done, or not: ids and names
	cut     *replaced
	gone    []ID // what was replaced
}

// replaced is what a call that was lost was to replace.
type replaced struct {
	name     string
	old, new ID
}

// TestNothingIsLostByRestarts has a server of 3,000 objects killed at any step of its own, or at any time.
func TestNothingIsLostByRestarts(t *testing.T) {
	w := &restarts{
		t: t, random: rand.New(rand.NewPCG(1, 7)), path: filepath.Join(folder(t), "store.sock"),
		objects: map[ID]*restarted{}, names: map[string]ID{}, unsure: map[string]bool{},
	}
	w.server = startRun(t, "", "serve", w.path)
	for i := range w.clients {
		w.connect(i)
	}
	for len(w.objects) < 3000 {
		w.create(len(w.objects)%3, w.random.IntN(20) > 0)
	}
	for kill := range scaled(8) {
		steps := 20 + w.random.IntN(300)
		lost := false
		for i := 0; i < steps && !lost; i++ {
			lost = w.step()
		}
		if !lost {
			require.NoError(t, w.server.Process.Kill())
		}
		require.True(t, killed(w.server.wait(t)), "kill %d", kill)
		w.start()
		w.check()
	}
	for _, c := range w.clients {
		require.NoError(t, c.Close())
	}
}

func (w *restarts) connect(at int) {
	var err error
	eventually(w.t, func() bool {
		w.clients[at], err = Connect(background, w.path, newRuntime(w.t))
		return err == nil
	}, func() any { return err })
}

// start starts servers until one lives as long as it takes to tell it all.
func (w *restarts) start() {
	for told := false; !told; {
		step := ""
		if w.random.IntN(4) > 0 {
			for !strings.HasPrefix(step, "server-") {
				step = wire.CrashSteps[w.random.IntN(len(wire.CrashSteps))]
			}
			step = fmt.Sprintf("%s:%d", step, w.random.IntN(4000))
		}
		w.server = startRun(w.t, step, "serve", w.path)
		told = true
		for i := 0; i < len(w.clients) && told; i++ {
			eventually(w.t, func() bool {
				_, err := w.clients[i].Statistics(background)
				told = err == nil
				select {
				case err := <-w.server.done:
					w.server.done <- err
					told = false
					return true
				default:
					return told
				}
			}, func() any { return "no client is told of a server" })
		}
	}
}

// lost reports whether a call was lost, and notes what it may have done.
func (w *restarts) lost(err error, subjects ...string) bool {
	if !errors.As(err, new(*LostError)) {
		require.NoError(w.t, err)
		return false
	}
	for _, subject := range subjects {
		w.unsure[subject] = true
	}
	return true
}

func (w *restarts) create(at int, seals bool) (lost bool) {
	sizes := []int{0, 1, 100, 3000, 50_000, 70_000, 200_000}
	what := bytesOf(sizes[w.random.IntN(len(sizes))])
	what.Evictable, what.Pinned, what.Separate = w.random.IntN(2) == 0, w.random.IntN(3) == 0, w.random.IntN(9) == 0
	if w.random.IntN(4) == 0 {
		what.Allocator = backends.CUDA
	}
	b, err := w.clients[at].Create(background, what)
	if w.lost(err) {
		return true
	}
	r := &restarted{what: what, value: byte(w.random.IntN(256)), builder: b, maker: at}
	fill(w.t, b.Array(), r.value)
	w.objects[b.ID()] = r
	w.ids = append(w.ids, b.ID())
	return seals && w.seal(b.ID(), r)
}

func (w *restarts) seal(id ID, r *restarted) (lost bool) {
	o, err := r.builder.Seal(background)
	r.builder = nil
	if w.lost(err, id.String()) {
		return true
	}
	r.sealed = true
	r.had[r.maker] = append(r.had[r.maker], o)
	return false
}

// step has a client do something, and reports whether the server has ended.
func (w *restarts) step() (lost bool) {
	at, id := w.random.IntN(3), w.ids[w.random.IntN(len(w.ids))]
	if w.random.IntN(3) == 0 {
		id = w.ids[len(w.ids)-1-w.random.IntN(20)]
	}
	c, r, name := w.clients[at], w.objects[id], fmt.Sprint("name ", w.random.IntN(300))
	switch w.random.IntN(12) {
	case 0:
		return w.create(at, w.random.IntN(2) == 0)
	case 1:
		return r != nil && r.builder != nil && w.seal(id, r)
	case 2, 3:
		return r != nil && w.get(c, at, id, r)
	case 4:
		if r != nil {
			w.release(r, at)
		}
	case 5, 6, 7:
		if r == nil {
			return false
		}
		if w.random.IntN(3) == 0 && r.sealed {
			return w.replace(c, name, id)
		}
		if lost = w.lost(c.PutName(background, name, id, true), name); !lost {
			w.names[name] = id
		}
	case 8:
		if _, named := w.names[name]; !named {
			return false
		}
		if lost = w.lost(c.DropName(background, name), name); !lost {
			delete(w.names, name)
		}
	case 9, 10:
		return r != nil && w.mark(c, id, r)
	case 11:
		if r == nil || w.random.IntN(3) > 0 {
			return false
		}
		if lost = w.lost(c.Delete(background, id, true), id.String()); !lost {
			w.forget(id)
		}
	}
	return lost
}

// replace has an object take a name, and the one that had it go, unless it has other names or is not sealed.
func (w *restarts) replace(c *Client, name string, id ID) (lost bool) {
	old := w.names[name]
	goes := w.objects[old] != nil && old != id && w.objects[old].sealed
	for other, its := range w.names {
		goes = goes && (other == name || its != old)
	}
	subjects := []string{name}
	if goes {
		subjects = append(subjects, old.String())
	}
	if w.lost(c.Replace(background, name, id, false), subjects...) {
		if goes && w.objects[old].isHeld() && w.objects[id].isHeld() {
			w.cut = &replaced{name, old, id}
		}
		return true
	}
	if goes {
		w.forget(old)
		w.gone = append(w.gone, old)
	}
	w.names[name] = id
	return false
}

func (w *restarts) get(c *Client, at int, id ID, r *restarted) (lost bool) {
	o, err := c.Get(background, id, GetOptions{Unsafe: true})
	if !r.sealed && errors.As(err, new(*NotSealedError)) {
		return false // in a slab of which nothing is sealed
	}
	if w.lost(err) {
		return true
	}
	into := &r.early[at]
	if r.sealed {
		into = &r.had[at]
	}
	*into = append(*into, o)
	return false
}

func (w *restarts) release(r *restarted, at int) {
	for _, list := range []*[]*Object{&r.had[at], &r.early[at]} {
		if n := len(*list); n > 0 && w.random.IntN(2) == 0 {
			require.NoError(w.t, (*list)[n-1].Release())
			*list = (*list)[:n-1]
		}
	}
}

func (w *restarts) mark(c *Client, id ID, r *restarted) (lost bool) {
	on := w.random.IntN(2) == 0
	subject := "mark " + id.String()
	switch w.random.IntN(3) {
	case 0:
		if lost = w.lost(c.SetEvictable(background, id, on), subject); !lost {
			r.what.Evictable = on
		}
	case 1:
		if lost = w.lost(c.Pin(background, id), subject); !lost {
			r.what.Pinned = true
		}
	case 2:
		if lost = w.lost(c.Unpin(background, id), subject); !lost {
			r.what.Pinned = false
		}
	}
	return lost
}

func (w *restarts) forget(id ID) {
	delete(w.objects, id)
	for name, its := range w.names {
		if its == id {
			delete(w.names, name)
		}
	}
}

// check has the server know what it must, as each client says.
func (w *restarts) check() {
	for id, r := range w.objects {
		if !r.isHeld() || w.unsure[id.String()] {
			w.forget(id)
		}
	}
	for _, c := range w.clients {
		found := map[ID]Info{}
		names := map[string]ID{}
		for after := uint64(0); ; {
			list, next, err := c.List(background, ListOptions{Unsealed: true, After: after})
			require.NoError(w.t, err)
			for _, info := range list {
				found[info.ID] = info
				for _, name := range info.Names {
					names[name] = info.ID
				}
			}
			if after = next; next == 0 {
				break
			}
		}
		for _, id := range w.gone {
			_, back := found[id]
			require.False(w.t, back, "%v was replaced and came back", id)
		}
		if w.cut != nil { // one of them has the name, and the old one is there if it is that
			_, isThere := found[w.cut.old]
			has := map[bool]ID{true: w.cut.old, false: w.cut.new}[isThere]
			require.Equal(w.t, has, names[w.cut.name], "%+v", w.cut)
		}
		w.compare(found, names)
	}
	w.cut = nil
	clear(w.unsure)
}

func (w *restarts) compare(found map[ID]Info, names map[string]ID) {
	for id, r := range w.objects {
		info, ok := found[id]
		require.True(w.t, ok, "%v was lost: %+v", id, r)
		require.Equal(w.t, r.sealed, info.Sealed, "%v: %+v", id, r)
		if w.unsure["mark "+id.String()] {
			r.what.Evictable, r.what.Pinned = info.Evictable, info.Pinned
		}
		require.Equal(w.t, [2]bool{r.what.Evictable, r.what.Pinned}, [2]bool{info.Evictable, info.Pinned}, "%v: %+v", id, r)
	}
	for name := range w.unsure {
		delete(w.names, name)
	}
	for name, id := range names {
		if w.unsure[name] || w.objects[id] == nil {
			if w.objects[id] != nil {
				w.names[name] = id
			}
			continue
		}
		require.Equal(w.t, w.names[name], id, "name %q came back", name)
	}
	for name, id := range w.names {
		require.Equal(w.t, id, names[name], "name %q was lost", name)
	}
}
