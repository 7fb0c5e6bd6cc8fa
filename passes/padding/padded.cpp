// Factors of padded dims (see padded.h).
#include "passes/padding/padded.h"

#include <algorithm>
#include <optional>

#include "ir/type/size_facts.h"

namespace lathe {
namespace {

std::optional<Dim> quotient(const Dim& a, const Dim& b) {
  if (b == Dim(0)) return std::nullopt;
  Dim q = Dim::floor_div(a, b);
  return q * b == a ? std::optional(std::move(q)) : std::nullopt;
}

// Deals factors out to dims.
class Dealer {
 public:
  Dealer(Factors factors, const Rounding& rounding)
      : left_(factors.rbegin(), factors.rend()), rounding_(rounding) {}

  // The next factors whose product is `size`.
  std::optional<Factors> take(Dim size) {
    Factors taken;
    while (size != Dim(1)) {
      if (left_.empty() || size == Dim(0)) return std::nullopt;
      const Dim next = left_.back();
      left_.pop_back();
      if (const auto rest = quotient(size, next)) {
        taken.push_back(next);
        size = *rest;
      } else if (const auto inner = quotient(next, size); inner && !rounding_.changes(*inner)) {
        taken.push_back(size);
        left_.push_back(*inner);
        size = 1;
      } else {
        return std::nullopt;
      }
    }
    return tidy(taken, rounding_);
  }
  bool is_done() const {
    return std::all_of(left_.begin(), left_.end(), [](const Dim& d) { return d == Dim(1); });
  }

 private:
  Factors left_;  // the next one last
  const Rounding& rounding_;
};

}  // namespace

Shape Rounding::up(Shape shape) const {
  for (Dim& size : shape) size = up(size);
  return shape;
}

bool Rounding::changes(const Shape& shape) const {
  return std::any_of(shape.begin(), shape.end(), [&](const Dim& size) { return changes(size); });
}

bool Rounding::grows(const Dim& size) const {
  if (!changes(size)) return true;
  std::vector<std::string> names;
  size.collect_symbols(names);
  std::map<std::string, DimRange> ranges;
  std::map<std::string, Dim> larger;
  for (const std::string& name : names) {
    ranges[name] = {0, std::nullopt};
    if (symbols_.count(name) == 0) continue;
    ranges["more_" + name] = {0, std::nullopt};
    larger[name] = Dim::symbol(name) + Dim::symbol("more_" + name);
  }
  return SizeFacts(ranges).decide(Relation::le, size, size.substitute(larger)) == true;
}

Dim extent(const Factors& factors) {
  Dim product = 1;
  for (const Dim& factor : factors) product = product * factor;
  return product;
}

Shape shape_of(const std::vector<Factors>& dims) {
  Shape shape;
  for (const Factors& factors : dims) shape.push_back(extent(factors));
  return shape;
}

std::vector<Factors> factors_of(const Shape& shape) {
  std::vector<Factors> dims;
  for (const Dim& size : shape) dims.push_back({size});
  return dims;
}

Factors tidy(const Factors& factors, const Rounding& rounding) {
  Factors result;
  for (const Dim& factor : factors) {
    if (factor == Dim(1)) continue;
    if (!result.empty() && !rounding.changes(factor)) {
      result.back() = result.back() * factor;
    } else {
      result.push_back(factor);
    }
  }
  return result.empty() ? Factors{Dim(1)} : result;
}

bool is_padded(const Factors& factors, const Rounding& rounding) {
  return std::any_of(factors.begin(), factors.end(),
                     [&](const Dim& factor) { return rounding.changes(factor); });
}

bool is_padded(const std::vector<Factors>& dims, const Rounding& rounding) {
  return std::any_of(dims.begin(), dims.end(),
                     [&](const Factors& factors) { return is_padded(factors, rounding); });
}

bool is_prefix(const Factors& factors, const Rounding& rounding) {
  return tidy(factors, rounding).size() == 1;
}

std::optional<std::vector<Factors>> regrouped(const std::vector<Factors>& dims, const Shape& shape,
                                              const Rounding& rounding) {
  const Shape from = shape_of(dims);
  const bool is_empty = std::find(from.begin(), from.end(), Dim(0)) != from.end();
  if (is_empty) return factors_of(shape);
  Factors all;
  for (const Factors& factors : dims) all.insert(all.end(), factors.begin(), factors.end());
  Dealer dealer(tidy(all, rounding), rounding);
  std::vector<Factors> result;
  for (const Dim& size : shape) {
    auto factors = dealer.take(size);
    if (!factors) return std::nullopt;
    result.push_back(*std::move(factors));
  }
  return dealer.is_done() ? std::optional(std::move(result)) : std::nullopt;
}

std::string spell(const Factors& factors) {
  std::string text;
  for (const Dim& factor : factors) text += (text.empty() ? "" : " by ") + factor.str();
  return text;
}

std::string spell(const std::vector<Factors>& dims) {
  std::string text;
  for (const Factors& factors : dims) text += (text.empty() ? "" : ", ") + spell(factors);
  return "[" + text + "]";
}

}  // namespace lathe
