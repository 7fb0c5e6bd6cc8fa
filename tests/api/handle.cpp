// Calls of the C ABI.
#include "tests/api/handle.h"

#include <gtest/gtest.h>

#include <cstring>

namespace lathe {

namespace {

void fill(std::vector<std::byte>& bytes, lathe_dtype dtype) {
  const size_t width = dtype == LATHE_F32 ? 4 : dtype == LATHE_I64 ? 8 : 1;
  for (size_t i = 0; i * width < bytes.size(); ++i) {
    const float x = 0.01F * static_cast<float>(i % 97) - 0.5F;
    const int64_t one = 1;
    if (dtype == LATHE_F32) std::memcpy(&bytes[4 * i], &x, 4);
    if (dtype == LATHE_I64) std::memcpy(&bytes[8 * i], &one, 8);
  }
}

}  // namespace

void Handle::prepare() {
  arguments_.clear();
  results_.clear();
  inputs_.clear();
  outputs_.clear();
  const int32_t num_inputs = lathe_num_inputs(model_), num_outputs = lathe_num_outputs(model_);
  for (int32_t i = 0; i < num_inputs; ++i) {
    const lathe_tensor_info* info = lathe_input(model_, i);
    arguments_.emplace_back(info->num_bytes);
    fill(arguments_.back(), info->dtype);
  }
  for (int32_t i = 0; i < num_outputs; ++i)
    results_.emplace_back(lathe_output(model_, i)->num_bytes);
  for (auto& bytes : arguments_) inputs_.push_back(bytes.data());
  for (auto& bytes : results_) outputs_.push_back(bytes.data());
}

Bytes results_of(const std::string& path, const char* options) {
  Handle handle(path, options);
  EXPECT_EQ(handle.error(), "");
  handle.prepare();
  EXPECT_EQ(handle.run(), LATHE_OK) << handle.error();
  return handle.results();
}

}  // namespace lathe
