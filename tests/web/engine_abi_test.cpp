// The engine's C ABI, natively: the same sources as the module of a page.
#include <gtest/gtest.h>

#include <string>

#include "frontend/file/file_source.h"
#include "frontend/file/inflate.h"
#include "tests/web/engine_client.h"
#include "web/engine/engine.h"

namespace lathe {
namespace {

std::string zoo(const std::string& name) {
  auto file = read_bytes("tests/zoo/" + name + ".json.gz");
  EXPECT_TRUE(file.ok());
  return *inflate_bytes(file->text(), DeflateFormat::gzip, size_t{1} << 30);
}

constexpr const char* kText = R"(dim s0 in [1, 64]
func @main(%x: f32[s0, 8], %w: f32[8, 4]) -> f32[s0, 4] {
  %a = matmul(%x, %w)
  %b = relu(%a)
  %c = relu(%a)
  %d = add(%b, %c)
  return %d
}
)";

Json open_text() {
  return ask({{"do", "open"}, {"name", "cell.lathe"}, {"dims", {{"s0", 3}}}}, kText);
}

TEST(Engine, OpensTextAndTellsItsSignature) {
  Json model = open_text();
  EXPECT_EQ(model["nodes"], 4);
  EXPECT_EQ(model["inputs"][0]["type"], "f32[s0, 8]");
  EXPECT_EQ(model["inputs"][0]["sizes"], Json({3, 8}));
  EXPECT_EQ(model["dims"]["s0"], Json({{"value", 3}, {"min", 1}, {"max", 64}}));
}

TEST(Engine, KeepsWhatEveryStepLeft) {
  Json model = open_text();
  Json run = ask({{"do", "compile"}, {"model", model["model"]}, {"passes", "cse,dce"}});
  ASSERT_EQ(run["steps"].size(), 3u);
  EXPECT_EQ(run["steps"][1]["pass"], "cse");
  EXPECT_EQ(run["steps"][1]["changed"], true);
  EXPECT_EQ(run["steps"][0]["hash"], model["hash"]);
  EXPECT_NE(run["steps"][1]["hash"], model["hash"]);
  Json diff = ask({{"do", "diff"}, {"run", run["run"]}, {"step", 1}});
  ASSERT_EQ(diff["removed"].size(), 1u);
  EXPECT_EQ(diff["removed"][0]["name"], "c");
  ASSERT_EQ(diff["changed"].size(), 1u);
  EXPECT_EQ(diff["changed"][0]["before"], "%d = add(%b, %c) : f32[s0, 4]");
  EXPECT_EQ(diff["changed"][0]["text"], "%d = add(%b, %b) : f32[s0, 4]");
  Json text = ask({{"do", "text"}, {"run", run["run"]}, {"step", 0}});
  EXPECT_NE(text["text"].get<std::string>().find("%c = relu(%a)"), std::string::npos);
}

TEST(Engine, TellsNodesEdgesAndPlaces) {
  Json model = ask({{"do", "open"}, {"name", "m.json"}}, zoo("resnet18.aten"));
  Json run = ask({{"do", "compile"}, {"model", model["model"]}});
  Json graph = ask({{"do", "graph"}, {"run", run["run"]}, {"step", 0}, {"draw", true}});
  const Json& nodes = graph["nodes"];
  auto node = std::find_if(nodes.begin(), nodes.end(),
                           [](const Json& n) { return n.value("name", "") == "conv2d"; });
  ASSERT_NE(node, nodes.end());
  EXPECT_EQ((*node)["class"], "contraction");
  EXPECT_EQ((*node)["module"], "conv1");
  const Json& place = graph["table"][(*node)["places"][0].get<size_t>()];
  EXPECT_EQ(place["class"], "torch.nn.modules.conv.Conv2d");
  EXPECT_GT(place["line"].get<int>(), 0);
  EXPECT_EQ(place["file"], "torchvision/models/resnet.py");
  EXPECT_EQ(place["stack"].size(), 2u);
  for (const Json& edge : graph["edges"]) EXPECT_LT(edge[0], edge[2]);
  const Json& drawing = graph["drawing"];
  EXPECT_EQ(drawing["boxes"].size(), nodes.size());
  EXPECT_TRUE(std::any_of(drawing["clusters"].begin(), drawing["clusters"].end(),
                          [](const Json& c) { return c["key"] == "layer1.0"; }));
}

TEST(Engine, TellsThePipelinesRefusalsAndTheProgram) {
  Json model = ask({{"do", "open"}, {"name", "m.json"}}, zoo("resnet18.aten"));
  Json run = ask({{"do", "compile"}, {"model", model["model"]}});
  EXPECT_EQ(run["form"], "planned");
  bool has_refusal = false;
  for (const Json& step : run["steps"])
    for (const Json& refusal : step["refusals"]) {
      has_refusal = true;
      EXPECT_FALSE(refusal["message"].get<std::string>().empty());
    }
  EXPECT_TRUE(has_refusal);
  Json program = ask({{"do", "program"}, {"run", run["run"]}});
  EXPECT_GT(program["num_kernels"], 10);
  for (const Json& launch : program["steps"]) {
    EXPECT_FALSE(launch["label"].get<std::string>().empty());
    EXPECT_TRUE(launch.contains("places")) << launch.dump();
    for (const Json& buffer : launch["buffers"])
      EXPECT_LT(buffer.get<size_t>(), program["buffers"].size());
  }
  Json kernel = ask({{"do", "kernel"}, {"run", run["run"]}, {"kernel", 0}});
  EXPECT_EQ(kernel["text"].get<std::string>().rfind("kernel @", 0), 0u);
  Json loops = ask({{"do", "emit"}, {"run", run["run"]}, {"what", "loops"}});
  EXPECT_NE(loops["text"].get<std::string>().find(kernel["text"].get<std::string>().substr(0, 40)),
            std::string::npos);
}

Json compiled(const Json& model, const Json& force, const char* isa = "simd128") {
  Json request{{"do", "compile"}, {"model", model}, {"isa", isa}};
  if (!force.empty()) request["force"] = force;
  Json run = ask(request);
  EXPECT_FALSE(run.contains("failed")) << run.dump(2);
  EXPECT_EQ(run["force"], force);
  return ask({{"do", "program"}, {"run", run["run"]}});
}

TEST(Engine, TellsOfEachLaunchItsPlanPriceAndCandidates) {
  Json model = ask({{"do", "open"}, {"name", "m.json"}}, zoo("ffnn.aten"))["model"];
  Json program = compiled(model, Json::array());
  EXPECT_GT(program["gigahertz"], 0);
  for (const Json& launch : program["steps"]) {
    EXPECT_FALSE(launch["region"].get<std::string>().empty());
    EXPECT_GT(launch["predicted"], 0) << launch.dump();
    EXPECT_GT(launch["limit"], 0);
    EXPECT_TRUE(launch["bound"] == "arithmetic" || launch["bound"] == "memory" ||
                launch["bound"] == "launch");
    const Json& candidates = launch["candidates"];
    EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [&](const Json& candidate) {
      return candidate["plan"] == launch["plan"] && candidate.contains("predicted");
    })) << launch.dump();
    // A way that can is priced and can be asked for; one that cannot says why.
    for (const Json& candidate : candidates) {
      const bool can = !candidate.contains("why_not");
      EXPECT_EQ(candidate.contains("predicted"), can) << candidate.dump();
      EXPECT_EQ(candidate.contains("force"), can) << candidate.dump();
    }
  }
  for (const Json& launch : program["init"]) EXPECT_FALSE(launch.contains("predicted"));
  // Where vectors are spread over threads nothing is predicted.
  const Json on_gpu = compiled(model, Json::array(), "sm_90");
  for (const Json& launch : on_gpu["steps"])
    EXPECT_FALSE(launch.contains("predicted") || launch.contains("bound")) << launch.dump();
}

