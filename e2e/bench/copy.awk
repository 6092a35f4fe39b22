# SPDX-License-Identifier: Apache-2.0
#
# copy.awk RESULTS: prints the output of e2e/programs/crossover.c as a table. Also prints the
# smallest size from which on vector copies are the fastest, including the time in which a kernel
# saves registers for them.

$1 == "copy" && NF == 5 {
	if (!($3 in seen)) {
		seen[$3] = 1
		size[++sizes] = $3
	}
	written[$2, $3] = $4
	both[$2, $3] = $5
}

function name(n) { return n >= 1048576 ? n / 1048576 " MiB" : n >= 1024 ? n / 1024 " KiB" : n " bytes" }

# Returns the smallest size from which on vectors have lower figures than the other way. Returns 0
# if there is no such size.
function wins(figures, against,    i, from) {
	for (i = 1; i <= sizes; i++)
		if (figures["saved", size[i]] >= figures[against, size[i]])
			from = 0
		else if (!from)
			from = size[i]
	return from
}

function from(n) { return n ? "from " name(n) " on" : "at no size" }

END {
	if (!sizes)
		exit 1
	print "\n| nanoseconds for a copy of | cached, written back | words past caches | vectors past caches | with registers saved |" \
		" the same, read at once: cached | words | vectors | with registers saved |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
	for (i = 1; i <= sizes; i++) {
		n = size[i]
		printf "| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name(n), \
			written["cached", n], written["words", n], written["vectors", n], written["saved", n], \
			both["cached", n], both["words", n], both["vectors", n], both["saved", n]
	}
	printf "\nVectors with saved registers are faster than words past caches %s. They are faster than cached stores with\n", \
		from(wins(written, "words"))
	printf "write-back %s, and also if the data is read immediately %s.\n", from(wins(written, "cached")), from(wins(both, "cached"))
}
