/*
 * Prism: flash at the level of abstraction that suits an application.
 * This file is made of the library's source: change that, and not this.
 *
 * Results. Every call that returns int returns a negative prism_status if it fails, and else 0
 * or a number that its comment names. A call that was refused has changed nothing.
 * prism_strerror has a short text for a status, prism_last_message the facts.
 *
 * Handles. What is a pointer to prism_device and the like is a number that is looked up. NULL,
 * a handle that was closed and one of another kind are told from good ones. Each that a call
 * gives you is closed once, in any order. Every handle may be used by several threads at once.
 *
 * Structures that begin with `size` are given with size set to sizeof, those that are filled in
 * too. Set all else to zero before you set what you need: zero is what there was before a field.
 *
 * Pointers are NULL or point to what the call says. Buffers are used during the call only.
 * NULL is refused, but for a length of 0 and where it is said to be allowed.
 */

#ifndef PRISM_H
#define PRISM_H

#include <stddef.h>
#include <stdint.h>


/**
 * The channel with the least to do.
 */
#define PRISM_CHANNEL_ANY UINT32_MAX

/**
 * Commands that can be queued at the function level, and not taken back.
 */
#define PRISM_FUNCTION_QUEUE_MAX 4096

/**
 * The version of this header, which `prism_version` says of the library.
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
 * Any number: of blocks that may be partly written, where there is no limit.
 */
#define PRISM_ANY UINT32_MAX

/**
 * All flash that is left of a share, as over-provisioning of a range.
 */
#define PRISM_REST UINT32_MAX

/**
 * Room for counts by cause; those without a cause are 0.
 */
#define PRISM_CAUSES_MAX 16

/**
 * Types of pages at most, each with its times.
 */
#define PRISM_PAGE_TYPES_MAX 8

/**
 * What a call returns that failed. Calls that did what they were asked return 0, or a number
 * that is positive if they say so. A call that was refused has changed nothing.
 */
typedef enum prism_status {
  /**
   * It is done.
   */
  PRISM_OK = 0,
  /**
   * An argument is wrong in itself: a null pointer, a structure whose size is not set, a
   * number that stands for nothing.
   */
  PRISM_EARGUMENT = -1,
  /**
   * The handle is closed already, is one of another kind, or never was one.
   */
  PRISM_EHANDLE = -2,
  /**
   * The buffer is too small for what was to be put there.
   */
  PRISM_ETOOSMALL = -3,
  /**
   * The queue is full: take a completion first.
   */
  PRISM_EFULL = -4,
  /**
   * A bug of the library: close the handle; the message says where it is.
   */
  PRISM_EPANIC = -5,
  /**
   * A failure that has no number of its own; the message says what it is.
   */
  PRISM_EOTHER = -6,
  /**
   * A geometry makes no sense.
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
   * An address is outside of what the caller owns.
   */
  PRISM_ERANGE = -14,
  /**
   * A length or an address is no multiple of what it has to be.
   */
  PRISM_EALIGN = -15,
  /**
   * Nothing was written there since the last erase.
   */
  PRISM_EUNWRITTEN = -16,
  /**
   * A loss of power interrupted what was written there.
   */
  PRISM_ETORN = -17,
  /**
   * Another page of the block is next.
   */
  PRISM_EORDER = -18,
  /**
   * The block takes nothing more before it is erased.
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
   * The device has not so many free LUNs.
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
   * The share is set up for another level.
   */
  PRISM_ELEVEL = -28,
  /**
   * There is no room: in the share, or on the disk that the file is on. The message says which.
   */
  PRISM_ENOSPACE = -29,
  /**
   * It was given back already, or never handed out.
   */
  PRISM_ENOTALLOCATED = -30,
  /**
   * The reserve asked for is in use.
   */
  PRISM_EOPS = -31,
  /**
   * A range holds data, overlaps another, or something is still open above.
   */
  PRISM_EBUSY = -32,
  /**
   * Something that exists or does not, or is not allowed; the message says what.
   */
  PRISM_EINVALID = -33,
  /**
   * The device keeps no time.
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
   * What was written is damaged.
   */
  PRISM_EDAMAGED = -39,
  /**
   * A file cannot be opened, or is none of this version; the message says why.
   */
  PRISM_EFILE = -40,
} prism_status;

/**
 * Whether what was done is durable at once.
 */
typedef enum prism_cache {
  /**
   * It is, as cells are.
   */
  PRISM_CACHE_NONE = 0,
  /**
   * After the next sync or flush.
   */
  PRISM_CACHE_VOLATILE = 1,
} prism_cache;

/**
 * Why a flash operation was done: the place of its count in `prism_counts`.
 */
