// The verifier of programs.
//
// Checked: ids are in range; a kernel launch has one buffer per global buffer of its kernel, each
// at least as large, and writes only what may be written; the operands of a library call lie within
// their buffers and fit each other; persistent buffers are written by init and read by steps;
// nothing is read before it is written; every output is written or is an input, a constant or
// persistent; somebody reads what a launch writes; planned temporaries are 64-byte aligned, lie in
// their arena and do not overlap while both are alive.
// Not checked: the kernels themselves (loop::verify), and that a launch which gets the same memory
// as operand and result (two temporaries at one offset) works in place.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <set>
#include <string_view>

#include "ir/program/program.h"
#include "ir/program/verify.h"
#include "ir/program/verify_call.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

constexpr int kNever = INT_MIN;

class Verifier {
 public:
  // `places` may be null: then what is wrong is Lathe's own mistake.
  Verifier(const Program& program, const ProgramPlaces* places)
      : program_(program), places_(places), states_(program.buffers.size()) {
    go_to_header();
  }

  Status run() {
    for (size_t i = 0; i < program_.buffers.size(); ++i) LATHE_DO(check_buffer(i));
    go_to_header();
    LATHE_DO(check_kernels());
    for (BufferId id : program_.inputs) {
      LATHE_DO(check_id(id, "the inputs"));
      if (buffer(id).kind != BufferKind::input)
        return fail(
            fmt::format("buffer {} is an input of the program, but not of kind input", quote(id)));
    }
    for (is_init_ = true, clock_ = 0; clock_ < static_cast<int>(program_.init.size()); ++clock_)
      LATHE_DO(check_launch(program_.init[static_cast<size_t>(clock_)]));
    for (is_init_ = false, clock_ = 0; clock_ < static_cast<int>(program_.steps.size()); ++clock_)
      LATHE_DO(check_launch(program_.steps[static_cast<size_t>(clock_)]));
    LATHE_DO(check_outputs());
    LATHE_DO(check_needed());
    return check_arenas();
  }

 private:
  struct State {
    bool is_written = false;
    bool in_init = false;
    bool in_steps = false;
    int first = kNever;  // launch that touches it first, in the part it belongs to
    int last = kNever;
  };

  const ProgramBuffer& buffer(BufferId id) const {
    return program_.buffers[static_cast<size_t>(id)];
  }
  std::string quote(BufferId id) const { return fmt::format("%{} \"{}\"", id, buffer(id).name); }
  Diag fail(std::string message) const {
    return Diag{.code = places_ ? code::kBadProgram : code::kInternal,
                .loc = loc_,
                .message = fmt::format("program '{}': {}", program_.name, message),
                .is_internal = places_ == nullptr};
  }

  void go_to_header() { loc_ = places_ ? places_->header : Loc::unknown(); }
  void go_to(BufferId id) {
    if (places_) loc_ = places_->buffers[static_cast<size_t>(id)];
  }

  Status check_id(BufferId id, const char* where) const {
    if (id >= 0 && static_cast<size_t>(id) < program_.buffers.size()) return Ok{};
    return fail(fmt::format("buffer %{} in {} does not exist, expected less than {}", id, where,
                            program_.buffers.size()));
  }

  Status check_buffer(size_t index) {
    const ProgramBuffer& b = program_.buffers[index];
    BufferId id = static_cast<BufferId>(index);
    go_to(id);
    if (!b.type.is_static())
      return fail(fmt::format("buffer {} has the symbolic type {}", quote(id), to_string(b.type)));
    auto elements = b.type.static_elements();
    if (!elements || *elements > INT64_MAX / dtype_bytes(b.type.dtype))
      return fail(fmt::format("the size of buffer {} overflows", quote(id)));
    if (b.offset > INT64_MAX - b.num_bytes)
      return fail(fmt::format("buffer {} lies beyond all memory", quote(id)));
    if (b.num_bytes < *elements * dtype_bytes(b.type.dtype))
      return fail(fmt::format("buffer {} has {} bytes, less than its type {} needs", quote(id),
                              b.num_bytes, to_string(b.type)));
    if (b.kind == BufferKind::constant && static_cast<int64_t>(b.bytes.size()) != b.num_bytes)
      return fail(fmt::format("constant {} holds {} bytes, expected {}", quote(id), b.bytes.size(),
                              b.num_bytes));
    if (b.kind != BufferKind::constant && !b.bytes.empty())
      return fail(fmt::format("buffer {} holds bytes and is no constant", quote(id)));
    return Ok{};
  }

