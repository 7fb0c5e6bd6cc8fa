// The templates of orders: see line_sort.h.
#include "ir/templates/line_sort.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/vectorize.h"
#include "ir/templates/ceil_div.h"

namespace lathe {
namespace {

using loop::Block;
using loop::Expr;
using loop::For;
using loop::LoopKind;
using loop::Var;

constexpr int64_t kUnroll = 4;
constexpr int64_t kTaskSteps = 10000;  // about 10 us
constexpr int kShortDigit = 8, kLongDigit = 11;
constexpr int64_t kLongLine = 4096;  // whose elements outnumber the counters of long digits
constexpr int64_t kFewPlaces = 1024;  // of a line, that are found among the first of its groups
constexpr int64_t kGroupsAPlace = 2;
constexpr int64_t kCounted = 64;  // elements whose order is counted

class LineSort {
 public:
  LineSort(loop::Kernel& kernel, const SortSpec& spec, const Target& target)
      : kernel_(kernel), pool_(*kernel.pool), spec_(spec), length_(pool_.size(spec.length)) {
    lanes_ = target.lanes(8);
    size_ = length_;
    most_ = spec.length.bounds(kernel.symbols).max.value_or(INT64_MAX / 4);
  }

  // Elements are counted in whole vectors, whose last lanes count for nothing.
  void count() {
    const Var line = begin();
    const Dim vectors = ceil_div(spec_.length, lanes_);
    keys_ = scratch("keys", DType::i64, vectors * Dim(lanes_));
    places_ = scratch("places", DType::i64, vectors * Dim(lanes_));
    Block body;
    const auto for_vectors = [&](const std::function<void(Block&, Var)>& fill) {
      const Var at = kernel_.add_loop_var("v", spec_.length);
      Block inside;
      fill(inside, at);
      body.push_back(
          {For{at, pool_.integer(0), length_, lanes_, LoopKind::serial, std::move(inside)}});
    };
    for_vectors([&](Block& inside, Var at) {
      const Expr mask = loop::lt(lanes_at(at), loop::splat(length_, lanes_));
      const Expr element = spec_.element(pool_.var(line), pool_.var(at));
      store(inside, keys_, pool_.var(at), loop::vectorize(element, {at, lanes_, mask}));
    });
    for_vectors([&](Block& inside, Var at) {
      const loop::RegArray count = kernel_.add_regs({"count", DType::i64, lanes_});
      const Expr before = pool_.reg(count, {}, DType::i64, lanes_);
      inside.push_back({loop::DeclareRegs{count}});
      inside.push_back({loop::SetReg{count, {}, loop::splat(pool_.integer(0), lanes_)}});
      const Expr own = let(inside, load(keys_, pool_.var(at), lanes_));
      each(inside, [&](Block& step, Expr k) {
        const Expr other = loop::splat(load(keys_, k), lanes_);
        Expr is_before = loop::lt(other, own);
        if (!spec_.is_packed) {
          const Expr is_earlier = loop::lt(loop::splat(k, lanes_), lanes_at(at));
          is_before =
              loop::logical_or(is_before, loop::logical_and(loop::eq(other, own), is_earlier));
        }
        const Expr one = loop::splat(pool_.integer(1), lanes_),
                   none = loop::splat(pool_.integer(0), lanes_);
        step.push_back({loop::SetReg{count, {}, before + loop::select(is_before, one, none)}});
      });
      store(inside, places_, pool_.var(at), before);
    });
    each(body, [&](Block& step, Expr at) {
      const Expr own = let(step, at);
      const Expr place = let(step, load(places_, at) - pool_.size(spec_.start));
      Block wanted;
      store_result(wanted, pool_.var(line), place, own);
      if (is_whole()) {
        std::move(wanted.begin(), wanted.end(), std::back_inserter(step));
        return;
      }
      const Expr is_wanted = loop::logical_and(loop::le(pool_.integer(0), place),
                                               loop::lt(place, pool_.size(spec_.count)));
      step.push_back({loop::If{is_wanted, std::move(wanted), {}}});
    });
    finish(line, std::move(body), most_ > kTaskSteps ? 1 : most_ * (1 + most_ / lanes_));
  }

