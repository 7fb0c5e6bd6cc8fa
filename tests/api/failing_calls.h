// Makes calls of the system fail: the binary that links this has its own malloc, mmap and
// pthread_create, which serve every library of the process. Sanitizers have theirs: built by clang,
// memory fails in operator new alone, and nothing else does.
#pragma once
#include <cstdint>

namespace lathe {

enum class Call : uint8_t { memory, mapping, thread };

// While it lives, the call number `nth` (from 0) of its kind fails, and those behind it when
// `for_good`. One at a time.
class FailingCalls {
 public:
  FailingCalls(Call call, int64_t nth, bool for_good = false);
  ~FailingCalls();
  FailingCalls(const FailingCalls&) = delete;
  static int64_t num_seen();  // since the last one began
};

}  // namespace lathe
