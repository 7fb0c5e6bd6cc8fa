// Bundles of lathe.capture: what is read of them, what belongs together, and what is refused.
#include "frontend/bundle/groups.h"

#include <gtest/gtest.h>

#include <map>

#include "ir/support/diag.h"

namespace lathe::bundle {
namespace {

using Files = std::map<std::string, std::string>;

Files sample() {
  return {
      {"manifest.json",
       R"({"format":"lathe-bundle","version":1,"torch":"2.13.0","model":"M","origin":"dynamo",)"
       R"("calls":2,"dynamic":null,"unknown":{"later":1},)"
       R"("frames":[{"frame":0,"function":"forward","is_resumed":false,"file":"m.py","line":3}],)"
       R"("compiles":[{"frame":0,"compile":0,"call":0,"guards":"guards/0_0","seconds":0.5,)"
       R"("failure":null,"graph":{"id":"0_0","ops":2,"ends":"break","json":"graphs/0_0.json",)"
       R"("python":"graphs/0_0.py","refused":null,)"
       R"("inputs":[{"name":"l_x_","source":"L['x']","is_state":false}]}},)"
       R"({"frame":0,"compile":1,"call":1,"guards":null,"graph":null}]})"},
      {"breaks.jsonl",
       R"({"frame":0,"compile":0,"reason":"a print","file":"m.py","line":4,"hints":["no"]})"
       "\n"
       R"({"frame":0,"compile":1,"reason":"a print","file":"m.py","line":4})"
       "\n"},
      {"recompiles.jsonl",
       R"({"frame":0,"compile":1,"call":1,"reasons":["0/0: n == 3"],"kind":"value",)"
       R"("reason":"n == 3","cause":0,"file":"m.py","line":4,"code":"x * n"})"
       "\n"},
      {"sources.json", R"json({"m.py":{"3":"def f(x):","4":"    print(x)"}})json"},
      {"guards/0_0.json",
       R"([{"kind":"LAMBDA_GUARD","source":"","code":"L['n'] == 3","line":"","place":""}])"},
      {"guards/0_0.txt", "TREE_GUARD_MANAGER:\n"},
  };
}

Result<BundleFiles> zip_of(const Files& files) {
  ZipWriter zip;
  for (const auto& [name, text] : files) EXPECT_TRUE(zip.add(name, text, true).ok());
  return BundleFiles::of_zip(whole_file(own_bytes(std::move(zip).finish())), "m.zip");
}

// The code and message of the first error, with its place.
std::string error_of(const Files& files) {
  const Result<BundleFiles> opened = zip_of(files);
  if (!opened) return opened.error().code + ": " + opened.error().message;
  LocTable locs;
  const Result<Bundle> bundle = read(*opened, locs);
  if (!bundle) return render(bundle.error(), locs);
  for (const Compile& compile : bundle->compiles)
    if (const auto guards = read_guards(*opened, compile, locs); !guards)
      return render(guards.error(), locs);
  return "";
}

Files with(const std::string& name, const std::string& from, const std::string& to) {
  Files files = sample();
  const size_t at = files[name].find(from);
  EXPECT_NE(at, std::string::npos) << from;
  files[name].replace(at, from.size(), to);
  return files;
}

TEST(Bundle, ReadsWhatACaptureSays) {
  const Result<BundleFiles> files = zip_of(sample());
  ASSERT_TRUE(files.ok());
  LocTable locs;
  const Result<Bundle> bundle = read(*files, locs);
  ASSERT_TRUE(bundle.ok()) << render(bundle.error(), locs);
  EXPECT_EQ(bundle->model, "M");
  EXPECT_FALSE(bundle->dynamic.has_value());
  EXPECT_EQ(bundle->graph_ids(), std::vector<std::string>{"0_0"});
  EXPECT_EQ(bundle->find_graph("0_0")->graph->inputs[0].source, "L['x']");
  EXPECT_EQ(bundle->find_graph("0_1"), nullptr);
  EXPECT_EQ(bundle->find_frame(0)->function, "forward");
  EXPECT_EQ(bundle->find_frame(7), nullptr);
  ASSERT_EQ(bundle->breaks.size(), 2u);
  EXPECT_EQ(bundle->breaks[1].line, 4);
  EXPECT_EQ(bundle->sources.at("m.py").at("4"), "    print(x)");
  EXPECT_EQ(bundle->recompiles[0].line, 4);
  const auto guards = read_guards(*files, bundle->compiles[0], locs);
  ASSERT_TRUE(guards.ok());
  EXPECT_EQ((*guards)[0].code, "L['n'] == 3");
  EXPECT_TRUE(read_guards(*files, bundle->compiles[1], locs)->empty());
}

TEST(Bundle, ABreakIsOneHoweverManyCompilationsMetIt) {
  const Result<BundleFiles> files = zip_of(sample());
  ASSERT_TRUE(files.ok());
  LocTable locs;
  const Result<Bundle> bundle = read(*files, locs);
  ASSERT_TRUE(bundle.ok());
  const std::vector<BreakGroup> breaks = group_breaks(*bundle);
  ASSERT_EQ(breaks.size(), 1u);
  EXPECT_EQ(breaks[0].graphs, (std::vector<std::string>{"0_0", "0_1"}));
  EXPECT_TRUE(breaks[0].ends("0_1"));
  EXPECT_FALSE(breaks[0].ends("0_2"));
  const std::vector<SourceLine> lines = lines_around(*bundle, *breaks[0].first, 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].number, 3);
  EXPECT_EQ(lines[1].code, "    print(x)");
}

TEST(Bundle, ARecompileStandsWithItsCause) {
  Bundle bundle;
  bundle.recompiles = {{0, 1, 1, {}, "size", "a", 0},
                       {1, 1, 1, {}, "size", "b", 0},
                       {0, 2, 2, {}, "value", "c", 2},
                       {2, 1, 2, {}, "size", "d", 1}};
  const std::vector<CauseGroup> causes = group_recompiles(bundle);
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].cause->reason, "a");
  EXPECT_EQ(causes[0].follow, (std::vector<std::string>{"1_1", "2_1"}));
  EXPECT_TRUE(causes[1].follow.empty());
}

