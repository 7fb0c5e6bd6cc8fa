// Compares results with the interpreter's. One pass over the elements gathers every figure of the
// rule; the verdict reads them.
#include "frontend/driver/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>

namespace lathe {

namespace {

// The rounded run's errors may be exceeded by this factor: another order of additions is as good.
constexpr double kRoundingFactor = 3;

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return 2e-2;
    case DType::f64:
      return 1e-9;
    default:
      return 1e-4;
  }
}

double root_mean_square(const Tensor& tensor) {
  double sum = 0;
  int64_t count = 0;
  for (double value : tensor.floats) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

Agreement compare_integers(const Tensor& result, const Tensor& exact, const Tensor& rounded) {
  Agreement agreement;
  for (size_t i = 0; i < exact.integers.size(); ++i) {
    double error =
        std::abs(static_cast<double>(result.integers[i]) - static_cast<double>(exact.integers[i]));
    agreement.max_abs_error = std::max(agreement.max_abs_error, error);
    if (result.integers[i] == exact.integers[i] || result.integers[i] == rounded.integers[i])
      continue;
    if (agreement.passed)
      agreement.why =
          fmt::format("element {} is {}, expected {}", i, result.integers[i], exact.integers[i]);
    agreement.passed = false;
  }
  return agreement;
}

// Overflow to infinity is right where the dtype's own rounding overflows.
bool same_special(double result, double exact, double rounded) {
  if (std::isnan(result)) return std::isnan(exact) || std::isnan(rounded);
  return result == exact || result == rounded;
}

Agreement compare_floats(const Tensor& result, const Tensor& exact, const Tensor& rounded) {
  Agreement agreement;
  double tol = tolerance(result.dtype);
  double absolute = tol * root_mean_square(exact);
  double squares = 0, rounded_squares = 0, largest = 0, rounded_largest = 0;
  int64_t finite = 0, far = 0, special = 0, first = -1, farthest = -1;
  for (size_t i = 0; i < exact.floats.size(); ++i) {
    double got = result.floats[i], want = exact.floats[i], eager = rounded.floats[i];
    if (!std::isfinite(got) || !std::isfinite(want)) {
      if (same_special(got, want, eager)) continue;
      ++special;
      if (first < 0) first = static_cast<int64_t>(i);
      agreement.max_abs_error = std::numeric_limits<double>::infinity();
      continue;
    }
    double error = std::abs(got - want);
    squares += error * error;
    if (std::isfinite(eager)) {
      rounded_squares += (eager - want) * (eager - want);
      rounded_largest = std::max(rounded_largest, std::abs(eager - want));
    }
    ++finite;
    agreement.max_abs_error = std::max(agreement.max_abs_error, error);
    if (error > absolute + tol * std::abs(want)) {
      ++far;
      if (first < 0) first = static_cast<int64_t>(i);
      if (error > largest) {
        largest = error;
        farthest = static_cast<int64_t>(i);
      }
    }
  }
  double count = static_cast<double>(std::max<int64_t>(finite, 1));
  agreement.rmse = std::sqrt(squares / count);
  agreement.rounded_rmse = std::sqrt(rounded_squares / count);
  // The mean of many elements hides a single wrong one, so the largest error counts as well.
  const bool is_rounding = agreement.rmse <= kRoundingFactor * agreement.rounded_rmse;
  const bool is_alone = is_rounding && largest > kRoundingFactor * rounded_largest;
  agreement.passed = special == 0 && (far == 0 || (is_rounding && !is_alone));
  if (special == 0 && is_alone) {
    auto at = static_cast<size_t>(farthest);
    agreement.why = fmt::format(
        "element {} is off by {:.3g}, where rounding alone is off by {:.3g} at most: {:.6g}, "
        "expected {:.6g}",
        farthest, largest, rounded_largest, result.floats[at], exact.floats[at]);
  } else if (!agreement.passed) {
    auto at = static_cast<size_t>(first);
    agreement.why =
        fmt::format("{} of {} elements are off, the first is element {}: {:.6g}, expected {:.6g}",
                    far + special, exact.floats.size(), first, result.floats[at], exact.floats[at]);
  }
  return agreement;
}

// Where its node came from: the table of the module before any pass has that place too.
Diag at_origin(Diag diag, const LocTable& locs) {
  diag.loc = locs.origin(diag.loc);
  for (Note& note : diag.notes) note.loc = locs.origin(note.loc);
  return diag;
}

}  // namespace

Result<Reference> evaluate_reference(const Module& module, const std::vector<Tensor>& inputs,
                                     const ReferenceOptions& how) {
  Reference reference;
  for (bool round : {false, true}) {
    EvalOptions options;
    options.round = round;
    options.uses_tf32 = how.uses_tf32;
    options.symbols = how.dims;
    options.max_bytes = how.max_bytes;
    if (how.progress)
      options.progress = [&](size_t done, size_t total) {
        double share = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
        return how.progress((share + (round ? 1 : 0)) / 2);
      };
    auto start = std::chrono::steady_clock::now();
    Result<EvalResult> result = evaluate(module, module.main(), inputs, options);
    if (!result.ok()) return at_origin(std::move(result).error(), module.locs);
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    reference.rounded_ms = elapsed.count();
    (round ? reference.rounded : reference.exact) = results_of(*std::move(result));
  }
  return reference;
}

std::vector<Tensor> results_of(EvalResult result) {
  std::vector<Tensor> tensors = std::move(result.outputs);
  std::move(result.mutated.begin(), result.mutated.end(), std::back_inserter(tensors));
  return tensors;
}

Agreement compare(const Tensor& result, const Tensor& exact, const Tensor& rounded) {
  if (result.dtype != exact.dtype || result.shape != exact.shape)
    return {.passed = false,
            .max_abs_error = std::numeric_limits<double>::infinity(),
            .why = fmt::format("it is {}[{}], expected {}[{}]", dtype_name(result.dtype),
                               fmt::join(result.shape, ", "), dtype_name(exact.dtype),
                               fmt::join(exact.shape, ", "))};
  return is_float(result.dtype) ? compare_floats(result, exact, rounded)
                                : compare_integers(result, exact, rounded);
}

Agreement compare(const std::vector<Tensor>& results, const Reference& reference) {
  Agreement all;
  if (results.size() != reference.exact.size())
    return {.passed = false,
            .why = fmt::format("{} outputs, expected {}", results.size(), reference.exact.size())};
  for (size_t i = 0; i < results.size(); ++i) {
    Agreement one = compare(results[i], reference.exact[i], reference.rounded[i]);
    all.max_abs_error = std::max(all.max_abs_error, one.max_abs_error);
    all.rmse = std::max(all.rmse, one.rmse);
    all.rounded_rmse = std::max(all.rounded_rmse, one.rounded_rmse);
    if (!one.passed && all.passed) all.why = fmt::format("output {}: {}", i, one.why);
    all.passed = all.passed && one.passed;
  }
  return all;
}

}  // namespace lathe
