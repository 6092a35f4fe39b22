# SPDX-License-Identifier: Apache-2.0
#
# Converts fio's output (terse, version 3) to lines of e2e/bench/peers-fio.sh. Exits with 1 if fio
# failed or printed nothing.

BEGIN { FS = ";"; OFS = " " }

# Field 6 is the first field of reads, and field 47 that of writes. From there on, the fields are
# the total KiB, KiB/s, and so on. The percentiles begin at the thirteenth of these fields.
$1 == 3 && NF > 100 {
	from = $6 > 0 ? 6 : 47
	split($3, load, "-")
	if ($5 != 0)
		bad = 1
	p50 = p99 = p999 = 0
	for (i = from + 12; i < from + 32; i++) {
		split($i, part, "%=")
		if (part[1] + 0 == 50)
			p50 = part[2]
		if (part[1] + 0 == 99)
			p99 = part[2]
		if (part[1] + 0 > 99.89 && part[1] + 0 < 99.91)
			p999 = part[2]
	}
	print "fio", system_, load[1], load[2], jobs, $(from + 1), p50, p99, p999
	n++
}

END { exit !n || bad }
