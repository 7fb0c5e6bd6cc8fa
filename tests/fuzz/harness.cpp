// Runs the target on one input, for the driver of mutate_main.cpp and for libFuzzer's. Counts the
// memory it takes, so that an input which asks for too much fails before the machine has none.
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "tests/fuzz/fuzz_target.h"

extern "C" {
void __sanitizer_print_stack_trace(void) __attribute__((weak));  // null in other builds

// Beside what is counted: no single allocation of gigabytes, and an end before the machine's.
const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:hard_rss_limit_mb=4096:allocator_may_return_null=0";
}
}

namespace lathe::fuzz {
namespace {

constexpr size_t kMostInflated = 1032;  // bytes that one deflated byte can stand for

std::atomic<int64_t> live_bytes, most_bytes, max_bytes;
std::atomic<bool> is_counting;
uint64_t num_taken = 0;

void count_new(size_t size) {
  const int64_t live = live_bytes += static_cast<int64_t>(size);
  if (live > most_bytes) most_bytes = live;
  if (live <= max_bytes) return;
  is_counting = false;
  if (__sanitizer_print_stack_trace != nullptr) __sanitizer_print_stack_trace();
  fail("one input takes more memory than it may", std::to_string(live) + " bytes");
}

void begin_counting(size_t input_bytes) {
  live_bytes = 0;
  max_bytes = static_cast<int64_t>((kProperty.max_megabytes << 20) + input_bytes * kMostInflated);
  is_counting = true;
}

}  // namespace

Counts counts() { return {static_cast<size_t>(most_bytes), num_taken}; }

void fail(std::string_view why, std::string_view about) {
  std::fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(why.size()), why.data(),
               static_cast<int>(about.size()), about.data());
  std::abort();
}

bool must_blame_the_input(const Diag& diag, const LocTable& locs) {
  const std::string text = render(diag, locs);
  if (diag.code.empty() || diag.message.empty() || diag.is_internal)
    fail("not an error of the input's", text);
  return false;
}

}  // namespace lathe::fuzz

// Replace the library's own; what frees without a size asks the allocator for it.
void* operator new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) lathe::fuzz::fail("no memory", std::to_string(size) + " bytes");
  if (lathe::fuzz::is_counting) lathe::fuzz::count_new(malloc_usable_size(memory));
  return memory;
}
void operator delete(void* memory) noexcept {
  if (lathe::fuzz::is_counting && memory != nullptr)
    lathe::fuzz::live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lathe::fuzz::begin_counting(size);
  const bool is_taken = lathe::fuzz::kProperty.check({reinterpret_cast<const char*>(data), size});
  lathe::fuzz::is_counting = false;
  lathe::fuzz::num_taken += is_taken;
  return 0;
}