  // Launches name their kernels in text.
  Status check_kernels() const {
    std::set<std::string_view> names;
    for (const loop::Kernel& kernel : program_.kernels)
      if (!names.insert(kernel.name).second)
        return fail(fmt::format("two kernels are named '{}'", kernel.name));
    return Ok{};
  }

  Status check_launch(const Launch& launch) {
    loc_ = place_of(launch);
    LATHE_DO(std::visit([this](const auto& kind) { return check_kind(kind); }, launch.kind));
    const std::vector<BufferUse> all = uses(program_, launch);
    for (const BufferUse& use : all)
      if (!use.is_written) LATHE_DO(note_use(use));
    for (const BufferUse& use : all)
      if (use.is_written) LATHE_DO(note_use(use));
    return Ok{};
  }

  static Loc place_of(const Launch& launch) {
    return launch.origins.empty() ? Loc::unknown() : launch.origins.front();
  }

  Status check_kind(const CopyLaunch& copy) const {
    LATHE_DO(check_id(copy.source, "a copy"));
    LATHE_DO(check_id(copy.destination, "a copy"));
    if (buffer(copy.source).num_bytes == buffer(copy.destination).num_bytes) return Ok{};
    return fail(fmt::format("copy of {} bytes to {} bytes", buffer(copy.source).num_bytes,
                            buffer(copy.destination).num_bytes));
  }

  Status check_kind(const LibraryLaunch& launch) const {
    const std::string wrong = find_wrong(launch.call, program_.buffers);
    if (!wrong.empty()) return fail(wrong);
    const std::vector<CallOperand> all = operands(launch.call);
    for (const CallOperand& operand : all)
      if (!operand.is_written && operand.tensor->buffer == all.back().tensor->buffer)
        return fail(fmt::format("{} writes its operand '{}', {}", routine_name(launch.call),
                                operand.name, quote(operand.tensor->buffer)));
    return Ok{};
  }

  Status check_kind(const HostLaunch& host) const {
    for (const auto* list : {&host.reads, &host.writes})
      for (BufferId id : *list) LATHE_DO(check_id(id, "a host launch"));
    return Ok{};
  }

  Status check_kind(const ShapeLaunch&) const { return Ok{}; }

  Status check_kind(const KernelLaunch& launch) const {
    if (launch.kernel < 0 || static_cast<size_t>(launch.kernel) >= program_.kernels.size())
      return fail(fmt::format("kernel {} does not exist, expected less than {}", launch.kernel,
                              program_.kernels.size()));
    const loop::Kernel& kernel = program_.kernels[static_cast<size_t>(launch.kernel)];
    size_t count = 0;
    for (const loop::Buffer& formal : kernel.buffers) {
      if (formal.space != loop::Space::global) continue;
      if (count == launch.buffers.size())
        return fail(fmt::format("kernel '{}' has more buffers than the {} of its launch",
                                kernel.name, count));
      BufferId id = launch.buffers[count++];
      LATHE_DO(check_id(id, "a kernel launch"));
      if (formal.dtype != buffer(id).type.dtype)
        return fail(fmt::format("kernel '{}' takes {} for '{}', {} is {}", kernel.name,
                                dtype_name(formal.dtype), formal.name, quote(id),
                                dtype_name(buffer(id).type.dtype)));
      if (formal.size > buffer(id).num_bytes / dtype_bytes(formal.dtype))
        return fail(fmt::format("kernel '{}' needs {} elements of {} for '{}', {} has {} bytes",
                                kernel.name, formal.size, dtype_name(formal.dtype), formal.name,
                                quote(id), buffer(id).num_bytes));
    }
    if (count != launch.buffers.size())
      return fail(fmt::format("kernel '{}' has {} buffers, its launch {}", kernel.name, count,
                              launch.buffers.size()));
    return Ok{};
  }

  // Kinds that hold a value before the program runs.
  static bool is_source(BufferKind kind) {
    return kind == BufferKind::input || kind == BufferKind::weight || kind == BufferKind::constant;
  }

  State& state(BufferId id) { return states_[static_cast<size_t>(id)]; }
  const State& state(BufferId id) const { return states_[static_cast<size_t>(id)]; }

