// Addresses by walking the buffers; see layout.h.
#include "backends/wasm/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/wasm/emit.h"
#include "ir/support/diag_codes.h"

namespace lathe::wasm {
namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kMostBytes = int64_t{4} << 30;

// Of a buffer: also an empty one has a start that can be read.
int64_t room(int64_t num_bytes) {
  return std::max((num_bytes + kAlign - 1) / kAlign * kAlign, kReadableBytes);
}

std::vector<bool> used_by(const Program& program, const std::vector<Launch>& launches) {
  std::vector<bool> used(program.buffers.size());
  for (const Launch& launch : launches)
    for (BufferId id : launch.buffers()) used[static_cast<size_t>(id)] = true;
  return used;
}

class Planner {
 public:
  Planner(const Program& program, int64_t scratch_bytes)
      : program_(program),
        in_init_(used_by(program, program.init)),
        in_steps_(used_by(program, program.steps)) {
    for (BufferId id : program.outputs) in_steps_[static_cast<size_t>(id)] = true;
    layout_.address.assign(program.buffers.size(), -1);
    place_kept();
    layout_.persistent_bytes = at_ - kLeastAddress;
    if (!program.symbols.empty()) place_table();
    int64_t start = at_;
    layout_.rest = start;
    layout_.scratch = take(scratch_bytes);  // both need it
    int64_t shared = at_;
    scratch_bytes_ = shared - start;
    place_init();
    int64_t init_end = at_;
    at_ = shared;
    if (program.symbols.empty()) place_calls();
    int64_t end = std::max(at_, init_end) + kAlign;
    layout_.num_bytes = (end + kPageBytes - 1) / kPageBytes * kPageBytes;
    calls_bytes_ = at_ - shared;
    init_bytes_ = init_end - shared;
  }

  Result<Layout> result() {
    if (layout_.num_bytes <= kMostBytes) return std::move(layout_);
    return Diag{
        .code = code::kTooLarge,
        .loc = Loc::unknown(),
        .message = fmt::format("program '{}' needs {} MiB of memory, and WebAssembly has 4096: {}",
                               program_.name, mib(layout_.num_bytes), sum())};
  }

