// What a target implements: a program becomes an executable, an executable runs.
#pragma once
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/result.h"
#include "ir/target/target.h"

namespace lathe {

// Where a buffer of a call lies: memory of the host or, on targets that have their own, of the
// device. Owned by the caller.
struct BufferView {
  std::byte* bytes = nullptr;
  size_t num_bytes = 0;
};

// An output as large as a run found, in memory of the executable's own, until the next run: copy()
// takes it out. What the caller gives for it is not looked at.
struct SizedOutput {
  BufferView view;
  std::vector<int64_t> shape;
};

struct ExecutableStats {
  double codegen_ms = 0;         // loop IR to machine code
  double init_ms = 0;            // folding and packing of weights
  int64_t persistent_bytes = 0;  // of its own packed weights and constants
  int64_t arena_bytes = 0;       // of the sizes that are bound
  // What was kept for sizes seen before and had to go, by reason, and how often.
  std::map<std::string, int64_t> drops = {};
};

class Executable {
 public:
  virtual ~Executable() = default;
  // The sizes of the runs that follow: a value of each of the program's symbols, in their order,
  // but those that steps bind.
  // What the program forbids is kDimRange, kBadValue or kTooLarge, and the sizes stay as they were.
  virtual Status bind(std::span<const int64_t> sizes) = 0;
  // One view per program input and output, in order; sizes are checked. Not reentrant. Symbols that
  // steps bind are no matter of bind(): outputs that need them are found by output().
  virtual Status run(std::span<const BufferView> inputs, std::span<const BufferView> outputs) = 0;
  // Copies what a run wrote to where the next finds it, behind the run: from one view of a call, or
  // memory of the host's, to another of the same size.
  virtual Status copy(const BufferView& from, const BufferView& to) {
    std::memcpy(to.bytes, from.bytes, from.num_bytes);
    return Ok{};
  }
  virtual const ExecutableStats& stats() const = 0;
  // Memory as large as that for inputs and outputs, where runs take them without copying; aligned.
  // `what` is for errors. It may outlive the executable.
  virtual Result<std::shared_ptr<std::byte>> allocate(size_t num_bytes, const std::string& what);
  // Waits for runs that were put into a queue.
  virtual Status wait() { return Ok{}; }
  // Of a program whose steps bind sizes (backends/staged): what the last run found, by symbol.
  virtual const std::map<std::string, int64_t>& sizes_in_run() const {
    static const std::map<std::string, int64_t> kNone;
    return kNone;
  }
  // The output of the last run whose size that run found; nothing for others.
  virtual std::optional<SizedOutput> output(size_t index) const {
    (void)index;
    return std::nullopt;
  }
  // The bytes of a persistent buffer of the program, there as long as they are held; null where the
  // host does not see them.
  virtual std::shared_ptr<const std::byte> persistent(BufferId id) const {
    (void)id;
    return nullptr;
  }
  // A queue of the device (a CUstream) that later runs are put into without waiting for them; null:
  // one of the executable's own, and run waits. Targets without queues ignore it.
  virtual void set_stream(void* stream) { (void)stream; }
  // Seconds of each step of the last run with timing on, in the order of program.steps; empty when
  // off.
  virtual std::vector<double> step_seconds() const { return {}; }
  virtual void set_timing(bool on) { (void)on; }
};

// Machine code of kernels, by what each was made from: canonical bytes, which name the target's
// instruction set too.
using KernelCode = std::map<std::string, std::shared_ptr<const std::string>>;

struct CompileOptions {
  int threads = 1;
  // torch.compile's mode "reduce-overhead": launches are recorded once and replayed as one, for
  // which inputs and outputs are copied to and from buffers of the executable. Not every target has
  // such launches.
  bool reduce_overhead = false;
  // The bytes of a weight by name, asked for during compile, on the host or the target's device;
  // those of weights that steps read in place must stay valid while the executable lives.
  // `release_weight` is called for each other one when it is packed.
  std::function<Result<BufferView>(const std::string& name)> weight;
  std::function<void(const std::string& name)> release_weight;
  // What was made of the program before, in this process or another; afterwards it has the code of
  // all its kernels. Null, or a target that keeps none: everything is made anew.
  KernelCode* code = nullptr;
  // Where compile() says which launches the target's libraries refuse, by region, and why: when it
  // fails, other kinds of kernels may do for those. Null: nobody asks.
  std::map<std::pair<std::string, std::string>, std::string>* refused = nullptr;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const Target& target() const = 0;
  // What the cost model reckons with from now on; targets without measured rates ignore it.
  virtual void set_rates(const Rates& rates) { (void)rates; }
  virtual Result<std::unique_ptr<Executable>> compile(const Program& program,
                                                      const CompileOptions& options) = 0;
  // What `compile --emit` can show ("llvm", "asm", "object", ...), and its text or bytes.
  virtual std::vector<std::string> emits() const = 0;
  virtual Result<std::string> emit(const Program& program, const std::string& what) = 0;
};

}  // namespace lathe
