//! The constants of estimates of products on matrix units, one set for each kind of kernel, and their names for whoever fits them.

use halite_ops::Operation;
use halite_targets::Capabilities;

use crate::{Plan, Variant};

/// Microseconds of the parts of a product on matrix units, for a unit of an NVIDIA GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Matrices {
    /// Until the first workgroup runs, and after the last one.
    pub launch: f64,
    /// Until a workgroup has its first tile.
    pub begin: f64,
    /// Waits of a turn.
    pub turn: f64,
    /// The same where each subgroup has tiles of its own.
    pub alone: f64,
    /// More of them for each 32,768 products of a subgroup.
    pub turn_products: f64,
    /// A unit's work for 2^19 products.
    pub products: f64,
    /// A unit's work for 16,384 elements of the left operand that are moved to shared memory and from there.
    pub moved: f64,
    /// The same of the right operand.
    pub moved_right: f64,
    /// A unit's work for 4,096 results.
    pub results: f64,
    /// A unit's work for as many sums of each further slice.
    pub slices: f64,
    /// A second dispatch, which adds.
    pub add: f64,
    /// Registers of an invocation beside sums and tiles.
    pub registers: f64,
}

impl Matrices {
    /// The names of the constants, in the order of [`Self::values`].
    pub const NAMES: [&str; 12] = [
        "launch",
        "begin",
        "turn",
        "alone",
        "turn_products",
        "products",
        "moved",
        "moved_right",
        "results",
        "slices",
        "add",
        "registers",
    ];

    /// The constants in the order of their names.
    pub fn values(&self) -> [f64; 12] {
        [
            self.launch,
            self.begin,
            self.turn,
            self.alone,
            self.turn_products,
            self.products,
            self.moved,
            self.moved_right,
            self.results,
            self.slices,
            self.add,
            self.registers,
        ]
    }

    /// Those of an array in the order of their names.
    pub fn of(
        [
            launch,
            begin,
            turn,
            alone,
            turn_products,
            products,
            moved,
            moved_right,
            results,
            slices,
            add,
            registers,
        ]: [f64; 12],
    ) -> Matrices {
        Matrices {
            launch,
            begin,
            turn,
            alone,
            turn_products,
            products,
            moved,
            moved_right,
            results,
            slices,
            add,
            registers,
        }
    }
}

/// Most rows of a product that count as few.
const MOST_FEW_ROWS: u64 = 128;

/// Whether an operation is a product of few rows.
fn has_few_rows(operation: &Operation) -> bool {
    matches!(operation, Operation::MatMul(op) if op.m.value() <= MOST_FEW_ROWS)
}

/// The constants of all kinds of kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Models {
    /// Products of matrices.
    pub products: Matrices,
    /// The same of few rows.
    pub few_rows: Matrices,
    /// Products whose right operand is in fragments.
    pub fragments: Matrices,
    /// Convolutions of one place, and of windows that were written to memory.
    pub unfolded: Matrices,
    /// Convolutions of images whose channels lie last.
    pub images: Matrices,
    /// The same with filters in fragments.
    pub image_fragments: Matrices,
    /// Windows of images that are read in place, channels first.
    pub taps: Matrices,
    /// Copies of images with their padding.
    pub padded: Matrices,
}

/// What estimates use.
pub(super) const MODELS: Models = Models {
    products: PRODUCTS,
    few_rows: FEW_ROWS,
    fragments: FRAGMENTS,
    unfolded: UNFOLDED,
    images: IMAGES,
    image_fragments: IMAGE_FRAGMENTS,
    taps: TAPS,
    padded: PADDED,
};

impl Default for Models {
    fn default() -> Self {
        MODELS
    }
}

impl Models {
    /// The names of the sets, as in the source; each is for some templates of variants.
    pub const NAMES: [&str; 8] =
        ["PRODUCTS", "FEW_ROWS", "FRAGMENTS", "UNFOLDED", "IMAGES", "IMAGE_FRAGMENTS", "TAPS", "PADDED"];

    /// The set for a product of matrices, by its rows.
    pub(super) fn of_product(&self, operation: &Operation) -> &Matrices {
        if has_few_rows(operation) { &self.few_rows } else { &self.products }
    }

