/* SPDX-License-Identifier: GPL-2.0 */
/* The release of this software; the format has a version of its own (SG_VERSION). */
#ifndef SG_RELEASE
#define SG_RELEASE	"0.1.0"
#endif
