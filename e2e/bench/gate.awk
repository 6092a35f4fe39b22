# SPDX-License-Identifier: Apache-2.0
#
# gate.awk -v tolerance=PERCENT BASELINE NOW: compares counts with earlier ones. Both files have
# lines "on: WHAT" and lines "MAP OPERATION INSTRUCTIONS SPREAD". WHAT is the kernel, the machine or
# the compiler: counts also depend on these. A count that differs between repeats may differ as much
# between runs. So each operation may increase by PERCENT plus twice the SPREAD in BASELINE
# (hundredths of a per cent, at most 300). Exit status:
#   0  no operation takes more than that
#   1  an operation takes more, or is in only one of the two files
#   3  the counts were taken on something else, or never: take a new baseline

/^#/ || !NF { next }

/^on: / {
	if (FILENAME == ARGV[1])
		was[++wases] = substr($0, 5)
	else
		is[++ises] = substr($0, 5)
	next
}

NF < 3 || $3 !~ /^[0-9]+$/ {
	print "gate: " FILENAME ": what is \"" $0 "\"?"
	broken = 1
	next
}

FILENAME == ARGV[1] {
	before[$1, $2] = $3
	spread[$1, $2] = $4
	order[++n] = $1 SUBSEP $2
	next
}

{
	now[$1, $2] = $3
	seen_map[$1] = 1
	if (n && !(($1, $2) in before)) {
		printf "   %s %s: not in the baseline\n", $1, $2
		bad = 1
	}
}

function compare(key, part,    more, allowed) {
	more = 100 * (now[key] / before[key] - 1)
	allowed = tolerance + 2 * (spread[key] < 300 ? spread[key] : 300) / 100
	if (more > allowed) {
		printf "   %s %s: %d instructions, %.1f %% more than %d\n", part[1], part[2], now[key], \
			more, before[key]
		bad = 1
	} else if (more < -allowed) {
		printf "   %s %s: %d instructions, %.1f %% less than %d: good; a new baseline would keep that\n", \
			part[1], part[2], now[key], -more, before[key]
	}
}

END {
	if (broken)
		exit 1
	for (i = 1; i <= n; i++) {
		split(order[i], part, SUBSEP)
		if (order[i] in now) {
			compare(order[i], part)
		} else if (part[1] in seen_map) {
			printf "   %s %s: in the baseline, but not counted\n", part[1], part[2]
			bad = 1
		}
	}
	if (!length(seen_map)) {
		print "gate: nothing to compare"
		exit 1
	}
	if (!n) {
		print "   NOT COMPARED: no baseline has been taken yet"
		other = 1
	}
	for (i = 1; n && (i <= wases || i <= ises); i++)
		if (was[i] != is[i]) {
			printf "   NOT COMPARED: the baseline was taken with %s, this is %s\n", was[i], is[i]
			other = 1
		}
	if (other) {
		print "   take a new baseline: make bench SUITE=gate UPDATE=1"
		exit 3
	}
	exit bad
}
