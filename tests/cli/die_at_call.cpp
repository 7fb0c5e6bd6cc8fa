// Preloaded: the n-th call that changes a file (n is in DIE_AT_CALL) does half of its work or none,
// and the process ends as if it was killed. Without n, it writes the number of calls at exit.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kKilled = 137;
std::atomic<long> calls{0};

// Of files alone: the terminal's output is no file that somebody could find broken.
bool is_file(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

bool is_last_call() {
  const char* limit = std::getenv("DIE_AT_CALL");
  const long call = ++calls;
  return limit != nullptr && call == std::atol(limit);
}

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t count) {
  auto* next = real<ssize_t(int, const void*, size_t)>("write");
  if (is_file(fd) && is_last_call()) {
    (void)!next(fd, bytes, count / 2);
    _exit(kKilled);
  }
  return next(fd, bytes, count);
}

int fsync(int fd) {
  if (is_last_call()) _exit(kKilled);
  return real<int(int)>("fsync")(fd);
}

int rename(const char* from, const char* to) {
  if (is_last_call()) _exit(kKilled);
  return real<int(const char*, const char*)>("rename")(from, to);
}

int ftruncate(int fd, off_t size) {
  if (is_last_call()) _exit(kKilled);
  return real<int(int, off_t)>("ftruncate")(fd, size);
}

}  // extern "C"

namespace {

__attribute__((destructor)) void tell_calls() {
  const char* path = std::getenv("COUNT_CALLS_TO");
  if (path == nullptr) return;
  if (FILE* file = std::fopen(path, "w")) {
    std::fprintf(file, "%ld", calls.load());
    std::fclose(file);
  }
}

}  // namespace
