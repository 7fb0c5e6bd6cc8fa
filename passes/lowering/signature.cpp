// Canonical bytes of a region and what it reads through: see signature.h.
#include "passes/lowering/signature.h"

#include <map>

#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/support/canonical.h"

namespace lathe {
namespace {

class SignatureWriter {
 public:
  SignatureWriter(const Lowering& lowering, Phase phase) : lowering_(lowering), phase_(phase) {}

  std::string run(const Node& region) {
    bytes_.add(static_cast<int>(phase_));
    add(region);
    return bytes_.take();
  }

 private:
  enum class Tag : uint8_t { none, seen, inlined, there };

  void add(const Node& node) {
    bytes_.add(std::string_view(node.op->name)).add(node.attrs.size());
    for (const Attr& attr : node.attrs) bytes_.add(std::string_view(print(attr)));
    bytes_.add(node.types.size());
    for (const TensorType& type : node.types) bytes_.add(std::string_view(to_string(type)));
    bytes_.add(node.bodies.size());
    for (const auto& body : node.bodies) bytes_.add(std::string_view(canonical_form(*body)));
    bytes_.add(node.list_sizes.size());
    for (int size : node.list_sizes) bytes_.add(size);
    bytes_.add(node.operands.size());
    for (Value operand : node.operands) add(operand);
  }

  void add(Value value) {
    if (!value) {
      bytes_.add(static_cast<int>(Tag::none));
    } else if (auto found = seen_.find(value); found != seen_.end()) {
      bytes_.add(static_cast<int>(Tag::seen)).add(found->second);
    } else {
      seen_.emplace(value, seen_.size());
      const bool is_inlined = lowering_.is_inlined(value, phase_);
      bytes_.add(static_cast<int>(is_inlined ? Tag::inlined : Tag::there));
      bytes_.add(value.index).add(lowering_.is_constant(value));
      if (is_inlined)
        add(*value.node);
      else
        bytes_.add(std::string_view(to_string(value.type())));
    }
  }

  const Lowering& lowering_;
  Phase phase_;
  CanonicalBytes bytes_;
  std::map<Value, size_t> seen_;
};

}  // namespace

std::string region_signature(const Lowering& lowering, const Node& region, Phase phase) {
  return SignatureWriter(lowering, phase).run(region);
}

}  // namespace lathe
