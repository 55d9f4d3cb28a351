//! Samples of products.

use halite_sizes::Size;

use crate::{
    Activation, DType, Exact, Op, Samples, Values, fragments,
    matmul::{MatMul, summed},
};

impl MatMul {
    /// Few rows of large operands in whole octets: less than a team of columns at the end, and sums that do not fill all slices.
    fn samples_in_octets(out: DType) -> Vec<MatMul> {
        let of = |m: u64, n: u64, k: u64| MatMul::new(m, n, k, DType::F16, out);
        vec![
            of(1, 1032, 2056),
            MatMul { rhs_transposed: true, ..of(2, 2056, 1032) },
            MatMul { bias: true, residual: true, activation: Activation::Relu, ..of(3, 2120, 1000) },
        ]
    }

    /// Samples of what becomes of sums, in whole tiles, at edges, with few rows, and with sums that are cut.
    fn finished_samples(operand: DType, out: DType) -> Vec<MatMul> {
        let shapes = [
            (128, 256, 128),
            (33, 65, 17),
            (40, 36, 64),
            (70, 75, 200),
            (20, 51, 1040),
            (9, 20, 1000),
            (2, 36, 520),
            (1, 50, 24),
            (0, 4, 4),
        ];
        let kinds = [
            (true, false, Activation::None),
            (true, true, Activation::None),
            (false, true, Activation::Relu),
            (true, false, Activation::Gelu),
            (true, true, Activation::GeluTanh),
        ];
        let leaky = Activation::LeakyRelu(crate::Slope::new(0.01).expect("above 0"));
        let of = |(m, n, k), (bias, residual, activation)| {
            let activation = if out.is_float() { activation } else { Activation::None };
            MatMul { bias, residual, activation, ..MatMul::new(m, n, k, operand, out) }
        };
        let mut samples: Vec<MatMul> = Vec::new();
        for (i, shape) in shapes.into_iter().enumerate() {
            samples.push(of(shape, kinds[i % kinds.len()]));
            if operand == out {
                samples.push(of(shape, kinds[(i + 1) % kinds.len()]));
            }
        }
        samples.extend([(40, 36, 64), (3, 40, 96)].map(|shape| of(shape, (true, true, leaky))));
        if out.is_float() {
            let behind = [((128, 256, 128), leaky), ((20, 52, 1040), Activation::Silu)]
                .map(|(shape, function)| of(shape, (true, true, function)));
            samples.extend(behind.map(|op| MatMul { residual_behind: true, ..op }));
        }
        samples.extend(
            [Activation::Mish, Activation::QuickGelu]
                .map(|function| of((40, 36, 64), (true, false, function))),
        );
        let batch = of((20, 24, 16), kinds[4]);
        samples.push(MatMul { batch: 3.into(), rhs_transposed: true, ..batch.clone() });
        samples.push(MatMul { batch: 3.into(), activation: of((1, 1, 1), kinds[2]).activation, ..batch });
        samples.dedup();
        samples
    }

    /// Samples whose left operand has normalized rows: whole tiles and edges, rows that are no whole words, and two matrices.
    fn samples_of_normalized_rows(operand: DType, out: DType) -> Vec<MatMul> {
        let of = |(m, n, k): (u64, u64, u64), lhs_norm| MatMul {
            lhs_norm: Some(Exact(lhs_norm)),
            bias: true,
            ..MatMul::new(m, n, k, operand, out)
        };
        vec![
            of((128, 128, 128), 1e-5),
            MatMul { residual: true, activation: Activation::Relu, ..of((33, 68, 72), 1e-6) },
            MatMul { rhs_transposed: true, activation: Activation::Gelu, ..of((130, 132, 200), 1e-5) },
            MatMul { batch: 2.into(), rhs_shared: true, ..of((20, 36, 64), 1e-3) },
            of((9, 20, 1001), 1e-5),
            of((3, 65, 40), 1e-5),
        ]
    }

    /// Samples whose right operand is in fragments: whole tiles and edges, sums that end within a turn, normalized rows, two matrices,
    /// and runs of larger tensors.
    fn samples_in_fragments() -> Vec<MatMul> {
        let of = |m: u64, n: u64, k: u64| MatMul {
            rhs_fragments: true,
            ..MatMul::new(m, n, k, DType::F16, DType::F16)
        };
        let normalized = |op: MatMul| MatMul { lhs_norm: Some(Exact(1e-5)), bias: true, ..op };
        vec![
            of(64, 64, 64),
            of(1, 16, 16),
            of(320, 512, 128),
            of(33, 80, 272),
            of(0, 16, 16),
            MatMul { bias: true, activation: Activation::Gelu, ..of(170, 272, 400) },
            MatMul { bias: true, residual: true, activation: Activation::Relu, ..of(70, 144, 112) },
            MatMul { residual: true, residual_behind: true, activation: Activation::Silu, ..of(40, 48, 96) },
            MatMul { batch: 2.into(), rhs_shared: true, residual: true, ..of(35, 48, 80) },
            MatMul { activation: Activation::Gelu, ..normalized(of(130, 144, 208)) },
            normalized(MatMul { batch: 2.into(), rhs_shared: true, ..of(20, 32, 64) }),
            MatMul { row_sums: true, ..of(64, 64, 64) },
            MatMul { row_sums: true, bias: true, residual: true, ..of(70, 272, 112) },
            MatMul { row_sums: true, batch: 2.into(), rhs_shared: true, residual: true, ..of(35, 96, 80) },
            MatMul { lhs_sums: true, ..normalized(of(64, 64, 64)) },
            MatMul { lhs_sums: true, activation: Activation::Gelu, ..normalized(of(170, 272, 400)) },
            MatMul { lhs_sums: true, row_sums: true, residual: true, ..normalized(of(33, 80, 272)) },
            normalized(MatMul { lhs_sums: true, batch: 2.into(), rhs_shared: true, ..of(20, 32, 64) }),
        ]
    }

