# SPDX-License-Identifier: Apache-2.0
#
# gate.awk -v tolerance=PERCENT BASELINE NOW: compares the counts in NOW with the earlier counts in
# BASELINE. Both files have lines "on: WHAT" and lines "MAP OPERATION INSTRUCTIONS SPREAD". WHAT is
# the kernel, the machine or the compiler, because counts also depend on these. If the repeats of a
# count differ, runs may differ by the same amount. So an operation may take PERCENT more, plus
# twice the SPREAD in BASELINE (in hundredths of a per cent, at most 300). Exit status:
#   0  no operation exceeds this limit
#   1  an operation exceeds this limit, or is in only one of the two files
#   3  the baseline is missing, or has another WHAT: take a new baseline

/^#/ || !NF { next }

/^on: / {
	if (FILENAME == ARGV[1])
		was[++wases] = substr($0, 5)
	else
		is[++ises] = substr($0, 5)
	next
}

NF < 3 || $3 !~ /^[0-9]+$/ {
	print "gate: " FILENAME ": this is not a line of counts: \"" $0 "\""
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
		printf "   %s %s: the baseline has no such count\n", $1, $2
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
			printf "   %s %s: the baseline has this count, but this run has not\n", part[1], part[2]
			bad = 1
		}
	}
	if (!length(seen_map)) {
		print "gate: this run has no counts to compare"
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
