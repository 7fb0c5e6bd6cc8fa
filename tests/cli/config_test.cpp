// Experiment configs: what they read to, and where their errors point.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "experiments/runner/config.h"
#include "frontend/driver/files.h"

namespace lathe {
namespace {

Result<ExperimentConfig> read(const std::string& text, LocTable& locs) {
  return read_config(text, "mine.json", locs);
}

// "7:14 unknown-key: message" of the error that the text gives.
std::string error_of(const std::string& text) {
  LocTable locs;
  Result<ExperimentConfig> config = read(text, locs);
  if (config.ok()) return "no error";
  const LocRow& row = locs[config.error().loc];
  return std::to_string(row.line) + ":" + std::to_string(row.column) + " " + config.error().code +
         ": " + config.error().message;
}

TEST(Config, ReadsEveryKeyOfAnExperiment) {
  LocTable locs;
  auto config = read(R"({"model": {"name": "m", "path": "a/b.pt2"}, "weights": "random:7",
    "passes": {"off": "minimal", "on": "default"}, "threads": [1, 2], "check": "none",
    "dims": {"s0": 8}, "dynamic": false, "measure": {"repeats": 5}})",
                     locs);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->name, "mine");
  EXPECT_EQ(config->models[0].source, "a/b.pt2");
  EXPECT_EQ(config->request.weights.seed, 7u);
  EXPECT_EQ(config->variants[1].name, "on");
  EXPECT_EQ(config->threads, (std::vector<int>{1, 2}));
  EXPECT_FALSE(config->check_interp);
  EXPECT_EQ(config->request.dims.at("s0"), 8);
  EXPECT_EQ(config->request.dynamic, false);
  EXPECT_EQ(config->measure.repeats, 5);
  EXPECT_EQ(config->measure.warmup, 3);
}

TEST(Config, PrintsAsOneThatReadsBack) {
  LocTable locs;
  auto config = read(R"({"models": ["ffnn", {"path": "x/y.json.gz", "dims": {"s0": 3}}],
    "threads": 2, "dynamic": null})",
                     locs);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->models[0].dims.empty());
  EXPECT_EQ(config->models[1].dims.at("s0"), 3);
  std::string printed = print_config(*config);
  auto again = read(printed, locs);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(print_config(*again), printed);
}

TEST(Config, PointsAtTheKeyThatIsUnknownAndNamesTheNearest) {
  EXPECT_EQ(error_of("{\"model\": \"m\",\n  \"thread\": 2}"),
            "2:3 unknown-key: no key named 'thread'; did you mean 'threads'?");
  EXPECT_EQ(error_of(R"({"model": "m", "measure": {"repeat": 2}})"),
            "1:28 unknown-key: no key named 'repeat'; did you mean 'repeats'?");
}

TEST(Config, PointsAtAValueOfTheWrongKind) {
  EXPECT_EQ(error_of(R"({"model": "m", "threads": "two"})"),
            "1:27 bad-value: 'threads' is a whole number from 1 to 1024, got 'two'");
  EXPECT_EQ(error_of(R"({"model": "m", "threads": [1, 0]})"),
            "1:31 bad-value: 'threads' is a whole number from 1 to 1024, got 0");
  EXPECT_EQ(error_of(R"({"model": "m", "check": "intrep"})"),
            "1:25 bad-value: 'check' is one of interp, none, got 'intrep'; did you mean 'interp'?");
  EXPECT_EQ(error_of(R"({"model": "m", "weights": "random:x"})"),
            "1:27 bad-value: the seed of 'weights' is a whole number, got 'x'");
  EXPECT_EQ(error_of(R"({"model": "m", "weights": "w.npz"})"),
            "1:27 bad-value: 'weights' is 'file' or 'random:SEED', got 'w.npz'");
  EXPECT_EQ(error_of(R"({"model": "m", "model": "n"})"),
            "1:16 bad-value: key 'model' is written twice");
}

TEST(Config, TakesANameOfOneFileInOneFolder) {
  EXPECT_EQ(error_of(R"({"model": "m", "name": "../../x"})"),
            "1:24 bad-value: 'name' is letters, digits, '.', '_' and '-'; did you mean '.._.._x'?");
  EXPECT_NE(error_of(R"({"model": "m", "name": "a\u0000b"})").find("did you mean 'a_b'?"),
            std::string::npos);
  for (const char* name : {"..", ".", "", "a/b", "a b", "\u00e9"})
    EXPECT_NE(error_of(fmt::format(R"({{"model": "m", "name": "{}"}})", name)).find("bad-value"),
              std::string::npos)
        << name;
  LocTable locs;
  EXPECT_EQ(read_config(R"({"model": "m"})", "../a b.json", locs)->name, "a_b");
}

TEST(Config, NeedsAModel) {
  EXPECT_EQ(error_of("{}"),
            "1:1 bad-value: a config names at least one model: \"model\": \"ffnn\"");
}

TEST(Config, RefusesTextThatIsNoJson) {
  EXPECT_NE(error_of("{\"model\": }").find("syntax"), std::string::npos);
  EXPECT_NE(error_of("").find("syntax"), std::string::npos);
  EXPECT_NE(error_of(std::string(100, '[')).find("syntax"), std::string::npos);
}

TEST(Config, EveryCheckedInConfigReads) {
  const std::map<std::string, size_t> models = {{"cuda", 8}, {"padding", 14}, {"quickstart", 3}};
  for (const auto& [name, count] : models) {
    LocTable locs;
    Result<std::string> text = read_file("experiments/configs/" + name + ".json");
    ASSERT_TRUE(text.ok());
    auto config = read_config(*text, name + ".json", locs);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->models.size(), count) << name;
  }
}

