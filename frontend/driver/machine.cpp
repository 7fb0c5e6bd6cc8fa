// Reads /proc.
#include "frontend/driver/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <ctime>
#include <fstream>

namespace lathe {

namespace {

// The rest of the first line of `file` that starts with `key`, without the separator.
std::string proc_value(const char* file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    size_t begin = line.find_first_not_of(" \t:", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return {};
}

int64_t status_bytes(const char* key) {
  std::string kilobytes = proc_value("/proc/self/status", key);
  int64_t value = 0;
  for (char c : kilobytes) {
    if (c < '0' || c > '9') break;
    value = value * 10 + (c - '0');
  }
  return value * 1024;
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.cpu = proc_value("/proc/cpuinfo", "model name");
  if (machine.cpu.empty()) machine.cpu = "unknown processor";
  if (utsname name{}; uname(&name) == 0)
    machine.system = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  machine.cores = usable_cores();
  machine.memory_bytes = usable_memory();
  return machine;
}

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

int64_t resident_bytes() { return status_bytes("VmRSS"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM"); }

bool reset_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;
  return file.good();
}

}  // namespace lathe
