// The window template for threads: see window_threads.h.
#include "ir/templates/window_threads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"
#include "ir/templates/window_rows.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kMostThreadResults = 4;     // of a tile
constexpr int64_t kMostRegisters = 48;        // of a tile's sums and a row's weights
constexpr int64_t kMostUnrolledRows = 25;     // taps of windows whose rows are straight code
constexpr int64_t kMostUnrolledColumns = 16;  // taps of the last dim that are

// A load, perhaps widened: where it is masked it is zero.
bool is_plain_load(Expr e) {
  while (auto* cast = std::get_if<loop::Cast>(&e->kind)) e = cast->x;
  return std::holds_alternative<loop::Load>(e->kind);
}

// Whether every load moves with the lanes, so that their mask holds for it.
bool masks_all(Expr e, Var lane) {
  bool all = true;
  loop::for_each(e, [&](Expr sub) {
    auto* load = std::get_if<loop::Load>(&sub->kind);
    all = all && (!load || loop::depends_on(load->index, lane));
  });
  return all;
}

class ThreadWindow : WindowRows {
 public:
  ThreadWindow(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
               const Target& target)
      : WindowRows(kernel, spec), packed_(packed) {
    for (const WindowDim& dim : spec.dims) taps_of_window_ *= dim.taps;
    choose_tile(target);
  }

  void build() {
    Block body;
    const int64_t rows = num_rows().value(), tasks = rows * tiles_ * vectors_;
    const Var task = add_var("task", tasks);
    Expr rest = pool_.var(task);
    const Expr vector = take(body, "vector", rest, vectors_, rows * tiles_);
    channel_ = vector * pool_.integer(lanes_);
    const Expr tile = take(body, "tile", rest, tiles_, rows);
    first_ = tile * pool_.integer(height_);
    decode_row(body, rest, !is_unrolled());
    sums_ = regs(body, "acc", height_);
    const Expr zero = loop::splat(pool_.number(0, spec_.dtype), lanes_);
    for (int64_t i = 0; i < height_; ++i)
      body.push_back({loop::SetReg{sums_, {pool_.integer(i)}, zero}});
    emit_taps(body, {}, {});
    for (int64_t i = 0; i < height_; ++i) emit_result(body, i);
    kernel_.body.push_back({For{task, pool_.integer(0), pool_.integer(tasks), 1, LoopKind::parallel,
                                std::move(body)}});
  }

 private:
  // The widest accesses that channels divide into, then narrower ones and lower tiles until there
  // are threads enough.
  void choose_tile(const Target& target) {
    int64_t narrowest = dtype_bytes(spec_.dtype);
    for (const loop::Buffer& buffer : kernel_.buffers)
      narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
    const int64_t rows = num_rows().value(), many = target.groups->filling / 2;
    lanes_ = target.lanes_per_thread(narrowest);
    while (spec_.channels % lanes_ != 0) lanes_ /= 2;
    const int64_t kept = last_.taps <= kMostUnrolledColumns ? last_.taps : 1;
    while (lanes_ > 1 && (kMostThreadResults + kept) * lanes_ > kMostRegisters) lanes_ /= 2;
    while (lanes_ > 1 && rows * last_.output.value() * (spec_.channels / lanes_) < many)
      lanes_ /= 2;
    vectors_ = spec_.channels / lanes_;
    const auto tiles = [&](int64_t height) { return ceil_div(last_.output.value(), height); };
    int64_t height = std::min(kMostThreadResults, last_.output.value());
    while (height > 1 && rows * tiles(height) * vectors_ < many) --height;
    tiles_ = tiles(height);
    height_ = ceil_div(last_.output.value(), tiles_);
  }

  // The innermost digit of `number`, which counts to extent * others; leaves the others.
  Expr take(Block& block, const char* name, Expr& number, int64_t extent, int64_t others) {
    if (extent == 1) return pool_.integer(0);
    const Expr digit = let(block, name, loop::mod(number, pool_.integer(extent)), 0, extent - 1);
    number = let(block, "rest", loop::floor_div(number, pool_.integer(extent)), 0, others - 1);
    return digit;
  }

