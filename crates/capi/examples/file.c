/*
 * A device in a file: a counter of visits that outlives the process.
 *
 * One process at a time can open the file, synced data is there at the next visit, and the levels
 * above are used as on a device in memory. The file is the program's own name with ".flash"
 * appended.
 */
#include "example.h"

enum { PAGE = 4096 };

/* Opens the file and its share, counts the pages of the first block, and adds one. */
static uint32_t visit(const char *path)
{
    prism_device *device, *other;
    prism_share *share;
    prism_raw *raw;
    unsigned char page[PAGE];
    TRY(prism_device_open(path, NULL, &device));
    CHECK(prism_device_open(path, NULL, &other) == PRISM_EINUSE && other == NULL);
    TRY(prism_device_attach(device, "counter", &share));
    TRY(prism_raw_open(share, &raw));
    prism_address at;
    CHECK(TRY(prism_raw_blocks(raw, &at, 1)) > 0);
    uint32_t pages = (uint32_t)TRY(prism_raw_write_pointer(raw, at));
    for (at.page = 0; at.page < pages; at.page++) {
        TRY(prism_raw_read_page(raw, at, page, PAGE));
        CHECK(is_stamped(page, PAGE, at.page + 1));
    }
    stamp(page, PAGE, at.page + 1);
    TRY(prism_raw_write_page(raw, at, page, PAGE));
    TRY(prism_raw_sync(raw));
    TRY(prism_raw_close(raw));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    return pages;
}

int main(int count, char **arguments)
{
    CHECK(count > 0);
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s.flash", arguments[0]) < (int)sizeof path);
    remove(path);

    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 2, .luns_per_channel = 1, .blocks_per_lun = 16,
        .pages_per_block = 8, .page_size = PAGE, .oob_size = 16,
    };
    prism_device *device;
    TRY(prism_device_create(path, &geometry, NULL, &device));
    prism_share *share = share_of(device, "counter", 2, 0);
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    CHECK(prism_device_create(path, &geometry, NULL, &device) == PRISM_EEXISTS);

    for (uint32_t expected = 0; expected < 3; expected++) {
        CHECK(visit(path) == expected);
    }
    uint32_t then = visit(path);
    uint32_t next = visit(path);
    printf("%u pages after three visits, %u after four\n", then, next);
    remove(path);
    CHECK(prism_device_open(path, NULL, &device) == PRISM_EFILE);
    CHECK(prism_open_handles() == 0);
    return 0;
}
