// One model is a study of one row for each target and number of threads, measured once.
#include "tests/models/model_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "experiments/runner/config.h"
#include "experiments/runner/study.h"
#include "fmt/format.h"
#include "frontend/npz/npz.h"
#include "ir/graph/tensor.h"

namespace lathe {

namespace {

Result<std::vector<Tensor>> read_tensors(const std::string& npz_path) {
  LATHE_TRY(std::vector<NamedArray> arrays, read_npz(npz_path));
  std::vector<Tensor> tensors(arrays.size());
  for (const NamedArray& named : arrays) {
    TensorData data;
    data.type.dtype = named.array.dtype;
    data.type.shape.assign(named.array.shape.begin(), named.array.shape.end());
    data.strides = row_major_strides(named.array.shape);
    data.bytes = named.array.bytes.data;
    data.num_bytes = named.array.bytes.size;
    size_t index = std::stoul(named.name);
    LATHE_TRY(tensors.at(index), read_tensor(data));
  }
  return tensors;
}

// PyTorch stands in the rule's place of eager, which it is.
void expect_equals_pytorch(const Study& study, const std::string& expected_path) {
  Result<std::vector<Tensor>> expected = read_tensors(expected_path);
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  ASSERT_GE(study.outputs.size(), expected->size());
  // Results that are not tensors stand nowhere in the file.
  for (size_t i = 0; i < expected->size(); ++i) {
    Agreement agreement = compare(study.outputs[i], (*expected)[i], (*expected)[i]);
    EXPECT_TRUE(agreement.passed) << "output " << i << " is not PyTorch's: " << agreement.why;
  }
}

}  // namespace

void expect_model_runs(const ModelCase& model) {
  LocTable locs;
  ExperimentConfig config;
  std::vector<Flag> flags = {
      {"model", model.path},      {"inputs", model.inputs},
      {"weights", model.weights}, {"targets", model.targets},
      {"threads", "1,2"},         {"measure", "warmup=0,repeats=1,min_ms=0"}};
  Status status = apply_config_flags(flags, "", locs, config);
  ASSERT_TRUE(status.ok()) << status.error().message;
  BuildFailure failure;
  Result<Study> study = run_study(config, {.keep_outputs = true}, locs, failure);
  ASSERT_TRUE(study.ok()) << render(study.error(), failure.locs);
  for (const StudyRow& row : study->rows) {
    EXPECT_TRUE(row.passed()) << row.target << ", " << row.threads
                              << " threads: " << row.agreement->why;
    fmt::print("{}, {}, {} threads: {:.0f} ms to compile, {:.2f} ms, {} kernels, error {:.1e}\n",
               row.model, row.target, row.threads, row.compile_ms, row.samples.median(),
               row.kernels, row.agreement->max_abs_error);
  }
  if (!model.expected.empty()) expect_equals_pytorch(*study, model.expected);
}

Result<Model> load_seeded_model(const std::string& path) {
  LocTable locs;
  Result<Model> model = load_model(path, {.random_weights = 0}, locs);
  if (model.ok()) return model;
  Diag error = std::move(model).error();
  error.message = render(error, locs);
  return error;
}

std::string error_of_model(const ModelCase& model) {
  LocTable locs;
  Result<Model> loaded = load_model(model.path, {}, locs);
  if (loaded.ok()) return "";
  std::string text;
  for (const std::string& row : loaded.error().rows)
    text += (text.empty() ? "" : ", ") + row.substr(0, row.find(' '));
  return loaded.error().code + ": " + text;
}

std::vector<std::string> files_with_ending(const std::string& folder, const std::string& ending) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string path = entry.path().string();
    bool ends = path.size() > ending.size() &&
                path.compare(path.size() - ending.size(), ending.size(), ending) == 0;
    if (ends) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string test_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const char* ending : {".gz", ".json", ".pt2"})
    if (name.size() > std::string(ending).size() && name.find(ending) != std::string::npos)
      name.resize(name.find(ending));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace lathe
