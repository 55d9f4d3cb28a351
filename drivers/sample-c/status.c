// Owns failures: making, copying and freeing them. Does not own what fails.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"

static void free_status(HaliteStatus *status) { free(status); }

HaliteStr text(const char *terminated) { return (HaliteStr){terminated, strlen(terminated)}; }

bool same_text(HaliteStr text, const char *terminated) {
    return text.length == strlen(terminated) && memcmp(text.data, terminated, text.length) == 0;
}

HaliteStatus *out_of_memory(void) {
    // Never freed: `release` is null.
    static HaliteStatus status = {
        .struct_size = sizeof(HaliteStatus),
        .code = CODE_RESOURCE_EXHAUSTED,
        .message = {"the host has no memory left", 27},
    };
    return &status;
}

// A status with room for `length` bytes of text behind it.
static HaliteStatus *allocate(uint32_t code, size_t extra) {
    HaliteStatus *status = calloc(1, sizeof *status + extra);
    if (!status) return NULL;
    status->struct_size = sizeof *status;
    status->code = code;
    status->release = free_status;
    return status;
}

HaliteStatus *make_status(uint32_t code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0) return out_of_memory();
    HaliteStatus *status = allocate(code, (size_t)length + 1);
    if (!status) return out_of_memory();
    char *message = (char *)(status + 1);
    va_start(arguments, format);
    vsnprintf(message, (size_t)length + 1, format, arguments);
    va_end(arguments);
    status->message = (HaliteStr){message, (size_t)length};
    return status;
}

static char *append(char *at, HaliteStr source, HaliteStr *target) {
    if (source.length) memcpy(at, source.data, source.length);
    *target = (HaliteStr){at, source.length};
    return at + source.length;
}

// One allocation: the structure, its arrays, then all text.
HaliteStatus *clone_status(const HaliteStatus *status) {
    size_t arrays =
        status->annotation_count * sizeof(HaliteStr) + status->detail_count * sizeof(HalitePair);
    size_t bytes = status->message.length;
    for (size_t i = 0; i < status->annotation_count; i++) bytes += status->annotations[i].length;
    for (size_t i = 0; i < status->detail_count; i++)
        bytes += status->details[i].name.length + status->details[i].value.length;
    HaliteStatus *copy = allocate(status->code, arrays + bytes);
    if (!copy) return out_of_memory();
    HaliteStr *annotations = (HaliteStr *)(copy + 1);
    HalitePair *details = (HalitePair *)(annotations + status->annotation_count);
    char *at = append((char *)(details + status->detail_count), status->message, &copy->message);
    for (size_t i = 0; i < status->annotation_count; i++) at = append(at, status->annotations[i], &annotations[i]);
    for (size_t i = 0; i < status->detail_count; i++) {
        at = append(at, status->details[i].name, &details[i].name);
        at = append(at, status->details[i].value, &details[i].value);
    }
    copy->annotations = annotations;
    copy->annotation_count = status->annotation_count;
    copy->details = details;
    copy->detail_count = status->detail_count;
    return copy;
}

void release_status(HaliteStatus *status) {
    if (status && status->release) status->release(status);
}
