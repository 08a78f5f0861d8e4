// Files without a name that memory is in which other processes open. Their names in /proc say what
// they are of, and of which device.
#include "emulator.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { longest_name = 64 };

// -1 where there is no more.
int new_file(const char *kind, int device) {
  char name[longest_name];
  snprintf(name, sizeof name, "hamr-emulator-%s-%d", kind, device);
  return memfd_create(name, MFD_CLOEXEC);
}

// The device that a descriptor is of such a file of, or -1 if it is of anything else.
int device_of_file(const char *kind, int descriptor) {
  char link[longest_name], name[longest_name], wanted[longest_name];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  int length = snprintf(wanted, sizeof wanted, "/memfd:hamr-emulator-%s-", kind);
  ssize_t size = readlink(link, name, sizeof name - 1);
  if (size < 0)
    return -1;
  name[size] = 0;
  return strncmp(name, wanted, (size_t)length) == 0 ? (int)strtol(name + length, NULL, 10) : -1;
}

// Another description of a file that a process has open, which locks of its own go with; or -1.
int reopened(int process, int descriptor) {
  char link[longest_name];
  snprintf(link, sizeof link, "/proc/%d/fd/%d", process, descriptor);
  return open(link, O_RDWR | O_CLOEXEC);
}

static struct flock part(short kind, uint64_t offset, uint64_t size) {
  return (struct flock){.l_type = kind, .l_whence = SEEK_SET, .l_start = (off_t)offset, .l_len = (off_t)size};
}

// Says, until the process ends, that it uses a part of a file.
void use_part(int file, uint64_t offset, uint64_t size, int use) {
  struct flock lock = part(use ? F_RDLCK : F_UNLCK, offset, size);
  fcntl(file, F_OFD_SETLK, &lock);
}

int others_use(int file, uint64_t offset, uint64_t size) {
  struct flock lock = part(F_WRLCK, offset, size);
  return fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}
