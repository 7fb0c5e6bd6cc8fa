// What is known of symbolic sizes, and what follows from it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "ir/type/dim.h"
#include "ir/type/guard.h"

namespace lathe {

// Ranges of symbols and comparisons that hold. An equality is solved for one of its symbols, which
// is from then on written by the others; `e % 8 == 0` says that e is 8 times a new symbol; the rest
// are expressions that are never negative or never 0. As in Dim, a symbolic divisor is not 0.
class SizeFacts {
 public:
  // `hints` are sizes at which all that is required must hold.
  explicit SizeFacts(std::map<std::string, DimRange> ranges,
                     std::map<std::string, int64_t> hints = {});

  // Whether the relation holds for all sizes (true), for none (false), or that is not known.
  // Whether n divides a: decide(Relation::eq, Dim::mod(a, n), 0).
  std::optional<bool> decide(Relation relation, const Dim& left, const Dim& right) const;
  // Contains every value that the facts allow.
  DimRange bounds(const Dim& dim) const;

  // Takes it as true, without keeping it.
  void assume(const Guard& guard);

  // Demands that the guard holds: nothing where the facts say so already, else a guard more, which
  // is then a fact. The error, at the guard's place, when it cannot hold or the hints forbid it.
  Status require(Guard guard);

  // Those that were required and do not follow from what was there before, in order.
  const std::vector<Guard>& guards() const { return guards_; }

 private:
  using Ranges = std::map<std::string, DimRange>;

  bool is_never_negative(const Dim& dim, int& work) const;
  bool is_never_negative(const Dim& dim) const;
  bool is_never_zero(const Dim& dim) const;
  Dim with_chosen_extremes(const Dim& dim) const;

  void assume_zero(const Dim& dim);
  void assume_not_negative(const Dim& dim);
  bool solve_remainder(const Dim& dim);
  void narrow(const std::string& symbol, int64_t factor, int64_t rest);
  Diag contradiction(const Guard& guard) const;

  Ranges given_;  // as the caller gave them, for errors
  Ranges ranges_;
  std::map<std::string, int64_t> hints_;
  std::map<std::string, Dim> solved_;  // by symbols that are not in it
  std::vector<Dim> never_negative_, never_zero_;
  std::vector<Guard> guards_;
  std::set<std::string> texts_;  // of guards_
  bool is_impossible_ = false;   // no size satisfies the facts
};

}  // namespace lathe
