// SPDX-License-Identifier: Apache-2.0

// hookcall SOCKET DOMAIN VOLUMES calls a hook like KubeVirt, and prints the domain in the answer.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"stargate/csi-driver/internal/kubevirt/hookproto"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "hookcall SOCKET DOMAIN VOLUMES")
		os.Exit(2)
	}
	out, err := ask(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, "hookcall:", status.Convert(err).Message())
		os.Exit(1)
	}
	os.Stdout.Write(out)
}

func ask(socket, path, volumes string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	vmi, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"stargate.csi.dev/volumes": volumes}}})
	if err != nil {
		return nil, err
	}
	c, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answer, err := hookproto.Ask(context.Background(), c, "/kubevirt.hooks.v1alpha3.Callbacks/OnDefineDomain", hookproto.Message{}.Add(1, text).Add(2, vmi))
	return answer.Get(1), err
}
