#include "schema_check.hpp"

#include <algorithm>
#include <set>

#include <regex.h>

namespace cuda_agent::tests {
namespace {

using nlohmann::json;

/// POSIX expressions: g++ 12 warns about std::regex itself in builds with sanitizers.
bool matches(const std::string& text, const std::string& pattern) {
  regex_t expression;
  if (regcomp(&expression, pattern.c_str(), REG_EXTENDED | REG_NOSUB) != 0) {
    return false;
  }
  const bool found = regexec(&expression, text.c_str(), 0, nullptr, 0) == 0;
  regfree(&expression);
  return found;
}

class Check {
 public:
  explicit Check(const json& root) : m_root(root) {}

  void against(const json& schema, const json& value, const std::string& place) {
    static const std::set<std::string> annotations = {"$schema", "$id", "$defs", "title", "description"};
    for (const auto& [keyword, argument] : schema.items()) {
      if (annotations.contains(keyword)) {
        continue;
      }
      if (keyword == "$ref") {
        against(m_root.at(json::json_pointer(argument.get<std::string>().substr(1))), value, place);
      } else if (!object_keyword(keyword, argument, schema, value, place) &&
                 !value_keyword(keyword, argument, value, place)) {
        errors.push_back(place + ": the schema uses a keyword not checked here: " + keyword);
      }
    }
  }

  std::vector<std::string> errors;

 private:
  bool object_keyword(const std::string& keyword, const json& argument, const json& schema, const json& value,
                      const std::string& place) {
    if (keyword == "properties") {
      for (const auto& [key, sub] : argument.items()) {
        if (value.is_object() && value.contains(key)) {
          against(sub, value.at(key), place + "/" + key);
        }
      }
    } else if (keyword == "required") {
      for (const json& key : argument) {
        expect(!value.is_object() || value.contains(key.get<std::string>()), place, "lacks " + key.dump());
      }
    } else if (keyword == "additionalProperties") {
      const json members = value.is_object() ? value : json::object();
      for (const auto& [key, member] : members.items()) {
        if (schema.contains("properties") && schema.at("properties").contains(key)) {
          continue;
        }
        if (argument.is_boolean()) {
          expect(argument.get<bool>(), place, "has the unknown key " + key);
        } else {
          against(argument, member, place + "/" + key);
        }
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; value.is_array() && i < value.size(); ++i) {
        against(argument, value.at(i), place + "/" + std::to_string(i));
      }
    } else {
      return false;
    }
    return true;
  }

  bool value_keyword(const std::string& keyword, const json& argument, const json& value, const std::string& place) {
    if (keyword == "type") {
      const json types = argument.is_array() ? argument : json::array({argument});
      expect(std::any_of(types.begin(), types.end(), [&](const json& type) { return is_of_type(value, type); }), place,
             "is " + value.dump() + ", not of type " + argument.dump());
    } else if (keyword == "const") {
      expect(value == argument, place, "is not " + argument.dump());
    } else if (keyword == "enum") {
      expect(std::find(argument.begin(), argument.end(), value) != argument.end(), place,
             value.dump() + " is none of " + argument.dump());
    } else if (keyword == "minimum") {
      expect(!value.is_number() || value >= argument, place, value.dump() + " is below " + argument.dump());
    } else if (keyword == "maximum") {
      expect(!value.is_number() || value <= argument, place, value.dump() + " is above " + argument.dump());
    } else if (keyword == "pattern") {
      expect(!value.is_string() || matches(value.get<std::string>(), argument.get<std::string>()), place,
             value.dump() + " does not match " + argument.dump());
    } else if (keyword == "anyOf") {
      expect(std::any_of(argument.begin(), argument.end(),
                         [&](const json& branch) {
                           Check check(m_root);
                           check.against(branch, value, place);
                           return check.errors.empty();
                         }),
             place, value.dump() + " matches no branch");
    } else {
      return false;
    }
    return true;
  }

  static bool is_of_type(const json& value, const std::string& type) {
    return (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
           (type == "null" && value.is_null()) || (type == "array" && value.is_array()) ||
           (type == "object" && value.is_object());
  }

  void expect(bool good, const std::string& place, const std::string& what) {
    if (!good) {
      errors.push_back(place + ": " + what);
    }
  }

  const json& m_root;
};

}  // namespace

std::vector<std::string> schema_errors(const json& schema, const json& value) {
  Check check(schema);
  check.against(schema, value, "");
  return check.errors;
}

}  // namespace cuda_agent::tests
