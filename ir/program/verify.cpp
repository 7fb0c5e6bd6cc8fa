// The verifier of programs.
//
// Checked: ids are in range; a kernel launch has one buffer per global buffer of its kernel, each
// at least as large behind its begin, which is aligned, and writes only what may be written; the
// operands of a library call lie within their buffers and fit each other; a kernel's dims have
// values; a symbol that a step binds is bound once, and no step above it needs it; persistent
// buffers are written by init and read by steps; nothing is read before it is written; every output
// is written or is an input, a constant or persistent; what is used as an input or output is one of
// the program; somebody reads what a launch writes; planned temporaries are 64-byte aligned, lie in
// their arena and do not overlap while both are alive.
// Of sizes with symbols what no size satisfies is refused, and the rest left to who binds them.
// Not checked: the kernels themselves (loop::verify), and that a launch which gets the same memory
// as operand and result (two temporaries at one offset) works in place.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "ir/loop/lift_sizes.h"
#include "ir/program/buffer_kind.h"
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
      state(id).is_written = true;
    }
    for (is_init_ = true, clock_ = 0; clock_ < static_cast<int>(program_.init.size()); ++clock_)
      LATHE_DO(check_launch(program_.init[static_cast<size_t>(clock_)]));
    for (std::string& symbol : bound_by_steps(program_)) unbound_.insert(std::move(symbol));
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
    const Dim needed = b.type.num_elements() * Dim(dtype_bytes(b.type.dtype));
    if (needed.is_too_large() || (b.type.is_static() && !b.type.static_elements()))
      return fail(fmt::format("the size of buffer {} overflows", quote(id)));
    LATHE_DO(check_symbols(needed, id));
    LATHE_DO(check_symbols(b.num_bytes, id));
    if (b.num_bytes.is_const() && b.offset > INT64_MAX - b.num_bytes.value())
      return fail(fmt::format("buffer {} lies beyond all memory", quote(id)));
    if (is_more(needed, b.num_bytes))
      return fail(fmt::format("buffer {} has {} bytes, less than its type {} needs", quote(id),
                              b.num_bytes.str(), to_string(b.type)));
    const bool is_of_steps = b.kind != BufferKind::constant && b.kind != BufferKind::weight &&
                             b.kind != BufferKind::persistent;
    if (!b.num_bytes.is_const() && !is_of_steps)
      return fail(fmt::format("{} {} has the symbolic size of {} bytes", kind_name(b.kind),
                              quote(id), b.num_bytes.str()));
    if (!b.num_bytes.is_const() && b.offset >= 0)
      return fail(fmt::format("buffer {} of symbolic size has a place", quote(id)));
    if (b.kind == BufferKind::constant && Dim(static_cast<int64_t>(b.bytes.size())) != b.num_bytes)
      return fail(fmt::format("constant {} holds {} bytes, expected {}", quote(id), b.bytes.size(),
                              b.num_bytes.str()));
    if (b.kind != BufferKind::constant && !b.bytes.empty())
      return fail(fmt::format("buffer {} holds bytes and is no constant", quote(id)));
    return Ok{};
  }

  // At every size.
  bool is_more(const Dim& a, const Dim& b) const {
    return (a - b).bounds(program_.symbols).min.value_or(0) > 0;
  }

  Status check_symbols(const Dim& size, BufferId id) const {
    const std::string unknown = unknown_symbol(size);
    if (unknown.empty()) return Ok{};
    return fail(fmt::format("buffer {} is as large as {}, and the program has no '{}'", quote(id),
                            size.str(), unknown));
  }

  // The first that the program has not, or "".
  std::string unknown_symbol(const Dim& size) const {
    std::vector<std::string> names;
    size.collect_symbols(names);
    for (const std::string& name : names)
      if (program_.symbols.count(name) == 0) return name;
    return "";
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
    LATHE_DO(check_is_bound(launch));
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
    return fail(fmt::format("copy of {} bytes to {} bytes", buffer(copy.source).num_bytes.str(),
                            buffer(copy.destination).num_bytes.str()));
  }

  Status check_kind(const LibraryLaunch& launch) const {
    const std::vector<Dim> sizes = symbolic_sizes(launch.call);
    if (is_init_ && !sizes.empty())
      return fail(fmt::format("{} in init has the symbolic size {}", routine_name(launch.call),
                              sizes.front().str()));
    for (const Dim& size : sizes)
      if (const std::string unknown = unknown_symbol(size); !unknown.empty())
        return fail(fmt::format("{} has the size {}, and the program has no '{}'",
                                routine_name(launch.call), size.str(), unknown));
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

  Status check_kind(const ShapeLaunch& shape) {
    LATHE_DO(check_id(shape.value, "a shape launch"));
    const ProgramBuffer& value = buffer(shape.value);
    if (value.type.dtype != DType::i64 || value.num_bytes != Dim(dtype_bytes(DType::i64)))
      return fail(fmt::format("a size is one number of i64, {} is {}", quote(shape.value),
                              to_string(value.type)));
    if (is_source(value.kind) || value.kind == BufferKind::persistent)
      return fail(fmt::format("a size is read from what a step or the caller writes, {} is {}",
                              quote(shape.value), kind_name(value.kind)));
    if (program_.symbols.empty()) return Ok{};  // with numbers for sizes there is nothing to bind
    if (is_init_ || program_.symbols.count(shape.symbol) == 0 || unbound_.erase(shape.symbol) == 0)
      return fail(
          fmt::format("'{}' is bound, and is no symbol that has no value yet", shape.symbol));
    return Ok{};
  }

  Status check_kind(const AssertLaunch& assertion) const {
    LATHE_DO(check_id(assertion.key, "an assert launch"));
    const ProgramBuffer& key = buffer(assertion.key);
    for (const Dim& bound : {assertion.low, assertion.high})
      if (const std::string unknown = unknown_symbol(bound); !unknown.empty())
        return fail(
            fmt::format("'{}' is asserted, and the program has no '{}'", bound.str(), unknown));
    if (key.type.dtype == DType::i64 && key.num_bytes == Dim(dtype_bytes(DType::i64)) && !is_init_)
      return Ok{};
    return fail(fmt::format("a step asserts of one number of i64, {} is {}", quote(assertion.key),
                            to_string(key.type)));
  }

  // What a launch has to know before it runs.
  Status check_is_bound(const Launch& launch) const {
    if (unbound_.empty()) return Ok{};
    std::vector<std::string> names;
    if (const auto* kernel = std::get_if<KernelLaunch>(&launch.kind))
      for (const Dim& size : kernel->sizes) size.collect_symbols(names);
    if (const auto* library = std::get_if<LibraryLaunch>(&launch.kind))
      for (const Dim& size : symbolic_sizes(library->call)) size.collect_symbols(names);
    if (const auto* assertion = std::get_if<AssertLaunch>(&launch.kind))
      for (const Dim& bound : {assertion->low, assertion->high}) bound.collect_symbols(names);
    for (BufferId id : launch.buffers()) buffer(id).num_bytes.collect_symbols(names);
    for (const std::string& name : names)
      if (unbound_.contains(name))
        return fail(
            fmt::format("'{}' needs the size '{}', which a later step binds", launch.label, name));
    return Ok{};
  }

  Status check_kind(const KernelLaunch& launch) const {
    if (launch.kernel < 0 || static_cast<size_t>(launch.kernel) >= program_.kernels.size())
      return fail(fmt::format("kernel {} does not exist, expected less than {}", launch.kernel,
                              program_.kernels.size()));
    const loop::Kernel& kernel = program_.kernels[static_cast<size_t>(launch.kernel)];
    const std::vector<loop::Var> dims = loop::dims(kernel);
    if (dims.size() != launch.sizes.size())
      return fail(fmt::format("kernel '{}' takes {} sizes, its launch has {}", kernel.name,
                              dims.size(), launch.sizes.size()));
    std::map<std::string, Dim> sizes;
    for (size_t i = 0; i < dims.size(); ++i)
      sizes.emplace(kernel.vars[dims[i].id].name, launch.sizes[i]);
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
      const Dim needs = formal.size.substitute(sizes);
      const Dim has = Dim::floor_div(buffer(id).num_bytes, dtype_bytes(formal.dtype));
      if (is_more(needs, has))
        return fail(fmt::format("kernel '{}' needs {} elements of {} for '{}', {} has {} bytes",
                                kernel.name, needs.str(), dtype_name(formal.dtype), formal.name,
                                quote(id), buffer(id).num_bytes.str()));
      if (launch.offsets.empty()) continue;
      if (launch.offsets.size() != launch.buffers.size())
        return fail(fmt::format("kernel '{}' is launched with {} buffers and {} offsets",
                                kernel.name, launch.buffers.size(), launch.offsets.size()));
      const int64_t offset = launch.offsets[count - 1];
      if (offset < 0 || is_more(Dim(offset) + needs, has) ||
          offset * dtype_bytes(formal.dtype) % kBufferAlignment != 0)
        return fail(
            fmt::format("kernel '{}' begins at element {} of {}, expected a multiple of {} bytes, "
                        "at most {}",
                        kernel.name, offset, quote(id), kBufferAlignment, (has - needs).str()));
    }
    if (count != launch.buffers.size())
      return fail(fmt::format("kernel '{}' has {} buffers, its launch {}", kernel.name, count,
                              launch.buffers.size()));
    return Ok{};
  }

  // Kinds that hold a value before the program runs, as its inputs do.
  static bool is_source(BufferKind kind) {
    return kind == BufferKind::weight || kind == BufferKind::constant;
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
    } else if (!s.is_written && !is_source(b.kind) && b.num_bytes != Dim(0)) {
      return fail(b.kind == BufferKind::input
                      ? fmt::format("buffer {} is read and no input of the program", quote(use.id))
                      : fmt::format("buffer {} is read before it is written", quote(use.id)));
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

  // By buffer; the ids exist.
  std::vector<bool> among(const std::vector<BufferId>& ids) const {
    std::vector<bool> flags(program_.buffers.size());
    for (BufferId id : ids) flags[static_cast<size_t>(id)] = true;
    return flags;
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
      bool is_empty = buffer(id).num_bytes == Dim(0);  // nothing writes it
      if (!is_source(kind) && !is_empty && !state(id).is_written)
        return fail(fmt::format("output {} is never written", quote(id)));
    }
    const std::vector<bool> is_input = among(program_.inputs), is_output = among(program_.outputs);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const auto id = static_cast<BufferId>(i);
      if (buffer(id).kind != BufferKind::output || is_output[i] || !state(id).is_written) continue;
      go_to(id);
      return fail(fmt::format("buffer {} is written and no output of the program", quote(id)));
    }
    go_to_header();
    for (const ProgramMutation& mutation : program_.mutations) {
      LATHE_DO(check_id(mutation.input, "a mutation"));
      LATHE_DO(check_id(mutation.output, "a mutation"));
      if (!is_input[static_cast<size_t>(mutation.input)] ||
          !is_output[static_cast<size_t>(mutation.output)] ||
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
    std::vector<BufferId> planned[2];  // of steps, of init
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const ProgramBuffer& b = program_.buffers[i];
      BufferId id = static_cast<BufferId>(i);
      go_to(id);
      if (b.kind != BufferKind::temporary || b.offset < 0 || state(id).first == kNever) continue;
      const int64_t bytes = b.num_bytes.value();
      int64_t arena = state(id).in_init ? program_.init_arena_bytes : program_.arena_bytes;
      if (b.offset % kBufferAlignment != 0 || bytes > arena || b.offset > arena - bytes)
        return fail(fmt::format("temporary {} at {} is misaligned or outside its arena of {} bytes",
                                quote(id), b.offset, arena));
      if (bytes > 0) planned[state(id).in_init ? 1 : 0].push_back(id);
    }
    for (std::vector<BufferId>& ids : planned) LATHE_DO(check_overlaps(std::move(ids)));
    return Ok{};
  }

  // Goes through time. Those alive at once lie apart, but for pairs at one offset of which the
  // second begins with the last use of the first; so a new one has few neighbours to look at.
  Status check_overlaps(std::vector<BufferId> ids) {
    std::stable_sort(ids.begin(), ids.end(),
                     [&](BufferId a, BufferId b) { return state(a).first < state(b).first; });
    std::multimap<int64_t, BufferId> alive;                               // by offset
    std::multimap<int, std::multimap<int64_t, BufferId>::iterator> ends;  // by last use
    for (BufferId id : ids) {
      while (!ends.empty() && ends.begin()->first < state(id).first) {
        alive.erase(ends.begin()->second);
        ends.erase(ends.begin());
      }
      const int64_t begin = buffer(id).offset, end = begin + buffer(id).num_bytes.value();
      auto other = alive.lower_bound(begin);
      if (other != alive.begin()) other = alive.lower_bound(std::prev(other)->first);
      for (; other != alive.end() && other->first < end; ++other)
        if (other->first + buffer(other->second).num_bytes.value() > begin &&
            !takes_over(id, other->second))
          return overlap(id, other->second);
      ends.emplace(state(id).last, alive.emplace(begin, id));
    }
    return Ok{};
  }

  // In place: a launch reads the one for the last time and writes the other.
  bool takes_over(BufferId id, BufferId from) const {
    return buffer(id).offset == buffer(from).offset && state(from).last == state(id).first &&
           state(from).first < state(id).first;
  }

  Diag overlap(BufferId a, BufferId b) {
    if (std::pair(buffer(b).offset, b) < std::pair(buffer(a).offset, a)) std::swap(a, b);
    go_to(b);
    return fail(
        fmt::format("temporaries {} and {} overlap while both are alive", quote(a), quote(b)));
  }

  const Program& program_;
  const ProgramPlaces* places_;
  std::vector<State> states_;
  std::set<std::string> unbound_;  // symbols that later steps bind
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
