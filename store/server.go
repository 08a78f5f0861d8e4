package store

import (
	"context"

	"hamr/store/internal/server"
)

// ServerOptions say where a server listens and what it may hold.
type ServerOptions = server.Options

// Server keeps objects. Its methods may be called from any goroutine.
type Server struct{ server *server.Server }

// Listen returns a server that listens, and has clients wait until Serve is called, a second at the most. It makes the
// socket's directory if there is none, for the user alone, and refuses one that others can enter.
// A socket that a server left behind which has ended is replaced; that of a living one is a
// *RefusedError.
func Listen(o ServerOptions) (*Server, error) {
	s, err := server.Listen(o)
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// Path returns where the server listens, nothing if it is the zero value.
func (s *Server) Path() string {
	if s.server == nil {
		return ""
	}
	return s.server.Path()
}

// Serve answers clients until ctx is done or Close is called, and then ends all connections. It
// may be called once. The error is that of a socket which accepts no clients any more.
func (s *Server) Serve(ctx context.Context) error { return s.server.Serve(ctx) }

// Close ends the server. What clients have mapped stays theirs.
func (s *Server) Close() error { return s.server.Close() }

// Statistics returns the server's figures.
func (s *Server) Statistics() Statistics { return s.server.Statistics() }
