// The words for kinds of buffers: in the text of programs and in what the engine tells a page.
#pragma once
#include <string_view>

#include "ir/program/program.h"

namespace lathe {

std::string_view kind_name(BufferKind kind);  // "input"

}  // namespace lathe
