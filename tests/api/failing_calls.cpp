// Interposers over glibc's own functions.
#include "tests/api/failing_calls.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <new>

namespace lathe {

namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
std::atomic<int> failing_kind{-1};
std::atomic<int64_t> first{kNever}, last{kNever}, seen{0};

bool fails(Call call) {
  if (failing_kind.load(std::memory_order_relaxed) != static_cast<int>(call)) return false;
  const int64_t number = seen.fetch_add(1, std::memory_order_relaxed);
  return number >= first.load(std::memory_order_relaxed) &&
         number <= last.load(std::memory_order_relaxed);
}

}  // namespace

FailingCalls::FailingCalls(Call call, int64_t nth, bool for_good) {
  seen = 0;
  first = nth;
  last = for_good ? kNever : nth;
  failing_kind = static_cast<int>(call);
}

FailingCalls::~FailingCalls() { failing_kind = -1; }

int64_t FailingCalls::num_seen() { return seen; }

}  // namespace lathe

#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)  // which have their own

namespace {

void* new_or_null(size_t size, size_t alignment) {
  if (lathe::fails(lathe::Call::memory)) return nullptr;
  void* bytes = nullptr;
  return posix_memalign(&bytes, alignment < 16 ? 16 : alignment, size) == 0 ? bytes : nullptr;
}

void* new_or_throw(size_t size, size_t alignment) {
  if (void* bytes = new_or_null(size, alignment)) return bytes;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(size_t size) { return new_or_throw(size, 16); }
void* operator new(size_t size, std::align_val_t alignment) {
  return new_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return new_or_null(size, 16); }
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return new_or_null(size, static_cast<size_t>(alignment));
}
void operator delete(void* bytes) noexcept { std::free(bytes); }
void operator delete(void* bytes, size_t) noexcept { std::free(bytes); }
void operator delete(void* bytes, std::align_val_t) noexcept { std::free(bytes); }
void operator delete(void* bytes, size_t, std::align_val_t) noexcept { std::free(bytes); }

#else

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* bytes, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

static bool memory_fails() {
  if (!lathe::fails(lathe::Call::memory)) return false;
  errno = ENOMEM;
  return true;
}

void* malloc(size_t size) { return memory_fails() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return memory_fails() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* bytes, size_t size) {
  return memory_fails() ? nullptr : __libc_realloc(bytes, size);
}
void* memalign(size_t alignment, size_t size) {
  return memory_fails() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** bytes, size_t alignment, size_t size) {
  void* made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *bytes = made;
  return 0;
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (lathe::fails(lathe::Call::mapping)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  if (lathe::fails(lathe::Call::thread)) return EAGAIN;
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, body, argument);
}

}  // extern "C"

#endif