  loop::RegArray regs(Block& block, const char* name, int64_t count) {
    const loop::RegArray array = kernel_.add_regs({name, spec_.dtype, lanes_, {count}});
    block.push_back({loop::DeclareRegs{array}});
    return array;
  }

  // `at` in the dim, which lies outside for some of [least, most]; null when for none.
  Expr is_inside(const WindowDim& dim, Expr at, int64_t least, int64_t most) {
    Expr inside;
    if (least < 0) inside = loop::le(pool_.integer(0), at);
    if (most < dim.input.value()) return inside;
    const Expr ends = loop::lt(at, pool_.integer(dim.input.value()));
    return inside ? loop::logical_and(inside, ends) : ends;
  }
  static Expr both(Expr a, Expr b) { return a && b ? loop::logical_and(a, b) : a ? a : b; }

  bool is_unrolled() const { return taps_of_window_ <= kMostUnrolledRows; }

  // Loops over the taps of the outer dims, or straight code where they are few; `inside` says that
  // those so far read the input, where the bounds of their loops do not.
  void emit_taps(Block& block, std::vector<Expr> taps, Expr inside) {
    const size_t level = taps.size();
    if (level + 1 == spec_.dims.size()) return emit_last(block, taps, inside);
    const WindowDim& dim = spec_.dims[level];
    const Var tap = add_var("k", dim.taps);
    taps.push_back(pool_.var(tap));
    if (is_unrolled()) {
      const int64_t reach = (dim.taps - 1) * dim.dilation;
      const Expr at = start_[level] + taps.back() * pool_.integer(dim.dilation);
      inside = both(inside, is_inside(dim, at, -dim.padding,
                                      (dim.output.value() - 1) * dim.stride - dim.padding + reach));
    }
    Block body;
    emit_taps(body, taps, inside);
    block.push_back({For{tap, taps_[level].first, taps_[level].end, 1,
                         is_unrolled() ? LoopKind::unroll : LoopKind::serial, std::move(body)}});
  }

  void emit_last(Block& block, const std::vector<Expr>& taps, Expr inside) {
    if (last_.taps <= kMostUnrolledColumns) return emit_columns(block, taps, last_.taps, inside);
    const Var tap = add_var("k", last_.taps);
    Block body;
    first_tap_ = pool_.var(tap);
    emit_columns(body, taps, 1, inside);
    block.push_back({For{tap, pool_.integer(0), pool_.integer(last_.taps), 1, LoopKind::serial,
                         std::move(body)}});
  }

  // `count` taps of the last dim behind first_tap_: each element goes to all results that want it.
  void emit_columns(Block& block, const std::vector<Expr>& taps, int64_t count, Expr row_inside) {
    const loop::RegArray weights = regs(block, "w", count), element = regs(block, "x", 1);
    for (int64_t k = 0; k < count; ++k)
      block.push_back({loop::SetReg{weights, {pool_.integer(k)}, weight(taps, k)}});
    std::map<int64_t, std::vector<std::pair<int64_t, int64_t>>> readers;  // (result, tap)
    for (int64_t i = 0; i < height_; ++i)
      for (int64_t k = 0; k < count; ++k)
        readers[i * last_.stride + k * last_.dilation].emplace_back(i, k);
    const auto read = [&](loop::RegArray array, int64_t i) {
      return pool_.reg(array, {pool_.integer(i)}, spec_.dtype, lanes_);
    };
    for (const auto& [offset, uses] : readers) {
      block.push_back({loop::SetReg{element, {pool_.integer(0)}, input(taps, offset, row_inside)}});
      for (const auto& [i, k] : uses) {
        const Expr sum = read(sums_, i), x = read(element, 0), w = read(weights, k);
        block.push_back({loop::SetReg{sums_, {pool_.integer(i)}, loop::fma(x, w, sum)}});
      }
    }
  }

