// Programs that keep symbols: what the engine says of their sizes, and how it drives them there.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "frontend/file/file_source.h"
#include "frontend/file/inflate.h"
#include "tests/web/engine_client.h"

namespace lathe {
namespace {

constexpr const char* kKeepSymbols = "default,-specialize_shapes";
constexpr int64_t kMost = int64_t{1} << 40;  // that 'dims' takes

std::string encoder() {
  auto file = read_bytes("experiments/graphs/small_encoder.json.gz");
  EXPECT_TRUE(file.ok());
  return *inflate_bytes(file->text(), DeflateFormat::gzip, size_t{1} << 30);
}

// A layer over `ranges`, which declare s0.
std::string layer(const std::string& ranges) {
  return ranges + R"(
func @main(%x: f32[s0, 8], %w: f32[8, 4]) -> f32[s0, 4] {
  %a = matmul(%x, %w)
  %b = relu(%a)
  return %b
}
)";
}

// A compiled run of a graph.
Json run_of(const std::string& text, const std::string& name = "graph.lathe",
            const std::string& passes = kKeepSymbols, const std::string& isa = "simd128") {
  const Json model = ask({{"do", "open"}, {"name", name}}, text)["model"];
  return ask({{"do", "compile"}, {"model", model}, {"passes", passes}, {"isa", isa}});
}

Json sizes_request(const Json& run, const Json& more = Json::object()) {
  Json object{{"do", "sizes"}, {"run", run["run"]}};
  object.update(more);
  return object;
}
Json sizes_of(const Json& run, const Json& more = Json::object()) {
  return ask(sizes_request(run, more));
}

TEST(Sizes, AModelThatStaysOpenHasFormulasAndTheirValues) {
  const Json run = run_of(encoder(), "m.json");
  EXPECT_EQ(run["has_symbols"], true);
  const Json here = sizes_of(run);
  const std::string symbol = here["symbols"][0]["name"];
  EXPECT_EQ(here["symbols"], Json::array({{{"name", symbol},
                                           {"min", 1},
                                           {"max", 512},
                                           {"is_bounded", true},
                                           {"hint", 64},
                                           {"here", 64}}}));
  EXPECT_NE(here["flops"]["text"].get<std::string>().find(symbol), std::string::npos);
  EXPECT_FALSE(here.contains("refused"));
  EXPECT_FALSE(here.contains("curve"));
  const Json twice = sizes_of(run, {{"dims", {{symbol, 128}}}});
  EXPECT_EQ(twice["symbols"][0]["here"], 128);
  EXPECT_EQ(twice["flops"]["text"], here["flops"]["text"]);
  for (const char* figure : {"flops", "bytes", "peak"})
    EXPECT_GT(twice[figure]["here"], here[figure]["here"]) << figure;
  EXPECT_GT(twice["predicted"], here["predicted"]);
  EXPECT_GT(twice["arena_bytes"], here["arena_bytes"]);
  EXPECT_GE(here["arena_bytes"], here["peak"]["here"]);
}

// What is said of a size is what is said of a program that was compiled for it alone.
TEST(Sizes, WorkIsThatOfAProgramOfTheSize) {
  const Json symbolic = run_of(layer("dim s0 in [1, 64] hint 5"));
  const Json fixed = run_of(layer("dim s0 in [1, 64] hint 5"), "graph.lathe", "default");
  EXPECT_EQ(fixed["has_symbols"], false);
  int64_t flops = 0;
  const Json program = ask({{"do", "program"}, {"run", fixed["run"]}});
  for (const Json& launch : program["steps"]) flops += launch["flops"].get<int64_t>();
  EXPECT_EQ(sizes_of(symbolic)["flops"]["here"], flops);
}

TEST(Sizes, ACurveGoesFromOneEndOfTheRangeToTheOther) {
  const Json run = run_of(encoder(), "m.json");
  const std::string symbol = sizes_of(run)["symbols"][0]["name"];
  const Json curve = sizes_of(run, {{"along", symbol}, {"points", 12}})["curve"];
  ASSERT_EQ(curve.size(), 12u);
  EXPECT_EQ(curve.front()["size"], 1);
  EXPECT_EQ(curve.back()["size"], 512);
  for (size_t i = 1; i < curve.size(); ++i) {
    EXPECT_GT(curve[i]["size"], curve[i - 1]["size"]);
    EXPECT_GT(curve[i]["predicted"], 0);
  }
  EXPECT_GT(curve.back()["predicted"], curve.front()["predicted"]);
  // A point of the curve is what the size itself is said to take.
  for (const Json& end : {curve.front(), curve.back()})
    EXPECT_EQ(sizes_of(run, {{"dims", {{symbol, end["size"]}}}})["predicted"], end["predicted"]);
  EXPECT_EQ(sizes_of(run, {{"along", symbol}, {"points", 1}})["curve"].size(), 1u);
  EXPECT_EQ(sizes_of(run, {{"along", symbol}, {"points", 64}})["curve"].size(), 50u);
}

TEST(Sizes, BothEndsOfTheRangeAreServedAndWhatIsBeyondIsRefused) {
  const Json run = run_of(layer("dim s0 in [2, 64] hint 5"));
  for (int64_t size : {2, 64}) {
    const Json at = sizes_of(run, {{"dims", {{"s0", size}}}});
    EXPECT_FALSE(at.contains("refused")) << at.dump(2);
    EXPECT_GT(at["predicted"], 0);
  }
  for (int64_t size : {int64_t{0}, int64_t{1}, int64_t{65}, kMost}) {
    const Json at = sizes_of(run, {{"dims", {{"s0", size}}}});
    EXPECT_NE(at["refused"].get<std::string>().find("2 to 64"), std::string::npos) << at.dump(2);
    EXPECT_FALSE(at.contains("predicted") || at.contains("arena_bytes"));
  }
}

TEST(Sizes, ASizeWithoutAnEndIsFollowedFarEnough) {
  const Json run = run_of(layer("dim s0 hint 5"));
  const Json at = sizes_of(run, {{"along", "s0"}, {"points", 5}});
  EXPECT_EQ(at["symbols"][0]["min"], 0);
  EXPECT_EQ(at["symbols"][0]["max"], 4096);
  EXPECT_EQ(at["symbols"][0]["is_bounded"], false);
  EXPECT_EQ(at["curve"].front()["size"], 0);
  EXPECT_EQ(at["curve"].back()["size"], 4096);
  const Json far = sizes_of(run, {{"dims", {{"s0", kMost}}}, {"along", "s0"}, {"points", 5}});
  EXPECT_TRUE(far.contains("refused") || far.contains("predicted")) << far.dump(2);
  EXPECT_EQ(far["curve"], at["curve"]);
  const Json none = sizes_of(run, {{"dims", {{"s0", 0}}}});
  EXPECT_EQ(none["flops"]["here"], 0) << none.dump(2);
}

// Ranges of exports may end where integers do.
TEST(Sizes, RangesThatEndWithTheIntegersAreFollowed) {
  const Json run = run_of(layer("dim s0 in [1, 9223372036854775806] hint 5"));
  const Json at = sizes_of(run, {{"along", "s0"}, {"points", 64}});
  EXPECT_GT(at["curve"].size(), 20u) << at.dump(2);
  EXPECT_EQ(at["curve"].front()["size"], 1);
}

TEST(Sizes, AGuardIsToldAndRefuses) {
  const Json run =
      run_of(layer("dim s0 in [1, 64] hint 8\nguard s0 % 8 == 0 because \"a branch\""));
  const Json at = sizes_of(run, {{"dims", {{"s0", 9}}}, {"along", "s0"}, {"points", 10}});
  EXPECT_EQ(at["guards"], Json::array({"s0 % 8 == 0"}));
  EXPECT_NE(at["refused"].get<std::string>().find("s0 % 8 == 0"), std::string::npos) << at.dump(2);
  EXPECT_GT(at["curve"].size(), 2u);
  for (const Json& point : at["curve"]) EXPECT_EQ(point["size"].get<int64_t>() % 8, 0);
  // With no size that all guards allow there is no curve.
  const Json two = run_of(
      "dim s0 in [1, 64] hint 6\ndim s1 in [1, 64] hint 6\nguard s1 == s0\n"
      "func @main(%x: f32[s0], %y: f32[s1]) -> f32[s0] {\n  %a = relu(%x)\n  return %a\n}\n");
  const Json apart = sizes_of(two, {{"dims", {{"s1", 70}}}, {"along", "s0"}, {"points", 10}});
  EXPECT_TRUE(apart["curve"].empty()) << apart.dump(2);
  EXPECT_TRUE(apart.contains("refused"));
}

TEST(Sizes, OfAGpuNothingIsPredicted) {
  const Json run = run_of(layer("dim s0 in [1, 64] hint 5"), "graph.lathe", kKeepSymbols, "sm_90");
  const Json at = sizes_of(run, {{"along", "s0"}, {"points", 3}});
  EXPECT_FALSE(at.contains("predicted"));
  EXPECT_GE(at["arena_bytes"], 0);
  for (const Json& point : at["curve"]) EXPECT_FALSE(point.contains("predicted"));
}

TEST(Sizes, RequestsAreChecked) {
  const Json run = run_of(layer("dim s0 in [1, 64] hint 5"));
  const auto refusal = [&](const Json& more) { return error_of(sizes_request(run, more)); };
  const auto says = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  says(refusal({{"dims", {{"s1", 4}}}}), "no size 's1' is open here; s0 are");
  says(refusal({{"dims", {{"s0", -1}}}}), "-1");
  says(refusal({{"dims", {{"s0", kMost + 1}}}}), "1099511627777");
  says(refusal({{"dims", {{"s0", "four"}}}}), "s0");
  says(refusal({{"dims", 4}}), "an object of sizes by symbol");
  says(refusal({{"along", "s0"}, {"points", 65}}), "'points' is 65, expected 0 to 64");
  says(refusal({{"along", "s0"}, {"points", -1}}), "'points' is -1, expected 0 to 64");
  says(refusal({{"along", "s0"}, {"points", "many"}}), "expected an integer");
  says(refusal({{"along", "s9"}, {"points", 2}}), "no size 's9' is open here");
  says(refusal({{"along", "s9"}}), "no size 's9' is open here");
  says(refusal({{"along", 3}}), "expected a string");
  says(refusal({{"points", 2}}), "no size '' is open here");
  says(error_of({{"do", "sizes"}}), "'run' is missing");
}

TEST(Sizes, WithoutSymbolsThereIsNothingToSay) {
  const std::string text = layer("dim s0 in [1, 64] hint 5");
  for (const char* passes : {"default", "graph", "", "cse"}) {
    const Json run = run_of(text, "graph.lathe", passes);
    EXPECT_EQ(run["has_symbols"], false) << passes;
    EXPECT_NE(error_of(sizes_request(run)).find("leaves no size a symbol"), std::string::npos)
        << passes;
  }
}

// Programs that are not finished, too.
TEST(Sizes, EveryStepOfAPipelineCanBeAsked) {
  const Json model = ask({{"do", "open"}, {"name", "m.json"}}, encoder())["model"];
  const Json all = ask({{"do", "compile"}, {"model", model}, {"passes", kKeepSymbols}});
  size_t asked = 0;
  for (const Json& step : all["steps"]) {
    if (step["pass"] == "") continue;
    const Json run = ask({{"do", "compile"},
                          {"model", model},
                          {"passes", kKeepSymbols},
                          {"stop_after", step["pass"]}});
    if (run["has_symbols"] == false) continue;
    ++asked;
    EXPECT_GT(sizes_of(run)["predicted"], 0) << step["pass"];
  }
  EXPECT_GT(asked, 1u);
}

// ---- one program at several sizes

Json at_size(const Json& run, const char* what, int64_t size, const Json& more = Json::object()) {
  Json object{{"do", what}, {"run", run["run"]}, {"dims", {{"s0", size}}}};
  object.update(more);
  return object;
}

TEST(AtSizes, AProgramHasTheNumbersOfTheSize) {
  const Json run = run_of(layer("dim s0 in [1, 64] hint 5"));
  const Json here = ask({{"do", "program"}, {"run", run["run"]}});
  EXPECT_EQ(here, ask(at_size(run, "program", 5)));
  const Json more = ask(at_size(run, "program", 64));
  ASSERT_EQ(here["steps"].size(), more["steps"].size());
  for (size_t i = 0; i < here["steps"].size(); ++i) {
    const Json& few = here["steps"][i];
    const Json& many = more["steps"][i];
    EXPECT_EQ(many["flops"].get<int64_t>() * 5, few["flops"].get<int64_t>() * 64);
    EXPECT_GT(many["predicted"], few["predicted"]);
    // The kernel is the one for all sizes, which "kernel" shows.
    EXPECT_EQ(many["kernel"], few["kernel"]);
    const Json kernel = ask({{"do", "kernel"}, {"run", run["run"]}, {"kernel", many["kernel"]}});
    EXPECT_EQ(kernel["name"], more["kernels"][many["kernel"].get<size_t>()]["name"]);
  }
  EXPECT_EQ(here["kernels"], more["kernels"]);
  const auto input = more["inputs"][0].get<size_t>();
  EXPECT_EQ(more["buffers"][input]["num_bytes"], 64 * 8 * 4);
  EXPECT_EQ(more["buffers"][input]["type"], "f32[64, 8]");
}

// Launches share kernels over symbols, and have their own at numbers: told are those of the module.
TEST(AtSizes, KernelsKeepTheirNumbers) {
  const Json run = run_of(encoder(), "m.json");
  const Json program = ask({{"do", "program"}, {"run", run["run"]}});
  const Json emitted = ask({{"do", "emit"}, {"run", run["run"]}, {"what", "layout"}});
  const Json& called = emitted["layout"]["steps"];
  ASSERT_EQ(program["steps"].size(), called.size());
  EXPECT_GT(called.size(), program["kernels"].size()) << "nothing is shared";
  for (size_t i = 0; i < called.size(); ++i) {
    const std::string kernel = "k" + std::to_string(program["steps"][i]["kernel"].get<int>());
    EXPECT_EQ(called[i]["kernel"], kernel);
    EXPECT_EQ(called[i]["label"], program["steps"][i]["label"]);
  }
}

TEST(AtSizes, OneModuleHasALayoutForEachSize) {
  const Json run = run_of(layer("dim s0 in [1, 100000000] hint 5"));
  const auto emitted = [&](int64_t size, const char* what = "wasm") {
    return request(at_size(run, "emit", size, {{"what", what}}).dump());
  };
  const Reply few = emitted(1), many = emitted(64);
  EXPECT_GT(few.bytes.size(), 100u);
  EXPECT_EQ(few.bytes, many.bytes);
  EXPECT_EQ(request(Json({{"do", "emit"}, {"run", run["run"]}, {"what", "wasm"}}).dump()).json,
            emitted(5).json);
  const Reply layout = emitted(64, "layout");
  EXPECT_EQ(layout.json, many.json);
  EXPECT_TRUE(layout.bytes.empty());
  const Json& at = many.json["layout"];
  EXPECT_EQ(at["inputs"][0]["bytes"], 64 * 8 * 4);
  EXPECT_EQ(at["outputs"][0]["bytes"], 64 * 4 * 4);
  EXPECT_EQ(at["table"]["address"], few.json["layout"]["table"]["address"]);
  EXPECT_NE(at["table"]["words"], few.json["layout"]["table"]["words"]);
  EXPECT_EQ(at["table"]["words"].size(), few.json["layout"]["table"]["words"].size());
  for (const Json& step : at["steps"]) {
    EXPECT_LT(step["lo"], step["hi"]);
    for (const Json& argument : step["arguments"]) EXPECT_GT(argument, 0);
  }
  EXPECT_EQ(emitted(100'000'000).json["error"]["code"], "too-large");
  EXPECT_EQ(emitted(0).json["error"]["code"], "dim-range");
  EXPECT_EQ(emitted(100'000'001, "layout").json["error"]["code"], "dim-range");
}

TEST(AtSizes, ResultsAreCheckedAtTheSize) {
  const Json run = run_of(layer("dim s0 in [1, 64] hint 5"));
  const Json seeds{{"weights", "random:0"}, {"inputs", "random:0"}};
  EXPECT_EQ(ask({{"do", "check"}, {"run", run["run"]}, {"inputs", "random:0"}})["passed"], true);
  for (int64_t size : {1, 5, 6, 64}) {
    Json check = at_size(run, "check", size, seeds);
    EXPECT_EQ(ask(check)["passed"], true) << size;
    check["results"] = true;
    EXPECT_EQ(ask(check, std::string(static_cast<size_t>(size) * 4 * 4, '\0'))["passed"], false);
    EXPECT_NE(error_of(check, std::string(4, '\0')).find("are left"), std::string::npos);
  }
  EXPECT_NE(error_of(at_size(run, "check", 65, seeds)).find("1 to 64"), std::string::npos);
  // The model has its own sizes again.
  EXPECT_EQ(ask({{"do", "check"}, {"run", run["run"]}, {"inputs", "random:0"}})["passed"], true);
}

TEST(AtSizes, InputsAreMadeForTheSize) {
  const std::string text = layer("dim s0 in [1, 64] hint 5");
  const Json model = ask({{"do", "open"}, {"name", "graph.lathe"}}, text)["model"];
  const auto made = [&](const Json& dims) {
    const Json object{
        {"do", "make_input"}, {"model", model}, {"input", 0}, {"seed", "random:0"}, {"dims", dims}};
    return request(object.dump());
  };
  EXPECT_EQ(made({{"s0", 7}}).bytes.size(), 7u * 8 * 4);
  EXPECT_EQ(made({{"s0", 7}}).json["shape"], Json({7, 8}));
  EXPECT_EQ(made(Json::object()).bytes.size(), 5u * 8 * 4);
  EXPECT_EQ(made({{"s9", 7}}).json["error"]["code"], "bad-value");
  EXPECT_EQ(made({{"s0", kMost}}).json["error"]["code"], "bad-value");
}

TEST(AtSizes, ProgramsOfNumbersTakeNoSizes) {
  const Json run = run_of(layer("dim s0 in [1, 64] hint 5"), "graph.lathe", "default");
  for (const char* what : {"program", "emit", "check"})
    EXPECT_NE(error_of(at_size(run, what, 5, {{"what", "wasm"}})).find("all are numbers"),
              std::string::npos)
        << what;
  EXPECT_FALSE(
      ask({{"do", "emit"}, {"run", run["run"]}, {"what", "layout"}})["layout"].contains("table"));
}

}  // namespace
}  // namespace lathe