TEST(Engine, ACandidateThatIsAskedForIsTaken) {
  Json model = ask({{"do", "open"}, {"name", "m.json"}}, zoo("ffnn.aten"))["model"];
  Json program = compiled(model, Json::array());
  const Json& steps = program["steps"];
  const auto launch = std::find_if(steps.begin(), steps.end(),
                                   [](const Json& one) { return one["plan"] != "loops"; });
  ASSERT_NE(launch, steps.end());
  const Json& candidates = (*launch)["candidates"];
  const auto loops = std::find_if(candidates.begin(), candidates.end(),
                                  [](const Json& one) { return one["plan"] == "loops"; });
  ASSERT_NE(loops, candidates.end());
  EXPECT_EQ((*launch)["forced"], false);
  Json again = compiled(model, (*loops)["force"]);
  for (const Json& other : again["steps"]) {
    if (other["region"] != (*launch)["region"]) continue;
    EXPECT_EQ(other["plan"], "loops");
    EXPECT_EQ(other["forced"], true);
  }
  EXPECT_NE(again["steps"], program["steps"]);
  Json refused = ask({{"do", "compile"}, {"model", model}, {"force", {"kernel nothing = loops"}}});
  EXPECT_NE(refused["failed"]["message"].get<std::string>().find("no kernel computes 'nothing'"),
            std::string::npos);
  EXPECT_FALSE(refused["failed"].contains("places"));
}

