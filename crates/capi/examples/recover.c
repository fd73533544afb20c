/*
 * Recovery: the application finds its own map again after the process was killed.
 *
 * A child process stores slabs of one block each at the function level, and replaces them with
 * newer ones. With each block it allocates, it gives the library a word, the number of the slab's
 * version, which is kept in the out-of-band bytes of the block. It reports a version only once that
 * is durable. The parent kills it with SIGKILL at some point, opens the file, and rebuilds the map
 * from the words of the blocks, without reading any data. A device is opened after a fork, by the
 * process that uses it. The file is the program's own name with ".flash" appended.
 */
#define _GNU_SOURCE
#include "example.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 8, SLAB = PAGE * PAGES, SLABS = 5, REPORTED = 23 };

/* Where the slabs are, and their versions. Version v is one of slab v % SLABS; the first is 1. */
struct map {
    prism_address at[SLABS];
    uint64_t version[SLABS];
};

static prism_device *device;
static prism_share *share;
static prism_function *function;

static void open_all(const char *path)
{
    TRY(prism_device_open(path, NULL, &device));
    TRY(prism_device_attach(device, "slabs", &share));
    TRY(prism_function_open(share, &function));
}

static void close_all(void)
{
    TRY(prism_function_close(function));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
}

/* Stores a version of its slab, and makes it durable, before the older one is trimmed. */
static void put(struct map *map, uint64_t version)
{
    static unsigned char slab[SLAB];
    size_t place = version % SLABS;
    prism_allocated new = {.size = sizeof new};
    TRY(prism_function_allocate_for(function, PRISM_CHANNEL_ANY, version, &new));
    stamp(slab, SLAB, version);
    TRY(prism_function_write(function, new.at, slab, SLAB));
    uint64_t ticket;
    TRY(prism_function_ticket(function, &ticket));
    TRY(prism_function_sync_to(function, ticket));
    if (map->version[place] != 0) {
        TRY(prism_function_trim(function, map->at[place], PRISM_UNIT_BLOCK));
    }
    map->at[place] = new.at;
    map->version[place] = version;
}

/* The child: stores version after version until it is killed. */
static void run(const char *path, int to)
{
    struct map map = {.version = {0}};
    open_all(path);
    for (uint64_t version = 1;; version++) {
        put(&map, version);
        CHECK(write(to, &version, sizeof version) == sizeof version);
    }
}

/* The map as the blocks of the share tell it. Blocks that are no use are trimmed: those that were
 * not written completely, and versions that were replaced. */
static struct map rebuild(void)
{
    static prism_owned_block blocks[256];
    struct map map = {.version = {0}};
    int count = TRY(prism_function_owned_blocks(function, blocks, 256));
    CHECK(count <= 256);
    for (int i = 0; i < count; i++) {
        size_t place = blocks[i].owner % SLABS;
        prism_address useless = blocks[i].at;
        if (blocks[i].owner > map.version[place] && blocks[i].written == PAGES) {
            int had_one = map.version[place] != 0;
            useless = map.at[place];
            map.at[place] = blocks[i].at;
            map.version[place] = blocks[i].owner;
            if (!had_one) {
                continue;
            }
        }
        TRY(prism_function_trim(function, useless, PRISM_UNIT_BLOCK));
    }
    return map;
}

/* Runs the child, and kills it after `REPORTED` reports. Returns the last version it reported. */
static uint64_t run_and_kill(const char *path)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ends[0]);
        run(path, ends[1]);
    }
    close(ends[1]);
    uint64_t version = 0, last = 0;
    for (int i = 0; i < REPORTED; i++) {
        CHECK(read(ends[0], &last, sizeof last) == sizeof last);
    }
    CHECK(kill(child, SIGKILL) == 0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
    /* What it reported between the last read and its end. */
    while (read(ends[0], &version, sizeof version) == sizeof version) {
        last = version;
    }
    close(ends[0]);
    return last;
}

int main(int count, char **arguments)
{
    CHECK(count > 0);
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s.flash", arguments[0]) < (int)sizeof path);
    remove(path);

    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 2, .luns_per_channel = 1, .blocks_per_lun = 24,
        .pages_per_block = PAGES, .page_size = PAGE, .oob_size = 16,
    };
    TRY(prism_device_create(path, &geometry, NULL, &device));
    TRY(prism_share_close(share_of(device, "slabs", 2, 0)));
    TRY(prism_device_close(device));

    uint64_t last = run_and_kill(path);
    CHECK(last >= REPORTED);
    open_all(path);
    struct map map = rebuild();
    static unsigned char slab[SLAB];
    for (size_t place = 0; place < SLABS; place++) {
        /* The newest version of this slab that was reported. */
        uint64_t reported = last - (last + SLABS - place) % SLABS;
        CHECK(map.version[place] >= reported);
        TRY(prism_function_read(function, map.at[place], slab, SLAB));
        CHECK(is_stamped(slab, SLAB, map.version[place]));
    }
    CHECK(TRY(prism_function_allocated(function, NULL, 0)) == SLABS);

    /* The application goes on where it was. */
    put(&map, last + SLABS);
    close_all();
    printf("%d slabs were found after SIGKILL, none older than was reported\n", SLABS);
    remove(path);
    CHECK(prism_open_handles() == 0);
    return 0;
}
