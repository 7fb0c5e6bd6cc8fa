// Imports twice: with the weights in place, and with their places alone, as a page does.
#include "tests/fuzz/check_model.h"

#include "frontend/import/import.h"
#include "ir/graph/tensor.h"
#include "ir/graph/verify.h"
#include "ir/op/all_ops.h"
#include "tests/fuzz/fuzz_target.h"

namespace lathe::fuzz {
namespace {

constexpr int64_t kMostRead = 1 << 18;  // elements

Result<ImportedModel> import_any(const FileBytes& bytes, bool leave_weights, LocTable& locs) {
  static const Result<ImportTable> table = ImportTable::create(builtin_registry());
  if (!table.ok()) fail("no import table", table.error().message);
  return import_model(bytes, "fuzz.pt2", *table, builtin_registry(),
                      {.allow_missing_weights = true, .leave_weights = leave_weights}, &locs);
}

}  // namespace

bool check_model(const FileBytes& bytes) {
  LocTable locs;
  const auto left = import_any(bytes, true, locs);
  if (!left.ok()) must_blame_the_input(left.error(), locs);
  const auto model = import_any(bytes, false, locs);
  if (!model.ok()) return must_blame_the_input(model.error(), locs);
  if (!left.ok()) fail("refused only where weights stay in the file", left.error().message);
  const Status status = verify(model->module, model->module.main(), Form::imported);
  if (!status.ok()) fail("does not verify", render(status.error(), model->module.locs));
  for (const auto& [name, weight] : model->module.weights) {
    const TensorData& data = weight.data;
    if (data.bytes && data.type.static_elements().value_or(kMostRead) < kMostRead &&
        !read_tensor(data).ok())
      fail("a weight's bytes are not all there", name);
  }
  return true;
}

}  // namespace lathe::fuzz
