package otlp

import (
	"context"
	"errors"

	collect "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // senders may pack
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	maxConns = 16
	// maxStreams of one gRPC connection: senders have one export under way.
	maxStreams = 4
)

// exporter is the service's method; grpc wants an interface to check.
type exporter interface {
	export(context.Context, *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error)
}

// traceService describes TraceService by hand: the generated description comes
// with a REST gateway that nothing here uses.
func traceService() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: "opentelemetry.proto.collector.trace.v1.TraceService",
		HandlerType: (*exporter)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: func(srv any, ctx context.Context,
			decode func(any) error, _ grpc.UnaryServerInterceptor,
		) (any, error) {
			var export collect.ExportTraceServiceRequest
			if err := decode(&export); err != nil {
				return nil, err
			}
			return srv.(exporter).export(ctx, &export)
		}}},
	}
}

// grpcExporter answers with gRPC's errors.
type grpcExporter struct{ r *Receiver }

func (g grpcExporter) export(_ context.Context, export *collect.ExportTraceServiceRequest) (*collect.ExportTraceServiceResponse, error) {
	answer, err := g.r.take(export)
	if errors.Is(err, errBusy) {
		s, detailErr := status.New(codes.Unavailable, err.Error()).
			WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(retryAfter)})
		if detailErr != nil {
			return nil, detailErr
		}
		return nil, s.Err()
	}
	return answer, err
}

func (r *Receiver) newGRPC() *grpc.Server {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(r.config.MaxBody),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(64 << 10),
		// A connection that says nothing would hold up a stop for as long.
		grpc.ConnectionTimeout(stopTime),
	}
	if r.config.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(r.config.TLS)))
	}
	s := grpc.NewServer(options...)
	s.RegisterService(traceService(), grpcExporter{r})
	return s
}
