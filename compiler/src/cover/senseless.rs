//! Sizes for which a model makes no sense: a module is for the others.

use crate::{CompileError, program::LeftOut, signature::Signature};

/// Most combinations of sizes that are left out: each takes a look at the model.
const MOST: usize = 256;

/// Where no sizes have made sense, so many are enough: the model is what is wrong.
const MOST_AT_FIRST: usize = 8;

/// Those that were found.
#[derive(Default)]
pub struct Senseless {
    combinations: usize,
    first: Option<CompileError>,
}

impl Senseless {
    /// One more, beside so many graphs that were made.
    ///
    /// # Errors
    /// What was wrong with the first, where they are too many.
    pub fn add(&mut self, error: CompileError, graphs: usize) -> Result<(), CompileError> {
        self.combinations += 1;
        let first = self.first.take().unwrap_or(error);
        if self.combinations >= if graphs == 0 { MOST_AT_FIRST } else { MOST } {
            return Err(first);
        }
        self.first = Some(first);
        Ok(())
    }

    /// What a function says of them that has so many graphs.
    ///
    /// # Errors
    /// What was wrong with the first, where there are no graphs.
    pub fn finish(self, graphs: usize) -> Result<Option<LeftOut>, CompileError> {
        match self.first {
            Some(first) if graphs == 0 => Err(first),
            first => Ok(first.map(|why| LeftOut { combinations: self.combinations, why: why.to_string() })),
        }
    }
}

/// An error that says with which sizes of inputs it came about.
pub fn with_sizes(error: CompileError, inputs: &[Signature], shapes: &[Vec<u64>]) -> CompileError {
    let CompileError::Invalid { location, reason } = error else { return error };
    let one = |(input, dims): (&Signature, &Vec<u64>)| {
        let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
        format!("{} of {}", input.name, if dims.is_empty() { "no size".to_owned() } else { dims.join("x") })
    };
    let sizes: Vec<String> = inputs.iter().zip(shapes).map(one).collect();
    CompileError::Invalid { location, reason: format!("{reason}, with {}", sizes.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(number: usize) -> CompileError {
        CompileError::Request(number.to_string())
    }

    #[test]
    fn some_are_left_out_and_many_or_all_are_an_error() {
        let mut some = Senseless::default();
        (0..MOST - 1).for_each(|number| some.add(error(number), 1).unwrap());
        let left_out = some.finish(1).unwrap().unwrap();
        assert_eq!((left_out.combinations, &left_out.why[..]), (MOST - 1, "0"));
        assert_eq!(left_out.to_string(), format!("0, and {} more", MOST - 2));

        let mut many = Senseless::default();
        (0..MOST - 1).for_each(|number| many.add(error(number), 1).unwrap());
        assert_eq!(many.add(error(MOST), 1).unwrap_err().to_string(), "0");

        let mut all = Senseless::default();
        all.add(error(3), 0).unwrap();
        assert_eq!(all.finish(0).unwrap_err().to_string(), "3");
        let mut first = Senseless::default();
        assert!((0..MOST_AT_FIRST).any(|number| first.add(error(number), 0).is_err()));
        assert!(Senseless::default().finish(1).unwrap().is_none());
    }
}
