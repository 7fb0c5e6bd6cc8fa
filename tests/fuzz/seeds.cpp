// The kinds of files, and what each one gives.
#include "tests/fuzz/seeds.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "frontend/file/inflate.h"
#include "frontend/file/zip.h"

namespace lathe::fuzz {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void add(std::string bytes, Corpus& corpus) {
  if (bytes.size() <= Corpus::kMaxBytes) corpus.add(std::move(bytes));
}

void add_models(const std::string& archive, Corpus& corpus) {
  const Result<ZipReader> zip = ZipReader::open(own_bytes(archive));
  if (!zip) return;
  for (const ZipEntry& entry : zip->entries()) {
    if (entry.name.find("models/") == entry.name.npos) continue;
    const Result<FileBytes> bytes = zip->read(entry, Corpus::kMaxBytes, true);
    if (bytes.ok()) add(std::string(bytes->text()), corpus);
  }
}

// Lines of dashes and arrows stand between texts.
void add_cases(std::string_view file, Corpus& corpus) {
  std::string text;
  while (!file.empty()) {
    const std::string_view line = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(file.size(), line.size() + 1));
    if (line.substr(0, 8) != "// -----" && line.substr(0, 2) != "=>") {
      text.append(line).push_back('\n');
      continue;
    }
    add(std::move(text), corpus);
    text.clear();
  }
  add(std::move(text), corpus);
}

void add_file(const fs::path& path, Corpus& corpus) {
  const std::string bytes = read_file(path);
  if (path.extension() == ".lathe") return add_cases(bytes, corpus);
  add(bytes, corpus);
  if (path.extension() == ".pt2") add_models(bytes, corpus);
  if (path.extension() != ".gz") return;
  const auto text = inflate_bytes(bytes, DeflateFormat::gzip, Corpus::kMaxBytes);
  if (text.ok()) add(*text, corpus);
}

}  // namespace

Corpus read_seeds(const std::vector<fs::path>& paths) {
  std::vector<fs::path> files;
  for (const fs::path& path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
      if (!entry.is_directory()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  Corpus corpus;
  for (const fs::path& file : files) add_file(file, corpus);
  return corpus;
}

}  // namespace lathe::fuzz
