# SPDX-License-Identifier: Apache-2.0
#
# overhead.awk BEFORE AFTER: compares two results of e2e/bench/quick. Each has two lines "SYSTEM
# OPERATION INSTRUCTIONS" for each figure. overhead.awk uses the lower count, because other work of
# the kernel can only add instructions. It exits with 1 if a figure is missing, or if StargateFS
# needs over 5 % more instructions in AFTER.

BEGIN {
	systems = split("walk splice shadow tmpfs ext4-dax", system_name)
	rows = split("stat open-close read-4k", row)
	title["stat"] = "stat of a cached name"
	title["open-close"] = "open and close"
	title["read-4k"] = "read 4 KiB"
	allowed = 5
}

NF == 3 && $3 ~ /^[0-9]+$/ {
	at = FILENAME == ARGV[1] ? "before" : "after"
	if (!times[at, $1, $2]++ || $3 < least[at, $1, $2])
		least[at, $1, $2] = $3
}

function figure(at, fs, op) {
	if (times[at, fs, op] == 2)
		return least[at, fs, op]
	print "overhead: " at " does not have two figures for " op " in " fs > "/dev/stderr"
	bad = 1
	return 1
}

END {
	print "| instructions | | before | now | more | at most 5 %? |"
	print "|---|---|---:|---:|---:|---|"
	for (r = 1; r <= rows; r++)
		for (s = 1; s <= systems; s++) {
			ours = s <= 3
			b = figure("before", system_name[s], row[r])
			a = figure("after", system_name[s], row[r])
			more = 100 * (a / b - 1)
			if (ours && more > allowed)
				bad = 1
			printf "| %s | %s | %d | %d | %.1f %% | %s |\n", title[row[r]], \
				ours ? "`map=" system_name[s] "`" : system_name[s], b, a, more, \
				!ours ? "" : (more > allowed) ? "missed" : "met"
		}
	print "\nEach figure is the smaller one of two measurements. tmpfs and ext4-dax have the same code in"
	print "both columns. Their difference is the error of the measurement."
	exit bad
}
