#include "policy/objects_x86.hpp"

#include <string_view>

namespace cuda_agent::policy {

namespace {

constexpr std::size_t longest = 15;

// What follows an opcode. Tables of 256, sixteen opcodes a line:
//   .  nothing            m  modrm             i  modrm, imm8        I  modrm, imm32 (imm16 with 66)
//   b  imm8               w  imm16             d  imm32 (imm16 with 66)
//   r  rel32              e  imm16, imm8       q  imm32 (64 with REX.W, 16 with 66)
//   a  an address of 8 bytes                   g  modrm, imm8 for /0 and /1
//   G  modrm, imm32 for /0 and /1              -  invalid or not known
constexpr std::string_view one_byte =
    "mmmmbd--mmmmbd--"  // 00, 0f is the escape
    "mmmmbd--mmmmbd--"  // 10
    "mmmmbd--mmmmbd--"  // 20, 26 and 2e are prefixes
    "mmmmbd--mmmmbd--"  // 30
    "----------------"  // 40: REX
    "................"  // 50
    "---m----dIbi...."  // 60
    "bbbbbbbbbbbbbbbb"  // 70
    "iI-immmmmmmmmmmm"  // 80
    "..........-....."  // 90
    "aaaa....bd......"  // a0
    "bbbbbbbbqqqqqqqq"  // b0
    "iiw.--iIe.w..b-."  // c0, c4 and c5 are VEX
    "mmmm---.mmmmmmmm"  // d0
    "bbbbbbbbrr-b...."  // e0
    "-.-...gG......mm"  // f0
    ;
constexpr std::string_view two_byte =
    "mmmm-.....-.-m.i"  // 0f 00
    "mmmmmmmmmmmmmmmm"  // 10
    "mmmm----mmmmmmmm"  // 20
    "......-.--------"  // 30, 38 and 3a are escapes
    "mmmmmmmmmmmmmmmm"  // 40
    "mmmmmmmmmmmmmmmm"  // 50
    "mmmmmmmmmmmmmmmm"  // 60
    "iiiimmm.-m--mmmm"  // 70
    "rrrrrrrrrrrrrrrr"  // 80
    "mmmmmmmmmmmmmmmm"  // 90
    "...mim--...mimmm"  // a0
    "mmmmmmmmmmimmmmm"  // b0
    "mmimiiim........"  // c0
    "mmmmmmmmmmmmmmmm"  // d0
    "mmmmmmmmmmmmmmmm"  // e0
    "mmmmmmmmmmmmmmmm"  // f0
    ;
static_assert(one_byte.size() == 256 && two_byte.size() == 256);

class Decoder {
 public:
  Decoder(const unsigned char* code, std::size_t size) : m_code(code), m_left(size < longest ? size : longest) {}

  Instruction decode() {
    read_prefixes();
    unsigned const opcode = next();
    if (opcode == 0x62) {
      read_evex();
    } else if (opcode == 0xc5 || opcode == 0xc4) {
      read_vex(opcode == 0xc4);
    } else if (opcode == 0x0f) {
      read_two_byte();
    } else {
      if (opcode == 0xcd && peek() == 0x80) m_call = KernelCall::int_0x80;
      read_operands(one_byte[opcode]);
    }
    return m_known ? Instruction{m_at, m_call} : Instruction{};
  }

 private:
  // After the end everything reads as 0 and the whole counts as not known.
  unsigned next() {
    if (m_at >= m_left) {
      m_known = false;
      return 0;
    }
    return m_code[m_at++];
  }
  unsigned peek() const { return m_at < m_left ? m_code[m_at] : 0; }
  void skip(std::size_t count) {
    if (m_left - m_at < count) m_known = false;
    m_at = m_known ? m_at + count : m_left;
  }

  void read_prefixes() {
    for (;;) {
      switch (peek()) {
        case 0x66:
          m_operand_16 = true;
          break;
        case 0x67:
          m_address_32 = true;
          break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0xf0:
        case 0xf2:
        case 0xf3:
          break;
        default:
          if ((peek() & 0xf0) == 0x40) m_wide = (next() & 8) != 0;  // REX stands right before the opcode
          return;
      }
      next();
    }
  }

  void read_two_byte() {
    unsigned const opcode = next();
    if (opcode == 0x38) {
      next();
      read_modrm();
    } else if (opcode == 0x3a) {
      next();
      read_modrm();
      skip(1);
    } else {
      if (opcode == 0x05) m_call = KernelCall::syscall;
      if (opcode == 0x34) m_call = KernelCall::sysenter;
      read_operands(two_byte[opcode]);
    }
  }

  void read_vex(bool long_form) {
    unsigned const map = long_form ? next() & 0x1f : 1;
    next();
    unsigned const opcode = next();
    if (map < 1 || map > 3) m_known = false;
    if (map == 1 && opcode == 0x77) return;  // vzeroupper
    read_vector_operands(map, opcode);
  }

  void read_evex() {
    unsigned const map = next() & 7;
    next();
    next();
    unsigned const opcode = next();
    if (map == 0 || map == 4 || map == 7) m_known = false;
    read_vector_operands(map, opcode);
  }

  void read_vector_operands(unsigned map, unsigned opcode) {
    read_modrm();
    bool const shuffles =
        map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 || (opcode >= 0xc4 && opcode <= 0xc6));
    if (map == 3 || shuffles) skip(1);
  }

  std::size_t immediate() const { return m_operand_16 && !m_wide ? 2 : 4; }

  void read_operands(char kind) {
    switch (kind) {
      case '.':
        return;
      case 'm':
        read_modrm();
        return;
      case 'i':
        read_modrm();
        return skip(1);
      case 'I':
        read_modrm();
        return skip(immediate());
      case 'b':
        return skip(1);
      case 'w':
        return skip(2);
      case 'd':
        return skip(immediate());
      case 'r':
        return skip(4);
      case 'e':
        return skip(3);
      case 'q':
        return skip(m_wide ? 8 : immediate());
      case 'a':
        return skip(m_address_32 ? 4 : 8);
      case 'g':
      case 'G': {
        bool const has_immediate = (peek() & 0x30) == 0;
        read_modrm();
        return skip(!has_immediate ? 0 : kind == 'g' ? 1 : immediate());
      }
      default:
        m_known = false;
    }
  }

  void read_modrm() {
    unsigned const modrm = next();
    unsigned const mod = modrm >> 6;
    unsigned const rm = modrm & 7;
    if (mod == 3) return;
    bool const disp32 = mod == 2 || (mod == 0 && rm == 5);
    bool const base_is_disp32 = rm == 4 && (next() & 7) == 5 && mod == 0;
    if (mod == 1) {
      skip(1);
    } else if (disp32 || base_is_disp32) {
      skip(4);
    }
  }

  const unsigned char* m_code;
  std::size_t m_left;
  std::size_t m_at = 0;
  bool m_known = true;
  bool m_operand_16 = false;
  bool m_address_32 = false;
  bool m_wide = false;
  KernelCall m_call = KernelCall::none;
};

}  // namespace

Instruction decode_x86(const unsigned char* code, std::size_t size) { return Decoder(code, size).decode(); }

}  // namespace cuda_agent::policy
