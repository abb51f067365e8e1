// Ed25519 signatures (RFC 8032), by OpenSSL.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

class SigningKey {
 public:
  /// Reads the key of a PEM file; makes one (mode 0600, in a folder of mode 0700) where there is none. Errors
  /// (environment_error): unreadable, no Ed25519 key, or readable by others.
  static Result<SigningKey> open_or_make(const std::filesystem::path& file);

  /// The same without making one: fails where there is none.
  static Result<SigningKey> open(const std::filesystem::path& file);

  SigningKey(SigningKey&&) noexcept;
  SigningKey& operator=(SigningKey&&) noexcept;
  SigningKey(const SigningKey&) = delete;
  SigningKey& operator=(const SigningKey&) = delete;
  ~SigningKey();

  std::string public_key() const;                  ///< 64 hexadecimal digits
  std::string sign(std::string_view bytes) const;  ///< 128 hexadecimal digits

 private:
  struct Key;
  explicit SigningKey(std::unique_ptr<Key> key);
  std::unique_ptr<Key> m_key;
};

/// Whether `signature` (128 hexadecimal digits) of `bytes` was made with the key of `public_key` (64). False for
/// anything malformed.
bool verify_signature(std::string_view bytes, const std::string& public_key, const std::string& signature);

}  // namespace cuda_agent::util
