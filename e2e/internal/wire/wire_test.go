// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"
	"testing"
)

func TestFramesArriveAsSent(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	sent := []Frame{
		{Session: 7, Kind: Stdin, Data: []byte("data")},
		{Session: 0xffffffff, Kind: Exit, Data: Numbers(255)},
		{Kind: Ready},
		{Session: 1, Kind: Stdout, Data: bytes.Repeat([]byte{0}, MaxData)},
	}
	for _, f := range sent {
		if err := w.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range sent {
		got, err := Read(&buf)
		if err != nil || got.Session != want.Session || got.Kind != want.Kind || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	if _, err := Read(&buf); err == nil {
		t.Error("Read returned a frame after the last frame")
	}
}

func TestChannelOutOfStep(t *testing.T) {
	if _, err := Read(strings.NewReader("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")); err == nil {
		t.Error("a frame of 4 GiB was accepted")
	}
}

func TestTooLongACommand(t *testing.T) {
	if _, err := OpenFrame(1, Request{Args: []string{strings.Repeat("x", MaxData)}}); err == nil {
		t.Error("accepted")
	}
}

func TestCreditsAreBounded(t *testing.T) {
	c := NewCredits()
	c.Give() // a credit that was not taken
	done := make(chan struct{})
	for i := 0; i < Window; i++ {
		if !c.Take(done) {
			t.Fatal("no credit")
		}
	}
	close(done)
	if c.Take(done) {
		t.Error("the sender has more credits than Window")
	}
}
