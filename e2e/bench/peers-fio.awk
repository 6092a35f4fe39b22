# SPDX-License-Identifier: Apache-2.0
#
# What fio says (terse, version 3) between two looks at the guest's processor time, in ms, as lines of
# e2e/bench/peers.sh. Ends with 1 when fio met an error or said nothing.

BEGIN { FS = ";"; OFS = " " }

NF == 1 && /^[0-9]+$/ {
	guest = seen++ ? $1 - guest : $1
	next
}

# Fields of one direction begin at 6 (read) or 47 (write): KiB in all, KiB/s, ..., percentiles from the
# thirteenth on.
$1 == 3 && NF > 100 {
	from = $6 > 0 ? 6 : 47
	split($3, load, "-")
	if ($5 != 0)
		bad = 1
	p50 = p999 = 0
	for (i = from + 12; i < from + 32; i++) {
		split($i, part, "%=")
		if (part[1] + 0 == 50)
			p50 = part[2]
		if (part[1] + 0 > 99.89 && part[1] + 0 < 99.91)
			p999 = part[2]
	}
	kib += $from
	print "fio", system_, load[1] "-" load[2], jobs, $(from + 1), p50, p999
	n++
}

END {
	if (seen != 2 || !n || bad)
		exit 1
	print "cpu", system_, jobs, kib, guest, host
}
