// The register tile: see register_tile.h.
#include "ir/templates/register_tile.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::SetReg;
using loop::Var;

// Products that one accumulator adds up: longer than any that a tuned model has, short enough for
// the digits that their sum keeps.
constexpr int64_t kLongestBlock = 8192;
// The same of 3, 5 or 7 steps at once.
constexpr int64_t kOddBlock = 8190;
constexpr int64_t kStep = 4;  // steps at once of a size of them

class Tile {
 public:
  Tile(loop::Kernel& kernel, const RegisterTileSpec& spec)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        acc_(kernel.add_regs({"acc", spec.dtype, spec.lanes, {spec.rows, spec.vectors}})),
        factor_(spec.is_paired ? DType::i32 : spec.dtype),
        b_(kernel.add_regs({"b", factor_, spec.lanes, {spec.vectors}})),
        a_(kernel.add_regs({"a", factor_, spec.lanes, {}})) {}

  void emit(Block& block) {
    for (loop::RegArray array : {acc_, b_, a_}) block.push_back({loop::DeclareRegs{array}});
    if (spec_.k_extents.front().is_const())
      emit_sums(block);
    else
      emit_sized_sums(block);
    if (spec_.roll_epilogue) {
      emit_rolled_epilogue(block);
    } else {
      for_each_sum(block,
                   [&](Block& inside, Expr i, Expr j) { spec_.epilogue(inside, i, j, sum(i, j)); });
    }
  }

 private:
  void emit_sums(Block& block) {
    const auto [extent, step] = steps_of(0);
    int64_t inner = 1;
    for (size_t i = 1; i < spec_.k_extents.size(); ++i) inner *= spec_.k_extents[i].value();
    const int64_t steps = kLongestBlock / std::max<int64_t>(inner, 1) / step;
    const int64_t in_block = std::max<int64_t>(steps, 1) * step;
    if (extent <= in_block) {
      emit_zeros(block, acc_);
      emit_reduction(block, 0, {}, pool_.integer(0), end(extent));
    } else {
      emit_blocks(block, extent, in_block);
    }
    if (spec_.k_vars.size() == 1) emit_rest(block, {});
  }

  // --- of a size of steps: the sums that a number of as many steps would give

  void emit_sized_sums(Block& block) {
    const Dim& extent = spec_.k_extents.front();
    const Expr end = spec_.k_end ? spec_.k_end : pool_.size(extent);
    const Expr whole = loop::floor_div(end, pool_.integer(kStep)) * pool_.integer(kStep);
    Block few;
    emit_zeros(few, acc_);
    emit_reduction(few, 0, {}, pool_.integer(0), whole);
    emit_steps(few, whole, end);
    if (extent.bounds(kernel_.symbols).max.value_or(INT64_MAX) <= kLongestBlock) {
      for (loop::Stmt& stmt : few) block.push_back(std::move(stmt));
      return;
    }
    Block many;
    emit_sized_blocks(many, pool_.size(extent), end);
    const Expr is_few = loop::le(pool_.size(extent), pool_.integer(kLongestBlock));
    block.push_back({loop::If{is_few, std::move(few), std::move(many)}});
  }

  // One by one: longer than most models are. Blocks are as long as the steps of reduction_unroll
  // make them, and what those leave comes behind all blocks.
  void emit_sized_blocks(Block& block, Expr extent, Expr end) {
    const auto is_multiple = [&](int64_t factor) {
      return loop::eq(loop::mod(extent, pool_.integer(factor)), pool_.integer(0));
    };
    Expr in_block = pool_.integer(kLongestBlock), blocks_end = end;
    if (!spec_.k_end) {
      const Expr is_odd_step =
          loop::logical_or(is_multiple(3), loop::logical_or(is_multiple(5), is_multiple(7)));
      const Expr has_step = loop::logical_or(is_multiple(2), is_odd_step);
      in_block = loop::select(loop::logical_or(is_multiple(kStep), loop::logical_not(is_odd_step)),
                              in_block, pool_.integer(kOddBlock));
      blocks_end = loop::select(has_step, end, end - loop::mod(end, pool_.integer(kStep)));
    }
    const loop::RegArray sums = sums_of_blocks(block);
    const Var var = kernel_.add_loop_var("block", INT64_MAX);
    const Expr begin = pool_.var(var) * in_block;
    Block inside;
    emit_zeros(inside, acc_);
    emit_steps(inside, begin, loop::min(begin + in_block, blocks_end));
    add_to(sums, inside);
    const Expr count = loop::floor_div(blocks_end + in_block - pool_.integer(1), in_block);
    block.push_back({For{var, pool_.integer(0), count, 1, LoopKind::serial, std::move(inside)}});
    for_each_sum(block, [&](Block& each, Expr i, Expr j) {
      each.push_back({SetReg{acc_, {i, j}, pool_.reg(sums, {i, j}, spec_.dtype, spec_.lanes)}});
    });
    emit_steps(block, blocks_end, end);
  }

