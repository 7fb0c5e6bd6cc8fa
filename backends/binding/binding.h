// How a program meets memory, whatever the target's memory is: its inputs and outputs, its weights
// and how long each is needed, and where its own buffers lie.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lathe {

// An input or output of a call.
struct Port {
  BufferId id;
  std::string name;
  size_t num_bytes;
  // Kernels may write the caller's memory. Not where the buffer is no output of its own (an input
  // that is returned) or is one already: then it is copied out after the run.
  bool is_own = true;
};
std::vector<Port> input_ports(const Program& program);
std::vector<Port> output_ports(const Program& program);

// One view of the right size for every port; `what` is "input" or "output".
Status check_views(const std::string& program, std::span<const BufferView> views,
                   const std::vector<Port>& ports, const char* what);

// The caller's bytes of a weight: kMissingWeight without a source, kBadValue of another size.
Result<BufferView> weight_bytes(const ProgramBuffer& buffer, const CompileOptions& options);

// When weights are there. A weight that only init reads is wanted from the first of its launches to
// the last, so that one launch's weights at a time need memory.
struct WeightLifetimes {
  std::vector<BufferId> kept;                // steps read them: before init, for good
  std::vector<std::vector<BufferId>> begin;  // by launch of init: wanted from it on
  std::vector<std::vector<BufferId>> end;    // by launch of init: not wanted behind it
};
WeightLifetimes weight_lifetimes(const Program& program);

// Where the buffers lie that are neither the caller's nor weights: temporaries in the arena of
// steps or of init, which goes away after it; constants and persistent buffers in memory of their
// own.
enum class Region : uint8_t { none, arena, init_arena, persistent };
struct BufferPlace {
  Region region = Region::none;
  size_t offset = 0;
};
struct MemoryPlan {
  std::vector<BufferPlace> places;  // by buffer
  size_t arena_bytes = 0;
  size_t init_bytes = 0;
  size_t persistent_bytes = 0;
};
// Temporaries lie in their arena where memory planning put them, others behind it. `alignment`: of
// every offset, a power of two.
MemoryPlan place_buffers(const Program& program, size_t alignment);

}  // namespace lathe
