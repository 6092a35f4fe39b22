// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/protosanitizer"
	"google.golang.org/grpc"
)

// Config describes a server.
type Config struct {
	// CallLimit ends a call that does not end. It is long: a caller's own limit ends its wait
	// and not the work. So a large volume that takes longer than any caller waits is made in
	// the end. A call that only looks ends with its caller.
	CallLimit time.Duration
	// StopLimit is how long calls have to end when the server stops.
	StopLimit time.Duration
	// Record is told about each call.
	Record func(method string, err error, took time.Duration)
	// Status makes a gRPC status of an error.
	Status func(error) error
	// Context, if set, wraps the context of each call.
	Context func(context.Context) context.Context
	// Show selects the parts of a request or response for the log; if nil, those without
	// secrets by CSI's rules.
	Show func(message any) any
	// Options are further ones of gRPC.
	Options []grpc.ServerOption
}

// Server serves one socket.
type Server struct {
	config Config
	grpc   *grpc.Server
	stop   context.CancelFunc
}

// New makes a server; register adds its services. Calls log to the logger in ctx.
func New(ctx context.Context, config Config, register func(grpc.ServiceRegistrar)) *Server {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	if config.Show == nil {
		config.Show = func(message any) any { return protosanitizer.StripSecrets(message) }
	}
	s := &Server{config: config, stop: stop}
	c := &caller{config: config, work: work}
	s.grpc = grpc.NewServer(append(config.Options, grpc.ChainUnaryInterceptor(c.detach, c.observe, c.survive))...)
	register(s.grpc)
	return s
}

// Serve serves until ctx is done; calls that have begun may end then.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.stop()
	done := make(chan error, 1)
	go func() { done <- s.grpc.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("server at %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.finish()
	if err := <-done; err != nil {
		return fmt.Errorf("server at %s: %w", l.Addr(), err)
	}
	return nil
}

func (s *Server) finish() {
	ended := make(chan struct{})
	go func() { s.grpc.GracefulStop(); close(ended) }()
	select {
	case <-ended:
		return
	case <-time.After(s.config.StopLimit):
	}
	s.stop() // the calls stop waiting; each can be repeated
	select {
	case <-ended:
	case <-time.After(s.config.StopLimit):
		s.grpc.Stop()
	}
}
