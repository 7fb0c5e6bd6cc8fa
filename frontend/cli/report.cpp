// Shows errors, and keeps what reproduces an internal one.
#include <fmt/format.h>

#include "frontend/cli/command.h"
#include "frontend/cli/terminal.h"
#include "frontend/driver/files.h"
#include "ir/support/hash.h"

namespace lathe {

int report(const Diag& diag, const LocTable& locs, const std::string& reproducer) {
  fmt::print(stderr, "{}", render(diag, locs, {.color = color_on_stderr()}));  // printable
  if (!diag.is_internal) return kWrongInput;
  if (reproducer.empty()) {
    complain("this is a fault of Lathe, not of the input\n");
    return kInternal;
  }
  std::string path =
      fmt::format("results/reproducer-{:016x}.lathe", Hasher().add(reproducer).value());
  Status written = write_output(path, reproducer);
  complain("this is a fault of Lathe, not of the input; {}\n",
           written.ok() ? "it comes back with: lathe opt " + path : written.error().message);
  return kInternal;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> items;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    if (end > at) items.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return items;
}

}  // namespace lathe
