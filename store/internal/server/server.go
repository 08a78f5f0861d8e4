package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hamr/backends"
	"hamr/gobuffer"
	"hamr/internal/memorylimit"
	"hamr/store/internal/book"
	"hamr/store/internal/chain"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Options say where a server listens and what it may hold.
type Options struct {
	Path string // DefaultPath where it is empty, and Socket is not given
	// Socket, above 0, is the descriptor of a socket that listens at its path already, as a service manager makes one. The
	// server that Listen returns has it; the path stays when the server ends.
	Socket      int
	HostLimit   int64 // bytes of the host's memory; 0 is half of what the process may have: see internal/memorylimit
	DeviceLimit int64 // bytes of each device's memory; 0 is no limit
	// TableLimit is how many bytes may be known of objects, metadata and names among them, of
	// which 512 are reckoned for each; 0 is a GiB.
	TableLimit int64
	// Spill is a directory of the user's own for objects that nobody has while there is no room.
	Spill string
	// SpillDevices, where it is not nil, has objects on its devices spilled, too. The server maps them meanwhile, which
	// takes a context on each of these devices from the first time on; without it a server has none.
	SpillDevices *gobuffer.Runtime
	// Ready is how many bytes of the host's memory are kept ready for an object of half of that and more, which
	// is then written to as quickly as memory that was used before. They count against HostLimit, and are
	// given up where there is no room. 0 is none.
	Ready       int64
	MaxMetadata int // bytes of an object's; 0 is 32 KiB, and 48 KiB is the most
	MaxSessions int // connections at a time; 0 is 4096
}

// Server keeps objects. Its methods may be called from any goroutine.
type Server struct {
	Options  Options
	At       string
	Lock     *wire.PathLock
	socket   wire.FileIdentity // of what Listen has bound
	Listener *listener
	instance protocol.ID
	boot     string
	Links    *Links
	devices  *deviceSpill

	Mu           sync.Mutex
	acting       *Leader    // whose request is being answered with the lock held
	Moved        *sync.Cond // a unit was spilled or brought back
	Objects      map[protocol.ID]*object
	order        []listed
	holes        int
	sequence     uint64
	Names        map[string]*named
	units        map[protocol.ID]*unit // slabs, to be found by their id
	Book         *book.Book
	unswept      []chain.Chain[named] // of objects that went, which are in names still
	sweeping     bool
	namesThere   int64
	files        queue                 // of units that are in files, those that may be evicted
	lingering    map[protocol.ID]*unit // those that are gone, and that somebody has mapped
	domains      map[backends.UUID]*domain
	Sessions     map[*session]struct{}
	watchers     map[*session]struct{}
	WaitingIDs   waiters[protocol.ID]
	WaitingNames waiters[string]
	table        int64
	leases       int64
	evicted      int64
	spares       spares
	spills       int64
	Open         int64 // units, of which each has a descriptor
	swapping     bool  // a unit comes back beyond the limit
	OpenSpill    func(folder string) (*os.File, error)
	SpilledBytes int64
	restored     int64
	requests     int64
	refused      int64
	breaches     int64

	Connections sync.WaitGroup // goroutines that answer requests
	closed      bool
	quiet       bool // what ends now ends with the server: the next one is told of it

	// Of Serve.
	kept       int // a descriptor, -1 for none
	complained time.Time
}

