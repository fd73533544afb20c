/*
 * The key-value store: sessions of users, on a zoned device with 14 open zones.
 *
 * The store uses no out-of-band bytes and does not write in place, so a block may be a zone. This
 * program is C and C++.
 */
#include "example.h"

enum { USERS = 500, SESSION_MAX = 2000 };

/* The expected value: its length, or -1 for none, and the byte it consists of. */
static int lengths[USERS];
static unsigned char bytes[USERS];

static size_t key_of(char key[16], int user)
{
    return (size_t)snprintf(key, 16, "user/%04d", user);
}

static void check_user(prism_kv *kv, int user)
{
    char key[16];
    unsigned char value[SESSION_MAX];
    size_t length, key_length = key_of(key, user);
    int found = TRY(prism_kv_get(kv, key, key_length, value, sizeof value, &length));
    CHECK(found == (lengths[user] >= 0));
    CHECK(!found || length == (size_t)lengths[user]);
    for (size_t i = 0; i < length; i++) {
        CHECK(value[i] == bytes[user]);
    }
}

/* Expects the keys from user 100 on, each with its last value. */
static int visit(void *context, const void *key, size_t key_length, const void *value,
                 size_t value_length)
{
    int *user = (int *)context;
    while (lengths[*user] < 0) {
        ++*user;
    }
    char expected[16];
    CHECK(key_length == key_of(expected, *user) && memcmp(key, expected, key_length) == 0);
    CHECK(value_length == (size_t)lengths[*user]);
    CHECK(value_length == 0 || *(const unsigned char *)value == bytes[*user]);
    ++*user;
    return 0;
}

static void work(prism_kv *kv)
{
    example_rng rng = rng_stream(5, "kv");
    unsigned char session[SESSION_MAX];
    for (int i = 0; i < 20000; i++) {
        int user = (int)rng_below(&rng, USERS);
        char key[16];
        size_t key_length = key_of(key, user);
        if (rng_chance(&rng, 0.2)) {
            int had = TRY(prism_kv_delete(kv, key, key_length));
            CHECK(had == (lengths[user] >= 0));
            lengths[user] = -1;
        } else {
            bytes[user] = (unsigned char)rng_below(&rng, 256);
            lengths[user] = (int)rng_below(&rng, SESSION_MAX);
            memset(session, bytes[user], sizeof session);
            TRY(prism_kv_set(kv, key, key_length, session, (size_t)lengths[user]));
        }
    }
}

int main(void)
{
    prism_geometry geometry;
    memset(&geometry, 0, sizeof geometry);
    geometry.size = sizeof geometry;
    geometry.channels = 1;
    geometry.luns_per_channel = 4;
    geometry.blocks_per_lun = 32;
    geometry.pages_per_block = 16;
    geometry.page_size = 4096;
    geometry.max_open_blocks = 14;
    prism_memory *memory;
    prism_device *device;
    prism_kv *kv;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_VOLATILE, &memory));
    TRY(prism_device_format_memory(memory, NULL, &device));
    prism_share *share = share_of(device, "sessions", 2, 50);
    TRY(prism_kv_open(share, &kv));
    for (int user = 0; user < USERS; user++) {
        lengths[user] = -1;
    }

    /* Sessions are set and deleted until the store has been overwritten several times. */
    work(kv);
    uint64_t sessions = 0;
    for (int user = 0; user < USERS; user++) {
        sessions += lengths[user] >= 0;
    }
    prism_kv_info info;
    info.size = sizeof info;
    TRY(prism_kv_get_info(kv, &info));
    CHECK(info.records == sessions);

    /* In the order of their keys. */
    int next = 100;
    CHECK(TRY(prism_kv_scan(kv, "user/0100", 9, "user/0200", 9, 3, visit, &next)) == 3);

    /* One flush for many sets. Power fails after it, and none of them is lost. */
    TRY(prism_kv_flush(kv));
    TRY(prism_kv_set(kv, "in doubt", 8, "set, and not flushed", 20));
    TRY(prism_kv_close(kv));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_restart(memory, 5));
    TRY(prism_device_open_memory(memory, NULL, &device));
    TRY(prism_device_attach(device, "sessions", &share));
    TRY(prism_kv_open(share, &kv));
    for (int user = 0; user < USERS; user++) {
        check_user(kv, user);
    }
    size_t length;
    CHECK(prism_kv_get(kv, "in doubt", 8, NULL, 0, &length) == 0);
    printf("%u sessions, write amplification %.2f\n", (unsigned)info.records,
           info.write_amplification);

    TRY(prism_kv_close(kv));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
