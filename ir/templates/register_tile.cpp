// The register tile: see register_tile.h.
#include "ir/templates/register_tile.h"

#include <utility>

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::SetReg;
using loop::Var;

class Tile {
 public:
  Tile(loop::Kernel& kernel, const RegisterTileSpec& spec)
      : kernel_(kernel),
        pool_(*kernel.pool),
        spec_(spec),
        acc_(kernel.add_regs({"acc", spec.dtype, spec.lanes, {spec.rows, spec.vectors}})),
        b_(kernel.add_regs({"b", spec.dtype, spec.lanes, {spec.vectors}})),
        a_(kernel.add_regs({"a", spec.dtype, spec.lanes, {}})) {}

  void emit(Block& block) {
    for (loop::RegArray array : {acc_, b_, a_}) block.push_back({loop::DeclareRegs{array}});
    unroll(block, "i", spec_.rows, [&](Block& rows, Expr i) {
      unroll(rows, "j", spec_.vectors, [&](Block& inside, Expr j) {
        inside.push_back(
            {SetReg{acc_, {i, j}, loop::splat(pool_.number(0, spec_.dtype), spec_.lanes)}});
      });
    });
    emit_reduction(block, 0, {});
    if (spec_.roll_epilogue) {
      emit_rolled_epilogue(block);
    } else {
      unroll(block, "i", spec_.rows, [&](Block& rows, Expr i) {
        unroll(rows, "j", spec_.vectors,
               [&](Block& inside, Expr j) { spec_.epilogue(inside, i, j, sum(i, j)); });
      });
    }
  }

 private:
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

  void emit_reduction(Block& block, size_t level, std::vector<Expr> k) {
    const Var var = spec_.k_vars[level];
    const int64_t extent = spec_.k_extents[level];
    Block inside;
    const bool is_innermost = level + 1 == spec_.k_vars.size();
    const int64_t step = is_innermost ? reduction_unroll(extent) : 1;
    if (!is_innermost) {
      k.push_back(pool_.var(var));
      emit_reduction(inside, level + 1, std::move(k));
    } else {
      k.push_back(pool_.var(var));
      if (spec_.prefetch) spec_.prefetch(inside, k);
      unroll(inside, "u", step, [&](Block& body, Expr u) {
        k.back() = pool_.var(var) + u;
        emit_step(body, k);
      });
    }
    block.push_back({For{var, pool_.integer(0), pool_.integer(extent), step, LoopKind::serial,
                         std::move(inside)}});
  }

  void emit_step(Block& block, const std::vector<Expr>& k) {
    unroll(block, "j", spec_.vectors,
           [&](Block& inside, Expr j) { inside.push_back({SetReg{b_, {j}, spec_.b(j, k)}}); });
    unroll(block, "i", spec_.rows, [&](Block& rows, Expr i) {
      rows.push_back({SetReg{a_, {}, loop::splat(spec_.a(i, k), spec_.lanes)}});
      unroll(rows, "j", spec_.vectors, [&](Block& inside, Expr j) {
        Expr product = loop::fma(pool_.reg(a_, {}, spec_.dtype, spec_.lanes),
                                 pool_.reg(b_, {j}, spec_.dtype, spec_.lanes), sum(i, j));
        inside.push_back({SetReg{acc_, {i, j}, product}});
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
  loop::RegArray acc_, b_, a_;
};

}  // namespace

int64_t reduction_unroll(int64_t extent) {
  for (int64_t step : {4, 3, 5, 7, 2}) {
    if (extent % step == 0) return step;
  }
  return 1;
}

void emit_register_tile(loop::Kernel& kernel, const RegisterTileSpec& spec, Block& block) {
  Tile(kernel, spec).emit(block);
}

}  // namespace lathe
