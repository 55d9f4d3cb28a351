//! The JSON form of features in the table of GPUs and in the needs of kernels: booleans under their kernel keys, beside the
//! other fields of an object. For `#[serde(flatten, with = "…")]`; what no other field takes must be a feature, so a misspelled
//! key is an error that lists the valid ones.

use std::fmt;

use serde::{
    Deserializer, Serializer,
    de::{Error, MapAccess, Visitor},
    ser::SerializeMap,
};

use crate::{Feature, FeatureFacts, FeatureSet};

/// Writes what is known of features that kernels choose by.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(facts: &FeatureFacts, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (feature, present) in facts.iter() {
        if let Some(key) = feature.kernel_key() {
            map.serialize_entry(key, &present)?;
        }
    }
    map.end()
}

/// Reads facts: `{"int8": true, "float64": false}`.
///
/// # Errors
/// A key is none of a feature, or its value no boolean.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FeatureFacts, D::Error> {
    deserializer.deserialize_map(Keys)
}

/// Needs: a set of features, each under its key with the value `true`.
pub mod set {
    use super::{Deserializer, FeatureSet, deserialize as facts};

    /// Reads the features that are `true`.
    ///
    /// # Errors
    /// As [`super::deserialize`].
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FeatureSet, D::Error> {
        facts(deserializer).map(super::FeatureFacts::present)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = FeatureFacts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("booleans under the keys of features")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FeatureFacts, A::Error> {
        let mut facts = FeatureFacts::default();
        while let Some(key) = map.next_key::<String>()? {
            let feature = Feature::from_kernel_key(&key).ok_or_else(|| {
                let valid: Vec<_> = Feature::ALL.iter().filter_map(|f| f.kernel_key()).collect();
                A::Error::custom(format!("unknown field `{key}`; the features are {}", valid.join(", ")))
            })?;
            facts.set(feature, map.next_value()?);
        }
        Ok(facts)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Row {
        size: u32,
        #[serde(flatten, with = "super")]
        features: FeatureFacts,
    }

    #[test]
    fn features_stand_beside_other_fields() {
        let text = r#"{"size":3,"int8":true,"bfloat16":false}"#;
        let row: Row = serde_json::from_str(text).unwrap();
        assert_eq!((row.size, row.features.get(Feature::ShaderInt8)), (3, Some(true)));
        assert_eq!(row.features.get(Feature::ShaderBFloat16Type), Some(false));
        assert_eq!(serde_json::to_string(&row).unwrap(), text);
    }

    #[test]
    fn a_misspelled_key_lists_the_valid_ones() {
        let error = serde_json::from_str::<Row>(r#"{"int_8": true}"#).err().unwrap().to_string();
        assert!(error.contains("`int_8`") && error.contains("float16, int8"), "{error}");
        assert!(serde_json::from_str::<Row>(r#"{"int8": 1}"#).is_err());
    }
}
