// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Sees the requests of block devices inside the kernel and hands one event after another
// to the process that loaded it: what the block tracepoints say, and what none of them
// says: the file, its inode, the write hint and the write stream.
//
// Compile once, run everywhere: the structures below name only the fields that are read,
// and the loader puts the offsets of the running kernel in their place. `build.sh` makes
// `capture.bpf.o` from this file; `src/capture/bpf.rs` loads it and
// `prism_trace::live` reads its events.

#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define KERNEL __attribute__((preserve_access_index))

struct list_head;
struct super_block { __u32 s_dev; unsigned long s_magic; } KERNEL;
struct hlist_node { struct hlist_node *next; } KERNEL;
struct hlist_head { struct hlist_node *first; } KERNEL;
struct inode;
struct address_space { struct inode *host; } KERNEL;
struct inode {
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	struct hlist_head i_dentry;
} KERNEL;
struct qstr { __u64 hash_len; const unsigned char *name; } KERNEL;
union d_links { struct hlist_node d_alias; } KERNEL;
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union d_links d_u;
} KERNEL;
struct page {
	unsigned long compound_head;
	struct address_space *mapping;
} KERNEL;
struct gendisk { int major; int first_minor; } KERNEL;
struct block_device { struct gendisk *bd_disk; } KERNEL;
struct request_queue { struct gendisk *disk; } KERNEL;
struct bvec_iter { __u64 bi_sector; __u32 bi_size; __u32 bi_idx; } KERNEL;
struct bio_vec { struct page *bv_page; __u32 bv_len; __u32 bv_offset; };
struct bio {
	struct block_device *bi_bdev;
	__u32 bi_opf;
	__u16 bi_write_hint;
	__u8 bi_write_stream;
	struct bvec_iter bi_iter;
	void *bi_end_io;
	void *bi_private;
	struct bio_vec *bi_io_vec;
} KERNEL;
// The hint became an enum of one byte in newer kernels; a flavour reads that.
enum rw_hint { RW_HINT_NONE };
struct bio___enum { enum rw_hint bi_write_hint; } KERNEL;
struct request {
	struct request_queue *q;
	__u32 cmd_flags;
	__u32 __data_len;
	__u64 __sector;
	struct bio *bio;
} KERNEL;
struct file { struct inode *f_inode; } KERNEL;
struct kiocb { struct file *ki_filp; } KERNEL;
struct iomap_dio { struct kiocb *iocb; } KERNEL;
struct btrfs_inode { struct inode vfs_inode; } KERNEL;
struct btrfs_bio { struct btrfs_inode *inode; struct bio bio; } KERNEL;

// ---- What the loader sets before the programs run ----

#define DEVICES_MAX 64

// The devices to look at (`major << 20 | minor`); none of them: every device.
const volatile __u32 devices[DEVICES_MAX];
const volatile __u32 device_count;
// Whether bios are counted instead of requests: stacked devices have no requests.
const volatile __u8 by_bio;
// Addresses of the functions that end direct I/O: they tell what `bi_private` is.
const volatile __u64 iomap_end;
const volatile __u64 btrfs_end;
// That of a bio that was cut from the front of another one, which `bi_private` is.
const volatile __u64 chain_end;

// ---- Events; `prism_trace::live::bpf` has the same numbers ----

enum kind {
	QUEUE = 1, ISSUE = 2, COMPLETE = 3, REQUEUE = 4, REMAP = 5, SPLIT = 6,
	BIO_COMPLETE = 7, NAME = 8,
};

struct event {
	__u64 time_ns;     // CLOCK_MONOTONIC
	__u64 sector;      // of 512 bytes
	__u64 inode;       // 0: unknown
	__u64 other_sector; // REMAP: where it came from; SPLIT: where the second part starts
	__u32 other_device; // REMAP: where it came from
	__u32 device;
	__u32 bytes;
	__u32 opf;         // operation in the low 8 bits, flags as the kernel has them
	__u32 pid;
	__u32 file_system; // device number of the file system that has the inode
	__u8 kind;
	__u8 hint;
	__u8 stream;
	__u8 spare[5];
	char comm[16];
};

#define NAME_PARTS 8
#define NAME_BYTES 64

struct name {
	__u64 inode;
	__u64 magic;       // of the file system's super block
	__u32 file_system;
	__u8 kind;
	__u8 parts;        // the last part of the path comes first
	__u8 more;         // the path is longer
	__u8 spare;
	char part[NAME_PARTS][NAME_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} events SEC(".maps");

// Events for which there was no room.
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

struct file_key { __u64 inode; __u64 file_system; };

// Files whose name was told, and a mark by which a new name is noticed.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1 << 14);
	__type(key, struct file_key);
	__type(value, __u64);
} named SEC(".maps");

