// Sizes as instructions: see dim_tape.h.
#include "ir/type/dim_tape.h"

#include <algorithm>
#include <utility>

#include "ir/type/dim_expr.h"

namespace lathe {

DimTape::DimTape(std::vector<std::string> symbols) : symbols_(std::move(symbols)) {}

size_t DimTape::place(Step step) {
  const auto [found, is_new] = places_.emplace(step, steps_.size());
  if (is_new) steps_.push_back(step);
  return found->second;
}

size_t DimTape::add(const Dim& dim) {
  if (dim.is_too_large()) return place({Op::fail});
  const auto sum = DimCanonical::sum_of(dim);
  const auto of = [&](size_t at) { return static_cast<int64_t>(at); };
  const auto atom = [&](const DimAtom& a) -> size_t {
    if (a.kind == DimAtom::Kind::symbol) {
      const auto at = std::find(symbols_.begin(), symbols_.end(), a.name);
      return at == symbols_.end() ? place({Op::fail}) : place({Op::symbol, at - symbols_.begin()});
    }
    const Op op = a.kind == DimAtom::Kind::floor_div ? Op::floor_div
                  : a.kind == DimAtom::Kind::mod     ? Op::mod
                  : a.kind == DimAtom::Kind::max     ? Op::max
                                                     : Op::min;
    size_t value = add(a.args[0]);
    for (size_t i = 1; i < a.args.size(); ++i) value = place({op, of(value), of(add(a.args[i]))});
    return value;
  };
  const bool has_constant = sum.constant != 0 || sum.terms.empty();
  size_t total = has_constant ? place({Op::constant, sum.constant}) : 0;
  bool is_first = !has_constant;
  for (const DimTerm& term : sum.terms) {
    size_t product = atom(*term.factors[0]);
    for (size_t i = 1; i < term.factors.size(); ++i)
      product = place({Op::mul, of(product), of(atom(*term.factors[i]))});
    if (term.coefficient != 1)
      product = place({Op::mul, of(product), of(place({Op::constant, term.coefficient}))});
    total = is_first ? product : place({Op::add, of(total), of(product)});
    is_first = false;
  }
  return total;
}

bool DimTape::run(std::span<const int64_t> symbols, std::vector<int64_t>& values) const {
  if (symbols.size() != symbols_.size()) return false;
  values.resize(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    const bool has_operands = step.op > Op::fail;
    const int64_t a = has_operands ? values[static_cast<size_t>(step.a)] : step.a;
    const int64_t b = has_operands ? values[static_cast<size_t>(step.b)] : 0;
    int64_t& out = values[i];
    switch (step.op) {
      case Op::constant:
        out = a;
        break;
      case Op::symbol:
        out = symbols[static_cast<size_t>(a)];
        break;
      case Op::fail:
        return false;
      case Op::add:
        if (__builtin_add_overflow(a, b, &out)) return false;
        break;
      case Op::mul:
        if (__builtin_mul_overflow(a, b, &out)) return false;
        break;
      case Op::floor_div:
        out = 0;
        if (b != 0 && !floor_divide(a, b, &out)) return false;
        break;
      case Op::mod:
        out = b == 0 ? 0 : floor_modulo(a, b);
        break;
      case Op::max:
        out = std::max(a, b);
        break;
      case Op::min:
        out = std::min(a, b);
        break;
    }
  }
  return true;
}

}  // namespace lathe
