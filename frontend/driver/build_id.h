// Which build of Lathe this is, for what is kept for other processes.
#pragma once
#include <string>

namespace lathe {

// What the linker wrote into the program or library that has this function (--build-id), in hex: of
// its contents. Empty where it wrote none.
std::string build_id();

}  // namespace lathe
