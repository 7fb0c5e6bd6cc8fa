// Strict runs: see strict_case.h.
#include "tests/models/strict_case.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/wasm/node/backend.h"
#include "experiments/runner/config.h"
#include "experiments/runner/study.h"
#include "frontend/driver/backends.h"

namespace lathe {

Status check_target(const std::string& target) {
  const size_t space = target.find(' ');
  const std::string name = target.substr(0, space), isa = target.substr(space + 1);
  LATHE_DO(make_backend(name, isa));
  return name == "wasm" ? check_wasm(isa) : Status(Ok{});
}

Result<std::vector<Tensor>> outputs_of(const std::string& path, const std::string& target,
                                       const std::string& numerics) {
  const size_t space = target.find(' ');
  LocTable locs;
  ExperimentConfig config;
  const bool is_fixture = path.find("fixtures") != std::string::npos;
  const std::string stem = path.substr(0, path.rfind('.'));
  std::vector<Flag> flags = {{"model", path},
                             {"inputs", is_fixture ? stem + ".inputs.npz" : "random:0"},
                             {"weights", is_fixture ? "file" : "random:0"},
                             {"targets", target.substr(0, space)},
                             {"isa", target.substr(space + 1)},
                             {"numerics", numerics},
                             {"threads", "1"},
                             {"check", "none"},
                             {"measure", "warmup=0,repeats=1,min_ms=0"}};
  LATHE_DO(apply_config_flags(flags, "", locs, config));
  BuildFailure failure;
  LATHE_TRY(Study study, run_study(config, {.keep_outputs = true}, locs, failure));
  for (const StudyRow& row : study.rows)
    EXPECT_EQ(row.target + " " + row.isa, target);  // another machine's bits would prove nothing
  return std::move(study.outputs);
}

int64_t count_different(const Tensor& a, const Tensor& b) {
  int64_t count = 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.get(i), y = b.get(i);
    const bool is_same = (std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0;
    count += !is_same;
  }
  return count;
}

namespace {

// NaN and zeros are alike on every target, however they came about.
bool says_something(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    if (!std::isnan(tensor.get(i)) && tensor.get(i) != 0) return true;
  return false;
}

// Kept until another model is asked for: its tests follow each other.
const Result<std::vector<Tensor>>& strict_on_avx2(const std::string& path) {
  static std::string kept;
  static Result<std::vector<Tensor>> outputs = std::vector<Tensor>();
  if (kept != path) outputs = outputs_of(path, "cpu avx2", "strict");
  kept = path;
  return outputs;
}

}  // namespace

void expect_bits_of_avx2(const std::string& path, const std::string& target) {
  const Status has_target = check_target(target);
  if (!has_target.ok()) GTEST_SKIP() << has_target.error().message;
  const auto& expected = strict_on_avx2(path);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const auto got = outputs_of(path, target, "strict");
  ASSERT_TRUE(got.ok()) << got.error().message;
  ASSERT_FALSE(expected->empty());
  ASSERT_EQ(got->size(), expected->size());
  for (size_t i = 0; i < got->size(); ++i) {
    const Tensor &want = (*expected)[i], &have = (*got)[i];
    ASSERT_EQ(have.dtype, want.dtype) << "output " << i;
    ASSERT_EQ(have.shape, want.shape) << "output " << i;
    EXPECT_TRUE(says_something(want)) << "output " << i;
    EXPECT_EQ(count_different(want, have), 0) << "output " << i;
  }
}

}  // namespace lathe
