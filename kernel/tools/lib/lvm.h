/* SPDX-License-Identifier: Apache-2.0 */
/* LVM, which cuts a zone into volumes (D2). */
#ifndef SG_LVM_H
#define SG_LVM_H

#include "report.h"

/* Check that LVM can be used: permission, program, kernel support. Reports what is missing. */
int lvm_ready(void);
/* Run a command. 0, or an error that has been reported. */
int lvm_run(const char *const *words);
#define LVM(...)	lvm_run((const char *const[]){ __VA_ARGS__, NULL })
/* The same, for a command that reports. */
int lvm_report(const char *const *words, struct report *out);

#endif
