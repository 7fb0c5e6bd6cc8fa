// What sizes cost a program that was compiled with symbols: the check of its ranges and guards, a
// binding of sizes that were never seen, and one of sizes that were. Not a test: run it by hand.
//
//   bazel run //tests/bench:binding_bench -- MODEL.pt2...
//
// Sizes are drawn near the exporter's. "bind" is arithmetic, memory plan and addresses: everything
// between a call at new sizes and its first kernel; "at first" includes the memory that is asked of
// the system when sizes are larger than all before.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "frontend/driver/backends.h"
#include "frontend/driver/build.h"
#include "frontend/driver/measure.h"
#include "ir/program/binding.h"
#include "ir/type/size_check.h"
#include "tests/api/failing_calls.h"

namespace lathe {
namespace {

using Clock = std::chrono::steady_clock;
using Sizes = std::vector<int64_t>;

constexpr size_t kNewSizes = 60;  // fewer than are kept
constexpr int kRepeats = 20000;

double microseconds(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Distinct sizes that the program is for, the largest last.
std::vector<Sizes> sizes_of(const Program& program, const SizeCheck& check) {
  std::vector<Sizes> found;
  Sizes scratch;
  for (int64_t step = 0; found.size() < kNewSizes && step < 4096; ++step) {
    Sizes sizes;
    int64_t rest = step;
    for (const auto& [symbol, range] : program.symbols) {
      const auto hint = program.hints.find(symbol);
      const int64_t low = std::max<int64_t>(range.min.value_or(0), 1);
      const int64_t most = hint == program.hints.end() ? 16 : std::max<int64_t>(hint->second, 16);
      sizes.push_back(low + rest % most);
      rest /= 7;
    }
    if (check.allows(sizes, scratch) && std::find(found.begin(), found.end(), sizes) == found.end())
      found.push_back(sizes);
  }
  return found;
}

Status time_binding(const std::string& path) {
  LocTable locs;
  CompileRequest request{.model = path, .dynamic = true};
  LATHE_TRY(const std::unique_ptr<Backend> backend, choose_backend(request));
  LATHE_TRY(const Model model, load_model(path, {.allow_no_weights = true}, locs));
  BuildFailure failure;
  LATHE_TRY(const Build made, build(model, *backend, request, failure));
  const Program& program = *made.symbolic;
  const SizeCheck check(program.symbols, program.guards);
  const std::vector<Sizes> sizes = sizes_of(program, check);
  if (sizes.size() < 2)
    return Diag{"bench", Loc::unknown(), "found fewer than two sizes that the program is for"};

  Sizes scratch;
  int64_t num_allowed = check.allows(sizes[0], scratch) ? 1 : 0;
  auto start = Clock::now();
  for (int i = 0; i < kRepeats; ++i)
    num_allowed += check.allows(sizes[static_cast<size_t>(i) % sizes.size()], scratch) ? 1 : 0;
  const double check_ns = microseconds(start) * 1e3 / kRepeats;

  const Binder binder(program);
  Samples arithmetic, first;
  for (const Sizes& at : sizes) {
    start = Clock::now();
    LATHE_TRY(const Binding binding, binder.bind(at));
    arithmetic.milliseconds.push_back(microseconds(start));
  }
  for (const Sizes& at : sizes) {
    start = Clock::now();
    LATHE_DO(made.executable->bind(at));
    first.milliseconds.push_back(microseconds(start));
  }
  for (const Sizes& at : sizes) LATHE_DO(made.executable->bind(at));
  const FailingCalls counted(Call::memory, INT64_MAX);
  start = Clock::now();
  for (int i = 0; i < kRepeats; ++i) {
    const Status bound = made.executable->bind(sizes[static_cast<size_t>(i) % sizes.size()]);
    num_allowed += bound.ok() ? 1 : 0;
  }
  const double again_us = microseconds(start) / kRepeats;
  const int64_t allocated = FailingCalls::num_seen();
  fmt::print(
      "{}\n  {} symbols, {} guards, {} steps; {} sizes\n"
      "  check of ranges and guards {:>8.1f} ns\n"
      "  bind, never seen           {:>8.1f} us median, {:.1f} us at 90 %, {:.1f} us at worst\n"
      "  the same at first          {:>8.1f} us median, {:.1f} us at 90 %, {:.1f} us at worst\n"
      "  bind, seen                 {:>8.2f} us, {} allocations in {}\n",
      path, program.symbols.size(), program.guards.size(), program.steps.size(), sizes.size(),
      check_ns, arithmetic.median(), arithmetic.quantile(0.9), arithmetic.quantile(1),
      first.median(), first.quantile(0.9), first.quantile(1), again_us, allocated, kRepeats);
  return num_allowed == 2 * kRepeats + 1
             ? Status(Ok{})
             : Diag{"bench", Loc::unknown(), "a size was refused the second time"};
}

}  // namespace
}  // namespace lathe

int main(int num_arguments, char** arguments) {
  for (int i = 1; i < num_arguments; ++i) {
    const lathe::Status timed = lathe::time_binding(arguments[i]);
    if (timed.ok()) continue;
    fmt::print(stderr, "{}: {}\n", arguments[i], timed.error().message);
    return 1;
  }
}