  // The elements lie in one half of `keys`, and each digit moves them to the other.
  void sort() {
    const Var line = begin();
    const int longest = most_ < kLongLine ? kShortDigit : kLongDigit;
    digits_ = (spec_.key_bits + longest - 1) / longest;
    digit_bits_ = std::max(kMinDigit, (spec_.key_bits + digits_ - 1) / digits_);
    const DType dtype = spec_.is_packed ? DType::i32 : DType::i64;
    counts_ = scratch("counts", dtype, digits_ * buckets());
    // One more, that there is a first one.
    keys_ = scratch("keys", DType::i64, spec_.length * Dim(2) + Dim(1));
    if (!spec_.is_packed) places_ = scratch("places", DType::i64, spec_.length * Dim(2) + Dim(1));
    Block body;
    size_ = length_;
    const Expr none = pool_.integer(0);
    if (is_whole()) {
      sort_kept(body, pool_.var(line), none);
    } else if (num_groups() == 0) {
      const Expr below = keep_wanted(body, pool_.var(line));
      sort_kept(body, pool_.var(line), below);
    } else {
      keep_first(body, pool_.var(line));
      loop::If choice{loop::le(size_, pool_.integer(kCounted)), {}, {}};
      count_kept(choice.then_body, pool_.var(line));
      sort_kept(choice.else_body, pool_.var(line), none);
      body.push_back({std::move(choice)});
    }
    const int64_t steps = most_ > kTaskSteps ? most_ : (most_ + buckets()) * (digits_ + 1);
    finish(line, std::move(body), steps);
  }

 private:
  static constexpr int kMinDigit = 6;  // whole vectors of counters

  bool is_whole() const { return spec_.count == spec_.length; }
  int64_t buckets() const { return int64_t{1} << digit_bits_; }

  // Sorts the elements that are left, before which so many come that are not.
  void sort_kept(Block& body, Expr line, Expr below) {
    clear_counts(body, 0, digits_);
    each(body, [&](Block& step, Expr at) {
      const Expr key = let(step, is_whole() ? spec_.element(line, at) : load(keys_, at));
      if (is_whole()) store(step, keys_, at, key);
      if (is_whole() && !spec_.is_packed) store(step, places_, at, at);
      for (int digit = 0; digit < digits_; ++digit) count_digit(step, key, digit);
    });
    from_ = kernel_.add_regs({"from", DType::i64});
    const Expr from = pool_.reg(from_, {}, DType::i64);
    body.push_back({loop::DeclareRegs{from_}});
    body.push_back({loop::SetReg{from_, {}, pool_.integer(0)}});
    for (int digit = 0; digit < digits_; ++digit) {
      const Expr count = load(counts_, bucket(load(keys_, from), digit));
      Block move;
      move_by(move, digit);
      body.push_back(
          {loop::If{loop::lt(loop::cast(count, DType::i64), size_), std::move(move), {}}});
    }
    const Expr first = let(body, from + (pool_.size(spec_.start) - below));
    const Expr kept = std::exchange(size_, pool_.size(spec_.count));
    each(body, [&](Block& step, Expr at) {
      const Expr place = spec_.is_packed ? bits_of(load(keys_, first + at), 0, kPositionBits)
                                         : load(places_, first + at);
      store_result(step, line, at, place);
    });
    size_ = kept;
  }

  Var begin() { return kernel_.add_loop_var("line", spec_.lines); }
  void finish(Var line, Block body, int64_t steps) {
    kernel_.grain = std::max<int64_t>(1, kTaskSteps / std::max<int64_t>(1, steps));
    kernel_.body.push_back({For{line, pool_.integer(0), pool_.size(spec_.lines), 1,
                                LoopKind::parallel, std::move(body)}});
  }

  loop::BufferRef scratch(const char* name, DType dtype, const Dim& size) {
    return kernel_.add_buffer({name, dtype, size, loop::Space::scratch, true});
  }
  Expr load(loop::BufferRef buffer, Expr index, int lanes = 1) {
    return pool_.load(buffer, index, kernel_.buffers[buffer.id].dtype, lanes);
  }
  static void store(Block& block, loop::BufferRef buffer, Expr index, Expr value) {
    block.push_back({loop::Store{buffer, index, value, {}, false}});
  }
  void store_result(Block& block, Expr line, Expr at, Expr position) {
    const ResultElement result = spec_.result(line, let(block, at), position);
    store(block, result.buffer, result.index, result.value);
  }
  Expr let(Block& block, Expr value, int64_t min = INT64_MIN, int64_t max = INT64_MAX) {
    const Var var =
        kernel_.add_var({"x", loop::VarKind::let, value->dtype, value->lanes, min, max});
    block.push_back({loop::Let{var, value}});
    return pool_.var(var, value->dtype, value->lanes);
  }
  Expr lanes_at(Var at) { return pool_.ramp(pool_.var(at), 1, lanes_); }

