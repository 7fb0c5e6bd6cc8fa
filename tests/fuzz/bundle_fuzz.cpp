// Any bytes are a bundle whose graphs and guards have the names that they must have, or are
// refused.
//
// A zip has checksums: the bytes are each of a bundle's files as well.
#include "frontend/bundle/bundle.h"
#include "frontend/file/zip.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

constexpr std::string_view kRows[] = {"breaks.jsonl", "recompiles.jsonl"};
constexpr char kPlain[] =
    R"({"format":"lathe-bundle","version":1,"torch":"2","model":"M","origin":"dynamo","calls":1,)"
    R"("frames":[],"compiles":[{"frame":0,"compile":0,"guards":"guards/0_0"}]})";

bool check_bundle(FileBytes bytes) {
  const Result<bundle::BundleFiles> files =
      bundle::BundleFiles::of_zip(whole_file(std::move(bytes)), "fuzz.zip");
  if (!files) return must_blame_the_input(files.error(), LocTable());
  LocTable locs;
  const Result<bundle::Bundle> read = bundle::read(*files, locs);
  if (!read) return must_blame_the_input(read.error(), locs);
  for (const bundle::Compile& compile : read->compiles) {
    if (compile.graph && compile.graph->json &&
        *compile.graph->json != "graphs/" + compile.id() + ".json")
      fail("a graph lies where none may lie", *compile.graph->json);
    const auto guards = bundle::read_guards(*files, compile, locs);
    if (!guards) return must_blame_the_input(guards.error(), locs);
  }
  return true;
}

// A bundle in which the file of that name has these bytes.
bool check_file(std::string_view name, std::string_view bytes) {
  ZipWriter zip(1);
  const auto add = [&](std::string_view file, std::string_view plain) {
    if (!zip.add(file, file == name ? bytes : plain, bytes.size() % 2 == 0).ok())
      fail("an entry is not written", file);
  };
  add(bundle::kManifest, kPlain);
  for (const std::string_view rows : kRows) add(rows, "");
  add("sources.json", "{}");
  add("guards/0_0.json", "[]");
  return check_bundle(own_bytes(std::move(zip).finish()));
}

bool check(std::string_view input) {
  bool is_taken = check_bundle(own_bytes(std::string(input)));
  for (const std::string_view name :
       {std::string_view(bundle::kManifest), kRows[0], kRows[1], std::string_view("sources.json"),
        std::string_view("guards/0_0.json")})
    is_taken = check_file(name, input) || is_taken;
  return is_taken;
}

}  // namespace

const Property kProperty = {check, 256};

}  // namespace lathe::fuzz
