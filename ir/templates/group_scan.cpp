// Running totals where threads share a vector: see scan.h.
//
// A chain is one thread's where lines lie side by side or are short (thread_scan.cpp). Otherwise it
// is a group's, in chunks: each thread makes the totals of a few neighbours, and the group those of
// its threads, each of twice as many in every step. Neighbours are read and written as one vector,
// through memory of the group in which each thread finds its own.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/scan_chains.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kMostThreads = 256;      // of a group
constexpr int64_t kShortLine = 64;         // one thread's
constexpr int64_t kManyLines = 4096;       // side by side: more threads would wait for memory
constexpr int64_t kGroupPart = 2048;       // whole chunks, whatever a thread's neighbours are
constexpr int64_t kFewestGroupParts = 4;   // fewer do not pay for a second launch
constexpr int64_t kThreadPart = 16;        // whole vectors of elements under way at once
constexpr int64_t kFewestThreadParts = 8;  // fewer do not pay for reading twice what is read well
constexpr int64_t kFewColumns = 32;        // whose threads would read less than a line of memory
constexpr int64_t kFillings = 4;           // of the machine, before all its threads are busy

int64_t most_of(const Dim& size, const loop::Kernel& kernel) {
  return size.bounds(kernel.symbols).max.value_or(INT64_MAX);
}

// Whether neighbours along the variable are neighbours in memory.
bool rises_by_one(Expr index, Var var) {
  const loop::Linear form = loop::linear(index);
  for (const auto& [atom, coefficient] : form.terms)
    if (!std::holds_alternative<loop::VarRead>(atom->kind) && loop::depends_on(atom, var))
      return false;
  return form.coefficient(var) == 1;
}

class GroupScan : ScanChains {
 public:
  GroupScan(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts* parts,
            const Target& target)
      : ScanChains(kernel, spec, parts) {
    at_ = add_let("at", spec.length);
    element_ = spec.element(line_, pool_.var(at_));
    int64_t narrowest = 8;
    for (const loop::Buffer& buffer : kernel.buffers)
      narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
    neighbours_ = target.lanes_per_thread(narrowest);
    threads_ = std::min<int64_t>(target.groups->most, kMostThreads);
    while (threads_ > target.groups->warp &&
           threads_ / 2 * neighbours_ >= most_of(spec.length, kernel))
      threads_ /= 2;
    const int64_t chunk = threads_ * neighbours_;
    is_even_ = spec.length.is_const() && spec.length.value() % chunk == 0 &&
               (!parts || parts->length % chunk == 0);
  }

  void build(ScanMakes makes) {
    const Var group = kernel_.add_loop_var("group", num_chains());
    thread_ = kernel_.add_loop_var("thread", threads_);
    Block body, own;
    place(body, pool_.var(group), false);
    for (DType dtype : spec_.total.dtypes) shared_.push_back(share("totals", dtype, 2 * threads_));
    makes == ScanMakes::results ? emit_results(own) : emit_total(own);
    body.push_back({For{thread_, pool_.integer(0), pool_.integer(threads_), 1, LoopKind::thread,
                        std::move(own)}});
    kernel_.body.push_back({For{group, pool_.integer(0), pool_.size(num_chains()), 1,
                                LoopKind::parallel, std::move(body)}});
  }

 private:
  loop::BufferRef share(const char* name, DType dtype, int64_t size) {
    return kernel_.add_buffer({name, dtype, size, loop::Space::shared, true});
  }

  void emit_total(Block& block) {
    const Combine mingle = spec_.total.mingle ? spec_.total.mingle : spec_.total.combine;
    const Totals total = declare(block, numbers(spec_.total.nothing));
    emit_chunks(block, [&](Block& chunk) {
      for (const Total& own : read_neighbours(chunk))
        set(chunk, total, named(chunk, mingle(read(total), own)));
    });
    emit_totals(block, total, mingle);
    Block first;
    store_total(first, load(pool_.integer(threads_ - 1)));
    append_if(block, loop::eq(pool_.var(thread_), pool_.integer(0)), std::move(first));
  }