  void emit_steps(Block& block, Expr lo, Expr hi) {
    const Var var = kernel_.add_loop_var("k", spec_.k_extents.front());
    Block inside;
    emit_step(inside, {pool_.var(var)});
    block.push_back({For{var, lo, hi, 1, LoopKind::serial, std::move(inside)}});
  }

  loop::RegArray sums_of_blocks(Block& block) {
    const loop::RegArray sums =
        kernel_.add_regs({"sum", spec_.dtype, spec_.lanes, {spec_.rows, spec_.vectors}});
    block.push_back({loop::DeclareRegs{sums}});
    emit_zeros(block, sums);
    return sums;
  }

  void add_to(loop::RegArray sums, Block& block) {
    for_each_sum(block, [&](Block& each, Expr i, Expr j) {
      const Expr total = pool_.reg(sums, {i, j}, spec_.dtype, spec_.lanes);
      each.push_back({SetReg{sums, {i, j}, total + sum(i, j)}});
    });
  }

  // --- of a number of steps

  // The first reduction loop in blocks whose sums are added up: see accumulate.h.
  void emit_blocks(Block& block, int64_t extent, int64_t in_block) {
    const loop::RegArray sums = sums_of_blocks(block);
    const Var var = kernel_.add_var({"block", loop::VarKind::loop, DType::i64, 1, 0, extent - 1});
    const Expr begin = pool_.var(var);
    Block inside;
    emit_zeros(inside, acc_);
    emit_reduction(inside, 0, {}, begin, loop::min(begin + pool_.integer(in_block), end(extent)));
    add_to(sums, inside);
    block.push_back(
        {For{var, pool_.integer(0), end(extent), in_block, LoopKind::serial, std::move(inside)}});
    acc_ = sums;
  }

  void emit_zeros(Block& block, loop::RegArray array) {
    for_each_sum(block, [&](Block& inside, Expr i, Expr j) {
      inside.push_back(
          {SetReg{array, {i, j}, loop::splat(pool_.number(0, spec_.dtype), spec_.lanes)}});
    });
  }

  template <class F>
  void for_each_sum(Block& block, F&& fill) {
    unroll(block, "i", spec_.rows, [&](Block& rows, Expr i) {
      unroll(rows, "j", spec_.vectors, [&](Block& inside, Expr j) { fill(inside, i, j); });
    });
  }

  Expr end(int64_t extent) const { return spec_.k_end ? spec_.k_end : pool_.integer(extent); }

  // A reduction loop.
  struct Steps {
    int64_t extent, step;
  };
  Steps steps_of(size_t level) const {
    if (!spec_.k_extents[level].is_const()) return {0, kStep};
    const int64_t extent = spec_.k_extents[level].value();
    // Both ends are multiples of it.
    if (spec_.k_end && level == 0) return {extent, std::gcd(extent, int64_t{4})};
    if (level + 1 < spec_.k_vars.size()) return {extent, 1};
    const int64_t alike = extent - (spec_.has_last_apart ? 1 : 0);
    const int64_t step = spec_.shares_elements ? 1 : reduction_unroll(alike);
    return {alike - alike % step, step};
  }

  Expr sum(Expr i, Expr j) { return pool_.reg(acc_, {i, j}, spec_.dtype, spec_.lanes); }

