// Indices of accesses as constant + sum of coefficient * value, whose terms are added to a buffer's
// pointer one by one, outermost scope first, so that every prefix can be shared.
#pragma once
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "ir/loop/address.h"
#include "ir/loop/linear.h"

namespace lathe::placement {

// `Placed` as in values.h.
template <class Placed>
struct Term {
  Placed placed;
  int64_t coefficient;
  int64_t divisor = 1;  // that the value is a multiple of
};

template <class Placed>
struct Index {  // of elements; lanes are offsets of a vector access, empty for a scalar one
  int64_t constant = 0;
  std::vector<Term<Placed>> terms;
  std::vector<int64_t> lanes;
  std::vector<std::pair<loop::Expr, int64_t>> vectors;  // neither affine in the lane nor uniform

  // Equal values become one (lets may bring them twice); ordered by scope and then as they come.
  template <class Same>
  void merge_terms(Same&& same) {
    std::vector<Term<Placed>> merged;
    for (const Term<Placed>& term : terms) {
      auto known = std::find_if(merged.begin(), merged.end(),
                                [&](const Term<Placed>& m) { return same(m.placed, term.placed); });
      if (known != merged.end()) {
        known->coefficient += term.coefficient;
        continue;
      }
      auto after = std::find_if(merged.begin(), merged.end(), [&](const Term<Placed>& m) {
        return m.placed.level > term.placed.level;
      });
      merged.insert(after, term);
    }
    merged.erase(std::remove_if(merged.begin(), merged.end(),
                                [](const Term<Placed>& term) { return term.coefficient == 0; }),
                 merged.end());
    terms = std::move(merged);
  }

  // Adds a linear form. `let_of(var)`: the Index of a variable to see through, or null;
  // `atom_of(atom, read)`: its Term with coefficient 1, or a constant, for an atom that may be the
  // reading of a variable.
  template <class LetOf, class AtomOf>
  void add(const loop::Linear& form, LetOf&& let_of, AtomOf&& atom_of) {
    constant += form.constant;
    for (const auto& [atom, coefficient] : form.terms) {
      auto* read = std::get_if<loop::VarRead>(&atom->kind);
      if (const Index* inner = read ? let_of(read->var) : nullptr) {
        constant += coefficient * inner->constant;
        for (Term<Placed> term : inner->terms) {
          term.coefficient *= coefficient;
          terms.push_back(term);
        }
        continue;
      }
      std::variant<int64_t, Term<Placed>> value = atom_of(atom, read);
      if (auto* known = std::get_if<int64_t>(&value)) {
        constant += coefficient * *known;
      } else {
        Term<Placed> term = std::get<Term<Placed>>(value);
        term.coefficient = coefficient;
        terms.push_back(term);
      }
    }
  }
};

// split_lanes, once for each index.
class LaneSplits {
 public:
  const loop::LaneIndex& of(loop::Expr index) {
    auto [entry, is_new] = splits_.try_emplace(index.node());
    if (is_new) entry->second = loop::split_lanes(index);
    return entry->second;
  }

 private:
  std::unordered_map<const loop::ExprNode*, loop::LaneIndex> splits_;
};

// a OP b of i64 lanes, as lanes that differ by constants and a scalar that decides all of them:
// constants.lanes[i] + constants.base OP 0. Null for other expressions, or lanes beyond 31 bits.
std::optional<loop::LaneIndex> split_compare(loop::Expr e);

}  // namespace lathe::placement
