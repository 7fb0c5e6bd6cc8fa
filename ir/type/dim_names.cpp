// Counts parts, and puts names in their place: see dim_names.h.
#include "ir/type/dim_names.h"

#include <fmt/format.h>

#include <functional>

#include "ir/type/dim_expr.h"

namespace lathe {
namespace {

using Kind = DimAtom::Kind;

constexpr size_t kLongEnough = 24;  // characters of a part that a name makes easier to read

// Visits what a size is made of but symbols, each by itself.
void for_each_part(const Dim& size, const std::function<void(const DimAtom&, const Dim&)>& visit) {
  for (const DimTerm& term : DimCanonical::sum_of(size).terms)
    for (const DimAtomPtr& atom : term.factors)
      if (atom->kind != Kind::symbol) visit(*atom, DimCanonical::from_atom(*atom));
}

}  // namespace

DimNames::DimNames(std::span<const Dim> sizes, const std::set<std::string>& taken) {
  // Of places where a part is written, what has it written once.
  std::unordered_map<Dim, int, Hash> counts;
  std::function<void(const DimAtom&, const Dim&)> count = [&](const DimAtom& atom,
                                                              const Dim& part) {
    if (++counts[part] > 1) return;
    for (const Dim& arg : atom.args) for_each_part(arg, count);
  };
  for (const Dim& size : sizes) for_each_part(size, count);
  size_t next = 0;
  std::function<void(const DimAtom&, const Dim&)> define = [&](const DimAtom& atom,
                                                               const Dim& part) {
    int& times = counts[part];
    if (times == 0) return;  // was here
    const bool is_shared = std::exchange(times, 0) > 1;
    for (const Dim& arg : atom.args) for_each_part(arg, define);
    std::string text = named(part).str();
    if (!is_shared || text.size() < kLongEnough) return;
    std::string name;
    do name = fmt::format("m{}", next++);
    while (taken.count(name) != 0);
    names_.emplace(part, Dim::symbol(name));
    definitions_.emplace_back(std::move(name), std::move(text));
  };
  for (const Dim& size : sizes) for_each_part(size, define);
}

Dim DimNames::named(const Dim& size) const {
  if (size.is_too_large()) return size;
  const auto sum = DimCanonical::sum_of(size);
  Dim total = sum.constant;
  for (const DimTerm& term : sum.terms) {
    Dim product = term.coefficient;
    for (const DimAtomPtr& atom : term.factors) {
      const Dim part = DimCanonical::from_atom(*atom);
      const auto name = names_.find(part);
      if (name != names_.end() || atom->kind == Kind::symbol) {
        product = product * (name != names_.end() ? name->second : part);
        continue;
      }
      Dim made = named(atom->args[0]);
      for (size_t i = 1; i < atom->args.size(); ++i)
        made = DimCanonical::apply(atom->kind, made, named(atom->args[i]));
      product = product * made;
    }
    total = total + product;
  }
  return total;
}

}  // namespace lathe
