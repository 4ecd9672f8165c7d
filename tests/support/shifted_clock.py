"""A clock of processes that a test sets: a library that is loaded before the C library adds seconds from a file.

The kernel's clock stays as it is, and so do the clocks that nobody sets.
"""

import shutil
import subprocess
import time

import pytest

SOURCE = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift(void) {
    char digits[32] = "";
    int file = open(getenv("CLOCK_SHIFT"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, digits, sizeof digits - 1) < 0) digits[0] = 0;
    close(file);
    return (time_t)atoll(digits);
}

int clock_gettime(clockid_t which, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, which, at);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


class ShiftedClock:
    """The clock of processes with ``variables``; skips the test where there is no compiler."""

    def __init__(self, folder):
        if shutil.which("cc") is None:
            pytest.skip("needs a C compiler")
        library, self._file = folder / "clock.so", folder / "shift"
        command = ["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=SOURCE, text=True, check=True)
        self.seconds = 0
        self.move(0)
        self.variables = {"LD_PRELOAD": str(library), "CLOCK_SHIFT": str(self._file)}

    def move(self, seconds):
        """Set it ahead by so many seconds, or back."""
        self.seconds += seconds
        new = self._file.with_suffix(".new")
        new.write_text(str(self.seconds))
        new.replace(self._file)

    def now(self):
        """Seconds since the epoch, as those processes see them."""
        return time.time() + self.seconds
