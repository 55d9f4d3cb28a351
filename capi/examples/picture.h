// Reads a picture of a digit: 256 floats in a file of NumPy's (`.npy`), whose head says how long it is.
#ifndef PICTURE_H
#define PICTURE_H

#include <stdio.h>
#include <string.h>

enum { PICTURE_SIZE = 16 * 16 };

// Returns whether the file has such a picture.
static int read_picture(const char *path, float picture[PICTURE_SIZE]) {
    unsigned char head[10];
    size_t length = 0;
    FILE *file = fopen(path, "rb");
    int is_read = file != NULL && fread(head, 1, sizeof head, file) == sizeof head && memcmp(head, "\x93NUMPY\x01", 7) == 0;
    if (is_read) {
        length = head[8] + 256u * head[9];
        is_read = fseek(file, (long)length, SEEK_CUR) == 0 &&
                  fread(picture, sizeof(float), PICTURE_SIZE, file) == PICTURE_SIZE;
    }
    if (file != NULL) fclose(file);
    return is_read;
}

#endif
