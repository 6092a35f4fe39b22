/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: /sys/kernel/tracing/events/stargatefs */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM stargatefs

#if !defined(SGFS_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SGFS_TRACE_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(sgfs_io,
	TP_PROTO(const struct inode *inode, loff_t pos, ssize_t ret),
	TP_ARGS(inode, pos, ret),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(loff_t, pos)
		__field(ssize_t, ret)
	),
	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->pos = pos;
		__entry->ret = ret;
	),
	TP_printk("dev %d:%d ino %llu pos %lld ret %zd", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->ino, __entry->pos, __entry->ret)
);

DEFINE_EVENT(sgfs_io, sgfs_read,
	TP_PROTO(const struct inode *inode, loff_t pos, ssize_t ret),
	TP_ARGS(inode, pos, ret)
);

DEFINE_EVENT(sgfs_io, sgfs_write,
	TP_PROTO(const struct inode *inode, loff_t pos, ssize_t ret),
	TP_ARGS(inode, pos, ret)
);

TRACE_EVENT(sgfs_fault,
	TP_PROTO(const struct inode *inode, u64 page, unsigned int flags, vm_fault_t ret),
	TP_ARGS(inode, page, flags, ret),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(u64, page)
		__field(unsigned int, flags)
		__field(unsigned int, ret)
	),
	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->page = page;
		__entry->flags = flags;
		__entry->ret = (__force unsigned int)ret;
	),
	TP_printk("dev %d:%d ino %llu page %llu flags 0x%x ret 0x%x", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->page, __entry->flags, __entry->ret)
);

TRACE_EVENT(sgfs_fallocate,
	TP_PROTO(const struct inode *inode, int mode, loff_t pos, loff_t len, int ret),
	TP_ARGS(inode, mode, pos, len, ret),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(int, mode)
		__field(loff_t, pos)
		__field(loff_t, len)
		__field(int, ret)
	),
	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->mode = mode;
		__entry->pos = pos;
		__entry->len = len;
		__entry->ret = ret;
	),
	TP_printk("dev %d:%d ino %llu mode 0x%x pos %lld len %lld ret %d", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->mode, __entry->pos, __entry->len,
		  __entry->ret)
);

DECLARE_EVENT_CLASS(sgfs_name,
	TP_PROTO(const struct inode *dir, u64 ino, unsigned int mode),
	TP_ARGS(dir, ino, mode),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, dir)
		__field(u64, ino)
		__field(unsigned int, mode)
	),
	TP_fast_assign(
		__entry->dev = dir->i_sb->s_dev;
		__entry->dir = dir->i_ino;
		__entry->ino = ino;
		__entry->mode = mode;
	),
	TP_printk("dev %d:%d dir %llu ino %llu mode 0%o", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->dir, __entry->ino, __entry->mode)
);

DEFINE_EVENT(sgfs_name, sgfs_create,
	TP_PROTO(const struct inode *dir, u64 ino, unsigned int mode),
	TP_ARGS(dir, ino, mode)
);

DEFINE_EVENT(sgfs_name, sgfs_remove,
	TP_PROTO(const struct inode *dir, u64 ino, unsigned int mode),
	TP_ARGS(dir, ino, mode)
);

TRACE_EVENT(sgfs_rename,
	TP_PROTO(const struct inode *old_dir, const struct inode *new_dir, u64 ino,
		 unsigned int flags),
	TP_ARGS(old_dir, new_dir, ino, flags),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, old_dir)
		__field(u64, new_dir)
		__field(u64, ino)
		__field(unsigned int, flags)
	),
	TP_fast_assign(
		__entry->dev = old_dir->i_sb->s_dev;
		__entry->old_dir = old_dir->i_ino;
		__entry->new_dir = new_dir->i_ino;
		__entry->ino = ino;
		__entry->flags = flags;
	),
	TP_printk("dev %d:%d ino %llu from dir %llu to dir %llu flags 0x%x", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->old_dir, __entry->new_dir,
		  __entry->flags)
);

TRACE_EVENT(sgfs_window,
	TP_PROTO(const struct inode *inode, unsigned int map, unsigned int height, bool got),
	TP_ARGS(inode, map, height, got),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(unsigned int, map)
		__field(unsigned int, height)
		__field(bool, got)
	),
	TP_fast_assign(
		__entry->dev = inode->i_sb->s_dev;
		__entry->ino = inode->i_ino;
		__entry->map = map;
		__entry->height = height;
		__entry->got = got;
	),
	TP_printk("dev %d:%d ino %llu map %u height %u %s", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->ino, __entry->map, __entry->height,
		  __entry->got ? "got" : "none")
);

TRACE_EVENT(sgfs_damage,
	TP_PROTO(const struct super_block *sb, u64 ino, u64 off),
	TP_ARGS(sb, ino, off),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, ino)
		__field(u64, off)
	),
	TP_fast_assign(
		__entry->dev = sb->s_dev;
		__entry->ino = ino;
		__entry->off = off;
	),
	TP_printk("dev %d:%d ino %llu off 0x%llx", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->ino, __entry->off)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
