// Files as inputs to start from.
#pragma once
#include <filesystem>
#include <vector>

#include "tests/fuzz/mutate.h"

namespace lathe::fuzz {

// Of each file, or of those below a folder: its bytes; what a .gz holds; the models of an archive,
// which no checksum shields then; of a .lathe file each case, and what is expected of it, instead.
// Sorted by path. What is longer than Corpus::kMaxBytes is left out.
Corpus read_seeds(const std::vector<std::filesystem::path>& paths);

}  // namespace lathe::fuzz
