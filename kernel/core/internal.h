/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that the engine's files share. Folders are layers: each layer may use those above it
 * in this list (mk/lint/layers). A layer reaches the other layers through sg_vol.up.
 */
#ifndef SG_INTERNAL_H
#define SG_INTERNAL_H

#include "base/base.h"
#include "lock/lock.h"
#include "journal/tx.h"
#include "journal/ledger.h"
#include "journal/epoch.h"
#include "alloc/alloc.h"
#include "table/table.h"
#include "inode/inode.h"
#include "data/data.h"
#include "data/redo.h"
#include "dir/dir.h"
#include "deferred/deferred.h"
#include "filelock/filelock.h"
#include "member/member.h"

#endif
