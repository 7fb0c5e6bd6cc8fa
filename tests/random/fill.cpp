// Draws elements, and the text of how (see fill.h).
#include "tests/random/fill.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>

#include "fmt/format.h"
#include "ir/support/diag_codes.h"
#include "ir/support/hash.h"
#include "ir/type/dtype.h"

namespace lathe::random_graphs {
namespace {

constexpr std::string_view kKinds[] = {"quarters", "reals", "integers", "specials"};

double element(const Fill& how, uint64_t word) {
  const double unit = static_cast<double>(word >> 11) * 0x1p-53;
  switch (how.kind) {
    case Fill::Kind::reals:
      return how.low + unit * (how.high - how.low);
    case Fill::Kind::integers:
      return how.low + std::floor(unit * (how.high - how.low + 1));
    case Fill::Kind::specials: {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const double specials[] = {kInfinity, -kInfinity, std::nan(""), -0.0};
      if (word % 8 == 0) return specials[word / 8 % 4];
      break;
    }
    case Fill::Kind::quarters:
      break;
  }
  const double low = std::ceil(how.low * 4), high = std::floor(how.high * 4);
  return (low + std::floor(unit * (high - low + 1))) / 4;
}

}  // namespace

Tensor fill(const Fill& how, DType dtype, const std::vector<int64_t>& shape) {
  Tensor tensor = Tensor::zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = element(how, Hasher().add(how.seed).add(i).value());
    tensor.set(i, dtype == DType::b8 ? std::fmod(std::floor(value), 2) : round_to(dtype, value));
  }
  return tensor;
}

std::string print(const Fill& how) {
  return fmt::format("{} {} {} seed {}", kKinds[static_cast<size_t>(how.kind)], how.low, how.high,
                     how.seed);
}

Result<Fill> parse_fill(std::string_view text) {
  Fill how;
  std::string kind, word;
  std::istringstream stream{std::string(text)};
  stream >> kind >> how.low >> how.high >> word >> how.seed;
  for (size_t i = 0; i < std::size(kKinds); ++i) {
    how.kind = static_cast<Fill::Kind>(i);
    if (kind == kKinds[i] && !stream.fail() && word == "seed") return how;
  }
  return Diag{code::kSyntax, Loc::unknown(),
              fmt::format("expected 'KIND LOW HIGH seed SEED', got '{}'", text)};
}

}  // namespace lathe::random_graphs