static __always_inline void lose(void)
{
	__u32 zero = 0;
	__u64 *count = bpf_map_lookup_elem(&lost, &zero);
	if (count)
		*count += 1;
}

static __always_inline __u32 number_of(struct gendisk *disk)
{
	return (__u32)BPF_CORE_READ(disk, major) << 20 | (__u32)BPF_CORE_READ(disk, first_minor);
}

static __always_inline int wanted(__u32 device)
{
	__u32 count = device_count;

	if (count == 0)
		return 1;
	for (__u32 i = 0; i < DEVICES_MAX && i < count; i++)
		if (devices[i] == device)
			return 1;
	return 0;
}

// ---- Whose data it is ----

// The inode whose page cache holds the first page; none for memory of other kinds.
static __always_inline struct inode *cached_inode(struct page *page)
{
	unsigned long head = BPF_CORE_READ(page, compound_head);
	struct address_space *mapping;
	struct inode *inode;

	if (head & 1)
		page = (struct page *)(head - 1);
	mapping = BPF_CORE_READ(page, mapping);
	// The low bits mark anonymous and movable memory.
	if (!mapping || (unsigned long)mapping & 3)
		return 0;
	inode = BPF_CORE_READ(mapping, host);
	// In pages that belong to no file the field holds something else: an inode that
	// does not point back is none.
	if (!inode || BPF_CORE_READ(inode, i_mapping) != mapping)
		return 0;
	return inode;
}

#define CHAIN_MAX 4

// The inode that direct I/O goes to: the first page is the application's own.
static __always_inline struct inode *direct_inode(struct bio *bio)
{
	__u64 end = (__u64)BPF_CORE_READ(bio, bi_end_io);

	for (int i = 0; i < CHAIN_MAX && chain_end && end == chain_end; i++) {
		bio = BPF_CORE_READ(bio, bi_private);
		end = (__u64)BPF_CORE_READ(bio, bi_end_io);
	}
	if (iomap_end && end == iomap_end) {
		struct iomap_dio *dio = BPF_CORE_READ(bio, bi_private);
		return BPF_CORE_READ(dio, iocb, ki_filp, f_inode);
	}
	if (btrfs_end && end == btrfs_end && bpf_core_type_exists(struct btrfs_bio)) {
		struct btrfs_bio *outer =
			(void *)bio - bpf_core_field_offset(struct btrfs_bio, bio);
		struct btrfs_inode *inode = BPF_CORE_READ(outer, inode);
		if (inode)
			return (void *)inode + bpf_core_field_offset(struct btrfs_inode, vfs_inode);
	}
	return 0;
}

static __always_inline void tell_name(struct inode *inode, struct file_key *key)
{
	struct hlist_node *link = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *dentry = 0, *parent;
	__u64 mark = 1, *told;
	struct name *name;

	if (link) {
		dentry = (void *)link - bpf_core_field_offset(struct dentry, d_u);
		mark = BPF_CORE_READ(dentry, d_name.hash_len)
			^ (__u64)BPF_CORE_READ(dentry, d_parent);
	}
	told = bpf_map_lookup_elem(&named, key);
	if (told && *told == mark)
		return;
	name = bpf_ringbuf_reserve(&events, sizeof(*name), 0);
	if (!name) {
		lose();
		return;
	}
	name->inode = key->inode;
	name->file_system = key->file_system;
	name->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	name->kind = NAME;
	name->parts = 0;
	name->more = 0;
	name->spare = 0;
	for (int i = 0; i < NAME_PARTS; i++) {
		const unsigned char *text;

		name->part[i][0] = 0;
		if (!dentry)
			continue;
		parent = BPF_CORE_READ(dentry, d_parent);
		if (parent == dentry) {
			dentry = 0;
			continue;
		}
		text = BPF_CORE_READ(dentry, d_name.name);
		bpf_probe_read_kernel_str(name->part[i], NAME_BYTES, text);
		name->parts = i + 1;
		dentry = parent;
	}
	if (dentry && BPF_CORE_READ(dentry, d_parent) != dentry)
		name->more = 1;
	bpf_ringbuf_submit(name, BPF_RB_NO_WAKEUP);
	bpf_map_update_elem(&named, key, &mark, BPF_ANY);
}

// The file of the data of `bio`, told by name when it is seen for the first time.
static __always_inline void find_file(struct bio *bio, struct file_key *key)
{
	struct inode *inode = direct_inode(bio);
	struct bio_vec *vec, first = {};
	__u32 index;

	key->inode = 0;
	key->file_system = 0;
	if (!inode) {
		vec = BPF_CORE_READ(bio, bi_io_vec);
		if (!vec || BPF_CORE_READ(bio, bi_iter.bi_size) == 0)
			return;
		index = BPF_CORE_READ(bio, bi_iter.bi_idx);
		if (bpf_probe_read_kernel(&first, sizeof(first), vec + index) || !first.bv_page)
			return;
		inode = cached_inode(first.bv_page);
	}
	if (!inode)
		return;
	key->inode = BPF_CORE_READ(inode, i_ino);
	key->file_system = BPF_CORE_READ(inode, i_sb, s_dev);
	tell_name(inode, key);
}