    /// The name of the set that estimates of a template use for an operation; `None` where they use none.
    pub fn name_of(operation: &Operation, template: &str) -> Option<&'static str> {
        match template {
            "coop" if has_few_rows(operation) => Some("FEW_ROWS"),
            "coop" => Some("PRODUCTS"),
            "fragments" => Some("FRAGMENTS"),
            "points" | "unfolded" | "folded" => Some("UNFOLDED"),
            "image" => Some("IMAGES"),
            "image_fragments" => Some("IMAGE_FRAGMENTS"),
            "taps" => Some("TAPS"),
            "padded" => Some("PADDED"),
            _ => None,
        }
    }

    /// The set of a name.
    pub fn set(&mut self, name: &str) -> Option<&mut Matrices> {
        match name {
            "PRODUCTS" => Some(&mut self.products),
            "FEW_ROWS" => Some(&mut self.few_rows),
            "FRAGMENTS" => Some(&mut self.fragments),
            "UNFOLDED" => Some(&mut self.unfolded),
            "IMAGES" => Some(&mut self.images),
            "IMAGE_FRAGMENTS" => Some(&mut self.image_fragments),
            "TAPS" => Some(&mut self.taps),
            "PADDED" => Some(&mut self.padded),
            _ => None,
        }
    }

    /// Microseconds that a plan of a variant takes on a target by these constants; `None` where no estimate fits.
    pub fn estimate(
        &self,
        operation: &Operation,
        variant: &Variant,
        plan: &Plan,
        target: &Capabilities,
    ) -> Option<f64> {
        super::estimate_by(self, operation, variant, plan, target)
    }
}

/// Fitted by `bench fit` to 1,197 times of 38 shapes, of 1,024 to 25,088 rows, by all tilings on an H200 (driver 580.159.04), with weights that
/// were not in caches and with what networks do with results: tensors that are added, GELU, rows that are normalized before. The same run
/// measured most of these shapes by tilings with weights in fragments, since estimates of both are held against each other. The launch is that of
/// smaller shapes. The differences are 13 %. On shapes that were held out of the fit the choice took 1.017 times the best, in the geometric
/// mean, and 1.15 at most.
const PRODUCTS: Matrices = Matrices {
    launch: 3.4005,
    begin: 0.5759,
    turn: 0.4316,
    alone: 0.3683,
    turn_products: 0.0423,
    products: 0.0843,
    moved: 0.2892,
    moved_right: 0.2892,
    results: 0.5849,
    slices: 0.2734,
    add: 2.1624,
    registers: OTHER_REGISTERS,
};

/// The same for few rows, with an earlier end of the kernels. Fitted by least squares of logarithms to 1,680 times of 56 shapes that were drawn by lot, of 196 to 25,088 rows, by 30 tilings on an
/// H200 (driver 580.159.04), with weights that were not in caches; times far above the best counted less. The root mean square of the
/// differences is 12 %. On these shapes the choice took 1.010 times the best, in the geometric mean, and 1.15 at most; fitted to four fifths
/// of them, it took 1.006 times the best for the others, and 1.07 at most.
const FEW_ROWS: Matrices = Matrices {
    launch: 2.2332,
    begin: 0.732,
    turn: 0.1007,
    alone: 0.0192,
    turn_products: 0.02,
    products: 0.109,
    moved: 0.6107,
    moved_right: 0.6107,
    results: 0.5775,
    slices: 0.3042,
    add: 0.9446,
    registers: OTHER_REGISTERS,
};

/// The same with the right operand in fragments, of which nothing goes through shared memory: 2,660 times of 186 shapes, of 32 to 22,445
/// rows. The differences are 10 %. On shapes that were held out of the fit the choice takes 1.035 times the best, and 1.44 at most; for
/// 96 % it is within 1.3.
const FRAGMENTS: Matrices = Matrices {
    launch: 3.2265,
    begin: 1.7504,
    turn: 0.2866,
    alone: 0.2854,
    turn_products: 0.0714,
    products: 0.0583,
    moved: 0.3446,
    moved_right: 0.0004,
    results: 0.4768,
    slices: 0.0,
    add: 0.9446,
    registers: 60.0,
};

