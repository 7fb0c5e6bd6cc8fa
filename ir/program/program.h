// A compiled program: flat, printable launches over buffers, what every backend executes.
//
// `init` runs once, when weights are bound: it folds and packs them into persistent buffers, after
// which the weights themselves are no longer read. `steps` runs for every call. Launches run in
// order; a backend may overlap those that do not depend on each other.
//
// Sizes may be expressions of the program's symbols. What they are at one call is a Binding
// (binding.h); init has none. A symbol that a step binds has no value before it: such a program is
// run in pieces (split.h).
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "ir/loop/node.h"
#include "ir/program/call.h"
#include "ir/support/result.h"
#include "ir/type/guard.h"
#include "ir/type/tensor_type.h"

namespace lathe {

enum class BufferKind : uint8_t {
  input,       // the caller's, read only
  output,      // the caller's, written
  weight,      // mapped file bytes, read only; let go after init unless a step reads them in place
  constant,    // bytes held in the program
  persistent,  // written by init, read by steps
  temporary,   // in the arena, alive from its first to its last use
};

struct ProgramBuffer {
  std::string name;   // of the value it holds
  TensorType type;    // layout says where elements lie
  Dim num_bytes = 0;  // may exceed the type's: packed weights, padded borders
  BufferKind kind = BufferKind::temporary;
  // In the arena, for planned temporaries; 64-byte aligned. Bindings plan those of programs that
  // have symbols.
  int64_t offset = -1;
  std::string weight = {};            // fully qualified name, for kind weight
  std::vector<std::byte> bytes = {};  // for kind constant
};

// Targets place buffers, and launches begin in them, at multiples of this many bytes.
inline constexpr int64_t kBufferAlignment = 64;

struct KernelLaunch {
  int kernel;
  std::vector<BufferId> buffers;  // in the order of the kernel's global buffers
  // Where the kernel's buffers begin in those, in elements; empty when each begins where they do.
  // Launches that do the same further along share a kernel.
  std::vector<int64_t> offsets = {};
  int64_t offset(size_t i) const { return offsets.empty() ? 0 : offsets[i]; }
  std::vector<Dim> sizes = {};  // values of the kernel's dims, in order
};
struct LibraryLaunch {
  LibraryCall call;
};
struct CopyLaunch {
  BufferId source, destination;
};  // whole buffers, equal num_bytes
struct ShapeLaunch {
  std::string symbol;
  BufferId value;
};  // the host reads a number (i64), which the symbol is from here on
struct AssertLaunch {
  BufferId key;
  Dim low, high;
  std::string message;
};  // the host reads a number (i64) as ir/type/bounds.h says, which ends a run outside [low, high)
struct HostLaunch {
  std::string function;
  std::vector<BufferId> reads, writes;
};  // a call back into the embedder

struct Launch {
  std::variant<KernelLaunch, LibraryLaunch, CopyLaunch, ShapeLaunch, AssertLaunch, HostLaunch> kind;
  std::string label;        // "linear_gelu", for tables
  std::string region = {};  // the node of the graph that it is part of; of nobody when text made it
  std::vector<Loc> origins = {};
  Dim flops = 0;  // multiply and add count one each; transcendental functions one
  Dim bytes = 0;  // least traffic: each element that it may touch, once
  // What it reads or writes: a kernel's in its order, otherwise what is read and then what is
  // written.
  std::vector<BufferId> buffers() const;
};

// State that a run replaces: afterwards, the contents of buffer `output` belong in buffer `input`.
struct ProgramMutation {
  std::string target;  // name of the weight or param
  BufferId input;
  BufferId output;
};

struct Program {
  std::string name;
  std::vector<loop::Kernel> kernels;  // distinct by structural hash
  std::vector<ProgramBuffer> buffers;
  std::vector<BufferId> inputs;   // the graph's params, then weights that the run replaces
  std::vector<BufferId> outputs;  // the graph's outputs, then mutations; each buffer once
  std::vector<ProgramMutation> mutations;
  std::vector<Launch> init;
  std::vector<Launch> steps;
  std::map<std::string, DimRange> symbols = {};  // with the sizes that they may be
  std::map<std::string, int64_t> hints = {};     // what choices among kernels reckoned with
  std::vector<Guard> guards = {};                // what must hold of symbols beside their ranges
  int64_t arena_bytes = 0;                       // of steps
  int64_t init_arena_bytes = 0;                  // of init's own temporaries
  int64_t num_kernels() const;                   // launches in steps that run on the device
  int64_t in_place_bytes() const;                // weights that steps read where they are mapped
};

// The symbols that steps bind, in order, and those that callers do, in the order of `symbols`.
std::vector<std::string> bound_by_steps(const Program& program);
std::vector<std::string> bound_by_callers(const Program& program);

struct BufferUse {
  BufferId id;
  bool is_written;  // a kernel may read it as well
};
// As Launch::buffers(). The launch's kernel must exist.
std::vector<BufferUse> uses(const Program& program, const Launch& launch);

// By buffer of the launch, how many bytes from its begin on the kernel's begins. As uses().
std::vector<int64_t> byte_offsets(const Program& program, const KernelLaunch& launch);

// Which launches the results depend on: outputs, and what runs on the host. The launches' kernels
// and buffers must exist.
struct Needed {
  std::vector<bool> init, steps;  // by launch
};
Needed needed_launches(const Program& program);

// By kernel: whether a launch uses it.
std::vector<bool> used_kernels(const Program& program);

// For each buffer the last launch of init that uses it: kUsedLater when steps or outputs do, -1
// when nothing does. What init alone reads need not stay.
inline constexpr int kUsedLater = std::numeric_limits<int>::max();
std::vector<int> last_uses_in_init(const Program& program);

std::string print(const Program& program);
Status verify(const Program& program);

}  // namespace lathe
