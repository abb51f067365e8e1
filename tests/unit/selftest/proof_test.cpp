#include "selftest/proof.hpp"

#include <gtest/gtest.h>

#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

using Names = std::vector<std::string>;

const Part caught{};
const Part policy_alone{Part::Kind::alone, "policy"};
const Part through{Part::Kind::through};

Case exploit(const std::string& layer, const Names& also = {}) {
  Case one;
  one.layer = layer;
  one.also = also;
  return one;
}

std::string off(const Case& one, const Part& part) { return util::join(switched_off(one, part), " "); }

Answer answered(const std::string& outcome, int code, const Names& rules = {}) {
  Answer answer;
  answer.outcome = outcome;
  answer.exit_code = code;
  answer.message = "why";
  answer.rules = rules;
  return answer;
}

}  // namespace

TEST(SwitchedOff, ThePolicyWhereAnotherLayerCatches) {
  EXPECT_EQ(off(exploit("seal"), caught), "--policy none");
  EXPECT_EQ(off(exploit("seal"), policy_alone), "--without seal");
  EXPECT_EQ(off(exploit("seal"), through), "--without seal --policy none");
  EXPECT_EQ(off(exploit("seal", {"policy"}), through), "--without seal --policy none") << "once";
}

TEST(SwitchedOff, NothingBeforeAPolicyThatCatches) {
  EXPECT_EQ(off(exploit("policy"), caught), "");
  EXPECT_EQ(off(exploit("policy"), through), "--policy none");
}

TEST(SwitchedOff, AllOthersWhereALayerStandsAlone) {
  auto const one = exploit("other-inputs", {"precision", "policy"});
  EXPECT_EQ(off(one, {Part::Kind::alone, "other-inputs"}), "--precision any --policy none");
  EXPECT_EQ(off(one, {Part::Kind::alone, "precision"}), "--only-drawn-inputs --policy none");
  EXPECT_EQ(off(one, policy_alone), "--only-drawn-inputs --precision any");
  EXPECT_EQ(off(one, through), "--only-drawn-inputs --precision any --policy none");
}

TEST(PartsOfProof, EachLayerAloneAndNoneAtAll) {
  EXPECT_EQ(parts_of_proof(exploit("seal", {"policy"})), (std::vector<Part>{policy_alone, through}));
  EXPECT_EQ(parts_of_proof(exploit("seal")), (std::vector<Part>{policy_alone, through}))
      << "that the policy does not catch it is said as well";
  EXPECT_EQ(parts_of_proof(exploit("policy")), std::vector<Part>{through});
  EXPECT_EQ(parts_of_proof(exploit("other-inputs", {"precision"})),
            (std::vector<Part>{
                {Part::Kind::alone, "other-inputs"}, {Part::Kind::alone, "precision"}, policy_alone, through}));
}

TEST(PartsOfProof, NoneThatNeedsASwitchThatIsNotThere) {
  EXPECT_EQ(parts_of_proof(exploit("sandbox")), std::vector<Part>{policy_alone});
  EXPECT_EQ(not_switchable(exploit("sandbox", {"policy"})), Names{"sandbox"});
  EXPECT_TRUE(not_switchable(exploit("comparison", {"policy"})).empty());
}

TEST(PartsOfProof, ALayerAloneOnlyWhereTheOthersCanBeSwitchedOff) {
  EXPECT_EQ(parts_of_proof(exploit("stopping", {"baseline"})),
            (std::vector<Part>{{Part::Kind::alone, "baseline"}, policy_alone}));
}

TEST(PartsOfProof, NothingOfAnHonestCase) {
  auto one = exploit("");
  one.kind = Kind::honest;
  EXPECT_TRUE(parts_of_proof(one).empty());
}

TEST(Disproved, WhatIsCaughtByAnotherLayerThanItSays) {
  EXPECT_TRUE(disproved(exploit("seal"), through, answered("pass", 0)).empty());
  EXPECT_EQ(disproved(exploit("seal"), through, answered("wrong", 6)),
            Names{"something else than seal catches it: with --without seal --policy none it is still wrong (exit code "
                  "6), why"});
}

TEST(Disproved, WhatThePolicyDoesNotDoAsItIsSaid) {
  auto const refused = answered("policy_violation", 4, {"torch-compute"});
  EXPECT_TRUE(disproved(exploit("seal", {"policy"}), policy_alone, refused).empty());
  EXPECT_TRUE(disproved(exploit("seal"), policy_alone, answered("pass", 0)).empty());
  EXPECT_EQ(disproved(exploit("seal"), policy_alone, refused),
            Names{"the policy refuses it as well (torch-compute), and 'also_caught_by' does not say so"});
  EXPECT_EQ(disproved(exploit("seal", {"policy"}), policy_alone, answered("pass", 0)),
            Names{"'also_caught_by' names the policy, which does not refuse it: pass (exit code 0), why"});
}

TEST(Disproved, ALayerThatDoesNotCatchByItself) {
  auto one = exploit("other-inputs", {"precision"});
  Part const alone{Part::Kind::alone, "precision"};
  EXPECT_TRUE(disproved(one, alone, answered("wrong", 6)).empty());
  EXPECT_EQ(disproved(one, alone, answered("pass", 0)),
            Names{"precision does not catch it by itself: pass (exit code 0), why"});
  one.expect.most_speedup = 1.25;
  EXPECT_TRUE(disproved(one, alone, answered("pass", 0)).empty()) << "what is bound may pass; what it gains decides";
}

}  // namespace cuda_agent::selftest
