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

// own returns the identity of a folder. If the folder's bytes survive a boot, the identity is a
// random word in the lock's file. Another file system that is mounted there then has another
// identity. A folder in the kernel's own memory does not survive a boot, so its identity consists
// of the names of the node and of the folder. The node's name is needed because other nodes may
// have a folder of the same name.
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

// Volatile reports whether a type of file system (statfs) stores its files in the kernel's own
// memory.
func Volatile(kind int64) bool { return kind == unix.TMPFS_MAGIC || kind == unix.HUGETLBFS_MAGIC }

// ownWord reads the word from the file, or writes a new word. It may replace an incomplete word,
// because the zone is then still empty: the writer of a word holds the folder's lock until the word
// is synced to disk. So no volume can be older than the complete word.
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