  // fill(block, i) for every element that is left, several in a step.
  using Fill = std::function<void(Block&, Expr)>;
  void each(Block& block, const Fill& fill) {
    const std::optional<Dim> size = loop::as_size(size_);
    const Expr whole = size ? pool_.size(Dim::floor_div(*size, kUnroll) * Dim(kUnroll))
                            : let(block, size_ - bits_of(size_, 0, 2), 0, most_);
    const Var at = kernel_.add_loop_var("i", spec_.length), u = kernel_.add_loop_var("u", kUnroll);
    Block one, several, rest;
    fill(one, pool_.var(at) + pool_.var(u));
    several.push_back(
        {For{u, pool_.integer(0), pool_.integer(kUnroll), 1, LoopKind::unroll, std::move(one)}});
    block.push_back(
        {For{at, pool_.integer(0), whole, kUnroll, LoopKind::serial, std::move(several)}});
    if (whole == size_) return;
    const Var last = kernel_.add_loop_var("i", spec_.length);
    fill(rest, pool_.var(last));
    block.push_back({For{last, whole, size_, 1, LoopKind::serial, std::move(rest)}});
  }

  void clear_counts(Block& body, int first, int end) {
    const DType dtype = kernel_.buffers[counts_.id].dtype;
    const int lanes = dtype == DType::i32 ? 2 * lanes_ : lanes_;
    const Var at = kernel_.add_loop_var("c", digits_ * buckets());
    Block clear;
    store(clear, counts_, pool_.var(at), loop::splat(pool_.integer(0, dtype), lanes));
    body.push_back({For{at, pool_.integer(first * buckets()), pool_.integer(end * buckets()), lanes,
                        LoopKind::serial, std::move(clear)}});
  }

  void count_digit(Block& block, Expr key, int digit) {
    const Expr counter = let(block, bucket(key, digit));
    store(block, counts_, counter, load(counts_, counter) + 1);
  }

  // Groups of a line's elements whose first ones are looked at, where its first few places alone
  // are wanted: 0 for none. Comparing them with each other takes no longer than reading the line.
  int64_t num_groups() const {
    const Dim places = spec_.start + spec_.count;
    if (!places.is_const() || !spec_.length.is_const() || places.value() > kFewPlaces) return 0;
    int64_t groups = 2 * lanes_;
    while (groups < kGroupsAPlace * places.value()) groups *= 2;
    const int64_t length = spec_.length.value();
    return length >= 4 * groups && 16 * length >= groups * groups ? groups : 0;
  }

  // Moves the wanted elements and as few others as may be to the front. Of the first elements of
  // groups the k-th has k elements up to it, so the first k of the line are up to it too.
  void keep_first(Block& body, Expr line) {
    const int64_t groups = num_groups(), length = spec_.length.value();
    const Expr bound = let(body, first_bound(body, line, groups));
    const loop::RegArray kept = kernel_.add_regs({"kept", DType::i64});
    const Expr count = pool_.reg(kept, {}, DType::i64);
    body.push_back({loop::DeclareRegs{kept}});
    body.push_back({loop::SetReg{kept, {}, pool_.integer(0)}});
    const auto append = [&](Block& block, Expr key, Expr at) {
      const Expr place = let(block, count);
      store(block, keys_, place, key);
      if (!spec_.is_packed) store(block, places_, place, at);
      const Expr one = loop::select(loop::le(key, bound), pool_.integer(1), pool_.integer(0));
      block.push_back({loop::SetReg{kept, {}, place + one}});
    };
    const loop::BufferRef near = scratch("near", DType::i64, lanes_);
    const Var at = kernel_.add_loop_var("i", spec_.length),
              lane = kernel_.add_loop_var("u", lanes_);
    Block step, some, one;
    const Expr keys = let(step, loop::vectorize(spec_.element(line, pool_.var(at)), {at, lanes_}));
    store(some, near, pool_.integer(0), keys);
    append(one, let(one, load(near, pool_.var(lane))), pool_.var(at) + pool_.var(lane));
    some.push_back(
        {For{lane, pool_.integer(0), pool_.integer(lanes_), 1, LoopKind::unroll, std::move(one)}});
    step.push_back({loop::If{
        loop::reduce_lanes(loop::ReduceOp::any, loop::le(keys, loop::splat(bound, lanes_))),
        std::move(some),
        {}}});
    const Expr whole = pool_.integer(length / lanes_ * lanes_);
    body.push_back({For{at, pool_.integer(0), whole, lanes_, LoopKind::serial, std::move(step)}});
    const Var last = kernel_.add_loop_var("i", spec_.length);
    Block rest;
    append(rest, let(rest, spec_.element(line, pool_.var(last))), pool_.var(last));
    if (length % lanes_ > 0)
      body.push_back({For{last, whole, length_, 1, LoopKind::serial, std::move(rest)}});
    size_ = let(body, count, 0, most_);
  }

