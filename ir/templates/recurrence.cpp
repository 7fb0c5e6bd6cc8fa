// The recurrence template: see recurrence.h.
#include "ir/templates/recurrence.h"

#include <algorithm>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/register_tile.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kMostTasks = 8;
// Tiles of a task, which share a block of weights: read from the second cache, and from beyond.
constexpr int64_t kTilesOfNearWeights = 2, kTilesOfFarWeights = 4;
constexpr int64_t kMinSums = 8;  // chains of multiply-adds that hide each other's latency

class Recurrence {
 public:
  Recurrence(loop::Kernel& kernel, const RecurrenceSpec& spec, const RecurrenceLayout& layout,
             loop::BufferRef packed)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec), layout_(layout), packed_(packed) {
    stride_ = std::max(spec.hidden, layout.width());
    if (spec.rows.is_const()) task_rows_ = ceil_div(spec.rows.value(), layout.tasks.value());
  }

  void build() {
    const Var task = kernel_.add_loop_var("task", layout_.tasks);
    Block body;
    if (spec_.rows.is_const()) {
      first_ = let(body, "first_row", balanced(pool_.var(task)), spec_.rows.value() - 1);
      const Expr rows = balanced(pool_.var(task) + pool_.integer(1)) - first_;
      rows_ = let(body, "rows", rows, task_rows_);
    } else {
      first_ = pool_.var(task);
      rows_ = pool_.integer(1);
    }
    emit_initial(body);
    emit_steps(body);
    emit_last(body);
    kernel_.body.push_back({For{task, pool_.integer(0), pool_.size(layout_.tasks), 1,
                                LoopKind::parallel, std::move(body)}});
  }

 private:
  // Rows before a task; where tasks do not divide them, some have one more.
  Expr balanced(Expr task) {
    return loop::floor_div(task * pool_.size(spec_.rows), pool_.size(layout_.tasks));
  }

  Var add_var(const char* name, int64_t extent) {
    return kernel_.add_var(
        {name, loop::VarKind::loop, DType::i64, 1, 0, std::max<int64_t>(1, extent) - 1});
  }

  Expr let(Block& block, const char* name, Expr value, int64_t max) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const Var var = kernel_.add_var({name, loop::VarKind::let, DType::i64, 1, 0, max});
    block.push_back({loop::Let{var, value}});
    return pool_.var(var);
  }

  template <class F>
  void emit_loop(Block& block, const char* name, Expr extent, int64_t most, F&& fill) {
    const Var var = add_var(name, most);
    Block inside;
    fill(inside, pool_.var(var));
    block.push_back({For{var, pool_.integer(0), extent, 1, LoopKind::serial, std::move(inside)}});
  }

  // Vectors of all columns: fill(block, j), where `j` is a vector's first column.
  template <class F>
  void for_columns(Block& block, F&& fill) {
    emit_loop(block, "block", pool_.integer(layout_.blocks), layout_.blocks,
              [&](Block& inside, Expr index) {
                const Expr column = let(inside, "column", first_column(index), last_column());
                for_vectors(inside, column, [&](Block& each, Expr j, Expr) { fill(each, j); });
              });
  }

  template <class F>
  void for_vectors(Block& block, Expr column, F&& fill) {
    emit_loop(block, "v", pool_.integer(layout_.vectors), layout_.vectors,
              [&](Block& inside, Expr v) {
                const Expr j = let(inside, "j", column + v * pool_.integer(layout_.lanes),
                                   std::max<int64_t>(0, spec_.hidden - 1));
                fill(inside, j, v);
              });
  }

  int64_t last_column() const { return std::max<int64_t>(0, spec_.hidden - layout_.width()); }
  Expr first_column(Expr block) {
    return loop::min(block * pool_.integer(layout_.width()), pool_.integer(last_column()));
  }

  // A scalar of a vector's first column as that of all its columns. Those beyond the last are
  // masked; there are some only where one vector has all.
  struct Lanes {
    Var j;
    Expr first, mask;
  };
  Lanes lanes_at(Expr j) {
    Lanes lanes{
        kernel_.add_var({"lane", loop::VarKind::let, DType::i64, 1, 0, spec_.hidden - 1}), j, {}};
    if (spec_.hidden < layout_.width())
      lanes.mask = loop::lt(pool_.ramp(pool_.var(lanes.j), 1, layout_.lanes),
                            loop::splat(pool_.integer(spec_.hidden), layout_.lanes));
    return lanes;
  }
  Expr vector(const Lanes& lanes, Expr scalar, const loop::Bindings& bound = {}) {
    return loop::substitute(loop::vectorize(scalar, {lanes.j, layout_.lanes, lanes.mask}, bound),
                            lanes.j, lanes.first);
  }
  void store(Block& block, const Lanes& lanes, const ResultElement& result,
             const loop::Bindings& bound) {
    const auto place = [&](Expr e) { return e ? loop::substitute(e, lanes.j, lanes.first) : e; };
    block.push_back({loop::Store{result.buffer, place(result.index),
                                 vector(lanes, result.value, bound), place(lanes.mask), false}});
  }

  // A stand-in for what is a vector by then.
  Expr stand_in(loop::Bindings& bound, Expr vector) {
    const Var var =
        kernel_.add_var({"value", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    const Expr scalar = pool_.var(var, spec_.dtype);
    bound.emplace(scalar.node(), vector);
    return scalar;
  }

  // Where the states of a row of the task lie, as they are before and after a step.
  Expr address(Expr half, Expr row, Expr j) {
    return (half * pool_.integer(task_rows_) + row) * pool_.integer(stride_) + j;
  }
  Expr load_state(size_t state, Expr half, Expr row, Expr j, int lanes) {
    return pool_.load(states_[state], address(half, row, j), spec_.dtype, lanes);
  }

  void emit_initial(Block& block) {
    emit_loop(block, "row", rows_, task_rows_, [&](Block& rows, Expr row) {
      for_columns(rows, [&](Block& each, Expr j) {
        const Lanes lanes = lanes_at(j);
        const auto values = spec_.initial(first_ + row, pool_.var(lanes.j));
        for (size_t i = 0; i < values.size(); ++i) {
          if (states_.size() == i)
            states_.push_back(kernel_.add_buffer(
                {"state", spec_.dtype, 2 * task_rows_ * stride_, loop::Space::scratch, true}));
          each.push_back({loop::Store{
              states_[i], address(pool_.integer(0), row, j), vector(lanes, values[i]), {}, false}});
        }
      });
    });
  }

  void emit_steps(Block& block) {
    const Var step = kernel_.add_loop_var("step", spec_.steps);
    const Expr i = pool_.var(step), steps = pool_.size(spec_.steps);
    Block inside;
    before_ = let(inside, "before", loop::mod(i, pool_.integer(2)), 1);
    t_ = spec_.is_reversed ? steps - pool_.integer(1) - i : i;
    if (spec_.is_reversed && spec_.steps.is_const())
      t_ = let(inside, "t", t_, spec_.steps.value() - 1);
    emit_loop(inside, "block", pool_.integer(layout_.blocks), layout_.blocks,
              [&](Block& columns, Expr index) {
                const Expr column = let(columns, "column", first_column(index), last_column());
                emit_tiles(columns, index, column);
              });
    block.push_back({For{step, pool_.integer(0), steps, 1, LoopKind::serial, std::move(inside)}});
  }

  void emit_tiles(Block& block, Expr index, Expr column) {
    const int64_t height = layout_.tile_rows;
    const int64_t most = ceil_div(task_rows_, height);
    const Expr tiles = loop::floor_div(rows_ + pool_.integer(height - 1), pool_.integer(height));
    emit_loop(block, "tile", tiles, most, [&](Block& tile, Expr n) {
      const Expr row =
          let(tile, "row", loop::min(n * pool_.integer(height), rows_ - pool_.integer(height)),
              task_rows_ - height);
      emit_tile(tile, index, column, row);
    });
  }

  void emit_tile(Block& block, Expr index, Expr column, Expr row) {
    const int64_t of_row = spec_.gates * layout_.vectors;
    const loop::BufferRef sums =
        kernel_.add_buffer({"sums", spec_.dtype, layout_.tile_rows * of_row * layout_.lanes,
                            loop::Space::stack, true});
    const auto place = [&](Expr i, Expr vector) {
      return (i * pool_.integer(of_row) + vector) * pool_.integer(layout_.lanes);
    };
    const Expr depth = pool_.integer(spec_.hidden);
    RegisterTileSpec tile{.rows = layout_.tile_rows,
                          .vectors = of_row,
                          .lanes = layout_.lanes,
                          .dtype = spec_.dtype,
                          .k_vars = {add_var("k", spec_.hidden)},
                          .k_extents = {spec_.hidden}};
    tile.a = [&](Expr i, std::span<const Expr> k) {
      return load_state(0, before_, row + i, k[0], 1);
    };
    tile.b = [&](Expr j, std::span<const Expr> k) {
      const Expr vector = (index * depth + k[0]) * pool_.integer(of_row) + j;
      return pool_.load(packed_, vector * pool_.integer(layout_.lanes), spec_.dtype, layout_.lanes);
    };
    tile.epilogue = [&](Block& inside, Expr i, Expr j, Expr sum) {
      inside.push_back({loop::Store{sums, place(i, j), sum, {}, false}});
    };
    emit_register_tile(kernel_, tile, block);
    emit_loop(
        block, "i", pool_.integer(layout_.tile_rows), layout_.tile_rows, [&](Block& rows, Expr i) {
          for_vectors(rows, column, [&](Block& each, Expr j, Expr v) {
            std::vector<Expr> of_gates;
            for (int64_t gate = 0; gate < spec_.gates; ++gate)
              of_gates.push_back(pool_.load(sums,
                                            place(i, pool_.integer(gate * layout_.vectors) + v),
                                            spec_.dtype, layout_.lanes));
            emit_cell(each, row + i, j, of_gates);
          });
        });
  }

  void emit_cell(Block& block, Expr row, Expr j, const std::vector<Expr>& vectors) {
    loop::Bindings bound;
    std::vector<Expr> sums, before;
    for (Expr vector : vectors) sums.push_back(stand_in(bound, vector));
    for (size_t i = 0; i < states_.size(); ++i)
      before.push_back(stand_in(bound, load_state(i, before_, row, j, layout_.lanes)));
    const Lanes lanes = lanes_at(j);
    const auto after = spec_.cell(t_, first_ + row, pool_.var(lanes.j), sums, before);
    // Each is computed once; the earlier ones may be made of the later.
    loop::Bindings named = bound;
    for (size_t i = after.size(); i-- > 0;) {
      const Var var = kernel_.add_var(
          {"state", loop::VarKind::let, spec_.dtype, layout_.lanes, INT64_MIN, INT64_MAX});
      block.push_back({loop::Let{var, vector(lanes, after[i], named)}});
      named.emplace(after[i].node(), pool_.var(var, spec_.dtype, layout_.lanes));
      block.push_back({loop::Store{states_[i],
                                   address(pool_.integer(1) - before_, row, j),
                                   pool_.var(var, spec_.dtype, layout_.lanes),
                                   {},
                                   false}});
    }
    store(block, lanes, spec_.output(t_, first_ + row, pool_.var(lanes.j), after[0]), named);
  }

  void emit_last(Block& block) {
    if (!spec_.last) return;
    const Expr half = loop::mod(pool_.size(spec_.steps), pool_.integer(2));
    emit_loop(block, "row", rows_, task_rows_, [&](Block& rows, Expr row) {
      for_columns(rows, [&](Block& each, Expr j) {
        const Lanes lanes = lanes_at(j);
        loop::Bindings bound;
        const Expr state =
            stand_in(bound, load_state(states_.size() - 1, half, row, j, layout_.lanes));
        store(each, lanes, spec_.last(first_ + row, pool_.var(lanes.j), state), bound);
      });
    });
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const RecurrenceSpec& spec_;
  const RecurrenceLayout& layout_;
  loop::BufferRef packed_;
  std::vector<loop::BufferRef> states_;
  int64_t stride_, task_rows_ = 1;
  Expr first_, rows_;  // of the task
  Expr before_, t_;    // the half that has the states before the step; the step
};

}  // namespace

RecurrenceLayout recurrence_layout(const RecurrenceSpec& spec, const Target& target) {
  RecurrenceLayout layout;
  layout.lanes = target.lanes(dtype_bytes(spec.dtype));
  const int64_t registers = target.num_vector_registers;
  const int64_t rows = spec.rows.is_const() ? spec.rows.value() : 1;
  // Of one row, more columns at once, while they are there.
  while (rows * spec.gates * layout.vectors < kMinSums && 2 * layout.width() <= spec.hidden &&
         2 * layout.vectors * spec.gates < registers)
    layout.vectors *= 2;
  layout.blocks = ceil_div(spec.hidden, layout.width());
  const int64_t of_row = spec.gates * layout.vectors;
  // Vectors of a block, and the scalar of a row unless an instruction takes it from memory.
  const int64_t others = of_row + (registers < 32 ? 1 : 0);
  const int64_t most_rows = std::max<int64_t>(1, (registers - others) / of_row);
  const int64_t bytes = layout.num_elements(spec) * dtype_bytes(spec.dtype);
  const int64_t tiles = ceil_div(rows, most_rows);
  const int64_t sharing = bytes > target.l2_bytes / 2 ? kTilesOfFarWeights : kTilesOfNearWeights;
  const int64_t tasks = std::clamp<int64_t>(tiles / sharing, 1, kMostTasks);
  layout.tasks = spec.rows.is_const() ? Dim(tasks) : spec.rows;
  // Balanced: no task has fewer rows than a tile.
  const int64_t fewest = rows / tasks;
  layout.tile_rows = ceil_div(fewest, ceil_div(fewest, most_rows));
  return layout;
}

void build_recurrence(loop::Kernel& kernel, const RecurrenceSpec& spec,
                      const RecurrenceLayout& layout, loop::BufferRef packed) {
  Recurrence(kernel, spec, layout, packed).build();
}

LoopNest pack_recurrence_nest(loop::Kernel& kernel, const RecurrenceSpec& spec,
                              const RecurrenceLayout& layout, loop::BufferRef packed,
                              const std::function<Expr(Expr k, Expr gate, Expr j)>& weight) {
  LoopNest nest;
  nest.outs = {packed};
  loop::Pool& pool = *kernel.pool;
  nest.index = pool.integer(0);
  const auto add = [&](const char* name, int64_t extent) {
    nest.vars.push_back(kernel.add_var({name, loop::VarKind::loop, DType::i64, 1, 0, extent - 1}));
    nest.extents.push_back(extent);
    const Expr var = pool.var(nest.vars.back());
    nest.index = nest.index * pool.integer(extent) + var;
    return var;
  };
  const Expr block = add("block", layout.blocks), k = add("k", spec.hidden),
             gate = add("gate", spec.gates), lane = add("lane", layout.width());
  const int64_t last = std::max<int64_t>(0, spec.hidden - layout.width());
  const Expr j = loop::min(block * pool.integer(layout.width()), pool.integer(last)) + lane;
  const Expr inside =
      spec.hidden < layout.width() ? loop::min(j, pool.integer(spec.hidden - 1)) : j;
  Expr value = weight(k, gate, inside);
  if (spec.hidden < layout.width())
    value =
        loop::select(loop::lt(j, pool.integer(spec.hidden)), value, loop::constant_like(value, 0));
  nest.values = {value};
  nest.kernel = kernel;
  return nest;
}

}  // namespace lathe
