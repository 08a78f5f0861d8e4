// Package server keeps the objects of a store and answers its clients. It knows them by their packets alone.
package server

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hamr/gobuffer"
	"hamr/internal/memorylimit"
	"hamr/store/internal/links"
	"hamr/store/internal/memory"
	"hamr/store/internal/objects"
	"hamr/store/internal/protocol"
	"hamr/store/internal/spill"
	"hamr/store/internal/turn"
	"hamr/store/internal/wire"
)

// Options say where a server listens and what it may hold.
type Options struct {
	Path string // DefaultPath where it is empty, and Socket is not given
	// Socket, above 0, is the descriptor of a socket that listens at its path already, as a service manager makes one. The
	// server that Listen returns owns it; the path stays when the server ends.
	Socket      int
	HostLimit   int64 // bytes of the host's memory; 0 is half of what the process may have: see internal/memorylimit
	DeviceLimit int64 // bytes of each device's memory; 0 is no limit
	// TableLimit is how many bytes may be known of objects, metadata and names among them, of which 512 are reckoned for
	// each; 0 is a GiB.
	TableLimit int64
	// Spill is a directory of the user's own for objects of which nobody has a lease while there is no room.
	Spill string
	// SpillDevices, where it is not nil, has objects on its devices spilled, too. The server maps them meanwhile, which
	// takes a context on each of these devices from the first time on; without it a server has none.
	SpillDevices *gobuffer.Runtime
	// Ready is how many bytes of the host's memory are kept ready for an object of half of that and more, which is then
	// written to as quickly as memory that was used before. They count against HostLimit, and are given up where there is
	// no room. 0 is none.
	Ready       int64
	MaxMetadata int // bytes of an object's; 0 is 32 KiB, and 48 KiB is the most
	MaxSessions int // connections at a time; 0 is 4096
}

// complete replaces zeros by what they stand for, and refuses what cannot be.
func (o *Options) complete() error {
	for name, limit := range map[string]int64{
		"Socket": int64(o.Socket), "HostLimit": o.HostLimit, "DeviceLimit": o.DeviceLimit, "TableLimit": o.TableLimit,
		"Ready": o.Ready, "MaxMetadata": int64(o.MaxMetadata), "MaxSessions": int64(o.MaxSessions),
	} {
		if limit < 0 {
			return &protocol.ArgumentError{Argument: name, Value: fmt.Sprint(limit), Accepted: "0 or more"}
		}
	}
	if most := protocol.LargestMetadata; o.MaxMetadata > most {
		accepted := fmt.Sprintf("at most %d", most)
		return &protocol.ArgumentError{Argument: "MaxMetadata", Value: fmt.Sprint(o.MaxMetadata), Accepted: accepted}
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
		// The memory of a container is that of its clients, too.
		if o.HostLimit = memorylimit.Bytes() / 2; o.HostLimit == 0 {
			accepted := "a number of bytes, as it cannot be read how many the process may have"
			return &protocol.ArgumentError{Argument: "HostLimit", Value: "0", Accepted: accepted}
		}
	}
	if o.Ready > o.HostLimit {
		accepted := fmt.Sprintf("at most the host's limit, %d", o.HostLimit)
		return &protocol.ArgumentError{Argument: "Ready", Value: fmt.Sprint(o.Ready), Accepted: accepted}
	}
	return o.checkSpill()
}

// checkSpill makes the folder for files where there is none, and tries it.
func (o *Options) checkSpill() (err error) {
	if o.Spill == "" {
		return nil
	}
	if o.Spill, err = filepath.Abs(o.Spill); err != nil { // the program may change its directory
		return err
	}
	if err := os.MkdirAll(o.Spill, 0o700); err != nil {
		return err
	}
	if err := wire.CheckFolder(o.Spill); err != nil {
		return err
	}
	file, err := spill.Open(o.Spill)
	if err != nil {
		return err
	}
	_ = file.Close()
	return nil
}

// devices are those whose memory may be spilled, nil for none.
func (o *Options) devices() (*spill.Devices, error) {
	if o.SpillDevices == nil {
		return nil, nil
	}
	if o.Spill == "" || o.DeviceLimit == 0 {
		accepted := "nil where Spill names no directory, or devices have no limit"
		return nil, &protocol.ArgumentError{Argument: "SpillDevices", Value: "a runtime", Accepted: accepted}
	}
	return spill.NewDevices(o.SpillDevices)
}

// choosePath sets the path: that of the socket, where there is one.
func (o *Options) choosePath() error {
	if o.Socket > 0 {
		path, err := links.GivenPath(o.Socket)
		if err != nil {
			return err
		}
		if o.Path != "" && o.Path != path {
			accepted := "none, or where Socket listens: " + path
			return &protocol.ArgumentError{Argument: "Path", Value: o.Path, Accepted: accepted}
		}
		o.Path = path
	} else if o.Path == "" {
		o.Path = wire.DefaultPath()
	}
	return nil
}

// Server keeps objects. Its methods may be called from any goroutine.
type Server struct {
	options  Options
	path     string
	pathLock *wire.PathLock
	socket   wire.FileIdentity // of what Listen has bound
	listener *links.Listener
	instance protocol.ID
	boot     string
	links    *links.Links[conversation]
	leaders  sync.WaitGroup // goroutines that answer requests

	lock     turn.Lock // of the table, and of the numbers
	table    *objects.Table
	requests int64
	refused  int64
	breaches int64

	// Of Serve.
	kept       int // a descriptor, -1 for none
	complained time.Time
}

// newServer returns a server without a socket.
func newServer(o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	devices, err := o.devices()
	if err != nil {
		return nil, err
	}
	boot, err := wire.BootID()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, path: o.Path, instance: protocol.NewID(), boot: boot, kept: -1}
	s.table = objects.New(o.TableLimit, o.MaxMetadata, memory.Options{
		HostLimit: o.HostLimit, DeviceLimit: o.DeviceLimit, Spill: o.Spill, Devices: devices, MaxSessions: o.MaxSessions,
	}, &s.lock)
	return s, nil
}

// Path returns where the server listens.
func (s *Server) Path() string { return s.path }

// Statistics returns the server's figures.
func (s *Server) Statistics() protocol.Statistics {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.figures()
}

func (s *Server) figures() protocol.Statistics {
	t := protocol.Statistics{Requests: s.requests, Refused: s.refused, Breaches: s.breaches}
	s.table.Figures(&t)
	return t
}

// Parts are what a server is made of.
type Parts struct {
	Lock        *turn.Lock
	Table       *objects.Table
	Links       *links.Links[conversation]
	Descriptors []int // of the lock's file, and of the socket that listens
}

// Parts returns what a server is made of. Tests of its clients look there.
func (s *Server) Parts() Parts {
	return Parts{&s.lock, s.table, s.links, []int{s.pathLock.Descriptor, s.listener.Descriptor}}
}
