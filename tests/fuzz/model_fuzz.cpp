// Any bytes are a model that imports and verifies, arrays, or one error that renders.
//
// Seeds: archives (zip directory, payload configurations) and bare model JSON, which no checksum
// shields from mutation.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "frontend/import/import.h"
#include "frontend/npz/npz.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"

namespace lathe {
namespace {

void must_render(const Diag& diag, const LocTable& locs) {
  const std::string text = render(diag, locs);
  if (!diag.code.empty() && !diag.message.empty() && !diag.is_internal) return;
  std::fprintf(stderr, "not an error of the input's: %s\n", text.c_str());
  std::abort();
}

void import_any(const FileBytes& bytes) {
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  if (!table.ok()) std::abort();
  ImportOptions options;
  options.allow_missing_weights = true;
  LocTable locs;
  const auto model = import_model(bytes, "fuzz.pt2", *table, builtin_registry(), options, &locs);
  if (!model.ok()) return must_render(model.error(), locs);
  const Status status = verify(model->module, model->module.main(), Form::imported);
  if (!status.ok()) {
    std::fprintf(stderr, "%s", render(status.error(), model->module.locs).c_str());
    std::abort();
  }
  for (const auto& [name, weight] : model->module.weights) {
    // Every byte that the type and strides reach is there to be read.
    if (weight.data.bytes && weight.data.num_bytes < (1 << 20) && !read_tensor(weight.data).ok())
      std::abort();
  }
}

}  // namespace
}  // namespace lathe

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lathe;
  const FileBytes bytes = own_bytes(std::string(reinterpret_cast<const char*>(data), size));
  import_any(bytes);
  if (auto arrays = parse_npz(bytes, "fuzz.npz"); !arrays.ok())
    must_render(arrays.error(), LocTable());
  if (auto array = parse_npy(bytes, "fuzz"); !array.ok()) must_render(array.error(), LocTable());
  return 0;
}
