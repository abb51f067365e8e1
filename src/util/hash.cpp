#include "util/hash.hpp"

#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.hpp"

namespace cuda_agent::util {

namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

Context make_context() {
  Context context(EVP_MD_CTX_new());
  if (!context) throw std::bad_alloc();
  return context;
}

// SHA-256 of memory fails for want of memory only.
void check(int result) {
  if (result != 1) throw std::bad_alloc();
}

}  // namespace

struct Sha256::State {
  Context context = make_context();
};

Sha256::Sha256() : m_state(std::make_unique<State>()) {
  check(EVP_DigestInit_ex(m_state->context.get(), EVP_sha256(), nullptr));
}
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view data) {
  check(EVP_DigestUpdate(m_state->context.get(), data.data(), data.size()));
}

std::string Sha256::hex() const {
  Context const copy = make_context();
  check(EVP_MD_CTX_copy_ex(copy.get(), m_state->context.get()));
  std::array<unsigned char, 32> digest{};
  check(EVP_DigestFinal_ex(copy.get(), digest.data(), nullptr));
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::string sha256_hex(std::string_view data) {
  Sha256 hash;
  hash.update(data);
  return hash.hex();
}

Result<std::string> sha256_of_file(const std::filesystem::path& path) {
  auto const error = [&path](std::string_view reason) {
    return fail(Outcome::environment_error, fmt::format("cannot hash {}: {}", path.string(), reason));
  };
  Fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return error(std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return error(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) return error("not a regular file");

  Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 18U);
  while (true) {
    ssize_t const got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return error(std::generic_category().message(errno));
    if (got == 0) return hash.hex();
    hash.update({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace cuda_agent::util
