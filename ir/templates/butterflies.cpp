// The template of Fourier transforms: see butterflies.h.
#include "ir/templates/butterflies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/butterfly_math.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kTaskNumbers = 8000;  // about 10 us of steps
constexpr int64_t kMostThreads = 256;

// The largest power of two that is no larger.
int64_t floor_power(int64_t size) {
  int64_t power = 1;
  while (2 * power <= size) power *= 2;
  return power;
}

class Butterflies {
 public:
  Butterflies(loop::Kernel& kernel, const ButterflySpec& spec, const Target& target)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec), extents_(spec.lines) {
    for (const int64_t radix : spec.radices) points_ *= radix;
    has_fma_ = target.has_fma;
    if (target.groups) {
      threads_ = std::min<int64_t>(kMostThreads, target.groups->most);
      while (threads_ > target.groups->warp && threads_ >= points_ / 2) threads_ /= 2;
      shared_bytes_ = target.groups->shared_bytes;
      return;
    }
    lanes_ = target.lanes(dtype_bytes(spec.dtype));
    if (!spec.has_lanes) return;
    const int64_t columns = extents_.back().value();
    lanes_ = std::min(lanes_, floor_power(columns));
    side_ = lanes_;
    extents_.back() = (columns + lanes_ - 1) / lanes_;
  }

  void build() {
    Dim tasks = 1;
    for (const Dim& extent : extents_) tasks = tasks * extent;
    const Var task = kernel_.add_loop_var("task", tasks);
    task_ = pool_.var(task);
    Block body, own;
    block_ = &body;
    place_line();
    add_planes(tasks);
    const Var thread = kernel_.add_loop_var("thread", std::max<int64_t>(1, threads_));
    thread_ = pool_.var(thread);
    if (threads_ > 0) block_ = &own;
    int64_t run = 1;
    for (size_t step = 0; step < spec_.radices.size(); ++step) {
      emit_step(step, run);
      run *= spec_.radices[step];
    }
    if (spec_.form == FourierForm::to_half) emit_half();
    if (threads_ > 0)
      body.push_back(
          {For{thread, integer(0), integer(threads_), 1, LoopKind::thread, std::move(own)}});
    kernel_.grain = std::max<int64_t>(1, kTaskNumbers / (points_ * side_));
    kernel_.body.push_back(
        {For{task, integer(0), pool_.size(tasks), 1, LoopKind::parallel, std::move(body)}});
  }

 private:
  // A workspace's real and imaginary parts.
  struct Planes {
    loop::BufferRef buffers[2];
    Expr first[2];  // where a line's part begins
  };
  // Lanes of a step: `width` of them from number `at` on, of which `var` is lane 0's place.
  struct Lanes {
    int width = 1;
    std::optional<Var> var = {};
  };

  Expr integer(int64_t value) const { return pool_.integer(value); }

  Expr let(Expr value, int64_t max) {
    if (loop::as_int(value) || std::holds_alternative<loop::VarRead>(value->kind)) return value;
    const Var var = kernel_.add_var({"at", loop::VarKind::let, DType::i64, 1, 0, max});
    block_->push_back({loop::Let{var, value}});
    return pool_.var(var);
  }

  // Computed here, and in a register from here on.
  Number keep(const Number& x) {
    Number kept;
    for (const bool is_imag : {false, true}) {
      const Expr value = is_imag ? x.im : x.re;
      const Var var = kernel_.add_var(
          {"x", loop::VarKind::let, value->dtype, value->lanes, INT64_MIN, INT64_MAX});
      block_->push_back({loop::Let{var, value}});
      (is_imag ? kept.im : kept.re) = pool_.var(var, value->dtype, value->lanes);
    }
    return kept;
  }

  // fill(i) for i from `first` on, below `end`.
  template <class Fill>
  void loop(Expr first, int64_t end, int64_t step, const Fill& fill) {
    const Var var = kernel_.add_loop_var("i", end);
    Block inside;
    Block* const outside = std::exchange(block_, &inside);
    fill(var);
    block_ = outside;
    block_->push_back({For{var, first, integer(end), step, LoopKind::serial, std::move(inside)}});
  }

  // fill(first) where vectors of `width` begin: the last of them where it still is whole.
  template <class Fill>
  void loop_vectors(int64_t end, int64_t width, const Fill& fill) {
    loop(integer(0), end, width, [&](Var var) {
      fill(end % width == 0 ? var : whole_vector(pool_.var(var), end - width));
    });
  }
  Var whole_vector(Expr at, int64_t last) {
    return std::get<loop::VarRead>(let(loop::min(at, integer(last)), last)->kind).var;
  }

  void barrier() {
    if (threads_ > 0) block_->push_back({loop::Barrier{}});
  }

  // --- where things are

  void place_line() {
    line_.resize(extents_.size());
    Expr left = task_;
    for (size_t i = line_.size(); i-- > 0;) {
      const Expr extent = pool_.size(extents_[i]);
      const Var var = kernel_.add_loop_var("line", extents_[i]);
      kernel_.vars[var.id].kind = loop::VarKind::let;
      block_->push_back({loop::Let{var, i == 0 ? left : loop::mod(left, extent)}});
      line_[i] = pool_.var(var);
      left = loop::floor_div(left, extent);
    }
    if (side_ == 1) return;
    const int64_t last = spec_.lines.back().value() - side_;
    const Var first = kernel_.add_var({"column", loop::VarKind::let, DType::i64, 1, 0, last});
    const Expr column = loop::min(line_.back() * integer(side_), integer(last));
    block_->push_back({loop::Let{first, column}});
    column_ = first;
    line_.back() = pool_.var(first);
  }

  size_t num_planes() const {
    const size_t last = spec_.form == FourierForm::to_half ? 0 : 1;
    return std::min<size_t>(2, spec_.radices.size() - last);
  }

  // Vectors may reach beyond the last number.
  void add_planes(const Dim& tasks) {
    const int64_t size = points_ * side_ + (threads_ > 0 ? 1 : std::max(lanes_, side_));
    const int64_t all = size * 2 * static_cast<int64_t>(num_planes());
    const bool is_global = threads_ > 0 && all * dtype_bytes(spec_.dtype) > shared_bytes_;
    loop::BufferRef global;
    if (is_global) global = spec_.global_workspace(tasks * Dim(all));
    for (size_t i = 0; i < num_planes(); ++i) {
      for (size_t part = 0; part < 2; ++part) {
        if (is_global) {
          planes_[i].buffers[part] = global;
          planes_[i].first[part] =
              task_ * integer(all) + integer(static_cast<int64_t>(2 * i + part) * size);
        } else {
          const loop::Space space = threads_ > 0 ? loop::Space::shared : loop::Space::scratch;
          planes_[i].buffers[part] =
              kernel_.add_buffer({part == 0 ? "re" : "im", spec_.dtype, size, space, true});
          planes_[i].first[part] = integer(0);
        }
      }
    }
  }

  Expr load(size_t plane, int part, Expr at, const Lanes& lanes) {
    const Expr index = planes_[plane].first[part] + at * integer(side_);
    const loop::BufferRef buffer = planes_[plane].buffers[part];
    if (!lanes.var || side_ > 1) return pool_.load(buffer, index, spec_.dtype, lanes.width);
    return vectorized(pool_.load(buffer, index, spec_.dtype), lanes);
  }
  Number load(size_t plane, Expr at, const Lanes& lanes) {
    return {load(plane, 0, at, lanes), load(plane, 1, at, lanes)};
  }
  void store(size_t plane, Expr at, const Number& x) {
    for (int part = 0; part < 2; ++part)
      block_->push_back({loop::Store{planes_[plane].buffers[part],
                                     planes_[plane].first[part] + at * integer(side_),
                                     part == 0 ? x.re : x.im,
                                     {},
                                     false}});
  }

  Expr vectorized(Expr scalar, const Lanes& lanes) const {
    if (lanes.width == 1) return scalar;
    return loop::vectorize(scalar, {side_ > 1 ? *column_ : *lanes.var, lanes.width, {}, true});
  }

  // --- operands and results

  bool is_swapped() const { return spec_.is_inverse || spec_.form == FourierForm::from_half; }

  Number given(Expr at) const { return {spec_.input(line_, at, 0), spec_.input(line_, at, 1)}; }

  // exp(-pi i at / points).
  Number half_turn(Expr at) const {
    return {spec_.turn(integer(spec_.first_half) + at),
            spec_.turn(integer(spec_.first_half + points_ + 1) + at)};
  }

  // Of half a spectrum X, X' from its end: (X + conj X') + i (X - conj X') / turn, of which the
  // inverse transform has the reals in pairs. What is imaginary at the ends does not count.
  Number joined(Expr at) const {
    Number x = given(at), y = given(integer(points_) - at);
    const Expr is_end = loop::eq(at, integer(0));
    x.im = loop::select(is_end, loop::constant_like(x.im, 0), x.im);
    y.im = loop::select(is_end, loop::constant_like(y.im, 0), y.im);
    const Number turn = half_turn(at), d{x.re - y.re, x.im + y.im};
    return {(x.re + y.re) + (turn.im * d.re - turn.re * d.im),
            (x.im - y.im) + (turn.re * d.re + turn.im * d.im)};
  }

  // An inverse transform is one of numbers whose parts are swapped, before and after.
  Number input(Expr at, const Lanes& lanes) {
    Number x = spec_.form == FourierForm::from_half ? joined(at) : given(at);
    if (is_swapped()) std::swap(x.re, x.im);
    return {vectorized(x.re, lanes), vectorized(x.im, lanes)};
  }

  void write(Expr at, Number x, const Lanes& lanes, double scale) {
    if (scale != 1) x = {x.re * scale, x.im * scale};
    if (is_swapped()) std::swap(x.re, x.im);
    const ResultElement re = spec_.result(line_, at, 0), im = spec_.result(line_, at, 1);
    const DType dtype = kernel_.buffers[re.buffer.id].dtype;
    x = keep({loop::cast(x.re, dtype), loop::cast(x.im, dtype)});
    const auto put = [&](Expr index, Expr value) {
      block_->push_back({loop::Store{re.buffer, index, value, {}, false}});
    };
    const Expr first = vectorized(re.index, lanes), second = vectorized(im.index, lanes);
    const auto ramp_of = [](Expr index, int64_t stride) {
      const auto* ramp = std::get_if<loop::Ramp>(&index->kind);
      return ramp != nullptr && ramp->stride == stride ? ramp : nullptr;
    };
    const loop::Linear apart = loop::linear(im.index - re.index);
    const loop::Ramp* pairs = ramp_of(first, 2);
    if (pairs != nullptr && apart.terms.empty() && apart.constant == 1) {
      put(pairs->base, zipped(x.re, x.im, 1, false));
      put(pairs->base + integer(lanes.width), zipped(x.re, x.im, 1, true));
      return;
    }
    put(ramp_of(first, 1) != nullptr ? ramp_of(first, 1)->base : first, x.re);
    put(ramp_of(second, 1) != nullptr ? ramp_of(second, 1)->base : second, x.im);
  }

  // --- steps

  struct Step {
    size_t number;
    int64_t radix, run, rest;
    bool is_first, is_last;
  };

  void emit_step(size_t number, int64_t run) {
    const int64_t radix = spec_.radices[number];
    const bool is_last = number + 1 == spec_.radices.size() && spec_.form != FourierForm::to_half;
    const Step step{number, radix, run, points_ / run / radix, number == 0, is_last};
    const int64_t count = step.rest * run;
    if (threads_ > 0) {
      loop(thread_, count, threads_, [&](Var at) {
        const Expr i = pool_.var(at);
        emit_butterfly(step, let(loop::floor_div(i, integer(run)), step.rest - 1),
                       let(loop::mod(i, integer(run)), run - 1), {});
      });
      barrier();
      return;
    }
    if (side_ > 1) {
      each_turn(step, [&](Expr p) {
        loop(integer(0), run, 1, [&](Var t) {
          emit_butterfly(step, p, pool_.var(t), {static_cast<int>(lanes_), column_});
        });
      });
      return;
    }
    const int64_t width = std::min(lanes_, floor_power(count));
    if (run < width) {
      emit_short_runs(step, width);
      return;
    }
    each_turn(step, [&](Expr p) {
      loop_vectors(run, width, [&](Var t) {
        emit_butterfly(step, p, pool_.var(t), {static_cast<int>(width), t});
      });
    });
  }

  template <class Fill>
  void each_turn(const Step& step, const Fill& fill) {
    if (step.rest == 1) {
      fill(integer(0));
    } else {
      loop(integer(0), step.rest, 1, [&](Var p) { fill(pool_.var(p)); });
    }
  }

  size_t source_of(const Step& step) const { return (step.number + 1) % 2; }

  // Element l of the butterfly that begins at `at`.
  Number read(const Step& step, Expr at, int64_t l, const Lanes& lanes) {
    const Expr place = at + integer(l * step.run * step.rest);
    return keep(step.is_first ? input(place, lanes) : load(source_of(step), place, lanes));
  }

  std::vector<Number> butterfly(const Step& step, Expr at, const Lanes& lanes) {
    std::vector<Number> x;
    for (int64_t l = 0; l < step.radix; ++l) x.push_back(read(step, at, l, lanes));
    return short_transform(std::move(x), has_fma_, [this](const Number& y) { return keep(y); });
  }

  // Of result k, at the p in `turn`.
  Number turn_of(const Step& step, int64_t k, Expr p) const {
    const int64_t first = spec_.first_turns[step.number] + 2 * (k - 1) * step.rest;
    return {spec_.turn(integer(first) + p), spec_.turn(integer(first + step.rest) + p)};
  }

  void emit_butterfly(const Step& step, Expr p, Expr q, const Lanes& lanes) {
    const std::vector<Number> y = butterfly(step, p * integer(step.run) + q, lanes);
    for (int64_t k = 0; k < step.radix; ++k) {
      Number own = y[static_cast<size_t>(k)];
      if (k > 0 && step.rest > 1) {
        const Number turn = turn_of(step, k, p);
        own = turned(own, {loop::splat(turn.re, lanes.width), loop::splat(turn.im, lanes.width)},
                     has_fma_);
      }
      const Expr at = p * integer(step.run * step.radix) + q + integer(k * step.run);
      if (step.is_last) {
        write(at, own, lanes, spec_.scale);
      } else {
        store(1 - source_of(step), at, own);
      }
    }
  }

  // Several runs of a vector at once: what results of theirs lie side by side comes from several
  // registers. Lanes behind the last run write what is written over, by the next vectors.
  void emit_short_runs(const Step& step, int64_t width) {
    const int64_t runs = width / step.run, used = runs * step.run;
    loop_vectors(step.rest * step.run, used, [&](Var first) {
      const Lanes lanes{static_cast<int>(width), first};
      const Expr at = pool_.var(first);
      std::vector<Number> y = butterfly(step, at, lanes);
      const Expr p = let(loop::floor_div(at, integer(step.run)), step.rest - 1);
      if (step.rest > 1)
        for (int64_t k = 1; k < step.radix; ++k) turn_runs(step, k, p, width, y);
      const ShortRuns order{step.radix, step.run, width};
      for (const auto part : {&Number::re, &Number::im}) {
        std::vector<Expr> own;
        for (const Number& x : y) own.push_back(x.*part);
        own = in_order(std::move(own), order);
        for (size_t t = 0; t < own.size(); ++t) y[t].*part = own[t];
      }
      for (size_t t = 0; t < y.size(); ++t)
        store(1 - source_of(step), at * integer(step.radix) + integer(int64_t(t) * used), y[t]);
    });
  }

  void turn_runs(const Step& step, int64_t k, Expr p, int64_t width, std::vector<Number>& y) {
    const Var var = std::get<loop::VarRead>(p->kind).var;
    Number turn = turn_of(step, k, p);
    std::vector<int> places;
    for (int64_t i = 0; i < width; ++i) places.push_back(static_cast<int>(i / step.run));
    for (const auto part : {&Number::re, &Number::im}) {
      Expr own = loop::vectorize(turn.*part, {var, static_cast<int>(width), {}, true});
      turn.*part = step.run == 1 ? own : loop::shuffle(own, own, places);
    }
    Number& own = y[static_cast<size_t>(k)];
    own = keep(turned(own, turn, has_fma_));
  }

  // Half the spectrum of the reals that were taken in pairs, whose spectrum is Z, with Z' from its
  // end: ((Z + conj Z') - i turn (Z - conj Z')) / 2.
  void emit_half() {
    const size_t from = spec_.radices.size() % 2 == 1 ? 0 : 1;
    const auto half = [&](Expr at, const Lanes& lanes) {
      const Number z = keep(load(from, at, lanes)),
                   y = keep(load(from, integer(points_) - at, lanes));
      Number turn = half_turn(at);
      if (side_ == 1) turn = {vectorized(turn.re, lanes), vectorized(turn.im, lanes)};
      const Number own = turned({z.im + y.im, y.re - z.re}, splat(turn, lanes.width), has_fma_);
      write(at, {z.re + y.re + own.re, z.im - y.im + own.im}, lanes, spec_.scale / 2);
    };
    end_with_first(from);
    if (threads_ > 0 || side_ > 1) {
      loop(threads_ > 0 ? thread_ : integer(0), points_ + 1, std::max<int64_t>(1, threads_),
           [&](Var var) { half(pool_.var(var), {static_cast<int>(side_), column_}); });
      return;
    }
    const int64_t width = std::min(lanes_, floor_power(points_ + 1));
    loop_vectors(points_ + 1, width,
                 [&](Var var) { half(pool_.var(var), {static_cast<int>(width), var}); });
  }

  static Number splat(const Number& x, int width) {
    return {loop::splat(x.re, width), loop::splat(x.im, width)};
  }

  // Behind the last number comes the first one again.
  void end_with_first(size_t plane) {
    Block* const outside = block_;
    Block inside;
    if (threads_ > 0) block_ = &inside;
    store(plane, integer(points_), keep(load(plane, integer(0), {static_cast<int>(side_)})));
    block_ = outside;
    if (threads_ == 0) return;
    block_->push_back({loop::If{loop::eq(thread_, integer(0)), std::move(inside), {}}});
    barrier();
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const ButterflySpec& spec_;
  std::vector<Dim> extents_;  // of tasks
  int64_t points_ = 1;        // of a line, that steps work on
  int64_t lanes_ = 1;
  int64_t side_ = 1;     // lines side by side, which are lanes then
  int64_t threads_ = 0;  // that share a line; none: one has it
  int64_t shared_bytes_ = 0;
  bool has_fma_ = true;
  Block* block_ = nullptr;
  Expr task_, thread_;
  std::vector<Expr> line_;
  std::optional<Var> column_;  // the first of the lines side by side
  Planes planes_[2];           // the first step writes the first of them
};

}  // namespace

void build_butterflies(loop::Kernel& kernel, const ButterflySpec& spec, const Target& target) {
  Butterflies(kernel, spec, target).build();
}

}  // namespace lathe
