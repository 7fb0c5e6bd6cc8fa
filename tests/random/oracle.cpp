// Exact values and what they may be off by (see oracle.h).
#include "tests/random/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"
#include "ir/type/dtype.h"
#include "tests/random/eager.h"
#include "tests/random/exactness.h"

namespace lathe::random_graphs {
namespace {

constexpr double kSpread = 16;
constexpr double kRoundings = 16;
// Beyond this share of the RMS a tolerance says nothing.
constexpr double kTelling = 0.25;

double root_mean_square(const std::vector<double>& values) {
  double sum = 0, count = 0;
  for (double x : values) {
    if (!std::isfinite(x)) continue;
    sum += x * x;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 0x1p-24;
    case DType::f64:
      return 0x1p-1022;  // the smallest normal: vector units may flush
    default:
      return 0x1p-126;
  }
}

Expected expect(const Value value, const EagerRun& exact, const std::vector<EagerRun>& noisy) {
  Expected expected{exact.values(value), {}};
  const Tensor& tensor = expected.exact;
  if (!is_float(tensor.dtype) || exact.is_exact(value)) return expected;
  std::vector<double> spread(tensor.floats.size());
  for (const EagerRun& run : noisy) {
    const Tensor other = run.values(value);
    for (size_t i = 0; i < spread.size(); ++i) {
      const double x = tensor.floats[i], y = other.floats[i];
      if (std::isfinite(x) && std::isfinite(y))
        spread[i] = std::max(spread[i], std::fabs(x - y));
      else if (x != y && !(std::isnan(x) && std::isnan(y)))
        expected.is_telling = false;
    }
  }
  const double typical = root_mean_square(spread), size = root_mean_square(tensor.floats);
  const double floor =
      kRoundings * unit_roundoff(tensor.dtype) * size + smallest_subnormal(tensor.dtype);
  for (double own : spread) expected.tolerance.push_back(kSpread * std::max(own, typical) + floor);
  const double allowed = root_mean_square(expected.tolerance);
  if (!(allowed <= kTelling * std::max(size, 0x1p-10))) expected.is_telling = false;
  return expected;
}

}  // namespace

Result<Oracle> ask_oracle(const Case& test, bool uses_tf32, int num_noisy_runs) {
  const Graph& graph = test.module.main();
  EagerOptions options{.uses_tf32 = uses_tf32};
  options.has_writes = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                   [](const auto& node) { return node->in_place; });
  const std::vector<Tensor> inputs = inputs_of(test);
  EagerRun exact(test.module, options);
  LATHE_DO(exact.run(graph, inputs));
  options.exact_nodes = &exact.exact_nodes();
  std::vector<EagerRun> noisy;
  for (int run = 0; run < num_noisy_runs; ++run) {
    options.noise = static_cast<uint64_t>(run);
    noisy.emplace_back(test.module, options);
    LATHE_DO(noisy.back().run(graph, inputs));
  }
  Oracle oracle;
  for (Value output : graph.outputs) oracle.outputs.push_back(expect(output, exact, noisy));
  for (const auto& param : graph.params)
    oracle.params.push_back(expect({param.get(), 0}, exact, noisy));
  return oracle;
}

std::string disagreement(const Tensor& result, const Expected& expected) {
  const Tensor& exact = expected.exact;
  if (result.dtype != exact.dtype || result.shape != exact.shape)
    return fmt::format("it is {}[{}], expected {}[{}]", dtype_name(result.dtype),
                       fmt::join(result.shape, ", "), dtype_name(exact.dtype),
                       fmt::join(exact.shape, ", "));
  if (!expected.is_telling) return "";
  for (size_t i = 0; i < exact.integers.size(); ++i)
    if (result.integers[i] != exact.integers[i])
      return fmt::format("element {} is {}, expected {}", i, result.integers[i], exact.integers[i]);
  for (size_t i = 0; i < exact.floats.size(); ++i) {
    const double got = result.floats[i], want = exact.floats[i];
    if (std::isnan(got) && std::isnan(want)) continue;
    const double allowed = expected.tolerance.empty() ? 0 : expected.tolerance[i];
    const bool is_near = got == want || (std::isfinite(want) && std::fabs(got - want) <= allowed);
    // What is expected has not been rounded to the dtype, of which it may be beyond the end.
    const bool overflows = std::isinf(got) && std::isfinite(want) &&
                           round_to(exact.dtype, want + std::copysign(allowed, want)) == got;
    if (!is_near && !overflows)
      return fmt::format("element {} is {:.9g}, expected {:.9g} within {:.2g}", i, got, want,
                         allowed);
  }
  return "";
}

}  // namespace lathe::random_graphs
