# SPDX-License-Identifier: Apache-2.0
#
# profile.awk RESULTS: prints the output of e2e/bench/profile.sh as a table. For each operation, the
# table shows the instructions of the kernel, of the module and of the program, and the functions
# with the most instructions.

BEGIN {
	least = 0.02	# the table omits functions with a smaller share of the operation
	title["read-4k"] = "read 4 KiB"
	title["write-4k"] = "overwrite 4 KiB"
	title["append-4k"] = "append 4 KiB"
	title["create"] = "create and close"
	title["open-close"] = "open and close"
}

$1 == "cost" && NF == 4 { cost[$2] = $3; operation[++operations] = $2 }

$1 == "where" && NF == 5 {
	if ($4 == "all") {
		all[$2] = $3
		next
	}
	whose[$2, $4] += $3
	if ($4 != "program" && $3 >= least * all[$2])
		functions[$2] = functions[$2] (functions[$2] ? ", " : "") \
			sprintf("`%s` %s", $5, grouped($3 / all[$2] * cost[$2]))
}

function part(op, of) { return grouped(whose[op, of] / all[op] * cost[op]) }

END {
	if (!operations)
		exit 1
	print "\n| operation | instructions | the program | the kernel | StargateFS | functions with 2 % or more |"
	print "|---|---:|---:|---:|---:|---|"
	for (i = 1; i <= operations; i++) {
		op = operation[i]
		if (all[op] < 500) {
			print "profile: " op " has only " all[op] + 0 " samples" > "/dev/stderr"
			exit 1
		}
		printf "| %s | %s | %s | %s | %s | %s |\n", title[op], grouped(cost[op]), part(op, "program"), \
			part(op, "kernel"), part(op, "stargatefs"), functions[op]
	}
}
