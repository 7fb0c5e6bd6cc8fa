// A program whose sizes have symbols, at one value of each.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/program/arena.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "ir/type/bind.h"
#include "ir/type/dim_tape.h"
#include "ir/type/size_check.h"

namespace lathe {

// The numbers of one call.
struct Binding {
  std::vector<int64_t> num_bytes;           // by buffer
  std::vector<int64_t> offsets;             // by buffer, in the arena of steps; -1: not in there
  std::vector<std::vector<int64_t>> sizes;  // by step: of its kernel's dims; of a library's call
                                            // its symbolic_sizes
  int64_t arena_bytes = 0;                  // of steps
};

// How a binding follows from sizes, as data: numbers are places in the tape.
struct BindingPlan {
  struct KernelSize {
    size_t at;
    int64_t min, max, multiple;
  };
  struct FitCheck {
    size_t needed;  // elements
    BufferId buffer;
    int64_t offset, bytes_each;
  };
  DimTape tape;
  std::vector<size_t> num_bytes = {};           // by buffer
  std::vector<std::vector<size_t>> sizes = {};  // by step
  std::vector<KernelSize> kernel_sizes = {};
  std::vector<FitCheck> fit_checks = {};
  std::vector<std::pair<size_t, size_t>> type_fits = {};  // a type's bytes, its buffer's
  std::vector<std::pair<BufferId, BufferId>> alike = {};  // buffers that are copied
  std::vector<Lifetime> lives = {};                       // of steps
};

// Makes bindings, fast: everything that does not depend on sizes is found out once.
class Binder {
 public:
  explicit Binder(const Program& program);

  const BindingPlan& plan() const { return plan_; }

  // At these values, in the order of symbols(). An error says which range or guard forbids them, as
  // check_sizes says it of the program's inputs (kDimRange), that a kernel or buffer is for others
  // (kBadValue), or that something is too large (kTooLarge).
  Result<Binding> bind(std::span<const int64_t> values) const;

  const std::vector<std::string>& symbols() const { return plan_.tape.symbols(); }

 private:
  void add_call(const Program& program, const LibraryLaunch& launch);
  Status check_calls(const Binding& binding) const;
  Status check_allowed(std::span<const int64_t> values) const;

  std::string name_;
  std::vector<ShapeBinding> inputs_;  // for errors
  std::map<std::string, DimRange> ranges_;
  std::vector<Guard> guards_;
  SizeCheck allowed_;
  BindingPlan plan_;
  std::vector<std::pair<size_t, LibraryCall>> calls_;  // of symbolic sizes, with their steps
  std::vector<ProgramBuffer> buffers_;                 // without bytes; where there are such calls
};

// Sizes of the program's symbols in their order; kBadValue when one has none.
Result<std::vector<int64_t>> ordered_sizes(const Program& program,
                                           const std::map<std::string, int64_t>& values);

// The program at these sizes, as one that has no symbols: planned, and with kernels of their own
// for each of the sizes that launches give them.
Result<Program> instantiate(const Program& program, const std::map<std::string, int64_t>& values);

}  // namespace lathe
