//! Floats that have an identity.

use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

/// A float that equals another when all their bits are equal: 0 and -0 are two numbers, and a NaN equals itself. It is what
/// operations have in their fields, so that they can be compared and hashed. In text and JSON it is a plain number.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Exact<T>(pub T);

macro_rules! by_bits {
    ($($float:ty),*) => {$(
        impl PartialEq for Exact<$float> {
            fn eq(&self, other: &Self) -> bool {
                self.0.to_bits() == other.0.to_bits()
            }
        }

        impl Eq for Exact<$float> {}

        impl Hash for Exact<$float> {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.to_bits().hash(state);
            }
        }

        impl From<$float> for Exact<$float> {
            fn from(value: $float) -> Self {
                Exact(value)
            }
        }
    )*};
}

by_bits!(f32, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_is_equal_in_all_bits() {
        assert_ne!(Exact(0.0), Exact(-0.0));
        assert_eq!(Exact(f32::NAN), Exact(f32::NAN));
        assert_eq!(serde_json::to_string(&Exact(0.1f32)).unwrap(), "0.1");
        assert_eq!(serde_json::from_str::<Exact<f64>>("0.5").unwrap(), Exact(0.5));
    }
}
