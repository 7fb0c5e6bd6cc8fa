// Few long sums, where threads share vectors: parts of each sum at once, then the sum of the parts.
//
// A global average pool has a result for each channel of each image, which is far from a thread
// for each that the machine could run. Loops then either leave most of it idle or give a block of
// threads to each result, whose elements lie channels apart. Parts of the sums fill the machine,
// with neighbouring channels side by side; what they leave is short.
//
// Of a position (argmax) a part leaves where its best element is. The best of these few is found by
// computing them again.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "fmt/format.h"
#include "ir/loop/linear.h"
#include "ir/templates/collapse.h"
#include "ir/templates/lane_price.h"
#include "passes/lowering/kernel_context.h"
#include "passes/lowering/kernel_def.h"
#include "passes/lowering/lowering.h"

namespace lathe {
namespace {

using loop::Expr;

constexpr int64_t kLeastTerms = 8;   // of a part, for each of the threads that share its sum
constexpr int64_t kFewestParts = 4;  // fewer do not pay for a second launch

struct Sum {
  loop::Reduce reduce;
  DType dtype;
};

// The one reduction of an element, of known extents, its loops collapsed.
std::optional<Sum> only_sum(Expr value, loop::Kernel& kernel) {
  std::optional<Sum> found;
  int count = 0;
  loop::for_each(value, [&](Expr e) {
    auto* reduce = std::get_if<loop::Reduce>(&e->kind);
    if (reduce == nullptr) return;
    found = Sum{*reduce, e->dtype};
    ++count;
  });
  if (count != 1 || found->reduce.vars.empty()) return std::nullopt;
  for (Expr extent : found->reduce.extents)
    if (loop::as_int(extent) == nullptr) return std::nullopt;
  collapse(kernel, found->reduce);
  return found;
}

int64_t extent_at(const loop::Reduce& reduce, size_t i) {
  return loop::as_int(reduce.extents[i])->value;
}

bool is_position(const Sum& sum) {
  return sum.reduce.op == loop::ReduceOp::argmax || sum.reduce.op == loop::ReduceOp::argmin;
}

// How many parts of the first loop fill the machine, when no more than the lanes of one thread are
// neighbours. A thread has neighbouring results where those are neighbours in memory; otherwise a
// group of threads has each sum, along the variable that suits it.
int64_t count_parts(const loop::Reduce& reduce, const ElementLoops& results, const Target& target,
                    int64_t own) {
  int64_t terms = 1, num_results = 1;
  for (size_t i = 0; i < reduce.extents.size(); ++i) terms *= extent_at(reduce, i);
  for (const Dim& extent : results.extents) num_results *= extent.value();
  const LaneChoice along = cheapest_lanes(reduce, own);
  const bool has_columns =
      !results.vars.empty() && lane_price(reduce.body, results.vars.back(),
                                          results.extents.back().value(), own) <= along.price;
  const int64_t group = std::clamp<int64_t>((along.extent + own - 1) / own, 1, target.groups->most);
  const int64_t sharing = has_columns ? 1 : group * own;  // terms that are added at once
  const int64_t threads = has_columns ? (num_results + own - 1) / own : num_results * group;
  const auto most = static_cast<int64_t>(4 * std::sqrt(static_cast<double>(terms)));
  return std::min({target.groups->filling / threads, terms / (sharing * kLeastTerms), most,
                   extent_at(reduce, 0)});
}

// Iterations of a part: where about so many parts can be, they are alike and of whole vectors.
int64_t part_length(const loop::Reduce& reduce, int64_t wanted, int64_t own) {
  const int64_t extent = extent_at(reduce, 0);
  for (int64_t parts = wanted; parts < 2 * wanted; ++parts)
    if (extent % parts == 0 && (reduce.vars.size() > 1 || extent / parts % own == 0))
      return extent / parts;
  return (extent + wanted - 1) / wanted;
}

// Elements of one iteration of the first loop.
int64_t inner_elements(const loop::Reduce& reduce) {
  int64_t elements = 1;
  for (size_t i = 1; i < reduce.extents.size(); ++i) elements *= extent_at(reduce, i);
  return elements;
}

// What a part leaves: the sum over `length` iterations of the first loop from part*length on, or
// the position of its best element; beyond the loop's end nothing is added.
Expr part_of(const Sum& sum, Expr part, int64_t length, KernelContext& kernel) {
  const loop::Reduce& reduce = sum.reduce;
  loop::Pool& pool = kernel.pool();
  const int64_t extent = extent_at(reduce, 0);
  const loop::Var own = kernel.fresh_var(length);
  const Expr at = part * pool.integer(length) + pool.var(own);
  const bool is_even = extent % length == 0;
  const Expr within = is_even ? at : loop::min(at, pool.integer(extent - 1));
  Expr body = loop::substitute(reduce.body, reduce.vars.front(), within);
  if (!is_even) {
    const loop::ReduceOp order = reduce.op == loop::ReduceOp::argmax   ? loop::ReduceOp::max
                                 : reduce.op == loop::ReduceOp::argmin ? loop::ReduceOp::min
                                                                       : reduce.op;
    const Expr nothing = pool.number(loop::identity(order, body->dtype), body->dtype);
    body = loop::select(loop::lt(at, pool.integer(extent)), body, nothing);
  }
  std::vector<loop::Var> vars = reduce.vars;
  std::vector<Expr> extents = reduce.extents;
  vars.front() = own;
  extents.front() = pool.integer(length);
  const Expr result = loop::reduce(reduce.op, std::move(vars), std::move(extents), body);
  return is_position(sum) ? result + part * pool.integer(length * inner_elements(reduce)) : result;
}

// The sum of what the parts left, which `left` reads.
Expr sum_of_parts(const Sum& sum, int64_t num_parts, KernelContext& kernel,
                  const std::function<Expr(Expr part)>& left) {
  loop::Pool& pool = kernel.pool();
  const loop::Var part = kernel.fresh_var(num_parts);
  const std::vector<Expr> extent = {pool.integer(num_parts)};
  if (!is_position(sum)) return loop::reduce(sum.reduce.op, {part}, extent, left(pool.var(part)));
  // Parts are in the order of positions: the first best one has the first best element.
  Expr body = sum.reduce.body, position = left(pool.var(part));
  for (size_t i = sum.reduce.vars.size(); i-- > 0;) {
    const Expr own = sum.reduce.extents[i];
    body = loop::substitute(body, sum.reduce.vars[i], i == 0 ? position : loop::mod(position, own));
    position = loop::floor_div(position, own);
  }
  return left(loop::reduce(sum.reduce.op, {part}, extent, body));
}

Result<Verdict> emit_split_reduction(Lowering& lowering, Node& node,
                                     std::span<const Destination> outs, Phase phase) {
  const BufferId out = outs.front().buffer;
  const Value result = node.bodies.empty() ? node.result() : node.bodies[0]->outputs[0];
  const TensorType type = lowering.buffer(out).type;
  KernelContext kernel(lowering, node, phase);
  const ElementLoops loops = element_loops(kernel.kernel(), type);
  const Expr value = kernel.compute(result, loops.index);
  if (kernel.error()) return *kernel.error();
  const std::optional<Sum> sum = only_sum(value, kernel.kernel());
  if (!sum) return Verdict{"it has not one reduction alone"};
  int64_t narrowest = 8;
  for (const loop::Buffer& buffer : kernel.kernel().buffers)
    narrowest = std::min(narrowest, dtype_bytes(buffer.dtype));
  const int64_t own = lowering.target().lanes_per_thread(narrowest);
  const int64_t wanted = count_parts(sum->reduce, loops, lowering.target(), own);
  if (wanted < kFewestParts) return Verdict{"loops over it fill the machine"};
  const int64_t length = part_length(sum->reduce, wanted, own);
  const int64_t num_parts = (extent_at(sum->reduce, 0) + length - 1) / length;

  TensorType parts_type{sum->dtype, type.shape};
  parts_type.shape.insert(parts_type.shape.begin(), Dim(num_parts));
  const BufferId parts =
      lowering.add_temporary(node, "_parts", parts_type, *parts_type.static_elements(), phase);
  KernelContext first(lowering, node, phase);
  LATHE_DO(lowering.emit_elements(first, parts, describe(node), [&](std::span<const Expr> index) {
    const Expr whole = first.compute(result, index.subspan(1));
    const std::optional<Sum> same = only_sum(whole, first.kernel());
    return same ? part_of(*same, index[0], length, first) : whole;
  }));
  KernelContext second(lowering, node, phase);
  LaunchInfo info = describe(node);
  info.flops = num_parts * *type.static_elements();
  LATHE_DO(lowering.emit_elements(second, out, info, [&](std::span<const Expr> index) {
    const Expr whole = second.compute(result, index);
    const std::optional<Sum> same = only_sum(whole, second.kernel());
    return loop::rewrite(whole, [&](Expr e) {
      if (!same || !std::holds_alternative<loop::Reduce>(e->kind)) return Expr();
      return sum_of_parts(*same, num_parts, second, [&](Expr part) {
        std::vector<Expr> at = {part};
        at.insert(at.end(), index.begin(), index.end());
        return second.load(parts, at);
      });
    });
  }));
  return Verdict{};
}

}  // namespace

KernelDef kernel_split_reduction() {
  return {
      .name = "split_reduction",
      .summary = "few long sums or positions: parts of them by many threads, then what parts left",
      .roots = {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "all", "amax",
                "amin", "any", "argmax", "argmin", "avg_pool1d", "avg_pool2d", "avg_pool3d", "mean",
                "prod", "sum"},
      .needs = Needs::threads,
      .emit = emit_split_reduction,
      .example = R"(
func @main(%x: f32[2, 301, 24]) -> f32[2, 24] {
  %0 = mean(%x) {dim = [1]}
  return %0
}
)",
      .isa = "sm_90",
  };
}

}  // namespace lathe