  Expr weight(const std::vector<Expr>& taps, int64_t k) {
    Expr tap = pool_.integer(0);
    for (size_t i = 0; i < taps.size(); ++i)
      tap = (tap + taps[i]) * pool_.integer(spec_.dims[i + 1].taps);
    tap = tap + pool_.integer(k);
    if (first_tap_) tap = tap + first_tap_;
    return pool_.load(packed_, tap * pool_.integer(spec_.channels) + channel_, spec_.dtype, lanes_);
  }

  // The input's vector, `offset` behind where the tile's first window starts in the last dim; zero
  // in the padding.
  Expr input(const std::vector<Expr>& taps, int64_t offset, Expr row_inside) {
    Expr column = first_ * pool_.integer(last_.stride) + pool_.integer(offset - last_.padding);
    int64_t most = (tiles_ - 1) * height_ * last_.stride + offset - last_.padding;
    if (first_tap_) {
      column = column + first_tap_ * pool_.integer(last_.dilation);
      most += (last_.taps - 1) * last_.dilation;
    }
    const Expr inside = both(row_inside, is_inside(last_, column, offset - last_.padding, most));
    std::vector<Expr> at;
    for (size_t i = 0; i < start_.size(); ++i)
      at.push_back(start_[i] + taps[i] * pool_.integer(spec_.dims[i].dilation));
    at.push_back(column);
    const Var channel = channel_var();
    Expr x = loop::cast(spec_.input(image_, at, pool_.var(channel)), spec_.dtype);
    if (inside && !masks_all(x, channel)) {
      for (size_t i = 0; i < at.size(); ++i)
        at[i] = loop::max(pool_.integer(0),
                          loop::min(at[i], pool_.integer(spec_.dims[i].input.value() - 1)));
      x = loop::cast(spec_.input(image_, at, pool_.var(channel)), spec_.dtype);
    }
    const Expr mask = inside ? loop::splat(inside, lanes_) : Expr();
    const Expr value =
        loop::substitute(loop::vectorize(x, {channel, lanes_, mask}), channel, channel_);
    return !inside || is_plain_load(x) ? value
                                       : loop::select(mask, value, loop::constant_like(value, 0));
  }

  void emit_result(Block& block, int64_t i) {
    const Var channel = channel_var();
    const Var total =
        kernel_.add_var({"total", loop::VarKind::let, spec_.dtype, 1, INT64_MIN, INT64_MAX});
    const Expr total_read = pool_.var(total, spec_.dtype);
    std::vector<Expr> at = position_;
    at.push_back(first_ + pool_.integer(i));
    const ResultElement result = spec_.epilogue(image_, at, pool_.var(channel), total_read);
    const Expr sum = pool_.reg(sums_, {pool_.integer(i)}, spec_.dtype, lanes_);
    const Expr value =
        loop::vectorize(result.value, {channel, lanes_, {}}, {{total_read.node(), sum}});
    Block store;
    const Expr index = loop::substitute(result.index, channel, channel_);
    store.push_back(
        {loop::Store{result.buffer, index, loop::substitute(value, channel, channel_), {}, false}});
    if ((tiles_ - 1) * height_ + i >= last_.output.value()) {
      loop::If within{
          loop::lt(at.back(), pool_.integer(last_.output.value())), std::move(store), {}};
      store.clear();
      store.push_back({std::move(within)});
    }
    for (loop::Stmt& stmt : store) block.push_back(std::move(stmt));
  }

  loop::BufferRef packed_;
  int lanes_ = 1;
  int64_t taps_of_window_ = 1;
  int64_t vectors_ = 1, tiles_ = 1, height_ = 1;  // of channels; of a row; results of a tile
  Expr channel_, first_;                          // the thread's
  Expr first_tap_;                                // of the last dim, when they are looped over
  loop::RegArray sums_;
};

}  // namespace

void build_window_of_threads(loop::Kernel& kernel, const WindowSpec& spec, loop::BufferRef packed,
                             const Target& target) {
  ThreadWindow(kernel, spec, packed, target).build();
}

}  // namespace lathe
