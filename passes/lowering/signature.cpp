// Canonical bytes of a region and what it reads through: see signature.h.
#include "passes/lowering/signature.h"

#include <map>

#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/support/canonical.h"
#include "passes/lowering/lowering.h"

namespace lathe {

class SignatureWriter {
 public:
  SignatureWriter(Signatures& signatures, Phase phase)
      : signatures_(signatures), lowering_(signatures.lowering_), phase_(phase) {}

  RegionSignature run(const Node& region) {
    signature_.nodes.push_back(&region);
    for (const auto& body : region.bodies)
      for (const auto& member : body->nodes) signature_.nodes.push_back(member.get());
    bytes_.add(static_cast<int>(phase_));
    if (region.types.size() > 1)
      for (int i = 0; i < static_cast<int>(region.types.size()); ++i)
        bytes_.add(lowering_.is_read({const_cast<Node*>(&region), i}));
    add(region);
    for (Value value : signature_.values) signature_.nodes.push_back(value.node);
    signature_.bytes = bytes_.take();
    return std::move(signature_);
  }

 private:
  enum class Tag : uint8_t { none, seen, inlined, there };

  void add(const Node& node) {
    bytes_.add(signatures_.number_of(node)).add(node.operands.size());
    for (Value operand : node.operands) add(operand);
  }

  void add(Value value) {
    if (!value) {
      bytes_.add(static_cast<int>(Tag::none));
    } else if (auto found = seen_.find(value); found != seen_.end()) {
      bytes_.add(static_cast<int>(Tag::seen)).add(found->second);
    } else {
      seen_.emplace(value, seen_.size());
      signature_.values.push_back(value);
      const bool is_inlined = lowering_.is_inlined(value, phase_);
      bytes_.add(static_cast<int>(is_inlined ? Tag::inlined : Tag::there));
      bytes_.add(std::string_view(to_string(value.type()))).add(lowering_.is_constant(value));
      const bool is_read_through =
          signatures_.likeness_ == Likeness::code ? add_place(value) : false;
      if (is_inlined || is_read_through) add(*value.node);
    }
  }

  // What moves the elements that a kernel reads: which result of a split the value is, and which
  // values share a buffer. True when init's kernels read through it.
  bool add_place(Value value) {
    bytes_.add(value.index);
    if (value.node->op->name == "constant" && is_weight(*value.node)) {
      const auto [first, is_new] =
          weights_.emplace(value.node->string_attr("name"), weights_.size());
      bytes_.add(first->second);
    }
    const bool is_inlined =
        lowering_.is_constant(value) && lowering_.is_inlined(value, Phase::init);
    bytes_.add(is_inlined);
    return is_inlined;
  }

  Signatures& signatures_;
  const Lowering& lowering_;
  Phase phase_;
  CanonicalBytes bytes_;
  RegionSignature signature_;
  std::map<Value, size_t> seen_;
  std::map<std::string, size_t> weights_;  // by name, in order of their first reader
};

RegionSignature Signatures::of(const Node& region, Phase phase) {
  return SignatureWriter(*this, phase).run(region);
}

size_t Signatures::number_of(const Node& node) {
  if (auto found = by_node_.find(&node); found != by_node_.end()) return found->second;
  CanonicalBytes words;
  words.add(std::string_view(node.op->name)).add(node.attrs.size());
  for (size_t i = 0; i < node.attrs.size(); ++i)
    if (likeness_ == Likeness::code || !node.op->attrs[i].is_place)
      words.add(std::string_view(print(node.attrs[i])));
  words.add(node.types.size());
  for (const TensorType& type : node.types) words.add(std::string_view(to_string(type)));
  words.add(node.bodies.size());
  for (const auto& body : node.bodies) words.add(std::string_view(canonical_form(*body)));
  words.add(node.list_sizes.size());
  for (int size : node.list_sizes) words.add(size);
  const size_t number = by_words_.emplace(words.take(), by_words_.size()).first->second;
  by_node_.emplace(&node, number);
  return number;
}

}  // namespace lathe
