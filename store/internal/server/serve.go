package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"hamr/store/internal/links"
	"hamr/store/internal/protocol"
	"hamr/store/internal/wire"
)

// Listen returns a server that listens. Clients wait until Serve is called, a second at the most. It makes the socket's
// directory if there is none, for the user alone, and refuses one that others can enter. A socket that a server left
// behind which has ended is replaced; that of a living one is a *RefusedError.
func Listen(o Options) (*Server, error) {
	if err := o.choosePath(); err != nil {
		return nil, err
	}
	s, err := newServer(o)
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
	if s.pathLock, err = wire.LockPath(o.Path, o.Socket > 0); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		s.table.Book.Close()
		if s.listener != nil {
			_ = s.listener.Close()
		}
		_ = s.pathLock.Release()
		return nil, err
	}
	s.table.Memory.StartSpares(o.Ready)
	return s, nil
}

// open opens what a server has for its clients.
func (s *Server) open() (err error) {
	if s.options.Socket > 0 {
		s.listener, err = links.ListenGiven(s.options.Socket, s.path)
	} else if err = wire.RemoveStale(s.path); err == nil {
		s.listener, err = links.Listen(s.path)
		s.socket = wire.FileAt(s.path)
	}
	if err != nil {
		return err
	}
	if err := os.Chmod(s.path, 0o600); err != nil {
		return err
	}
	if s.links, err = links.New[conversation](); err != nil {
		return err
	}
	return s.table.Book.Open()
}

// Serve answers clients until ctx is done or Close is called, and then ends all connections. It may be called once. The
// error is that of a socket which accepts no clients any more.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	wire.ServersHere.Add(1)
	defer wire.ServersHere.Add(-1)
	s.lock.Lock()
	if !s.table.Closed {
		s.lead()
	}
	s.lock.Unlock()
	s.keepReserve()
	defer func() { _ = wire.CloseRecorded(s.kept) }()
	pause := time.Millisecond
	for {
		socket, err := s.listener.Accept()
		if err != nil {
			if s.isClosed() {
				s.wait()
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

// admit begins to answer a connection, and owns its descriptor.
func (s *Server) admit(socket int) {
	wire.Record(socket)
	k := &link{Socket: socket, Process: -1}
	c := &conversation{server: s, transport: k, hang: k.Hang}
	k.Conversation = c
	var err error
	if c.process, err = wire.CheckPeer(socket, s.path); err == nil {
		_ = unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_SNDBUF, 4*protocol.MostPacket)
		k.Process = links.ProcessOf(socket)
	}
	if err == nil {
		if err = s.links.Add(k, s.options.MaxSessions); err == nil {
			return
		}
	}
	if err == links.ErrTooMany {
		most := int64(s.options.MaxSessions)
		full := &protocol.FullError{Memory: protocol.MemoryConnections, Needed: 1, Limit: most, Used: most}
		links.TurnAway(socket, full)
	}
	k.Close(nil)
	s.countRefused()
}

func (s *Server) countRefused() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.refused++
}

// starved is told that no connection can be accepted for want of descriptors. It evicts something, or tells a client,
// where there is one, why it is turned away.
func (s *Server) starved() (progress bool) {
	s.lock.Lock()
	freed, full := s.table.Memory.EvictOldest(), s.table.Memory.FullOfDescriptors()
	s.lock.Unlock()
	if freed {
		return true
	}
	if s.kept >= 0 {
		_ = wire.CloseRecorded(s.kept)
		s.kept = -1
	}
	defer s.keepReserve()
	socket, err := s.listener.AcceptNow()
	if err != nil {
		return false
	}
	if _, err := wire.CheckPeer(socket, s.path); err == nil {
		//mutate:replace who cannot be accepted is left to wait
		//mutate:with links.TurnAway(socket, full) => _ = unix.Close(socket)
		links.TurnAway(socket, full)
	}
	_ = unix.Close(socket)
	s.countRefused()
	if now := time.Now(); now.Sub(s.complained) > time.Minute {
		s.complained = now
		fmt.Fprintf(os.Stderr, "hamr store: clients are turned away: %v\n", full)
	}
	return true
}

// keepReserve opens a descriptor that serves to turn clients away when there are no others.
func (s *Server) keepReserve() {
	if s.kept < 0 {
		if kept, err := unix.FcntlInt(uintptr(s.links.Poll.Wake), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			wire.Record(kept)
			s.kept = kept
		}
	}
}

func (s *Server) isClosed() bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.table.Closed
}

// wait returns when nobody answers requests any more.
func (s *Server) wait() {
	s.leaders.Wait()
	s.table.Wait()
}

// Close ends the server. What clients have mapped stays theirs.
func (s *Server) Close() error {
	s.lock.Lock()
	if s.table.Closed {
		s.lock.Unlock()
		return nil
	}
	s.table.Closed = true
	s.lock.Unlock()
	s.links.Finish()
	var err error
	// Where this socket was removed, another server may have the path. No other file has its inode while it listens.
	if wire.IsFile(s.path, s.socket) {
		if gone := os.Remove(s.path); !errors.Is(gone, os.ErrNotExist) {
			err = gone
		}
	}
	err = errors.Join(err, s.listener.Close())
	s.wait()
	s.table.Memory.EndSpares()
	s.lock.Lock()
	s.table.Quiet = true
	for _, o := range s.table.Objects {
		s.table.Remove(o, true, protocol.Deleted)
	}
	s.table.Book.Close()
	s.lock.Unlock()
	err = errors.Join(err, s.links.Poll.Close())
	return errors.Join(err, s.pathLock.Release())
}