 private:
  static int64_t mib(int64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

  std::string sum() const {
    std::string kept =
        fmt::format("weights {}, packed weights and constants {}", mib(weight_bytes_),
                    mib(layout_.persistent_bytes - weight_bytes_));
    int64_t arena_bytes = calls_bytes_ - port_bytes_ + scratch_bytes_;
    std::string call = fmt::format("inputs and outputs {}, arena and scratch {}", mib(port_bytes_),
                                   mib(arena_bytes));
    if (init_bytes_ <= calls_bytes_) return kept + ", " + call;
    return fmt::format("{}, packing {} (later, in its place: {})", kept,
                       mib(init_bytes_ + scratch_bytes_), call);
  }

  const ProgramBuffer& buffer(size_t id) const { return program_.buffers[id]; }

  int64_t take(int64_t num_bytes) {
    int64_t address = at_;
    at_ += room(num_bytes);
    return address;
  }

  void place_kept() {
    for (size_t id = 0; id < program_.buffers.size(); ++id) {
      const ProgramBuffer& b = buffer(id);
      bool is_weight = b.kind == BufferKind::weight && in_steps_[id];
      if (b.kind != BufferKind::constant && b.kind != BufferKind::persistent && !is_weight)
        continue;
      layout_.address[id] = take(b.num_bytes.value());
      if (!is_weight) continue;
      layout_.weights.push_back({static_cast<BufferId>(id), layout_.address[id]});
      weight_bytes_ += room(b.num_bytes.value());
    }
  }

  // Of a step's sizes: those of its kernel's dims, the bytes of a copy, or what is asserted.
  static int64_t num_words(const Launch& step) {
    const auto* kernel = std::get_if<KernelLaunch>(&step.kind);
    if (std::holds_alternative<AssertLaunch>(step.kind)) return 2;
    return kernel ? static_cast<int64_t>(kernel->sizes.size()) : 1;
  }

  void place_table() {
    layout_.table = at_;
    auto words = static_cast<int64_t>(program_.buffers.size()) + 1;
    for (const Launch& step : program_.steps) {
      layout_.first_size.push_back(words);
      words += num_words(step);
    }
    take(4 * words);
  }

  // Temporaries lie in their arena where memory planning put them, others behind it.
  void place_temporaries(bool of_init, int64_t arena_bytes) {
    int64_t arena = take(arena_bytes);
    for (size_t id = 0; id < program_.buffers.size(); ++id) {
      const ProgramBuffer& b = buffer(id);
      if (b.kind != BufferKind::temporary || in_init_[id] != of_init) continue;
      layout_.address[id] = b.offset >= 0 ? arena + b.offset : take(b.num_bytes.value());
    }
  }

  void place_init() {
    place_temporaries(true, program_.init_arena_bytes);
    int64_t staging = at_, end = at_;
    for (const Launch& launch : program_.init) {
      at_ = staging;
      std::vector<Placement> staged;
      for (BufferId id : launch.buffers()) {
        auto index = static_cast<size_t>(id);
        bool is_known = std::any_of(staged.begin(), staged.end(),
                                    [&](const Placement& p) { return p.buffer == id; });
        if (buffer(index).kind != BufferKind::weight || in_steps_[index] || is_known) continue;
        staged.push_back({id, take(buffer(index).num_bytes.value())});
      }
      layout_.staged.push_back(std::move(staged));
      end = std::max(end, at_);
    }
    at_ = end;
  }

  void place_calls() {
    int64_t shared = at_;
    for (size_t id = 0; id < program_.buffers.size(); ++id)
      if (buffer(id).kind == BufferKind::input || buffer(id).kind == BufferKind::output)
        layout_.address[id] = take(buffer(id).num_bytes.value());
    int64_t arena = at_;
    port_bytes_ = arena - shared;
    place_temporaries(false, program_.arena_bytes);
    layout_.arena_bytes = at_ - arena;
  }

  const Program& program_;
  std::vector<bool> in_init_, in_steps_;
  Layout layout_;
  int64_t at_ = kLeastAddress;
  // What an error adds up; ports are inputs and outputs.
  int64_t weight_bytes_ = 0, port_bytes_ = 0, scratch_bytes_ = 0;
  int64_t calls_bytes_ = 0, init_bytes_ = 0;
};

}  // namespace

Result<BoundLayout> bind_layout(const Program& program, const Layout& layout,
                                const Binding& binding, int64_t scratch_bytes) {
  const auto too_large = [&](std::string_view what) {
    return Diag{.code = code::kTooLarge,
                .loc = Loc::unknown(),
                .message = fmt::format("at these sizes program '{}' has {}", program.name, what)};
  };
  BoundLayout bound{.address = layout.address};
  int64_t at = layout.rest;
  const auto take = [&](int64_t num_bytes) {
    const int64_t address = at;
    if (at <= kMostBytes) at += room(std::min(num_bytes, kMostBytes));
    return address;
  };
  bound.scratch = take(scratch_bytes);
  for (size_t id = 0; id < program.buffers.size(); ++id)
    if (const BufferKind kind = program.buffers[id].kind;
        kind == BufferKind::input || kind == BufferKind::output)
      bound.address[id] = take(binding.num_bytes[id]);
  const int64_t arena = take(binding.arena_bytes);
  for (size_t id = 0; id < program.buffers.size(); ++id)
    if (binding.offsets[id] >= 0) bound.address[id] = arena + binding.offsets[id];
  bound.num_bytes = (at + kAlign + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (bound.num_bytes > kMostBytes) return too_large("more memory than WebAssembly's 4096 MiB");
  for (int64_t address : bound.address)
    bound.table.push_back(static_cast<int32_t>(static_cast<uint32_t>(address)));
  bound.table.push_back(static_cast<int32_t>(static_cast<uint32_t>(bound.scratch)));
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (const auto* copy = std::get_if<CopyLaunch>(&program.steps[i].kind)) {
      const int64_t bytes = binding.num_bytes[static_cast<size_t>(copy->source)];
      bound.table.push_back(static_cast<int32_t>(static_cast<uint32_t>(bytes)));
    }
    for (int64_t size : binding.sizes[i]) {
      if (size < INT32_MIN || size > INT32_MAX) return too_large("a size of more than 32 bits");
      bound.table.push_back(static_cast<int32_t>(size));
    }
  }
  return bound;
}

Result<Layout> plan_layout(const Program& program, int64_t scratch_bytes) {
  return Planner(program, scratch_bytes).result();
}

}  // namespace lathe::wasm
