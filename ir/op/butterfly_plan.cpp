// Radices and turns: see butterfly_plan.h.
#include "ir/op/butterfly_plan.h"

#include "ir/op/fourier_tables.h"
#include "ir/op/reduction.h"

namespace lathe {
namespace {

int64_t product(const std::vector<int64_t>& radices) {
  int64_t numbers = 1;
  for (const int64_t radix : radices) numbers *= radix;
  return numbers;
}

}  // namespace

// Powers of two come first: runs of equal turns are then whole vectors early.
std::vector<int64_t> butterfly_radices(int64_t numbers) {
  std::vector<int64_t> radices;
  const auto take = [&](int64_t radix) {
    radices.push_back(radix);
    numbers /= radix;
  };
  while (numbers > 0 && numbers % 8 == 0 && numbers % 32 != 16) take(8);
  for (const int64_t radix : {4, 2, 13, 11, 7, 5, 3})
    while (numbers > 0 && numbers % radix == 0) take(radix);
  if (numbers != 1) radices.clear();
  return radices;
}

int64_t turns_before(const std::vector<int64_t>& radices, size_t step) {
  int64_t rest = product(radices), count = 0;
  for (size_t i = 0; i < step; ++i) {
    rest /= radices[i];
    if (i + 1 < radices.size()) count += 2 * (radices[i] - 1) * rest;
  }
  return count;
}

int64_t num_turns(const std::vector<int64_t>& radices, bool has_half) {
  const int64_t halves = has_half ? 2 * (product(radices) + 1) : 0;
  return turns_before(radices, radices.size()) + halves + kTurnSlack;
}

std::vector<double> turns_of(const std::vector<int64_t>& radices, bool has_half) {
  std::vector<double> turns;
  const auto add = [&](int64_t count, int64_t by, int64_t n) {
    for (int64_t p = 0; p < count; ++p) turns.push_back(root(by * p, n, -1).re);
    for (int64_t p = 0; p < count; ++p) turns.push_back(root(by * p, n, -1).im);
  };
  const int64_t numbers = product(radices);
  int64_t n = numbers;
  for (size_t i = 0; i + 1 < radices.size(); n /= radices[i], ++i)
    for (int64_t k = 1; k < radices[i]; ++k) add(n / radices[i], k, n);
  if (has_half) add(numbers + 1, 1, 2 * numbers);
  turns.resize(turns.size() + static_cast<size_t>(kTurnSlack));
  return turns;
}

FourierPlan fourier_plan(const Node& node) {
  const std::string form = node.string_attr("form");
  FourierPlan plan{.takes_pairs = form != "to_half", .gives_pairs = form != "from_half"};
  const Shape& self = node.operands[0].type().shape;
  plan.rank = static_cast<int>(self.size()) - plan.takes_pairs;
  plan.dim = known_dim(node, plan.rank);
  const Dim& given = self[static_cast<size_t>(plan.dim)];
  const int64_t count = given.is_const() ? given.value() : 0;
  plan.points = form == "from_half" ? 2 * (count - 1) : count;
  plan.radices = butterfly_radices(form == "whole" ? plan.points : plan.points / 2);
  return plan;
}

}  // namespace lathe
