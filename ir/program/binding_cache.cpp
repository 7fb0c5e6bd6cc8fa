// Bindings by their sizes: see binding_cache.h.
#include "ir/program/binding_cache.h"

#include <algorithm>

namespace lathe {

Result<std::shared_ptr<const Binding>> BindingCache::at(std::span<const int64_t> values) {
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return std::equal(entry.values.begin(), entry.values.end(), values.begin(), values.end());
  });
  if (known != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, known);
  } else {
    LATHE_TRY(Binding binding, binder_.bind(values));
    if (entries_.size() == kCapacity) entries_.pop_back();
    entries_.push_front(
        {{values.begin(), values.end()}, std::make_shared<const Binding>(std::move(binding))});
  }
  return entries_.front().binding;
}

}  // namespace lathe