  // The key of the last wanted place among the first elements of each group, which are as many
  // apart as there are groups.
  Expr first_bound(Block& body, Expr line, int64_t groups) {
    const int64_t length = spec_.length.value();
    const loop::BufferRef firsts = scratch("firsts", DType::i64, groups);
    const auto along = [&](Block& block, Var var, int64_t count, Block inside) {
      block.push_back({For{var, pool_.integer(0), pool_.integer(count), lanes_, LoopKind::serial,
                           std::move(inside)}});
    };
    const auto take = [&](Block& block, Expr base, int64_t count) {
      const Var group = kernel_.add_loop_var("g", groups);
      Block inside;
      const Expr element = spec_.element(line, base + pool_.var(group));
      const Expr keys = loop::vectorize(element, {group, lanes_});
      const bool is_first = loop::as_int(base) != nullptr && loop::as_int(base)->value == 0;
      store(inside, firsts, pool_.var(group),
            is_first ? keys : loop::min(load(firsts, pool_.var(group), lanes_), keys));
      along(block, group, count, std::move(inside));
    };
    take(body, pool_.integer(0), groups);
    const Var base = kernel_.add_loop_var("i", spec_.length);
    const int64_t whole = length / groups * groups;
    Block next;
    take(next, pool_.var(base), groups);
    body.push_back({For{base, pool_.integer(groups), pool_.integer(whole), groups, LoopKind::serial,
                        std::move(next)}});
    // Those of less than a vector are no group's: a bound may be too high.
    const int64_t rest = (length - whole) / lanes_ * lanes_;
    if (rest > 0) take(body, pool_.integer(whole), rest);

    const auto lanes_of = [&](int64_t value) { return loop::splat(pool_.integer(value), lanes_); };
    const loop::RegArray bounds = kernel_.add_regs({"bound", DType::i64, lanes_}),
                         less = kernel_.add_regs({"less", DType::i64, lanes_});
    const Expr bound = pool_.reg(bounds, {}, DType::i64, lanes_),
               count = pool_.reg(less, {}, DType::i64, lanes_);
    body.push_back({loop::DeclareRegs{bounds}});
    body.push_back({loop::SetReg{bounds, {}, lanes_of(INT64_MIN)}});
    const Var group = kernel_.add_loop_var("g", groups), other = kernel_.add_loop_var("o", groups),
              u = kernel_.add_loop_var("u", kUnroll);
    Block inside, compare, several;
    inside.push_back({loop::DeclareRegs{less}});
    inside.push_back({loop::SetReg{less, {}, lanes_of(0)}});
    const Expr own = let(inside, load(firsts, pool_.var(group), lanes_));
    const Expr before =
        loop::lt(loop::splat(load(firsts, pool_.var(other) + pool_.var(u)), lanes_), own);
    compare.push_back(
        {loop::SetReg{less, {}, count + loop::select(before, lanes_of(1), lanes_of(0))}});
    several.push_back({For{u, pool_.integer(0), pool_.integer(kUnroll), 1, LoopKind::unroll,
                           std::move(compare)}});
    inside.push_back({For{other, pool_.integer(0), pool_.integer(groups), kUnroll, LoopKind::serial,
                          std::move(several)}});
    const Expr is_within = loop::lt(count, lanes_of((spec_.start + spec_.count).value()));
    inside.push_back(
        {loop::SetReg{bounds, {}, loop::select(is_within, loop::max(bound, own), bound)}});
    along(body, group, groups, std::move(inside));
    return loop::reduce_lanes(loop::ReduceOp::max, bound);
  }