    /// What right operands of such samples have in a row and a column, exact in all types.
    fn pattern(row: u64, column: u64) -> f64 {
        ((row * 7 + column * 13 + row * column % 5) % 17) as f64 / 16.0 - 0.5
    }

    /// A right operand of such a sample.
    fn patterned(&self) -> Vec<f64> {
        let [n, k] = [self.n, self.k].map(Size::exact);
        let place = |at: u64| match self.rhs_transposed {
            _ if self.rhs_fragments => fragments::term_and_column(k, at),
            true => (at % k, at / k),
            false => (at / n, at % n),
        };
        (0..n * k).map(place).map(|(row, column)| Self::pattern(row, column)).collect()
    }

    /// Samples of rows that are normalized: more and fewer quads than invocations, and more than one for each.
    fn normalized_samples(operand: DType, out: DType) -> Vec<MatMul> {
        let shapes = [(33, 64, 1040), (9, 768, 1000), (1, 1028, 2120), (20, 100, 1040)];
        let of = |(index, (m, n, k)): (usize, (u64, u64, u64))| MatMul {
            norm: Some(Exact(1e-5)),
            centered: index % 2 == 0,
            bias: index != 1,
            residual: index != 3,
            ..MatMul::new(m, n, k, operand, out)
        };
        shapes.into_iter().enumerate().map(of).collect()
    }
}

impl Samples for MatMul {
    fn samples() -> Vec<MatMul> {
        let types = [
            (DType::F32, DType::F32),
            (DType::F16, DType::F16),
            (DType::F16, DType::F32),
            (DType::BF16, DType::F32),
            (DType::I8, DType::I32),
        ];
        let shapes =
            [(1, 1, 1), (64, 64, 64), (33, 65, 17), (130, 7, 100), (1, 300, 40), (5, 3, 0), (0, 4, 4)];
        // Tiles of 128 and edges of them, in rows of whole 16-byte words; sums that are worth cutting.
        let aligned = [(128, 256, 128), (150, 80, 48), (9, 20, 1000), (2, 36, 520), (10, 12, 2120)];
        let mut samples = Vec::new();
        for (operand, out) in types {
            for (m, n, k) in shapes.into_iter().chain(aligned) {
                samples.push(MatMul::new(m, n, k, operand, out));
            }
            let even = MatMul::new(70, 144, 112, operand, out);
            samples.push(MatMul { rhs_transposed: true, batch: 2.into(), ..even });
            let odd = MatMul::new(35, 66, 31, operand, out);
            samples.push(MatMul { rhs_transposed: true, ..odd.clone() });
            samples.push(MatMul { batch: 3.into(), ..odd.clone() });
            // Rows and matrices that begin anywhere; sums that are worth cutting, too.
            let anywhere = MatMul { batch: 3.into(), n: 65.into(), ..odd.clone() };
            samples.push(MatMul { rhs_transposed: true, ..anywhere.clone() });
            samples.push(MatMul { k: 1041.into(), m: 5.into(), ..anywhere });
            samples.push(MatMul { batch: 2.into(), ..MatMul::new(49, 36, 196, operand, out) });
            samples.push(MatMul { batch: 2.into(), rhs_shared: true, rhs_transposed: true, ..odd });
            if operand == DType::F16 {
                samples.extend(Self::samples_in_octets(out));
            }
            if (operand, out) == (DType::F16, DType::F16) {
                samples.extend(Self::samples_in_fragments());
            }
            samples.extend(Self::finished_samples(operand, out));
            if matches!(out, DType::F32 | DType::F16) {
                samples.extend(Self::normalized_samples(operand, out));
                samples.extend(Self::samples_of_normalized_rows(operand, out));
            }
        }
        samples
    }

    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        self.lhs_norm?;
        let [rows, k] = [self.batch * self.m, self.k].map(Size::exact);
        let left = || (0..rows).flat_map(|row| (0..k).map(move |column| Self::pattern(row + 3, column)));
        if self.lhs_sums && index + 1 == self.inputs().len() {
            let [rows, k] = [rows, k].map(|count| count as usize);
            return Some(Values::Float(summed(&left().collect::<Vec<_>>(), rows, k)));
        }
        match index {
            0 if self.lhs_sums => Some(Values::Float(left().collect())),
            1 => Some(Values::Float(self.patterned())),
            2 => {
                let [n, k] = [self.n, self.k].map(Size::exact);
                let bias = (0..n).map(|_| (random() % 256) as f64 / 128.0 - 1.0).collect::<Vec<_>>();
                let sum = |column| self.out.round((0..k).map(|row| Self::pattern(row, column)).sum());
                Some(Values::Float(bias.into_iter().chain((0..n).map(sum)).collect()))
            }
            _ => None,
        }
    }
}
