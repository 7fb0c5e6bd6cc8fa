// The first pass over a kernel's indices finds what they reach, the second moves them.
#include "ir/loop/rebase.h"

#include <algorithm>
#include <unordered_map>

#include "ir/loop/pool.h"
#include "ir/loop/ranges.h"
#include "ir/loop/rewrite.h"
#include "ir/type/dtype.h"

namespace lathe::loop {
namespace {

// What the indices into one buffer reach, lanes that a mask turns off among them.
struct Reach {
  int64_t first = INT64_MAX;
  int64_t end = 0;  // behind the last
  bool is_known = true;

  void add(Interval range, int64_t lanes) {
    is_known = is_known && range.min > INT64_MIN && range.max <= INT64_MAX - lanes;
    if (!is_known) return;
    first = std::min(first, range.min);
    end = std::max(end, range.max + lanes);
  }
};

// Indices with the values of lets in their place, whose ranges nobody else knows.
class LetValues {
 public:
  explicit LetValues(const Kernel& kernel) { visit(kernel.body); }

  Expr in(Expr index) const {
    return loop::rewrite(index, [this](Expr e) {
      const auto* read = std::get_if<VarRead>(&e->kind);
      const auto found = read ? values_.find(read->var.id) : values_.end();
      return found == values_.end() ? Expr() : found->second;
    });
  }

 private:
  void visit(const Block& block) {
    for (const Stmt& stmt : block) {
      if (const auto* loop = std::get_if<For>(&stmt.kind)) visit(loop->body);
      if (const auto* branch = std::get_if<If>(&stmt.kind)) {
        visit(branch->then_body);
        visit(branch->else_body);
      }
      const auto* let = std::get_if<Let>(&stmt.kind);
      if (let && let->value->dtype == DType::i64) add(*let);
    }
  }
  // A sum of lets of lets may grow with every one of them: what is long stays opaque.
  void add(const Let& let) {
    constexpr int kMostNodes = 64;
    int nodes = 0;
    const Expr value = in(let.value);
    for_each(value, [&](Expr) { ++nodes; });
    if (nodes <= kMostNodes) values_.emplace(let.var.id, value);
  }

  std::unordered_map<uint32_t, Expr> values_;  // by variable
};

// index - by, with the constants of sums merged: kernels that are to be equal spell it alike.
Expr moved(Expr index, int64_t by) {
  Pool& pool = *index->pool;
  if (index->lanes == 1) {
    Linear form = linear(index);
    form.constant -= by;
    return to_expr(pool, form);
  }
  if (const auto* ramp = std::get_if<Ramp>(&index->kind))
    return pool.ramp(moved(ramp->base, by), ramp->stride, index->lanes);
  if (const auto* same = std::get_if<Splat>(&index->kind))
    return splat(moved(same->x, by), index->lanes);
  if (const auto* sum = std::get_if<Binary>(&index->kind); sum && sum->op == BinaryOp::add) {
    const bool is_plain =
        std::holds_alternative<Ramp>(sum->b->kind) || std::holds_alternative<Splat>(sum->b->kind);
    return is_plain ? sum->a + moved(sum->b, by) : moved(sum->a, by) + sum->b;
  }
  return index - splat(pool.integer(by), index->lanes);
}

}  // namespace

std::vector<int64_t> rebase(Kernel& kernel, int64_t alignment) {
  std::vector<Reach> reaches(kernel.buffers.size());
  Ranges ranges(kernel);
  const LetValues lets(kernel);
  rewrite_indices(kernel, [&](BufferRef buffer, Expr index, int64_t reach) {
    if (reach > 0) reaches[buffer.id].add(ranges.of(lets.in(index)), index->lanes == 1 ? reach : 1);
    return index;
  });
  std::vector<int64_t> begins(kernel.buffers.size()), result;
  for (size_t i = 0; i < begins.size(); ++i) {
    Buffer& buffer = kernel.buffers[i];
    if (buffer.space != Space::global) continue;
    const Reach& reach = reaches[i];
    if (reach.is_known && reach.first < reach.end && buffer.size.is_const()) {
      const int64_t step = std::max<int64_t>(alignment / dtype_bytes(buffer.dtype), 1);
      begins[i] = std::clamp<int64_t>(reach.first, 0, buffer.size.value()) / step * step;
    }
    if (begins[i] > 0)
      buffer.size = std::clamp(reach.end, begins[i], buffer.size.value()) - begins[i];
    result.push_back(begins[i]);
  }
  if (std::any_of(begins.begin(), begins.end(), [](int64_t begin) { return begin > 0; }))
    rewrite_indices(kernel, [&](BufferRef buffer, Expr index, int64_t) {
      return begins[buffer.id] == 0 ? index : moved(index, begins[buffer.id]);
    });
  return result;
}

}  // namespace lathe::loop
