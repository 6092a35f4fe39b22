# SPDX-License-Identifier: Apache-2.0
#
# A fault makes its entry writable only 20 ms after it has ended its protection against a freeze.
# file: kernel/module/mmap.c
# scenario: posix-pages
# maps: walk
s/^#include <linux\/hash.h>/#include <linux\/delay.h>\n&/
/^static vm_fault_t pfn_mkwrite/,/^}/ {
	s/^\t\tmake_writable(vmf);/\t\terr = 0;/
	s/^\treturn err ? .*/\tif (err)\n\t\treturn sgfs_fault_error(inode, err);\n\tmsleep(20);\n\tmake_writable(vmf);\n\treturn VM_FAULT_NOPAGE;/
}