TEST(Engine, DrawingsDoNotDependOnWhatWasDrawnBefore) {
  Json model = ask({{"do", "open"}, {"name", "m.json"}}, zoo("ffnn.aten"));
  auto drawing = [&](std::vector<int> steps) {
    Json run = ask({{"do", "compile"}, {"model", model["model"]}})["run"];
    Json last;
    for (int step : steps)
      last = ask({{"do", "graph"}, {"run", run}, {"step", step}, {"draw", true}})["drawing"];
    return last;
  };
  EXPECT_EQ(drawing({6}), drawing({0, 8, 2, 6}));
}

TEST(Engine, AnErrorOfTheModelHasItsPlace) {
  Json error = request(Json({{"do", "open"}, {"name", "cell.lathe"}}).dump(),
                       "func @main(%x: f32[2]) -> f32[2] {\n  %y = reluu(%x)\n  return %y\n}\n")
                   .json["error"];
  EXPECT_EQ(error["code"], "unknown-op");
  EXPECT_EQ(error["table"][error["places"][0].get<size_t>()]["line"], 2);
  EXPECT_NE(error["text"].get<std::string>().find("did you mean 'relu'?"), std::string::npos);
}

TEST(Engine, AFailedPipelineKeepsItsSteps) {
  Json model = open_text();
  Json run = ask({{"do", "compile"}, {"model", model["model"]}, {"passes", "cse,plan_memory"}});
  EXPECT_EQ(run["failed"]["code"], "bad-form");
  ASSERT_EQ(run["steps"].size(), 2u);  // the import, and what stood before the culprit
  EXPECT_EQ(run["steps"][1]["pass"], "cse");
  EXPECT_EQ(run["failed"]["step"], 2);
  Json text = ask({{"do", "text"}, {"run", run["run"]}, {"step", 1}});
  EXPECT_NE(text["text"].get<std::string>().find("func @main"), std::string::npos);
  run = ask({{"do", "compile"}, {"model", model["model"]}, {"passes", "plan_memory,cse"}});
  EXPECT_EQ(run["steps"].size(), 1u);
  EXPECT_EQ(run["failed"]["step"], 1);
}

TEST(Engine, RequestsAreChecked) {
  EXPECT_NE(error_of({{"do", "opne"}}).find("did you mean 'open'?"), std::string::npos);
  EXPECT_NE(error_of({{"do", 3}}).find("'do' is an integer, expected a string"), std::string::npos);
  EXPECT_NE(error_of({{"do", "text"}, {"run", 12345}}).find("no run 12345 is open"),
            std::string::npos);
  EXPECT_NE(
      request("[]").json["error"]["text"].get<std::string>().find("a request is a JSON object"),
      std::string::npos);
  EXPECT_NE(request("").json["error"].size(), 0u);
  EXPECT_NE(lathe_engine_request(nullptr, 0, nullptr, 0), nullptr);
  Json model = open_text();
  EXPECT_NE(error_of({{"do", "compile"}, {"model", model["model"]}, {"isa", "avx3"}})
                .find("did you mean 'avx2'?"),
            std::string::npos);
  EXPECT_NE(error_of({{"do", "make_weight"}, {"model", model["model"]}, {"name", "w"}})
                .find("no weight named 'w'"),
            std::string::npos);
}

