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

// own distinguishes a folder from all others. If its bytes outlive the node, it is a random word in
// the lock's file: another file system mounted at the folder, or none, is then another folder. In
// the kernel's own memory, a folder ends with its bytes, and a caller that deletes its content
// finds it gone, as it should. There it is made of the names of the node and of the folder, because
// other nodes have a folder of that name, too.
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

// Volatile reports whether a type of file system (statfs) is the kernel's own memory.
func Volatile(kind int64) bool { return kind == unix.TMPFS_MAGIC || kind == unix.HUGETLBFS_MAGIC }

// ownWord reads the word from the file, or writes one. A zone with an incomplete word is still
// empty: the writer has the lock, and waits until the word survives a power cut.
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
