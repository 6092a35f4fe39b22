// SPDX-License-Identifier: Apache-2.0

// Command leader VOLUME NAME WHO waits until it is the leader, prints this, and remains the leader
// until it ends. Of all processes that wait for one NAME, on any system, one is the leader. When
// the leader dies, the next process becomes the leader, and learns of the death.
package main

import (
	"errors"
	"fmt"
	"os"

	stargate "stargate/lib"
)

func lead(volume, name string) (afterDeath bool, err error) {
	lock, err := stargate.CreateMutex(volume, name, stargate.Options{})
	if err != nil {
		return false, err
	}
	err = lock.Lock(stargate.Forever)
	if errors.Is(err, stargate.ErrOwnerDied) {
		// A real program repairs here the work that the dead leader did not finish.
		return true, lock.Consistent()
	}
	return false, err
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "Usage: leader VOLUME NAME WHO")
		os.Exit(2)
	}
	afterDeath, err := lead(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "leader:", err)
		os.Exit(1)
	}
	if afterDeath {
		fmt.Println(os.Args[3], "leads, after a death")
	} else {
		fmt.Println(os.Args[3], "leads")
	}
	os.Stdin.Read(make([]byte, 1))
}
