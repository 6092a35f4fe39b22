// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"path"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// Calls of the kind that comes all the time are logged at this level only.
const chatty = 5

var quiet = map[string]bool{
	"Probe": true, "GetCapacity": true, "NodeGetCapabilities": true, "ControllerGetCapabilities": true, "GetPluginInfo": true,
	"GetPluginCapabilities": true, "NodeGetVolumeStats": true, "NodeGetVolumeHealth": true, "NodeGetInfo": true,
}

type caller struct {
	config Config
	work   context.Context
	number atomic.Uint64
}

// detach gives a call a context that ends with the server, and not with the patience of who has called.
func (c *caller) detach(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.config.CallLimit)
	defer cancel()
	defer context.AfterFunc(c.work, cancel)()
	logger := klog.FromContext(c.work).WithValues("method", path.Base(info.FullMethod), "call", c.number.Add(1))
	detached = klog.NewContext(detached, logger)
	if c.config.Context != nil {
		detached = c.config.Context(detached)
	}
	return handler(detached, req)
}

// observe logs, without secrets, and counts.
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

// survive turns a panic into a failed call: the node's other volumes go on.
func (c *caller) survive(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			klog.FromContext(ctx).Error(fmt.Errorf("%v", p), "A call has panicked", "stack", string(debug.Stack()))
			res, err = nil, status.Error(codes.Internal, "a fault of the driver; its log has the details")
		}
	}()
	return handler(ctx, req)
}
