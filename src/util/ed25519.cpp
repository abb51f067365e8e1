#include "util/ed25519.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.hpp"
#include "util/files.hpp"

namespace cuda_agent::util {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t key_bytes = 32;
constexpr std::size_t signature_bytes = 64;
constexpr std::size_t longest_key_file = 4096;

struct FreeKey {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
};
struct FreeBio {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, FreeKey>;
using ContextPointer = std::unique_ptr<EVP_MD_CTX, FreeContext>;
using BioPointer = std::unique_ptr<BIO, FreeBio>;

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<std::vector<unsigned char>> bytes_of(const std::string& text, std::size_t count) {
  if (text.size() != 2 * count) return std::nullopt;
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    int const high = digit(text[i]);
    int const low = digit(text[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<unsigned char>(high * 16 + low));
  }
  return bytes;
}

tl::unexpected<Error> bad_key(const fs::path& file, std::string_view what, std::string hint) {
  return fail(Outcome::environment_error, fmt::format("the signing key {} {}", file.string(), what), {std::move(hint)});
}

const unsigned char* data_of(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

}  // namespace

struct SigningKey::Key {
  KeyPointer pointer;
};

SigningKey::SigningKey(std::unique_ptr<Key> key) : m_key(std::move(key)) {}
SigningKey::SigningKey(SigningKey&&) noexcept = default;
SigningKey& SigningKey::operator=(SigningKey&&) noexcept = default;
SigningKey::~SigningKey() = default;

Result<SigningKey> SigningKey::open_or_make(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0) return open(file);
  if (errno != ENOENT) return bad_key(file, "cannot be read", "check the permissions of its folder");
  KeyPointer key(::EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  BioPointer const memory(::BIO_new(::BIO_s_mem()));
  if (!key || !memory ||
      ::PEM_write_bio_PrivateKey(memory.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return fail(Outcome::internal_error, "OpenSSL cannot make an Ed25519 key");
  }
  char* text = nullptr;
  auto const size = BIO_get_mem_data(memory.get(), &text);
  std::error_code error;
  bool const own_folder = !fs::exists(file.parent_path(), error);
  if (auto made = make_folders(file.parent_path()); !made) return fail(made.error());
  if (own_folder) (void)::chmod(file.parent_path().c_str(), 0700);
  // Readable by the owner alone from its first byte on.
  Fd const target(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!target && errno == EEXIST) return open(file);  // somebody made one just now
  if (!target || ::write(target.get(), text, static_cast<std::size_t>(size)) != size) {
    return bad_key(file, "cannot be written",
                   "check the permissions of its folder, or name another file: CUDA_AGENT_KEY");
  }
  return SigningKey(std::make_unique<Key>(Key{std::move(key)}));
}

Result<SigningKey> SigningKey::open(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return bad_key(file, "is not there", "`cuda-agent grade` makes one");
  if ((status.st_mode & 077U) != 0) {
    return bad_key(file, "can be read by others, who could sign with it",
                   fmt::format("remove it, and a new one is made: rm {}", file.string()));
  }
  auto const text = read_file(file, longest_key_file);
  if (!text) return fail(text.error());
  BioPointer const memory(::BIO_new_mem_buf(text->data(), static_cast<int>(text->size())));
  KeyPointer key(memory ? ::PEM_read_bio_PrivateKey(memory.get(), nullptr, nullptr, nullptr) : nullptr);
  if (!key || ::EVP_PKEY_get_base_id(key.get()) != EVP_PKEY_ED25519) {
    return bad_key(file, "is no Ed25519 key in PEM", "remove it, and a new one is made");
  }
  return SigningKey(std::make_unique<Key>(Key{std::move(key)}));
}

std::string SigningKey::public_key() const {
  std::array<unsigned char, key_bytes> bytes{};
  std::size_t size = bytes.size();
  if (::EVP_PKEY_get_raw_public_key(m_key->pointer.get(), bytes.data(), &size) != 1 || size != bytes.size()) {
    throw std::runtime_error("OpenSSL cannot name a public key");
  }
  return hexadecimal(bytes.data(), bytes.size());
}

std::string SigningKey::sign(std::string_view bytes) const {
  ContextPointer const context(::EVP_MD_CTX_new());
  std::array<unsigned char, signature_bytes> signature{};
  std::size_t size = signature.size();
  if (!context || ::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, m_key->pointer.get()) != 1 ||
      ::EVP_DigestSign(context.get(), signature.data(), &size, data_of(bytes), bytes.size()) != 1) {
    throw std::runtime_error("OpenSSL cannot sign");
  }
  return hexadecimal(signature.data(), size);
}

bool verify_signature(std::string_view bytes, const std::string& public_key, const std::string& signature) {
  auto const key_raw = bytes_of(public_key, key_bytes);
  auto const signature_raw = bytes_of(signature, signature_bytes);
  if (!key_raw || !signature_raw) return false;
  KeyPointer const key(::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, key_raw->data(), key_raw->size()));
  ContextPointer const context(::EVP_MD_CTX_new());
  return key && context && ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
         ::EVP_DigestVerify(context.get(), signature_raw->data(), signature_raw->size(), data_of(bytes),
                            bytes.size()) == 1;
}

}  // namespace cuda_agent::util