/// Convolutions: those of 1x1, and of windows that were written to memory, beside which `TAPS` and `UNFOLD` were fitted. 22 shapes of up to 512
/// rows on an H200, in the same way, with the tiles that there were; `PRODUCTS` chose slower ones for eight images of ResNet-50.
const UNFOLDED: Matrices = Matrices {
    launch: 2.5336,
    begin: 0.619,
    turn: 0.1666,
    alone: 0.1846,
    turn_products: 0.0432,
    products: 0.3007,
    moved: 0.5301,
    moved_right: 0.5301,
    results: 1.23,
    slices: 0.2713,
    add: 0.9446,
    registers: OTHER_REGISTERS,
};

/// The same for windows of images, whose words are shifted on their way: fitted to 220 times of convolutions of 3x3, 5x5 and 1x3 on
/// an H100, with operands in caches. The root mean square of the differences is 11 %; by `UNFOLDED` it was 29 %, and all were
/// taken for 0.79 times as long as they are.
const TAPS: Matrices = Matrices {
    launch: 2.5336,
    begin: 1.7124,
    turn: 0.2187,
    alone: 0.0729,
    turn_products: 0.0414,
    products: 0.2248,
    moved: 0.0788,
    moved_right: 1.5587,
    results: 0.2919,
    slices: 0.1053,
    add: 0.9446,
    registers: OTHER_REGISTERS,
};

/// The same for a product over a copy of the image with its padding: fitted with `COPY` and `SUMS` to 212 times of 28 convolutions of 3x3,
/// of one to eight images, on an H100 and an H200, with operands in caches. The root mean square of the differences is 7 %; the choice
/// took 1.004 times the best tiling, in the geometric mean, and 1.03 at most. It was not held against others.
const PADDED: Matrices = Matrices {
    launch: 2.5336,
    begin: 0.1484,
    turn: 0.2673,
    alone: 0.2673,
    turn_products: 0.017,
    products: 0.2315,
    moved: 0.3731,
    moved_right: 0.3731,
    results: 1.4143,
    slices: 0.0,
    add: 1.9557,
    registers: OTHER_REGISTERS,
};

/// Products over images whose channels lie last, beside the rate of caches: 639 times of 40 convolutions of one to eight images, 28 of them drawn
/// by lot, on an H200 (driver 580.159.04), with filters that were not in caches. The differences are 13 %; on shapes that were held out the
/// choice took 1.038 times the best, and 1.74 at most. With fewer registers the differences are smaller, and some choices worse.
const IMAGES: Matrices = Matrices {
    launch: 5.2366,
    begin: 0.0104,
    turn: 0.4798,
    alone: 0.5551,
    turn_products: 0.0251,
    products: 0.1415,
    moved: 0.1713,
    moved_right: 0.1713,
    results: 0.6763,
    slices: 0.7348,
    add: 1.5706,
    registers: 75.0,
};

/// The same with filters in fragments: 806 times of 66 convolutions. The differences are 17 %; on shapes that were held out the choice took 1.051
/// times the best, and 1.31 at most.
const IMAGE_FRAGMENTS: Matrices = Matrices {
    launch: 5.417,
    begin: 1.6207,
    turn: 0.0016,
    alone: 0.0747,
    turn_products: 0.1056,
    products: 0.0385,
    moved: 0.5202,
    moved_right: 0.0002,
    results: 0.4016,
    slices: 0.0,
    add: 0.9446,
    registers: 85.0,
};

/// Registers of an invocation beside sums and tiles, where nothing else is known.
const OTHER_REGISTERS: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_go_by_their_names() {
        assert_eq!(Matrices::of(PRODUCTS.values()), PRODUCTS);
        let place = Matrices::NAMES.iter().position(|name| *name == "registers").unwrap();
        assert_eq!(IMAGES.values()[place], IMAGES.registers);
        let mut models = Models::default();
        for name in Models::NAMES {
            models.set(name).unwrap().launch = 100.0;
        }
        assert!(
            [
                models.products,
                models.few_rows,
                models.fragments,
                models.unfolded,
                models.images,
                models.image_fragments,
                models.taps,
                models.padded
            ]
            .iter()
            .all(|set| set.launch == 100.0)
        );
        assert!(models.set("OTHERS").is_none());
    }
}