  template <class F>
  void unroll(Block& block, const char* name, int64_t extent, F&& fill,
              LoopKind kind = LoopKind::unroll) {
    Var var = kernel_.add_var({name, loop::VarKind::loop, DType::i64, 1, 0, extent - 1});
    Block inside;
    fill(inside, pool_.var(var));
    block.push_back(
        {For{var, pool_.integer(0), pool_.integer(extent), 1, kind, std::move(inside)}});
  }

  void emit_reduction(Block& block, size_t level, std::vector<Expr> k, Expr lo, Expr hi) {
    const Var var = spec_.k_vars[level];
    const int64_t step = spec_.is_short ? 1 : steps_of(level).step;
    Block inside;
    if (level + 1 < spec_.k_vars.size()) {
      k.push_back(pool_.var(var));
      emit_reduction(inside, level + 1, k, pool_.integer(0),
                     pool_.integer(steps_of(level + 1).extent));
      if (level + 2 == spec_.k_vars.size()) emit_rest(inside, k);
    } else {
      k.push_back(pool_.var(var));
      if (spec_.prefetch) spec_.prefetch(inside, k);
      unroll(inside, "u", step, [&](Block& body, Expr u) {
        k.back() = pool_.var(var) + u;
        emit_step(body, k);
      });
    }
    block.push_back({For{var, lo, hi, step, LoopKind::serial, std::move(inside)}});
  }

  // The steps behind the innermost loop.
  void emit_rest(Block& block, std::vector<Expr> k) {
    k.emplace_back();
    for (int64_t at = steps_of(spec_.k_vars.size() - 1).extent; at < spec_.k_extents.back().value();
         ++at) {
      k.back() = pool_.integer(at);
      emit_step(block, k);
    }
  }

  void emit_step(Block& block, const std::vector<Expr>& k) {
    unroll(block, "j", spec_.vectors,
           [&](Block& inside, Expr j) { inside.push_back({SetReg{b_, {j}, spec_.b(j, k)}}); });
    unroll(block, "i", spec_.rows, [&](Block& rows, Expr i) {
      rows.push_back({SetReg{a_, {}, loop::splat(spec_.a(i, k), spec_.lanes)}});
      unroll(rows, "j", spec_.vectors, [&](Block& inside, Expr j) {
        const Expr a = pool_.reg(a_, {}, factor_, spec_.lanes);
        const Expr b = pool_.reg(b_, {j}, factor_, spec_.lanes);
        const Expr more =
            spec_.is_paired ? loop::pair_dot(a, b, sum(i, j)) : loop::fma(a, b, sum(i, j));
        inside.push_back({SetReg{acc_, {i, j}, more}});
      });
    });
  }

  void emit_rolled_epilogue(Block& block) {
    const int64_t width = spec_.vectors * spec_.lanes;
    loop::BufferRef tile =
        kernel_.add_buffer({"tile", spec_.dtype, spec_.rows * width, loop::Space::stack, true});
    auto at = [&](Expr i, Expr j) {
      return i * pool_.integer(width) + j * pool_.integer(spec_.lanes);
    };
    unroll(block, "i", spec_.rows, [&](Block& rows, Expr i) {
      unroll(rows, "j", spec_.vectors, [&](Block& inside, Expr j) {
        inside.push_back({loop::Store{tile, at(i, j), sum(i, j), {}, false}});
      });
    });
    auto row = [&](Block& rows, Expr i) {
      unroll(rows, "j", spec_.vectors, [&](Block& inside, Expr j) {
        spec_.epilogue(inside, i, j, pool_.load(tile, at(i, j), spec_.dtype, spec_.lanes));
      });
    };
    unroll(block, "row", spec_.rows, row, LoopKind::serial);
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const RegisterTileSpec& spec_;
  loop::RegArray acc_;
  DType factor_;
  loop::RegArray b_, a_;
};

}  // namespace

int64_t reduction_unroll(int64_t extent) {
  for (int64_t step : {4, 3, 5, 7, 2}) {
    if (extent % step == 0) return step;
  }
  return extent > 4 ? 4 : 1;
}

void emit_register_tile(loop::Kernel& kernel, const RegisterTileSpec& spec, Block& block) {
  Tile(kernel, spec).emit(block);
}

}  // namespace lathe
