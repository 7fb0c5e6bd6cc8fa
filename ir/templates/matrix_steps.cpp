// Whole matrices, step by step: see matrix_steps.h.
#include "ir/templates/matrix_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/loop/linear.h"

namespace lathe {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

namespace {

constexpr int64_t kThreads = 128;           // of a group; more wait longer for each other
constexpr int64_t kStripVectors = 2;        // of a strip
constexpr int64_t kMostScratch = 16 << 20;  // bytes of a worker; larger ones are the program's
constexpr int64_t kTaskElements = 20000;    // about 10 us of steps

Dim product(const std::vector<Dim>& dims) {
  Dim all = 1;
  for (const Dim& dim : dims) all = all * dim;
  return all;
}

}  // namespace

MatrixSteps::MatrixSteps(loop::Kernel& kernel, const MatrixSpec& spec, const Target& target)
    : kernel_(kernel), spec_(spec) {
  Dim longest = 1;
  if (target.groups) {
    threads_ = std::min<int64_t>(kThreads, target.groups->most);
  } else {
    lanes_ = target.lanes(dtype_bytes(spec.dtype));
    for (const Dim& part : spec.parts) longest = Dim::max(longest, part);
  }
  const auto fit = [](auto& count, const Dim& least, int64_t unit) {
    while (least.is_const() && count > 1 && count / 2 * unit >= least.value()) count /= 2;
  };
  fit(lanes_, longest, 1);
  int64_t wide = spec.is_in_strips ? kStripVectors : spec.wide;
  fit(wide, longest, lanes_);
  if (spec.is_in_strips && threads_ == 0) {
    strip_ = wide * lanes_;
    tile_rows_ = target.num_vector_registers < 32 ? 4 : 8;
    fit(tile_rows_, spec.rows, 1);
  } else {
    wide_ = wide;
  }
  const int64_t unit = wide * lanes_;
  for (const Dim& part : spec.parts) {
    begins_.push_back(stride_);
    stride_ = stride_ + Dim::floor_div(part + Dim(unit - 1), unit) * Dim(unit);
    // A part's last vector may begin at its last column.
    if (lanes_ > 1 && strip_ == 0) stride_ = stride_ + Dim(lanes_);
  }
  first_spare_ = Dim::floor_div(spec.rows + Dim(tile_rows_ - 1), tile_rows_) * Dim(tile_rows_);
  size_ = (first_spare_ + Dim(spec.spare_rows)) * stride_;
}

double MatrixSteps::tolerance() const {
  const double terms =
      spec_.parts[0].is_const() ? static_cast<double>(spec_.parts[0].value()) : 256;
  return std::max(4.0, std::sqrt(terms) / 2) * epsilon();
}

Expr MatrixSteps::variable(const char* name, loop::VarKind kind, DType dtype, int lanes) {
  loop::VarInfo info{name, kind, dtype, lanes};
  if (dtype != DType::i64) info.min = INT64_MIN;
  return pool().var(kernel_.add_var(std::move(info)), dtype, lanes);
}

Expr MatrixSteps::index(Expr row, Expr column) const {
  if (!is_in_strips()) return first_ + row * pool().size(stride_) + column;
  const Expr width = integer(strip_);
  const Expr strip = loop::simplify_index(loop::floor_div(column, width), kernel_);
  const Expr place = loop::simplify_index(loop::mod(column, width), kernel_);
  const Expr num_rows = pool().size(first_spare_ + Dim(spec_.spare_rows));
  return first_ + (strip * num_rows + row) * width + place;
}

Expr MatrixSteps::at(Expr row, Expr column) const {
  return pool().load(workspace_, index(row, column), spec_.dtype, width_);
}

Expr MatrixSteps::scalar(Expr row, Expr column) const {
  return pool().load(workspace_, index(row, column), spec_.dtype);
}

void MatrixSteps::put(Expr row, Expr column, Expr value) {
  emit({loop::Store{workspace_, index(row, column), loop::splat(value, width_), {}, false}});
}

Expr MatrixSteps::keep(const char* name, Expr value) {
  const Expr read = variable(name, loop::VarKind::let, value->dtype, value->lanes);
  kernel_.vars.back().min = INT64_MIN;
  emit({loop::Let{std::get<loop::VarRead>(read->kind).var, value}});
  return read;
}

loop::RegArray MatrixSteps::cell(const char* name, Expr first) {
  const loop::RegArray array = kernel_.add_regs({name, first->dtype, first->lanes, {}});
  emit({loop::DeclareRegs{array}});
  set(array, first);
  return array;
}

Expr MatrixSteps::get(loop::RegArray cell) const {
  const loop::RegInfo& info = kernel_.regs[cell.id];
  return pool().reg(cell, {}, info.dtype, info.lanes);
}

void MatrixSteps::set(loop::RegArray cell, Expr value) { emit({loop::SetReg{cell, {}, value}}); }

void MatrixSteps::loop(Expr lo, Expr hi, int64_t step, const Fill& fill, const Dim& extent) {
  const Expr read = variable("i", loop::VarKind::loop, DType::i64, 1);
  const Var var = std::get<loop::VarRead>(read->kind).var;
  if (extent != Dim(0)) kernel_.set_extent(var, extent);
  Block inside;
  Block* const outside = std::exchange(block_, &inside);
  fill(read);
  block_ = outside;
  emit({For{var, lo, hi, step, LoopKind::serial, std::move(inside)}});
}

void MatrixSteps::serial(Expr lo, Expr hi, const Fill& fill) { loop(lo, hi, 1, fill); }

void MatrixSteps::when(Expr condition, const FunctionRef<void()>& fill) {
  Block inside;
  Block* const outside = std::exchange(block_, &inside);
  fill();
  block_ = outside;
  emit({loop::If{condition, std::move(inside), {}}});
}

void MatrixSteps::barrier() {
  if (threads_ > 0) emit({loop::Barrier{}});
}

void MatrixSteps::spread(Expr lo, Expr hi, const Fill& fill) {
  barrier();
  is_apart_ = true;
  loop(threads_ > 0 ? lo + thread_ : lo, hi, std::max<int64_t>(1, threads_), fill);
  is_apart_ = false;
  barrier();
}

void MatrixSteps::each(Expr lo, Expr hi, const Fill& fill) {
  if (is_apart_ || threads_ == 0)
    serial(lo, hi, fill);
  else
    spread(lo, hi, fill);
}

void MatrixSteps::across(Expr lo, Expr hi, const Fill& fill) {
  if (threads_ > 0) return each(lo, hi, fill);
  const int outside = std::exchange(width_, lanes_);
  loop(lo, hi, lanes_, fill);
  width_ = outside;
}

void MatrixSteps::across_wide(size_t part, Expr lo, Expr first, Expr last, const Wide& wide) {
  const Expr unit = integer(wide_ * lanes_), begin = this->begin(part);
  const int outside = std::exchange(width_, lanes_);
  loop(begin + loop::floor_div(lo, unit) * unit, end(part), wide_ * lanes_, [&](Expr column) {
    std::vector<Expr> columns;
    std::vector<loop::RegArray> cells;
    for (int64_t j = 0; j < wide_; ++j) {
      columns.push_back(column + integer(j * lanes_));
      cells.push_back(cell("vector", loop::splat(wide.first(columns.back()), lanes_)));
    }
    loop(first, last, 1, [&](Expr row) {
      for (size_t j = 0; j < cells.size(); ++j)
        set(cells[j], wide.next(row, columns[j], get(cells[j])));
    });
    for (size_t j = 0; j < cells.size(); ++j) wide.last(columns[j], get(cells[j]));
  });
  width_ = outside;
}

std::vector<Expr> MatrixSteps::fold(loop::ReduceOp op, size_t count, Expr lo, Expr hi,
                                    const Step& step) {
  const int outside = std::exchange(width_, lanes_);
  std::vector<loop::RegArray> cells;
  // A maximum is of what is not negative: the zeros behind a row take no part.
  for (size_t i = 0; i < count; ++i) cells.push_back(cell("sum", loop::splat(number(0), lanes_)));
  loop(lo, hi, lanes_, [&](Expr column) {
    std::vector<Expr> so_far;
    for (const loop::RegArray& each : cells) so_far.push_back(get(each));
    const std::vector<Expr> next = step(column, so_far);
    for (size_t i = 0; i < count; ++i) set(cells[i], next[i]);
  });
  width_ = outside;
  std::vector<Expr> results;
  for (const loop::RegArray& each : cells)
    results.push_back(keep("total", lanes_ > 1 ? loop::reduce_lanes(op, get(each)) : get(each)));
  return results;
}

void MatrixSteps::load(MatrixSpec::Index batch) {
  is_in_strips() ? load_strips(batch) : load_rows(batch);
}

void MatrixSteps::load_rows(MatrixSpec::Index batch) {
  const Expr all = pool().size(first_spare_ + Dim(spec_.spare_rows));
  const auto clear = [&](Expr row) {
    across(integer(0), pool().size(stride_), [&](Expr column) { put(row, column, number(0)); });
  };
  each(integer(0), rows(), [&](Expr row) {
    if (lanes_ > 1) clear(row);
    for (size_t part = 0; part < spec_.parts.size(); ++part) {
      serial(integer(0), pool().size(spec_.parts[part]), [&](Expr column) {
        put(row, begin(part) + column,
            loop::cast(spec_.initial(batch, row, part, column), spec_.dtype));
      });
    }
  });
  if (spec_.spare_rows > 0) each(rows(), all, clear);
}

void MatrixSteps::load_strips(MatrixSpec::Index batch) {
  const Expr all = pool().size(first_spare_ + Dim(spec_.spare_rows));
  each_strip([&](Expr strip, Expr) {
    serial(integer(0), all, [&](Expr row) {
      across_strip(strip, [&](Expr column) { put(row, column, number(0)); });
    });
    serial(integer(0), rows(), [&](Expr row) {
      along_strip(strip, end(0), [&](Expr column) {
        put(row, column, loop::cast(spec_.initial(batch, row, 0, column), spec_.dtype));
      });
    });
  });
}

void MatrixSteps::store(MatrixSpec::Index batch) {
  std::vector<Expr> index;
  const std::function<void(size_t)> walk = [&](size_t dim) {
    if (dim == spec_.results.size()) {
      const ResultElement result = spec_.result(*this, batch, index);
      emit({loop::Store{result.buffer, result.index, result.value, {}, false}});
      return;
    }
    const auto step = [&](Expr i) {
      index.push_back(i);
      walk(dim + 1);
      index.pop_back();
    };
    const Expr extent = pool().size(spec_.results[dim]);
    if (is_in_strips() && dim + 1 == spec_.results.size())
      each_strip([&](Expr strip, Expr) { along_strip(strip, extent, step); });
    else
      each(integer(0), extent, step);
  };
  walk(0);
}

void MatrixSteps::build() {
  const Dim tasks = product(spec_.batch);
  const Var task = kernel_.add_loop_var("task", tasks);
  Block body, inside;
  block_ = &body;
  std::vector<Expr> batch(spec_.batch.size());
  Expr left = pool().var(task);
  for (size_t i = spec_.batch.size(); i-- > 0;) {
    const Expr extent = pool().size(spec_.batch[i]);
    batch[i] = i == 0 ? left : loop::mod(left, extent);
    left = loop::floor_div(left, extent);
  }
  const bool is_large = size_.is_const() && size_.value() > kMostScratch / dtype_bytes(spec_.dtype);
  if (threads_ > 0 || is_large) {
    workspace_ = spec_.global_workspace(tasks * size_);
    first_ = pool().var(task) * pool().size(size_);
  } else {
    workspace_ = kernel_.add_buffer({"workspace", spec_.dtype, size_, loop::Space::scratch, true});
    first_ = integer(0);
  }
  const Var thread = kernel_.add_loop_var("thread", std::max<int64_t>(1, threads_));
  thread_ = pool().var(thread);
  if (threads_ > 0) block_ = &inside;
  load(batch);
  spec_.steps(*this, batch);
  store(batch);
  if (threads_ > 0)
    body.push_back(
        {For{thread, integer(0), integer(threads_), 1, LoopKind::thread, std::move(inside)}});
  if (size_.is_const())
    kernel_.grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, size_.value()));
  kernel_.body.push_back(
      {For{task, integer(0), pool().size(tasks), 1, LoopKind::parallel, std::move(body)}});
}

void build_matrix_steps(loop::Kernel& kernel, const MatrixSpec& spec, const Target& target) {
  MatrixSteps(kernel, spec, target).build();
}

}  // namespace lathe
