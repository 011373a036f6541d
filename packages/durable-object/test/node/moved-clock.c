// Moves the wall clock of the process that it is preloaded into forward by DUELINE_MOVED_CLOCK_MS. What counts spans,
// and what is slept for, stays as it is.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MS_PER_S 1000
#define NS_PER_MS 1000000
#define NS_PER_S 1000000000

static long long moved_ms;

__attribute__((constructor)) static void read_moved(void) {
  const char *text = getenv("DUELINE_MOVED_CLOCK_MS");
  moved_ms = text == NULL ? 0 : atoll(text);
}

// The system is asked itself: looking for the functions that are replaced here may allocate, and allocators ask
// for the time.
int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = (int)syscall(SYS_clock_gettime, clock, time);
  if (failed == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    time->tv_sec += moved_ms / MS_PER_S;
    time->tv_nsec += moved_ms % MS_PER_S * NS_PER_MS;
    if (time->tv_nsec >= NS_PER_S) {
      time->tv_sec += 1;
      time->tv_nsec -= NS_PER_S;
    }
  }
  return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  struct timespec now;
  int failed = clock_gettime(CLOCK_REALTIME, &now);
  if (failed == 0) {
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
  }
  return failed;
}

time_t time(time_t *into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != NULL) {
    *into = now.tv_sec;
  }
  return now.tv_sec;
}
