/* SPDX-License-Identifier: GPL-2.0 */
/* The release of this software. The version of the format is SG_VERSION. */
#ifndef SG_RELEASE
#define SG_RELEASE	"0.2.0"
#endif
