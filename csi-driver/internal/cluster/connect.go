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

// limited limits a client to the request rate of kubelet. The client's default limit is five
// requests a second. After a node's boot, the driver sends queries about hundreds of pods. With
// five requests a second, kubelet's time limit for the driver's calls would expire. Without any
// limit, the drivers of all nodes would add too much load to an API server that has just started.
func limited(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 50, 100
	return config
}

// Connect returns a Node that uses the pod's service account. If the cluster has contents of
// snapshots, the node claims them. The function end sends queued Events.
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
	node.ReadDatasets(of)
	if contents {
		node.Contents(of)
	}
	return node, events.Shutdown, nil
}
