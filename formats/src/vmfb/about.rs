//! Attributes of modules and functions with the meanings that [`halite_abi::attribute`] lists.

use halite_abi::attribute;

use super::{Attr, FunctionSignature, ModuleDef};

impl Attr {
    /// A key and a value.
    pub fn new(key: impl Into<String>, value: impl Into<String>) -> Self {
        Attr { key: key.into(), value: value.into() }
    }

    /// A key and a list of texts, as JSON.
    pub fn list(key: impl Into<String>, texts: &[String]) -> Self {
        Attr::new(key, serde_json::Value::from(texts).to_string())
    }
}

/// A list as [`Attr::list`] writes it; none for anything else.
fn list(value: &str) -> Option<Vec<String>> {
    serde_json::from_str(value).ok()
}

impl ModuleDef {
    /// Value of an attribute of the module.
    pub fn attr(&self, key: &str) -> Option<&str> {
        self.attrs.iter().find(|a| a.key == key).map(|a| a.value.as_str())
    }

    /// What wrote the module, if it says so.
    pub fn producer(&self) -> Option<&str> {
        self.attr(attribute::PRODUCER)
    }

    /// Format of the model that it was compiled from, if it says so.
    pub fn model_format(&self) -> Option<&str> {
        self.attr(attribute::MODEL_FORMAT)
    }

    /// Name of the model that it was compiled from, if it says so.
    pub fn model_name(&self) -> Option<&str> {
        self.attr(attribute::MODEL_NAME)
    }

    /// Triples of the targets that it has kernels for; empty if it does not say.
    pub fn targets(&self) -> Vec<String> {
        self.attr(attribute::TARGETS).and_then(list).unwrap_or_default()
    }

    /// The signature of an export.
    pub fn export_signature(&self, name: &str) -> Option<&FunctionSignature> {
        let ordinal = self.export(name)?.ordinal;
        self.functions.get(ordinal as usize).map(|function| &function.signature)
    }
}

impl FunctionSignature {
    /// The model's names of the inputs, in order, if the module says them. They may be any text, and may be there twice.
    pub fn input_names(&self) -> Option<Vec<String>> {
        self.attr(attribute::INPUTS).and_then(list)
    }

    /// The inputs whose buffers the function writes, and the outputs that are in them afterwards, by name; none if the module
    /// does not say.
    pub fn states(&self) -> Vec<(String, String)> {
        let names = self.attr(attribute::STATES).and_then(list).unwrap_or_default();
        names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    /// The model's names of the outputs, as [`FunctionSignature::input_names`].
    pub fn output_names(&self) -> Option<Vec<String>> {
        self.attr(attribute::OUTPUTS).and_then(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_kind_are_kept() {
        let names = ["a b", "ä\"\\", "", "x\0\n"].map(str::to_owned);
        let attrs = vec![Attr::list(attribute::INPUTS, &names)];
        let signature = FunctionSignature { attrs, ..FunctionSignature::default() };
        assert!(!signature.attrs[0].value.contains(['\0', '\n']));
        assert_eq!(signature.input_names().unwrap(), names);
        assert_eq!(signature.output_names(), None);
    }

    #[test]
    fn what_is_no_list_is_none() {
        for value in ["", "x", "[1]", "{}", "[\"a\"", "null"] {
            let attrs = vec![Attr::new(attribute::TARGETS, value)];
            assert!(ModuleDef { attrs, ..ModuleDef::default() }.targets().is_empty(), "{value}");
        }
        assert_eq!(ModuleDef::default().producer(), None);
    }
}