static __always_inline __u8 hint_of(struct bio *bio)
{
	struct bio___enum *newer = (void *)bio;
	__u8 hint = 0;

	// An integer and an enum are no match, so each kernel has one of the two fields.
	if (bpf_core_field_exists(bio->bi_write_hint))
		return BPF_CORE_READ(bio, bi_write_hint);
	if (bpf_core_field_exists(newer->bi_write_hint))
		bpf_core_read(&hint, sizeof(hint), &newer->bi_write_hint);
	return hint;
}

static __always_inline __u8 stream_of(struct bio *bio)
{
	return bpf_core_field_exists(bio->bi_write_stream) ? BPF_CORE_READ(bio, bi_write_stream)
							   : 0;
}

// ---- Events ----

static __always_inline struct event *begin(__u8 kind, __u32 device)
{
	struct event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event) {
		lose();
		return 0;
	}
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->kind = kind;
	event->device = device;
	event->pid = bpf_get_current_pid_tgid() >> 32;
	return event;
}

static __always_inline void of_bio(struct event *event, struct bio *bio)
{
	event->sector = BPF_CORE_READ(bio, bi_iter.bi_sector);
	event->bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	event->opf = BPF_CORE_READ(bio, bi_opf);
}

static __always_inline void of_request(struct event *event, struct request *rq, __u32 bytes)
{
	event->sector = BPF_CORE_READ(rq, __sector);
	event->bytes = bytes;
	event->opf = BPF_CORE_READ(rq, cmd_flags);
}

static __always_inline int bio_event(__u8 kind, struct bio *bio, __u64 sector, __u32 other)
{
	__u32 device = number_of(BPF_CORE_READ(bio, bi_bdev, bd_disk));
	struct file_key key = {};
	struct event *event;

	if (!wanted(device))
		return 0;
	if (by_bio && kind == QUEUE)
		find_file(bio, &key);
	event = begin(kind, device);
	if (!event)
		return 0;
	of_bio(event, bio);
	event->other_sector = sector;
	event->other_device = other;
	if (kind == QUEUE)
		bpf_get_current_comm(event->comm, sizeof(event->comm));
	if (by_bio && kind == QUEUE) {
		event->inode = key.inode;
		event->file_system = key.file_system;
		event->hint = hint_of(bio);
		event->stream = stream_of(bio);
	}
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int request_event(__u8 kind, struct request *rq, __u32 bytes)
{
	struct gendisk *disk = BPF_CORE_READ(rq, q, disk);
	struct bio *bio = BPF_CORE_READ(rq, bio);
	struct file_key key = {};
	struct event *event;
	__u32 device;

	if (!disk)
		return 0;
	device = number_of(disk);
	if (!wanted(device))
		return 0;
	if (kind == ISSUE && bio)
		find_file(bio, &key);
	event = begin(kind, device);
	if (!event)
		return 0;
	of_request(event, rq, bytes);
	if (kind == ISSUE) {
		bpf_get_current_comm(event->comm, sizeof(event->comm));
		event->inode = key.inode;
		event->file_system = key.file_system;
		if (bio) {
			event->hint = hint_of(bio);
			event->stream = stream_of(bio);
		}
	}
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(bio_queue, struct bio *bio)
{
	return bio_event(QUEUE, bio, 0, 0);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(rq_issue, struct request *rq)
{
	return request_event(ISSUE, rq, BPF_CORE_READ(rq, __data_len));
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(rq_complete, struct request *rq, int error, unsigned int bytes)
{
	return request_event(COMPLETE, rq, bytes);
}

SEC("tp_btf/block_rq_requeue")
int BPF_PROG(rq_requeue, struct request *rq)
{
	return request_event(REQUEUE, rq, BPF_CORE_READ(rq, __data_len));
}

SEC("tp_btf/block_split")
int BPF_PROG(split, struct bio *bio, unsigned int sector)
{
	return bio_event(SPLIT, bio, sector, 0);
}

SEC("tp_btf/block_bio_remap")
int BPF_PROG(bio_remap, struct bio *bio, __u32 from, __u64 sector)
{
	return bio_event(REMAP, bio, sector, from);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(bio_complete, void *queue, struct bio *bio)
{
	return by_bio ? bio_event(BIO_COMPLETE, bio, 0, 0) : 0;
}

// By this a test knows that the object was made from this very text.
__attribute__((used)) const char SOURCE[] SEC("source") = SOURCE_SUM;

// The helpers that read the kernel's memory are for programs under its licence as well.
char LICENSE[] SEC("license") = "Dual MIT/GPL";
