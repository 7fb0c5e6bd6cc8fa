// Cuts of index sets: see pieces.h.
#include "ir/templates/pieces.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/loop/linear.h"
#include "ir/loop/scalar.h"

namespace lathe {
namespace {

using loop::BinaryOp;
using loop::Expr;
using loop::Var;

int64_t quotient(int64_t a, int64_t b) {
  return loop::apply(BinaryOp::floor_div, DType::i64, loop::int_scalar(a), loop::int_scalar(b)).i;
}

// Numbers beyond it are left alone: sums and products of two stay in 64 bits.
constexpr int64_t kLargest = int64_t{1} << 30;

// factor * var + constant.
struct Affine {
  int64_t factor, constant;
};

std::optional<Affine> affine(const loop::Linear& form, Var var) {
  if (form.terms.size() != 1) return std::nullopt;
  const auto* read = std::get_if<loop::VarRead>(&form.terms[0].first->kind);
  if (read == nullptr || !(read->var == var)) return std::nullopt;
  const auto [factor, constant] = std::pair(form.terms[0].second, form.constant);
  for (int64_t number : {factor, constant})
    if (number < -kLargest || number > kLargest) return std::nullopt;
  return Affine{factor, constant};
}

loop::Linear difference(Expr a, Expr b) { return loop::linear(a - b); }

// The first value from which `factor * var + constant < 0` differs from what it was before.
int64_t turn(const Affine& form) {
  return form.factor > 0 ? quotient(-form.constant - 1, form.factor) + 1
                         : quotient(form.constant, -form.factor) + 1;
}

class Cuts {
 public:
  Cuts(Var var, const loop::VarInfo& info, size_t most)
      : var_(var),
        min_(std::max(info.min, -kLargest)),
        max_(std::min(info.max, kLargest)),
        most_(most) {}

  void visit(Expr e) {
    const auto* node = std::get_if<loop::Binary>(&e->kind);
    if (node == nullptr || node->a->dtype != DType::i64 || node->a->lanes != 1) return;
    switch (node->op) {
      case BinaryOp::lt:
        if (const auto form = affine(difference(node->a, node->b), var_)) add(turn(*form));
        return;
      case BinaryOp::min:
      case BinaryOp::max:
        if (const auto form = affine(difference(node->a, node->b), var_)) {
          // Where both are equal either will do: the piece ends as that of `v <= c` does for a min,
          // and as that of `v < c` for a max, which are what guards are made of.
          const bool is_last = (node->op == BinaryOp::min) == (form->factor > 0);
          add(turn({form->factor, form->constant - (is_last ? 1 : 0)}));
        }
        return;
      case BinaryOp::le:
        if (auto form = affine(difference(node->a, node->b), var_))
          add(turn({form->factor, form->constant - 1}));
        return;
      case BinaryOp::eq:
      case BinaryOp::ne:
        if (const auto form = affine(difference(node->a, node->b), var_)) {
          add(turn(*form));
          add(turn({form->factor, form->constant - 1}));
        }
        return;
      case BinaryOp::floor_div:
      case BinaryOp::mod:
        if (const auto* divisor = loop::as_int(node->b))
          if (const auto form = affine(loop::linear(node->a), var_))
            add_quotients(*form, divisor->value);
        return;
      default:
        return;
    }
  }

  std::vector<int64_t> take() const {
    return starts_.size() > most_ ? std::vector<int64_t>()
                                  : std::vector<int64_t>(starts_.begin(), starts_.end());
  }

 private:
  void add(int64_t start) {
    if (start > min_ && start <= max_ && starts_.size() <= most_) starts_.insert(start);
  }

  // Where the quotient steps on, when it does so only a few times.
  void add_quotients(const Affine& form, int64_t divisor) {
    if (divisor <= 0 || divisor > kLargest) return;
    const int64_t first = quotient(form.factor * min_ + form.constant, divisor),
                  last = quotient(form.factor * max_ + form.constant, divisor);
    const int64_t low = std::min(first, last), high = std::max(first, last);
    if (high - low > kMostQuotients) return;
    for (int64_t q = low + 1; q <= high; ++q) add(turn({form.factor, form.constant - q * divisor}));
  }

  static constexpr int64_t kMostQuotients = 4;

  Var var_;
  int64_t min_, max_;
  size_t most_;
  std::set<int64_t> starts_;
};

}  // namespace

std::vector<int64_t> piece_starts(std::span<const Expr> exprs, Var var, const loop::Kernel& kernel,
                                  size_t most) {
  Cuts cuts(var, kernel.vars[var.id], most);
  loop::for_each(exprs, [&](Expr sub) { cuts.visit(sub); });
  return cuts.take();
}

}  // namespace lathe