TEST(Engine, ChecksResultsThatAreGiven) {
  Json model = open_text();
  Json run = ask({{"do", "compile"}, {"model", model["model"]}});
  Json check{{"do", "check"}, {"run", run["run"]}, {"weights", "random:0"}, {"inputs", "random:0"}};
  EXPECT_EQ(ask(check)["passed"], true);
  check["results"] = true;
  EXPECT_EQ(ask(check, std::string(3 * 4 * 4, '\0'))["passed"], false);
  EXPECT_NE(error_of(check, std::string(5, '\0')).find("needs 48 bytes, 5 are left"),
            std::string::npos);
}

TEST(Engine, ACheckThatCannotBeMadeSaysWhichLineOfTheModelIsWrong) {
  // Ids beyond the table: kernels stay inside it, the interpreter has no value to compare with.
  constexpr const char* kLookup = R"(func @main(%table: f32[5, 8], %ids: i64[4]) -> f32[4, 8] {
  %seven = constant() {value = [7], dtype = i64, shape = [1]}
  %far = add(%ids, %seven)
  %rows = embedding(%table, %far)
  return %rows
}
)";
  Json model = ask({{"do", "open"}, {"name", "lookup.lathe"}}, kLookup);
  Json run = ask({{"do", "compile"}, {"model", model["model"]}, {"isa", "simd128"}});
  ask({{"do", "emit"}, {"run", run["run"]}, {"what", "wasm"}});
  for (bool has_results : {false, true}) {
    Json check{{"do", "check"}, {"run", run["run"]}, {"inputs", "random:0"}};
    check["results"] = has_results;
    std::string results(has_results ? 4 * 8 * 4 : 0, '\0');
    Json error = request(check.dump(), results).json["error"];
    EXPECT_EQ(error["code"], "bad-value");
    EXPECT_NE(error["message"].get<std::string>().find("for a dim of size 5"), std::string::npos);
    EXPECT_EQ(error["table"][error["places"][0].get<size_t>()]["line"], 4);
  }
}

TEST(Engine, WhatACheckHasNoRoomForIsRefused) {
  auto refusal = [](const std::string& text, bool has_results = true) {
    Json model = ask({{"do", "open"}, {"name", "large.lathe"}}, text);
    Json run = ask({{"do", "compile"}, {"model", model["model"]}, {"isa", "simd128"}});
    Json check{{"do", "check"}, {"run", run["run"]}, {"inputs", "random:0"}};
    check["results"] = has_results;
    return error_of(check, std::string(has_results ? 4 : 0, '\0'));
  };
  std::string wide = refusal(
      "func @main(%x: f32[20000000]) -> f32[20000000] {\n  %y = relu(%x)\n  return %y\n}\n");
  EXPECT_NE(wide.find("38 million weights, inputs and outputs"), std::string::npos) << wide;
  // Small at both ends, and large in between.
  std::string deep = refusal(R"(func @main(%x: f32[20000, 1], %y: f32[1, 20000]) -> f32[] {
  %z = add(%x, %y)
  %s = sum(%z) {dim = [0, 1]}
  return %s
}
)");
  EXPECT_NE(deep.find("takes more than the 1024 MB allowed"), std::string::npos) << deep;
  // The same of the program, when its own loops give the results.
  std::string loops = refusal(R"(func @main(%x: f32[20000, 1], %y: f32[1, 20000]) -> f32[] {
  %z = add(%x, %y)
  %c = cumsum(%z) {dim = 0}
  %s = sum(%c) {dim = [0, 1]}
  return %s
}
)",
                              false);
  EXPECT_NE(loops.find("takes more memory than the 1073741824 bytes"), std::string::npos) << loops;
}

TEST(Engine, ClosedThingsAreGone) {
  Json model = open_text();
  Json run = ask({{"do", "compile"}, {"model", model["model"]}, {"passes", "cse"}});
  ask({{"do", "close"}, {"model", model["model"]}, {"run", run["run"]}});
  EXPECT_NE(error_of({{"do", "text"}, {"run", run["run"]}}), "");
  EXPECT_NE(error_of({{"do", "compile"}, {"model", model["model"]}}), "");
}

}  // namespace
}  // namespace lathe
