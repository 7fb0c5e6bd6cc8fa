// What a bundle of lathe.capture says, for people: no PyTorch, and nothing is compiled.
#pragma once
#include <string>

namespace lathe {

struct BundleRequest {
  std::string path = {};
  std::string graph = {};  // an id such as "0_1"; empty: all of the bundle
  bool guards = false;     // as PyTorch prints them
  bool json = false;       // the bundle's own rows
  bool all = false;        // nothing cut
};

// Prints it, or the error; an exit code.
int show_bundle(const BundleRequest& request);

}  // namespace lathe
