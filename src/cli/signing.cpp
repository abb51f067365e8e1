#include "cli/signing.hpp"

#include <nlohmann/json.hpp>

#include "judge/check_verdict.hpp"
#include "util/environment.hpp"

namespace cuda_agent::cli {

std::filesystem::path signing_key_file() {
  if (auto const named = util::get_env("CUDA_AGENT_KEY"); named && !named->empty()) return *named;
  auto const state = util::get_env("XDG_STATE_HOME");
  auto const folder = state && state->starts_with('/')
                          ? std::filesystem::path(*state)
                          : std::filesystem::path(util::get_env("HOME").value_or("/root")) / ".local" / "state";
  return folder / "cuda-agent" / "grade-key.pem";
}

std::string signed_json(const Verdict& verdict, const util::SigningKey& key) {
  auto object = to_json(verdict);
  object["not_measured"].erase("/signature");
  auto const value = key.sign(judge::signed_bytes(object));
  object["signature"] = {{"algorithm", "ed25519"}, {"public_key", key.public_key()}, {"value", value}};
  return object.dump();
}

}  // namespace cuda_agent::cli
