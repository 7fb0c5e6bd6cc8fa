// Transposes in registers: see transpose.h. Rows are loaded whole; then neighbouring rows are
// interleaved within blocks of 16 bytes, which machines do in one instruction, until each block
// holds a part of a column, and blocks are exchanged until each vector is one.
#include "ir/templates/transpose.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace lathe {
namespace {

using loop::Expr;
using loop::Var;
using Vectors = std::vector<Expr>;

constexpr int kBlockBytes = 16;

// Names a vector for the rest of the block.
Expr named(loop::Kernel& kernel, loop::Block& body, Expr value) {
  const Var var =
      kernel.add_var({"turned", loop::VarKind::let, value->dtype, value->lanes, 0, INT64_MAX});
  body.push_back({loop::Let{var, value}});
  return kernel.pool->var(var, value->dtype, value->lanes);
}

// In every block of so many lanes: pieces of `unit` lanes of a and of b by turns, from the blocks'
// lower halves or their upper ones.
std::vector<int> interleaved(int lanes, int block, int unit, bool is_upper) {
  std::vector<int> picked;
  for (int start = 0; start < lanes; start += block) {
    for (int i = 0; i < block; ++i) {
      const int piece = i / unit;
      const int lane = start + (is_upper ? block / 2 : 0) + piece / 2 * unit + i % unit;
      picked.push_back(piece % 2 == 0 ? lane : lanes + lane);
    }
  }
  return picked;
}

// Every other block of a, then of b.
std::vector<int> every_other(int lanes, int block, bool is_odd) {
  std::vector<int> picked;
  for (int start = is_odd ? block : 0; start < 2 * lanes; start += 2 * block)
    for (int i = 0; i < block; ++i) picked.push_back(start + i);
  return picked;
}

// Pairs of vectors whose numbers differ in the bit `distance`, each replaced by its two mixtures.
void mix(loop::Kernel& kernel, loop::Block& body, Vectors& vectors, size_t distance,
         const std::vector<int>& first, const std::vector<int>& second) {
  for (size_t i = 0; i < vectors.size(); ++i) {
    if ((i & distance) != 0) continue;
    const Expr a = vectors[i], b = vectors[i | distance];
    vectors[i] = named(kernel, body, loop::shuffle(a, b, first));
    vectors[i | distance] = named(kernel, body, loop::shuffle(a, b, second));
  }
}

// Of the lanes that are steps; null when all are.
Expr step_mask(loop::Pool& pool, const Square& square) {
  if (square.steps == square.lanes) return {};
  return loop::lt(pool.ramp(pool.integer(0), 1, square.lanes),
                  loop::splat(pool.integer(square.steps), square.lanes));
}

// Names the turned vectors in `body`: what each step's loads are, with `along` replaced by it.
std::vector<loop::Bindings> turn_loads(loop::Kernel& kernel, std::span<const Expr> values,
                                       const Square& square, loop::Block& body) {
  loop::Pool& pool = *kernel.pool;
  std::vector<loop::Bindings> steps(static_cast<size_t>(square.steps));
  const Expr mask = step_mask(pool, square);
  Vectors loads;
  loop::for_each(values, [&](Expr e) {
    if (is_turned(e, square.across, square.along)) loads.push_back(e);
  });
  for (Expr e : loads) {
    const auto& load = std::get<loop::Load>(e->kind);
    Vectors rows;
    for (int64_t row = 0; row < square.lanes; ++row) {
      if (row >= square.rows) {
        rows.push_back(rows.back());
        continue;
      }
      const Expr at = loop::substitute(loop::substitute(load.index, square.along, square.first),
                                       square.across, pool.var(square.across) + pool.integer(row));
      rows.push_back(named(kernel, body, pool.load(load.buffer, at, e->dtype, square.lanes, mask)));
    }
    const Vectors columns = turn_square(kernel, body, std::move(rows));
    for (size_t step = 0; step < steps.size(); ++step) {
      const Expr at = square.first + pool.integer(static_cast<int64_t>(step));
      const Expr moved = loop::substitute(e, square.along, at);
      steps[step].emplace(moved.node(), columns[step]);
    }
  }
  return steps;
}

}  // namespace

