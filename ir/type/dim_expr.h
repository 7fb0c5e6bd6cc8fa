// The inside of Dim: how a symbolic size is kept. Only ir/type/dim*.cpp and
// ir/type/size_facts.cpp include this.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/type/dim.h"

namespace lathe {

struct DimAtom {
  enum class Kind : uint8_t { symbol, floor_div, mod, max, min };
  Kind kind = Kind::symbol;
  std::string name;       // of symbols
  std::vector<Dim> args;  // of the others: two, or for max and min two or more, sorted
};
using DimAtomPtr = std::shared_ptr<const DimAtom>;

struct DimTerm {
  int64_t coefficient = 1;
  std::vector<DimAtomPtr> factors;  // sorted, a repeated factor is a power; never empty
};

// A sum of terms, higher degrees first, and a constant.
struct Dim::Expr {
  std::vector<DimTerm> terms;
  int64_t constant = 0;
  bool is_too_large = false;  // then nothing else counts
  int size = 1;               // nodes of the tree
  int depth = 1;
  uint64_t hash = 0;
};

// Arithmetic on canonical forms.
struct DimCanonical {
  // The sum as terms; a constant has none.
  static Dim::Expr sum_of(const Dim& dim);
  // Sorts, merges, measures and hashes.
  static Dim make(Dim::Expr sum);
  static Dim too_large();
  static bool is_too_large(const Dim& dim) { return dim.expr_ && dim.expr_->is_too_large; }
  static Dim from_atom(DimAtom atom);
  // What an atom of this kind, which is no symbol, is of two args.
  static Dim apply(DimAtom::Kind kind, const Dim& a, const Dim& b);
  static const Dim::Expr* expr(const Dim& dim) { return dim.expr_.get(); }
  // The single factor when the whole is one atom, else null.
  static const DimAtom* as_atom(const Dim& dim);

  // Total orders that depend on structure only.
  static int compare(const Dim& a, const Dim& b);
  static int compare(const DimAtomPtr& a, const DimAtomPtr& b);
  static int compare(const std::vector<DimAtomPtr>& a, const std::vector<DimAtomPtr>& b);

  // a / b when b divides a as a polynomial.
  static std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);
  static Dim floor_div_by(const Dim& a, int64_t divisor);  // divisor > 1
  static Dim mod_by(Dim a, int64_t divisor);               // divisor > 1
  static Dim extremum(DimAtom::Kind kind, const Dim& a, const Dim& b);
};

// Python's rules; the divisor is not 0. False on overflow.
bool floor_divide(int64_t a, int64_t b, int64_t* result);
int64_t floor_modulo(int64_t a, int64_t b);

}  // namespace lathe
