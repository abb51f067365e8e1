#include "judge/outputs.hpp"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "device/cpu/cpu_arena.hpp"
#include "device/cpu/cpu_backend.hpp"

namespace cuda_agent::judge {
namespace {

using nlohmann::json;

json tensor(std::vector<std::int64_t> shape, std::uint64_t offset = 0, const std::string& dtype = "float32") {
  std::vector<std::int64_t> stride(shape.size(), 1);
  for (std::size_t d = shape.size(); d > 1; --d) stride[d - 2] = stride[d - 1] * shape[d - 1];
  return {{"kind", "tensor"}, {"dtype", dtype},   {"device", "cpu"},
          {"shape", shape},   {"stride", stride}, {"offset", offset}};
}

OutputNode parsed(const json& described) {
  auto node = parse_output(described);
  EXPECT_TRUE(node) << (node ? "" : node.error().message);
  return node ? *node : OutputNode();
}

class Outputs : public ::testing::Test {
 protected:
  void SetUp() override {
    m_backend = device::make_cpu_backend();
    m_expected = *m_backend->allocate_private(4096);
    m_got = *m_backend->allocate_private(4096);
    fill(m_expected, {1, 2, 3, 4, 5, 6});
    fill(m_got, {1, 2, 3, 4, 5, 6});
  }

  static void fill(std::unique_ptr<device::Arena>& arena, const std::vector<float>& values) {
    auto const memory = device::memory_of({arena.get(), 0, 4096});
    std::memcpy(memory->data(), values.data(), values.size() * sizeof(float));
  }

  OutputCheck check(const json& expected, const json& got) {
    auto const done = check_output(*m_backend, parsed(expected), {m_expected.get(), 0, 4096}, parsed(got),
                                   {m_got.get(), 0, 4096}, {});
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done ? *done : OutputCheck();
  }

  std::unique_ptr<device::Backend> m_backend;
  std::unique_ptr<device::Arena> m_expected;
  std::unique_ptr<device::Arena> m_got;
};

TEST_F(Outputs, EqualTensorsAreRight) {
  auto const result = check(tensor({2, 3}), tensor({2, 3}));
  EXPECT_TRUE(result.ok) << result.sentence;
  EXPECT_EQ(result.tolerances.count("float32"), 1U);
}

TEST_F(Outputs, TheFirstWrongElementIsNamedWithItsIndexAndValues) {
  fill(m_got, {1, 2, 3, 4, 5, 60});
  auto const result = check(tensor({2, 3}), tensor({2, 3}));
  EXPECT_FALSE(result.ok);
  ASSERT_TRUE(result.first_mismatch);
  EXPECT_EQ(result.first_mismatch->index, (std::vector<std::int64_t>{1, 2}));
  EXPECT_NE(result.sentence.find("[1, 2]"), std::string::npos) << result.sentence;
  EXPECT_NE(result.sentence.find("60"), std::string::npos) << result.sentence;
  EXPECT_DOUBLE_EQ(result.first_mismatch->absolute, 54);
  EXPECT_DOUBLE_EQ(result.first_mismatch->relative, 9);
}

TEST_F(Outputs, AnotherShapeDtypeDeviceOrStructureIsNamedBeforeAnyValue) {
  EXPECT_EQ(check(tensor({2, 3}), tensor({6})).sentence, "output has shape [6], expected [2, 3]");
  EXPECT_EQ(check(tensor({3}), tensor({3}, 0, "float16")).sentence, "output has dtype float16, expected float32");
  json elsewhere = tensor({3});
  elsewhere["device"] = "meta";
  EXPECT_EQ(check(tensor({3}), elsewhere).sentence, "output is on device meta, expected cpu");
  json const pair = {{"kind", "tuple"}, {"items", {tensor({1}), tensor({1}, 4)}}};
  EXPECT_FALSE(check(pair, tensor({1})).ok);
  json const list = {{"kind", "list"}, {"items", {tensor({1}), tensor({1}, 4)}}};
  EXPECT_FALSE(check(pair, list).ok);
}

TEST_F(Outputs, TheOrderOfADictsKeysMeansNothing) {
  json const expected = {{"kind", "dict"}, {"names", {"a", "b"}}, {"items", {tensor({1}, 0), tensor({1}, 4)}}};
  json const swapped = {{"kind", "dict"}, {"names", {"b", "a"}}, {"items", {tensor({1}, 4), tensor({1}, 0)}}};
  EXPECT_TRUE(check(expected, swapped).ok);
  json const other = {{"kind", "dict"}, {"names", {"a", "c"}}, {"items", {tensor({1}, 0), tensor({1}, 4)}}};
  EXPECT_FALSE(check(expected, other).ok);
}

TEST_F(Outputs, ScalarsMustBeEqual) {
  json const one = {{"kind", "int"}, {"text", "1"}};
  json const two = {{"kind", "int"}, {"text", "2"}};
  json const real = {{"kind", "float"}, {"text", "1"}};
  EXPECT_TRUE(check(one, one).ok);
  EXPECT_FALSE(check(one, two).ok);
  EXPECT_FALSE(check(one, real).ok);
}

TEST_F(Outputs, AResultOutsideItsRoomIsAnErrorAndNotRead) {
  auto const done = check_output(*m_backend, parsed(tensor({2})), {m_expected.get(), 0, 4096},
                                 parsed(tensor({2}, 4092)), {m_got.get(), 0, 4096}, {});
  EXPECT_FALSE(done);
}

TEST(ParseOutput, MalformedDescriptionsAreErrors) {
  for (const char* text :
       {"[]", "{}", R"({"kind":"tensor"})", R"({"kind":"tensor","dtype":"float32","shape":"x"})",
        R"({"kind":"tuple","items":3})", R"({"kind":5})", R"({"kind":"dict","names":["a"],"items":[]})"}) {
    EXPECT_FALSE(parse_output(json::parse(text))) << text;
  }
}

TEST(ParseOutput, NestingIsLimited) {
  json node = {{"kind", "none"}};
  for (int i = 0; i < 100; ++i) node = {{"kind", "tuple"}, {"items", {node}}};
  EXPECT_FALSE(parse_output(node));
}

TEST(ParseOutput, ADtypeThatCannotBeComparedIsRefusedAndNamed) {
  auto const node = parse_output(tensor({1}, 0, "qint8"));
  ASSERT_TRUE(node);
  EXPECT_EQ(node->kind, "refused");
  EXPECT_NE(node->text.find("qint8"), std::string::npos);
}

TEST(BytesInFull, CountsExpandedTensorsAsIfTheyWereStoredAndRefusesOverflow) {
  json expanded = tensor({1000, 4});
  expanded["stride"] = {0, 1};
  EXPECT_EQ(bytes_in_full(parsed(expanded)), 16128U);  // 16,000 rounded up to 256
}

TEST(ParseOutput, AShapeWhoseSizeDoesNotFitIsAnError) {
  json huge = tensor({1, 1});
  huge["shape"] = {1LL << 40, 1LL << 40};
  EXPECT_FALSE(parse_output(huge));
  huge["stride"] = {0, 0};
  EXPECT_FALSE(parse_output(huge));
  huge["shape"] = {-1, 2};
  EXPECT_FALSE(parse_output(huge));
}

}  // namespace
}  // namespace cuda_agent::judge
