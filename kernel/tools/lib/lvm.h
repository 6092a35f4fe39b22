/* SPDX-License-Identifier: Apache-2.0 */
/* LVM, which cuts a zone into volumes (D2). */
#ifndef SG_LVM_H
#define SG_LVM_H

#include "report.h"

/* May it be used: by whom, is it there, has the kernel what it needs? Says what is missing. */
int lvm_ready(void);
/* One of its commands. 0, or an error that has been said. */
int lvm_run(const char *const *words);
#define LVM(...)	lvm_run((const char *const[]){ __VA_ARGS__, NULL })
/* The same, of a command that reports. */
int lvm_report(const char *const *words, struct report *out);

#endif
