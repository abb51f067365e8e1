// SHA-256, as lower-case hex.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

std::string sha256_hex(std::string_view data);

/// Hashes what comes in pieces.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  ~Sha256();

  void update(std::string_view data);
  /// The hash of all that was given so far; more may follow.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> m_state;
};

/// Errors (environment_error): missing, not a regular file, not readable.
Result<std::string> sha256_of_file(const std::filesystem::path& path);

}  // namespace cuda_agent::util
