/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: all code that interprets or changes the bytes of a volume (D4). The module, the tools
 * and the tests compile the same files. docs/engine.md says how the parts fit together.
 *
 * Conventions: a function returns 0 or a negative errno. A struct sg_iref, filled once by
 * sg_iref(), names an inode. Each function takes the shared locks that it needs. Threads of one
 * system need no other lock to protect the volume (a kernel holds its VFS locks). All bytes of the
 * volume are hostile input (D10): -EUCLEAN reports damage, which has been logged.
 */
#ifndef SG_ENGINE_H
#define SG_ENGINE_H

#include "engine/volume.h"
#include "engine/member.h"
#include "engine/freeze.h"
#include "engine/space.h"
#include "engine/bad_pages.h"
#include "engine/inode.h"
#include "engine/dir.h"
#include "engine/xattr.h"
#include "engine/data.h"
#include "engine/filelock.h"
#include "engine/relocate.h"
#include "engine/sem.h"
#include "engine/doorbell.h"
#include "engine/check.h"

#endif
