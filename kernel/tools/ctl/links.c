// SPDX-License-Identifier: Apache-2.0
/*
 * Records the copied files of a tree that have other names, so that their other names become hard
 * links.
 */
#define _GNU_SOURCE
#include <search.h>
#include <stdlib.h>
#include "ctl.h"

static int by_key(const void *a, const void *b)
{
	const struct link_seen *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

const struct link_seen *links_find(void *const *links, u64 dev, u64 ino)
{
	struct link_seen key = { .dev = dev, .ino = ino };
	struct link_seen **found = tfind(&key, links, by_key);

	return found ? *found : NULL;
}

static void drop(void *item)
{
	free(((struct link_seen *)item)->path);
	free(item);
}

int links_add(void **links, const struct link_seen *what)
{
	struct link_seen *item = malloc(sizeof(*item));

	if (!item)
		return -ENOMEM;
	*item = *what;
	if (what->path)
		item->path = strdup(what->path);
	if ((what->path && !item->path) || !tsearch(item, links, by_key)) {
		drop(item);
		return -ENOMEM;
	}
	return 0;
}

void links_free(void **links)
{
	tdestroy(*links, drop);
	*links = NULL;
}
