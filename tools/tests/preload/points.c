// Stands before the C library in a program that a test starts: ends it at a chosen write or sync of a file in a folder, or gives it a clock
// that is set while it runs. Nothing of it is part of Halite.
//
// POINTS_FOLDER, POINTS_AT, POINTS_SIGNAL: the signal comes when the n-th of these calls has written half of its bytes.
// POINTS_STAYS: that call never returns then.
// POINTS_CLOCK: the clock of the day goes forth and back by ten years, each time that somebody looks. That since the start does not.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int in_folder(int file) {
  const char *folder = getenv("POINTS_FOLDER");
  char link[64], path[4096];
  if (!folder) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return strncmp(path, folder, strlen(folder)) == 0;
}

static int is_the_point(int file) {
  static int seen;
  const char *at = getenv("POINTS_AT");
  return at && in_folder(file) && __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED) == atoi(at);
}

static void end(void) {
  const char *signal = getenv("POINTS_SIGNAL");
  kill(getpid(), signal ? atoi(signal) : SIGKILL);
  while (getenv("POINTS_STAYS")) pause();
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *bytes, size_t length) {
  if (!is_the_point(file)) return REAL(write)(file, bytes, length);
  ssize_t written = REAL(write)(file, bytes, length > 1 ? length / 2 : length);
  end();
  return written;
}

int fsync(int file) {
  if (is_the_point(file)) end();
  return REAL(fsync)(file);
}

int fdatasync(int file) {
  if (is_the_point(file)) end();
  return REAL(fdatasync)(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  static int looked;
  int result = REAL(clock_gettime)(clock, time);
  if (clock == CLOCK_REALTIME && getenv("POINTS_CLOCK")) {
    long years = __atomic_add_fetch(&looked, 1, __ATOMIC_RELAXED) % 2 ? 10 : -10;
    time->tv_sec += years * 365 * 24 * 3600;
  }
  return result;
}
