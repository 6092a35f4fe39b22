# SPDX-License-Identifier: Apache-2.0
#
# fuse.awk RESULTS: prints the output of e2e/programs/callcost.c as a table, with quotients.

{ took[$1, $2] = $3 }

function us(op, where) { return sprintf("%.1f", took[op, where] / 1000) }

function row(op, name) {
	printf "| %s | %s | %s | %s | %.2f |\n", name, us(op, "server"), us(op, "passthrough"),
		us(op, "tmpfs"), took[op, "server"] / took[op, "passthrough"]
}

END {
	print "\n| call | server, us | pass-through, us | tmpfs, us | server / pass-through |"
	print "|---|---|---|---|---|"
	row("read-4k", "read 4 KiB")
	row("write-4k", "write 4 KiB")
	row("stat", "`stat()`")
	row("create", "create, close, remove")
	row("read-1m", "read 1 MiB")
	row("write-1m", "write 1 MiB")
	copy = took["memcpy", "server"]
	printf "\nA copy of 1 MiB in memory took %.1f us. The server's rate of reads of 1 MiB was %.0f %% of that\ncopy's, and of writes %.0f %%.\n",
		copy / 1000, 100 * copy / took["read-1m", "server"], 100 * copy / took["write-1m", "server"]
}