  // Each of the few elements that are left to its place.
  void count_kept(Block& body, Expr line) {
    const Var at = kernel_.add_loop_var("i", kCounted + 1),
              other = kernel_.add_loop_var("k", kCounted + 1);
    const loop::RegArray less = kernel_.add_regs({"less", DType::i64});
    const Expr count = pool_.reg(less, {}, DType::i64);
    Block step, compare;
    const Expr end = loop::min(size_, pool_.integer(kCounted));  // which is what it costs at most
    const Expr own = let(step, load(keys_, pool_.var(at)));
    step.push_back({loop::DeclareRegs{less}});
    step.push_back({loop::SetReg{less, {}, pool_.integer(0)}});
    const Expr key = let(compare, load(keys_, pool_.var(other)));
    Expr is_before = loop::lt(key, own);
    if (!spec_.is_packed)
      is_before = loop::logical_or(
          is_before,
          loop::logical_and(loop::eq(key, own), loop::lt(pool_.var(other), pool_.var(at))));
    compare.push_back({loop::SetReg{
        less, {}, count + loop::select(is_before, pool_.integer(1), pool_.integer(0))}});
    step.push_back({For{other, pool_.integer(0), end, 1, LoopKind::serial, std::move(compare)}});
    const Expr place = let(step, count - pool_.size(spec_.start));
    const Expr is_wanted = loop::logical_and(loop::le(pool_.integer(0), place),
                                             loop::lt(place, pool_.size(spec_.count)));
    Block wanted;
    store_result(wanted, line, place,
                 spec_.is_packed ? bits_of(own, 0, kPositionBits) : load(places_, pool_.var(at)));
    step.push_back({loop::If{is_wanted, std::move(wanted), {}}});
    body.push_back({For{at, pool_.integer(0), end, 1, LoopKind::serial, std::move(step)}});
  }

  // Moves elements whose highest digit wanted places have to the front; gives how many come before
  // them all.
  Expr keep_wanted(Block& body, Expr line) {
    const int top = digits_ - 1;
    clear_counts(body, top, digits_);
    each(body, [&](Block& step, Expr at) {
      const Expr key = let(step, spec_.element(line, at));
      store(step, keys_, at, key);
      count_digit(step, key, top);
    });
    const auto add_reg = [&](const char* name) {
      const loop::RegArray reg = kernel_.add_regs({name, DType::i64});
      body.push_back({loop::DeclareRegs{reg}});
      body.push_back({loop::SetReg{reg, {}, pool_.integer(0)}});
      return reg;
    };
    const auto read = [&](loop::RegArray reg) { return pool_.reg(reg, {}, DType::i64); };
    const loop::RegArray sum = add_reg("sum"), below = add_reg("below"), lowest = add_reg("lowest"),
                         highest = add_reg("highest"), kept = add_reg("kept");
    const Var counter = kernel_.add_var(
        {"c", loop::VarKind::loop, DType::i64, 1, top * buckets(), digits_ * buckets() - 1});
    Block step;
    const Expr before = let(step, read(sum));
    const auto take = [&](loop::RegArray reg, Expr condition, Expr value) {
      step.push_back({loop::SetReg{reg, {}, loop::select(condition, value, read(reg))}});
    };
    const Expr is_low = loop::le(before, pool_.size(spec_.start));
    take(lowest, is_low, pool_.var(counter));
    take(below, is_low, before);
    take(highest, loop::lt(before, pool_.size(spec_.start + spec_.count)), pool_.var(counter));
    const Expr count = loop::cast(load(counts_, pool_.var(counter)), DType::i64);
    step.push_back({loop::SetReg{sum, {}, before + count}});
    body.push_back({For{counter, pool_.integer(top * buckets()), pool_.integer(digits_ * buckets()),
                        1, LoopKind::serial, std::move(step)}});
    const Expr low = let(body, read(lowest)), high = let(body, read(highest));
    each(body, [&](Block& each_step, Expr at) {
      const Expr key = let(each_step, load(keys_, at)), place = let(each_step, read(kept));
      const Expr own = let(each_step, bucket(key, top));
      store(each_step, keys_, place, key);
      if (!spec_.is_packed) store(each_step, places_, place, at);
      const Expr is_kept = loop::logical_and(loop::le(low, own), loop::le(own, high));
      const Expr one = loop::select(is_kept, pool_.integer(1), pool_.integer(0));
      each_step.push_back({loop::SetReg{kept, {}, place + one}});
    });
    size_ = let(body, read(kept), 0, most_);
    return let(body, read(below));
  }

