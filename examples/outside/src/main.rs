//! A program as users write it: it depends on the crate `halite` and on nothing else.

use halite as _;

fn main() {}
