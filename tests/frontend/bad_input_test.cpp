// Broken model files: one clear error each, at its place, and never a crash.
#include <cstring>
#include <functional>

#include "frontend/file/zip.h"
#include "tests/frontend/importing.h"

namespace lathe {
namespace {

std::string fixture(const std::string& name = "ffnn") {
  auto bytes = read_bytes("tests/fixtures/" + name + ".pt2");
  EXPECT_TRUE(bytes.ok());
  return std::string(bytes->text());
}

// The fixture with one entry changed.
std::string with_entry(const std::string& name, const std::function<void(std::string&)>& change,
                       bool deflate = false, const std::string& archive = fixture(),
                       const std::string& model = "ffnn") {
  auto zip = ZipReader::open(own_bytes(archive));
  EXPECT_TRUE(zip.ok());
  ZipWriter out;
  for (const ZipEntry& entry : zip->entries()) {
    auto bytes = zip->read(entry, 1 << 26, true);
    EXPECT_TRUE(bytes.ok());
    std::string text(bytes->text());
    if (entry.name == model + "/" + name) change(text);
    EXPECT_TRUE(out.add(entry.name, text, deflate).ok());
  }
  return std::move(out).finish();
}

std::string replaced(const std::string& entry, const std::string& from, const std::string& to,
                     const std::string& model = "ffnn") {
  const auto change = [&](std::string& text) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  return with_entry(entry, change, false, fixture(model), model);
}

constexpr char kModel[] = "models/model.json";
constexpr char kWeights[] = "data/weights/model_weights_config.json";

void expect_error(std::string bytes, const std::string& expected) {
  const std::string error = import_bytes(std::move(bytes)).error;
  EXPECT_NE(error.find(expected), std::string::npos) << error;
}

TEST(BadInput, CompressedArchivesAreRead) {
  EXPECT_EQ(import_bytes(with_entry("", [](std::string&) {}, true)).error, "");
}

TEST(BadInput, FilesThatAreNoModel) {
  expect_error("", "m.pt2: error[bad-archive]: the file is empty");
  expect_error("hello", "m.pt2: error[bad-archive]: neither a PT2 archive");
  expect_error("PK\5\6", "error[bad-archive]: too short for a zip file");
  expect_error("{}", "m.pt2:1:1: error[bad-model]: key \"schema_version\" is missing");
  ZipWriter zip;
  ASSERT_TRUE(zip.add("readme.txt", "hi", false).ok());
  expect_error(std::move(zip).finish(), "it has no entry 'archive_format'");
  ZipWriter old;
  ASSERT_TRUE(old.add("serialized_exported_program.json", "{}", false).ok());
  expect_error(std::move(old).finish(), "error[schema-version]");
  EXPECT_NE(import_path("no/such.pt2").error.find("error[missing-file]: cannot open"),
            std::string::npos);
}

TEST(BadInput, BrokenJsonIsNamedByLineAndColumn) {
  expect_error(replaced(kModel, "\"nodes\":[", "\"nodes\":[}"), "m.pt2:models/model.json:1:");
  expect_error(replaced(kModel, "\"nodes\":", "\"n0des\":"), "key \"nodes\" is missing");
  expect_error(replaced(kModel, "\"major\":8", "\"major\":9"),
               "error[schema-version]: export schema 9.20, expected 8.x");
}

TEST(BadInput, ControlFlowThatIsNoChoiceOfPureBranches) {
  const auto refuse = [](const std::string& from, const std::string& to,
                         const std::string& expected) {
    expect_error(replaced(kModel, from, to, "cond"), expected);
  };
  refuse("higher_order.cond", "higher_order.while_loop",
         "higher_order.while_loop  1 use,  first at models.py:");
  refuse(R"("arg":{"as_tensor":{"name":"gt"}})", R"("arg":{"as_bool":true})",
         "torch.cond chooses by a tensor of one bool here, not by a size");
  refuse(R"("outputs":[{"as_tensor":{"name":"add"}}],"nodes")", R"("outputs":[],"nodes")",
         "the branches of 'cond' have 0 and 1 results");
}

TEST(BadInput, CastsOfAnAutocastRegionMustBeThoseOfTheFile) {
  expect_error(
      replaced(kModel, R"("arg":{"as_bool":false})", R"("arg":{"as_bool":true})", "autocast"),
      "models.py:308: error[type-mismatch]: result 0 of 'torch.ops.aten.linear.default' is f32[3, "
      "4] "
      "in the file, but its arguments make it bf16[3, 4]");
}

TEST(BadInput, ReferencesMustResolve) {
  expect_error(replaced(kModel, R"("arg":{"as_tensor":{"name":"gelu"}})",
                        R"("arg":{"as_tensor":{"name":"gelv"}})"),
               "error[undefined-value]: value 'gelv' is used but nothing before defines it");
  expect_error(replaced(kModel, R"("user_output":{"arg":{"as_tensor":{"name":"softmax"}})",
                        R"("user_output":{"arg":{"as_tensor":{"name":"sofa"}})"),
               "error[undefined-value]: value 'sofa'");
}

TEST(BadInput, UnsupportedOpsComeAtOnceWithCountsAndPlaces) {
  const std::string bytes = with_entry(kModel, [](std::string& text) {
    for (const auto& [from, to] : {std::pair("aten.linear.default", "aten.linalg_eig.default"),
                                   std::pair("aten.gelu.default", "mylib.special.default")})
      for (size_t at = 0; (at = text.find(from, at)) != text.npos;)
        text.replace(at, std::strlen(from), to);
  });
  EXPECT_EQ(import_bytes(bytes).error,
            "m.pt2: error[unsupported-op]: 2 ops of this model are not supported\n"
            "  aten.linalg_eig.default  2 uses, first at models.py:17  return "
            "self.net(x).softmax(-1)\n"
            "  mylib.special.default    1 use,  first at models.py:17  return "
            "self.net(x).softmax(-1)\n");
}

TEST(BadInput, TypesMustAgreeWithTheFile) {
  expect_error(replaced(kModel, R"("gelu":{"dtype":7,"sizes":[{"as_int":3},{"as_int":32}])",
                        R"("gelu":{"dtype":7,"sizes":[{"as_int":3},{"as_int":31}])"),
               "error[type-mismatch]: 'gelu' is f32[3, 31] in the file");
  expect_error(replaced(kModel, R"("x":{"dtype":7)", R"("x":{"dtype":28)"),
               "error[unsupported]: tensor 'x' is of dtype uint16 (28)");
  expect_error(replaced(kModel, R"("x":{"dtype":7)", R"("x":{"dtype":29)"),
               "error[unsupported]: 'torch.ops.aten.linear.default' of float8 is not supported");
  expect_error(replaced(kModel, R"("x":{"dtype":7)", R"("x":{"dtype":10)"),
               "error[type-mismatch]: 'linear' is f32[3, 32] in the file, but");
  expect_error(replaced(kModel, R"("x":{"dtype":7)", R"("x":{"dtype":999)"), "dtype unknown (999)");
}

TEST(BadInput, AWeightIsOneInput) {
  expect_error(
      replaced(kModel, R"("parameter_name":"net.2.bias")", R"("parameter_name":"net.0.bias")"),
      "error[bad-model]: two inputs are the weight 'net.0.bias'");
}

TEST(BadInput, MutationsKeepTheTypeAndComeOnce) {
  const auto mutated = [](const std::string& specs) {
    return replaced(kModel, R"("output_specs":[)", R"("output_specs":[)" + specs + ",");
  };
  const auto mutation = [](const std::string& value) {
    return R"({"user_input_mutation":{"arg":{"name":")" + value + R"("},"user_input_name":"x"}})";
  };
  EXPECT_EQ(import_bytes(mutated(mutation("x"))).error, "");
  expect_error(mutated(mutation("softmax")), "error[bad-model]: mutation of 'x', which is f32[3, ");
  expect_error(mutated(mutation("x") + "," + mutation("x")),
               "error[bad-model]: two mutations of 'x'");
}

TEST(BadInput, AbsurdSizes) {
  const std::string sizes = R"("x":{"dtype":7,"sizes":[{"as_int":3},{"as_int":24}])";
  expect_error(replaced(kModel, sizes,
                        R"("x":{"dtype":7,"sizes":[{"as_int":4611686018427387904},{"as_int":9}])"),
               "error[too-large]: tensor 'x' of shape [4611686018427387904, 9]");
  expect_error(replaced(kModel, sizes, R"("x":{"dtype":7,"sizes":[{"as_int":-3},{"as_int":24}])"),
               "error[bad-model]: tensor 'x' has the negative size -3");
  expect_error(
      replaced(kModel, sizes, R"("x":{"dtype":7,"sizes":[{"as_expr":{"expr_str":"s0 +"}}])"),
      "error[bad-model]: size expression \"s0 +\"");
}

TEST(BadInput, WeightsMustBeThereAndWhole) {
  expect_error(replaced(kWeights, "\"net.0.bias\"", "\"net.9.bias\""),
               "error[missing-weight]: 1 weight of this model is not in the file\n  net.0.bias\n");
  expect_error(with_entry("data/weights/weight_1", [](std::string& text) { text.resize(127); }),
               "error[missing-weight]: weight 'net.0.bias' (f32[32]) needs 128 bytes, its payload "
               "has 127");
  expect_error(replaced(kWeights, "\"weight_1\"", "\"weight_77\""),
               "error[missing-weight]: the archive has no entry data/weights/weight_77");
  expect_error(replaced(kWeights, R"("storage_offset": {"as_int": 0})",
                        R"("storage_offset": {"as_int": 9223372036854775807})"),
               "error[too-large]: the strides of weight");
  expect_error(replaced(kWeights, R"("strides": [{"as_int": 24})", R"("strides": [{"as_int": -1})"),
               "error[too-large]: the strides of weight 'net.0.weight'");
  expect_error(replaced(kWeights, R"("use_pickle": false)", R"("use_pickle": true)"),
               "error[unsupported]: weight 'net.0.weight' is pickled");
  expect_error(replaced(kWeights, R"("sizes": [{"as_int": 32}, {"as_int": 24}])",
                        R"("sizes": [{"as_int": 24}, {"as_int": 32}])"),
               "error[bad-model]: weight 'net.0.weight' is f32[24, 32] in the archive, f32[32, 24] "
               "in the graph");
}

void change(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, text.npos) << from;
  text.replace(at, from.size(), to);
}

TEST(BadInput, WeightsThatExpandWithoutBound) {
  const std::string size = "1099511627776";
  std::string bytes = with_entry(kWeights, [&](std::string& text) {
    change(text, R"("as_int": 32}, {"as_int": 24)", "\"as_int\": " + size + R"(}, {"as_int": 24)");
    change(text, R"("strides": [{"as_int": 24})", R"("strides": [{"as_int": 0})");
  });
  bytes = with_entry(
      kModel,
      [&](std::string& text) {
        change(text, R"("p_net_0_weight":{"dtype":7,"sizes":[{"as_int":32})",
               R"("p_net_0_weight":{"dtype":7,"sizes":[{"as_int":)" + size + "}");
      },
      false, bytes);
  expect_error(bytes, "error[too-large]: weight 'net.0.weight' (f32[1099511627776, 24]) expands");
}

TEST(BadInput, WeightsThatExpandTogether) {
  // Each stays below what one may take.
  const std::string size = R"({"as_int": 150000000})";
  std::string bytes = with_entry(kWeights, [&](std::string& text) {
    for (const char* width : {"32", "10"}) {
      const size_t bias =
          text.find(width == std::string("32") ? "\"net.2.bias\"" : "\"net.4.bias\"");
      std::string rest = text.substr(bias);
      change(rest, std::string(R"("sizes": [{"as_int": )") + width + "}", "\"sizes\": [" + size);
      change(rest, R"("strides": [{"as_int": 1})", R"("strides": [{"as_int": 0})");
      text = text.substr(0, bias) + rest;
    }
  });
  bytes = with_entry(
      kModel,
      [&](std::string& text) {
        change(text, R"("p_net_2_bias":{"dtype":7,"sizes":[{"as_int":32})",
               R"("p_net_2_bias":{"dtype":7,"sizes":[)" + size);
        change(text, R"("p_net_4_bias":{"dtype":7,"sizes":[{"as_int":10})",
               R"("p_net_4_bias":{"dtype":7,"sizes":[)" + size);
      },
      false, bytes);
  expect_error(bytes, "expand to weights of 1200000000");
}

TEST(BadInput, AnEmptyWeightMaySayAnyOffset) {
  std::string bytes = with_entry(kWeights, [&](std::string& text) {
    std::string rest = text.substr(text.find("\"net.4.bias\""));
    change(rest, R"("sizes": [{"as_int": 10}])", R"("sizes": [{"as_int": 0}])");
    change(rest, R"("storage_offset": {"as_int": 0})",
           R"("storage_offset": {"as_int": 9223372036854775807})");
    text = text.substr(0, text.find("\"net.4.bias\"")) + rest;
  });
  bytes = with_entry(
      kModel,
      [&](std::string& text) {
        change(text, R"("p_net_4_bias":{"dtype":7,"sizes":[{"as_int":10})",
               R"("p_net_4_bias":{"dtype":7,"sizes":[{"as_int":0})");
      },
      false, bytes);
  expect_error(bytes, "error[shape-mismatch]");  // of the op that reads it, and nothing before
}

TEST(BadInput, EveryTruncationIsAnError) {
  const std::string bytes = fixture();
  for (size_t size = 0; size < bytes.size(); size += 97)
    EXPECT_NE(import_bytes(bytes.substr(0, size)).error, "") << size;
}

TEST(BadInput, NoReplacedTokenCrashesTheImport) {
  const std::string words[] = {"null", "-1", "[]", "{}", "\"\"", "9223372036854775807", "[[[["};
  auto zip = ZipReader::open(own_bytes(fixture()));
  ASSERT_TRUE(zip.ok());
  auto bytes = zip->read(*zip->find("ffnn/models/model.json"), 1 << 26, true);
  ASSERT_TRUE(bytes.ok());
  const std::string text(bytes->text());
  ImportOptions options;
  options.allow_missing_weights = true;
  size_t tried = 0;
  for (size_t at = text.find(':'); at != text.npos; at = text.find(':', at + 1)) {
    const size_t end = text.find_first_of(",}]", at + 1);
    if (end == text.npos) break;
    const std::string& word = words[tried++ % std::size(words)];
    const std::string changed = text.substr(0, at + 1) + word + text.substr(end);
    import_bytes(changed, options);
  }
  EXPECT_GT(tried, 400u);
}

}  // namespace
}  // namespace lathe