  void emit_results(Block& block) {
    const Totals total = declare(block, numbers(spec_.total.start));
    if (parts_) {
      set(block, total, total_before(block));
      block.push_back({loop::Barrier{}});
    }
    emit_chunks(block, [&](Block& chunk) {
      std::vector<Total> own = read_neighbours(chunk);
      for (size_t i = 1; i < own.size(); ++i)
        own[i] = named(chunk, spec_.total.combine(own[i - 1], own[i]));
      emit_totals(chunk, declare(chunk, own.back()), spec_.total.combine);
      const Expr thread = pool_.var(thread_);
      const Total own_before =
          named(chunk, load(loop::max(thread - pool_.integer(1), pool_.integer(0))));
      const Total before =
          named(chunk, select(loop::lt(pool_.integer(0), thread),
                              spec_.total.combine(read(total), own_before), read(total)));
      for (Total& result : own) result = named(chunk, spec_.total.combine(before, result));
      write_neighbours(chunk, own);
      set(chunk, total,
          named(chunk, spec_.total.combine(read(total), load(pool_.integer(threads_ - 1)))));
      chunk.push_back({loop::Barrier{}});  // all have read what the next chunk writes
    });
  }

  // A loop over the chain's chunks; at_ is the first of the thread's neighbours.
  template <class F>
  void emit_chunks(Block& block, F&& body) {
    const Var base = kernel_.add_loop_var("t", spec_.length);
    Block chunk;
    chunk.push_back({loop::Let{at_, pool_.var(base) + slot(0)}});
    body(chunk);
    block.push_back(
        {For{base, first_, end_, threads_ * neighbours_, LoopKind::serial, std::move(chunk)}});
  }

  Expr neighbour(int64_t i) { return pool_.var(at_) + pool_.integer(i); }
  // Its place in memory of the group.
  Expr slot(int64_t i) {
    return pool_.var(thread_) * pool_.integer(neighbours_) + pool_.integer(i);
  }
  // Whether it is in the chain; null where all are.
  Expr is_inside(int64_t i) { return is_even_ ? Expr() : loop::lt(neighbour(i), end_); }

  // `access` of all neighbours, or of those that are inside.
  template <class F>
  void emit_vectors(Block& block, F&& access) {
    const int lanes = static_cast<int>(neighbours_);
    Block whole = access({at_, lanes});
    if (is_even_) return append_if(block, Expr(), std::move(whole));
    Block rest = access(
        {at_, lanes, loop::lt(pool_.ramp(pool_.var(at_), 1, lanes), loop::splat(end_, lanes))});
    block.push_back(
        {loop::If{loop::le(neighbour(neighbours_), end_), std::move(whole), std::move(rest)}});
  }

  std::vector<Total> read_neighbours(Block& chunk) {
    staged_ = share("elements", element_->dtype, threads_ * neighbours_);
    emit_vectors(chunk, [&](const loop::VectorAxis& axis) {
      Block read;
      read.push_back({loop::Store{staged_, slot(0), loop::vectorize(element_, axis), {}, false}});
      return read;
    });
    std::vector<Total> neighbours;
    for (int64_t i = 0; i < neighbours_; ++i) {
      const Expr element = named(chunk, pool_.load(staged_, slot(i), element_->dtype));
      Total own = spec_.own(element, neighbour(i));
      if (!is_even_) own = select(is_inside(i), own, numbers(spec_.total.nothing));
      neighbours.push_back(named(chunk, own));
    }
    return neighbours;
  }

  void write_neighbours(Block& chunk, const std::vector<Total>& totals) {
    const ResultElement first = spec_.result(line_, pool_.var(at_), totals[0]);
    const DType dtype = first.value->dtype;
    const loop::BufferRef staged =
        dtype == element_->dtype ? staged_ : share("results", dtype, threads_ * neighbours_);
    for (int64_t i = 0; i < neighbours_; ++i) {
      const Expr value = spec_.result(line_, neighbour(i), totals[static_cast<size_t>(i)]).value;
      Block write;
      write.push_back({loop::Store{staged, slot(i), value, {}, false}});
      append_if(chunk, is_inside(i), std::move(write));
    }
    emit_vectors(chunk, [&](const loop::VectorAxis& axis) {
      Block write;
      const Expr index =
          rises_by_one(first.index, at_) ? first.index : loop::vectorize(first.index, axis);
      write.push_back({loop::Store{
          first.buffer, index, pool_.load(staged, slot(0), dtype, axis.lanes), axis.mask, false}});
      return write;
    });
  }

  // The total of all earlier parts: each thread adds some that follow each other.
  Total total_before(Block& block) {
    const int64_t run = ceil_div(parts_->count - 1, threads_);
    const auto part = [&](int64_t i) {
      return pool_.var(thread_) * pool_.integer(run) + pool_.integer(i);
    };
    std::vector<Total> found;
    for (int64_t i = 0; i < run; ++i)
      found.push_back(load_total(block, loop::min(part(i), pool_.integer(parts_->count - 1))));
    const Totals sum = declare(block, numbers(spec_.total.nothing));
    for (int64_t i = 0; i < run; ++i) {
      Block add;
      set(add, sum, named(add, spec_.total.combine(read(sum), found[static_cast<size_t>(i)])));
      append_if(block, loop::lt(part(i), part_), std::move(add));
    }
    emit_totals(block, sum, spec_.total.combine);
    return named(block, load(pool_.integer(threads_ - 1)));
  }

