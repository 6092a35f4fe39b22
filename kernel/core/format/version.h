/* SPDX-License-Identifier: GPL-2.0 */
/* Which release of the software this is; the format has a number of its own (SG_VERSION). */
#ifndef SG_RELEASE
#define SG_RELEASE	"0.1.0"
#endif
