/*
 * Prism: flash at the level of abstraction that suits an application.
 * This file is generated from the library's source: change the source, not this file.
 *
 * Results. Every call that returns int returns a negative prism_status on failure, otherwise 0
 * or a number that its comment describes. A call that was refused has changed nothing.
 * prism_strerror returns a short text for a status, prism_last_message the details.
 *
 * Handles. A pointer to prism_device, prism_share or any other opaque type is a number that the
 * library looks up. NULL, closed handles and handles of another kind are rejected. Close every
 * handle that a call returns once, in any order. Several threads may use a handle at once. A
 * queue is for one thread at a time: calls of others on it wait. Each thread opens its own, and
 * no thread waits for the commands of another's queue.
 *
 * Structures. If a structure begins with `size`, set size to sizeof, also where the call fills
 * the structure in. Set all other fields to zero first: zero means the behaviour of library
 * versions without the field.
 *
 * Pointers. A pointer is NULL or points to what the call describes. The library uses it during
 * the call only. NULL is refused, except for a length of 0 and where the comment allows it.
 *
 * Buffers. A prism_buffer is memory of the library, which queued commands use without a copy. A
 * command that was submitted with a buffer has it until its completion was taken: until then the
 * program does not touch the bytes, and calls on the buffer return PRISM_EBUSY.
 */

#ifndef PRISM_H
#define PRISM_H

#include <stddef.h>
#include <stdint.h>


/**
 * The channel with the least work queued.
 */
#define PRISM_CHANNEL_ANY UINT32_MAX

/**
 * No limit of a wait.
 */
#define PRISM_FOREVER UINT64_MAX

/**
 * The version of this header; `prism_version` returns that of the library.
 */
#define PRISM_VERSION_MAJOR 0

/**
 * The version of this header, its second number.
 */
#define PRISM_VERSION_MINOR 1

/**
 * The version of this header, its third number.
 */
#define PRISM_VERSION_PATCH 0

/**
 * No limit of partly written blocks.
 */
#define PRISM_ANY UINT32_MAX

/**
 * All flash that is left of a share, as over-provisioning of a range.
 */
#define PRISM_REST UINT32_MAX

/**
 * Length of arrays of counts by cause; entries without a cause are 0.
 */
#define PRISM_CAUSES_MAX 16

/**
 * Limit of page types, each with its times.
 */
#define PRISM_PAGE_TYPES_MAX 8

/**
 * The result of a call that failed. Calls that succeeded return 0, or a positive number that their
 * comment describes. A call that was refused has changed nothing.
 */
typedef enum prism_status {
  /**
   * Success.
   */
  PRISM_OK = 0,
  /**
   * An argument is invalid in any state: a null pointer, a structure without its size, a number
   * that is no value of its type.
   */
  PRISM_EARGUMENT = -1,
  /**
   * The handle is closed already, is one of another kind, or never was one.
   */
  PRISM_EHANDLE = -2,
  /**
   * The buffer is too small for the data.
   */
  PRISM_ETOOSMALL = -3,
  /**
   * The queue is full: take a completion first.
   */
  PRISM_EFULL = -4,
  /**
   * A bug of the library: close the handle; the message locates the bug.
   */
  PRISM_EPANIC = -5,
  /**
   * A failure without a status of its own; the message describes it.
   */
  PRISM_EOTHER = -6,
  /**
   * A field of a geometry is out of range.
   */
  PRISM_EGEOMETRY = -10,
  /**
   * The device failed.
   */
  PRISM_EMEDIUM = -11,
  /**
   * The device has lost power: open it again.
   */
  PRISM_EPOWER = -12,
  /**
   * A mapping does not fit the flash that it was given.
   */
  PRISM_EMAPPING = -13,
  /**
   * An address is outside of what the caller owns, or an access has more bytes than there are
   * from its address on, or more out-of-band bytes than a page.
   */
  PRISM_ERANGE = -14,
  /**
   * A length or an address is not a multiple of the unit it has to be aligned to.
   */
  PRISM_EALIGN = -15,
  /**
   * The page was not written since the last erase.
   */
  PRISM_EUNWRITTEN = -16,
  /**
   * A power failure interrupted the program or erase of the page.
   */
  PRISM_ETORN = -17,
  /**
   * Another page of the block is next.
   */
  PRISM_EORDER = -18,
  /**
   * The block is full or closed: erase it first.
   */
  PRISM_ENOTERASED = -19,
  /**
   * Too many blocks are partly written.
   */
  PRISM_EOPEN = -20,
  /**
   * A LUN has no spare block left for one that failed.
   */
  PRISM_EWORNOUT = -21,
  /**
   * The device has fewer free LUNs than requested.
   */
  PRISM_ENOLUNS = -22,
  /**
   * A share or a file of that name exists.
   */
  PRISM_EEXISTS = -23,
  /**
   * No share has that name.
   */
  PRISM_ENOSHARE = -24,
  /**
   * The share, the level or the file is in use already.
   */
  PRISM_EINUSE = -25,
  /**
   * The share was released or its device closed.
   */
  PRISM_ERELEASED = -26,
  /**
   * LUNs that hold data cannot be given back.
   */
  PRISM_ESHRINK = -27,
  /**
   * The share holds data of another level.
   */
  PRISM_ELEVEL = -28,
  /**
   * There is no space left, in the share or on the disk of the file. The message says which.
   */
  PRISM_ENOSPACE = -29,
  /**
   * The block or page was trimmed before, or never allocated.
   */
  PRISM_ENOTALLOCATED = -30,
  /**
   * Blocks requested as over-provisioning are in use.
   */
  PRISM_EOPS = -31,
  /**
   * A range holds data or overlaps another, or a higher level is still open.
   */
  PRISM_EBUSY = -32,
  /**
   * The request is not possible in the present state; the message says why.
   */
  PRISM_EINVALID = -33,
  /**
   * The device has no timing.
   */
  PRISM_ENOCLOCK = -34,
  /**
   * This is no formatted device.
   */
  PRISM_ENOTFORMATTED = -35,
  /**
   * The tables of the device could not be written.
   */
  PRISM_ETABLES = -36,
  /**
   * Reading or writing a file failed.
   */
  PRISM_EIO = -37,
  /**
   * The device is read-only.
   */
  PRISM_EREADONLY = -38,
  /**
   * Written data is damaged.
   */
  PRISM_EDAMAGED = -39,
  /**
   * A file cannot be opened, or has another format or version; the message says why.
   */
  PRISM_EFILE = -40,
} prism_status;

/**
 * Whether operations are durable at once.
 */
typedef enum prism_cache {
  /**
   * Operations are durable at once, as on flash.
   */
  PRISM_CACHE_NONE = 0,
  /**
   * Operations are durable after the next sync or flush.
   */
  PRISM_CACHE_VOLATILE = 1,
} prism_cache;

/**
 * The cause of a flash operation, the index of its count in `prism_counts`.
 */
typedef enum prism_cause {
  /**
   * A request of the application.
   */
  PRISM_CAUSE_HOST = 0,
  /**
   * Cleaning (garbage collection).
   */
  PRISM_CAUSE_GC = 1,
  /**
   * Wear levelling.
   */
  PRISM_CAUSE_WEAR = 2,
  /**
   * Tables of the monitor and of trims.
   */
  PRISM_CAUSE_MAP = 3,
  /**
   * Merges of block-level mappings.
   */
  PRISM_CAUSE_MERGE = 4,
  /**
   * Refresh of aged data.
   */
  PRISM_CAUSE_SCRUB = 5,
  /**
   * Parity.
   */
  PRISM_CAUSE_PARITY = 6,
  /**
   * Padding of a program unit that had to be programmed before it was full.
   */
  PRISM_CAUSE_PAD = 7,
  /**
   * Read-modify-write of a partly written unit.
   */
  PRISM_CAUSE_RMW = 8,
  /**
   * Moves from a write cache.
   */
  PRISM_CAUSE_FOLD = 9,
  /**
   * Moves of valid data from a failed block.
   */
  PRISM_CAUSE_RETIRE = 10,
} prism_cause;

/**
 * How pages of a file are read and written.
 */
typedef enum prism_engine {
  /**
   * By io_uring and direct I/O where the system has both and pages are multiples of 4 KiB, else
   * portably.
   */
  PRISM_ENGINE_BEST = 0,
  /**
   * By io_uring and direct I/O, or not at all.
   */
  PRISM_ENGINE_URING = 1,
  /**
   * By plain reads and writes through the page cache.
   */
  PRISM_ENGINE_PORTABLE = 2,
} prism_engine;

/**
 * How addresses of a range are mapped.
 */
