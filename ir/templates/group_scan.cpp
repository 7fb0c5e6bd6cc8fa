// Running totals where threads share a vector: see scan.h.
//
// A line is one thread's where lines lie side by side or are short. Otherwise it is a group's, in
// chunks: each thread makes the totals of a few neighbours, and the group those of its threads,
// each of twice as many in every step.
#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/scan.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kNeighbours = 4;     // of a line, that a thread takes at once
constexpr int64_t kShortLine = 64;     // one thread's
constexpr int64_t kLineThreads = 128;  // of a group whose threads have a line each
constexpr int64_t kManyLines = 4096;   // side by side: more threads would wait for memory

class GroupScan {
 public:
  GroupScan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec) {
    for (const Dim& extent : spec.lines) count_ = count_ * extent;
    const auto most = [&](const Dim& size) {
      return size.bounds(kernel.symbols).max.value_or(INT64_MAX);
    };
    const bool has_many = !count_.is_const() || count_.value() >= kManyLines;
    is_alone_ = most(spec.length) <= kShortLine || (spec.has_lanes && has_many);
    threads_ = is_alone_ ? kLineThreads : std::min(target.groups->most, 256);
    while (!is_alone_ && threads_ > target.groups->warp &&
           threads_ / 2 * kNeighbours >= most(spec.length))
      threads_ /= 2;
  }

  void build() {
    const Dim groups = is_alone_ ? ceil_div(count_, threads_) : count_;
    const Var group = kernel_.add_loop_var("group", groups);
    thread_ = kernel_.add_loop_var("thread", threads_);
    Block body, own;
    if (is_alone_) {
      const Expr chain = pool_.var(group) * pool_.integer(threads_) + pool_.var(thread_);
      Block line;
      place_line(line, let(line, loop::min(chain, pool_.size(count_ - Dim(1))), count_));
      emit_alone(line);
      own.push_back({loop::If{loop::lt(chain, pool_.size(count_)), std::move(line), {}}});
    } else {
      place_line(body, pool_.var(group));
      emit_shared(own);
    }
    body.push_back({For{thread_, pool_.integer(0), pool_.integer(threads_), 1, LoopKind::thread,
                        std::move(own)}});
    kernel_.body.push_back(
        {For{group, pool_.integer(0), pool_.size(groups), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  Expr let(Block& block, Expr value, const Dim& extent) {
    const Var var = kernel_.add_loop_var("line", extent);
    kernel_.vars[var.id].kind = loop::VarKind::let;
    block.push_back({loop::Let{var, value}});
    return pool_.var(var);
  }

  void place_line(Block& block, Expr chain) {
    line_.resize(spec_.lines.size());
    for (size_t i = line_.size(); i-- > 0;) {
      const Expr extent = pool_.size(spec_.lines[i]);
      line_[i] = let(block, i == 0 ? chain : loop::mod(chain, extent), spec_.lines[i]);
      chain = loop::floor_div(chain, extent);
    }
  }

  size_t num_parts() const { return spec_.total.dtypes.size(); }

  Total numbers(const std::vector<double>& values) {
    Total total;
    for (size_t p = 0; p < num_parts(); ++p)
      total.push_back(pool_.number(values[p], spec_.total.dtypes[p]));
    return total;
  }

  std::vector<loop::RegArray> declare(Block& block, const char* name, int64_t count) {
    std::vector<loop::RegArray> regs;
    for (size_t p = 0; p < num_parts(); ++p) {
      regs.push_back(kernel_.add_regs({name, spec_.total.dtypes[p], 1, {count}}));
      block.push_back({loop::DeclareRegs{regs.back()}});
    }
    return regs;
  }

  Total read(const std::vector<loop::RegArray>& regs, int64_t i = 0) {
    Total total;
    for (size_t p = 0; p < num_parts(); ++p)
      total.push_back(pool_.reg(regs[p], {pool_.integer(i)}, spec_.total.dtypes[p]));
    return total;
  }

  void set(Block& block, const std::vector<loop::RegArray>& regs, int64_t i, const Total& total) {
    for (size_t p = 0; p < num_parts(); ++p)
      block.push_back({loop::SetReg{regs[p], {pool_.integer(i)}, total[p]}});
  }

  // Each part is made of all others: they get names before one is replaced.
  Total named(Block& block, Total total) {
    for (Expr& part : total) {
      const Var var =
          kernel_.add_var({"sum", loop::VarKind::let, part->dtype, 1, INT64_MIN, INT64_MAX});
      block.push_back({loop::Let{var, part}});
      part = pool_.var(var, part->dtype);
    }
    return total;
  }

  static Total select(Expr condition, const Total& if_true, const Total& if_false) {
    Total total;
    for (size_t p = 0; p < if_true.size(); ++p)
      total.push_back(loop::select(condition, if_true[p], if_false[p]));
    return total;
  }

  void store(Block& block, Expr at, const Total& total) {
    const ResultElement result = spec_.result(line_, at, total);
    block.push_back({loop::Store{result.buffer, result.index, result.value, {}, false}});
  }

  void emit_alone(Block& block) {
    const std::vector<loop::RegArray> total = declare(block, "total", 1);
    set(block, total, 0, numbers(spec_.total.start));
    const Var at = kernel_.add_loop_var("t", spec_.length);
    Block step;
    const Total own = named(step, spec_.input(line_, pool_.var(at)));
    set(step, total, 0, named(step, spec_.total.combine(read(total), own)));
    store(step, pool_.var(at), read(total));
    block.push_back({For{at, pool_.integer(0), pool_.size(spec_.length), 1, LoopKind::serial,
                         std::move(step)}});
  }

  void emit_shared(Block& block) {
    for (std::vector<loop::BufferRef>& side : shared_)
      for (size_t p = 0; p < num_parts(); ++p)
        side.push_back(kernel_.add_buffer(
            {"totals", spec_.total.dtypes[p], threads_, loop::Space::shared, true}));
    const std::vector<loop::RegArray> total = declare(block, "total", 1);
    set(block, total, 0, numbers(spec_.total.start));
    const Var base = kernel_.add_loop_var("t", spec_.length);
    Block chunk;
    emit_chunk(chunk, pool_.var(base), total);
    block.push_back({For{base, pool_.integer(0), pool_.size(spec_.length), threads_ * kNeighbours,
                         LoopKind::serial, std::move(chunk)}});
  }

  // `total` is that of all chunks before, and then has this one's.
  void emit_chunk(Block& chunk, Expr base, const std::vector<loop::RegArray>& total) {
    const Expr thread = pool_.var(thread_), length = pool_.size(spec_.length);
    const std::vector<loop::RegArray> own = declare(chunk, "own", kNeighbours);
    const std::vector<loop::RegArray> sum = declare(chunk, "sum", 1);
    std::vector<Expr> places;
    for (int64_t i = 0; i < kNeighbours; ++i) {
      const Expr at = base + thread * pool_.integer(kNeighbours) + pool_.integer(i);
      places.push_back(at);
      const Expr within = loop::min(at, pool_.size(spec_.length - Dim(1)));
      Total x = named(chunk, select(loop::lt(at, length), spec_.input(line_, within),
                                    numbers(spec_.total.nothing)));
      if (i > 0) x = named(chunk, spec_.total.combine(read(own, i - 1), x));
      set(chunk, own, i, x);
    }
    set(chunk, sum, 0, read(own, kNeighbours - 1));
    size_t side = 0;
    for (int64_t by = 1; by < threads_; by *= 2, side = 1 - side) {
      share(chunk, side, read(sum));
      const Total before =
          named(chunk, load(side, loop::max(thread - pool_.integer(by), pool_.integer(0))));
      set(chunk, sum, 0,
          named(chunk, select(loop::le(pool_.integer(by), thread),
                              spec_.total.combine(before, read(sum)), read(sum))));
    }
    share(chunk, side, read(sum));
    const Total own_before =
        named(chunk, load(side, loop::max(thread - pool_.integer(1), pool_.integer(0))));
    const Total before =
        named(chunk, select(loop::lt(pool_.integer(0), thread),
                            spec_.total.combine(read(total), own_before), read(total)));
    for (int64_t i = 0; i < kNeighbours; ++i) {
      const Expr at = places[static_cast<size_t>(i)];
      Block inside;
      store(inside, at, named(inside, spec_.total.combine(before, read(own, i))));
      chunk.push_back({loop::If{loop::lt(at, length), std::move(inside), {}}});
    }
    const Total all = load(side, pool_.integer(threads_ - 1));
    set(chunk, total, 0, named(chunk, spec_.total.combine(read(total), all)));
    chunk.push_back({loop::Barrier{}});  // all have read what the next chunk writes
  }

  void share(Block& block, size_t side, const Total& total) {
    for (size_t p = 0; p < num_parts(); ++p)
      block.push_back({loop::Store{shared_[side][p], pool_.var(thread_), total[p], {}, false}});
    block.push_back({loop::Barrier{}});
  }

  Total load(size_t side, Expr at) {
    Total total;
    for (size_t p = 0; p < num_parts(); ++p)
      total.push_back(pool_.load(shared_[side][p], at, spec_.total.dtypes[p]));
    return total;
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ScanSpec& spec_;
  Dim count_ = 1;                           // of lines
  bool is_alone_ = false;                   // a line is one thread's
  int64_t threads_ = 1;                     // of a group
  Var thread_ = {};                         // its loop
  std::vector<Expr> line_;                  // the index of the line
  std::vector<loop::BufferRef> shared_[2];  // by part; steps read one and write the other
};

}  // namespace

void build_group_scan(loop::Kernel& kernel, const ScanSpec& spec, const Target& target) {
  GroupScan(kernel, spec, target).build();
}

}  // namespace lathe
