// SPDX-License-Identifier: Apache-2.0

package folder

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const identityBytes = 16

// own tells a folder from all others. Where bytes outlive the node it is what stands in the lock's file, by chance: so
// another file system that is mounted at the folder, or none, is another folder. In memory that is the kernel's own
// a folder ends with its bytes, and what was in it is gone, as it should be for one who deletes it: there it is
// the names of the node, as other nodes have a folder called so, too, and of the folder.
func own(lock *os.File, p Place) (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(lock.Fd()), &st); err != nil {
		return "", fmt.Errorf("%s: %w", p.Dir, err)
	}
	if Volatile(st.Type) {
		return "folder " + p.Node + " " + p.Dir, nil
	}
	word, err := ownWord(lock)
	if err != nil {
		return "", fmt.Errorf("%s: %w", lock.Name(), err)
	}
	return "word " + word, nil
}

// Volatile tells of a type of file system (statfs) that is memory of the kernel's own.
func Volatile(kind int64) bool { return kind == unix.TMPFS_MAGIC || kind == unix.HUGETLBFS_MAGIC }

// ownWord reads the file, or gives it a word. Nothing is in a zone yet whose word is not whole: whoever writes it
// has the lock, and waits until it is where it survives a power cut.
func ownWord(lock *os.File) (string, error) {
	text := make([]byte, 2*identityBytes+1)
	n, err := lock.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	word := strings.TrimSuffix(string(text[:n]), "\n")
	if b, err := hex.DecodeString(word); err == nil && len(b) == identityBytes {
		return word, nil
	}
	var made [identityBytes]byte
	if _, err := rand.Read(made[:]); err != nil {
		return "", err
	}
	word = hex.EncodeToString(made[:])
	if err := lock.Truncate(0); err != nil {
		return "", err
	}
	if _, err := lock.WriteAt([]byte(word+"\n"), 0); err != nil {
		return "", err
	}
	return word, lock.Sync()
}
