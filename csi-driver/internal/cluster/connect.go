// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// limited has a client send no more requests a second than kubelet does. The client's own limit is five: after a node's
// boot hundreds of pods wait for what the driver asks about each, longer than kubelet waits for the driver. Without a
// limit the drivers of all nodes would add to the load of an API server that has just come up.
func limited(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 50, 100
	return config
}

// Connect speaks for the pod's service account, and has the node claim contents of snapshots, if there are
// such. end sends what is still to be sent.
func Connect(ctx context.Context, driver, name string, contents bool) (node *Node, end func(), err error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("cluster: %w", err)
	}
	client, err := kubernetes.NewForConfig(limited(config))
	if err != nil {
		return nil, nil, fmt.Errorf("cluster: %w", err)
	}
	of, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster: %w", err)
	}
	events := record.NewBroadcaster(record.WithContext(ctx))
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: driver, Host: name})
	node = New(client, recorder, driver, name)
	if contents {
		node.Contents(of)
	}
	return node, events.Shutdown, nil
}
