// SPDX-License-Identifier: Apache-2.0

package grpcserver

import (
	"context"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"

	"stargate/csi-driver/internal/stargatectl"
)

// The server logs frequent calls only at this level.
const chatty = 5

var quiet = map[string]bool{
	"Probe": true, "GetCapacity": true, "NodeGetCapabilities": true, "ControllerGetCapabilities": true, "GetPluginInfo": true,
	"GetPluginCapabilities": true, "NodeGetVolumeStats": true, "NodeGetVolumeHealth": true, "NodeGetInfo": true,
}

// lookLimit is the time limit of a call that only reads. The caller retries, and the next call
// would have to wait for this call.
const lookLimit = 2 * time.Minute

// looks reports by CSI's name of a method whether the method only reads.
func looks(method string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(method, "Controller"), "Node")
	return rest == "Probe" || strings.HasPrefix(rest, "Get") || strings.HasPrefix(rest, "List") || strings.HasPrefix(rest, "Validate")
}

type caller struct {
	config Config
	work   context.Context
	number atomic.Uint64
}

// detach returns a context for a call that ends with the server, and not with the caller's time
// limit. A call that only reads keeps its caller's limit. Without a limit, such calls would
// accumulate while the zone does not answer, although no caller waits for their answers.
func (c *caller) detach(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	of, limit := stargatectl.Changing(context.WithoutCancel(ctx)), c.config.CallLimit
	if looks(method) {
		of, limit = ctx, min(limit, lookLimit)
	}
	detached, cancel := context.WithTimeout(of, limit)
	defer cancel()
	defer context.AfterFunc(c.work, cancel)()
	logger := klog.FromContext(c.work).WithValues("method", method, "call", c.number.Add(1))
	detached = klog.NewContext(detached, logger)
	if c.config.Context != nil {
		detached = c.config.Context(detached)
	}
	return handler(detached, req)
}

// observe logs a call without secrets, and counts it.
func (c *caller) observe(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	logger, level := klog.FromContext(ctx), 2
	if quiet[path.Base(info.FullMethod)] {
		level = chatty
	}
	logger.V(level).Info("Call", "request", c.config.Show(req))
	start := time.Now()
	res, err := handler(ctx, req)
	took := time.Since(start)
	err = c.config.Status(err)
	if c.config.Record != nil {
		c.config.Record(info.FullMethod, err, took)
	}
	if err != nil {
		s, _ := status.FromError(err)
		logger.Error(nil, "Call failed", "code", s.Code().String(), "error", s.Message(), "took", took, "request", c.config.Show(req))
		return nil, err
	}
	logger.V(level).Info("Call done", "response", c.config.Show(res), "took", took)
	return res, nil
}

// survive turns a panic into an error of the call. Calls for the node's other volumes continue.
func (c *caller) survive(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			klog.FromContext(ctx).Error(fmt.Errorf("%v", p), "A call has panicked", "stack", string(debug.Stack()))
			res, err = nil, status.Error(codes.Internal, "internal error of the driver; its log has the details")
		}
	}()
	return handler(ctx, req)
}