  // From the threads' own totals those of all threads up to each one, which load() then finds.
  // Each step of twice as many writes what the next one reads beside what others still read.
  void emit_totals(Block& block, const Totals& sum, const Combine& combine) {
    int64_t steps = 0;
    while (int64_t{1} << steps < threads_) ++steps;
    const Expr thread = pool_.var(thread_), zero = pool_.integer(0);
    const Var var = kernel_.add_loop_var("step", steps);
    const auto side = [&](Expr step) {
      return loop::mod(step + pool_.integer(steps), pool_.integer(2)) * pool_.integer(threads_);
    };
    Block step;
    const Expr own_side = named(step, side(pool_.var(var)));
    const Expr by =
        named(step, loop::binary(loop::BinaryOp::shift_left, pool_.integer(1), pool_.var(var)));
    publish(step, own_side, read(sum));
    const Total before = named(step, load(own_side + loop::max(thread - by, zero)));
    set(step, sum,
        named(step, select(loop::le(by, thread), combine(before, read(sum)), read(sum))));
    block.push_back({For{var, zero, pool_.integer(steps), 1, LoopKind::serial, std::move(step)}});
    publish(block, zero, read(sum));
  }

  void publish(Block& block, Expr side, const Total& total) {
    for (size_t p = 0; p < num_parts(); ++p)
      block.push_back({loop::Store{shared_[p], side + pool_.var(thread_), total[p], {}, false}});
    block.push_back({loop::Barrier{}});
  }

  Total load(Expr at) {
    Total total;
    for (size_t p = 0; p < num_parts(); ++p)
      total.push_back(pool_.load(shared_[p], at, spec_.total.dtypes[p]));
    return total;
  }

  int64_t threads_ = 1, neighbours_ = 1;  // of a group, of a thread
  bool is_even_ = false;                  // chunks are whole
  Var thread_ = {};                       // the loop over a group
  Var at_ = {};                           // the first of a thread's neighbours
  Expr element_ = {};                     // there
  loop::BufferRef staged_ = {};           // elements as each thread reads them
  std::vector<loop::BufferRef> shared_;   // totals of threads by part, on two sides
};

bool is_one_threads(const loop::Kernel& kernel, const ScanSpec& spec) {
  Dim lines = 1;
  for (const Dim& extent : spec.lines) lines = lines * extent;
  const bool has_many = !lines.is_const() || lines.value() >= kManyLines;
  return most_of(spec.length, kernel) <= kShortLine || (spec.has_lanes && has_many);
}

}  // namespace

std::optional<ScanParts> split_lines(const ScanSpec& spec, const Target& target) {
  ScanParts parts;
  for (const Dim& extent : spec.lines) {
    if (!extent.is_const()) return std::nullopt;
    parts.lines *= extent.value();
  }
  if (!spec.length.is_const() || parts.lines == 0) return std::nullopt;
  const int64_t length = spec.length.value();
  parts.has_columns = spec.has_lanes && spec.lines.back().value() >= kFewColumns;
  int64_t most = kFillings * target.groups->filling / parts.lines;
  if (parts.has_columns)  // each adds up those before it
    most = std::min(most, static_cast<int64_t>(std::sqrt(2 * static_cast<double>(length))));
  else
    most /= std::min<int64_t>(target.groups->most, kMostThreads);
  const int64_t fewest = parts.has_columns ? kFewestThreadParts : kFewestGroupParts;
  if (most < fewest) return std::nullopt;
  const int64_t unit = parts.has_columns ? kThreadPart : kGroupPart;
  parts.length = ceil_div(ceil_div(length, most), unit) * unit;
  parts.count = ceil_div(length, parts.length);
  return parts.count < fewest ? std::nullopt : std::optional(parts);
}

void build_group_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target) {
  if (is_one_threads(kernel, spec))
    build_thread_scan(kernel, spec, nullptr, ScanMakes::results);
  else
    GroupScan(kernel, spec, nullptr, target).build(ScanMakes::results);
}

void build_part_scan(loop::Kernel& kernel, const ScanSpec& spec, const ScanParts& parts,
                     ScanMakes makes, const Target& target) {
  if (parts.has_columns)
    build_thread_scan(kernel, spec, &parts, makes);
  else
    GroupScan(kernel, spec, &parts, target).build(makes);
}

}  // namespace lathe
