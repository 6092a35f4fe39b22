// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"strconv"
	"strings"
)

// counter is a line of /proc/interrupts.
type counter struct {
	number int // -1: not an interrupt of a device
	name   string
	total  uint64
}

// parseInterrupts reads /proc/interrupts into a map by the labels of its lines.
func parseInterrupts(text string) map[string]counter {
	found := map[string]counter{}
	head, rest, _ := strings.Cut(text, "\n")
	cpus := len(strings.Fields(head))
	for line := range strings.SplitSeq(rest, "\n") {
		label, counts, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		one := counter{number: -1}
		fields := strings.Fields(counts)
		n := 0
		for n < len(fields) && n < cpus {
			value, err := strconv.ParseUint(fields[n], 10, 64)
			if err != nil {
				break
			}
			one.total += value
			n++
		}
		label = strings.TrimSpace(label)
		if number, err := strconv.Atoi(label); err == nil {
			one.number = number
			if len(fields) > n {
				one.name = fields[len(fields)-1]
			}
		}
		found[label] = one
	}
	return found
}

// times has sums of values in /proc/stat, in the unit of that file.
type times struct{ idle, steal, all uint64 }

func parseTimes(text string) times {
	var sum times
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 9 || fields[0] != "cpu" {
			continue
		}
		// user nice system idle iowait irq softirq steal; user includes guest
		for i, field := range fields[1:9] {
			value, _ := strconv.ParseUint(field, 10, 64)
			sum.all += value
			switch i {
			case 3, 4:
				sum.idle += value
			case 7:
				sum.steal += value
			}
		}
	}
	return sum
}

// parseSerial adds the bytes that all serial ports have sent: tx:N of /proc/tty/driver/serial.
func parseSerial(text string) uint64 {
	var sum uint64
	for field := range strings.FieldsSeq(text) {
		if number, ok := strings.CutPrefix(field, "tx:"); ok {
			value, _ := strconv.ParseUint(number, 10, 64)
			sum += value
		}
	}
	return sum
}

// countList counts the numbers of a list such as 0-3,8.
func countList(list string) int {
	sum := 0
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(low)
		if err != nil {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(high); err != nil || last < first {
				continue
			}
		}
		sum += last - first + 1
	}
	return sum
}

func cut(word string) (key, value string, there bool) { return strings.Cut(word, "=") }

// remote reports whether the content of a file system of this type comes over a network, or from a
// process or the host. Its readahead then decides how many requests are in progress.
func remote(kind string) bool {
	return kind == "nfs" || kind == "nfs4" || kind == "virtiofs" || kind == "fuse" ||
		strings.HasPrefix(kind, "fuse.")
}

// unescape replaces the octal escapes of /proc/self/mountinfo.
func unescape(path string) string {
	for _, pair := range [][2]string{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		path = strings.ReplaceAll(path, pair[0], pair[1])
	}
	return path
}
