// SPDX-License-Identifier: Apache-2.0

// stargate-release contains the chart's hooks. Before an uninstallation, it fails if volumes or
// snapshots still exist. Before an upgrade or a rollback that turns KubeVirt off, it fails if VMs
// still name volumes. After an uninstallation, it removes the driver's labels and annotations from
// nodes. For helm test, it checks whether a pod can use its volume.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"stargate/csi-driver/internal/helmhooks"
)

const (
	usage = 2
	limit = time.Minute
	// kubectl describe shows the content of this file for a container that has ended.
	message = "/dev/termination-log"
)

var errUsage = errors.New("stargate-release volumes|snapshots|nodes DRIVER | stargate-release machines DRIVER WEBHOOKS | " +
	"stargate-release try FOLDER")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said, err := run(ctx, os.Args[1:])
	if errors.Is(err, errUsage) {
		fmt.Fprintln(os.Stderr, "usage:", err)
		os.Exit(usage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stargate-release:", err)
		if err := os.WriteFile(message, []byte(err.Error()), 0o644); err != nil && !errors.Is(err, os.ErrPermission) {
			fmt.Fprintln(os.Stderr, "stargate-release:", err)
		}
		os.Exit(1)
	}
	fmt.Println(said)
}

func run(ctx context.Context, args []string) (string, error) {
	if len(args) == 3 && args[0] == "machines" {
		return "no VM loses its volumes", asking(func(config *rest.Config) error {
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			objects, err := dynamic.NewForConfig(config)
			if err != nil {
				return err
			}
			return helmhooks.NoMachines(ctx, client, objects, args[1], args[2])
		})
	}
	if len(args) != 2 {
		return "", errUsage
	}
	switch args[0] {
	case "volumes":
		return "no volumes are left", asking(func(config *rest.Config) error {
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			return helmhooks.NoVolumes(ctx, client, args[1])
		})
	case "snapshots":
		return "no snapshots are left", asking(func(config *rest.Config) error {
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return err
			}
			return helmhooks.NoSnapshots(ctx, client, args[1])
		})
	case "nodes":
		var said string
		err := asking(func(config *rest.Config) error {
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			said, err = helmhooks.ForgetNodes(ctx, client, args[1])
			return err
		})
		return said, err
	case "try":
		return helmhooks.Try(args[1])
	}
	return "", errUsage
}

// asking returns a command that runs the given query in the program's own cluster.
func asking(question func(*rest.Config) error) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	return question(config)
}
