// Threads for references (see parallel.h).
#include "ir/op/parallel.h"

#include <algorithm>

#include "ir/threads/threads.h"

namespace lathe {

void parallel_for(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t parts = std::min(Threads::at_once(), count);
  Threads threads;
  for (int64_t i = 1; i < parts; ++i) {
    const auto part = [&body, count, parts, i] {
      body(count * i / parts, count * (i + 1) / parts);
    };
    if (!threads.start(part)) part();
  }
  if (count > 0) body(0, count / parts);
  threads.join();
}

}  // namespace lathe
