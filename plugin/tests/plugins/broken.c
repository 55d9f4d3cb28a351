// Driver libraries with one fault each, chosen at compile time with -DFAULT=<name>; with FAULT=NONE there is none. Built and
// loaded by tests/bad_plugins.rs. None of them has a device.

#include <string.h>

#include "halite/driver.h"

enum {
    NONE,
    QUERY_FAILS,         // the query function answers a failure
    QUERY_ANSWERS_NULL,  // it answers success and nothing else
    OLDER_MINOR,         // it speaks an older version
    NEWER_MINOR,         // it speaks a newer version than it was offered
    OTHER_MAJOR,         // it speaks another major version
    NEEDS_NEWER,         // it refuses, because it needs a newer program
    NO_DRIVER,           // its driver is null
    NO_TABLE,            // its driver has no table
    SHORT_TABLE,         // the driver's table ends before `open`
    ZERO_TABLE,          // the driver's table has size 0
    NO_OPEN,             // `open` is null
    NO_NAME,             // `name` answers no text
    NOT_TEXT,            // `name` is not UTF-8
    FOREIGN_CODE,        // `enumerate` fails with a code that nobody knows, without a message
    NO_DEVICE,           // `open` answers success and a null device
    DEVICE_NO_TABLE,     // `open` answers a device without a table
    DEVICE_SHORT_TABLE,  // the device's table ends in the middle
    DEVICE_NO_SUBMIT,    // `queue_submit` of the device is null
};

static HaliteStr text(const char *terminated) { return (HaliteStr){terminated, strlen(terminated)}; }

static HaliteStatus *fail(uint32_t code, const char *message) {
    // Tests look at one failure at a time.
    static HaliteStatus status;
    status = (HaliteStatus){.struct_size = sizeof status, .code = code, .message = text(message)};
    return &status;
}

static HaliteStr name(HaliteDriver *driver) {
    (void)driver;
    if (FAULT == NO_NAME) return (HaliteStr){NULL, 0};
    return text(FAULT == NOT_TEXT ? "\xC3\x28" : "broken");
}

static HaliteStr description(HaliteDriver *driver) {
    (void)driver;
    return text("for tests");
}

static HaliteStatus *options(HaliteDriver *driver, void *context, void (*visit)(void *, const HalitePair *)) {
    (void)driver, (void)context, (void)visit;
    return NULL;
}

static HaliteStatus *enumerate(HaliteDriver *driver, const HalitePair *options, size_t option_count, void *context,
                               void (*visit)(void *, const HaliteDeviceInfo *)) {
    (void)driver, (void)options, (void)option_count, (void)context, (void)visit;
    if (FAULT != FOREIGN_CODE) return NULL;
    HaliteStatus *status = fail(4711, "");
    status->message = (HaliteStr){NULL, 0};
    return status;
}

static void keep(HaliteDevice *device) { (void)device; }

static uint64_t id(HaliteDevice *device) {
    (void)device;
    return 1;
}

static HaliteStatus *info(HaliteDevice *device, void *context, void (*visit)(void *, const HaliteDeviceInfo *)) {
    (void)device;
    const HaliteDeviceInfo info = {
        .struct_size = sizeof info, .kind = HALITE_DEVICE_OTHER, .driver = text("broken"), .name = text("none")};
    visit(context, &info);
    return NULL;
}

// What is not here is null, which is a fault of its own where it is required.
static const HaliteDeviceVtable device_table = {
    .struct_size = FAULT == DEVICE_SHORT_TABLE ? offsetof(HaliteDeviceVtable, allocate_buffer) : sizeof device_table,
    .retain = keep,
    .release = keep,
    .id = id,
    .info = info,
};

static HaliteStatus *open(HaliteDriver *driver, HaliteStr path, const HalitePair *options, size_t option_count,
                          HaliteDevice **out) {
    static HaliteDevice device = {FAULT == DEVICE_NO_TABLE ? NULL : &device_table};
    (void)driver, (void)path, (void)options, (void)option_count;
    if (FAULT == NO_DEVICE) return NULL;
    if (FAULT < NO_DEVICE) return fail(14, "this driver has no device");
    *out = &device;
    return NULL;
}

static const HaliteDriverVtable table = {
    .struct_size = FAULT == ZERO_TABLE    ? 0
                   : FAULT == SHORT_TABLE ? offsetof(HaliteDriverVtable, open)
                                          : sizeof table,
    .name = name,
    .description = description,
    .options = options,
    .enumerate = enumerate,
    .open = FAULT == NO_OPEN ? NULL : open,
};

static HaliteDriver driver = {FAULT == NO_TABLE ? NULL : &table};

HaliteStatus *halite_driver_query_v1(const HaliteHost *host, uint32_t max_version, HalitePlugin *out) {
    (void)host;
    switch (FAULT) {
        case QUERY_FAILS: return fail(9, "the moon is in the wrong phase");
        case QUERY_ANSWERS_NULL: return NULL;
        case NEEDS_NEWER: return fail(18, "this driver needs interface 0.9 of the program");
        default: break;
    }
    out->abi_version = FAULT == OLDER_MINOR   ? max_version - 1
                       : FAULT == NEWER_MINOR ? max_version + 1
                       : FAULT == OTHER_MAJOR ? 7u << 16
                                              : max_version;
    out->driver = FAULT == NO_DRIVER ? NULL : &driver;
    out->version = text("1.0");
    out->build = text("test");
    return NULL;
}
