// The engine's C ABI as tests speak it: JSON in, JSON out.
#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "web/engine/engine.h"

namespace lathe {

using Json = nlohmann::json;

struct Reply {
  Json json;
  std::string bytes;
};

inline Reply request(const std::string& text, std::string_view bytes = {}) {
  const lathe_engine_answer* answer = lathe_engine_request(
      text.data(), text.size(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  Reply reply;
  reply.json = Json::parse(std::string_view(answer->text, answer->text_size), nullptr, false);
  EXPECT_FALSE(reply.json.is_discarded()) << text;
  reply.bytes.assign(reinterpret_cast<const char*>(answer->bytes), answer->num_bytes);
  return reply;
}

inline Json ask(const Json& object, std::string_view bytes = {}) {
  Json json = request(object.dump(), bytes).json;
  EXPECT_FALSE(json.contains("error")) << object.dump() << "\n" << json.dump(2);
  return json;
}

inline std::string error_of(const Json& object, std::string_view bytes = {}) {
  Json json = request(object.dump(), bytes).json;
  return json.contains("error") ? json["error"]["text"].get<std::string>() : "";
}

}  // namespace lathe
