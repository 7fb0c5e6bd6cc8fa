// einsum: sums of products whose dims have names.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "ir/op/composite.h"
#include "ir/support/diag_codes.h"

namespace lathe {
namespace {

// Dims by name: letters, and below 0 those of an ellipsis, counted from its last.
using Names = std::vector<int>;

struct Named {
  Term x;
  Names names;
};

bool has_name(const Names& names, int name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "ij,jk->ik" apart.
struct Equation {
  std::vector<std::string> operands;
  std::string result;
  bool has_result = false;
};

Equation equation_of(std::string_view text) {
  Equation equation{.operands = {""}};
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i, 2) == "->") {
      equation.has_result = true;
      ++i;
    } else if (text[i] == ',') {
      equation.operands.emplace_back();
    } else {
      (equation.has_result ? equation.result : equation.operands.back()) += text[i];
    }
  }
  return equation;
}

// The names of a term; an ellipsis stands for `hidden` dims.
Names names_of(std::string_view text, int hidden) {
  Names names;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      for (int k = hidden; k > 0; --k) names.push_back(-k);
      i += 2;
    } else {
      names.push_back(static_cast<unsigned char>(text[i]));
    }
  }
  return names;
}

int count_letters(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(),
                                        [](unsigned char c) { return std::isalpha(c) != 0; }));
}

// Of a name that stands twice, the diagonal.
Named without_repeats(const Aten& aten, Named term) {
  for (size_t i = 0; i < term.names.size(); ++i) {
    for (size_t j = i + 1; j < term.names.size();) {
      if (term.names[i] != term.names[j]) {
        ++j;
        continue;
      }
      const int name = term.names[i];
      term.x = aten("diagonal", {term.x, 0, static_cast<int64_t>(i), static_cast<int64_t>(j)});
      term.names.erase(term.names.begin() + static_cast<ptrdiff_t>(j));
      term.names.erase(term.names.begin() + static_cast<ptrdiff_t>(i));
      term.names.push_back(name);
      j = i + 1;
      if (i >= term.names.size()) break;
    }
  }
  return term;
}

Named summed_but(const Aten& aten, Named term, const Names& kept) {
  Dims dims;
  Names names;
  for (size_t d = 0; d < term.names.size(); ++d) {
    if (has_name(kept, term.names[d])) {
      names.push_back(term.names[d]);
    } else {
      dims.push_back(static_cast<int64_t>(d));
    }
  }
  if (dims.empty()) return term;
  return {aten("sum.dim_IntList", {term.x, dims, false, term.x.dtype()}), names};
}

// The dims in the order of `names`; an extent of 1 for those it lacks.
Term in_order(const Aten& aten, const Named& term, const Names& names) {
  Dims order;
  Shape shape;
  for (int name : names) {
    const auto at = std::find(term.names.begin(), term.names.end(), name);
    const int64_t dim = at - term.names.begin();
    if (at != term.names.end()) order.push_back(dim);
    shape.push_back(at == term.names.end() ? Dim(1) : Aten::size(term.x, dim));
  }
  return aten("reshape", {aten("permute", {term.x, order}), shape});
}

Dim product_of(const Shape& shape, size_t first, size_t count) {
  Dim product = 1;
  for (size_t i = first; i < first + count && i < shape.size(); ++i) product = product * shape[i];
  return product;
}

