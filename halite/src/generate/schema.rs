//! JSON schemas that answers follow.

use halite_text::Schema;

use super::text_error;
use crate::Result;

/// A JSON schema for [`super::Generator::schema_sampler`].
///
/// What is supported: `type`, `enum`, `const`, `anyOf`, `oneOf` of schemas that are told apart, `allOf`, `$ref` within the schema (to itself,
/// too); `properties`, `required` and `additionalProperties`; `items`, `prefixItems`, `minItems` and `maxItems`; `minLength`, `maxLength`,
/// `pattern` and some of `format`; `minimum`, `maximum` and their exclusive forms. Other keywords are errors, but for those that only
/// describe. Properties are written in the order of the schema, and none that it does not name unless `additionalProperties` says so.
///
/// ```
/// let schema = halite::JsonSchema::parse(r#"{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}"#)?;
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonSchema(pub(super) Schema);

impl JsonSchema {
    /// Reads a schema from its text.
    ///
    /// # Errors
    /// It is no schema, asks for what is not supported, which is named, or no value follows it.
    pub fn parse(text: &str) -> Result<JsonSchema> {
        Schema::parse(text).map(JsonSchema).map_err(text_error)
    }

    /// The schema of any JSON object.
    pub fn object() -> JsonSchema {
        JsonSchema(Schema::object())
    }
}
