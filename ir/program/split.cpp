// Cuts behind steps that bind sizes: see split.h.
#include "ir/program/split.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "ir/program/arena.h"
#include "ir/program/tidy.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// By buffer, the first and the last piece whose steps have it, and the first that writes it.
struct Span {
  int first = -1, last = -1, written = -1;
};

class Splitter {
 public:
  explicit Splitter(const Program& program)
      : program_(program), spans_(program.buffers.size()), ends_{0} {
    const std::vector<std::string> bound = bound_by_steps(program);
    unbound_.insert(bound.begin(), bound.end());
    for (size_t i = 0; i < program.steps.size(); ++i)
      if (std::holds_alternative<ShapeLaunch>(program.steps[i].kind)) ends_.push_back(i + 1);
    ends_.push_back(program.steps.size());
    for (size_t k = 0; k + 1 < ends_.size(); ++k)
      for (size_t i = ends_[k]; i < ends_[k + 1]; ++i) note(program.steps[i], static_cast<int>(k));
    // The caller's inputs and what lasts are there before, outputs are asked for behind all.
    for (BufferId id : program.outputs) span(id).last = static_cast<int>(ends_.size()) - 2;
  }

  std::vector<Piece> run() {
    std::vector<Piece> pieces;
    for (size_t k = 0; k + 1 < ends_.size(); ++k) {
      pieces.push_back(piece(static_cast<int>(k)));
      unbound_.erase(pieces.back().symbol);
    }
    return pieces;
  }

 private:
  Span& span(BufferId id) { return spans_[static_cast<size_t>(id)]; }
  BufferKind kind(BufferId id) const { return program_.buffers[static_cast<size_t>(id)].kind; }

  void note(const Launch& step, int k) {
    for (const BufferUse& use : uses(program_, step)) {
      Span& own = span(use.id);
      if (own.first < 0) own.first = k;
      own.last = std::max(own.last, k);
      if (use.is_written && own.written < 0) own.written = k;
    }
  }

  bool is_known(const Guard& guard) const {
    std::vector<std::string> names;
    guard.left.collect_symbols(names);
    guard.right.collect_symbols(names);
    return std::none_of(names.begin(), names.end(),
                        [&](const std::string& name) { return unbound_.contains(name); });
  }

  Piece piece(int k) {
    const size_t begin = ends_[static_cast<size_t>(k)], end = ends_[static_cast<size_t>(k) + 1];
    Piece made;
    Program& own = made.program;
    own = program_;
    own.steps.clear();
    own.mutations.clear();
    own.inputs.clear();
    own.outputs.clear();
    for (const auto& name : unbound_) own.symbols.erase(name), own.hints.erase(name);
    std::erase_if(own.guards, [&](const Guard& guard) { return !is_known(guard); });
    for (size_t i = begin; i < end; ++i) {
      const auto* shape = std::get_if<ShapeLaunch>(&program_.steps[i].kind);
      if (shape != nullptr) {
        made.symbol = shape->symbol;
        made.value = shape->value;
        if (!program_.steps[i].origins.empty()) made.loc = program_.steps[i].origins.front();
        continue;
      }
      own.steps.push_back(program_.steps[i]);
      made.steps.push_back(static_cast<int>(i));
    }
    add_ports(k, made);
    settle(own);
    return made;
  }

  // What comes from before and what others want of the piece.
  void add_ports(int k, Piece& made) {
    Program& own = made.program;
    std::set<BufferId> read, written;
    for (const Launch& step : own.steps)
      for (const BufferUse& use : uses(program_, step))
        (use.is_written ? written : read).insert(use.id);
    const bool is_last = made.symbol.empty();
    const auto give = [&](BufferId id) {
      own.outputs.push_back(id);
      made.outputs.push_back(id);
    };
    const auto take = [&](BufferId in, BufferId of) {
      own.inputs.push_back(in);
      made.inputs.push_back(of);
    };
    std::set<BufferId> given;
    if (is_last)
      for (BufferId id : program_.outputs)
        if (span(id).written < 0) given.insert(id);  // an input, or made once
    for (BufferId id : written)
      if (span(id).last > k || kind(id) == BufferKind::output || id == made.value) given.insert(id);
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const auto id = static_cast<BufferId>(i);
      const bool is_before = span(id).written >= 0 && span(id).written < k;
      const bool is_written = written.count(id) != 0;
      if (kind(id) == BufferKind::input && (read.count(id) != 0 || given.count(id) != 0)) {
        take(id, id);
      } else if (is_before && is_written) {
        write_on(made, id);
      } else if (is_before && read.count(id) != 0) {
        own.buffers[i].kind = BufferKind::input;
        take(id, id);
      }
      if (given.count(id) == 0) continue;
      if (is_written) own.buffers[i].kind = BufferKind::output;
      give(id);
    }
  }

  // What an earlier piece wrote is copied first.
  static void write_on(Piece& made, BufferId id) {
    Program& own = made.program;
    ProgramBuffer before = own.buffers[static_cast<size_t>(id)];
    before.kind = BufferKind::input;
    const auto in = static_cast<BufferId>(own.buffers.size());
    Launch copy;
    copy.label = "copy " + before.name;
    copy.bytes = Dim(2) * before.num_bytes;
    copy.kind = CopyLaunch{in, id};
    own.buffers.push_back(std::move(before));
    own.inputs.push_back(in);
    made.inputs.push_back(id);
    own.steps.insert(own.steps.begin(), std::move(copy));
    made.steps.insert(made.steps.begin(), -1);
  }

  // As a program of its own.
  static void settle(Program& own) {
    drop_unread(own);
    std::set<BufferId> lasting(own.outputs.begin(), own.outputs.end());
    for (const Launch& step : own.steps)
      for (BufferId id : step.buffers()) lasting.insert(id);
    for (size_t i = 0; i < own.buffers.size(); ++i) {
      ProgramBuffer& buffer = own.buffers[i];
      if (buffer.kind == BufferKind::persistent && lasting.count(static_cast<BufferId>(i)) == 0)
        buffer.kind = BufferKind::temporary;
    }
    plan(own, own.init, own.init_arena_bytes);
    if (own.symbols.empty()) plan(own, own.steps, own.arena_bytes);
  }

  static void plan(Program& own, const std::vector<Launch>& launches, int64_t& arena_bytes) {
    std::vector<Lifetime> lives = lifetimes(own, launches);
    for (Lifetime& life : lives)
      life.bytes = aligned(own.buffers[static_cast<size_t>(life.id)].num_bytes.value());
    arena_bytes = place(lives);
    for (const Lifetime& life : lives)
      own.buffers[static_cast<size_t>(life.id)].offset = life.offset;
  }

  const Program& program_;
  std::vector<Span> spans_;
  std::vector<size_t> ends_;       // where pieces begin, and the end of the last
  std::set<std::string> unbound_;  // before the piece that comes next
};

}  // namespace

std::vector<Piece> split(const Program& program) { return Splitter(program).run(); }

Status check_is_one_piece(const Program& program) {
  for (const Launch& step : program.steps) {
    const auto* shape = std::get_if<ShapeLaunch>(&step.kind);
    if (shape == nullptr) continue;
    return Diag{code::kUnsupported, step.origins.empty() ? Loc::unknown() : step.origins.front(),
                fmt::format("elements decide the size '{}', which a host has to read in the middle "
                            "of a run: lathe run, lathe.load and liblathe.so do, packages and "
                            "pages do not",
                            shape->symbol)};
  }
  return Ok{};
}

}  // namespace lathe
