// SPDX-License-Identifier: Apache-2.0

// Command agent is the first program of a guest. As process 1, it initialises the system. Then it
// starts a second process of itself, which serves the rig. In a node, it also connects the rig with
// the VMs in the node.
package main

import (
	"fmt"
	"os"
	"syscall"

	"stargate/e2e/internal/agent"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == agent.JoinCommand {
		if err := agent.Join(os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "rig-agent: %v\n", err)
			os.Exit(1)
		}
		return
	}
	if os.Getpid() != 1 {
		fail(serve())
	}
	if err := agent.Boot(); err != nil {
		fail(err)
	}
	if agent.Probe() {
		fmt.Println(agent.ProbeAnswer)
		powerOff()
	}
	fail(agent.Reap("serve"))
}

func serve() error {
	if err := os.Setenv("PATH", agent.Path); err != nil {
		return err
	}
	channel, err := agent.OpenChannel()
	if err != nil {
		return err
	}
	return agent.Serve(channel)
}

// fail prints an error on the console, which the rig reads, and ends the VM.
func fail(err error) {
	fmt.Printf("rig-agent: %v\n", err)
	if os.Getpid() == 1 {
		powerOff()
	}
	os.Exit(1)
}

func powerOff() {
	syscall.Sync()
	err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Printf("rig-agent: power off: %v\n", err)
}
