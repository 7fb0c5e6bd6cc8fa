// One process waits at a time; it ends with this one, whose socket it reads from.
#include "backends/wasm/node/shared_process.h"

#include <mutex>

namespace lathe::wasm {
namespace {

constexpr uint32_t kMostPages = 1024;  // 64 MiB

struct Waiting {
  std::mutex mutex;
  std::unique_ptr<NodeProcess> process;
};

Waiting& waiting() {
  static Waiting the_waiting;
  return the_waiting;
}

}  // namespace

void GiveBack::operator()(NodeProcess* process) const {
  std::unique_ptr<NodeProcess> owned(process);
  if (!owned || !owned->is_sound() || owned->num_pages() > kMostPages) return;
  std::lock_guard lock(waiting().mutex);
  if (!waiting().process) waiting().process = std::move(owned);
}

Result<BorrowedProcess> borrow_process(const NodeInfo& node) {
  {
    std::lock_guard lock(waiting().mutex);
    if (waiting().process) return BorrowedProcess(waiting().process.release());
  }
  LATHE_TRY(std::unique_ptr<NodeProcess> started, NodeProcess::start(node.options));
  return BorrowedProcess(started.release());
}

}  // namespace lathe::wasm
