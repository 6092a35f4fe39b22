// SPDX-License-Identifier: Apache-2.0
/*
 * Walks through all names below a directory of the volume, for chmod, find and du.
 *
 * The tree may be damaged, or a hostile member may change it (D10). The walk reads each directory
 * once, however many names it has. So the walk ends, and takes no longer than a read of all
 * directories.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include "ctl.h"
#include "tar.h"

/**
 * struct walker - a walk in progress. @path: path of the visited name. @err: the first error.
 */
struct walker {
	struct call *c;
	const struct walk *w;
	struct tar_text path;
	int err;
};

static void note(struct walker *k, int err)
{
	k->err = k->err ? k->err : err;
}

/*
 * Reports whether the walk must end, because no more names can be printed or changed, or because
 * the tree has a cycle.
 */
static bool is_over(struct walker *k)
{
	return k->err == -ELOOP || k->err == -ENOMEM || ferror(stdout) || call_vol(k->c)->shut_down;
}

static bool read_before(struct walker *k, u64 ino)
{
	const struct link_seen this = { .dev = LINK_DIR, .ino = ino };

	if (links_find(&k->c->links, LINK_DIR, ino)) {
		tool_error("%s: is a directory that has been met by another name; run "
			   "fsck.stargatefs", k->path.bytes);
		note(k, -EUCLEAN);
		return true;
	}
	note(k, path_error(k->path.bytes, links_add(&k->c->links, &this)));
	return false;
}

static void visit(struct walker *k, struct visit *v);

static void visit_below(struct walker *k, const struct visit *dir)
{
	struct visit v = { .depth = dir->depth + 1 };
	size_t len = k->path.len, i;
	struct listing l;
	int err;

	err = list_dir(call_vol(k->c), &dir->ref, k->path.bytes, &l);
	if (err) {
		note(k, err);
		return;
	}
	for (i = 0; i < l.n && !is_over(k); i++) {
		if (len && k->path.bytes[len - 1] != '/')
			tar_add(&k->path, "/", 1);
		tar_add(&k->path, l.item[i].name, l.item[i].len);
		if (k->path.lost) {
			note(k, path_error(l.item[i].name, -ENOMEM));
			break;
		}
		v.name = l.item[i].name;
		v.ino = l.item[i].ino;
		visit(k, &v);
		k->path.len = len;
		k->path.bytes[len] = 0;
	}
	note(k, l.missing);
	list_free(&l);
}

static bool goes_down(struct walker *k, const struct visit *v)
{
	if (v->err || !S_ISDIR(v->attr.mode) || v->depth >= k->w->depth || is_over(k))
		return false;
	if (v->depth >= DEPTH_MAX) {
		note(k, path_error(k->path.bytes, -ENAMETOOLONG));
		return false;
	}
	if (!call_may_go_on(k->c)) {
		note(k, -ELOOP);
		return false;
	}
	return !read_before(k, v->ino) && !is_over(k);
}

static void visit(struct walker *k, struct visit *v)
{
	struct sg_vol *vol = call_vol(k->c);
	bool quiet = tool_quiet;

	v->path = k->path.bytes;
	tool_quiet = true;	/* the engine does not have the path: print errors here */
	v->err = sg_iref(vol, v->ino, &v->ref) ?: sg_getattr(vol, &v->ref, &v->attr);
	tool_quiet = quiet;
	note(k, path_error(v->path, v->err));
	if (k->w->see)
		note(k, k->w->see(k->c, v, k->w->ctx));
	if (goes_down(k, v))
		visit_below(k, v);
	v->path = k->path.bytes;	/* another system may have moved it */
	if (k->w->leave)
		note(k, k->w->leave(k->c, v, k->w->ctx));
}

int walk_tree(struct call *c, const char *path, const struct sg_iref *ref, const struct walk *w)
{
	struct walker k = { .c = c, .w = w };
	char *name = without_slashes(path);
	struct visit v = { .ino = ref->ino };

	if (!name)
		return path_error(path, -ENOMEM);
	v.name = *last_name(name) ? last_name(name) : name;
	tar_add(&k.path, path, strlen(path));
	if (k.path.lost)
		note(&k, path_error(path, -ENOMEM));
	else
		visit(&k, &v);
	free(k.path.bytes);
	free(name);
	links_free(&c->links);
	return k.err;
}

int walk_list(struct call *c, const char *title, const struct walk *w)
{
	const char *path = c->argc ? c->argv[0] : "/";
	struct sg_attr attr;
	struct sg_iref ref;
	int err = path_find(call_vol(c), path, false, &ref, &attr);

	if (err)
		return err;
	if (c->json) {
		json_begin(&c->j, stdout, false);
		json_array(&c->j, title);
	}
	err = walk_tree(c, path, &ref, w);
	if (c->json) {
		json_close(&c->j, ']');
		json_end(&c->j);
	}
	return err;
}
