// What a trace predicts, calls do: the same programs, for the same reasons, as often.
#include "frontend/artifacts/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/driver/backends.h"
#include "tests/api/handle.h"

namespace lathe {
namespace {

constexpr char kModel[] = "tests/fixtures/ffnn_dynamic.pt2";  // of a batch from 1 to 64, here 3

// Of the programs that are there, what a trace says as well.
nlohmann::json comparable(const std::string& artifacts) {
  nlohmann::json rows = nlohmann::json::parse(artifacts);
  for (nlohmann::json& row : rows)
    for (const char* key :
         {"guards", "cache", "compile_ms", "load_ms", "drops", "arena_bytes", "persistent_bytes"})
      row.erase(key);
  return rows;
}

// A handle binds the model's own size when it is loaded.
nlohmann::json predicted(const CompileRequest& request, const std::vector<int64_t>& batches) {
  LocTable locs;
  auto model = load_model(kModel, {.allow_no_weights = true}, locs);
  EXPECT_TRUE(model.ok());
  auto backend = choose_backend(request);
  EXPECT_TRUE(backend.ok());
  std::vector<std::vector<int64_t>> calls = {{3}};
  for (int64_t batch : batches) calls.push_back({batch});
  auto found = trace(*model, (*backend)->target(), request, calls);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return nlohmann::json::parse(to_json(*found))["artifacts"];
}

nlohmann::json real(const std::string& options, const std::vector<int64_t>& batches) {
  Handle handle(kModel, options.c_str());
  EXPECT_EQ(handle.error(), "");
  for (int64_t batch : batches) lathe_bind(handle.get(), &batch, 1);
  return comparable(lathe_artifacts(handle.get()));
}

TEST(TraceOfAHandle, PredictsItsProgramsUnderEachPolicy) {
  const std::vector<int64_t> batches = {3, 5, 65, 1, 64, 5, 3, 8, 8, 0, 2};
  EXPECT_EQ(predicted({}, batches), real(R"({"threads": 1})", batches));
  EXPECT_EQ(predicted({.dynamic = true}, batches),
            real(R"({"threads": 1, "dynamic": true})", batches));
  const nlohmann::json each = predicted({.dynamic = false, .recompile_limit = 3}, batches);
  EXPECT_EQ(each.size(), 3U);
  EXPECT_EQ(each, real(R"({"threads": 1, "dynamic": false, "recompile_limit": 3})", batches));
}

}  // namespace
}  // namespace lathe