typedef enum prism_mapping {
  /**
   * Page-level mapping, in units: for writes in any order; the largest map.
   */
  PRISM_MAP_PAGE = 0,
  /**
   * Block-level mapping: for whole blocks that are written in order.
   */
  PRISM_MAP_BLOCK = 1,
  /**
   * Block-level mapping with log blocks for each group of blocks.
   */
  PRISM_MAP_HYBRID = 2,
} prism_mapping;

/**
 * How the block of a range to be cleaned is chosen.
 */
typedef enum prism_cleaning {
  /**
   * The block with the least valid data.
   */
  PRISM_CLEAN_GREEDY = 0,
  /**
   * The block that was filled first.
   */
  PRISM_CLEAN_FIFO = 1,
  /**
   * The block with the best ratio of benefit to cost, weighted by age.
   */
  PRISM_CLEAN_COST_BENEFIT = 2,
  /**
   * The block that has not changed for longest.
   */
  PRISM_CLEAN_LRU = 3,
} prism_cleaning;

/**
 * How long data is expected to live; each has the placement handle of its number.
 */
typedef enum prism_lifetime {
  /**
   * Unknown.
   */
  PRISM_LIFE_UNKNOWN = 0,
  /**
   * Overwritten or deleted soon.
   */
  PRISM_LIFE_SHORT = 1,
  /**
   * Between short and long.
   */
  PRISM_LIFE_MEDIUM = 2,
  /**
   * Not changed for long.
   */
  PRISM_LIFE_LONG = 3,
  /**
   * Never changed.
   */
  PRISM_LIFE_EXTREME = 4,
} prism_lifetime;

/**
 * The unit of an allocation or a trim.
 */
typedef enum prism_unit {
  /**
   * A block.
   */
  PRISM_UNIT_BLOCK = 0,
  /**
   * A page.
   */
  PRISM_UNIT_PAGE = 1,
} prism_unit;

/**
 * Memory of the library that a device reads into and programs from without a copy. From the
 * submission of a command with the buffer until its completion was taken, the library owns the
 * bytes: the program neither reads nor writes them, and every call on the buffer returns
 * `PRISM_EBUSY`.
 */
typedef struct prism_buffer prism_buffer;

/**
 * A container: addresses from 0 on. Threads may use it at once.
 */
typedef struct prism_container prism_container;

/**
 * A flash device that applications share. Threads may use it at once.
 */
typedef struct prism_device prism_device;

/**
 * A share at the function level. Threads may use it at once, each with a queue of its own; a
 * blocking call advances the share's clock for all of them.
 */
typedef struct prism_function prism_function;

/**
 * A command queue of the function level, for one thread at a time: a call of another thread on the
 * same queue waits, those on other queues do not.
 */
typedef struct prism_function_queue prism_function_queue;

/**
 * A key-value store. Threads may use it at once.
 */
typedef struct prism_kv prism_kv;

/**
 * Flash in memory, with all rules and failures of flash. Its data stays while devices on it are
 * closed and opened, until it is closed itself. Threads may use it at once.
 */
typedef struct prism_memory prism_memory;

/**
 * A store of objects. Threads may use it at once.
 */
typedef struct prism_objects prism_objects;

/**
 * A share at the policy level. Threads may use it at once.
 */
typedef struct prism_policy prism_policy;

/**
 * A queue of the policy level, for one thread at a time: a call of another
 * thread on the same queue waits, those on other queues do not.
 */
typedef struct prism_policy_queue prism_policy_queue;

/**
 * A share at the raw level. Threads may use it at once; they have to order their operations on one
 * block.
 */
typedef struct prism_raw prism_raw;

/**
 * A command queue of the raw level, for one thread at a time: a call of another thread on the same
 * queue waits, those on other queues do not.
 */
typedef struct prism_raw_queue prism_raw_queue;

/**
 * A share. A level that is open in it keeps it attached, so close both handles before attaching to
 * it again. Threads may use it at once.
 */
typedef struct prism_share prism_share;

/**
 * A page of a share; calls on a block ignore `page`.
 */
typedef struct prism_address {
  /**
   * The channel, of those the share has LUNs on.
   */
  uint32_t channel;
  /**
   * The LUN, of those the share has on the channel.
   */
  uint32_t lun;
  /**
   * The block of the LUN.
   */
  uint32_t block;
  /**
   * The page of the block.
   */
  uint32_t page;
} prism_address;

/**
 * A container: a named part of a range.
 */
typedef struct prism_container_info {
  /**
   * sizeof(prism_container_info).
   */
  size_t size;
  /**
   * Its first address in the share.
   */
  uint64_t begin;
  /**
   * The address after its last.
   */
  uint64_t end;
  /**
   * One of `prism_lifetime`.
   */
  uint64_t lifetime;
} prism_container_info;

/**
 * How long operations take in virtual time.
 */
typedef struct prism_timing {
  /**
   * sizeof(prism_timing).
   */
  size_t size;
  /**
   * Nanoseconds from the array to the page register, for each type of page, lowest first.
   */
  uint64_t t_read_ns[PRISM_PAGE_TYPES_MAX];
  /**
   * Nanoseconds from the page register to the array, for each type of page.
   */
  uint64_t t_program_ns[PRISM_PAGE_TYPES_MAX];
  /**
   * Number of page types: 1 if all pages have the same times.
   */
  uint64_t page_types;
  /**
   * Nanoseconds of an erase.
   */
  uint64_t t_erase_ns;
  /**
   * Nanoseconds of a command on the channel, before each operation.
   */
  uint64_t t_command_ns;
  /**
   * Bandwidth of a channel; 0 for one that is infinitely fast.
   */
  uint64_t bus_bytes_per_second;
} prism_timing;

/**
 * When LUNs are exchanged to level wear.
 */
typedef struct prism_wear_policy {
  /**
   * sizeof(prism_wear_policy).
   */
  size_t size;
  /**
   * LUNs are exchanged if their mean erase counts differ by more than this...
   */
  uint64_t min_gap;
  /**
   * ... and by more than this fraction of the device's mean.
   */
  double delta;
  /**
   * Upper limit of erases for levelling, as a fraction of all erases.
   */
  double budget;
} prism_wear_policy;

/**
 * Options of a session with a device; none is stored on flash.
 */
typedef struct prism_options {
  /**
   * sizeof(prism_options).
   */
  size_t size;
  /**
   * The times of a device with virtual time; NULL for one without.
   */
  const struct prism_timing *timing;
  /**
   * When LUNs are exchanged automatically; NULL for never.
   */
  const struct prism_wear_policy *wear;
} prism_options;

/**
 * The geometry of a device.
 */
