// Strings of the JSON that hosts read.
#pragma once
#include <string>

namespace lathe::wasm {

// In quotes, with what JSON escapes.
std::string quoted(const std::string& text);

}  // namespace lathe::wasm
