// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"stargate/csi-driver/internal/dataset/fill"
)

// mostList limits the size of a list of files.
const mostList = 8 << 20

// parseList reads a list of files with their digests, as `sha256sum` prints it.
func parseList(from io.Reader) ([]fill.File, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostList+1))
	if err != nil {
		return nil, plain(err)
	}
	if len(text) > mostList {
		return nil, fill.Final(fmt.Errorf("the list of files has more than %d bytes", mostList))
	}
	var files []fill.File
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		f, err := parseLine(line)
		if err != nil {
			return nil, fill.Final(fmt.Errorf("line %d of the list of files: %w", number, err))
		}
		if files = append(files, f); len(files) > fill.MostFiles {
			return nil, fill.Final(fmt.Errorf("the list has more than %d files", fill.MostFiles))
		}
	}
	if len(files) == 0 {
		return nil, fill.Final(errors.New("the list of files is empty"))
	}
	return files, nil
}

// parseLine reads a digest, a space, a space or asterisk, and a name. Its errors do not have the
// line: the author of a data set could otherwise read what any server answers.
func parseLine(line string) (fill.File, error) {
	const digits = 64
	bad := fmt.Errorf("it has %d bytes, and is not one of sha256sum", len(line))
	if len(line) < digits+3 || line[digits] != ' ' || line[digits+1] != ' ' && line[digits+1] != '*' {
		return fill.File{}, bad
	}
	digest := strings.ToLower(line[:digits])
	if _, err := hex.DecodeString(digest); err != nil {
		return fill.File{}, bad
	}
	name := strings.TrimPrefix(line[digits+2:], "./")
	return fill.File{Name: name, Digest: digest}, fill.CheckName(name)
}
