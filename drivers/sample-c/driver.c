// Owns the driver object and the exported function. Does not own the device.

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

// Memory of the device unless the `memory` option says otherwise: 1 GiB.
#define DEFAULT_MEMORY ((uint64_t)1 << 30)

const HaliteHost *host;

static HaliteStr name(HaliteDriver *driver) {
    (void)driver;
    return text(DRIVER_NAME);
}

static HaliteStr description(HaliteDriver *driver) {
    (void)driver;
    return text("a driver in plain C that keeps memory and order but executes no device code");
}

static HaliteStatus *options(
    HaliteDriver *driver, void *context, void (*visit)(void *context, const HalitePair *option)) {
    (void)driver;
    const HalitePair memory = {text("memory"),
                               text("bytes that all buffers together may have (default 1073741824)")};
    visit(context, &memory);
    return NULL;
}

static HaliteStatus *enumerate(HaliteDriver *driver, const HalitePair *options, size_t option_count, void *context,
                               void (*visit)(void *context, const HaliteDeviceInfo *info)) {
    (void)driver, (void)options, (void)option_count;
    visit_device_info(context, visit);
    return NULL;
}

static HaliteStatus *parse_bytes(HaliteStr value, uint64_t *out) {
    char digits[32];
    if (value.length && value.length < sizeof digits) {
        memcpy(digits, value.data, value.length);
        digits[value.length] = 0;
        char *end;
        errno = 0;
        *out = strtoull(digits, &end, 10);
        if (!*end && !errno && digits[0] >= '0' && digits[0] <= '9') return NULL;
    }
    return make_status(CODE_INVALID_ARGUMENT, "option memory='%.*s' is no number of bytes", (int)value.length,
                       value.data);
}

static HaliteStatus *open(HaliteDriver *driver, HaliteStr path, const HalitePair *options, size_t option_count,
                          HaliteDevice **out) {
    (void)driver;
    if (path.length)
        return make_status(CODE_NOT_FOUND,
                           "the sample driver has one device, with an empty path; there is no '%.*s'",
                           (int)path.length, path.data);
    uint64_t memory = DEFAULT_MEMORY;
    for (size_t i = 0; i < option_count; i++) {
        HaliteStatus *failure = same_text(options[i].name, "memory")
                                    ? parse_bytes(options[i].value, &memory)
                                    : make_status(CODE_INVALID_ARGUMENT, "unknown option '%.*s'; there is: memory",
                                                  (int)options[i].name.length, options[i].name.data);
        if (failure) return failure;
    }
    return open_device(memory, out);
}

static const HaliteDriverVtable vtable = {
    .struct_size = sizeof vtable,
    .name = name,
    .description = description,
    .options = options,
    .enumerate = enumerate,
    .open = open,
};

static HaliteDriver driver = {&vtable};

HaliteStatus *halite_driver_query_v1(const HaliteHost *asking, uint32_t max_version, HalitePlugin *out) {
    if (max_version != HALITE_ABI_VERSION)
        return make_status(CODE_INCOMPATIBLE,
                           "this driver speaks version %d.%d of the driver interface, the program speaks "
                           "%" PRIu32 ".%" PRIu32,
                           HALITE_ABI_MAJOR, HALITE_ABI_MINOR, max_version >> 16, max_version & 0xFFFF);
    if (out->struct_size < sizeof *out)
        return make_status(CODE_INCOMPATIBLE, "the program's HalitePlugin has %" PRIu32 " bytes, %zu are needed",
                           out->struct_size, sizeof *out);
    host = asking;
    out->abi_version = HALITE_ABI_VERSION;
    out->driver = &driver;
    out->version = text("1.0.0");
    out->build = text("C, " __VERSION__);
    return NULL;
}
