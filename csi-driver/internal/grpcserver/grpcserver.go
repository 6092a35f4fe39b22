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
	// CallLimit is the time limit of a call that changes something. It is long, because a
	// caller's own limit ends only the caller's wait, not the work. So the driver also
	// completes a large volume that takes longer than any caller waits. A call that only reads
	// ends with its caller.
	CallLimit time.Duration
	// StopLimit is the time in which calls must end when the server stops.
	StopLimit time.Duration
	// Record is called after each call.
	Record func(method string, err error, took time.Duration)
	// Status converts an error to a gRPC status.
	Status func(error) error
	// Context, if set, wraps the context of each call.
	Context func(context.Context) context.Context
	// Show selects the parts of a request or response for the log. If it is nil, the log has
	// the parts that are not secret by CSI's rules.
	Show func(message any) any
	// Options has further options of gRPC.
	Options []grpc.ServerOption
}

// Server is a gRPC server for one socket.
type Server struct {
	config Config
	grpc   *grpc.Server
	stop   context.CancelFunc
}

// New returns a server. The function register adds its services. Calls log to the logger in ctx.
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

// Serve handles calls until ctx is done. Calls that have begun then have StopLimit to end.
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
	s.stop() // the remaining calls are cancelled; callers can repeat them
	select {
	case <-ended:
	case <-time.After(s.config.StopLimit):
		s.grpc.Stop()
	}
}
