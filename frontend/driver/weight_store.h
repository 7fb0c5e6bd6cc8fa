// Bytes of weights by name, as backends ask for them: a seed's, a module's, or read from the file
// when they are asked for, so that a build holds few at a time and no weight twice.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backends/backend.h"
#include "frontend/file/file_bytes.h"
#include "frontend/import/import.h"
#include "frontend/pt2/archive.h"
#include "ir/graph/node.h"
#include "ir/support/result.h"

namespace lathe {

// Bytes of a storage, from the first that a weight's elements reach to one past the last.
struct StoredRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t width = 1;  // of an element
};
StoredRange range_of(const TensorData& data, int64_t first_byte);

// The open archive of weights that are not in memory, and where each lies in there.
struct WeightFile {
  pt2::ModelFile file;
  std::map<std::string, WeightPlace> places;  // by name
};

class WeightStore {
 public:
  // `module` must outlive the store. With a seed every weight comes from it, file or not.
  WeightStore(const Module& module, std::optional<uint64_t> seed,
              std::shared_ptr<const WeightFile> file = nullptr);

  bool has(const std::string& name) const { return module_.weights.count(name) != 0; }
  // The bytes as the module's type says, row-major, until they are released. kMissingWeight when
  // nobody has them.
  Result<BufferView> get(const std::string& name);
  // From now on `get` gives these bytes, of the size that is asked for, until they are released.
  void hold(const std::string& name, FileBytes bytes) { held_[name] = std::move(bytes); }
  // What was read, made or given, and not released; not what the module has.
  const std::map<std::string, FileBytes>& held() const { return held_; }
  // Lets the bytes go. They come back when asked for again.
  void release(const std::string& name) { held_.erase(name); }
  // Lets the file go, and what was read but is not held. No other weight comes from it any more.
  void close();

  // Reads into a module with the same weights those that have no bytes there.
  Status read_into(Module& module);

 private:
  // What the weights of one entry of the archive need of it.
  struct Entry {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    int num_weights = 0;
    FileBytes bytes;  // of several weights, which share them
  };
  Result<FileBytes> make(const std::string& name, const TensorData& data);
  Status read(const std::string& name, TensorData& data);

  const Module& module_;
  std::optional<uint64_t> seed_;
  double made_bytes_ = 0;  // of all weights, when a seed makes them
  std::shared_ptr<const WeightFile> file_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, FileBytes> held_;  // by name; not those that the module has
};

}  // namespace lathe
