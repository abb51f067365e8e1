"""The policy file: which names are allowed and what each of them does."""

import builtins
import json

TORCH_FUNCTIONS = ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.nn.functional", "torch.nn.init")


class Config:
    """policy.json, prepared for look-ups of dotted names."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        self.limits = document["limits"]
        self.extensions = set(document["extensions"])
        self.modules = set(document["modules"])
        self.refused = {name: rule for rule, names in document["refused"].items() for name in names}
        self.category, self.category_below = {}, {}
        for category, names in document["names"].items():
            for name in names:
                if name.endswith(".*"):
                    self.category_below[name[:-2]] = category
                else:
                    # A name can be in two lists (torch.no_grad is a context and a decorator): the last one counts.
                    self.category[name] = category
        self.tensor = {key: set(names) for key, names in document["tensor"].items()}
        self.layers = {key: set(names) for key, names in document["layers"].items()}
        self.allowed_dunder = set(document["attributes"]["dunder"])
        self.refused_attributes = {n: rule for rule, names in document["attributes"]["refused"].items() for n in names}
        self.hints = {rule["name"]: rule["instead"] for rule in document["rules"]}
        self._known = {}

    def classify(self, path):
        """(category, rule): what a dotted name does, or the rule that refuses it ("refused")."""
        if path not in self._known:
            self._known[path] = self._classify(path)
        return self._known[path]

    def _classify(self, path):
        parts = path.split(".")
        if parts[0] in self.extensions:
            return "extension", ""
        for length in range(len(parts), 0, -1):
            prefix, whole = ".".join(parts[:length]), length == len(parts)
            if whole and prefix in self.category:
                return self.category[prefix], ""
            # Whoever imports builtins is refused; the names in it are looked at one by one.
            if prefix in self.refused and (whole or prefix != "builtins"):
                return "refused", self.refused[prefix]
            if not whole and prefix in self.category_below:
                return self.category_below[prefix], ""
        if path in self.modules:
            return "spaces", ""
        return self._classify_by_form(path, parts)

    def _classify_by_form(self, path, parts):
        if parts[0] == "builtins":
            return ("builtins", "") if hasattr(builtins, parts[1]) else ("unknown", "")
        if parts[0] != "torch":
            return "refused", "import-not-allowed"
        if path.startswith("torch.Tensor."):
            return "tensor_methods", ""
        if any(part.startswith("_") and not part.startswith("__") for part in parts):
            return "refused", "torch-internal"
        if parts[1] == "nn" and len(parts) > 2:
            classes = [part for part in parts[2:] if part[:1].isupper()]
            if classes and parts[-1] == classes[-1] and classes[-1] not in self.layers["not_layers"]:
                return "layers", ""
            if classes and parts[-1] != classes[-1]:
                return "layer_methods", ""
        above = ".".join(parts[:-1])
        if self.category.get(above) in ("plain", "objects", "dtypes", "devices", "contexts", "handled"):
            return "plain", ""
        if above in TORCH_FUNCTIONS and not parts[-1][:1].isupper() and not parts[-1].startswith("__"):
            return "computes", ""
        return "refused", "torch-not-allowed"

    def rule_for_import(self, module):
        """The rule that an import of a module breaks, or None."""
        parts = module.split(".")
        for length in range(len(parts), 0, -1):
            prefix = ".".join(parts[:length])
            if prefix in self.modules or (length == 1 and prefix in self.extensions):
                return None if length == len(parts) else self._rule_below(module)
            # What sys holds is looked at name by name.
            if prefix in self.refused and not (prefix == "sys" and length == len(parts)):
                return self.refused[prefix]
        return "import-not-allowed"

    def _rule_below(self, module):
        category, rule = self.classify(module)
        return rule if category == "refused" else "import-not-allowed"
