// Questions about lanes, and the count of operations: see lane_choice.h and loop_nest.h.
#include "ir/templates/lane_choice.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "ir/loop/linear.h"
#include "ir/templates/loop_nest.h"

namespace lathe {
namespace {

using loop::Expr;
using loop::Var;

constexpr int64_t kPageBytes = 4096;

// No more than kMostOperations.
int64_t iterations(const loop::Reduce& reduce) {
  int64_t count = 1;
  for (Expr extent : reduce.extents)
    if (auto* known = loop::as_int(extent))
      count = std::min(count * std::min(known->value, kMostOperations), kMostOperations);
  return count;
}

}  // namespace

bool prefers_reduction_axis(std::span<const Expr> values, Var inner) {
  int along_inner = 0, along_reduction = 0;
  loop::for_each(values, [&](Expr e) {
    auto* reduce = std::get_if<loop::Reduce>(&e->kind);
    if (!reduce || !loop::depends_on(e, inner)) return;
    loop::for_each(reduce->body, [&](Expr sub) {
      auto* load = std::get_if<loop::Load>(&sub->kind);
      if (!load) return;
      const loop::Linear form = loop::linear(load->index);
      along_inner += form.coefficient(inner) == 1;
      for (Var var : reduce->vars) along_reduction += form.coefficient(var) == 1;
    });
  });
  return along_reduction > along_inner;
}

bool has_own_reductions(std::span<const Expr> values, Var inner) {
  bool result = true;
  loop::for_each(values, [&](Expr e) {
    result =
        result && (!std::holds_alternative<loop::Reduce>(e->kind) || loop::depends_on(e, inner));
  });
  return result;
}

bool read_far_rows(std::span<const loop::Reduce> reductions, Var column) {
  bool result = false;
  for (const loop::Reduce& reduce : reductions)
    loop::for_each(reduce.body, [&](Expr e) {
      const auto* load = std::get_if<loop::Load>(&e->kind);
      if (load == nullptr) return;
      const loop::Linear form = loop::linear(load->index);
      const int64_t step = form.coefficient(reduce.vars.back());
      result = result || (form.coefficient(column) == 1 &&
                          std::abs(step) >= kPageBytes / dtype_bytes(e->dtype));
    });
  return result;
}

int64_t widest_element(std::span<const Expr> values) {
  int64_t bytes = 1, on_the_way = 1;
  for (Expr value : values) bytes = std::max(bytes, dtype_bytes(value->dtype));
  loop::for_each(values, [&](Expr e) {
    if (e->dtype == DType::f64) bytes = std::max<int64_t>(bytes, 8);
  });
  std::vector<Expr> left(values.begin(), values.end());
  while (!left.empty() && on_the_way < 4) {
    const Expr e = left.back();
    left.pop_back();
    on_the_way = std::max(on_the_way, is_float(e->dtype) ? 4 : dtype_bytes(e->dtype));
    if (std::holds_alternative<loop::Reduce>(e->kind)) on_the_way = 4;
    if (!std::holds_alternative<loop::Load>(e->kind))
      for (Expr part : loop::children(e)) left.push_back(part);
  }
  return std::max(bytes, std::min<int64_t>(on_the_way, 4));
}

int64_t count_operations(std::span<const Expr> values) {
  int64_t count = 0;
  loop::for_each(values, [&](Expr e) {
    if (auto* reduce = std::get_if<loop::Reduce>(&e->kind)) {
      count += iterations(*reduce) * std::max<int64_t>(1, count_operations({&reduce->body, 1}));
    } else if (std::holds_alternative<loop::Unary>(e->kind)) {
      count += 8;
    } else if (!std::holds_alternative<loop::IntConst>(e->kind) &&
               !std::holds_alternative<loop::VarRead>(e->kind)) {
      count += 1;
    }
    count = std::min(count, kMostOperations);
  });
  return count;
}

}  // namespace lathe
