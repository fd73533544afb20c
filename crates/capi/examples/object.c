/*
 * The object level: recordings that grow, are kept or deleted, and an index that is rewritten.
 *
 * The library knows which bytes belong together and which are deleted, so it never copies deleted
 * data, and no file system has to trim.
 */
#include "example.h"

enum { CHUNK = 64 << 10, PARTS = 8, KEPT_MAX = 16 };

static unsigned char chunk[PARTS * CHUNK];

static uint64_t create(prism_objects *store, const prism_attributes *attributes)
{
    uint64_t id;
    TRY(prism_objects_create(store, attributes, &id));
    return id;
}

static void append(prism_objects *store, uint64_t id, int byte)
{
    memset(chunk, byte, CHUNK);
    TRY(prism_objects_append(store, id, chunk, CHUNK, NULL));
}

static struct {
    int number;
    uint64_t id;
} kept[KEPT_MAX];
static int kept_count;

/* Recordings are written and deleted as a whole, many times the size of the device. */
static void record(prism_objects *store, uint64_t index)
{
    example_rng rng = rng_stream(3, "object");
    for (int number = 0; number < 60; number++) {
        uint64_t id = create(store, NULL);
        for (int part = 0; part < PARTS; part++) {
            append(store, id, number);
        }
        TRY(prism_objects_write(store, index, (uint64_t)number, "\1", 1));
        kept[kept_count].number = number;
        kept[kept_count++].id = id;
        if (kept_count > 8) {
            int old = (int)rng_below(&rng, (uint64_t)kept_count);
            TRY(prism_objects_delete(store, kept[old].id));
            kept[old] = kept[--kept_count];
        }
        TRY(prism_objects_flush(store));
    }
}

static void check(prism_objects *store)
{
    uint64_t ids[KEPT_MAX];
    CHECK(TRY(prism_objects_list(store, ids, KEPT_MAX)) == 2 + kept_count);
    for (int i = 0; i < kept_count; i++) {
        size_t read;
        TRY(prism_objects_read(store, kept[i].id, 0, chunk, sizeof chunk, &read));
        CHECK(read == sizeof chunk);
        for (size_t at = 0; at < read; at++) {
            CHECK(chunk[at] == kept[i].number);
        }
    }
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 2, .luns_per_channel = 2, .blocks_per_lun = 64,
        .pages_per_block = 16, .page_size = 4096, .oob_size = 64,
    };
    prism_memory *memory;
    prism_device *device;
    prism_objects *store;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_NONE, &memory));
    TRY(prism_device_format_memory(memory, NULL, &device));
    prism_share *share = share_of(device, "recordings", 3, 25);
    TRY(prism_objects_open(share, &store));

    /* An index that is rewritten often and has priority, and a cold recording. */
    prism_attributes urgent = {
        .size = sizeof urgent, .priority = 1, .lifetime = PRISM_LIFE_SHORT,
    };
    prism_attributes rests = {.size = sizeof rests, .cold = 1};
    uint64_t index = create(store, &urgent);
    uint64_t keep = create(store, &rests);
    for (int part = 0; part < 16; part++) {
        append(store, keep, part);
    }
    rests.read_only = 1;
    TRY(prism_objects_set_attributes(store, keep, &rests));
    CHECK(prism_objects_append(store, keep, "\1", 1, NULL) == PRISM_EINVALID);
    record(store, index);
    prism_counts counts = counts_of(share);
    uint64_t copies = counts.programs[PRISM_CAUSE_GC];
    CHECK(copies * 2 < counts.programs[PRISM_CAUSE_HOST]);

    /* Flushed data survives a power failure; other data may survive in part. */
    uint64_t lost = create(store, NULL);
    append(store, lost, 7);
    TRY(prism_objects_close(store));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_restart(memory, 3));
    TRY(prism_device_open_memory(memory, NULL, &device));
    TRY(prism_device_attach(device, "recordings", &share));
    TRY(prism_objects_open(share, &store));
    check(store);
    unsigned char part;
    size_t read;
    TRY(prism_objects_read(store, keep, 15 * CHUNK, &part, 1, &read));
    CHECK(read == 1 && part == 15);
    uint64_t size, free_bytes;
    TRY(prism_objects_info(store, index, &size, &urgent));
    CHECK(size == 60 && urgent.priority == 1 && urgent.lifetime == PRISM_LIFE_SHORT);
    CHECK(prism_objects_info(store, lost, &size, NULL) == PRISM_ENOTALLOCATED);
    TRY(prism_objects_capacity(store, &size, &free_bytes));
    printf("%u of %u bytes are free; %u pages were copied\n", (unsigned)free_bytes,
           (unsigned)size, (unsigned)copies);

    TRY(prism_objects_close(store));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