// A product of matrices: of the names of both, those in `kept` are batches and others are summed.
Named multiplied(const Aten& aten, Named a, Named b, const Names& kept) {
  Names wanted_a = kept, wanted_b = kept;
  wanted_a.insert(wanted_a.end(), b.names.begin(), b.names.end());
  wanted_b.insert(wanted_b.end(), a.names.begin(), a.names.end());
  a = summed_but(aten, a, wanted_a);
  b = summed_but(aten, b, wanted_b);
  Names batch, summed, only_a, only_b;
  for (int name : a.names) {
    if (!has_name(b.names, name)) {
      only_a.push_back(name);
    } else {
      (has_name(kept, name) ? batch : summed).push_back(name);
    }
  }
  for (int name : b.names) {
    if (!has_name(a.names, name)) only_b.push_back(name);
  }
  const auto join = [](std::initializer_list<Names> parts) {
    Names names;
    for (const Names& part : parts) names.insert(names.end(), part.begin(), part.end());
    return names;
  };
  const Names order_a = join({batch, only_a, summed}), order_b = join({batch, summed, only_b});
  std::map<int, Dim> sizes;  // an extent of 1 stands for as many as the other has
  for (const Named* term : {&a, &b}) {
    for (size_t d = 0; d < term->names.size(); ++d) {
      Dim& size = sizes.emplace(term->names[d], 1).first->second;
      if (size == Dim(1)) size = Aten::size(term->x, static_cast<int64_t>(d));
    }
  }
  const auto shape_of = [&](const Names& names) {
    Shape shape;
    for (int name : names) shape.push_back(sizes.at(name));
    return shape;
  };
  const auto matrix = [&](const Named& term, const Names& names, size_t rows, size_t columns) {
    const Shape shape = shape_of(names);
    const Term wide = aten("expand", {in_order(aten, term, names), shape});
    return aten("reshape", {wide, Shape{product_of(shape, 0, batch.size()),
                                        product_of(shape, batch.size(), rows),
                                        product_of(shape, batch.size() + rows, columns)}});
  };
  const Term product = aten("bmm", {matrix(a, order_a, only_a.size(), summed.size()),
                                    matrix(b, order_b, summed.size(), only_b.size())});
  const Names names = join({batch, only_a, only_b});
  return {aten("reshape", {product, shape_of(names)}), names};
}

// Without "->": the ellipsis, then the letters that stand once, sorted.
Names implied_result(const std::vector<Named>& terms, int hidden) {
  std::map<int, int> uses;
  for (const Named& term : terms) {
    for (int name : term.names) ++uses[name];
  }
  Names names;
  for (int k = hidden; k > 0; --k) names.push_back(-k);
  for (const auto& [name, count] : uses) {
    if (name > 0 && count == 1) names.push_back(name);
  }
  return names;
}

constexpr auto kEinsum = [](const Aten& aten) {
  const Equation equation = equation_of(aten.call().string_attr("equation"));
  const std::vector<Term> tensors = aten.tensors("tensors");
  const auto broken = [&] {
    return aten.fail(code::kBadModel, fmt::format("'einsum' of {} tensors by '{}'", tensors.size(),
                                                  aten.call().string_attr("equation")));
  };
  if (tensors.empty() || equation.operands.size() != tensors.size()) return broken();
  std::vector<Named> terms;
  int most_hidden = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string& text = equation.operands[i];
    const int hidden = tensors[i].rank() - count_letters(text);
    const bool has_dots = text.find("...") != std::string::npos;
    if (hidden < 0 || (hidden > 0 && !has_dots)) return broken();
    most_hidden = std::max(most_hidden, hidden);
    terms.push_back({tensors[i], names_of(text, hidden)});
  }
  const Names result = equation.has_result ? names_of(equation.result, most_hidden)
                                           : implied_result(terms, most_hidden);
  for (Named& term : terms) term = without_repeats(aten, term);
  Named total = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) {
    Names kept = result;
    for (size_t j = i + 1; j < terms.size(); ++j)
      kept.insert(kept.end(), terms[j].names.begin(), terms[j].names.end());
    total = multiplied(aten, total, terms[i], kept);
  }
  total = summed_but(aten, total, result);
  for (int name : result) {
    if (!has_name(total.names, name)) return broken();
  }
  return in_order(aten, total, result);
};

}  // namespace

std::vector<Import> import_einsum() {
  return {{.schema = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
           .build = composed<kEinsum>}};
}

}  // namespace lathe