TEST(Bundle, NamesThatLeaveTheBundleAreRefused) {
  const auto refuses = [](const std::string& from, const std::string& to) {
    const std::string error = error_of(with("manifest.json", from, to));
    EXPECT_NE(error.find("expected \""), std::string::npos) << error;
    EXPECT_NE(error.find("bad-archive"), std::string::npos) << error;
  };
  refuses("\"graphs/0_0.json\"", "\"../../etc/passwd\"");
  refuses("\"graphs/0_0.json\"", "\"/etc/passwd\"");
  refuses("\"graphs/0_0.py\"", "\"graphs/0_0.py/../../../x\"");
  refuses("\"guards/0_0\"", "\"guards/../../secret\"");
}

TEST(Bundle, MissingFilesAreNamed) {
  for (const auto& [name, text] : sample()) {
    if (name == "guards/0_0.txt") continue;
    Files files = sample();
    files.erase(name);
    EXPECT_NE(error_of(files).find("'" + name + "'"), std::string::npos) << error_of(files);
  }
}

TEST(Bundle, ErrorsPointAtTheLine) {
  EXPECT_NE(error_of(with("breaks.jsonl", "\"compile\":1", "\"compile\":\"one\""))
                .find("m.zip:breaks.jsonl:2:"),
            std::string::npos);
  EXPECT_NE(error_of(with("breaks.jsonl", "}\n{", "\n{")).find("m.zip:breaks.jsonl:"),
            std::string::npos);
}

TEST(Bundle, WrongTypesAreRefused) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"\"lathe-bundle\"", "3"},
      {"\"version\":1", "\"version\":2"},
      {"\"version\":1", "\"v\":1"},
      {"\"model\":\"M\"", "\"model\":[]"},
      {"\"calls\":2", "\"calls\":{}"},
      {"\"frames\":[", "\"frames\":[3,"},
      {"\"frame\":0,\"compile\":0", "\"frame\":-1,\"compile\":0"},
      {"\"id\":\"0_0\"", "\"id\":\"0_1\""},
      {"\"compile\":1", "\"compile\":0"},
      {"\"ops\":2", "\"ops\":1e99"},
      {"\"dynamic\":null", "\"dynamic\":\"yes\""},
      {"\"line\":3", "\"line\":99999999999999999999999"},
  };
  for (const auto& [from, to] : changes)
    EXPECT_NE(error_of(with("manifest.json", from, to)), "") << from << " -> " << to;
  EXPECT_NE(error_of(with("breaks.jsonl", "\"line\":4", "\"line\":-9223372036854775808")), "");
  EXPECT_NE(error_of(with("recompiles.jsonl", "\"cause\":0", "\"cause\":1")), "");
  EXPECT_NE(error_of(with("recompiles.jsonl", "\"line\":4", "\"line\":-1")), "");
  EXPECT_NE(error_of(with("recompiles.jsonl", "\"cause\":0", "\"cause\":-1")), "");
  EXPECT_NE(error_of(with("sources.json", "\"def f(x):\"", "7")), "");
  EXPECT_NE(error_of(with("guards/0_0.json", "[{", "{\"a\":{")), "");
}

TEST(Bundle, TornFilesAreRefusedAtEveryByte) {
  ZipWriter zip;
  for (const auto& [name, text] : sample()) EXPECT_TRUE(zip.add(name, text, true).ok());
  const std::string bytes = std::move(zip).finish();
  for (size_t end = 0; end < bytes.size(); ++end)
    EXPECT_FALSE(BundleFiles::of_zip(whole_file(own_bytes(bytes.substr(0, end))), "m.zip").ok());
  const std::string manifest = sample().at("manifest.json");
  for (size_t end = 0; end < manifest.size(); ++end) {
    Files files = sample();
    files["manifest.json"].resize(end);
    EXPECT_NE(error_of(files), "") << end;
  }
}

TEST(Bundle, HugeFilesAreRefusedUnread) {
  Files files = sample();
  files["breaks.jsonl"] = std::string(kMaxFileBytes + 1, ' ');
  EXPECT_NE(error_of(files).find("too-large"), std::string::npos) << error_of(files);
  files = sample();
  files["sources.json"] = std::string(100000, '[');
  EXPECT_NE(error_of(files), "");
}

TEST(Bundle, AnotherZipOrFolderIsNone) {
  Files files = sample();
  files.erase("manifest.json");
  EXPECT_EQ(error_of(files),
            "bad-archive: 'm.zip' has no 'manifest.json', so it is no bundle of lathe.capture");
  EXPECT_TRUE(is_bundle("."));
  EXPECT_EQ(BundleFiles::open(".").error().code, "bad-archive");
  EXPECT_FALSE(is_bundle("nothing"));
}

}  // namespace
}  // namespace lathe::bundle
