// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"os"
	"syscall"
)

// Values of lseek(2)'s whence that package io does not name.
const (
	seekData = 3
	seekHole = 4
)

// smallHole is the size from which a hole splits a file into separate entries.
const smallHole = 1 << 20

// piece returns the end of the range to copy, which begins at at, and the start of the data behind
// the next hole. If no such data exists, the start is size.
func piece(f *os.File, at, size int64) (end, next int64, err error) {
	for end = at; end < size; {
		if next, err = seek(f, end, seekData, size); err != nil {
			return 0, 0, err
		}
		if next-end >= smallHole {
			return end, next, nil
		}
		if end, err = seek(f, next, seekHole, size); err != nil {
			return 0, 0, err
		}
	}
	return size, size, nil
}

// seek returns the offset of the next data or hole, or size if there is none before size. A file
// system without holes reports no hole.
func seek(f *os.File, at int64, what int, size int64) (int64, error) {
	next, err := f.Seek(at, what)
	switch {
	case errors.Is(err, syscall.EINVAL) && what == seekData:
		return at, nil
	case errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENXIO), err == nil && next > size:
		return size, nil
	}
	return next, err
}