typedef struct prism_geometry {
  /**
   * sizeof(prism_geometry).
   */
  size_t size;
  /**
   * Channels (buses).
   */
  uint32_t channels;
  /**
   * LUNs (dies) on each channel.
   */
  uint32_t luns_per_channel;
  /**
   * Blocks of a LUN.
   */
  uint32_t blocks_per_lun;
  /**
   * Pages of a block.
   */
  uint32_t pages_per_block;
  /**
   * Bytes of a page.
   */
  uint32_t page_size;
  /**
   * Out-of-band bytes of each page; 0 on zoned devices.
   */
  uint32_t oob_size;
  /**
   * Blocks that may be partly written at once; 0 for any number.
   */
  uint32_t max_open_blocks;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_geometry;

/**
 * How a file is opened or made. All zero means the defaults.
 */
typedef struct prism_file_settings {
  /**
   * sizeof(prism_file_settings).
   */
  size_t size;
  /**
   * One of `prism_engine`.
   */
  uint32_t engine;
  /**
   * Limit of writes in flight of each of the four writers for blocking calls: at most 1024; 0
   * for 64. Each takes a page of memory. Queues have a depth of their own.
   */
  uint32_t depth;
  /**
   * 1 to open the file for reading only, which several processes can do at once; else 0.
   */
  uint32_t read_only;
  /**
   * 1 to write zeros to the whole file when it is made: it takes its space on disk at once, and
   * syncs become faster. 0 for a sparse file. Opening ignores it.
   */
  uint32_t preallocate;
} prism_file_settings;

/**
 * Operations on flash, by cause: `programs[PRISM_CAUSE_GC]`.
 */
typedef struct prism_counts {
  /**
   * sizeof(prism_counts).
   */
  size_t size;
  /**
   * Pages read.
   */
  uint64_t reads[PRISM_CAUSES_MAX];
  /**
   * Pages programmed.
   */
  uint64_t programs[PRISM_CAUSES_MAX];
  /**
   * Blocks erased.
   */
  uint64_t erases[PRISM_CAUSES_MAX];
} prism_counts;

/**
 * How evenly the LUNs of a device are worn.
 */
typedef struct prism_wear_report {
  /**
   * sizeof(prism_wear_report).
   */
  size_t size;
  /**
   * The highest mean erase count of a LUN.
   */
  double max;
  /**
   * The mean over the device.
   */
  double mean;
  /**
   * The lowest mean erase count of a LUN.
   */
  double min;
  /**
   * Pairs of LUNs exchanged since the device was formatted.
   */
  uint64_t exchanges;
  /**
   * Erases that levelling has cost since then, at most.
   */
  uint64_t erases;
} prism_wear_report;

/**
 * A share, as listed by `prism_device_share`.
 */
typedef struct prism_share_info {
  /**
   * sizeof(prism_share_info).
   */
  size_t size;
  /**
   * Its LUNs.
   */
  uint32_t luns;
  /**
   * How many of them are over-provisioning.
   */
  uint32_t ops_luns;
  /**
   * 1 if an application is attached to it, else 0.
   */
  uint32_t attached;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_share_info;

/**
 * The size and the limits of a new share.
 */
typedef struct prism_allocation {
  /**
   * sizeof(prism_allocation).
   */
  size_t size;
  /**
   * Bytes for the application.
   */
  uint64_t capacity;
  /**
   * Limit of reads and writes together, in bytes/s; 0 for no limit.
   */
  uint64_t bandwidth;
  /**
   * Over-provisioning in percent of the capacity.
   */
  uint32_t over_provisioning;
  /**
   * Blocks that may be partly written at once, where the device limits them; 0 for a part of the
   * limit in proportion to the share's LUNs.
   */
  uint32_t open_blocks;
} prism_allocation;

/**
 * The result of an allocation at the function level.
 */
typedef struct prism_allocated {
  /**
   * sizeof(prism_allocated).
   */
  size_t size;
  /**
   * Its address.
   */
  struct prism_address at;
  /**
   * How many more of the same unit the channel has without a wait, excluding over-provisioning.
   * 0 if this was the last one.
   */
  uint32_t free_left;
  /**
   * Trimmed blocks of the channel that are not erased yet.
   */
  uint32_t erasing;
} prism_allocated;

/**
 * The result of levelling, and the wear of the blocks of a share.
 */
typedef struct prism_wear_level {
  /**
   * sizeof(prism_wear_level).
   */
  size_t size;
  /**
   * The mean of the erase counts.
   */
  double mean;
  /**
   * Their variance.
   */
  double variance;
  /**
   * The highest.
   */
  uint32_t max;
  /**
   * The lowest.
   */
  uint32_t min;
} prism_wear_level;

/**
 * Two blocks whose data levelling has moved; their addresses still refer to the same data.
 */
typedef struct prism_pair {
  /**
   * The block whose data moved from a worn block to a fresh one.
   */
  struct prism_address hot;
  /**
   * The block whose cold data moved to the worn block.
   */
  struct prism_address cold;
} prism_pair;

/**
 * A block that is allocated at the function level.
 */
typedef struct prism_owned_block {
  /**
   * Its first page.
   */
  struct prism_address at;
  /**
   * The word of its owner, as passed to `prism_function_allocate_for`; 0 if it has none.
   */
  uint64_t owner;
  /**
   * The page that is to be written next.
   */
  uint32_t written;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_owned_block;

/**
 * The completion of a queued command.
 */
typedef struct prism_completion {
  /**
   * sizeof(prism_completion).
   */
  size_t size;
  /**
   * The tag with which the command was submitted.
   */
  uint64_t tag;
  /**
   * The end of the command, in nanoseconds of virtual time.
   */
  uint64_t end_ns;
  /**
   * Bytes that a read has written to the buffer; 0 for other commands.
   */
  uint64_t length;
  /**
   * The result, a `prism_status`.
   */
  int32_t status;
  /**
   * 0.
   */
  uint32_t reserved;
  /**
   * The buffer of the command, which is the caller's again; NULL if it had none.
   */
  struct prism_buffer *buffer;
} prism_completion;

/**
 * The callback of `prism_kv_scan`, called for each key with its value, which are valid until it
 * returns. It returns 0 to continue the scan. It must not throw an exception; it may use the
 * store.
 */
typedef int (*prism_kv_visit)(void *context,
                              const void *key,
                              size_t key_length,
                              const void *value,
                              size_t value_length);

/**
 * Content of a key-value store, and its operations since it was opened.
 */
typedef struct prism_kv_info {
  /**
   * sizeof(prism_kv_info).
   */
  size_t size;
  /**
   * Keys that have a value.
   */
  uint64_t records;
  /**
   * Bytes of these keys and values.
   */
  uint64_t live_bytes;
  /**
   * Bytes that they are charged, including headers and tombstones.
   */
  uint64_t charged_bytes;
  /**
   * The limit of bytes charged.
   */
  uint64_t capacity_bytes;
  /**
   * Bytes of keys and values set, and of keys deleted.
   */
  uint64_t written_bytes;
  /**
   * Pages programmed, for any cause.
   */
  uint64_t programs;
  /**
   * Bytes programmed divided by bytes written; 0 before the first.
   */
  double write_amplification;
} prism_kv_info;

/**
 * The attributes of an object.
 */
typedef struct prism_attributes {
  /**
   * sizeof(prism_attributes).
   */
  size_t size;
  /**
   * 1 if its reads and writes have priority, else 0.
   */
  uint32_t priority;
  /**
   * 1 if it cannot be written, truncated or deleted, else 0.
   */
  uint32_t read_only;
  /**
   * 1 if it will not be changed for long, else 0.
   */
  uint32_t cold;
  /**
   * One of `prism_lifetime`.
   */
  uint32_t lifetime;
} prism_attributes;

/**
 * The configuration of a range of the policy level.
 */
typedef struct prism_range_config {
  /**
   * sizeof(prism_range_config).
   */
  size_t size;
  /**
   * One of `prism_mapping`.
   */
  uint32_t mapping;
  /**
   * One of `prism_cleaning`.
   */
  uint32_t cleaning;
  /**
   * Logical blocks of a group (N), with `PRISM_MAP_HYBRID`; else 0.
   */
  uint32_t group_blocks;
  /**
   * Upper limit of log blocks of a group (K), with `PRISM_MAP_HYBRID`; else 0.
   */
  uint32_t group_log_blocks;
  /**
   * Over-provisioning in percent of the range, or `PRISM_REST`. The paper has 25.
   */
  uint32_t over_provisioning;
  /**
   * Placement handles: kinds of data that are written to different blocks; 0 counts as 1.
   */
  uint32_t handles;
  /**
   * Blocks that may be partly written at once; 0 for a default.
   */
  uint32_t open_blocks;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_range_config;

/**
 * A range, as listed by `prism_policy_range`.
 */
typedef struct prism_range_info {
  /**
   * sizeof(prism_range_info).
   */
  size_t size;
  /**
   * Its first address.
   */
  uint64_t begin;
  /**
   * The address after its last.
   */
  uint64_t end;
  /**
   * Bytes of its mapped units.
   */
  uint64_t mapped;
  /**
   * Blocks of the share that it owns.
   */
  uint32_t blocks;
  /**
   * Blocks that are written in parallel for data of one kind.
   */
  uint32_t die_groups;
  /**
   * One of `prism_mapping`.
   */
  uint32_t mapping;
  /**
   * One of `prism_cleaning`.
   */
  uint32_t cleaning;
  /**
   * As in `prism_range_config`.
   */
  uint32_t group_blocks;
  /**
   * As in `prism_range_config`.
   */
  uint32_t group_log_blocks;
  /**
   * As in `prism_range_config`.
   */
  uint32_t over_provisioning;
  /**
   * As in `prism_range_config`.
   */
  uint32_t handles;
  /**
   * As in `prism_range_config`.
   */
  uint32_t open_blocks;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_range_info;

/**
 * The geometry of a share. Channels can have different numbers of LUNs, which
 * `prism_share_channel` returns.
 */
typedef struct prism_share_geometry {
  /**
   * sizeof(prism_share_geometry).
   */
  size_t size;
  /**
   * Bytes of all LUNs except over-provisioning.
   */
  uint64_t capacity;
  /**
   * Channels on which the share has LUNs.
   */
  uint32_t channels;
  /**
   * LUNs, including over-provisioning.
   */
  uint32_t luns;
  /**
   * LUNs of over-provisioning.
   */
  uint32_t ops_luns;
  /**
   * Blocks of a LUN.
   */
  uint32_t blocks_per_lun;
  /**
   * Pages of a block.
   */
  uint32_t pages_per_block;
  /**
   * Bytes of a page.
   */
  uint32_t page_size;
  /**
   * Out-of-band bytes of a page.
   */
  uint32_t oob_size;
  /**
   * Blocks that may be partly written at once; `PRISM_ANY` for any number.
   */
  uint32_t max_open_blocks;
} prism_share_geometry;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Returns the number of open handles of all kinds, for tests of handle leaks.
 */
int prism_open_handles(void);

/**
 * Writes an address as one word, for maps of an application, to `bits`: the page in bits 0 to 15,
 * the block in 16 to 35, the LUN in 36 to 45, the channel in 46 to 55, and zeros, which the
 * application may use, in 56 to 63. Words are ordered as addresses are. `PRISM_ERANGE` if a number
 * is larger than on any device.
 */
int prism_address_to_bits(struct prism_address at,
                          uint64_t *bits);

/**
 * Writes the address of a word to `at`. `PRISM_ERANGE` if one of the highest 8 bits is set.
 */
int prism_address_from_bits(uint64_t bits, struct prism_address *at);

/**
 * Makes a buffer of `length` bytes, which are zero: at most a block of the device, and at most a
 * GiB. A command uses all of it or its first bytes. It may be used with other devices too, and
 * after the device is closed.
 */
int prism_buffer_alloc(struct prism_device *device,
                       size_t length,
                       struct prism_buffer **buffer);

/**
 * Returns the bytes of a buffer, the same address as long as the buffer lives. NULL if it fails,
 * with the reason in `prism_last_message`: the handle is invalid, or a command in flight has the
 * buffer.
 */
void *prism_buffer_data(struct prism_buffer *buffer);

/**
 * Frees a buffer and its bytes. `PRISM_EBUSY` while a command in flight has it.
 */
int prism_buffer_free(struct prism_buffer *buffer);

/**
 * Makes a container of `length` bytes in the range that begins at `range`, for data of a
 * `prism_lifetime`.
 */
int prism_container_create(struct prism_policy *policy,
                           uint64_t range,
                           const char *name,
                           uint64_t length,
                           uint32_t life,
                           struct prism_container **container);

/**
 * Opens the container of this name.
 */
int prism_container_open(struct prism_policy *policy,
                         const char *name,
                         struct prism_container **container);

/**
 * Closes the handle; the container stays.
 */
int prism_container_close(struct prism_container *container);

/**
 * Deletes the container of this name with its data, durably. Calls on its handles return
 * `PRISM_ERELEASED` from now on; the handles still have to be closed.
 */
int prism_container_delete(struct prism_policy *policy, const char *name);

/**
 * Returns the number of containers of all ranges.
 */
int prism_policy_containers(struct prism_policy *policy);

/**
 * Describes container number `index`, by address. Writes its name to `name`, a buffer of
 * `capacity` bytes, truncated if necessary. Returns the length of the name.
 */
int prism_policy_container(struct prism_policy *policy,
                           size_t index,
                           struct prism_container_info *info,
                           char *name,
                           size_t capacity);

/**
 * The addresses and the lifetime of the container.
 */
int prism_container_get_info(struct prism_container *container,
                             struct prism_container_info *info);

/**
 * Reads from `offset` on.
 */
int prism_container_read(struct prism_container *container,
                         uint64_t offset,
                         void *data,
                         size_t length);

/**
 * Writes from `offset` on, as data of the container's lifetime. The data is durable after the next
 * `prism_policy_flush`.
 */
int prism_container_write(struct prism_container *container,
                          uint64_t offset,
                          const void *data,
                          size_t length);

/**
 * Trims `length` bytes from `offset` on, which have to be whole units.
 */
int prism_container_trim(struct prism_container *container, uint64_t offset, uint64_t length);

/**
 * Formats flash in memory as an empty device: all of its data is lost. `options` may be NULL: no
 * virtual time, no automatic wear levelling.
 */
int prism_device_format_memory(struct prism_memory *memory,
                               const struct prism_options *options,
                               struct prism_device **device);

/**
 * Opens a device that was formatted on flash in memory, and recovers from a power failure.
 * `options` may be NULL.
 */
int prism_device_open_memory(struct prism_memory *memory,
                             const struct prism_options *options,
                             struct prism_device **device);

/**
 * Makes a file with an empty device in it; the file must not exist. It is sparse: it grows on disk
 * as pages are programmed. Only one process at a time can have it open. `options` may be NULL. If
 * it fails, no file is left: `PRISM_ENOSPACE` if the disk is full, `PRISM_EWORNOUT` if there are
 * too few blocks for the device's own tables.
 */
int prism_device_create(const char *path,
                        const struct prism_geometry *geometry,
                        const struct prism_options *options,
                        struct prism_device **device);

/**
 * As `prism_device_create`, with settings for the file, which may be NULL for the defaults.
 * `PRISM_EARGUMENT` if they are for reading only.
 */
int prism_device_create_with(const char *path,
                             const struct prism_geometry *geometry,
                             const struct prism_file_settings *settings,
                             const struct prism_options *options,
                             struct prism_device **device);

/**
 * Opens a device in a file, and recovers from a power failure. Without permission to write the
 * file, the device is read-only. `PRISM_EINUSE` if it is open already. `options` may be NULL.
 */
int prism_device_open(const char *path,
                      const struct prism_options *options,
                      struct prism_device **device);

/**
 * As `prism_device_open`, with settings for the file, which may be NULL for the defaults.
 */
int prism_device_open_with(const char *path,
                           const struct prism_file_settings *settings,
                           const struct prism_options *options,
                           struct prism_device **device);

/**
 * From now on operations also take real time: a call on a share that is attached later returns
 * when the device would have completed it. `PRISM_ENOCLOCK` on a device without timing.
 */
int prism_device_in_real_time(struct prism_device *device);

/**
 * Closes the device as the end of the process would, so flush the levels before: data that they
 * have in memory is not written. A file is synced; if that fails, the device is closed
 * nevertheless. Calls on remaining handles of shares and levels return `PRISM_ERELEASED` from now
 * on; the handles still have to be closed.
 */
int prism_device_close(struct prism_device *device);

/**
 * The geometry of the device, including spare blocks and tables.
 */
int prism_device_geometry(struct prism_device *device, struct prism_geometry *geometry);

/**
 * Writes the bytes of a LUN that a share can use to `bytes`: those of its blocks without spare
 * ones and tables.
 */
int prism_device_lun_capacity(struct prism_device *device, uint64_t *bytes);

/**
 * Returns the number of usable LUNs that belong to no share.
 */
int prism_device_free_luns(struct prism_device *device);

/**
 * Operations for the tables, for failed blocks and for levelling since the device was opened.
 */
int prism_device_counts(struct prism_device *device, struct prism_counts *counts);

/**
 * How evenly the device is worn.
 */
int prism_device_wear(struct prism_device *device, struct prism_wear_report *report);

/**
 * Levels wear now, moving about `blocks` blocks regardless of the budget of the options. Returns 1
 * if more blocks should move, else 0.
 */
int prism_device_level_wear(struct prism_device *device,
                            const struct prism_wear_policy *policy,
                            uint32_t blocks);

/**
 * Returns the number of shares.
 */
int prism_device_shares(struct prism_device *device);

/**
 * Describes share number `index`, in the order of their allocation. Writes its name to `name`, a
 * buffer of `capacity` bytes, truncated if necessary. Returns the length of the name.
 */
int prism_device_share(struct prism_device *device,
                       size_t index,
                       struct prism_share_info *info,
                       char *name,
                       size_t capacity);

/**
 * Allocates a share, whose name has 1 to 255 bytes and no control characters, and attaches to it.
 */
int prism_device_allocate(struct prism_device *device,
                          const char *name,
                          const struct prism_allocation *wanted,
                          struct prism_share **share);

/**
 * Attaches to a share that was allocated before.
 */
int prism_device_attach(struct prism_device *device,
                        const char *name,
                        struct prism_share **share);

/**
 * Releases a share that is not attached: its data is lost.
 */
int prism_device_release(struct prism_device *device, const char *name);

/**
 * Opens the function level in a share, which stays attached until the level is closed. Blocks that
 * hold data are allocated: `prism_function_allocated` and `prism_function_owned_blocks` list them.
 * `PRISM_EINUSE` if the level is open in the share already.
 */
int prism_function_open(struct prism_share *share,
                        struct prism_function **function);

/**
 * Closes the handle. Open queues keep the level open. A block that waits for its erase keeps its
 * data: call `prism_function_drain` before.
 */
int prism_function_close(struct prism_function *function);

/**
 * Allocates an erased block, or the next page of an open one (`Address_Mapper` of the paper).
 * `channel` may be `PRISM_CHANNEL_ANY`, `unit` is one of `prism_unit`. `PRISM_ENOSPACE` if the
 * channel has none left, or only over-provisioning.
 */
int prism_function_address_mapper(struct prism_function *function,
                                  uint32_t channel,
                                  uint32_t unit,
                                  struct prism_allocated *allocated);

/**
 * Writes whole pages of one block, from `at` on, which has to be its next page (`Flash_Write` of
 * the paper).
 */
int prism_function_write(struct prism_function *function,
                         struct prism_address at,
                         const void *data,
                         size_t length);

/**
 * Reads whole pages of one block, from `at` on (`Flash_Read` of the paper). The content of `data`
 * is unspecified if that fails.
 */
int prism_function_read(struct prism_function *function,
                        struct prism_address at,
                        void *data,
                        size_t length);

/**
 * Trims a block or a page (`Flash_Trim` of the paper); the block is erased in the background.
 * `unit` is one of `prism_unit`.
 */
int prism_function_trim(struct prism_function *function,
                        struct prism_address at,
                        uint32_t unit);

/**
 * Waits until all trimmed blocks are erased. Without virtual time, a block with commands in flight
 * is erased when their completions were taken, and not waited for.
 */
int prism_function_drain(struct prism_function *function);

/**
 * Returns the number of trimmed blocks that are not erased yet.
 */
int prism_function_erasing(struct prism_function *function);

/**
 * Returns the number of erased blocks of a channel, including over-provisioning.
 */
int prism_function_free(struct prism_function *function, uint32_t channel);

/**
 * Returns the number of allocated blocks. Writes their addresses to `blocks`, LUN by LUN, each
 * with its next page to write, at most `capacity` of them.
 */
int prism_function_allocated(struct prism_function *function,
                             struct prism_address *blocks,
                             size_t capacity);

/**
 * Sets the over-provisioning to `percent` of the remaining capacity (`Flash_SetOPS` of the paper),
 * and writes its number of blocks to `blocks`. `PRISM_EOPS` if too many blocks are allocated:
 * `must_free` is then set to the number to trim first. Both may be NULL.
 */
int prism_function_set_ops(struct prism_function *function,
                           uint32_t percent,
                           uint32_t *blocks,
                           uint32_t *must_free);

/**
 * Levels wear (`Wear_Leveler` of the paper): exchanges the data of at most `max_pairs` pairs of
 * blocks whose erase counts differ by more than `min_gap`, the widest gaps first. Addresses do not
 * change. Returns the number of pairs, and writes them to `pairs`, at most `capacity` of them.
 */
int prism_function_wear_level(struct prism_function *function,
                              uint32_t max_pairs,
                              uint32_t min_gap,
                              struct prism_wear_level *level,
                              struct prism_pair *pairs,
                              size_t capacity);

/**
 * Makes everything durable that was written and is complete.
 */
int prism_function_sync(struct prism_function *function);

/**
 * Writes a ticket for everything that is complete now to `ticket`: `prism_function_sync_to` makes
 * it durable, with one sync for the tickets of many threads.
 */
int prism_function_ticket(struct prism_function *function,
                          uint64_t *ticket);

/**
 * Makes everything durable that was complete when the ticket was drawn. Returns at once if a sync
 * since then has done so.
 */
int prism_function_sync_to(struct prism_function *function,
                           uint64_t ticket);

/**
 * Allocates an erased block as `prism_function_address_mapper` does, with a word of the
 * application that `prism_function_owned_blocks` returns after the share was opened again. The
 * word is stored in the last 8 out-of-band bytes of the block's first page; 0 is no owner.
 * `PRISM_EINVALID` on a device with fewer than 8 out-of-band bytes, or with virtual time.
 */
int prism_function_allocate_for(struct prism_function *function,
                                uint32_t channel,
                                uint64_t owner,
                                struct prism_allocated *allocated);

/**
 * Returns the number of allocated blocks. Writes them to `blocks`, LUN by LUN, each with its next
 * page to write and the word of its owner: 0 if it has none, or if nothing was written to the
 * block. At most `capacity` of them. The first call after the share was opened reads the
 * out-of-band bytes of a page of each block.
 */
int prism_function_owned_blocks(struct prism_function *function,
                                struct prism_owned_block *blocks,
                                size_t capacity);

/**
 * Reads a part of a block: `length` bytes from byte `offset` of page `at` on. With virtual time
 * the read takes its time at once, before queued commands.
 */
int prism_function_read_at(struct prism_function *function,
                           struct prism_address at,
                           uint32_t offset,
                           void *data,
                           size_t length);

/**
 * Returns the number of out-of-band bytes of a page that the application can use: those of the
 * device without the 8 bytes of the block's owner.
 */
int prism_function_oob_size(struct prism_function *function);

/**
 * Writes whole pages as `prism_function_write` does, and the first `oob_length` out-of-band bytes
 * of the first page: at most `prism_function_oob_size`.
 */
int prism_function_write_oob(struct prism_function *function,
                             struct prism_address at,
                             const void *data,
                             size_t length,
                             const void *oob,
                             size_t oob_length);

/**
 * Reads the first `oob_length` out-of-band bytes of a page: at most `prism_function_oob_size`.
 */
int prism_function_read_oob(struct prism_function *function,
                            struct prism_address at,
                            void *oob,
                            size_t oob_length);

/**
 * Closes a block: it takes no more pages and no longer counts as partly written.
 */
int prism_function_finish(struct prism_function *function, struct prism_address at);

/**
 * Returns the page of the block that is to be written next.
 */
int prism_function_write_pointer(struct prism_function *function, struct prism_address at);

/**
 * Writes to `erases` how often the block at this address was erased.
 */
int prism_function_erase_count(struct prism_function *function,
                               struct prism_address at,
                               uint32_t *erases);

/**
 * Opens a queue with at most `depth` commands in flight: 1 to 65536. Each thread opens its own.
 */
int prism_function_queue_open(struct prism_function *function,
                              uint32_t depth,
                              struct prism_function_queue **queue);

/**
 * Closes a queue. Submitted commands still take effect. Waits for those in flight,
 * whose completions are dropped and whose buffers can be used again.
 */
int prism_function_queue_close(struct prism_function_queue *queue);

/**
 * Submits the read of `length` bytes, whole pages of one block, from `at` on. The completion
 * delivers the data: a copy. `PRISM_EFULL` if the queue is full.
 */
int prism_function_queue_read(struct prism_function_queue *queue,
                              struct prism_address at,
                              size_t length,
                              uint64_t tag);

/**
 * As `prism_function_queue_read`, into the first `length` bytes of `buffer`, without a copy. The
 * library owns the buffer until the completion was taken.
 */
int prism_function_queue_read_buffer(struct prism_function_queue *queue,
                                     struct prism_address at,
                                     struct prism_buffer *buffer,
                                     size_t length,
                                     uint64_t tag);

/**
 * Submits the write of whole pages of one block, from `at` on. The data is copied: the memory is
 * the caller's again when this returns.
 */
int prism_function_queue_write(struct prism_function_queue *queue,
                               struct prism_address at,
                               const void *data,
                               size_t length,
                               uint64_t tag);

/**
 * As `prism_function_queue_write`, from the first `length` bytes of `buffer`, without a copy, and
 * with the first `oob_length` out-of-band bytes of the first page, which are copied: at most
 * `prism_function_oob_size`. The library owns the buffer until the completion was taken.
 */
int prism_function_queue_write_buffer(struct prism_function_queue *queue,
                                      struct prism_address at,
                                      struct prism_buffer *buffer,
                                      size_t length,
                                      const void *oob,
                                      size_t oob_length,
                                      uint64_t tag);

/**
 * Submits a trim: it completes at once, and the erase follows after the commands submitted for the
 * block before. `unit` is one of `prism_unit`.
 */
int prism_function_queue_trim(struct prism_function_queue *queue,
                              struct prism_address at,
                              uint32_t unit,
                              uint64_t tag);

/**
 * Submits a sync: its completion says that everything is durable that was complete when it was
 * submitted, and the writes that were submitted to this queue before.
 */
int prism_function_queue_sync(struct prism_function_queue *queue, uint64_t tag);

/**
 * Returns how many commands are in flight: submitted, and their completion not taken.
 */
int prism_function_queue_length(struct prism_function_queue *queue);

/**
 * Waits until there is a completion to take; `PRISM_FOREVER` for no limit. Returns 1 if there is
 * one, else 0: at once if no command is in flight, and if no operation of the device completes for
 * `timeout_ns` nanoseconds. With virtual time, the clock of the share advances instead.
 * Without a limit, a sync goes to the disk together with the writes before it if nothing else is
 * in flight: their completions come when it is complete.
 */
int prism_function_queue_wait(struct prism_function_queue *queue,
                              uint64_t timeout_ns);

/**
 * Returns a file descriptor for event loops (epoll, poll): when it is readable, and before a sleep
 * after submissions, call `prism_function_queue_poll` until that returns 0. The queue owns it: do
 * not read, write or close it. Ask in the thread that uses the queue, and again if another thread
 * takes it over. `PRISM_EINVALID` if commands are complete as soon as they are submitted, or in
 * virtual time.
 * A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread to
 * complete operations. Poll and sleep again.
 */
int prism_function_queue_event_fd(struct prism_function_queue *queue);

/**
 * Waits for the next completion, as `prism_raw_queue_complete` does.
 */
int prism_function_queue_complete(struct prism_function_queue *queue,
                                  struct prism_completion *completion,
                                  void *data,
                                  size_t capacity);

/**
 * As `prism_function_queue_complete`, without waiting: returns 0 if no command is complete.
 */
int prism_function_queue_poll(struct prism_function_queue *queue,
                              struct prism_completion *completion,
                              void *data,
                              size_t capacity);

/**
 * Opens the store in a share, or makes one if the share is empty. The share stays attached until
 * the store is closed.
 */
int prism_kv_open(struct prism_share *share,
                  struct prism_kv **kv);

/**
 * Closes the store. Writes that were not flushed are lost.
 */
int prism_kv_close(struct prism_kv *kv);

/**
 * Returns the longest key in bytes: 255, or an eighth of a page if that is less.
 */
int prism_kv_key_max(struct prism_kv *kv);

/**
 * Sets the value of a key: 16 MiB at most. It is durable after the next `prism_kv_flush`.
 */
int prism_kv_set(struct prism_kv *kv,
                 const void *key,
                 size_t key_length,
                 const void *value,
                 size_t value_length);

/**
 * Deletes a key. Returns 1 if it had a value, else 0.
 */
int prism_kv_delete(struct prism_kv *kv, const void *key, size_t key_length);

/**
 * Returns 1 if the key has a value, else 0. Writes the value to `value` and its length to
 * `value_length`; if `capacity` is less, writes only the length and returns `PRISM_ETOOSMALL`.
 */
int prism_kv_get(struct prism_kv *kv,
                 const void *key,
                 size_t key_length,
                 void *value,
                 size_t capacity,
                 size_t *value_length);

/**
 * Calls `visit` for the first `limit` keys in order, from `from` on and before `to`, with their
 * values, which are read in parallel. A bound that is NULL is no bound. Returns the number of keys
 * visited.
 */
int prism_kv_scan(struct prism_kv *kv,
                  const void *from,
                  size_t from_length,
                  const void *to,
                  size_t to_length,
                  size_t limit,
                  prism_kv_visit visit,
                  void *context);

/**
 * Makes everything set or deleted so far durable.
 */
int prism_kv_flush(struct prism_kv *kv);

/**
 * Content and operations of the store. Iterates over all keys.
 */
int prism_kv_get_info(struct prism_kv *kv, struct prism_kv_info *info);

/**
 * Makes an erased device in memory. `cache` is one of `prism_cache`.
 */
int prism_memory_create(const struct prism_geometry *geometry,
                        uint32_t cache_kind,
                        struct prism_memory **memory);

/**
 * Closes the handle; the memory is freed when no device is open on it any more.
 */
int prism_memory_close(struct prism_memory *memory);

/**
 * Power fails during the operation (program, erase, finish or sync) after the next `operations`.
 * Every call on the device fails from then on with `PRISM_EPOWER`.
 */
int prism_memory_cut_power_after(struct prism_memory *memory,
                                 uint64_t operations);

/**
 * Returns 1 if power has failed, else 0.
 */
int prism_memory_lost_power(struct prism_memory *memory);

/**
 * Cuts power, unless it has failed already, and restores it. With a volatile cache each block
 * keeps the first few of its operations since the last sync, as many as `seed` determines, and the
 * next one may be torn. Close the device before, and open it again after this: otherwise
 * `PRISM_EINUSE`.
 */
int prism_memory_restart(struct prism_memory *memory,
                         uint64_t seed);

/**
 * Every program and erase of `block`, a number of the device, fails from now on.
 */
int prism_memory_wear_out(struct prism_memory *memory, uint32_t block);

/**
 * Marks `block` as bad by the manufacturer; call it before the device is formatted.
 */
int prism_memory_mark_bad(struct prism_memory *memory, uint32_t block);

/**
 * From now on a block wears out with probability `rate` at each program and erase.
 */
int prism_memory_fail_at_random(struct prism_memory *memory, double rate, uint64_t seed);

/**
 * Writes the number of programs, erases, finishes and syncs so far to `operations`.
 */
int prism_memory_operations(struct prism_memory *memory, uint64_t *operations);

/**
 * Reads the first bytes of a page on flash, below the monitor. Returns 1 if the page was written,
 * 0 if it is erased, `PRISM_ETORN` if it cannot be read. The buffer is unchanged unless the page
 * was written.
 */
int prism_memory_read(struct prism_memory *memory,
                      uint32_t block,
                      uint32_t page,
                      void *data,
                      size_t length);

/**
 * Opens the store in a share, with its objects, if any. The share stays attached until the store
 * is closed.
 */
int prism_objects_open(struct prism_share *share,
                       struct prism_objects **objects);

/**
 * Closes the store. Writes that were not flushed are lost.
 */
int prism_objects_close(struct prism_objects *objects);

/**
 * Writes the bytes for all objects together to `size`, and those that are free to `free_bytes`.
 */
int prism_objects_capacity(struct prism_objects *objects, uint64_t *size, uint64_t *free_bytes);

/**
 * Makes an empty object and writes its id to `id`. `attributes` may be NULL for the defaults.
 */
int prism_objects_create(struct prism_objects *objects,
                         const struct prism_attributes *attributes,
                         uint64_t *id);

/**
 * Writes the size of an object to `size` and its attributes to `attributes`. Either may be NULL.
 */
int prism_objects_info(struct prism_objects *objects,
                       uint64_t id,
                       uint64_t *size,
                       struct prism_attributes *attributes);

/**
 * Returns the number of objects. Writes their ids to `ids`, the lowest first, at most `capacity`
 * of them.
 */
int prism_objects_list(struct prism_objects *objects,
                       uint64_t *ids,
                       size_t capacity);

/**
 * Changes the attributes of an object; later writes are placed accordingly.
 */
int prism_objects_set_attributes(struct prism_objects *objects,
                                 uint64_t id,
                                 const struct prism_attributes *attributes);

/**
 * Reads from `offset` on, up to the end of the object. Writes the number of bytes read to `read`.
 */
int prism_objects_read(struct prism_objects *objects,
                       uint64_t id,
                       uint64_t offset,
                       void *data,
                       size_t length,
                       size_t *read);

/**
 * Writes at `offset`; the object grows as far as needed.
 */
int prism_objects_write(struct prism_objects *objects,
                        uint64_t id,
                        uint64_t offset,
                        const void *data,
                        size_t length);

/**
 * Writes at the end. `offset`, which may be NULL, is set to the offset of the data.
 */
int prism_objects_append(struct prism_objects *objects,
                         uint64_t id,
                         const void *data,
                         size_t length,
                         uint64_t *offset);

/**
 * Sets the size of an object: truncates it, or extends it with zeros.
 */
int prism_objects_truncate(struct prism_objects *objects, uint64_t id, uint64_t size);

/**
 * Deletes an object. Its data is never copied again from the next flush on.
 */
int prism_objects_delete(struct prism_objects *objects, uint64_t id);

/**
 * Makes everything done so far durable.
 */
int prism_objects_flush(struct prism_objects *objects);

/**
 * Cleans in idle time, up to `program_units` program units of copies. Returns 1 if there was
 * anything to do, else 0.
 */
int prism_objects_idle(struct prism_objects *objects, uint32_t program_units);

/**
 * Opens the policy level in a share, with its ranges, if any. The share stays attached until the
 * level is closed.
 */
int prism_policy_open(struct prism_share *share,
                      struct prism_policy **policy);

/**
 * Closes the level. Writes that were not flushed are lost. Open containers and queues keep the
 * level open.
 */
int prism_policy_close(struct prism_policy *policy);

/**
 * Writes the bytes of a mapping unit to `bytes`, the smallest that is written without a
 * read-modify-write. Ranges, containers and trims consist of whole units.
 */
int prism_policy_unit(struct prism_policy *policy, uint32_t *bytes);

/**
 * Writes the bytes of data in a block to `bytes`, which a range with block-level mapping replaces
 * without copies.
 */
int prism_policy_block_bytes(struct prism_policy *policy,
                             uint64_t *bytes);

/**
 * Makes a range of the addresses from `begin` up to but excluding `end` (`FTL_Ioctl` of the
 * paper), which can be read and written from then on. Replaces an empty range of the same
 * addresses.
 */
int prism_policy_configure(struct prism_policy *policy,
                           uint64_t begin,
                           uint64_t end,
                           const struct prism_range_config *config);

/**
 * Removes the empty range that begins at `begin`.
 */
int prism_policy_remove(struct prism_policy *policy, uint64_t begin);

/**
 * Returns the number of ranges.
 */
int prism_policy_ranges(struct prism_policy *policy);

/**
 * Describes range number `index`, by address.
 */
int prism_policy_range(struct prism_policy *policy,
                       size_t index,
                       struct prism_range_info *info);

/**
 * Reads within one range (`FTL_Read` of the paper); bytes that were never written are zero.
 */
int prism_policy_read(struct prism_policy *policy, uint64_t address, void *data, size_t length);

/**
 * Writes within one range (`FTL_Write` of the paper). The data is durable after the next
 * `prism_policy_flush`.
 */
int prism_policy_write(struct prism_policy *policy,
                       uint64_t address,
                       const void *data,
                       size_t length);

/**
 * Writes as data of a placement handle; of the last handle if there are fewer.
 */
int prism_policy_write_with_handle(struct prism_policy *policy,
                                   uint64_t address,
                                   const void *data,
                                   size_t length,
                                   uint32_t placement);

/**
 * Trims these addresses, which have to be whole units: they read as zeros from now on.
 */
int prism_policy_trim(struct prism_policy *policy, uint64_t address, uint64_t length);

/**
 * Makes everything written and trimmed so far durable.
 */
int prism_policy_flush(struct prism_policy *policy);

/**
 * Cleans in idle time, up to `program_units` program units of copies in each range. Returns 1 if
 * there was anything to do, else 0.
 */
int prism_policy_idle(struct prism_policy *policy,
                      uint32_t program_units);

/**
 * Opens a queue with at most `depth` commands in flight: 1 to 65536. Each thread opens its own.
 */
int prism_policy_queue_open(struct prism_policy *policy,
                            uint32_t depth,
                            struct prism_policy_queue **queue);

/**
 * Closes a queue. Waits for the commands in flight, whose completions are dropped and whose
 * buffers can be used again.
 */
int prism_policy_queue_close(struct prism_policy_queue *queue);

/**
 * Submits a read as that of `prism_policy_read`. The completion delivers the data: a copy.
 * `PRISM_EFULL` if the queue is full.
 */
int prism_policy_queue_read(struct prism_policy_queue *queue,
                            uint64_t address,
                            size_t length,
                            uint64_t tag);

/**
 * As `prism_policy_queue_read`, into the first `length` bytes of `buffer`. The library owns the
 * buffer until the completion was taken. There is no copy if the data is in one piece on flash.
 */
int prism_policy_queue_read_buffer(struct prism_policy_queue *queue,
                                   uint64_t address,
                                   struct prism_buffer *buffer,
                                   size_t length,
                                   uint64_t tag);

/**
 * Submits a write as that of `prism_policy_write_with_handle`, of a copy of the data: the memory
 * is the caller's again when this returns. Reads that are submitted after it find its data. In
 * virtual time it completes when flash has taken the program units that it fills, or at once if
 * all of its data is buffered; otherwise the work is done during the call. `PRISM_EFULL` if the
 * queue is full.
 */
int prism_policy_queue_write(struct prism_policy_queue *queue,
                             uint64_t address,
                             const void *data,
                             size_t length,
                             uint32_t placement,
                             uint64_t tag);

/**
 * As `prism_policy_queue_write`, with the first `length` bytes of `buffer`. The library owns the
 * buffer until the completion was taken.
 */
int prism_policy_queue_write_buffer(struct prism_policy_queue *queue,
                                    uint64_t address,
                                    struct prism_buffer *buffer,
                                    size_t length,
                                    uint32_t placement,
                                    uint64_t tag);

/**
 * Submits a trim as that of `prism_policy_trim`, which takes effect at once. `PRISM_EFULL` if the
 * queue is full.
 */
int prism_policy_queue_trim(struct prism_policy_queue *queue,
                            uint64_t address,
                            uint64_t length,
                            uint64_t tag);

/**
 * Submits a flush: its completion says that everything written and trimmed before is durable. It
 * programs what is buffered; the sync runs while the caller goes on, unless there are trims, which
 * are made durable during the call. `PRISM_EFULL` if the queue is full.
 */
int prism_policy_queue_flush(struct prism_policy_queue *queue,
                             uint64_t tag);

/**
 * Returns how many commands are in flight: submitted, and their completion not taken.
 */
int prism_policy_queue_length(struct prism_policy_queue *queue);

/**
 * Waits until there is a completion to take; `PRISM_FOREVER` for no limit. Returns 1 if there is
 * one, else 0: at once if no command is in flight, and if no operation of the device completes for
 * `timeout_ns` nanoseconds. With virtual time, the clock of the share advances instead.
 */
int prism_policy_queue_wait(struct prism_policy_queue *queue,
                            uint64_t timeout_ns);

/**
 * Returns a file descriptor for event loops (epoll, poll): when it is readable, and before a sleep
 * after submissions, call `prism_policy_queue_poll` until that returns 0. The queue owns it: do
 * not read, write or close it. Ask in the thread that uses the queue, and again if another thread
 * takes it over. `PRISM_EINVALID` if reads are complete as soon as they are submitted, or in
 * virtual time.
 * A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread to
 * complete operations. Poll and sleep again.
 */
int prism_policy_queue_event_fd(struct prism_policy_queue *queue);

/**
 * Waits for the next completion, as `prism_raw_queue_complete` does.
 */
int prism_policy_queue_complete(struct prism_policy_queue *queue,
                                struct prism_completion *completion,
                                void *data,
                                size_t capacity);

/**
 * As `prism_policy_queue_complete`, without waiting: returns 0 if no command is complete.
 */
int prism_policy_queue_poll(struct prism_policy_queue *queue,
                            struct prism_completion *completion,
                            void *data,
                            size_t capacity);

/**
 * Opens the raw level in a share, which stays attached until the level is closed.
 */
int prism_raw_open(struct prism_share *share, struct prism_raw **raw);

/**
 * Closes the handle. Open queues keep the level open.
 */
int prism_raw_close(struct prism_raw *raw);

/**
 * Returns the number of blocks of the share. Writes their addresses to `blocks`, LUN by LUN and
 * channel by channel, at most `capacity` of them.
 */
int prism_raw_blocks(struct prism_raw *raw, struct prism_address *blocks, size_t capacity);

/**
 * Reads a page, or its first bytes (`Page_Read` of the paper).
 */
int prism_raw_read_page(struct prism_raw *raw,
                        struct prism_address at,
                        void *data,
                        size_t length);

/**
 * Reads a page, or its first bytes, and its first out-of-band bytes.
 */
int prism_raw_read_page_oob(struct prism_raw *raw,
                            struct prism_address at,
                            void *data,
                            size_t length,
                            void *oob,
                            size_t oob_length);

/**
 * Reads a part of a page: `length` bytes from byte `offset` of it on.
 */
int prism_raw_read_at(struct prism_raw *raw,
                      struct prism_address at,
                      uint32_t offset,
                      void *data,
                      size_t length);

/**
 * Writes a page: the next of its block (`Page_Write` of the paper).
 */
int prism_raw_write_page(struct prism_raw *raw,
                         struct prism_address at,
                         const void *data,
                         size_t length);

/**
 * Writes a page and its first `oob_length` out-of-band bytes.
 */
int prism_raw_write_page_oob(struct prism_raw *raw,
                             struct prism_address at,
                             const void *data,
                             size_t length,
                             const void *oob,
                             size_t oob_length);

/**
 * Erases a block (`Block_Erase` of the paper). A block that fails is replaced below its
 * address.
 */
int prism_raw_erase_block(struct prism_raw *raw, struct prism_address at);

/**
 * Closes a block: it takes no more pages and no longer counts as partly written.
 */
int prism_raw_finish_block(struct prism_raw *raw, struct prism_address at);

/**
 * Returns the page of the block that is to be written next.
 */
int prism_raw_write_pointer(struct prism_raw *raw, struct prism_address at);

/**
 * Writes to `erases` how often the block at this address was erased.
 */
int prism_raw_erase_count(struct prism_raw *raw, struct prism_address at, uint32_t *erases);

/**
 * Makes everything written so far durable.
 */
int prism_raw_sync(struct prism_raw *raw);

/**
 * Writes a ticket for everything that is complete now to `ticket`: `prism_raw_sync_to` makes it
 * durable, with one sync for the tickets of many threads.
 */
int prism_raw_ticket(struct prism_raw *raw, uint64_t *ticket);

/**
 * Makes everything durable that was complete when the ticket was drawn. Returns at once if a sync
 * since then has done so.
 */
int prism_raw_sync_to(struct prism_raw *raw,
                      uint64_t ticket);

/**
 * Adds LUNs to the share.
 */
int prism_raw_grow(struct prism_raw *raw, uint32_t luns);

/**
 * Gives back the last LUNs of the share, which have to be erased.
 */
int prism_raw_shrink(struct prism_raw *raw, uint32_t luns);

/**
 * Reads pages into `data`, page after page. All reads start now; returns when the last is
 * complete. `failed`, which may be NULL, is set to the index of the command that failed. Those
 * before it are complete, those after it were not started.
 */
int prism_raw_read_pages(struct prism_raw *raw,
                         const struct prism_address *pages,
                         size_t count,
                         void *data,
                         size_t length,
                         size_t *failed);

/**
 * Writes pages from `data`, page after page. All writes start now; returns when the last is
 * complete. `failed` is as in `prism_raw_read_pages`.
 */
int prism_raw_write_pages(struct prism_raw *raw,
                          const struct prism_address *pages,
                          size_t count,
                          const void *data,
                          size_t length,
                          size_t *failed);

/**
 * Erases blocks. All erases start now; returns when the last is complete. `failed` is as in
 * `prism_raw_read_pages`.
 */
int prism_raw_erase_blocks(struct prism_raw *raw,
                           const struct prism_address *blocks,
                           size_t count,
                           size_t *failed);

/**
 * Opens a queue with at most `depth` commands in flight: 1 to 65536. Each thread opens its own.
 */
int prism_raw_queue_open(struct prism_raw *raw, uint32_t depth, struct prism_raw_queue **queue);

/**
 * Closes a queue. Submitted commands still take effect. Waits for those in flight,
 * whose completions are dropped and whose buffers can be used again.
 */
int prism_raw_queue_close(struct prism_raw_queue *queue);

/**
 * Submits the read of a page, or of its first `length` bytes. The completion delivers the data: a
 * copy. `PRISM_EFULL` if the queue is full.
 */
int prism_raw_queue_read(struct prism_raw_queue *queue,
                         struct prism_address at,
                         size_t length,
                         uint64_t tag);

/**
 * Submits the read of `length` bytes of a page, from byte `offset` of it on, into the first bytes
 * of `buffer`, without a copy. The library owns the buffer until the completion was taken.
 */
int prism_raw_queue_read_buffer(struct prism_raw_queue *queue,
                                struct prism_address at,
                                uint32_t offset,
                                struct prism_buffer *buffer,
                                size_t length,
                                uint64_t tag);

/**
 * Submits the write of a page. The data is copied: the memory is the caller's again when this
 * returns.
 */
int prism_raw_queue_write(struct prism_raw_queue *queue,
                          struct prism_address at,
                          const void *data,
                          size_t length,
                          uint64_t tag);

/**
 * Submits the write of a page with the first `length` bytes of `buffer`, without a copy, and of
 * its first `oob_length` out-of-band bytes, which are copied. The library owns the buffer until
 * the completion was taken.
 */
int prism_raw_queue_write_buffer(struct prism_raw_queue *queue,
                                 struct prism_address at,
                                 struct prism_buffer *buffer,
                                 size_t length,
                                 const void *oob,
                                 size_t oob_length,
                                 uint64_t tag);

/**
 * Submits the erase of a block.
 */
int prism_raw_queue_erase(struct prism_raw_queue *queue, struct prism_address at, uint64_t tag);

/**
 * Submits a sync: its completion says that everything is durable that was complete when it was
 * submitted, and the writes that were submitted to this queue before.
 */
int prism_raw_queue_sync(struct prism_raw_queue *queue, uint64_t tag);

/**
 * Returns how many commands are in flight: submitted, and their completion not taken.
 */
int prism_raw_queue_length(struct prism_raw_queue *queue);

/**
 * Waits until there is a completion to take; `PRISM_FOREVER` for no limit. Returns 1 if there is
 * one, else 0: at once if no command is in flight, and if no operation of the device completes for
 * `timeout_ns` nanoseconds. With virtual time, the clock of the share advances instead.
 * Without a limit, a sync goes to the disk together with the writes before it if nothing else is
 * in flight: their completions come when it is complete.
 */
int prism_raw_queue_wait(struct prism_raw_queue *queue,
                         uint64_t timeout_ns);

/**
 * Returns a file descriptor for event loops (epoll, poll): when it is readable, and before a sleep
 * after submissions, call `prism_raw_queue_poll` until that returns 0. The queue owns it: do not
 * read, write or close it. Ask in the thread that uses the queue, and again if another thread
 * takes it over. `PRISM_EINVALID` if commands are complete as soon as they are submitted, or in
 * virtual time.
 * A sleep on it can end early with `EINTR`, without a signal: the kernel interrupts the thread to
 * complete operations. Poll and sleep again.
 */
int prism_raw_queue_event_fd(struct prism_raw_queue *queue);

/**
 * Waits for the next completion. Returns 1 with the completion, 0 if no command is in flight. The
 * completion has the result of the command, and `prism_last_message` the reason of a failure. If
 * the command has a buffer, it names the buffer, which is the caller's again; `data` may be NULL.
 * Otherwise the data of a read is copied to `data`; if it has more than `capacity` bytes, returns
 * `PRISM_ETOOSMALL` with its length in the completion, which stays to be taken again.
 */
int prism_raw_queue_complete(struct prism_raw_queue *queue,
                             struct prism_completion *completion,
                             void *data,
                             size_t capacity);

/**
 * As `prism_raw_queue_complete`, without waiting: returns 0 if no command is complete.
 */
int prism_raw_queue_poll(struct prism_raw_queue *queue,
                         struct prism_completion *completion,
                         void *data,
                         size_t capacity);

/**
 * Closes the handle. The share is detached once every level in it is closed as well; its data
 * stays.
 */
int prism_share_close(struct prism_share *share);

/**
 * The geometry of the share (`Get_SSD_Geometry` of the paper).
 */
int prism_share_get_geometry(struct prism_share *share, struct prism_share_geometry *geometry);

/**
 * Returns the number of LUNs of the share on one of its channels. Writes their numbers in the
 * share to `luns`, at most `capacity` of them.
 */
int prism_share_channel(struct prism_share *share,
                        uint32_t channel,
                        uint32_t *luns,
                        size_t capacity);

/**
 * Operations in the share since the device was opened.
 */
int prism_share_get_counts(struct prism_share *share, struct prism_counts *counts);

/**
 * Writes the share's clock to `now_ns`, in nanoseconds of virtual time. It does not advance on a
 * device without timing.
 */
int prism_share_now(struct prism_share *share,
                    uint64_t *now_ns);

/**
 * Lets `time_ns` nanoseconds of virtual time pass for this share.
 */
int prism_share_pass(struct prism_share *share, uint64_t time_ns);

/**
 * Changes the bandwidth limit, in bytes/s; 0 for no limit.
 */
int prism_share_limit_bandwidth(struct prism_share *share, uint64_t bytes_per_second);

/**
 * Adds LUNs, which get the next numbers; `ops_luns` of them are over-provisioning. The raw level
 * can use them after `prism_raw_grow`, the function level after it is opened again.
 */
int prism_share_grow(struct prism_share *share,
                     uint32_t luns,
                     uint32_t ops_luns);

/**
 * Gives back the last LUNs of the share, which have to be erased; over-provisioning first.
 */
int prism_share_shrink(struct prism_share *share, uint32_t luns);

/**
 * Releases the share and erases its data. Calls on its handles return `PRISM_ERELEASED` from now
 * on; the handles still have to be closed.
 */
int prism_share_release(struct prism_share *share);

/**
 * Returns a short text for a status. It is static and never NULL.
 */
const char *prism_strerror(int status);

/**
 * Returns the message of the last failed call of this thread: a sentence with the details and the
 * remedy. It is empty before the first failure, stays when later calls succeed, and is valid until
 * the next call of this thread that fails.
 */
const char *prism_last_message(void);

/**
 * Returns the version of the library, such as "0.1.0", as a static string.
 */
const char *prism_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PRISM_H */