typedef enum prism_cause {
  /**
   * The application asked for it.
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
   * Tables: of the monitor, and of what was trimmed.
   */
  PRISM_CAUSE_MAP = 3,
  /**
   * Merges of mappings by block.
   */
  PRISM_CAUSE_MERGE = 4,
  /**
   * Refresh of data that ages.
   */
  PRISM_CAUSE_SCRUB = 5,
  /**
   * Parity.
   */
  PRISM_CAUSE_PARITY = 6,
  /**
   * Filling up what had to be programmed before it was full.
   */
  PRISM_CAUSE_PAD = 7,
  /**
   * Completing a unit of which a part was written.
   */
  PRISM_CAUSE_RMW = 8,
  /**
   * Moves out of a write cache.
   */
  PRISM_CAUSE_FOLD = 9,
  /**
   * Moving what is valid out of a block that has failed.
   */
  PRISM_CAUSE_RETIRE = 10,
} prism_cause;

/**
 * How addresses of a range are mapped.
 */
typedef enum prism_mapping {
  /**
   * By unit: any order of writing, the largest map.
   */
  PRISM_MAP_PAGE = 0,
  /**
   * By block: for whole blocks that are written in order.
   */
  PRISM_MAP_BLOCK = 1,
  /**
   * By block, with log blocks for each group of blocks.
   */
  PRISM_MAP_HYBRID = 2,
} prism_mapping;

/**
 * Which block of a range is cleaned.
 */
typedef enum prism_cleaning {
  /**
   * The one that holds the least valid data.
   */
  PRISM_CLEAN_GREEDY = 0,
  /**
   * The one that was filled first.
   */
  PRISM_CLEAN_FIFO = 1,
  /**
   * The one whose garbage is worth most for its age.
   */
  PRISM_CLEAN_COST_BENEFIT = 2,
  /**
   * The one in which nothing has changed for longest.
   */
  PRISM_CLEAN_LRU = 3,
} prism_cleaning;

/**
 * How long data is expected to live; each has the placement handle of its number.
 */
typedef enum prism_lifetime {
  /**
   * Nothing is known.
   */
  PRISM_LIFE_UNKNOWN = 0,
  /**
   * It is overwritten or deleted soon.
   */
  PRISM_LIFE_SHORT = 1,
  /**
   * In between.
   */
  PRISM_LIFE_MEDIUM = 2,
  /**
   * It stays for long.
   */
  PRISM_LIFE_LONG = 3,
  /**
   * It is never changed.
   */
  PRISM_LIFE_EXTREME = 4,
} prism_lifetime;

/**
 * What is handed out or given back.
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
 * A container: addresses from 0 on. Threads may use it at once.
 */
typedef struct prism_container prism_container;

/**
 * A flash device that applications share. Threads may use it at once.
 */
typedef struct prism_device prism_device;

/**
 * A share at the function level. Threads may use it at once; a call that waits moves the
 * share's clock for all of them.
 */
typedef struct prism_function prism_function;

/**
 * A store of keys and values. Threads may use it at once.
 */
typedef struct prism_kv prism_kv;

/**
 * Flash in memory, with every rule of flash and every way to fail. It keeps what it holds while
 * devices on it are closed and opened, until it is closed itself. Threads may use it at once.
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
 * A share at the raw level. Threads may use it at once; what they do to one block has an order
 * that is theirs to keep.
 */
typedef struct prism_raw prism_raw;

/**
 * Commands of the raw level that are in flight together. Threads may use it at once.
 */
typedef struct prism_raw_queue prism_raw_queue;

/**
 * A share. A level that is opened in it keeps it attached, so close the level's handle and this
 * one before somebody else attaches. Threads may use it at once.
 */
typedef struct prism_share prism_share;

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
   * How many types of pages there are: 1 for one time for all.
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
 * When LUNs change places to level wear.
 */
typedef struct prism_wear_policy {
  /**
   * sizeof(prism_wear_policy).
   */
  size_t size;
  /**
   * They do if the mean erase counts of two LUNs differ by more than this...
   */
  uint64_t min_gap;
  /**
   * ... and by more than this part of the device's mean.
   */
  double delta;
  /**
   * Erases for levelling, as a part of all erases, at most.
   */
  double budget;
} prism_wear_policy;

/**
 * How a device is run. Nothing of it is kept on flash.
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
   * When LUNs change places by themselves; NULL for never.
   */
  const struct prism_wear_policy *wear;
} prism_options;

/**
 * The shape of a device.
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
   * Out-of-band bytes that come with each page; 0 on zoned devices.
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
 * What was done on flash, by cause: `programs[PRISM_CAUSE_GC]`.
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
   * Pairs of LUNs that have changed places since the device was formatted.
   */
  uint64_t exchanges;
  /**
   * Erases that levelling has cost since then, at most.
   */
  uint64_t erases;
} prism_wear_report;

