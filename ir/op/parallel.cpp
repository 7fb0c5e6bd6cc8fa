// Threads for references (see parallel.h).
#include "ir/op/parallel.h"

#include <algorithm>

#ifndef __wasm__
#include <thread>
#include <vector>
#endif

namespace lathe {

#ifdef __wasm__

void parallel_for(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  body(0, count);
}

#else

void parallel_for(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t machine = std::max(1u, std::thread::hardware_concurrency());
  const int64_t parts = std::min(machine, count);
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < parts; ++i) {
    threads.emplace_back([&, i] { body(count * i / parts, count * (i + 1) / parts); });
  }
  if (count > 0) body(0, count / parts);
  for (std::thread& thread : threads) thread.join();
}

#endif

}  // namespace lathe