Vectors turn_square(loop::Kernel& kernel, loop::Block& body, Vectors vectors) {
  const int lanes = vectors[0]->lanes;
  const int block =
      std::min<int>(lanes, kBlockBytes / static_cast<int>(dtype_bytes(vectors[0]->dtype)));
  for (int unit = 1; unit < block; unit *= 2)
    mix(kernel, body, vectors, static_cast<size_t>(unit), interleaved(lanes, block, unit, false),
        interleaved(lanes, block, unit, true));
  for (int distance = block; distance < lanes; distance *= 2)
    mix(kernel, body, vectors, static_cast<size_t>(distance), every_other(lanes, block, false),
        every_other(lanes, block, true));
  // Within a block, numbers have become the columns' with their bits reversed.
  Vectors result;
  for (int column = 0; column < lanes; ++column) {
    int reversed = 0;
    for (int bit = 1, mirror = block / 2; bit < block; bit *= 2, mirror /= 2)
      if ((column & bit) != 0) reversed |= mirror;
    result.push_back(vectors[static_cast<size_t>(column / block * block + reversed)]);
  }
  return result;
}

bool is_turned(Expr e, Var across, Var along) {
  const auto* load = std::get_if<loop::Load>(&e->kind);
  if (load == nullptr || load->mask || e->dtype == DType::b8) return false;
  const loop::Linear form = loop::linear(load->index);
  for (const auto& [atom, coefficient] : form.terms)
    if (!std::holds_alternative<loop::VarRead>(atom->kind) &&
        (loop::depends_on(atom, across) || loop::depends_on(atom, along)))
      return false;
  return std::abs(form.coefficient(across)) > 1 && form.coefficient(along) == 1;
}

void store_square(loop::Kernel& kernel, const Square& square, const loop::VectorAxis& axis,
                  std::span<const loop::BufferRef> outs, std::span<const Expr> values, Expr index,
                  loop::Block& body) {
  const std::vector<loop::Bindings> steps = turn_loads(kernel, values, square, body);
  for (size_t step = 0; step < steps.size(); ++step) {
    const Expr at = square.first + kernel.pool->integer(static_cast<int64_t>(step));
    for (size_t i = 0; i < values.size(); ++i) {
      const Expr value = loop::substitute(values[i], square.along, at);
      body.push_back({loop::Store{outs[i], loop::substitute(index, square.along, at),
                                  loop::vectorize(value, axis, steps[step]), axis.mask, false}});
    }
  }
}

void store_turned_square(loop::Kernel& kernel, const Square& square, const loop::VectorAxis& axis,
                         std::span<const loop::BufferRef> outs, std::span<const Expr> values,
                         Expr index, const loop::Bindings& bound, loop::Block& body) {
  loop::Pool& pool = *kernel.pool;
  const Expr mask = step_mask(pool, square);
  for (size_t i = 0; i < values.size(); ++i) {
    Vectors columns;
    for (int64_t step = 0; step < square.lanes; ++step) {
      const Expr at = square.first + pool.integer(std::min(step, square.steps - 1));
      const Expr value = loop::substitute(values[i], square.along, at);
      columns.push_back(step < square.steps
                            ? named(kernel, body, loop::vectorize(value, axis, bound))
                            : columns.back());
    }
    const Vectors rows = turn_square(kernel, body, std::move(columns));
    for (int64_t row = 0; row < square.rows; ++row) {
      const Expr at = loop::substitute(loop::substitute(index, square.along, square.first),
                                       square.across, pool.var(square.across) + pool.integer(row));
      body.push_back({loop::Store{outs[i], at, rows[static_cast<size_t>(row)], mask, false}});
    }
  }
}

size_t find_lanes_of_sums(std::span<const Expr> values, std::span<const Var> vars) {
  std::vector<loop::Linear> reads;
  bool is_fit = vars.size() > 1;
  for (Expr value : values) is_fit = is_fit && value->dtype != DType::b8;
  loop::for_each(values, [&](Expr e) {
    const auto* reduce = std::get_if<loop::Reduce>(&e->kind);
    if (reduce == nullptr || !is_fit) return;
    is_fit = !loop::depends_on(e, vars.back());
    loop::for_each(reduce->body, [&](Expr part) {
      const auto* load = std::get_if<loop::Load>(&part->kind);
      if (load == nullptr) return;
      const loop::Linear form = loop::linear(load->index);
      const bool is_own = std::any_of(reduce->vars.begin(), reduce->vars.end(), [&](Var var) {
        is_fit = is_fit && form.coefficient(var) != 1;
        return form.depends_on(var);
      });
      if (is_own) reads.push_back(form);
    });
  });
  if (!is_fit || reads.empty()) return vars.size();
  for (size_t i = vars.size() - 1; i-- > 0;) {
    const auto is_along = [&](const loop::Linear& form) { return form.coefficient(vars[i]) == 1; };
    if (std::all_of(reads.begin(), reads.end(), is_along)) return i;
  }
  return vars.size();
}

}  // namespace lathe