/**
 * A share as the monitor lists it.
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
 * What a share is to be.
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
   * The most bytes a second that go in and out; 0 for no limit.
   */
  uint64_t bandwidth;
  /**
   * Over-provisioning in percent of the capacity.
   */
  uint32_t over_provisioning;
  /**
   * Blocks that may be partly written at once, where the device limits them; 0 for a part of
   * the device's limit as large as the share.
   */
  uint32_t open_blocks;
} prism_allocation;

/**
 * A page of a share; where a block is meant, `page` is not looked at.
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
 * What was handed out at the function level.
 */
typedef struct prism_allocated {
  /**
   * sizeof(prism_allocated).
   */
  size_t size;
  /**
   * Where it is.
   */
  struct prism_address at;
  /**
   * How many more there are in the channel without a wait, in the unit asked for, those of
   * the reserve not counted. 0 says that this was the last one.
   */
  uint32_t free_left;
  /**
   * Blocks of the channel that wait for their erase.
   */
  uint32_t erasing;
} prism_allocated;

/**
 * What levelling has done, and how worn the blocks of a share are.
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
 * Two blocks whose data levelling has exchanged; their addresses name what they named.
 */
typedef struct prism_pair {
  /**
   * What stood on a worn block, and went to a fresh one.
   */
  struct prism_address hot;
  /**
   * What rested, and went to the worn block.
   */
  struct prism_address cold;
} prism_pair;

/**
 * A queued command that is done.
 */
typedef struct prism_completion {
  /**
   * sizeof(prism_completion).
   */
  size_t size;
  /**
   * What it was submitted with.
   */
  uint64_t tag;
  /**
   * When it was done: nanoseconds of virtual time.
   */
  uint64_t end_ns;
  /**
   * Bytes that a read has put into the buffer; 0 for other commands.
   */
  uint64_t length;
  /**
   * How it went: a `prism_status`.
   */
  int32_t status;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_completion;

/**
 * What `prism_kv_scan` calls for each key with its value, which are gone when it returns. It
 * returns 0 to go on. It must not throw; it may use the store.
 */
typedef int (*prism_kv_visit)(void *context,
                              const void *key,
                              size_t key_length,
                              const void *value,
                              size_t value_length);

/**
 * What a store of keys and values holds, and what it has cost since it was opened.
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
   * Bytes that they are charged, with headers and deletions.
   */
  uint64_t charged_bytes;
  /**
   * The most bytes that records can be charged.
   */
  uint64_t capacity_bytes;
  /**
   * Bytes of keys and values set, and of keys deleted.
   */
  uint64_t written_bytes;
  /**
   * Pages programmed, for whatever reason.
   */
  uint64_t programs;
  /**
   * Bytes programmed over bytes written; 0 before the first.
   */
  double write_amplification;
} prism_kv_info;

/**
 * What an application says of an object.
 */
typedef struct prism_attributes {
  /**
   * sizeof(prism_attributes).
   */
  size_t size;
  /**
   * 1 if its reads and writes go before others, else 0.
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
 * How a range of the policy level is managed.
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
   * Log blocks of a group at most (K), with `PRISM_MAP_HYBRID`; else 0.
   */
  uint32_t group_log_blocks;
  /**
   * Spare flash in percent of the range, or `PRISM_REST`. The paper has 25.
   */
  uint32_t over_provisioning;
  /**
   * Placement handles: kinds of data that are kept in different blocks; 0 counts as 1.
   */
  uint32_t handles;
  /**
   * Blocks that may be partly written at once; 0 for what fits.
   */
  uint32_t open_blocks;
  /**
   * 0.
   */
  uint32_t reserved;
} prism_range_config;

/**
 * A range as it is listed.
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
   * Bytes that are written in it.
   */
  uint64_t mapped;
  /**
   * Blocks of the share that it is made of.
   */
  uint32_t blocks;
  /**
   * Blocks that are written side by side, as data of one kind.
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
 * The shape of a share. It is not rectangular: `prism_share_channel` says how many LUNs each
 * channel has.
 */
