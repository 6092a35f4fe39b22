/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of LVM, which divides a zone into volumes (D2). */
#ifndef SG_LVM_H
#define SG_LVM_H

#include "report.h"

/*
 * Checks that LVM can be used: permission, program, kernel support. Reports a missing requirement.
 *
 */
int lvm_ready(void);
/* Runs a command. Returns 0, or an error that it has reported. */
int lvm_run(const char *const *words);
#define LVM(...)	lvm_run((const char *const[]){ __VA_ARGS__, NULL })
/* Like lvm_run(), for a command that prints a report. */
int lvm_report(const char *const *words, struct report *out);

#endif
