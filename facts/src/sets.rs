//! Sets of features, and what a device says of each.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};

use crate::Feature;

/// A set of features: what a kernel needs, or what is switched on.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u128);

impl FeatureSet {
    /// The set without a feature.
    pub const EMPTY: FeatureSet = FeatureSet(0);

    /// The features that kernels are chosen by: those with a key.
    pub fn of_kernels() -> FeatureSet {
        Feature::ALL.iter().copied().filter(|feature| feature.kernel_key().is_some()).collect()
    }

    /// Whether a feature is in the set.
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u8) != 0
    }

    /// Puts a feature in, or takes it out.
    pub const fn set(&mut self, feature: Feature, present: bool) {
        if present {
            self.0 |= 1 << feature as u8;
        } else {
            self.0 &= !(1 << feature as u8);
        }
    }

    /// The set with a feature in it, or out of it.
    #[must_use]
    pub const fn with(mut self, feature: Feature, present: bool) -> FeatureSet {
        self.set(feature, present);
        self
    }

    /// The features of this set that are not in another.
    #[must_use]
    pub const fn without(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 & !other.0)
    }

    /// The features that are in both sets.
    #[must_use]
    pub const fn and(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 & other.0)
    }

    /// Whether the set has no feature.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The features in the set, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |feature| self.has(*feature))
    }
}

impl FromIterator<Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = Feature>>(features: I) -> Self {
        features.into_iter().fold(FeatureSet::EMPTY, |set, feature| set.with(feature, true))
    }
}

impl fmt::Debug for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// What is known of the features of a device: that it has one, that it lacks one, or nothing.
///
/// As JSON: an object of booleans under Vulkan names. A feature that is not known is left out; a name that the table lacks is
/// ignored, so records of newer programs can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FeatureFacts {
    present: FeatureSet,
    known: FeatureSet,
}

impl FeatureFacts {
    /// Everything is known of the features in `known`: those in `present` are there, the others are not.
    pub const fn new(known: FeatureSet, present: FeatureSet) -> FeatureFacts {
        FeatureFacts { present: present.and(known), known }
    }

    /// Whether the device is known to have a feature.
    pub const fn has(self, feature: Feature) -> bool {
        self.present.has(feature)
    }

    /// Whether the device has a feature; `None` when that is not known.
    pub fn get(self, feature: Feature) -> Option<bool> {
        self.known.has(feature).then(|| self.has(feature))
    }

    /// States whether the device has a feature.
    pub const fn set(&mut self, feature: Feature, present: bool) {
        self.known.set(feature, true);
        self.present.set(feature, present);
    }

    /// The features that the device is known to have.
    pub const fn present(self) -> FeatureSet {
        self.present
    }

    /// The features of which it is known whether the device has them.
    pub const fn known(self) -> FeatureSet {
        self.known
    }

    /// What is known of the features of a set.
    #[must_use]
    pub const fn only(self, features: FeatureSet) -> FeatureFacts {
        FeatureFacts { present: self.present.and(features), known: self.known.and(features) }
    }

    /// What is known here, and where nothing is, what `general` says.
    #[must_use]
    pub const fn over(self, general: FeatureFacts) -> FeatureFacts {
        FeatureFacts {
            present: FeatureSet(self.present.0 | general.present.without(self.known).0),
            known: FeatureSet(self.known.0 | general.known.0),
        }
    }

    /// The features that are known, with whether they are there, in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = (Feature, bool)> {
        self.known.iter().map(move |feature| (feature, self.has(feature)))
    }
}

impl Serialize for FeatureFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (feature, present) in self.iter() {
            map.serialize_entry(feature.vulkan_name(), &present)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for FeatureFacts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = FeatureFacts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of booleans under the Vulkan names of features")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FeatureFacts, A::Error> {
                let mut facts = FeatureFacts::default();
                while let Some((name, present)) = map.next_entry::<String, bool>()? {
                    if let Some(feature) = Feature::from_vulkan_name(&name) {
                        facts.set(feature, present);
                    }
                }
                Ok(facts)
            }
        }
        deserializer.deserialize_map(Names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_specific_covers_the_general() {
        let mut special = FeatureFacts::default();
        special.set(Feature::ShaderInt8, false);
        let mut general = FeatureFacts::default();
        general.set(Feature::ShaderInt8, true);
        general.set(Feature::ShaderInt16, true);
        let merged = special.over(general);
        let said = [Feature::ShaderInt8, Feature::ShaderInt16, Feature::ShaderInt64].map(|f| merged.get(f));
        assert_eq!(said, [Some(false), Some(true), None]);
        assert_eq!(merged.present(), FeatureSet::from_iter([Feature::ShaderInt16]));
    }

    #[test]
    fn json_has_vulkan_names_and_only_what_is_known() {
        let text = r#"{"shaderInt64":true,"cooperativeMatrix":false}"#;
        let facts: FeatureFacts = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&facts).unwrap(), text);
        let newer: FeatureFacts = serde_json::from_str(r#"{"shaderInt64":true,"ofTheFuture":true}"#).unwrap();
        assert_eq!(newer.known(), FeatureSet::from_iter([Feature::ShaderInt64]));
        assert!(serde_json::from_str::<FeatureFacts>(r#"{"shaderInt64":1}"#).is_err());
    }
}