// Listen returns a server that listens, and has clients wait until Serve is called, a second at the most. It makes the
// socket's directory if there is none, for the user alone, and refuses one that others can enter.
// A socket that a server left behind which has ended is replaced; that of a living one is a
// *RefusedError.
func Listen(o Options) (*Server, error) {
	if err := o.choosePath(); err != nil {
		return nil, err
	}
	s, err := NewServer(o)
	if err != nil {
		return nil, err
	}
	if err := wire.CheckPath(o.Path); err != nil {
		return nil, err
	}
	folder := filepath.Dir(o.Path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := wire.CheckFolder(folder); err != nil {
		return nil, err
	}
	if s.Lock, err = wire.LockPath(o.Path, o.Socket > 0); err != nil {
		return nil, err
	}
	if o.Socket > 0 {
		s.Listener, err = listenGiven(o.Socket, o.Path)
	} else if err = wire.RemoveStale(o.Path); err == nil {
		s.Listener, err = NewListener(o.Path)
		s.socket = wire.FileAt(o.Path)
	}
	if err == nil {
		if err = os.Chmod(o.Path, 0o600); err == nil {
			s.Links, err = NewLinks()
		}
	}
	if err == nil {
		err = s.Book.Open()
	}
	if err != nil {
		s.Book.Close()
		if s.Listener != nil {
			_ = s.Listener.Close()
		}
		_ = s.Lock.Release()
		return nil, err
	}
	s.startSpares(o.Ready)
	return s, nil
}

// NewServer returns a server without a socket.
func NewServer(o Options) (*Server, error) {
	for name, limit := range map[string]int64{"Socket": int64(o.Socket), "HostLimit": o.HostLimit, "DeviceLimit": o.DeviceLimit, "TableLimit": o.TableLimit,
		"Ready": o.Ready, "MaxMetadata": int64(o.MaxMetadata), "MaxSessions": int64(o.MaxSessions)} {
		if limit < 0 {
			return nil, &protocol.ArgumentError{Argument: name, Value: fmt.Sprint(limit), Accepted: "0 or more"}
		}
	}
	if o.MaxMetadata > protocol.MostMetadata*3/2 {
		return nil, &protocol.ArgumentError{Argument: "MaxMetadata", Value: fmt.Sprint(o.MaxMetadata), Accepted: fmt.Sprintf("at most %d", protocol.MostMetadata*3/2)}
	}
	if o.MaxMetadata == 0 {
		o.MaxMetadata = protocol.MostMetadata
	}
	if o.MaxSessions == 0 {
		o.MaxSessions = 4096
	}
	if o.TableLimit == 0 {
		o.TableLimit = 1 << 30
	}
	if o.HostLimit == 0 {
		// A container's memory is that of its clients, too.
		if o.HostLimit = memorylimit.Bytes() / 2; o.HostLimit == 0 {
			return nil, &protocol.ArgumentError{Argument: "HostLimit", Value: "0", Accepted: "a number of bytes, as it cannot be read how many the process may have"}
		}
	}
	if o.Ready > o.HostLimit {
		return nil, &protocol.ArgumentError{Argument: "Ready", Value: fmt.Sprint(o.Ready), Accepted: fmt.Sprintf("at most the host's limit, %d", o.HostLimit)}
	}
	if o.Spill != "" {
		var err error
		if o.Spill, err = filepath.Abs(o.Spill); err != nil { // the program may change its directory
			return nil, err
		}
		if err := os.MkdirAll(o.Spill, 0o700); err != nil {
			return nil, err
		}
		if err := wire.CheckFolder(o.Spill); err != nil {
			return nil, err
		}
		file, err := OpenSpill(o.Spill)
		if err != nil {
			return nil, err
		}
		_ = file.Close()
	}
	var devices *deviceSpill
	if o.SpillDevices != nil {
		if o.Spill == "" || o.DeviceLimit == 0 {
			return nil, &protocol.ArgumentError{Argument: "SpillDevices", Value: "a runtime", Accepted: "nil where Spill names no directory, or devices have no limit"}
		}
		var err error
		if devices, err = newDeviceSpill(o.SpillDevices); err != nil {
			return nil, err
		}
	}
	boot, err := wire.BootID()
	if err != nil {
		return nil, err
	}
	s := &Server{
		devices: devices, Options: o, At: o.Path, instance: protocol.NewID(), boot: boot,
		Objects: map[protocol.ID]*object{}, Names: map[string]*named{}, units: map[protocol.ID]*unit{}, lingering: map[protocol.ID]*unit{},
		domains: map[backends.UUID]*domain{}, Sessions: map[*session]struct{}{}, watchers: map[*session]struct{}{},
		kept: -1, WaitingIDs: waiters[protocol.ID]{}, WaitingNames: waiters[string]{},
	}
	s.Book = book.New(o.TableLimit, func(id protocol.ID) bool { return s.Objects[id] != nil })
	s.Moved, s.OpenSpill = sync.NewCond(&s.Mu), OpenSpill
	return s, nil
}

// Path returns where the server listens.
func (s *Server) Path() string { return s.At }

// Serve answers clients until ctx is done or Close is called, and then ends all connections. It
// may be called once. The error is that of a socket which accepts no clients any more.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	wire.ServersHere.Add(1)
	defer wire.ServersHere.Add(-1)
	s.Mu.Lock()
	if !s.closed {
		s.Lead()
	}
	s.Mu.Unlock()
	s.keepReserve()
	defer func() { _ = wire.CloseRecorded(s.kept) }()
	pause := time.Millisecond
	for {
		socket, err := s.Listener.accept()
		if err != nil {
			if s.isClosed() {
				s.Connections.Wait()
				return nil
			}
			if !wire.RanOut(err) && !errors.Is(err, unix.ENOMEM) && !errors.Is(err, unix.ECONNABORTED) {
				return err
			}
			if !wire.RanOut(err) || !s.starved() {
				time.Sleep(pause)
				pause = min(2*pause, 50*time.Millisecond)
			}
			continue
		}
		pause = time.Millisecond
		s.admit(socket)
	}
}

func (s *Server) isClosed() bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.closed
}

// Close ends the server. What clients have mapped stays theirs.
func (s *Server) Close() error {
	s.Mu.Lock()
	if s.closed {
		s.Mu.Unlock()
		return nil
	}
	s.closed = true
	s.Mu.Unlock()
	s.Links.Finish()
	var err error
	// Another server may have the path where this socket was removed. Its inode is no other's while it listens.
	if wire.IsFile(s.At, s.socket) {
		if gone := os.Remove(s.At); !errors.Is(gone, os.ErrNotExist) {
			err = gone
		}
	}
	err = errors.Join(err, s.Listener.Close())
	s.Connections.Wait()
	s.endSpares()
	s.Mu.Lock()
	s.quiet = true
	for _, o := range s.Objects {
		s.Remove(o, true, protocol.Deleted)
	}
	s.Book.Close()
	s.Mu.Unlock()
	err = errors.Join(err, s.Links.Poll.Close())
	return errors.Join(err, s.Lock.Release())
}
