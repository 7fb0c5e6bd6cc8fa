// How a program meets memory, whatever the target's memory is: its inputs and outputs, its weights
// and how long each is needed, and where its own buffers lie.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <utility>
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
// Where sizes are bound: `num_bytes` is a binding's, by buffer. Until then symbolic ports have
// none.
void resize(std::vector<Port>& ports, std::span<const int64_t> num_bytes);
// kBadValue: a run before that.
Diag needs_sizes(const std::string& program);
// kBadValue: sizes for a program that has no symbols.
Status check_no_sizes(const std::string& program, std::span<const int64_t> sizes);

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

// Runs init with the weights that it wants: `bind(id)` makes one addressable, `execute(i)` runs a
// launch, and `release(i)` is told when launch i was the last for the weights of end[i].
template <class Bind, class Execute, class Release>
Status run_init_launches(const WeightLifetimes& lifetimes, Bind&& bind, Execute&& execute,
                         Release&& release) {
  for (BufferId id : lifetimes.kept) LATHE_DO(bind(id));
  for (size_t i = 0; i < lifetimes.begin.size(); ++i) {
    for (BufferId id : lifetimes.begin[i]) LATHE_DO(bind(id));
    LATHE_DO(execute(i));
    if (!lifetimes.end[i].empty()) LATHE_DO(release(i));
  }
  return Ok{};
}

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
// Temporaries lie in their arena where memory planning put them, others behind it; those of steps
// lie nowhere yet in a program that has symbols. `alignment`: of every offset, a power of two.
MemoryPlan place_buffers(const Program& program, size_t alignment);

// The planned memory of an executable; a `Memory` says where it is by address().
template <class Memory>
struct PlannedMemory {
  Memory arena, init_arena;
  std::shared_ptr<Memory> persistent;

  using Address = decltype(arena.address());
  // Returns the address of every buffer, null where it lies elsewhere. `make(num_bytes, what)`
  // gives a Result<Memory>.
  template <class Make>
  Result<std::vector<Address>> allocate(const MemoryPlan& plan, Make&& make) {
    LATHE_TRY(arena, make(plan.arena_bytes, "the arena"));
    LATHE_TRY(init_arena, make(plan.init_bytes, "the arena of init"));
    LATHE_TRY(Memory lasting, make(plan.persistent_bytes, "packed weights"));
    persistent = std::make_shared<Memory>(std::move(lasting));
    std::vector<Address> addresses(plan.places.size());
    for (size_t i = 0; i < plan.places.size(); ++i) {
      const BufferPlace& place = plan.places[i];
      if (place.region == Region::none) continue;
      const Memory& memory = place.region == Region::persistent   ? *persistent
                             : place.region == Region::init_arena ? init_arena
                                                                  : arena;
      addresses[i] = memory.address() + place.offset;
    }
    return addresses;
  }
};

}  // namespace lathe
