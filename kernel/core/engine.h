/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine: everything that interprets or changes the bytes of a volume (D4). The same files are
 * compiled into the module, the tools and the tests. docs/engine.md tells how the parts fit.
 *
 * Conventions: functions return 0 or a negative errno. An inode is named by a struct sg_iref, taken
 * once with sg_iref(). Every function takes the shared locks that it needs by itself; callers
 * inside one system need no further lock for the volume's sake (a kernel holds its VFS locks).
 * All bytes of the volume are hostile (D10): -EUCLEAN reports damage, which has been logged.
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
#include "engine/check.h"

#endif
