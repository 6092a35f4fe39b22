// SPDX-License-Identifier: Apache-2.0

// Command stream connects two programs on different systems: first run stream listen PATH NAME,
// then stream dial PATH NAME. Like stream.py, each program prints the standard input of the other
// program.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	stargate "stargate/lib"
)

func listen(volume, name string) (*stargate.Conn, error) {
	l, err := stargate.Listen(volume, name, 0)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	c, err := l.Accept()
	if err != nil {
		return nil, err
	}
	return c.(*stargate.Conn), nil
}

// dial retries for 10 s until a program listens.
func dial(volume, name string) (*stargate.Conn, error) {
	end := time.Now().Add(10 * time.Second)
	for {
		c, err := stargate.Dial(volume, name, 10*time.Second)
		if err == nil || time.Now().After(end) {
			return c, err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func join(c *stargate.Conn) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, os.Stdin)
		if err == nil {
			err = c.CloseWrite()
		}
		sent <- err
	}()
	if _, err := io.Copy(os.Stdout, c); err != nil {
		return err
	}
	return <-sent
}

func main() {
	if len(os.Args) != 4 || (os.Args[1] != "listen" && os.Args[1] != "dial") {
		fmt.Fprintln(os.Stderr, "Usage: stream listen|dial PATH NAME")
		os.Exit(2)
	}
	open := dial
	if os.Args[1] == "listen" {
		open = listen
	}
	c, err := open(os.Args[2], os.Args[3])
	if err == nil {
		err = join(c)
		c.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "stream:", err)
		os.Exit(1)
	}
}