// The published schema and the reader know the same keys.
TEST(Config, SchemaHasTheKeysThatAreRead) {
  Result<std::string> text = read_file("experiments/schema/experiment.schema.json");
  ASSERT_TRUE(text.ok());
  auto schema = nlohmann::json::parse(*text);
  std::vector<std::string> keys;
  for (const auto& [key, value] : schema["properties"].items()) keys.push_back(key);
  EXPECT_EQ(keys, config_keys());
}

// One table serves files, the C ABI and command lines: no option is left out of one of them.
TEST(Options, FlagsAndJsonSayTheSame) {
  const std::map<std::string, std::pair<std::string, std::string>> samples = {
      {"cache", {"true", "true"}},
      {"force", {"keep add_3,tile %0 = 9x3", R"(["keep add_3", "tile %0 = 9x3"])"}},
      {"dims", {"s0=8", R"({"s0": 8})"}},
      {"dynamic", {"true", "true"}},
      {"isa", {"avx2", R"("avx2")"}},
      {"mark_dynamic", {"s0,s1", R"(["s0", "s1"])"}},
      {"mode", {"reduce-overhead", R"("reduce-overhead")"}},
      {"model", {"ffnn", R"("ffnn")"}},
      {"numerics", {"ieee", R"("ieee")"}},
      {"passes", {"cse", R"("cse")"}},
      {"recompile_limit", {"3", "3"}},
      {"specialize_on", {"s0 == 8,s0 % 4 == 0", R"(["s0 == 8", "s0 % 4 == 0"])"}},
      {"target", {"wasm", R"("wasm")"}},
      {"threads", {"3", "3"}},
      {"weights", {"random:7", R"("random:7")"}},
  };
  std::vector<Flag> flags;
  std::string text;
  for (const CompileOption& option : compile_options()) {
    const auto sample = samples.find(std::string(option.key));
    ASSERT_NE(sample, samples.end()) << option.key << " has no sample here";
    flags.push_back({sample->first, sample->second.first});
    text += (text.empty() ? "{\"" : ", \"") + sample->first + "\": " + sample->second.second;
  }
  LocTable locs;
  CompileRequest of_flags, of_json;
  Status status = apply_flags(flags, option_flags(), "lathe", locs,
                              [&](json::Value object, const LocateFn& locate) {
                                return apply_options(object, locate, {}, of_flags);
                              });
  ASSERT_TRUE(status.ok()) << status.error().message;
  text += "}";
  auto document = json::parse(text, "options", locs);
  ASSERT_TRUE(document.ok()) << document.error().message;
  const LocateFn nowhere = [](size_t) { return Loc::unknown(); };
  status = apply_options((*document)->root(), nowhere, {}, of_json);
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (const CompileRequest* request : {&of_flags, &of_json}) {
    ASSERT_EQ(request->force.size(), 2u);
    EXPECT_EQ(request->force[0].node, "add_3");
    EXPECT_EQ(request->force[1].tile, (std::vector<int64_t>{9, 3}));
    EXPECT_EQ(request->dims.at("s0"), 8);
    EXPECT_EQ(request->isa, "avx2");
    EXPECT_TRUE(request->reduces_overhead());
    EXPECT_EQ(request->mark_dynamic, (std::vector<std::string>{"s0", "s1"}));
    EXPECT_EQ(request->specialize_on.size(), 2u);
    EXPECT_EQ(request->recompile_limit, 3);
    EXPECT_TRUE(request->cache);
    EXPECT_EQ(request->model, "ffnn");
    EXPECT_EQ(request->numerics, Numerics::ieee);
    EXPECT_EQ(request->passes, "cse");
    EXPECT_EQ(request->target, "wasm");
    EXPECT_EQ(request->threads, 3);
    EXPECT_EQ(request->weights.seed, 7u);
  }
  status = apply_options((*document)->root(), nowhere, {"model"}, of_json);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, "unknown-key");
}

TEST(Flags, GiveTheSameKeys) {
  LocTable locs;
  ExperimentConfig config;
  std::vector<Flag> flags = {{"model", "a.pt2,ffnn"},   {"threads", "1,2"},
                             {"dims", "s0=8,s1=4"},     {"measure", "repeats=5,min_ms=0.5"},
                             {"passes", "off=minimal"}, {"passes", "on=default,-cse"},
                             {"dynamic", "null"}};
  Status status = apply_config_flags(flags, "lathe run ...", locs, config);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(config.models.size(), 2u);
  EXPECT_EQ(config.threads.size(), 2u);
  EXPECT_EQ(config.request.dims.at("s1"), 4);
  EXPECT_EQ(config.measure.min_ms, 0.5);
  EXPECT_EQ(config.variants[1].name, "on");
  EXPECT_EQ(config.variants[1].passes, "default,-cse");
}

TEST(Flags, ErrorsPointIntoTheCommandLine) {
  LocTable locs;
  ExperimentConfig config;
  std::string line = "lathe run --model ffnn --threads 1,x";
  Status status = apply_config_flags({{"model", "ffnn"}, {"threads", "1,x"}}, line, locs, config);
  ASSERT_FALSE(status.ok());
  const LocRow& row = locs[status.error().loc];
  EXPECT_EQ(row.file, "command line");
  EXPECT_EQ(row.column, static_cast<int>(line.size()));
}

}  // namespace
}  // namespace lathe