  Expr bits_of(Expr key, int first, int count) {
    const Expr low =
        first == 0 ? key : loop::binary(loop::BinaryOp::shift_right, key, pool_.integer(first));
    return loop::binary(loop::BinaryOp::bit_and, low, pool_.integer((int64_t{1} << count) - 1));
  }
  // The counter of a key's digit. Negative keys come first: the top bit of those with a sign turns.
  Expr bucket(Expr key, int digit) {
    const int low = digit * digit_bits_, count = std::min(digit_bits_, spec_.key_bits - low);
    Expr value = bits_of(key, low + (spec_.is_packed ? kPositionBits : 0), count);
    if (spec_.key_bits == 64 && low + count == 64)
      value =
          loop::binary(loop::BinaryOp::bit_xor, value, pool_.integer(int64_t{1} << (count - 1)));
    return value + pool_.integer(digit * buckets());
  }

  // Counts become the places that the next element of each digit goes to.
  void move_by(Block& block, int digit) {
    const DType dtype = kernel_.buffers[counts_.id].dtype;
    const Expr from = let(block, pool_.reg(from_, {}, DType::i64));
    const Expr to = let(block, length_ - from);
    const loop::RegArray sum = kernel_.add_regs({"sum", dtype});
    const Expr so_far = pool_.reg(sum, {}, dtype);
    block.push_back({loop::DeclareRegs{sum}});
    block.push_back({loop::SetReg{sum, {}, loop::cast(to, dtype)}});
    const Var counter = kernel_.add_var(
        {"c", loop::VarKind::loop, DType::i64, 1, digit * buckets(), (digit + 1) * buckets() - 1});
    const Var u = kernel_.add_loop_var("u", kUnroll);
    Block add, unrolled;
    const Expr at = pool_.var(counter) + pool_.var(u);
    const Expr count = let(add, load(counts_, at));
    store(add, counts_, at, so_far);
    add.push_back({loop::SetReg{sum, {}, so_far + count}});
    unrolled.push_back(
        {For{u, pool_.integer(0), pool_.integer(kUnroll), 1, LoopKind::unroll, std::move(add)}});
    block.push_back(
        {For{counter, pool_.integer(digit * buckets()), pool_.integer((digit + 1) * buckets()),
             kUnroll, LoopKind::serial, std::move(unrolled)}});
    each(block, [&](Block& step, Expr i) {
      const Expr key = let(step, load(keys_, from + i));
      const Expr own = let(step, bucket(key, digit));
      const Expr place = let(step, load(counts_, own));
      store(step, counts_, own, place + 1);
      const Expr target = loop::cast(place, DType::i64);
      store(step, keys_, target, key);
      if (!spec_.is_packed) store(step, places_, target, load(places_, from + i));
    });
    block.push_back({loop::SetReg{from_, {}, to}});
  }

  loop::Kernel& kernel_;
  loop::Pool& pool_;
  const SortSpec& spec_;
  Expr length_;
  Expr size_;  // elements that are left
  int lanes_ = 1;
  int64_t most_;  // elements of a line
  int digits_ = 1, digit_bits_ = 8;
  loop::BufferRef keys_, places_, counts_;
  loop::RegArray from_;
};

}  // namespace

void build_counted_order(loop::Kernel& kernel, const SortSpec& spec, const Target& target) {
  LineSort(kernel, spec, target).count();
}

void build_radix_order(loop::Kernel& kernel, const SortSpec& spec, const Target& target) {
  LineSort(kernel, spec, target).sort();
}

}  // namespace lathe
