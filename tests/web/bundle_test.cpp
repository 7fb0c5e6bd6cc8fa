// Bundles through the engine, as a page hands them over: by the ranges that it is asked for.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "frontend/file/file_source.h"
#include "frontend/file/inflate.h"
#include "frontend/file/zip.h"
#include "tests/web/engine_client.h"

namespace lathe {
namespace {

struct HandedOver {
  Json json;
  int rounds = 0;
};

// Asks, and gives what is needed until there is an answer; `damage` changes what is given.
HandedOver hand_over(Json ask, const std::string& file,
                     const std::function<void(std::string&)>& damage = {}) {
  ask["size"] = file.size();
  HandedOver told{request(ask.dump()).json};
  ask.erase("size");
  while (told.json.contains("need") && ++told.rounds < 20) {
    std::string bytes;
    for (const Json& range : told.json["need"]) {
      const std::string part = file.substr(range["begin"], range["size"]);
      bytes += range.contains("inflated")
                   ? *inflate_bytes(part, DeflateFormat::raw, range["inflated"].get<size_t>())
                   : part;
    }
    if (damage) damage(bytes);
    ask["file"] = told.json["file"];
    ask["ranges"] = told.json["need"];
    told.json = request(ask.dump(), bytes).json;
  }
  EXPECT_FALSE(told.json.contains("need"));
  return told;
}

std::string captured() {
  auto file = read_bytes("tests/bundle/three_breaks.zip");
  EXPECT_TRUE(file.ok());
  return std::string(file->text());
}

Json bundle_of(const std::string& file) {
  Json json = hand_over({{"do", "bundle"}, {"name", "m.zip"}}, file).json;
  EXPECT_FALSE(json.contains("error")) << json.dump(2);
  return json;
}

std::string refusal_of(const std::string& file) {
  const Json json = hand_over({{"do", "bundle"}, {"name", "m.zip"}}, file).json;
  return json.contains("error") ? json["error"]["text"].get<std::string>() : "";
}

// The zip with the text of one entry changed; "" leaves the entry out.
std::string with(const std::string& name, const std::function<std::string(std::string)>& change) {
  const auto zip = ZipReader::open(own_bytes(captured()));
  EXPECT_TRUE(zip.ok());
  ZipWriter changed;
  for (const ZipEntry& entry : zip->entries()) {
    std::string text(zip->read(entry, size_t{1} << 30, true)->text());
    if (entry.name == name) text = change(std::move(text));
    if (!text.empty() || entry.name != name) EXPECT_TRUE(changed.add(entry.name, text, true).ok());
  }
  return std::move(changed).finish();
}

TEST(Bundle, NamesTheLinesOfThreeBreaksAndTwoRecompiles) {
  const Json told = bundle_of(captured());
  EXPECT_EQ(told["model"], "Gated");
  ASSERT_EQ(told["breaks"].size(), 3u);
  std::vector<int> lines;
  for (const Json& row : told["breaks"]) {
    lines.push_back(row["line"]);
    EXPECT_EQ(row["file"], "three_breaks.py");
    EXPECT_FALSE(row["reason"].get<std::string>().empty());
    EXPECT_FALSE(row["hints"].empty());
    int marked = 0;
    for (const Json& line : row["lines"])
      if (line["line"] == row["line"])
        marked += line["code"].get<std::string>().find("# break:") != std::string::npos;
    EXPECT_EQ(marked, 1) << row["lines"].dump();
    EXPECT_GE(row["lines"].size(), 4u);
  }
  EXPECT_EQ(lines, (std::vector<int>{19, 21, 24}));
  ASSERT_EQ(told["recompiles"].size(), 2u);
  EXPECT_EQ(told["recompiles"][0]["reason"], "scale == 2");
  EXPECT_EQ(told["recompiles"][0]["line"], 16);
  EXPECT_EQ(told["recompiles"][1]["code"], "if is_gated:");
}

TEST(Bundle, EachGraphHasItsEndGuardsAndPython) {
  const Json told = bundle_of(captured());
  ASSERT_EQ(told["compiles"].size(), 6u);
  for (const Json& compile : told["compiles"]) {
    EXPECT_EQ(compile["guards"].get<std::string>().rfind("TREE_GUARD_MANAGER:", 0), 0u);
    EXPECT_NE(compile["graph"]["python"].get<std::string>().find("def forward"), std::string::npos);
    EXPECT_EQ(compile.contains("break"), compile["frame"] != 3);
  }
  EXPECT_EQ(told["compiles"][2]["id"], "0_2");
  EXPECT_EQ(told["compiles"][2]["break"], 0);
  EXPECT_EQ(told["compiles"][5]["graph"]["ends"], "return");
  EXPECT_EQ(told["frames"][1]["is_resumed"], true);
}

TEST(Bundle, AGraphOfItIsAModel) {
  const Json told = bundle_of(captured());
  for (const Json& compile : told["compiles"]) {
    const std::string entry = compile["graph"]["entry"];
    const Json model =
        hand_over({{"do", "open"}, {"name", "m.zip/" + entry}, {"entry", entry}}, captured()).json;
    ASSERT_TRUE(model.contains("model")) << model.dump(2);
    EXPECT_EQ(model["name"], "m.zip/" + entry);
    const Json run = ask({{"do", "compile"}, {"model", model["model"]}});
    EXPECT_FALSE(run.contains("failed")) << run.dump(2);
  }
  const Json missing =
      hand_over({{"do", "open"}, {"name", "m.zip/x"}, {"entry", "x"}}, captured()).json;
  EXPECT_EQ(missing["error"]["message"], "the zip has no entry 'x'");
}

TEST(Bundle, IsHandedOverInFewRounds) {
  EXPECT_LE(hand_over({{"do", "bundle"}, {"name", "m.zip"}}, captured()).rounds, 7);
}

TEST(Bundle, ABrokenOneIsRefusedInWords) {
  const auto refuses = [](const std::string& file, const std::string& words) {
    EXPECT_NE(refusal_of(file).find(words), std::string::npos) << refusal_of(file);
  };
  refuses(captured().substr(0, 20000), "no zip directory at the end; the file may be cut short");
  refuses("", "too short for a zip file");
  refuses(with("manifest.json", [](std::string) { return ""; }),
          "'m.zip' has no 'manifest.json', so it is no bundle of lathe.capture");
  const auto newer = [](std::string text) {
    return text.replace(text.find("\"version\":1"), 11, "\"version\":2");
  };
  refuses(with("manifest.json", newer), "\"version\" is not 1, which this Lathe reads");
  refuses(with("breaks.jsonl", [](std::string text) { return text.substr(0, text.size() / 2); }),
          "m.zip:breaks.jsonl:");
  refuses(with("guards/1_0.txt", [](std::string) { return ""; }),
          "'m.zip' has no entry 'guards/1_0.txt'");
  refuses(with("graphs/0_0.py", [](std::string) { return std::string(130 << 20, ' '); }),
          "too-large");
}

TEST(Bundle, BytesThatDoNotMatchTheirChecksumAreRefused) {
  const auto damage = [](std::string& bytes) {
    if (const size_t at = bytes.find("is_gated"); at != std::string::npos) bytes[at] = 'I';
  };
  const Json json = hand_over({{"do", "bundle"}, {"name", "m.zip"}}, captured(), damage).json;
  ASSERT_TRUE(json.contains("error"));
  EXPECT_NE(json["error"]["message"].get<std::string>().find("checksum"), std::string::npos);
}

TEST(Bundle, NothingOfItStays) {
  bundle_of(captured());
  const Json first = ask({{"do", "bundle"}, {"name", "m.zip"}, {"size", 30000}});
  const int handle = first["file"];
  EXPECT_NE(error_of({{"do", "bundle"}, {"file", handle - 1}}).find("no file"), std::string::npos);
  EXPECT_EQ(error_of({{"do", "close"}, {"file", handle}}), "");
  EXPECT_NE(error_of({{"do", "bundle"}, {"file", handle}}).find("no file"), std::string::npos);
}

}  // namespace
}  // namespace lathe