typedef struct prism_share_geometry {
  /**
   * sizeof(prism_share_geometry).
   */
  size_t size;
  /**
   * Bytes of all LUNs but those of the reserve.
   */
  uint64_t capacity;
  /**
   * Channels on which the share has LUNs.
   */
  uint32_t channels;
  /**
   * LUNs, those of the reserve included.
   */
  uint32_t luns;
  /**
   * LUNs of the reserve (over-provisioning).
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
 * Returns how many handles of all kinds are open: a test that closed all of its own finds 0.
 */
int prism_open_handles(void);

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
 * Opens the container of that name.
 */
int prism_container_open(struct prism_policy *policy,
                         const char *name,
                         struct prism_container **container);

/**
 * Closes the handle; the container stays.
 */
int prism_container_close(struct prism_container *container);

/**
 * Deletes the container of that name with what it holds. It is gone for good when this
 * returns; its handles answer `PRISM_ERELEASED`, and still have to be closed.
 */
int prism_container_delete(struct prism_policy *policy, const char *name);

/**
 * Returns how many containers the ranges have.
 */
int prism_policy_containers(struct prism_policy *policy);

/**
 * Tells of container number `index`, by address. Its name goes to `name`, which has room for
 * `capacity` bytes; a name that is longer is cut off. Returns the length of the name.
 */
int prism_policy_container(struct prism_policy *policy,
                           size_t index,
                           struct prism_container_info *info,
                           char *name,
                           size_t capacity);

/**
 * Where the container lies, and for what.
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
 * Writes from `offset` on, as data of the container's lifetime. It is durable after the next
 * `prism_policy_flush`.
 */
int prism_container_write(struct prism_container *container,
                          uint64_t offset,
                          const void *data,
                          size_t length);

/**
 * Gives up `length` bytes from `offset` on, which are whole units.
 */
int prism_container_trim(struct prism_container *container, uint64_t offset, uint64_t length);

/**
 * Makes an empty device of flash in memory: everything on it is lost. `options` may be NULL:
 * no virtual time, no levelling by itself.
 */
int prism_device_format_memory(struct prism_memory *memory,
                               const struct prism_options *options,
                               struct prism_device **device);

/**
 * Opens a device that was formatted on flash in memory; what a loss of power interrupted is
 * put right. `options` may be NULL.
 */
int prism_device_open_memory(struct prism_memory *memory,
                             const struct prism_options *options,
                             struct prism_device **device);

/**
 * Makes a file with an empty device in it; the file must not exist. It is sparse: it takes room
 * as pages are programmed. One process at a time has it open. `options` may be NULL. If it fails,
 * no file is left: `PRISM_ENOSPACE` if the disk is full, `PRISM_EWORNOUT` if there are too few
 * blocks for the device's own tables.
 */
int prism_device_create(const char *path,
                        const struct prism_geometry *geometry,
                        const struct prism_options *options,
                        struct prism_device **device);

/**
 * Opens a device in a file; what a loss of power interrupted is put right. A file that may not
 * be written can be read. `PRISM_EINUSE` if it is open already. `options` may be NULL.
 */
int prism_device_open(const char *path,
                      const struct prism_options *options,
                      struct prism_device **device);

/**
 * From now on operations take their time in the world too: a call of a share that is attached
 * later returns when the device would be done. `PRISM_ENOCLOCK` on a device without timing.
 */
int prism_device_in_real_time(struct prism_device *device);

/**
 * Closes the device, as the end of the process does, so flush the levels before: what they have
 * in memory is not written. A file is synced; if that fails, the device is closed all the same.
 * Handles of shares and levels that are left answer `PRISM_ERELEASED` from now on, and still
 * have to be closed.
 */
int prism_device_close(struct prism_device *device);

/**
 * The shape of the device as it is, spare blocks and tables included.
 */
int prism_device_geometry(struct prism_device *device, struct prism_geometry *geometry);

/**
 * Puts the bytes that a LUN gives to a share into `bytes`: its blocks without spare ones and
 * tables.
 */
int prism_device_lun_capacity(struct prism_device *device, uint64_t *bytes);

/**
 * Returns how many LUNs belong to no share and can be used.
 */
int prism_device_free_luns(struct prism_device *device);

/**
 * What was done for the tables, for failed blocks and for levelling since the device was
 * opened.
 */
int prism_device_counts(struct prism_device *device, struct prism_counts *counts);

/**
 * How evenly the device is worn.
 */
int prism_device_wear(struct prism_device *device, struct prism_wear_report *report);

/**
 * Levels wear now, moving about `blocks` blocks, whatever the budget of the options. Returns 1
 * if more would have to move, else 0.
 */
int prism_device_level_wear(struct prism_device *device,
                            const struct prism_wear_policy *policy,
                            uint32_t blocks);

/**
 * Returns how many shares there are.
 */
int prism_device_shares(struct prism_device *device);

/**
 * Tells of share number `index`, in the order in which they were allocated. Its name goes to
 * `name`, which has room for `capacity` bytes; a name that is longer is cut off. Returns the
 * length of the name.
 */
int prism_device_share(struct prism_device *device,
                       size_t index,
                       struct prism_share_info *info,
                       char *name,
                       size_t capacity);

/**
 * Allocates a share and attaches to it.
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
 * Gives up a share to which nobody is attached: what it holds is lost.
 */
int prism_device_release(struct prism_device *device, const char *name);

/**
 * Opens the function level in a share, which stays attached until this is closed. Blocks that
 * hold something are allocated: `prism_function_allocated` lists them.
 */
int prism_function_open(struct prism_share *share, struct prism_function **function);

/**
 * Closes the level. Commands that wait are not done, and a block that waits for its erase still
 * holds what it held: `prism_function_drain` comes before.
 */
int prism_function_close(struct prism_function *function);

/**
 * Hands out an erased block, or the next page of an open one (`Address_Mapper` of the paper).
 * `channel` may be `PRISM_CHANNEL_ANY`, `unit` is one of `prism_unit`. `PRISM_ENOSPACE` if the
 * channel has none left, or only those of the reserve are.
 */
int prism_function_address_mapper(struct prism_function *function,
                                  uint32_t channel,
                                  uint32_t unit,
                                  struct prism_allocated *allocated);

/**
 * Writes whole pages of one block, from `at` on: the next of the block (`Flash_Write` of the
 * paper).
 */
int prism_function_write(struct prism_function *function,
                         struct prism_address at,
                         const void *data,
                         size_t length);

/**
 * Reads whole pages of one block, from `at` on (`Flash_Read` of the paper). The buffer is
 * unchanged if that fails.
 */
int prism_function_read(struct prism_function *function,
                        struct prism_address at,
                        void *data,
                        size_t length);

/**
 * Gives a block or a page back (`Flash_Trim` of the paper); its erase is in the background.
 * `unit` is one of `prism_unit`.
 */
int prism_function_trim(struct prism_function *function,
                        struct prism_address at,
                        uint32_t unit);

/**
 * Waits until no block waits for its erase.
 */
int prism_function_drain(struct prism_function *function);

/**
 * Returns how many blocks wait for their erase or are being erased.
 */
int prism_function_erasing(struct prism_function *function);

/**
 * Returns how many blocks of a channel are erased, those of the reserve included.
 */
int prism_function_free(struct prism_function *function, uint32_t channel);

/**
 * Returns how many blocks are handed out. Their addresses go to `blocks`, LUN by LUN, each with
 * the page that is to be written next, as many as `capacity` has room for.
 */
int prism_function_allocated(struct prism_function *function,
                             struct prism_address *blocks,
                             size_t capacity);

/**
 * Keeps blocks free: `percent` of the capacity that is left (`Flash_SetOPS` of the paper). How
 * many that is goes to `blocks`. `PRISM_EOPS` if too many are handed out: then `must_free` says
 * how many have to be trimmed first. Both may be NULL.
 */
int prism_function_set_ops(struct prism_function *function,
                           uint32_t percent,
                           uint32_t *blocks,
                           uint32_t *must_free);

/**
 * Levels wear (`Wear_Leveler` of the paper): the data of at most `max_pairs` pairs of blocks
 * changes places, where their erase counts differ by more than `min_gap`, the widest gaps
 * first. Addresses keep naming the same data. Returns how many pairs there were; they go to
 * `pairs`, as many as `capacity` has room for.
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
 * Queues the read of `length` bytes from `at` on. They are handed over with the completion.
 * `PRISM_EFULL` if `PRISM_FUNCTION_QUEUE_MAX` are queued.
 */
int prism_function_queue_read(struct prism_function *function,
                              struct prism_address at,
                              size_t length,
                              uint64_t tag);

/**
 * Queues the write of whole pages from `at` on. The data is copied: the buffer is free when
 * this returns.
 */
int prism_function_queue_write(struct prism_function *function,
                               struct prism_address at,
                               const void *data,
                               size_t length,
                               uint64_t tag);

/**
 * Queues a trim: it is complete at once, and the erase follows when what was queued for the
 * block before is done.
 */
int prism_function_queue_trim(struct prism_function *function,
                              struct prism_address at,
                              uint32_t unit,
                              uint64_t tag);

/**
 * Returns how many commands are queued and their completion not taken.
 */
int prism_function_queue_length(struct prism_function *function);

/**
 * Waits for the next queued command that is done, as `prism_raw_queue_complete` does.
 */
int prism_function_queue_complete(struct prism_function *function,
                                  struct prism_completion *completion,
                                  void *data,
                                  size_t capacity);

/**
 * Opens the store in a share, or makes one if the share holds nothing. The share stays attached
 * until this is closed.
 */
int prism_kv_open(struct prism_share *share, struct prism_kv **kv);

/**
 * Closes the store. What was not flushed is lost.
 */
int prism_kv_close(struct prism_kv *kv);

/**
 * Returns the most bytes of a key: 255, or an eighth of a page if that is less.
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
 * Returns 1 if the key has a value, else 0. The value goes to `value` and its length to
 * `value_length`; if `capacity` is less, that is `PRISM_ETOOSMALL`, and only the length is told.
 */
int prism_kv_get(struct prism_kv *kv,
                 const void *key,
                 size_t key_length,
                 void *value,
                 size_t capacity,
                 size_t *value_length);

/**
 * Calls `visit` for the first `limit` keys in their order, from `from` on and before `to`, with
 * their values; all are read at once. A bound that is NULL is none. Returns how many keys were
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
 * What the store holds and has cost. Looks at every key.
 */
int prism_kv_get_info(struct prism_kv *kv, struct prism_kv_info *info);

/**
 * Makes an erased device in memory. `cache` is one of `prism_cache`.
 */
int prism_memory_create(const struct prism_geometry *geometry,
                        uint32_t cache_kind,
                        struct prism_memory **memory);

/**
 * Gives up the memory, once no device is open on it any more.
 */
int prism_memory_close(struct prism_memory *memory);

/**
 * Power goes during the operation (program, erase, finish or sync) after the next `operations`.
 * Every call on the device fails from then on with `PRISM_EPOWER`.
 */
int prism_memory_cut_power_after(struct prism_memory *memory, uint64_t operations);

/**
 * Returns 1 if power has gone, else 0.
 */
int prism_memory_lost_power(struct prism_memory *memory);

/**
 * Power goes now, if it has not gone yet, and comes back. With a volatile cache each block
 * keeps some first operations of those since the last sync, drawn by `seed`, and the next one
 * may be torn. Close the device before, and open it again behind: `PRISM_EINUSE` else.
 */
int prism_memory_restart(struct prism_memory *memory, uint64_t seed);

/**
 * Every program and erase of `block`, as the device counts, fails from now on.
 */
int prism_memory_wear_out(struct prism_memory *memory, uint32_t block);

/**
 * Marks `block` as bad from the beginning; to be done before the device is formatted.
 */
int prism_memory_mark_bad(struct prism_memory *memory, uint32_t block);

/**
 * From now on a block wears out with probability `rate` at each program and erase.
 */
int prism_memory_fail_at_random(struct prism_memory *memory, double rate, uint64_t seed);

/**
 * Puts the programs, erases, finishes and syncs so far into `operations`.
 */
int prism_memory_operations(struct prism_memory *memory, uint64_t *operations);

/**
 * Reads the first bytes of a page as it lies on flash, below the monitor. Returns 1 if the page
 * was written, 0 if it is erased, `PRISM_ETORN` if it cannot be read. The buffer is unchanged
 * unless the page was written.
 */
int prism_memory_read(struct prism_memory *memory,
                      uint32_t block,
                      uint32_t page,
                      void *data,
                      size_t length);

/**
 * Opens the store in a share: with the objects it has, or empty. The share stays attached until
 * this is closed.
 */
int prism_objects_open(struct prism_share *share, struct prism_objects **objects);

/**
 * Closes the store. What was not flushed is lost.
 */
int prism_objects_close(struct prism_objects *objects);

/**
 * Puts the bytes that objects can have together into `size`, and those that are free into
 * `free_bytes`.
 */
int prism_objects_capacity(struct prism_objects *objects, uint64_t *size, uint64_t *free_bytes);

/**
 * Makes an empty object and puts its name into `id`. `attributes` may be NULL: nothing is known
 * of it.
 */
int prism_objects_create(struct prism_objects *objects,
                         const struct prism_attributes *attributes,
                         uint64_t *id);

/**
 * Puts the size of an object into `size` and what is said of it into `attributes`. Either may
 * be NULL.
 */
int prism_objects_info(struct prism_objects *objects,
                       uint64_t id,
                       uint64_t *size,
                       struct prism_attributes *attributes);

/**
 * Returns how many objects there are. Their names go to `ids`, the lowest first, as many as
 * `capacity` has room for.
 */
int prism_objects_list(struct prism_objects *objects, uint64_t *ids, size_t capacity);

/**
 * Changes what is said of an object; what is written from now on is placed accordingly.
 */
int prism_objects_set_attributes(struct prism_objects *objects,
                                 uint64_t id,
                                 const struct prism_attributes *attributes);

/**
 * Reads from `offset` on. How many bytes there were goes to `read`; beyond the end of the
 * object there are none.
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
 * Writes at the end. Where that was goes to `offset`, which may be NULL.
 */
int prism_objects_append(struct prism_objects *objects,
                         uint64_t id,
                         const void *data,
                         size_t length,
                         uint64_t *offset);

/**
 * Makes an object `size` bytes long: cut off, or with zeros at the end.
 */
int prism_objects_truncate(struct prism_objects *objects, uint64_t id, uint64_t size);

/**
 * Deletes an object. What it held is never copied again from the next flush on.
 */
int prism_objects_delete(struct prism_objects *objects, uint64_t id);

/**
 * Everything done so far is durable when this returns.
 */
int prism_objects_flush(struct prism_objects *objects);

/**
 * Cleans in time to spare, up to `rows` rows of copies. Returns 1 if there was anything to do,
 * else 0.
 */
int prism_objects_idle(struct prism_objects *objects, uint32_t rows);

/**
 * Opens the policy level in a share: as it was left, or with no range. The share stays attached
 * until this is closed.
 */
int prism_policy_open(struct prism_share *share, struct prism_policy **policy);

/**
 * Closes the level. What was not flushed is lost. A container that is still open keeps the
 * level.
 */
int prism_policy_close(struct prism_policy *policy);

/**
 * Puts the bytes of a unit into `bytes`: what is written without reading what is beside it.
 * Ranges, containers and trims are whole units.
 */
int prism_policy_unit(struct prism_policy *policy, uint32_t *bytes);

/**
 * Puts the bytes of data in a block into `bytes`: what a range mapped by block replaces without
 * copies.
 */
int prism_policy_block_bytes(struct prism_policy *policy, uint64_t *bytes);

/**
 * Sets up the addresses from `begin` up to `end`, which is not part of them (`FTL_Ioctl` of the
 * paper): they can be read and written from then on. An empty range of the same addresses is
 * set up anew.
 */
int prism_policy_configure(struct prism_policy *policy,
                           uint64_t begin,
                           uint64_t end,
                           const struct prism_range_config *config);

/**
 * Gives up the range that begins at `begin` and holds nothing.
 */
int prism_policy_remove(struct prism_policy *policy, uint64_t begin);

/**
 * Returns how many ranges there are.
 */
int prism_policy_ranges(struct prism_policy *policy);

/**
 * Tells of range number `index`, by address.
 */
int prism_policy_range(struct prism_policy *policy,
                       size_t index,
                       struct prism_range_info *info);

/**
 * Reads within one range (`FTL_Read` of the paper); what was never written is zero.
 */
int prism_policy_read(struct prism_policy *policy, uint64_t address, void *data, size_t length);

/**
 * Writes within one range (`FTL_Write` of the paper). It is durable after the next
 * `prism_policy_flush`.
 */
int prism_policy_write(struct prism_policy *policy,
                       uint64_t address,
                       const void *data,
                       size_t length);

/**
 * Writes as data of a placement handle; the last one if there are not so many.
 */
int prism_policy_write_with_handle(struct prism_policy *policy,
                                   uint64_t address,
                                   const void *data,
                                   size_t length,
                                   uint32_t placement);

/**
 * Gives up what is at these addresses, which are whole units: they read as zeros from now on.
 */
int prism_policy_trim(struct prism_policy *policy, uint64_t address, uint64_t length);

/**
 * Everything that was written and trimmed is durable when this returns.
 */
int prism_policy_flush(struct prism_policy *policy);

/**
 * Cleans in time to spare, up to `rows` rows of copies in each range. Returns 1 if there was
 * anything to do, else 0.
 */
int prism_policy_idle(struct prism_policy *policy, uint32_t rows);

/**
 * Opens the raw level in a share, which stays attached until this is closed.
 */
int prism_raw_open(struct prism_share *share, struct prism_raw **raw);

/**
 * Closes the handle. A queue that is still open keeps the level.
 */
int prism_raw_close(struct prism_raw *raw);

/**
 * Returns how many blocks the share has. Their addresses go to `blocks`, LUN by LUN, those of a
 * channel together, as many as `capacity` has room for.
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
 * Writes a page: the next of its block (`Page_Write` of the paper).
 */
int prism_raw_write_page(struct prism_raw *raw,
                         struct prism_address at,
                         const void *data,
                         size_t length);

/**
 * Writes a page and out-of-band bytes, at most as many as there are.
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
 * Takes no more pages for a block, so that it no longer counts as partly written.
 */
int prism_raw_finish_block(struct prism_raw *raw, struct prism_address at);

/**
 * Returns the page of the block that is to be written next.
 */
int prism_raw_write_pointer(struct prism_raw *raw, struct prism_address at);

/**
 * Puts into `erases` how often the block under this address was erased.
 */
int prism_raw_erase_count(struct prism_raw *raw, struct prism_address at, uint32_t *erases);

/**
 * Makes everything written so far durable.
 */
int prism_raw_sync(struct prism_raw *raw);

/**
 * Adds LUNs to the share.
 */
int prism_raw_grow(struct prism_raw *raw, uint32_t luns);

/**
 * Gives back the last LUNs of the share, which have to be erased.
 */
int prism_raw_shrink(struct prism_raw *raw, uint32_t luns);

/**
 * Reads pages, all begun now, into `data`, page after page; returns when the last is done.
 * `failed` may be NULL: it gets the place of the command that failed. Those before it are done,
 * those behind it were not begun.
 */
int prism_raw_read_pages(struct prism_raw *raw,
                         const struct prism_address *pages,
                         size_t count,
                         void *data,
                         size_t length,
                         size_t *failed);

/**
 * Writes pages, all begun now, from `data`, page after page; returns when the last is done.
 * `failed` is as in `prism_raw_read_pages`.
 */
int prism_raw_write_pages(struct prism_raw *raw,
                          const struct prism_address *pages,
                          size_t count,
                          const void *data,
                          size_t length,
                          size_t *failed);

/**
 * Erases blocks, all begun now; returns when the last is done. `failed` is as in
 * `prism_raw_read_pages`.
 */
int prism_raw_erase_blocks(struct prism_raw *raw,
                           const struct prism_address *blocks,
                           size_t count,
                           size_t *failed);

/**
 * Opens a queue, `depth` of whose commands may be in flight: 1 to 65536.
 */
int prism_raw_queue_open(struct prism_raw *raw, uint32_t depth, struct prism_raw_queue **queue);

/**
 * Closes a queue. What was submitted takes effect all the same.
 */
int prism_raw_queue_close(struct prism_raw_queue *queue);

/**
 * Submits the read of a page, or of its first `length` bytes. They are handed over with the
 * completion. `PRISM_EFULL` if the queue is full.
 */
int prism_raw_queue_read(struct prism_raw_queue *queue,
                         struct prism_address at,
                         size_t length,
                         uint64_t tag);

/**
 * Submits the write of a page. The data is copied: the buffer is free when this returns.
 */
int prism_raw_queue_write(struct prism_raw_queue *queue,
                          struct prism_address at,
                          const void *data,
                          size_t length,
                          uint64_t tag);

/**
 * Submits the erase of a block.
 */
int prism_raw_queue_erase(struct prism_raw_queue *queue, struct prism_address at, uint64_t tag);

/**
 * Returns how many commands are in flight: submitted, and their completion not taken.
 */
int prism_raw_queue_length(struct prism_raw_queue *queue);

/**
 * Waits for the next command that is done. Returns 1 with its completion, 0 if none is under
 * way. What a read has read goes to `data`; if that has not `capacity` for it,
 * `PRISM_ETOOSMALL` is returned, the completion says how long it is, and is still to be taken.
 * How the command went is in the completion, and why it failed in `prism_last_message`.
 */
int prism_raw_queue_complete(struct prism_raw_queue *queue,
                             struct prism_completion *completion,
                             void *data,
                             size_t capacity);

/**
 * Detaches from the share, once every level in it is closed as well; what it holds stays.
 */
int prism_share_close(struct prism_share *share);

/**
 * The shape of the share (`Get_SSD_Geometry` of the paper).
 */
int prism_share_get_geometry(struct prism_share *share, struct prism_share_geometry *geometry);

/**
 * Returns how many LUNs the share has on one of its channels. Their numbers in the share go to
 * `luns`, as many as `capacity` has room for.
 */
int prism_share_channel(struct prism_share *share,
                        uint32_t channel,
                        uint32_t *luns,
                        size_t capacity);

/**
 * What was done in the share since the device was opened.
 */
int prism_share_get_counts(struct prism_share *share, struct prism_counts *counts);

/**
 * Puts the share's clock into `now_ns`: nanoseconds of virtual time. It stands still on a
 * device without timing.
 */
int prism_share_now(struct prism_share *share, uint64_t *now_ns);

/**
 * Lets `time_ns` nanoseconds of virtual time pass for this share.
 */
int prism_share_pass(struct prism_share *share, uint64_t time_ns);

/**
 * Changes the limit of bandwidth, in bytes a second; 0 for no limit.
 */
int prism_share_limit_bandwidth(struct prism_share *share, uint64_t bytes_per_second);

/**
 * Adds LUNs, which get the next numbers; `ops_luns` of them are over-provisioning. The raw
 * level learns of them by `prism_raw_grow`, the function level when it is opened again.
 */
int prism_share_grow(struct prism_share *share, uint32_t luns, uint32_t ops_luns);

/**
 * Gives back the last LUNs of the share, which have to be erased; those of the reserve first.
 */
int prism_share_shrink(struct prism_share *share, uint32_t luns);

/**
 * Gives up the share: what it holds is erased. Its handles answer `PRISM_ERELEASED` from now
 * on, and still have to be closed.
 */
int prism_share_release(struct prism_share *share);

/**
 * A short text for a status. The text is never freed, and never NULL.
 */
const char *prism_strerror(int status);

/**
 * What went wrong in the last call of this thread that failed: a sentence with the facts, and
 * with what to do. It is empty before the first failure, stays when later calls succeed, and
 * is valid until the next call of this thread that fails.
 */
const char *prism_last_message(void);

/**
 * The version of the library, as "0.1.0". It is never freed.
 */
const char *prism_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* PRISM_H */
