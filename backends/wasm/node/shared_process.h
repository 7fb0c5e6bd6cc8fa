// Node processes that serve one program after the other: most programs of a test run take less time
// than starting one.
#pragma once
#include <memory>

#include "backends/wasm/node/process.h"
#include "ir/support/result.h"

namespace lathe::wasm {

// Keeps a process for the next program, or ends it: when one is kept already, when a request
// failed (a trap, too long a run), and when its memory is large, which it would hold on to.
struct GiveBack {
  void operator()(NodeProcess* process) const;
};
using BorrowedProcess = std::unique_ptr<NodeProcess, GiveBack>;

// Starts one when none is kept.
Result<BorrowedProcess> borrow_process(const NodeInfo& node);

}  // namespace lathe::wasm
