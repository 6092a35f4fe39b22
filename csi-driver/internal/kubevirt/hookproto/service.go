// SPDX-License-Identifier: Apache-2.0

package hookproto

import (
	"context"

	"google.golang.org/grpc"
)

// Call handles one call and returns its reply.
type Call func(ctx context.Context, request Message) (Message, error)

// Register makes the server handle a service's calls.
func Register(s grpc.ServiceRegistrar, service string, calls map[string]Call) {
	d := grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
	for name, call := range calls {
		d.Methods = append(d.Methods, grpc.MethodDesc{MethodName: name, Handler: handler("/"+service+"/"+name, call)})
	}
	s.RegisterService(&d, struct{}{})
}

func handler(method string, call Call) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		request := &Message{}
		if err := decode(request); err != nil {
			return nil, err
		}
		answer := func(ctx context.Context, request any) (any, error) {
			m, err := call(ctx, *request.(*Message))
			if err != nil {
				return nil, err
			}
			return &m, nil
		}
		if interceptor == nil {
			return answer(ctx, request)
		}
		return interceptor(ctx, request, &grpc.UnaryServerInfo{FullMethod: method}, answer)
	}
}

// Ask calls a method of the server over a connection whose codec is Codec.
func Ask(ctx context.Context, c *grpc.ClientConn, method string, request Message) (Message, error) {
	answer := &Message{}
	err := c.Invoke(ctx, method, &request, answer, grpc.ForceCodec(Codec()))
	return *answer, err
}