  Status note_use(const BufferUse& use) {
    const ProgramBuffer& b = buffer(use.id);
    State& s = state(use.id);
    if (use.is_written) {
      bool allowed = b.kind == BufferKind::temporary ||
                     (b.kind == BufferKind::persistent && is_init_) ||
                     (b.kind == BufferKind::output && !is_init_);
      if (!allowed)
        return fail(
            fmt::format("{} writes buffer {}", is_init_ ? "init" : "a step", quote(use.id)));
      s.is_written = true;
    } else if (!s.is_written && !is_source(b.kind) && b.num_bytes > 0) {
      return fail(fmt::format("buffer {} is read before it is written", quote(use.id)));
    }
    if (b.kind == BufferKind::input && is_init_)
      return fail(fmt::format("init reads input {}", quote(use.id)));
    (is_init_ ? s.in_init : s.in_steps) = true;
    if (b.kind == BufferKind::temporary && s.in_init && s.in_steps)
      return fail(fmt::format("temporary {} is used by init and by steps", quote(use.id)));
    if (s.first == kNever) s.first = clock_;
    s.last = clock_;
    return Ok{};
  }

  Status check_outputs() {
    go_to_header();
    for (BufferId id : program_.outputs) {
      LATHE_DO(check_id(id, "the outputs"));
      BufferKind kind = buffer(id).kind;
      if (kind == BufferKind::temporary || kind == BufferKind::weight)
        return fail(
            fmt::format("buffer {} is an output of the program, but not of a kind that "
                        "outlives a call",
                        quote(id)));
      bool is_empty = buffer(id).num_bytes == 0;  // nothing writes it
      if (!is_source(kind) && !is_empty && !state(id).is_written)
        return fail(fmt::format("output {} is never written", quote(id)));
    }
    for (const ProgramMutation& mutation : program_.mutations) {
      LATHE_DO(check_id(mutation.input, "a mutation"));
      LATHE_DO(check_id(mutation.output, "a mutation"));
      const auto has = [](const std::vector<BufferId>& ids, BufferId id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
      };
      if (!has(program_.inputs, mutation.input) || !has(program_.outputs, mutation.output) ||
          buffer(mutation.input).num_bytes != buffer(mutation.output).num_bytes)
        return fail(
            fmt::format("'{}' goes from {} to {}, expected an output and an input of one "
                        "size",
                        mutation.target, quote(mutation.output), quote(mutation.input)));
    }
    return Ok{};
  }

  Status check_needed() {
    const Needed needed = needed_launches(program_);
    for (const auto& [launches, is_needed] :
         {std::pair(&program_.init, &needed.init), std::pair(&program_.steps, &needed.steps)})
      for (size_t i = 0; i < launches->size(); ++i) {
        loc_ = place_of((*launches)[i]);
        if (!(*is_needed)[i])
          return fail(fmt::format("nobody reads what launch {} '{}' of {} writes", i,
                                  (*launches)[i].label,
                                  launches == &program_.init ? "init" : "steps"));
      }
    return Ok{};
  }

  Status check_arenas() {
    std::vector<BufferId> planned;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      BufferId id = static_cast<BufferId>(i);
      go_to(id);
      if (b.kind != BufferKind::temporary || b.offset < 0 || state(id).first == kNever) continue;
      int64_t arena = state(id).in_init ? program_.init_arena_bytes : program_.arena_bytes;
      if (b.offset % 64 != 0 || b.num_bytes > arena || b.offset > arena - b.num_bytes)
        return fail(fmt::format("temporary {} at {} is misaligned or outside its arena of {} bytes",
                                quote(id), b.offset, arena));
      planned.push_back(id);
    }
    std::sort(planned.begin(), planned.end(),
              [&](BufferId a, BufferId b) { return buffer(a).offset < buffer(b).offset; });
    for (size_t i = 0; i < planned.size(); ++i)
      for (size_t j = i + 1; j < planned.size(); ++j) {
        BufferId a = planned[i], b = planned[j];
        go_to(b);
        if (buffer(b).offset >= buffer(a).offset + buffer(a).num_bytes) break;
        if (conflict(a, b))
          return fail(fmt::format("temporaries {} and {} overlap while both are alive", quote(a),
                                  quote(b)));
      }
    return Ok{};
  }

  bool conflict(BufferId a, BufferId b) const {
    const State &s = state(a), &t = state(b);
    if (s.in_init != t.in_init || s.last < t.first || t.last < s.first) return false;
    bool hands_over = s.last == t.first || t.last == s.first;
    return !(hands_over && buffer(a).offset == buffer(b).offset);  // in place
  }

  const Program& program_;
  const ProgramPlaces* places_;
  std::vector<State> states_;
  Loc loc_;
  bool is_init_ = true;
  int clock_ = 0;
};

}  // namespace

Status verify(const Program& program) { return Verifier(program, nullptr).run(); }

Status verify(const Program& program, const ProgramPlaces& places) {
  return Verifier(program, &places).run();
}

}  // namespace lathe
